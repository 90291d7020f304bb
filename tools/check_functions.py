"""No function is longer than CONTRIBUTING.md says, "Rules".

    python3 tools/check_functions.py

Lines from the name of a function, its template and attributes to its end. Of Python at most 60. Of C++ and
CUDA at most 60, too, but for three kinds: tables of bindings (`bind_...` in python/src), which are lists of
definitions and may have any length; kernels (`__global__`), whose values live in registers, at most 150;
tests, at most 100. Functions that are longer stand in LONGER, with their length: they may shrink, and lose
their line here then.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tracked import files

ROOT = Path(__file__).resolve().parents[1]
MOST, KERNEL, TEST = 60, 150, 100
CXX = (".h", ".cpp", ".cu", ".cuh")
# Place and name of each, and its lines. Each is one table, or one loop whose parts share all that it has.
LONGER = {
    "bench/boot/options.cpp parse_boot_options": 66,
    "fhecore/sim/sm_text.cpp names": 65,
    "fhecore/sim/sm_units.cpp issue": 66,
    "python/src/linear_transform.cpp bind_operand": 67,
    "src/backends/cpu/poly/sums.cpp do_hoisted_plain_sums": 80,
    "src/backends/cuda/poly/host/linear_combination.cu do_linear_combination": 61,
    "src/backends/cuda/poly/host/tables.cu upload_conversions": 64,
    "src/backends/cuda/torus/host/tables.cu TorusTables": 67,
    "src/circuits/bootstrapping/plan.cpp plan_bootstrap": 61,
    "src/serialize/tfhe_keys_io.cpp evaluation_keys_from_bytes": 62,
    "tests/support/tfhe_world.h tfhe_toy_spec": 65,
    "tests/unit/tfhe/integer/integer_circuit_test.cpp step": 86,
}
BLANK = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)\''
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
SPACE = re.compile(r"\bnamespace\b|extern\s*$|\b(?:class|struct|enum|union)\b[^()]*$")
MEMBER = re.compile(r"\)\s*(?:noexcept\s*)?:\s[^;]*\w$")
CALLED = re.compile(r"(~?\w+|operator\S+)\s*\(")
TESTS = ("TEST", "TEST_F", "TEST_P", "TYPED_TEST")


class Function(NamedTuple):
    name: str
    line: int
    lines: int
    head: str  # what stands before the body


def of_python(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(node.name, node.lineno, (node.end_lineno or 0) - node.lineno + 1, "")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _name(head: str) -> str:
    """What is called, behind a template's brackets and attributes."""
    plain = re.sub(r"__\w+__\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?|\[\[[^]]*\]\]", " ", head)
    plain = re.sub(r"^\s*template\s*<[^{}]*?>\s*(?=[\w\[])(?!>)", " ", plain)
    found = CALLED.search(plain)
    return found[1] if found else plain.strip()[:40]


def of_cxx(text: str) -> Iterator[Function]:
    """Functions with bodies, at namespaces and in classes; what is inside of them is theirs."""
    plain = BLANK.sub(_blank, text)
    scopes: list[tuple[bool, int, str]] = []  # a function?, where its head begins, the head
    within: list[bool] = []  # does a new head begin with the scope, and behind it?
    last = brackets = inside = 0
    for at, c in enumerate(plain):
        if c in "([":
            brackets += 1
        elif c in ")]":
            brackets -= 1
        elif c == ";" and brackets == 0:
            last = at + 1
        elif c == "{":
            head = plain[last:at]
            stripped = head.strip()
            begins = last + len(head) - len(head.lstrip())
            function = not inside and "(" in stripped and not SPACE.search(stripped)
            member = function and MEMBER.search(stripped) is not None  # a{b} before the body
            function = function and not member and not stripped.endswith("=")
            inside += function
            scopes.append((function, begins, "" if member else stripped))
            last = at + 1 if brackets == 0 and not member else last
            within.append(brackets == 0 and not member)
        elif c == "}":
            function, begins, head = scopes.pop()
            inside -= function
            if function:
                line = plain.count("\n", 0, begins) + 1
                yield Function(_name(head), line, plain.count("\n", begins, at) + 1, head)
            last = at + 1 if within.pop() else last


def most(path: str, function: Function) -> int | None:
    """Lines that it may have; None: any number."""
    if "__global__" in function.head:
        return KERNEL
    if path.startswith("tests/") and function.name in TESTS:
        return TEST
    table = path.startswith("python/src/") and function.name.startswith("bind_")
    if table and f"{path} {function.name}" not in LONGER:
        return None
    return MOST


def errors(root: Path = ROOT) -> list[str]:
    found, used = [], set()
    for path in files(root):
        if not path.endswith((".py", *CXX)):
            continue
        text = (root / path).read_text(encoding="utf-8")
        for each in of_python(text) if path.endswith(".py") else of_cxx(text):
            limit, known = most(path, each), f"{path} {each.name}"
            if limit is None or each.lines <= limit:
                continue
            if each.lines <= LONGER.get(known, 0):
                used.add(known)
                continue
            expected = LONGER.get(known, limit)
            says = f"{each.name} has {each.lines} lines, expected at most {expected}"
            found.append(f"{path}:{each.line}: {says}")
    unused = LONGER.keys() - used if root == ROOT else set()
    return found + [
        f"check_functions.py: LONGER names {name}, which needs no line" for name in sorted(unused)
    ]


def main() -> int:
    found = errors()
    for line in found:
        print("   error:", line)
    print(f"   lengths of functions: {len(found)} errors, {len(LONGER)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
