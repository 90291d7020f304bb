"""Figures that the project wants to reach, as data (goals.json), beside the newest record of each.

A goal names a suite (or several), what a row must say (`where`, `at_least`), which number of it counts
(`value`), and the figures: `must`, `aim`, what another library publishes (`peer`). Names with a dot are of
the file itself. Without `must` a figure is reported only. Higher is better where it says `higher`. It is of
one GPU unless `gpus` says how many.
Records of the goal's GPU and number come first; another card's and another number's are shown with their name
and never count as met. So are those of processors and of models of GPUs, where `also` allows them.
`anywhere`: what no device decides, such as sizes of files. `beside` are other values of the file, in ms, told
with it. `not_yet` says why no record fits a goal; `problems` finds what else fits none, and what one fits.
`floor`: of report.floors, told below the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from report import goals_rows
from report.floors import FLOORS
from report.text import number, table

SCALES = {"us": 1.0, "ms": 1e-3, "MiB": 1 / (1 << 20), "GiB": 1 / (1 << 30), "a second": 1.0}
SCALES |= {"times": 1.0, "%": 1.0, "of them": 1.0, "s": 1.0, "GB": 1e-9, "J": 1.0, "log2": 1.0}
POWER = "log2"  # shown as 2^x
SECONDS = {"us": 1e6, "ms": 1e3}
# Of values by how their names end: units, and whether more is better.
UNITS = {
    "_us": (("us", "ms"), False),
    "seconds": (("us", "ms"), False),
    "client_s": (("s",), False),
    "bytes": (("MiB", "GiB", "GB"), False),
    "_log2": ((POWER,), False),
    "joules_per_bootstrap": (("J",), False),
    "ratio": (("times",), True),
    "per_second": (("a second",), True),
    "_per_s": (("a second",), True),
    "times_one_device": (("times",), True),
    "right_share": (("%",), True),
    "library_share": (("%",), True),
    "key_share": (("%",), False),
    "_count": (("of them",), False),
}
NEEDED = {"title", "suite", "where", "value", "unit"}
OPTIONAL = {"must", "aim", "at_least", "higher", "peer", "anywhere", "not_yet", "gpus", "also", "beside",
            "floor"}  # fmt: skip
ALSO = {"models", "processors"}
NOT_RECORDED = "not recorded"
HEADER = ["figure", "measured", "must", "aim", "others publish", "source"]


class Found(NamedTuple):
    value: float
    here: bool  # on the goal's GPU, and so many of them
    gpus: int
    date: str
    name: str
    device: str
    changed: bool
    row: dict

    @property
    def made_by(self) -> str:
        return f"{self.gpus} x {self.device}" if self.gpus > 1 else self.device


def _look(name: str, data: dict, row: dict) -> Any:
    """A field of the row, or where it has a dot of the record; None where it is missing."""
    return _at(name, data if "." in name else row)


def _fits(goal: dict, data: dict, row: dict) -> bool:
    several = row.get("gpus", 1) > 1
    return (
        row.get("correct", True)
        and several == (goal.get("gpus", 1) > 1)
        and all(_look(key, data, row) == value for key, value in goal["where"].items())
        and all((_look(key, data, row) or 0) >= value for key, value in goal.get("at_least", {}).items())
    )


def _value(goal: dict, data: dict, row: dict) -> float | None:
    found = _look(goal["value"], data, row)
    if found is None:
        return None
    return found * (SECONDS if goal["value"].endswith("seconds") else SCALES)[goal["unit"]]


def _at(path: str, found: Any) -> Any:
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _better(goal: dict, a: float, b: float) -> bool:
    return a >= b if goal.get("higher") else a <= b


def _shown(goal: dict, device: str) -> bool:
    """May a record of this device stand beside the goal?"""
    if goal.get("anywhere") or device.startswith("NVIDIA"):
        return True
    model = device.startswith(goals_rows.MODEL)
    return ("models" if model else "processors") in goal.get("also", ())


def newest(goal: dict, files: dict[str, dict], device: str) -> Found | None:
    """Of the goal's GPU, as many of them, if there is any; of one file the better row (queued, or replayed as
    a graph). Among others the number of GPUs comes first, and what was measured before models."""
    found: list[Found] = []
    for name, data in _records(goal, files):
        date, card, changed = goals_rows.head(data)
        if not _shown(goal, card):
            continue
        by_count: dict[int, list[tuple[float, dict]]] = {}
        for row in goals_rows.rows(data):
            value = _value(goal, data, row) if _fits(goal, data, row) else None
            if value is not None:
                by_count.setdefault(row.get("gpus", 1), []).append((value, row))
        for count, values in by_count.items():
            best, row = (max if goal.get("higher") else min)(values, key=lambda v: v[0])
            here = goal.get("anywhere", False) or (card == device and count == goal.get("gpus", 1))
            found.append(Found(best, here, count, date, name, card, changed, row))
    wanted = goal.get("gpus", 1)

    def rank(f: Found) -> tuple[bool, bool, bool, str]:
        return f.here, f.gpus == wanted, not f.device.startswith(goals_rows.MODEL), f.date

    return max(found, key=rank, default=None)


def _records(goal: dict, files: dict[str, dict]) -> list[tuple[str, dict]]:
    suites = goal["suite"] if isinstance(goal["suite"], list) else [goal["suite"]]
    found = [(name, data) for name, data in files.items() if goals_rows.suite_of(data) in suites]
    return [(name, data) for name, data in found if not goals_rows.switched_off(data)]


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
    if unknown := sorted(set(goal.get("also", ())) - ALSO):
        yield f"also {', '.join(unknown)}, expected of {', '.join(sorted(ALSO))}"
    if not goal.keys() & {"must", "aim"}:
        yield "neither must nor aim"
    if goal.get("floor") not in (None, *FLOORS):
        yield f"floor {goal['floor']}, expected one of {', '.join(FLOORS)}"
    if {"must", "aim"} <= goal.keys() and not _better(goal, goal["aim"], goal["must"]):
        yield f"the aim {goal['aim']} is less than what must be, {goal['must']}"
    records = [data for _, data in _records(goal, files)]
    pairs = [(record, row) for record in records for row in goals_rows.rows(record)]

    def known(name: str) -> bool:
        return any(_look(name, record, row) is not None for record, row in pairs)

    if not known(goal["value"]):
        yield f"no record has {goal['value']}"
    for key in {**goal["where"], **goal.get("at_least", {})}:
        if not known(key):
            yield f"no row has {key}"
    for path in goal.get("beside", {}).values():
        if not path.endswith("_ms") or not any(_at(path, record) is not None for record in records):
            yield f"no record has {path} in ms"
    found = newest(goal, files, device)
    if found is None and not goal.get("not_yet"):
        yield "no record fits, and `not_yet` does not say why"
    if found is not None and "not_yet" in goal:
        yield f"`not_yet` says {goal['not_yet']!r}, and {found.name} fits"


def _figure(goal: dict, value: float, text: str) -> str:
    """In the goal's unit; `text` is the number as it is to be written."""
    return f"2^{value:.1f}" if goal["unit"] == POWER else text


