"""What four papers print: their numbered tables and figures, with their numbers as data.

A file of ``papers/`` is a paper. Its copy that was read has no page breaks, so a place is a section.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from crenel.errors import ParameterError

Cell = str | int | float | None
"""Text, or a number; None: the paper or the measurement has none."""


def number(value: Cell) -> float:
    """A cell that holds a number.

    Raises
    ------
    TypeError : it holds text, or nothing
    """
    if not isinstance(value, (int, float)):
        raise TypeError(f"expected a number, found {value!r}")
    return float(value)


NAMES = ("theodosian", "cheddar", "bolt-fhe", "fhecore")
KINDS = ("table", "figure")
ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


@dataclass(frozen=True)
class Item:
    """One numbered table or figure of a paper."""

    paper: str
    kind: str
    """table or figure"""
    number: int
    label: str
    """As the paper counts: Table II, Fig. 3."""
    title: str
    place: str
    """The section that it stands in or is discussed in."""
    shows: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    """The paper's numbers: of a table its own, of a figure those that the text states."""
    remarks: tuple[str, ...]
    """What is alike and what is not between their numbers and ours."""
    commands: tuple[str, ...]
    """Names of ``commands.COMMANDS`` that measure our side."""
    leaves_out: str
    """What of it is not applicable to this library, and why; empty: nothing."""
    not_applicable: str
    """Why there is nothing to reproduce; empty: there is."""

    @property
    def key(self) -> str:
        """As theodosian/table-2."""
        return f"{self.paper}/{self.kind}-{self.number}"

    @property
    def file(self) -> str:
        """The key as the stem of a file's name."""
        return self.key.replace("/", "-")


@dataclass(frozen=True)
class Paper:
    """A paper and its items, in their order."""

    name: str
    title: str
    cite: str
    """Key of docs/bibliography.bib."""
    items: tuple[Item, ...] = field(repr=False)


def _read(name: str) -> Mapping[str, Any]:
    file = resources.files("crenel.reproduce") / "papers" / f"{name.replace('-', '_')}.json"
    data: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def _item(data: Mapping[str, Any], entry: Mapping[str, Any]) -> Item:
    number, roman = entry["number"], data["numerals"] == "roman"
    label = f"Table {ROMAN[number] if roman else number}" if entry["kind"] == "table" else f"Fig. {number}"
    columns = tuple(entry.get("columns", ()))
    rows = tuple(tuple(row) for row in entry.get("rows", ()))
    wrong = [row for row in rows if len(row) != len(columns)]
    if wrong or entry["kind"] not in KINDS:
        raise ParameterError(f"{data['name']}, {label}: {wrong or entry['kind']}, expected {columns}")
    return Item(
        data["name"], entry["kind"], number, label, entry["title"], entry["place"], entry["shows"], columns,
        rows, tuple(entry.get("remarks", ())), tuple(entry.get("commands", ())),
        entry.get("leaves_out", ""),
        entry.get("not_applicable", ""),
    )  # fmt: skip


@cache
def paper(name: str) -> Paper:
    """A paper by its name.

    Raises
    ------
    ParameterError : no such paper
    """
    if name not in NAMES:
        raise ParameterError(f"paper '{name}', expected one of {', '.join(NAMES)}", {"paper": name})
    data = _read(name)
    return Paper(name, data["title"], data["cite"], tuple(_item(data, entry) for entry in data["items"]))


def papers() -> Iterator[Paper]:
    """All papers, in the order of this project's pages."""
    return (paper(name) for name in NAMES)


def items() -> Iterator[Item]:
    """All items of all papers."""
    return (item for each in papers() for item in each.items)


def find(name: str, kind: str, number: int) -> Item:
    """One item.

    Raises
    ------
    ParameterError : no such paper, or it has no such table or figure here
    """
    own = [item for item in paper(name).items if item.kind == kind]
    found = [item for item in own if item.number == number]
    if not found:
        known = ", ".join(str(item.number) for item in own)
        raise ParameterError(
            f"{name} has no {kind} {number} here, expected one of {known}", {kind: str(number)}
        )
    return found[0]


def peers() -> Mapping[str, Any]:
    """Other libraries on an H200, measured by this project: what bench/results holds no record of."""
    return _read("peers")
