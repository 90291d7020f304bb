"""What an item became: tables, pictures, what is missing, where the numbers are from, and its status."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crenel.reproduce.charts import Chart
from crenel.reproduce.registry import Cell, Item
from crenel.reproduce.results import Found, Results

MEASURED, SIMULATED, COMPUTED = "measured", "simulated", "computed"
NOT_YET, NOT_APPLICABLE = "not measured yet", "not applicable"
ORDER = (MEASURED, SIMULATED, COMPUTED)
# Folders of the machine that measured, before what a command read or wrote there: nobody else has them.
ELSEWHERE = re.compile(r"(?<![\w./-])/(?:tmp|root|home|work|mnt)/(?:[^\s/`]+/)*(?=[^\s/`])")


@dataclass(frozen=True)
class Table:
    """A table of a page. Rows that are this library's are marked."""

    columns: Sequence[str]
    rows: Sequence[tuple[bool, Sequence[Cell]]]
    """(ours, cells)"""
    title: str = ""


@dataclass(frozen=True)
class Lack:
    """Something that no record here holds, and the command that makes one."""

    what: str
    command: str


@dataclass
class Outcome:
    """Filled by a builder (``Work``)."""

    item: Item
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    lacks: list[Lack] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What the records add to the item's remarks."""
    kinds: set[str] = field(default_factory=set)
    sources: dict[str, str] = field(default_factory=dict)
    """File, and what it says of device, parameters and command."""

    @property
    def found(self) -> bool:
        """Is there a number of ours?"""
        return bool(self.kinds)

    @property
    def status(self) -> str:
        """Derived: which kinds of numbers there are, and whether some are missing."""
        if self.item.not_applicable:
            return NOT_APPLICABLE
        if not self.found:
            return NOT_YET
        text = " and ".join(kind for kind in ORDER if kind in self.kinds)
        return f"{text}, in part" if self.lacks or self.item.leaves_out else text


class Work:
    """A builder's hands: what it takes from the results is remembered as a source."""

    def __init__(self, item: Item, results: Results) -> None:
        self.item = item
        self.results = results
        self.out = Outcome(item)
        self._beside: list[tuple[bool, Sequence[Cell]]] = []

    def take(self, found: Found, kind: str = MEASURED) -> Mapping[str, Any]:
        """The row, noted as a source."""
        self.source(found.file, describe(found), kind)
        return found.row

    def source(self, file: str, what: str, kind: str = MEASURED) -> None:
        """Notes a file that numbers are from; absolute paths of its command by their last part."""
        self.out.kinds.add(kind)
        self.out.sources[file] = ELSEWHERE.sub("", what)

    def beside(self, *cells: Cell) -> None:
        """A row of ours in the paper's columns.

        Raises
        ------
        AssertionError : not as many cells as columns
        """
        assert len(cells) == len(self.item.columns), (self.item.key, cells)
        self._beside.append((True, cells))

    def other(self, *cells: Cell) -> None:
        """A row in the paper's columns that this project measured of another library."""
        assert len(cells) == len(self.item.columns), (self.item.key, cells)
        self._beside.append((False, cells))

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """A table of ours alone; none without rows."""
        if rows:
            self.out.tables.append(Table(columns, [(True, row) for row in rows], title))

    def chart(self, chart: Chart) -> None:
        """A picture."""
        self.out.charts.append(chart)

    def remark(self, text: str) -> None:
        """Says what is alike or not by the records; the same once."""
        if text not in self.out.remarks:
            self.out.remarks.append(text)

    def lack(self, what: str, command: str) -> None:
        """Says what no record holds."""
        self.out.lacks.append(Lack(what, command))

    def done(self) -> Outcome:
        """The outcome: the paper's table first, ours in it or after it."""
        item = self.item
        if item.not_applicable:
            return self.out
        if not self.out.found and not self.out.lacks:
            for command in item.commands:
                self.lack("", command)
        theirs: list[tuple[bool, Sequence[Cell]]] = [(False, row) for row in item.rows]
        if theirs or self._beside:
            # Of a figure, the paper's values are those that its text states.
            title = "" if item.kind == "table" else "paper"
            self.out.tables.insert(0, Table(item.columns, [*theirs, *self._beside], title))
        return self.out


def describe(found: Found) -> str:
    """Device, parameters and security of a row, and the command that made it."""
    row, of = found.row, found.provenance
    parts = [found.device]
    if row.get("params"):
        parts.append(str(row["params"]))
    if row.get("graph"):
        parts.append("CUDA graph")
    if row.get("log_pq"):
        parts.append(f"N = 2^{row['log_n']}, log PQ {float(row['log_pq']):.1f}")
    if row.get("security_bits") is not None:
        parts.append(f"{float(row['security_bits']):.0f} bits of security")
    return made(", ".join(parts), of)


def made(what: str, of: Mapping[str, Any]) -> str:
    """And what a provenance says of commit, day and command: records of every kind have as much as they
    wrote."""
    parts = [what]
    if of.get("commit"):
        parts.append(f"commit {str(of['commit'])[:10]}{' with changes' if of.get('dirty') else ''}")
    parts += [str(of["date"])[:10]] if of.get("date") else []
    text = ", ".join(parts)
    return f"{text}: `{of['command']}`" if of.get("command") else text


Builder = Callable[[Work], None]
BUILDERS: dict[str, Builder] = {}


def builds(paper: str, kind: str, *numbers: int) -> Callable[[Builder], Builder]:
    """Registers a function that fills an item, or several of the same shape."""

    def add(function: Builder) -> Builder:
        for number in numbers:
            key = f"{paper}/{kind}-{number}"
            assert key not in BUILDERS, key
            BUILDERS[key] = function
        return function

    return add
