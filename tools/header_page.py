"""Pages of the public C++ headers: what each declares, with the comments that stand there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cpp_headers import INCLUDE, Declaration, Header, groups, headers

ROOMS = {
    "ckks": "CKKS",
    "circuits": "Bootstrapping and linear transforms (CKKS)",
    "tfhe": "TFHE",
    "bridge": "Between CKKS and TFHE",
    "device": "Devices, streams, memory",
    "core": "Errors, limits, files, secret memory",
    "fhecore": "FHECore",
}
INDEX = "cpp"
TITLES = {INDEX: "C++ headers", **{f"{INDEX}-{room}": f"C++: {title}" for room, title in ROOMS.items()}}
WIDTH = 76  # of a signature in one line
MARKUP = re.compile(r"(?<!^)[*]|[<_\[\]$\\]", re.MULTILINE)
HEAD = """`#include "crenel/crenel.h"` has all of them. Each declaration in a header says what it takes,
returns and throws; the pages below have all of it. A whole program: [C++](../../guide/cpp.md)."""
LEFT_OUT = """Copies, moves, destructors and defaulted operators are left out, and members that take or
give the state behind a class (`State`, `Data`), which are for the library itself. A comment speaks for all
declarations of the block above it."""


def first_sentence(text: str) -> str:
    found = re.split(r"(?<=[.;])(?<!e\.g\.)\s|\n", text, maxsplit=1)[0].rstrip(";")
    return found if not found or found.endswith(".") else f"{found}."


def prose(text: str) -> str:
    """A comment as Markdown: outside of code and but for items nothing of it is markup."""
    parts = re.split(r"(```.*?```|`[^`]*`)", text, flags=re.DOTALL)
    parts[::2] = [MARKUP.sub(lambda m: f"&#{ord(m[0])};", part) for part in parts[::2]]
    return "".join(parts)


def cell(text: str) -> str:
    return prose(text).replace("|", "&#124;")


def room_of(header: Header) -> str:
    return header.path.split("/")[1]


def slug(header: Header) -> str:
    return header.path.removeprefix("crenel/").removesuffix(".h").replace("/", "-").replace("_", "-")


def by_room(root: Path = INCLUDE) -> dict[str, list[Header]]:
    """Raises ValueError for a header in a folder that has no title."""
    found: dict[str, list[Header]] = {room: [] for room in ROOMS}
    rest = []
    for header in headers(root):
        if header.path == "crenel/crenel.h":
            continue
        found.get(room_of(header), rest).append(header)
    if rest:
        raise ValueError(f"header_page.py: ROOMS has no title for {', '.join(h.path for h in rest)}")
    return found


def pages(root: Path = INCLUDE) -> Iterator[tuple[str, str]]:
    """Names and Markdown: the index, then a page for each room that has headers."""
    rooms = {room: inside for room, inside in by_room(root).items() if inside}
    yield INDEX, index(rooms)
    for room, inside in rooms.items():
        yield f"{INDEX}-{room}", page(room, inside)


def index(rooms: dict[str, list[Header]]) -> str:
    """What each header has, with its place on the page of its room."""
    parts = [f"# {TITLES[INDEX]}", HEAD]
    for room, inside in rooms.items():
        address = f"{INDEX}-{room}.md"
        parts.append(f"## [{ROOMS[room]}]({address})")
        for header in inside:
            parts += [f"### [{header.path}]({address}#{slug(header)})", prose(header.about)]
            rows = [
                f"| `{d.name}` | {cell(first_sentence(d.comment))} |" for d in header.declarations if d.above
            ]
            if rows:
                parts.append("\n".join(["| Name | |", "|---|---|", *dict.fromkeys(rows)]))
    return "\n\n".join(parts) + "\n"


def page(room: str, inside: list[Header]) -> str:
    """All that the headers of a room declare."""
    parts = [f"# {TITLES[f'{INDEX}-{room}']}", LEFT_OUT]
    for header in inside:
        parts += [f"## {header.path} {{: #{slug(header)} }}", prose(header.about)]
        spaces = [f"`{name}`" for name in dict.fromkeys(header.namespaces)]
        parts += [f"Namespace {', '.join(spaces)}."] if spaces else []
        parts += listed(header.declarations, "")
    return "\n\n".join(parts) + "\n"


def listed(declarations: list[Declaration], owner: str) -> Iterator[str]:
    """Types with their members, other declarations by groups."""
    section = ""
    shown = [d for d in declarations if not d.housekeeping(owner.rpartition("::")[2])]
    for group in groups(shown):
        if group[0].section != section:
            section = group[0].section
            yield from [f"*{prose(section)}*"] if section else []
        while group:
            types = group[0].kind in ("type", "enum")
            count = (
                1
                if types
                else next((i for i, d in enumerate(group) if d.kind in ("type", "enum")), len(group))
            )
            yield from whole(group[0], owner) if types else together(group[:count], owner)
            group = group[count:]


def whole(each: Declaration, owner: str) -> Iterator[str]:
    """A class, a structure or an enumeration."""
    name = f"{owner}::{each.name}" if owner else each.name
    yield f"### {name}"
    if each.kind == "enum":
        lines = [f"  {member.signature},{behind(member)}" for member in each.members]
        yield code([f"{each.signature} {{", *lines, "};"])
    else:
        yield code([f"{each.signature};"])
    yield from [prose(each.comment)] if each.comment else []
    yield from listed(each.members if each.kind == "type" else [], name)


def together(group: list[Declaration], owner: str) -> Iterator[str]:
    """Declarations of one comment: in one block, functions of a class below a heading of their names."""
    functions = list(dict.fromkeys(d.name for d in group if d.kind == "function"))
    if functions:
        before = f"{owner}::" if owner else ""
        yield f"#### {prose(before + ', '.join(functions))}"
    yield code([line for each in group for line in signature(each)])
    yield from [prose(group[0].above)] if group[0].above else []


def behind(each: Declaration) -> str:
    return f"  // {each.behind}" if each.behind else ""


def signature(each: Declaration) -> list[str]:
    """Lines of it: arguments one a line where one line has no room for all."""
    text, comment = f"{each.signature};", each.behind
    lines = [text]
    if len(text) > WIDTH and each.kind == "function" and "(" in text:
        lines = wrapped(text)
    if comment and len(lines[-1]) + len(comment) + 4 <= WIDTH:
        return [*lines[:-1], f"{lines[-1]}  // {comment}"]
    return [*([f"// {comment}"] if comment else []), *lines]


def wrapped(text: str) -> list[str]:
    """At the commas between arguments."""
    left = text.index("operator()(") + len("operator()") if "operator()(" in text else text.index("(")
    right, depth = left, 0
    for right in range(left, len(text)):
        depth += (text[right] in "([{<") - (
            text[right] in ")]}" or text[right] == ">" and text[right - 1] != "-"
        )
        if depth == 0:
            break
    arguments, depth, start = [], 0, left + 1
    for at in range(left + 1, right):
        depth += (text[at] in "([{<") - (text[at] in ")]}>")
        if text[at] == "," and depth == 0:
            arguments.append(text[start:at].strip() + ",")
            start = at + 1
    arguments.append(text[start:right].strip())
    return [text[: left + 1], *(f"    {argument}" for argument in arguments), text[right:]]


def code(lines: list[str]) -> str:
    return "```cpp\n" + "\n".join(lines) + "\n```"
