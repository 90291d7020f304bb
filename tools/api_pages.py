"""Pages of the API reference, made of signatures and docstrings when the documentation is built.

    python tools/api_pages.py FOLDER [--stub build/main/python/_crenel.pyi]     # as files, to look at

MkDocs has them from tools/docs_hooks.py. Python: from the sources and the extension module's stub; nothing is
imported. C++: from the comments of the public headers. mkdocstrings leaves out overloaded functions of a stub
(griffe ties overloads to an implementation, which a stub has not): add, multiply and encrypt had no entry.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import header_page
from check_signatures import ROOT, Function, Package, Place, _is, _statements
from check_types import Missing, find_stub
from docstrings import to_markdown

PAGES = ("crenel", "ckks", "tfhe", "bridge", "fhecore", "nn", "workloads", "client", "serve", "distributed")
TITLES = {"crenel": "crenel", **{p: f"crenel.{p}" for p in PAGES[1:]}, **header_page.TITLES}
FOLDER = "reference/api"
ADDRESSES = [f"{FOLDER}/{page}.md" for page in TITLES]  # below docs/
WIDTH = 78
PREFIXES = re.compile(r"\b(?:numpy\.typing|npt|typing|collections\.abc|_crenel|os)\.")
DUNDERS = {"__call__": "{name}(...)", "__getitem__": "{name}[...]"}
SHOWN = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "matmul": "@", "pow": "**",
    "mod": "%",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=", "neg": "unary -", "pos": "unary +", "invert": "~", "len": "len()",
    "contains": "in", "iter": "iteration",
}  # fmt: skip


@dataclass
class Entry:
    """A public name: what it is called, and its definitions (several of an overloaded function)."""

    name: str
    places: list[Place]

    @property
    def node(self) -> ast.stmt:
        return self.places[0].node


@dataclass
class Reference:
    package: Package
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    elsewhere: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # a name and its address
    called: dict[str, str] = field(default_factory=dict)  # definitions' names in the sources by public ones

    def __post_init__(self) -> None:
        first: dict[int, str] = {}  # addresses
        for page in PAGES:
            module = self.package.modules["crenel" if page == "crenel" else f"crenel.{page}"]
            self.entries[page], self.elsewhere[page] = [], []
            for name in self.package.exports(module.name):
                places = [p for p in self.package.find(module, name) if not isinstance(p.node, ast.Import)]
                if name.startswith("__") or not places or places[0].node in module.tree.body[:0]:
                    continue
                if isinstance(places[0].node, (ast.Assign, ast.AnnAssign)):
                    continue
                key = id(places[0].node)
                if key in first:
                    self.elsewhere[page].append((name, first[key]))
                    continue
                first[key] = f"{page}.md#{name.lower()}"
                self.entries[page].append(Entry(name, places))
                original = getattr(places[0].node, "name", name)
                if original != name:
                    self.called[original] = name

    def links(self, page: str) -> dict[str, str]:
        """Addresses of public classes and functions; those of the page itself win."""
        found: dict[str, str] = {}
        for other in (*PAGES, page):
            address = "" if other == page else f"{other}.md"
            found |= {e.name: f"{address}#{e.name.lower()}" for e in self.entries[other]}
        return found

    def page(self, page: str) -> str:
        """The Markdown of one page."""
        module = self.package.modules["crenel" if page == "crenel" else f"crenel.{page}"]
        links = self.links(page)
        title = module.name
        parts = [f"# {title}", to_markdown(ast.get_docstring(module.tree) or "", links, "../errors.md")]
        for kind, wanted in (("Classes", ast.ClassDef), ("Functions", Function)):
            entries = [e for e in self.entries[page] if isinstance(e.node, wanted) and not is_error(e)]
            parts += [summary(kind, entries)] if entries else []
        others = [
            f"[`{name}`]({where})"
            for name, where in self.elsewhere[page]
            if not name.endswith(("Error", "Warning"))
        ]
        if others:
            parts.append(f"Importable from here, too: {', '.join(others)}.")
        if any(name.endswith("Error") for name in self.package.exports(module.name)):
            parts.append("Errors and warnings: [the tree](../errors.md), each importable from here.")
        for entry in self.entries[page]:
            parts += (
                self._class(entry, links)
                if isinstance(entry.node, ast.ClassDef)
                else self._function(entry, links)
            )
        return "\n\n".join(part for part in parts if part) + "\n"

    def _function(self, entry: Entry, links: dict[str, str], level: str = "##", owner: str = "") -> list[str]:
        nodes = [p.node for p in entry.places if isinstance(p.node, Function)]
        overloads = [n for n in nodes if _is(n, "overload")]
        shown = overloads or nodes[:1]
        name = DUNDERS.get(entry.name, entry.name).format(name=owner.lower())
        code = [
            signature(n, name if n.name in DUNDERS else entry.name, self.called, bool(owner)) for n in shown
        ]
        docs = list(dict.fromkeys(d for n in nodes if (d := ast.get_docstring(n))))
        text = [to_markdown(doc, links, "../errors.md") for doc in docs]
        heading = f"{level} {name.replace('(...)', '()')}"
        if owner:  # methods of several classes have one name; underscores at both ends would be emphasis
            short = entry.name.strip("_") if entry.name in DUNDERS else entry.name
            heading += f" {{: #{owner.lower()}.{short} }}"
        return [heading, "```python\n" + "\n".join(code) + "\n```", *text]

    def _class(self, entry: Entry, links: dict[str, str]) -> list[str]:
        node = entry.node
        assert isinstance(node, ast.ClassDef)
        parts = [f"## {entry.name}"]
        bases = [ast.unparse(b) for b in node.bases if not ast.unparse(b).startswith("_")]
        if is_error(entry):
            parts.append(f"*Derives from {', '.join(f'`{b}`' for b in bases)}.*")
        parts.append(to_markdown(ast.get_docstring(node) or "", links, "../errors.md"))
        members = self._members(entry.places[0])
        if "__init__" in members and not is_error(entry):
            made = Entry(entry.name, members["__init__"])
            shown = self._function(made, links, owner=entry.name)[1:]
            parts += [shown[0].replace(" -> None", ""), *shown[1:]]
        facts, calls, operators = self._values(node, links), [], []
        for name, places in members.items():
            first = places[0].node
            if isinstance(first, ast.AnnAssign) and first not in node.body and not name.startswith("_"):
                facts.append((name, display(first.annotation, self.called), ""))  # inherited
            elif not isinstance(first, Function):
                continue
            elif _is(first, "property"):
                doc = to_markdown(ast.get_docstring(first) or "", links, "../errors.md")
                facts.append((name, display(first.returns, self.called), doc))
            elif name in DUNDERS or not name.startswith("_"):
                calls.append(Entry(name, places))
            elif (operator := SHOWN.get(name.strip("_"))) and not is_error(entry):
                operators.append(operator)
        if facts:
            rows = [f"| `{n}` | `{t}` | {cell(d)} |" for n, t, d in facts]
            parts.append("\n".join(["| Property | Type | Meaning |", "|---|---|---|", *rows]))
        if operators:
            parts.append("Operators: " + ", ".join(f"`{o}`" for o in dict.fromkeys(operators)) + ".")
        for call in calls:
            parts += self._function(call, links, "###", entry.name)
        return parts

    def _values(self, node: ast.ClassDef, links: dict[str, str]) -> list[tuple[str, str, str]]:
        """Fields and members of an enumeration: name, type, and the text that stands behind it."""
        found = []
        listed = any(ast.unparse(base) in ("enum.Enum", "Enum") for base in node.bases)
        for member, behind in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                name, kind = member.target.id, display(member.annotation, self.called)
            elif listed and isinstance(member, ast.Assign):
                name, kind = f"{node.name}.{ast.unparse(member.targets[0])}", node.name
            else:
                continue
            if not name.startswith("_"):
                text = _string(behind.value) if isinstance(behind, ast.Expr) else ""
                text = text or _setting(member.value)
                found.append((name, kind, to_markdown(text, links, "../errors.md")))
        return found

    def _members(self, place: Place) -> dict[str, list[Place]]:
        """Of the class, then inherited ones, by name."""
        found: dict[str, list[Place]] = {}
        node = place.node
        assert isinstance(node, ast.ClassDef)
        for member in _statements(node.body):
            name = getattr(member, "name", None) or getattr(getattr(member, "target", None), "id", None)
            if name:
                found.setdefault(name, []).append(Place(place.module, member))
        for written in node.bases:
            base = written.value if isinstance(written, ast.Subscript) else written
            if isinstance(base, ast.Name):
                for parent in self.package.find(place.module, base.id):
                    if isinstance(parent.node, ast.ClassDef):
                        for name, places in self._members(parent).items():
                            found.setdefault(name, places)
        return found


def _string(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _setting(value: ast.expr | None) -> str:
    """What a setting of the service is, with its default."""
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) == "_setting"):
        return ""
    default = ast.unparse(value.args[0])
    return (
        f"{_string(value.args[1])}; default `{default}`"
        if default not in ("''", "()")
        else _string(value.args[1])
    )


def is_error(entry: Entry) -> bool:
    return entry.name.endswith(("Error", "Warning"))


def summary(kind: str, entries: list[Entry]) -> str:
    """A table of names and first sentences."""
    rows = []
    for entry in entries:
        nodes = [p.node for p in entry.places]
        doc = next(
            (
                d
                for n in nodes
                if isinstance(n, (ast.ClassDef, *Function.__args__)) and (d := ast.get_docstring(n))
            ),
            "",
        )
        first = re.split(r"(?<=[.:])(?<!e\.g\.)\s", " ".join(doc.split()), maxsplit=1)[0].rstrip(":")
        rows.append(
            f"| [`{entry.name}`](#{entry.name.lower()}) | {cell(to_markdown(first, {}, '../errors.md'))} |"
        )
    return "\n".join([f"| {kind} | |", "|---|---|", *rows])


def display(annotation: ast.expr | None, called: dict[str, str]) -> str:
    """A type as a reader writes it."""
    text = "None" if annotation is None else ast.unparse(annotation)
    text = PREFIXES.sub("", text).replace("numpy.", "np.")
    return re.sub(r"\b\w+\b", lambda m: called.get(m[0], m[0]), text)


def cell(text: str) -> str:
    """One line of a table; outside code no `|` begins a column."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(p if i % 2 else p.replace("|", "&#124;") for i, p in enumerate(parts))


