"""Ladders of optimisations from records of ``crenel bench ablation``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from crenel.reproduce.charts import Bars
from crenel.reproduce.outcome import COMPUTED, MEASURED, Work, made
from crenel.reproduce.registry import Cell
from crenel.reproduce.results import TOY, TOY_NOTE, Results, short_device

US_PER_MS = 1e3
WITHOUT = "without"  # the rows of each optimisation off alone


@dataclass(frozen=True)
class Rungs:
    """One ladder of an ablation, or all optimisations off alone."""

    file: str
    device: str
    dry: bool
    """Nothing ran: times are bounds."""
    what: str
    """The operation."""
    title: str
    """Of the ladder."""
    rows: Sequence[Mapping[str, Any]]
    date: str
    """When it was made."""
    absent: Sequence[tuple[str, str]]
    """Steps of the paper that have no switch, and why, as it was known then."""

    @property
    def names(self) -> list[str]:
        """Of the rungs."""
        return [str(row["rung"]) for row in self.rows]

    @property
    def us(self) -> list[float]:
        """Measured, or the bounds."""
        return [float(row["paced_us"] if self.dry else row["latency_us"]) for row in self.rows]


def rungs(results: Results, operation: str, ladder: str) -> list[Rungs]:
    """The newest of each device and number of limbs whose results were right, measured ones first."""
    found: dict[tuple[bool, str, int], tuple[str, Rungs]] = {}
    for file, data in results.of_kind("crenel-ablation"):
        toy = str(data["params"]).startswith(TOY)
        if toy and not results.toy:
            continue
        where = data["provenance"]
        dry = str(where["device"]).startswith("cuda:dry")
        name = f"{short_device(where)} ({TOY_NOTE})" if toy else short_device(where)
        for each in data["operations"]:
            rows = [row for row in each["rows"] if row["ladder"] == ladder]
            if each["operation"] != operation or any(row["correct"] is False for row in rows) or not rows:
                continue
            told = each["ladders"].get(ladder, {})
            title = told.get("title", "each off alone")
            absent = [(str(step), str(why)) for step, why in told.get("absent", ())]
            key, date = (dry, name, int(each["limbs"])), str(where.get("date", ""))
            if key not in found or found[key][0] < date:
                found[key] = date, Rungs(file, name, dry, each["title"], title, rows, date, absent)
    return [found[key][1] for key in sorted(found, key=lambda k: (k[0], k[1], -k[2]))]


def take_rungs(work: Work, operation: str, ladder: str, figure: str) -> bool:
    """Tables and charts of a ladder on every device; whether there was one."""
    own = rungs(work.results, operation, ladder)
    for each in own:
        what = "bounds of its launches" if each.dry else "measured"
        of = f"{each.what}, {each.device}"
        said = made(f"boot40, {each.device}: {what}", work.results.documents[each.file]["provenance"])
        work.source(each.file, said, COMPUTED if each.dry else MEASURED)
        ms = [us / US_PER_MS for us in each.us]
        gains = [None, *(before / after for before, after in pairwise(ms))]
        moved = [None if row["bytes"] is None else row["bytes"] / 1e9 for row in each.rows]
        launches = [row["launches"] for row in each.rows]
        rows: list[tuple[Cell, ...]] = list(zip(each.names, ms, gains, launches, moved, strict=True))
        columns: tuple[str, ...] = ("", f"ms, {what}", "speed-up", "launches", "GB at L2")
        if ladder == WITHOUT:
            columns, rows = (*columns[:2], *columns[3:]), [(*row[:2], *row[3:]) for row in rows]
        work.table(f"ours: {of}: {each.title}", columns, rows)
        work.chart(Bars(f"{of}, {what} ({figure})", "ms", each.names, {"": ms}, each.names))
    if own:
        absent = max(own, key=lambda each: each.date).absent
        work.table("steps without a switch here", ("step", "why"), absent)
    return bool(own)
