"""Public signatures of the Python package: every type is said, none is Any, everything has a docstring.

    python tools/check_signatures.py [--stub build/main/python/_crenel.pyi]

Public is what `__all__` of the modules in PUBLIC names, with the public members of its classes, inherited
ones too. Read from the sources and the extension module's stub;
nothing is imported.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from check_types import Missing, find_stub

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = (
    "crenel", "crenel.ckks", "crenel.tfhe", "crenel.bridge", "crenel.fhecore", "crenel.nn",
    "crenel.workloads", "crenel.client", "crenel.serve", "crenel.distributed",
)  # fmt: skip
STUB = "crenel._crenel"
# Generic classes that stand for unknown elements when nothing says which.
GENERIC = {
    "dict",
    "list",
    "set",
    "tuple",
    "type",
    "ndarray",
    "dtype",
    "Callable",
    "Iterator",
    "Iterable",
    "Sequence",
}
GENERIC |= {"Mapping", "Generator", "NDArray", "AbstractContextManager"}
# What these take is anything, as those of `object` itself.
COMPARISON = re.compile(r"\.__(eq|ne|lt|le|gt|ge|contains)__: parameter ")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    name: str
    file: Path
    tree: ast.Module
    names: dict[str, list[ast.stmt]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in _statements(self.tree.body):
            for name in _bound(node):
                self.names.setdefault(name, []).append(node)


@dataclass(frozen=True)
class Place:
    """A definition: the module that it stands in, and its node."""

    module: Module
    node: ast.stmt


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Of a module or class, those below `if TYPE_CHECKING:` and the like too."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        else:
            yield node


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [a.asname or a.name for a in node.names]
    return []


class Package:
    """The sources of the package and the stub, by module name."""

    def __init__(self, sources: Path, stub: Path) -> None:
        self.modules: dict[str, Module] = {}
        for file in sorted((sources / "crenel").rglob("*.py")):
            parts = file.relative_to(sources).with_suffix("").parts
            self._add(".".join(parts[:-1] if parts[-1] == "__init__" else parts), file)
        self._add(STUB, stub)

    def _add(self, name: str, file: Path) -> None:
        self.modules[name] = Module(name, file, ast.parse(file.read_text(encoding="utf-8")))

    def exports(self, module: str) -> list[str]:
        """`__all__`."""
        for node in self.modules[module].names.get("__all__", []):
            if isinstance(node, ast.Assign):
                return [str(name) for name in ast.literal_eval(node.value)]
        return []

    def find(self, module: Module, name: str) -> list[Place]:
        """Definitions of a name: several of an overloaded function, none outside the package."""
        places: list[Place] = []
        for node in module.names.get(name, []):
            if isinstance(node, ast.ImportFrom):
                original = next(a.name for a in node.names if (a.asname or a.name) == name)
                other = self.modules.get(node.module or "")
                if other is not None and other is not module:
                    places += self.find(other, original)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
                places += self._attribute(module, node.value) or [Place(module, node)]
            elif not isinstance(node, ast.Import):
                places.append(Place(module, node))
        return places

    def _attribute(self, module: Module, node: ast.Attribute) -> list[Place]:
        """`Evaluator.chebyshev_fit` as a value."""
        if not isinstance(node.value, ast.Name):
            return []
        owners = self.find(module, node.value.id)
        return [
            Place(owner.module, member)
            for owner in owners
            if isinstance(owner.node, ast.ClassDef)
            for member in owner.node.body
            if node.attr in _bound(member)
        ]


@dataclass
class Checker:
    package: Package
    findings: list[str] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def module(self, name: str) -> None:
        module = self.package.modules[name]
        self._docstring(Place(module, module.tree.body[0]), module.tree, name)
        exports = self.package.exports(name)
        if not exports:
            self.findings.append(f"{_where(module.file)}:1: {name} has no __all__")
        for export in exports:
            if not export.startswith("__"):
                self._definitions(
                    self.package.find(module, export), f"{name.removeprefix('crenel.')}.{export}"
                )

    def _definitions(self, places: list[Place], name: str) -> None:
        functions = [p for p in places if isinstance(p.node, Function)]
        self._functions(functions, name, static=True)
        for place in places:
            if isinstance(place.node, ast.ClassDef) and id(place.node) not in self.seen:
                self.seen.add(id(place.node))
                self._class(place, place.module, place.node, name)

    def _class(self, place: Place, module: Module, node: ast.ClassDef, name: str) -> None:
        self._docstring(place, node, name)
        members: dict[str, list[ast.stmt]] = {}
        for member in _statements(node.body):
            for bound in _bound(member):
                members.setdefault(bound, []).append(member)
        for member_name, nodes in members.items():
            if member_name.startswith("_") and not member_name.startswith("__"):
                continue
            for member in nodes:
                if isinstance(member, ast.AnnAssign):
                    self._annotation(Place(module, member), member.annotation, f"{name}.{member_name}")
            functions = [Place(module, n) for n in nodes if isinstance(n, Function)]
            self._functions(functions, f"{name}.{member_name}", static=False)
        for base in node.bases:
            if isinstance(base, ast.Name):
                for parent in self.package.find(module, base.id):
                    if isinstance(parent.node, ast.ClassDef) and id(parent.node) not in self.seen:
                        self.seen.add(id(parent.node))
                        self._class(parent, parent.module, parent.node, name)

    def _functions(self, places: list[Place], name: str, *, static: bool) -> None:
        """All overloads of one name; one of them needs the docstring."""
        nodes = [p.node for p in places if isinstance(p.node, Function)]
        if len(nodes) > 1 and any(_is(n, "overload") for n in nodes):  # what follows them is not for callers
            nodes = [n for n in nodes if _is(n, "overload")] + [n for n in nodes if ast.get_docstring(n)]
        for place in places:
            if place.node in nodes and isinstance(place.node, Function) and id(place.node) not in self.seen:
                self.seen.add(id(place.node))
                overloaded = len(places) > 1 and not _is(place.node, "overload")
                if not (overloaded and any(_is(n, "overload") for n in nodes)):
                    self._signature(place, place.node, name, static=static)
        short = name.rpartition(".")[2]
        if nodes and (not short.startswith("__") or short == "__call__") and not _is(nodes[0], "setter"):
            if not any(ast.get_docstring(n) for n in nodes):
                self._say(places[0], f"{name} has no docstring")
            for node in nodes:
                self._parameters_of_docstring(places[0], node, nodes, name)

    def _signature(self, place: Place, node: Function, name: str, *, static: bool) -> None:
        a = node.args
        arguments = [*a.posonlyargs, *a.args]
        if not static and not _is(node, "staticmethod"):
            arguments = arguments[1:]
        extra = [x for x in (a.vararg, a.kwarg) if x is not None]
        for argument in [*arguments, *a.kwonlyargs, *extra]:
            if argument.annotation is None:
                self._say(place, f"{name}: parameter {argument.arg} has no type")
            else:
                self._annotation(place, argument.annotation, f"{name}: parameter {argument.arg}")
        if node.returns is None:
            self._say(place, f"{name}: no return type")
        else:
            self._annotation(place, node.returns, f"{name}: result")

    def _annotation(self, place: Place, annotation: ast.expr, name: str, depth: int = 0) -> None:
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        said = {id(n.value) for n in ast.walk(annotation) if isinstance(n, ast.Subscript)}
        literal = [
            n for n in ast.walk(annotation) if isinstance(n, ast.Subscript) and _last(n.value) == "Literal"
        ]
        inside = {id(x) for n in literal for x in ast.walk(n.slice)}
        unused = _unused_results(annotation) if ": parameter " in name else set()
        for part in ast.walk(annotation):
            last = _last(part)
            if last is None or id(part) in inside:
                continue
            if last == "Any" or (last == "object" and id(part) not in unused and not COMPARISON.search(name)):
                self._say(place, f"{name} is {last}")
            elif last in GENERIC and id(part) not in said:
                self._say(place, f"{name} is a {last} of unknown elements: {ast.unparse(annotation)}")
            elif isinstance(part, ast.Name) and depth < 4:
                for alias in self.package.find(place.module, part.id):
                    value = getattr(alias.node, "value", None)
                    if isinstance(alias.node, (ast.Assign, ast.AnnAssign)) and _is_type(value):
                        self._annotation(
                            Place(alias.module, place.node), value, f"{name} ({part.id})", depth + 1
                        )

    def _parameters_of_docstring(
        self, place: Place, node: Function, nodes: list[Function], name: str
    ) -> None:
        """What a docstring lists under Parameters is a parameter."""
        text = ast.get_docstring(node) or ""
        match = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|^\S[^:\n]*$|\Z)", text, re.M | re.S)
        known = {a.arg for n in nodes for a in ast.walk(n) if isinstance(a, ast.arg)}
        for line in re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) :", match[1] if match else "", re.M):
            for parameter in line.replace("*", "").split(", "):
                if parameter not in known:
                    self._say(
                        place, f"{name}: the docstring has a parameter {parameter}, the signature has not"
                    )

    def _docstring(self, place: Place, node: ast.Module | ast.ClassDef, name: str) -> None:
        if not ast.get_docstring(node):
            self._say(place, f"{name} has no docstring")

    def _say(self, place: Place, what: str) -> None:
        origin = f" ({source})" if place.module.name == STUB and (source := bound_in(what)) else ""
        finding = f"{_where(place.module.file)}:{place.node.lineno}: {what}{origin}"
        if finding not in self.findings:
            self.findings.append(finding)


def _is(node: Function, decorator: str) -> bool:
    return any(_last(d) == decorator for d in node.decorator_list)


def _is_type(value: ast.expr | None) -> bool:
    """Is this the right side of an alias of types, not of a constant or a call?"""
    return isinstance(value, (ast.BinOp, ast.Subscript, ast.Name, ast.Attribute))


def _unused_results(annotation: ast.expr) -> set[int]:
    """Results of functions that are handed over: `object` says that anything will do, for nobody reads it."""
    callables = [
        n for n in ast.walk(annotation) if isinstance(n, ast.Subscript) and _last(n.value) == "Callable"
    ]
    return {
        id(n.slice.elts[1]) for n in callables if isinstance(n.slice, ast.Tuple) and len(n.slice.elts) == 2
    }


def _last(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _where(file: Path) -> str:
    return str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else file.name


def bound_in(what: str, folder: Path = ROOT / "python" / "src") -> str:
    """The source that binds what a finding names, `ckks.Client.decrypt: ...`, where a search finds it."""
    *_, owner, member = ["", "", *re.split(r"[: ]", what)[0].split(".")]
    for file in sorted(folder.glob("*.cpp")):
        text = file.read_text(encoding="utf-8")
        if f'"{owner}"' in text and f'"{member}"' in text:
            line = text.count("\n", 0, text.index(f'"{member}"')) + 1
            return f"{_where(file)}:{line}"
    return ""


def check(stub: Path, sources: Path = ROOT / "python", modules: tuple[str, ...] = PUBLIC) -> list[str]:
    """What is wrong with public signatures."""
    checker = Checker(Package(sources, stub))
    for name in modules:
        checker.module(name)
    return checker.findings


def run(what: str, description: str, findings: Callable[[Path], list[str]]) -> int:
    """A check of what is public, by its stub, as a program: its exit code."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--stub", help="the extension module's stub; default: the installed package's")
    try:
        found = findings(find_stub(parser.parse_args().stub))
    except Missing as missing:
        print(f"{parser.prog}: {missing}")
        return 2
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{what}: {len(found)} findings" if found else f"{what}: complete")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(run("signatures", __doc__, check))
