"""Every public function and type of include/crenel has a comment, or belongs to a group that has one.

    python3 tools/check_headers.py

The reference of C++ (tools/header_page.py) is made of these comments. A comment speaks for the declaration
below it and for those that follow at once, without an empty line or a comment between; so does the title of
a section that says something (`// -- linear: level l -> l, scale s -> s ---`), and the comment of an overload
for all of its name. Copies, moves, destructors, defaulted operators and what hands out the state behind a
class need none.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cpp_headers import INCLUDE, HeaderError, headers, silent


def errors(root: Path = INCLUDE) -> list[str]:
    """One line for each that lacks a comment, with the place."""
    found = []
    try:
        for header in headers(root):
            if not header.about:
                found.append(f"include/{header.path}:1: no comment at the top says what it holds")
            for owner, each in silent(header.declarations):
                name = f"{owner}::{each.name}" if owner else each.name
                found.append(f"include/{header.path}:{each.line}: {name} has no comment: {each.signature}")
    except HeaderError as error:
        return [f"include/{error}"]
    return found


def main() -> int:
    found = errors()
    for line in found:
        print("   error:", line)
    print(f"   comments of public headers: {len(found)} errors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
