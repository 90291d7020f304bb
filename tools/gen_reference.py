"""Tables of docs/reference/errors.md and parameters.md, made of the code.

    python tools/gen_reference.py            # writes them between their markers
    python tools/gen_reference.py --check    # says what is stale; exit code 1

Errors and their fields are read from the sources; parameter sets need the installed package.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from docstrings import to_markdown

if TYPE_CHECKING:
    from crenel import ckks, tfhe

ROOT = Path(__file__).resolve().parents[1]
ERRORS = ROOT / "docs/reference/errors.md"
PARAMETERS = ROOT / "docs/reference/parameters.md"
SOURCES = ("include", "src", "python/src", "python/crenel")
THROWN = re.compile(r"\b(\w+Error)\(")
COLLECTED = re.compile(r"\bfields(?:\.push_back\(|(?=\{))")
FIELD = re.compile(r'\{\s*"(\w+)"\s*,')


# ---- errors ------------------------------------------------------------------------------------------------


def error_classes(file: Path = ROOT / "python/crenel/errors.py") -> dict[str, tuple[list[str], str]]:
    """Bases and docstring of every class of the tree."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name: ([ast.unparse(b) for b in node.bases], ast.get_docstring(node) or "")
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Error", "Warning", "Cancelled"))
    }


def _call(text: str, start: int) -> str:
    """From the parenthesis at `start` to the one that closes it; strings may hold any."""
    depth, at, quoted = 0, start, False
    while at < len(text):
        c = text[at]
        if c == "\\" and quoted:
            at += 1
        elif c == '"':
            quoted = not quoted
        elif not quoted and c in "([{":
            depth += 1
        elif not quoted and c in ")]}":
            depth -= 1
            if depth == 0:
                return text[start:at]
        at += 1
    return text[start:]


def _room(file: Path, root: Path) -> str:
    """What a reader knows the source by: its layer, or the Python module."""
    parts = file.relative_to(root).parts
    if parts[0] == "python":
        return "Python" if parts[1] == "src" or len(parts) == 3 else f"crenel.{parts[2]}"
    return parts[1] if parts[0] == "src" else parts[2]


def fields(kinds: set[str], root: Path = ROOT) -> dict[str, dict[str, set[str]]]:
    """Names of fields by error, and the rooms that raise it with them."""
    found: dict[str, dict[str, set[str]]] = {kind: {} for kind in kinds}
    for folder in SOURCES:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".h", ".cpp", ".cu", ".cuh"):
                named = _cxx_fields(file.read_text(encoding="utf-8"), kinds)
            elif file.suffix == ".py":
                named = _python_fields(file.read_text(encoding="utf-8"), kinds)
            else:
                continue
            for kind, name in named:
                found[kind].setdefault(name, set()).add(_room(file, root))
    return found


def _cxx_fields(text: str, kinds: set[str]) -> Iterator[tuple[str, str]]:
    for match in THROWN.finditer(text):
        if match[1] in kinds:
            for name in FIELD.findall(_call(text, match.end() - 1)):
                yield match[1], name
    # Fields that are collected first belong to the next error that is made of such.
    for match in COLLECTED.finditer(text):
        start = match.end() - (text[match.end() - 1] == "(")
        for thrown in THROWN.finditer(text, match.end()):
            if thrown[1] in kinds and "fields" in _call(text, thrown.end() - 1):
                for name in FIELD.findall(_call(text, start)):
                    yield thrown[1], name
                break


def _python_fields(text: str, kinds: set[str]) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
            for argument in node.args[1:]:
                if isinstance(argument, ast.Dict):
                    for key in argument.keys:
                        if isinstance(key, ast.Constant):
                            yield node.func.id, str(key.value)


def _in_cxx(name: str, classes: dict[str, tuple[list[str], str]]) -> str:
    """The class of C++ that Python sees as this one: files' errors are told apart in Python alone, where
    workloads are, too.
    """
    if name == "DivergenceError":
        return "StateError"
    if name == "FileError" or "FileError" in classes[name][0]:
        name = "SerializationError"
    return name.replace("CrenelError", "Error")


