"""Cells and tables as text."""

from __future__ import annotations

from collections.abc import Sequence

from crenel.reproduce.outcome import Table
from crenel.reproduce.registry import Cell

NOTHING = "-"


def cell(value: Cell, ours: bool = False) -> str:
    """A cell: the paper's value as it is, ours with three significant digits; whole numbers as they are."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return value
    if isinstance(value, int) or not ours:
        return f"{value:,.15g}" if abs(value) >= 10_000 else f"{value:.15g}"
    if abs(value) >= 100:
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.0f}"
    # 0.9995 has three digits as 1.00, whatever the last bit of a sum is: Pythons add floats differently.
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.9995 else f"{value:.3g}"


def rows(table: Table) -> list[list[str]]:
    """Every cell as text; rows of ours among others stand out by their names alone."""
    return [[cell(value, ours) for value in cells] for ours, cells in table.rows]


def markdown(table: Table) -> str:
    """A pipe table; rows of ours are bold where others stand beside them."""
    mixed = len({ours for ours, _ in table.rows}) > 1
    body = []
    for (ours, _), cells in zip(table.rows, rows(table), strict=True):
        texts = [text.replace("|", "\\|") for text in cells]
        body.append([f"**{t}**" if mixed and ours and t != NOTHING else t for t in texts])
    head = [str(c) for c in table.columns]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *body))


def numeric(texts: Sequence[str]) -> bool:
    """Is a column of numbers alone?"""
    return all(t == NOTHING or t.replace(",", "").replace(".", "", 1).lstrip("-").isdigit() for t in texts)
