"""One page of what the public C++ headers hold, from their comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {
    "ckks": "CKKS",
    "circuits": "Bootstrapping and linear transforms (CKKS)",
    "tfhe": "TFHE",
    "bridge": "Between CKKS and TFHE",
    "device": "Devices, streams, memory",
    "core": "Errors, limits, files, secret memory",
    "fhecore": "FHECore",
}
TYPE = re.compile(r"(?:template <[^>]*>\s*)?(?:class|struct|enum class) (\w+)(?!.*;$)")
FUNCTION = re.compile(r"(?:\[\[nodiscard\]\] |inline |template <[^>]*>\s*)*[\w:<>,&* ]+?[ &*](\w+)\(")


@dataclass
class Header:
    path: str
    about: str
    names: list[tuple[str, str, str]]  # kind, name, first sentence of its comment


def read(file: Path, root: Path = ROOT / "include") -> Header:
    """What stands at the top, and the declarations of the namespace that have a comment of their own."""
    lines = file.read_text(encoding="utf-8").splitlines()
    top = []
    while len(top) < len(lines) and lines[len(top)].startswith("//"):
        top.append(lines[len(top)].removeprefix("//").strip())
    names: list[tuple[str, str, str]] = []
    comment: list[str] = []
    for line in lines[len(top) :]:
        if line.startswith("///"):
            comment.append(line.removeprefix("///").strip())
            continue
        if comment and line and not line[0].isspace():
            if match := TYPE.match(line):
                names.append(("type", match[1], _first(comment)))
            elif (match := FUNCTION.match(line)) and not line.startswith("using"):
                names.append(("function", match[1], _first(comment)))
        if not line.startswith("template"):
            comment = []
    return Header(str(file.relative_to(root)), " ".join(top), names)


def _first(comment: list[str]) -> str:
    text = re.split(r"(?<=[.;])(?<!e\.g\.)\s", " ".join(comment), maxsplit=1)[0].rstrip(";")
    return text if text.endswith(".") else f"{text}."


def _cell(text: str) -> str:
    return text.replace("|", "&#124;").replace("<", "&lt;").replace("*", "\\*")


def header_page(root: Path = ROOT / "include") -> str:
    """The page, in Markdown."""
    parts = [
        "# C++ headers",
        '`#include "crenel/crenel.h"` has all of them. Each declaration in a header says what it takes,\n'
        "returns and throws; this page says where to look. A whole program: [C++](../../guide/cpp.md).",
    ]
    headers = [read(file, root) for file in sorted((root / "crenel").rglob("*.h"))]
    for room, title in ROOMS.items():
        inside = [h for h in headers if h.path.startswith(f"crenel/{room}/")]
        if not inside:
            continue
        parts.append(f"## {title}")
        for header in inside:
            parts += [f"### {header.path}", _cell(header.about)]
            rows = [f"| `{name}` | {_cell(text)} |" for _, name, text in header.names]
            if rows:
                parts.append("\n".join(["| Name | |", "|---|---|", *dict.fromkeys(rows)]))
    rest = [h.path for h in headers if h.path.split("/")[1] not in ROOMS and h.path != "crenel/crenel.h"]
    if rest:
        raise ValueError(f"header_page.py: ROOMS has no title for {', '.join(rest)}")
    return "\n\n".join(parts) + "\n"
