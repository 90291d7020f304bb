"""No circles: neither of Python imports nor of C++ includes. Exit code 1 names every file of each circle.

An import counts wherever it stands: at the top, in a function, for type checkers only; so do the modules that
the extension module (python/src) imports back.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Folder that imports start from -> the packages or folders below it.
PYTHON_ROOTS = {
    "python": ("crenel",),
    "python/tests": (".",),
    "tools": (".",),
    "bench": (".",),
    "tests": (".",),
    ".": ("fhecore",),
}
EXTENSION, EXTENSION_SOURCES = "crenel._crenel", "python/src"
IMPORTED_BACK = re.compile(r'import_\("(crenel[.\w]*)"\)')
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
CXX = (".h", ".cuh", ".cpp", ".cu")
CXX_FOLDERS = ("src", "include", "fhecore", "bench", "tests", "python/src", "examples")
# Where an include may be found, besides the folder of the file.
INCLUDE_ROOTS = ("src", "include", ".", "tests", "bench")
Graph = dict[str, set[str]]


def circles(graph: Graph) -> list[list[str]]:
    """Strongly connected sets of more than one node (Tarjan), and nodes that point to themselves."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            members = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(members) > 1 or node in graph[node]:
                found.append(sorted(members))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found


def _module(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.AST, package: list[str], known: set[str]) -> set[str]:
    """Modules of `known` that the syntax tree imports. `package`: of the file, for relative imports."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names += [".".join([*base, alias.name]) for alias in node.names]
    found = set()
    for name in names:  # "from a.b import c": the module a.b.c, or the name c of a.b
        while name and name not in known:
            name = name.rpartition(".")[0]
        found.add(name)
    return found - {""}


def python_graph(root: Path, folders: tuple[str, ...]) -> Graph:
    """Module -> modules that it imports, among those below `root`."""
    files = {_module(f, root): f for folder in folders for f in sorted((root / folder).rglob("*.py"))}
    extension = sorted((ROOT / EXTENSION_SOURCES).glob("*.*")) if "crenel" in files else []
    known = {*files, EXTENSION} if extension else set(files)
    graph: Graph = {}
    for name, file in files.items():
        package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
        graph[name] = _imported(tree, package, known) - {name}
    if extension:
        text = "".join(f.read_text(encoding="utf-8") for f in extension)
        graph[EXTENSION] = set(IMPORTED_BACK.findall(text)) & known
    return graph


def include_graph() -> Graph:
    """File -> files of the repository that it includes."""
    files = [f for d in CXX_FOLDERS for f in sorted((ROOT / d).rglob("*")) if f.suffix in CXX]
    graph: Graph = {}
    for file in files:
        found = set()
        for name in INCLUDE.findall(file.read_text(encoding="utf-8")):
            places = [file.parent, *(ROOT / root for root in INCLUDE_ROOTS)]
            target = next((p / name for p in places if (p / name).is_file()), None)
            if target is not None:
                found.add(target.resolve().relative_to(ROOT).as_posix())
        graph[file.relative_to(ROOT).as_posix()] = found
    for targets in list(graph.values()):
        for target in targets:
            graph.setdefault(target, set())
    return graph


def errors() -> list[str]:
    found = [f"circle of includes: {', '.join(c)}" for c in circles(include_graph())]
    for root, folders in PYTHON_ROOTS.items():
        for circle in circles(python_graph(ROOT / root, folders)):
            found.append(f"circle of imports below {root}: {', '.join(circle)}")
    return found


def main() -> int:
    found = errors()
    for line in found:
        print("   error:", line)
    print(f"   circles of imports and includes: {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