def signature(node: Function, name: str, called: dict[str, str], method: bool) -> str:
    """name(arguments) -> result, an argument a line where it is long."""
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(a.defaults)) + list(a.defaults)
    pairs = list(zip(positional, defaults, strict=True))
    if method and not _is(node, "staticmethod"):
        pairs = pairs[1:]
    items = [_argument(x, d, called) for x, d in pairs]
    if a.vararg:
        items.append("*" + _argument(a.vararg, None, called))
    elif a.kwonlyargs:
        items.append("*")
    items += [_argument(x, d, called) for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    if a.kwarg:
        items.append("**" + _argument(a.kwarg, None, called))
    result = display(node.returns, called)
    if _is(node, "contextmanager"):
        result = re.sub(r"^Iterator\[", "AbstractContextManager[", result)
    bare = name.removesuffix("(...)").removesuffix("[...]")
    left, right = ("[", "]") if name.endswith("[...]") else ("(", ")")
    line = f"{bare}{left}{', '.join(items)}{right} -> {result}"
    if len(line) <= WIDTH:
        return line
    body = "".join(f"    {item},\n" for item in items)
    return f"{bare}{left}\n{body}{right} -> {result}"


def _argument(argument: ast.arg, default: ast.expr | None, called: dict[str, str]) -> str:
    text = argument.arg
    if argument.annotation is not None:
        text += f": {display(argument.annotation, called)}"
    if default is not None:
        text += (" = " if argument.annotation is not None else "=") + ast.unparse(default)
    return text


def pages(stub: Path) -> Iterator[tuple[str, str]]:
    """Paths below docs/ and the Markdown of all pages."""
    reference = Reference(Package(ROOT / "python", stub))
    for page in PAGES:
        yield f"{FOLDER}/{page}.md", reference.page(page)
    for name, text in header_page.pages():
        yield f"{FOLDER}/{name}.md", text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stub", help="the extension module's stub; default: the installed package's")
    options = parser.parse_args()
    try:
        for path, text in pages(find_stub(options.stub)):
            file = options.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except Missing as missing:
        print(f"api_pages.py: {missing}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
