"""Area against speed: arrays that were synthesised, what they cost an A100's die, and the speed-ups that the
model predicts at their intervals.

Arrays alone; operands, constants and results stand around each of them alike. A tile of the instruction has
16 rows: an array of 8 takes it in two passes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from . import report

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
KIND = "crenel-fhecore-synthesis"
COMMAND = (
    "./run fhecore-syn lazy_pe lazy_reduce lazy_periphery array_periphery_half lazy_periphery_half "
    "modmul_pe_seq lazy_pe_32 lazy_reduce_32 lazy_periphery_32 --check "
    "--out bench/results/fhecore-asap7-frontier.json"
)
UNITS, DIE = 432, 826.0  # tensor cores of an A100, mm2 of its die
COLUMNS = 8


@dataclass(frozen=True)
class Shape:
    """An array: the netlists in it with their numbers; edges from a tile of 16 steps to the next, and to its
    last element."""

    title: str
    netlists: dict[str, int]
    interval: int
    latency: int


PASSES = 2  # of an array of half the rows
EVERY, ONCE = "every step reduced", "one reduction a column"
TURNS = 3  # of a multiplier that makes an element's three products
LAZY = {"lazy_reduce": COLUMNS}
SHAPES = (
    Shape(f"{EVERY}, 16x8", {"modmul_pe_cs": 128, "array_periphery": 1}, 16, 44),
    Shape(f"{EVERY}, 8x8", {"modmul_pe_cs": 64, "array_periphery_half": 1}, 16 * PASSES, 52),
    Shape(
        f"{EVERY} by one multiplier, 16x8",
        {"modmul_pe_seq": 128, "array_periphery": 1},
        16 * TURNS,
        44 + 15 * (TURNS - 1),
    ),
    Shape(f"{ONCE}, 16x8", {"lazy_pe": 128, "lazy_periphery": 1, **LAZY}, 16, 49),
    Shape(
        f"{ONCE}, 16x8, sums over 32 steps",
        {"lazy_pe_32": 128, "lazy_periphery_32": 1, "lazy_reduce_32": COLUMNS},
        16,
        50,
    ),
    Shape(f"{ONCE}, 8x8", {"lazy_pe": 64, "lazy_periphery_half": 1, **LAZY}, 16 * PASSES, 57),
)


def netlists(folder: Path = RESULTS) -> dict[str, dict]:
    """Figures of every netlist that a record has."""
    out: dict[str, dict] = {}
    for path in sorted(folder.glob("fhecore-*.json")):
        data = json.loads(path.read_text())
        if data.get("kind") == KIND:
            out |= {r["design"]: r for r in data["results"]}
    return out


def area(shape: Shape, found: dict[str, dict]) -> float:
    """um2 of one array."""
    return sum(number * found[name]["area"] for name, number in shape.netlists.items())


def speedup(target: str, interval: int, data: Path) -> str:
    """Geometric means of the primitives by limbs."""
    predictions, _, _ = report.load(target, data)
    if predictions is None:
        return report.NOT
    operations = [o for o in report.with_rescaled(predictions["operations"]) if not o.get("refused")]
    if any(str(interval) not in o["with_us"] for o in operations):
        return report.NOT
    found = report.means(operations, lambda o: o["base_us"] / o["with_us"][str(interval)])
    return ", ".join(f"{mean:.2f}" for _, mean in found)


ACTIVITY = "fhecore-asap7-activity.json"
ELEMENTS = 16 * COLUMNS
# Arrays of 16x8 by the element, and the reduction of a column.
SWITCHED = (
    (EVERY, "modmul_pe_cs", None),
    (f"{EVERY} by one multiplier", "modmul_pe_seq", None),
    (ONCE, "lazy_pe", "lazy_reduce"),
    (f"{ONCE}, sums over 32 steps", "lazy_pe_32", "lazy_reduce_32"),
)


def activity(_: Path, folder: Path = RESULTS) -> str:
    """Capacitance that switches for one product of an array of 16x8, its periphery left out."""
    path = folder / ACTIVITY
    if not path.exists():
        return f"{report.NOT}\n"
    found = {r["design"]: r for r in json.loads(path.read_text())["results"]}
    rows, first = [], None
    for title, element, column in SWITCHED:
        if not {element, column or element} <= set(found):
            rows.append([title, *[report.NOT] * 3])
            continue
        own, other = found[element], found[column] if column else None
        each = [own["edges_a_step"] * own[key] + (COLUMNS / ELEMENTS * other[key] if other else 0.0)
                for key in ("switched_ff", "clock_ff")]  # fmt: skip
        first = first or sum(each)
        rows.append([title, f"{each[0]:,.0f}", f"{each[1]:,.0f}", f"{sum(each) / first:.2f}"])
    head = ["array", "signals, fF a product", "clock pins, fF a product", "of the first"]
    return report.table(head, rows)


def table(data: Path, folder: Path = RESULTS) -> str:
    """Shapes in the rows; one whose netlists no record has says by which command they are made."""
    found = netlists(folder)
    head = ["array", "um2", "GHz", "432 of them, mm2", "of the A100's die", "edges a tile",
            "to the last element", "times faster, H200 (47, 23 limbs)", "A100, unvalidated"]  # fmt: skip
    rows, missing = [], False
    for shape in SHAPES:
        if set(shape.netlists) <= set(found):
            each = area(shape, found)
            ghz = min(found[name]["frequency_ghz"] for name in shape.netlists)
            mm2 = UNITS * each / 1e6
            figures = [f"{each:,.0f}", f"{ghz:.2f}", f"{mm2:.1f}", f"{mm2 / DIE:.1%}"]
        else:
            figures, missing = ["not synthesised"] * 4, True
        ups = [speedup(target, shape.interval, data) for target in ("h200", "a100")]
        rows.append([shape.title, *figures, str(shape.interval), str(shape.latency), *ups])
    text = report.table(head, rows)
    return text + (f"\nNot synthesised yet: `{COMMAND}`.\n" if missing else "")
