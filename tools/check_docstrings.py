"""What docstrings of public names say: errors that exist, shapes, units, sources.

    python tools/check_docstrings.py [--stub build/main/python/_crenel.pyi]

Public is as in tools/check_signatures.py. Four rules, each without exceptions:

errors
    What a docstring calls an error or a warning is one: of the library's tree, of a public module, or of
    Python. A function that raises one itself names it, or a base of it, or says whose errors it raises ("as
    `load`").
shapes
    A function that takes arrays says what shape they have, or as what function it takes them.
units
    Times and sizes (by their names) are in a unit that the docstring states, where the name does not.
sources
    Where a docstring speaks of an algorithm, a noise or a probability (SOURCED), it names the page that
    derives it, a key of the bibliography or a paper; or its class does. tools/check_citations.py looks
    whether pages and keys exist.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from check_signatures import (
    PUBLIC,
    ROOT,
    STUB,
    Function,
    Package,
    Place,
    _bound,
    _is,
    _statements,
    bound_in,
    run,
)

ERROR = re.compile(r"(?<![\w.])(?:\w+\.)*([A-Z]\w*(?:Error|Warning))\b")
ELSEWHERE = re.compile(r"\b[Aa]s (?:of )?`{0,2}[\w.]*\w|\b[Rr]aises (?:as|what)\b|\bSee `|``[^`]*``")
RAISES_AS = re.compile(r"\b[Rr]aises [^.]*\b(?:as|what)\b|\b[Aa]s (?:of )?`{0,2}\w*\.?\w+`{0,2}\b")
ARRAY = re.compile(r"\b(?:ArrayLike|NDArray|ndarray|Reals)\b")
SHAPE = re.compile(
    r"\bshaped?\b|\bshapes\b|\bax[ei]s\b|\bvectors?\b|\bmatri(?:x|ces)\b|\bscalars?\b|\brows?\b|\bcolumns?\b"
    r"|\bslots?\b|\bnumbers?\b|\(\w+(?:, [\w* `.]+)+,?\)|\bany size\b"
)
TIME = re.compile(r"(?:^|_)(?:timeout|time|wait|every|ttl|duration|deadline|age|pause|latency)$")
SIZE = re.compile(r"(?:^|_)(?:memory|budget)$")
TIME_UNIT = re.compile(r"\bm?(?:illi|icro)?seconds?\b|\bms\b|\bus\b|\bUTC\b|\bhours?\b|\bdays?\b", re.I)
SIZE_UNIT = re.compile(r"\b[Bb]ytes?\b|\b[MG]iB\b")
SOURCED = re.compile(
    r"Chebyshev|Nesterov|Newton|Goldschmidt|Remez|minimax|[Hh]oist|baby steps?\b|blind rotation|key switch"
    r"|CoeffToSlot|SlotToCoeff|EvalMod|ModUp|ModDown|[Ee]ncapsulat|[Pp]robability|p_fail|noise variance"
    r"|standard deviation|lattice"
)
SOURCE = re.compile(
    r"docs/(?:theory|design|notation|guide|reference)[\w/-]*\.md|docs/design/\d{4}"
    r"|\b[A-Z]{2,}[A-Za-z]*\d\d[a-z]?\b|\b(?:RFC|FIPS) \d+|\bet al\., \w+ \d{4}"
)


@dataclass(frozen=True)
class Documented:
    """A public name with its docstring, of all overloads together, and its class's."""

    name: str
    place: Place
    nodes: list[ast.stmt]
    text: str
    around: str = ""

    @property
    def functions(self) -> list[Function]:
        return [n for n in self.nodes if isinstance(n, Function)]

    @property
    def all_of_it(self) -> str:
        """With the class's, which describes what __init__ takes."""
        return f"{self.text}\n{self.around}" if self.name.endswith(("__init__", "__call__")) else self.text


def documented(package: Package) -> Iterator[Documented]:
    """Every public class, function and method, once."""
    seen: set[int] = set()
    for module in (package.modules[name] for name in PUBLIC):
        for export in package.exports(module.name):
            if not export.startswith("__"):
                places = package.find(module, export)
                yield from _functions(f"{module.name}.{export}", places, "", seen)
                for place in places:
                    yield from _class(package, f"{module.name}.{export}", place, seen)


