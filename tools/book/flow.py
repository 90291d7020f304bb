"""What moves where in a bootstrap: its stages by limbs, and the bytes of each, from records."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from book.peers import data
from book.reach import ROOT, Row
from book.svg import COLOURS, drawn
from report.text import number, table

TRAFFIC, LEVELS = "traffic-boot40-dry.json", "levels-boot40-dry.json"
PAIR = re.compile(r"\[(\d+), (\d+)\]")
GIGA = 1e9
ORDER = ["mod_raise", "coeff_to_slot", "eval_mod", "slot_to_coeff"]


class Stage(NamedTuple):
    """One of them: limbs of a polynomial that comes in and that goes out, and bytes."""

    name: str
    before: int
    after: int
    streamed: float  # keys and plaintexts, read once
    read: float  # polynomials
    written: float
    dram: float  # of all, what goes through the cache


def limbs_of_levels(params: str) -> list[int]:
    """Primes in use at every level of a set, the lowest first."""
    text = (ROOT / "params" / f"{params}.toml").read_text(encoding="utf-8")
    levels = text.partition("\nlevels = [")[2].partition("\n]")[0]
    return [int(main) + int(terminal) for main, terminal in PAIR.findall(levels)]


def normal_top(params: str) -> int:
    """The level that SlotToCoeff begins at."""
    text = (ROOT / "params" / f"{params}.toml").read_text(encoding="utf-8")
    found = re.search(r"^normal_top_level = (\d+)$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"params/{params}.toml has no normal_top_level")
    return int(found[1])


def row_of_levels(account: Row) -> Row:
    """Of the record of levels: the bootstrap that the account is of, all slots to the highest level."""
    record = data(LEVELS)
    kinds = [r for r in record["results"] if r["target"] is None and r["order"] == "coeff_to_slot_first"]
    order = [s["name"] for s in account["by_stage"]]
    if order != ORDER or record["params"] != account["params"] or not kinds:
        raise ValueError(f"{LEVELS} has no bootstrap like that of {TRAFFIC}")
    return max(kinds, key=lambda r: r["slots"])


def stages() -> list[Stage]:
    """In the order in which they run."""
    account = data(TRAFFIC)
    row, limbs = row_of_levels(account), limbs_of_levels(account["params"])
    top = limbs[normal_top(account["params"])]
    places = {
        "mod_raise": (limbs[row["input"]], row["raised_limbs"]),
        "coeff_to_slot": (row["raised_limbs"], row["eval_mod_limbs"]),
        "eval_mod": (row["eval_mod_limbs"], top),
        "slot_to_coeff": (top, limbs[row["output"]]),
    }
    found = []
    for s in account["by_stage"]:
        streamed = float(s["streamed_bytes"])
        moved = streamed, s["read_bytes"] - streamed, float(s["written_bytes"])
        found.append(Stage(s["name"], *places[s["name"]], *moved, s["dram_bytes"]))
    return found


def title(stage: Stage) -> str:
    return "".join(word.capitalize() for word in stage.name.split("_"))


def arrow(axes: Any, x: float, ends: tuple[float, float], moved: float, most: float, colour: str) -> None:
    """As broad as the bytes are many, with their number at the end that is farther from the stage."""
    shape = {"arrowstyle": "simple,head_length=0.5,head_width=0.9,tail_width=0.45", "linewidth": 0}
    size = {"mutation_scale": 6 + 30 * moved / most, "color": colour}
    axes.annotate("", xy=(x, ends[1]), xytext=(x, ends[0]), arrowprops={**shape, **size})
    far = max(ends, key=abs)
    side = "bottom" if far > 0 else "top"
    axes.text(x, far, f"{number(moved / GIGA)} GB", ha="center", va=side, fontsize=8.5)


def draw(axes: Any, found: list[Stage]) -> None:
    """Stages from left to right, each as high at its sides as its polynomials have limbs."""
    highest = max(max(s.before, s.after) for s in found)
    most = max(max(s.streamed, s.read, s.written) for s in found)
    near, far = 0.56, 1.15
    for i, s in enumerate(found):
        left, right = float(i), i + 0.92
        low, high = s.before / highest / 2, s.after / highest / 2
        sides = [left, left, right, right], [-low, low, high, -high]
        axes.fill(*sides, color=COLOURS[i], alpha=0.75, linewidth=0)
        middle = (left + right) / 2
        axes.text(middle, 0.03, title(s), ha="center", va="bottom", fontsize=10.5)
        axes.text(middle, -0.03, f"{s.before} to {s.after} limbs", ha="center", va="top", fontsize=8.5)
        arrow(axes, middle, (far, near), s.streamed, most, COLOURS[7])
        arrow(axes, middle - 0.22, (-far, -near), s.read, most, COLOURS[4])
        arrow(axes, middle + 0.22, (-near, -far), s.written, most, COLOURS[5])
    axes.text(-0.08, far, "keys and\nplaintexts,\nread once", ha="right", va="bottom", fontsize=8.5)
    axes.text(-0.08, -far, "polynomials,\nread | written", ha="right", va="top", fontsize=8.5)
    axes.set_xlim(-0.75, len(found))
    axes.set_ylim(-1.45, 1.5)
    axes.axis("off")


def rows(found: list[Stage]) -> str:
    """The same in numbers."""
    header = [
        "stage",
        "limbs",
        "keys and plaintexts, GB",
        "read, GB",
        "written, GB",
        "of all, through memory, GB",
    ]
    parts = [
        [title(s), f"{s.before} to {s.after}"]
        + [number(x / GIGA) for x in (s.streamed, s.read, s.written, s.dram)]
        for s in found
    ]
    total = [sum(getattr(s, name) for s in found) for name in ("streamed", "read", "written", "dram")]
    return table(header, [*parts, ["all", "", *(number(x / GIGA) for x in total)]])


def bootstrap() -> str:
    """The drawing and its table."""
    account, found = data(TRAFFIC), stages()
    words = f"Data flow of a {account['params']} bootstrap: limbs and bytes of each stage, by its account"
    return drawn(lambda axes: draw(axes, found), 9.5, 4.6, words) + "\n\n" + rows(found)