def errors_text() -> str:
    """A section a class: what it means, what it derives from, its fields and who raises it with them."""
    classes = error_classes()
    known = fields(set(classes))
    links = {name: f"#{name.lower()}" for name in classes}
    parts = []
    for name, (bases, doc) in classes.items():
        shown = ", ".join(f"[`{b}`]({links[b]})" if b in links else f"`{b}`" for b in bases)
        ours = name.endswith("Warning") or name == "ServiceError" or "ServiceError" in bases  # Python's alone
        cxx = "" if ours else f" In C++: `crenel::{_in_cxx(name, classes)}`."
        parts += [f"### {name}", to_markdown(doc, links, ""), f"Derives from {shown}.{cxx}"]
        rooms = sorted({room for raised in known[name].values() for room in raised})
        rows = []
        for room in rooms:
            names = [f"`{field}`" for field, raised in sorted(known[name].items()) if room in raised]
            rows.append(f"| {room} | {', '.join(names)} |")
        if rows:
            parts.append("\n".join(["| Raised by | Fields |", "|---|---|", *rows]))
    return "\n\n".join(parts)


# ---- parameters --------------------------------------------------------------------------------------------


def ckks_key_bytes(params: ckks.Params) -> int:
    """Bytes of one evaluation key on the device."""
    return params.key_bytes()


def tfhe_key_bytes(params: tfhe.Params) -> int:
    """Bytes of evaluation keys when sent, but for 64 of seeds: bodies of bootstrapping and switch key."""
    d = params.numbers
    group = int(d["group"])
    keys = 2**group - int(d["differences"]) if group else 2 if d["secret"] == "ternary" else 1
    columns = int(d["glwe_dim"]) + params.slots
    rows = int(d["lwe_dim"]) // (group or 1) * keys * int(d["digits"]) * columns
    bits = max(params.primes).bit_length()  # of a residue
    bootstrap = rows * params.slots * int(d["poly_size"]) * len(params.primes) * bits // 8
    word = 4 if int(d["log_switch_modulus"]) <= 32 else 8
    digits = int(d["switch_digits"]) * (1 if group else 2 ** int(d["switch_base_log"]) - 1)
    switch = int(d["glwe_dim"]) * int(d["poly_size"]) * digits * params.slots * word
    return bootstrap + switch


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"


def max_value_bits(params: ckks.Params, level: int) -> float:
    """log2 of the largest slot that surely decrypts."""
    return math.log2(params.max_value(level))


def _largest(params: ckks.Params, level: int) -> str:
    return f"2^{max_value_bits(params, level):.1f}"


def parameters_text() -> str:
    """Every set of params/: CKKS, then TFHE."""
    from crenel import ckks, tfhe

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = [ckks.preset(name, allow_insecure=True) for name in ckks.preset_names()]
        theirs = [tfhe.preset(name, allow_insecure=True) for name in tfhe.preset_names()]
    rows = [
        f"| `{p.name}` | 2^{p.log_n} | 2^{p.log_scale} | {_levels(p)} | {p.log_pq:.0f} |"
        f" {_security(p.security_bits)} | {_size(ckks_key_bytes(p))} |"
        f" {_largest(p, 0)} to {_largest(p, p.normal_top_level)} |"
        for p in ours
    ]
    head = "| Set | N | scale | levels | log PQ | security | a key | largest slot |"
    other = [
        f"| `{p.name}` | {p.description} | {_security(p.security_bits)} | 2^{p.p_fail_log2:.0f} |"
        f" {_size(tfhe_key_bytes(p))} |"
        for p in theirs
    ]
    return "\n".join(
        [
            "### CKKS",
            "",
            head,
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            "### TFHE",
            "",
            "| Set | For | security | p_fail | keys when sent |",
            "|---|---|---|---|---|",
            *other,
        ]
    )


def _levels(params: ckks.Params) -> str:
    more = params.max_level - params.normal_top_level
    return f"{params.normal_top_level} + {more}" if more else str(params.normal_top_level)


def _security(bits: float) -> str:
    return f"{bits:.0f}" if bits >= 80 else "none"


# ---- pages -------------------------------------------------------------------------------------------------


def rendered(page: Path, text: str) -> str:
    """The page with this text between its markers."""
    begin, end = "<!-- computed by tools/gen_reference.py -->", "<!-- end of what is computed -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page}: the markers {begin} and {end} are missing")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def stale() -> list[tuple[Path, str]]:
    """Pages that are not what the code says, and what they would be."""
    wanted = [
        (ERRORS, rendered(ERRORS, errors_text())),
        (PARAMETERS, rendered(PARAMETERS, parameters_text())),
    ]
    return [(page, text) for page, text in wanted if page.read_text(encoding="utf-8") != text]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    found = stale()
    for page, text in found:
        if not options.check:
            page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {'stale' if options.check else 'written'}")
    return 1 if options.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
