"""Figures that the project wants to reach on one GPU, as data (goals.json), beside the newest record of each.

A goal names a suite, what a row must say (`where`, `at_least`), which number of it counts (`value`, of the
file itself where it has a dot), and the figures: `must`, `aim`, what another library publishes (`peer`).
Higher is better where it says `higher`. Records of the goal's GPU come first; a record of another card is
shown with its name and never counts as met. `anywhere`: what no device decides, such as sizes of files.
`not_yet` says why no record fits a goal; `problems` finds what else fits none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from report.text import number, table

SCALES = {"us": 1.0, "ms": 1e-3, "MiB": 1 / (1 << 20), "GiB": 1 / (1 << 30), "a second": 1.0}
SECONDS = {"us": 1e6, "ms": 1e3}
# Of values by how their names end: units, and whether more is better.
UNITS = {
    "_us": (("us", "ms"), False),
    "seconds": (("us", "ms"), False),
    "bytes": (("MiB", "GiB"), False),
    "per_second": (("a second",), True),
    "_per_s": (("a second",), True),
}
NEEDED = {"title", "suite", "where", "value", "unit", "must"}
OPTIONAL = {"at_least", "higher", "aim", "peer", "anywhere", "not_yet"}
HEADER = ["figure", "measured", "must", "aim", "others publish", "source"]


class Found(NamedTuple):
    value: float
    here: bool  # on the goal's GPU
    date: str
    name: str
    device: str
    changed: bool


def _told(row: dict) -> dict:
    """The row, with what its suite says in words only."""
    if "what" in row and row["what"].split()[0].isdigit():
        row = {"count": int(row["what"].split()[0])} | row
    # of a program: what a running service takes, or where a record has the first call alone, that one
    seconds = row.get("warm_seconds") or row.get("seconds")
    if "workload" in row and seconds:
        row = {"call_seconds": seconds} | row
    count = row.get("count")
    if count and seconds:
        row = {"per_second": count / seconds} | row
    if row.get("amortised_us"):
        row = {"per_second": 1e6 / row["amortised_us"]} | row
    return row


def _fits(goal: dict, row: dict) -> bool:
    return (
        row.get("correct", True)
        and all(row.get(key) == value for key, value in goal["where"].items())
        and all(row.get(key, 0) >= value for key, value in goal.get("at_least", {}).items())
    )


def _value(goal: dict, data: dict, row: dict) -> float | None:
    found: Any = data if "." in goal["value"] else row
    for key in goal["value"].split("."):
        found = (found or {}).get(key)
    if found is None:
        return None
    return found * (SECONDS if goal["value"].endswith("seconds") else SCALES)[goal["unit"]]


def _better(goal: dict, a: float, b: float) -> bool:
    return a >= b if goal.get("higher") else a <= b


def newest(goal: dict, files: dict[str, dict], device: str) -> Found | None:
    """Of the goal's GPU if there is any; of one file the better row (queued, or replayed as a graph)."""
    found: list[Found] = []
    for name, data in files.items():
        if data["kind"] != "crenel-bench" or data.get("suite") != goal["suite"]:
            continue
        p = data["provenance"]
        if not (p["device_description"].startswith("NVIDIA") or goal.get("anywhere")):
            continue
        values = [_value(goal, data, row) for row in map(_told, data["results"]) if _fits(goal, row)]
        values = [value for value in values if value is not None]
        if values:
            best = max(values) if goal.get("higher") else min(values)
            card = p["device_description"].split(",")[0]
            here = card == device or goal.get("anywhere", False)
            found.append(Found(best, here, p.get("date", ""), name, card, bool(p.get("dirty"))))
    return max(found, key=lambda f: (f.here, f.date), default=None)


def problems(data: dict, files: dict[str, dict]) -> list[str]:
    """What is wrong with goals, as data beside all records."""
    found = []
    for goal in (goal for section in data["sections"] for goal in section["goals"]):
        name = f"{goal.get('suite')}: {goal.get('title')}"
        found += [f"{name}: {text}" for text in _problems(goal, files, data["device"])]
    return found


def _problems(goal: dict, files: dict[str, dict], device: str) -> Iterator[str]:
    if wrong := sorted((NEEDED - goal.keys()) | (goal.keys() - NEEDED - OPTIONAL)):
        yield f"fields {', '.join(wrong)} are missing or unknown"
        return
    end = max((end for end in UNITS if goal["value"].endswith(end)), key=len, default=None)
    units, higher = UNITS[end] if end else ((), False)
    if goal["unit"] not in units or goal.get("higher", False) != higher:
        yield f"{goal['value']} in {goal['unit']!r}, expected {units}, higher: {higher}"
        return
    if not _better(goal, goal.get("aim", goal["must"]), goal["must"]):
        yield f"the aim {goal['aim']} is less than what must be, {goal['must']}"
    records = [d for d in files.values() if d["kind"] == "crenel-bench" and d.get("suite") == goal["suite"]]
    rows = [row for record in records for row in map(_told, record["results"])]
    known = {key for row in rows for key in row}
    value = goal["value"].split(".")[0]
    if value not in (known if value == goal["value"] else {key for record in records for key in record}):
        yield f"no record has {goal['value']}"
    for key in {**goal["where"], **goal.get("at_least", {})}:
        if key not in known:
            yield f"no row has {key}"
    if newest(goal, files, device) is None and not goal.get("not_yet"):
        yield "no record fits, and `not_yet` does not say why"


def row(goal: dict, files: dict[str, dict], device: str) -> list[str]:
    found = newest(goal, files, device)
    measured = source = ""
    marks = {"must": "", "aim": ""}
    if found:
        measured = f"{number(found.value)} {goal['unit']}"
        measured += "" if found.here else f" ({found.device})"
        source = f"`{found.name}`" + (", of a tree with changes" if found.changed else "")
        if found.here:
            marks = {
                key: ": yes" if _better(goal, found.value, goal[key]) else ": **no**"
                for key in marks
                if key in goal
            }
    cells = [f"{goal[key]:,g}{marks[key]}" if key in goal else "" for key in ("must", "aim")]
    return [goal["title"], measured, *cells, goal.get("peer", ""), source]


def goals_section(files: dict[str, dict]) -> str:
    text = ""
    for data in files.values():
        if data["kind"] != "crenel-goals":
            continue
        text += f"\n## Figures to reach on one {data['device']}\n\nThe newest record of each, in the goal's "
        text += "unit. Blank: no record yet; in brackets: another card's, which does not count.\n"
        for section in data["sections"]:
            rows = [row(goal, files, data["device"]) for goal in section["goals"]]
            text += f"\n### {section['title']}\n\n{section['about']}\n\n{table(HEADER, rows)}"
    return text