def row(goal: dict, files: dict[str, dict], device: str) -> list[str]:
    found = newest(goal, files, device)
    measured, source = NOT_RECORDED, goal.get("not_yet", "")
    marks = {"must": "", "aim": ""}
    if found:
        counted = goal["unit"] == "of them"
        text = f"{found.value:.0f}" if counted else f"{number(found.value)} {goal['unit']}"
        measured = _figure(goal, found.value, text)
        measured += "" if found.here else f" ({found.made_by})"
        beside = {name: _at(path, files[found.name]) for name, path in goal.get("beside", {}).items()}
        measured += "".join(f"; {name} {value:g} ms" for name, value in beside.items() if value is not None)
        source = f"`{found.name}`" + (", of a tree with changes" if found.changed else "")
        if found.here:
            marks = {
                key: ": yes" if _better(goal, found.value, goal[key]) else ": **no**"
                for key in marks
                if key in goal
            }
    cells = [
        _figure(goal, goal[key], f"{goal[key]:,g}") + marks[key] if key in goal else absent
        for key, absent in (("must", "reported"), ("aim", ""))
    ]
    return [goal["title"], measured, *cells, goal.get("peer", ""), source]


def goals_section(files: dict[str, dict]) -> str:
    text = ""
    for data in files.values():
        if data["kind"] != "crenel-goals":
            continue
        text += f"\n## Figures to reach on the {data['device']}\n\nThe newest record of each, in the goal's "
        text += (
            "unit. Goals are of one GPU unless they say how many. In brackets: what another card, another "
        )
        text += "number of GPUs, a processor or a model of a GPU gave, which does not count as met.\n"
        for section in data["sections"]:
            rows = [row(goal, files, data["device"]) for goal in section["goals"]]
            text += f"\n### {section['title']}\n\n{section['about']}\n\n{table(HEADER, rows)}"
            for goal in (g for g in section["goals"] if "floor" in g):
                found = newest(goal, files, data["device"])
                if found:
                    text += "\n" + FLOORS[goal["floor"]](goal, found.name, files[found.name], found.row)
    return text