def _functions(name: str, places: list[Place], around: str, seen: set[int]) -> Iterator[Documented]:
    found = [p for p in places if isinstance(p.node, Function) and id(p.node) not in seen]
    if found:
        seen |= {id(p.node) for p in found}
        texts = dict.fromkeys(ast.get_docstring(p.node) or "" for p in found)  # type: ignore[arg-type]
        yield Documented(name, found[0], [p.node for p in found], "\n".join(texts), around)


def _class(package: Package, name: str, place: Place, seen: set[int]) -> Iterator[Documented]:
    node = place.node
    if not isinstance(node, ast.ClassDef) or id(node) in seen:
        return
    seen.add(id(node))
    text = ast.get_docstring(node) or ""
    yield Documented(name, place, [node], text)
    members: dict[str, list[Place]] = {}
    for member in _statements(node.body):
        for bound in _bound(member):
            members.setdefault(bound, []).append(Place(place.module, member))
    for member_name, places in members.items():
        if not member_name.startswith("_") or member_name in ("__init__", "__call__"):
            yield from _functions(f"{name}.{member_name}", places, text, seen)
    for base in node.bases:
        if isinstance(base, ast.Name):
            for parent in package.find(place.module, base.id):
                yield from _class(package, name, parent, seen)


def error_tree(package: Package) -> dict[str, set[str]]:
    """Classes of errors and warnings of the package's modules, with the names of all their bases."""
    direct: dict[str, set[str]] = {}
    for module in package.modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and node.name.endswith(("Error", "Warning")):
                direct[node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}

    def bases(name: str) -> set[str]:
        return {name}.union(*(bases(base) for base in direct.get(name, ())))

    return {name: bases(name) for name in direct}


def errors(found: Documented, tree: dict[str, set[str]]) -> Iterator[str]:
    """Named ones exist; raised ones are named."""
    named = set(ERROR.findall(found.all_of_it))
    for name in sorted(named):
        if name not in tree and not hasattr(builtins, name):
            yield f"there is no {name}"
    if RAISES_AS.search(found.all_of_it):
        return
    for node in found.functions:
        for raised in ast.walk(node):
            call = raised.exc if isinstance(raised, ast.Raise) else None
            name = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
            if name in tree and not tree[name] & named:
                yield f"raises {name}, which its docstring does not say"


def shapes(found: Documented) -> Iterator[str]:
    """Arrays that it takes have a stated shape."""
    for node in found.functions:
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            kind = ast.unparse(argument.annotation) if argument.annotation else ""
            if ARRAY.search(kind) and not SHAPE.search(found.all_of_it) and not ELSEWHERE.search(found.text):
                yield f"of what shape is {argument.arg}?"


def units(found: Documented) -> Iterator[str]:
    """Times and sizes have a stated unit."""
    said: list[tuple[str, str]] = []
    for node in found.nodes:
        if isinstance(node, Function):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            said += [(a.arg, found.all_of_it) for a in arguments]
            said += [(node.name, found.text)] if _is(node, "property") else []
        elif isinstance(node, ast.ClassDef):
            for member, behind in zip(node.body, [*node.body[1:], None], strict=True):
                if isinstance(member, ast.AnnAssign):
                    own = ast.unparse(behind) if isinstance(behind, ast.Expr) else ""
                    said.append((ast.unparse(member.target), f"{found.text} {own} {ast.unparse(member)}"))
    for name, text in said:
        for kind, unit, of in ((TIME, TIME_UNIT, "time"), (SIZE, SIZE_UNIT, "size")):
            if kind.search(name) and not unit.search(text):
                yield f"in what unit is the {of} {name}?"


def sources(found: Documented) -> Iterator[str]:
    """What rests on theory says where that is."""
    word = SOURCED.search(found.text)
    if word and not SOURCE.search(found.text + found.around):
        yield f'speaks of "{word[0]}": of what page, or what key of the bibliography?'


def check(package: Package) -> list[str]:
    """What is wrong, with file and line."""
    tree = error_tree(package)
    findings = []
    for found in documented(package):
        file, line = found.place.module.file, found.place.node.lineno
        where = f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name}:{line}"
        origin = f" ({bound_in(found.name)})" if found.place.module.name == STUB else ""
        for finding in (*errors(found, tree), *shapes(found), *units(found), *sources(found)):
            findings.append(f"{where}: {found.name}: {finding}{origin}")
    return list(dict.fromkeys(findings))


if __name__ == "__main__":
    sys.exit(run("docstrings", __doc__, lambda stub: check(Package(ROOT / "python", stub))))
