"""What crossing between CKKS and TFHE adds, from the record of `crenel bench bridge`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from book.peers import data
from book.svg import COLOURS, drawn

RECORD = "bridge-boot40-h100.json"
PACKAGE = Path(__file__).resolve().parents[2] / "python/crenel"
PLACES = 32  # plain modulus of the record's TFHE set: numbers of the grid are so many to a turn
NAMES = {
    "reading": "a table reads",
    "extracted": "CKKS to TFHE",
    "looked_up": "a table gives",
    "packed": "TFHE to CKKS: packing",
}


def budget() -> str:
    """Standard deviations of phases on the way there and back, against what separates two messages."""
    record = data(RECORD)
    crossed = next(r for r in record["results"] if r["name"] == "to messages")
    turn = PLACES * 2.0 / (PLACES / 2)  # the record's grid has 16 numbers from -1 on

    def draw(axes: Any) -> None:
        names = list(NAMES)
        floor = -34.0
        for row, name in enumerate(names):
            at = math.log2(record["noise"][name])
            axes.barh(row, at - floor, left=floor, height=0.55, color=COLOURS[row // 2])
            axes.text(at - 0.2, row, f"2^{at:.1f}", va="center", ha="right", fontsize=9, color="#ffffff")
        axes.plot(math.log2(crossed["rms"] / turn), 1, "o", color=COLOURS[3], label="measured")
        half = -math.log2(2 * PLACES)
        axes.axvline(half, linestyle="--", color="grey", label="half the distance of two messages")
        axes.set_yticks(range(len(names)), [NAMES[name] for name in names])
        axes.invert_yaxis()
        axes.set_xlim(floor, -4)
        axes.set_xlabel("log2 of the standard deviation, on a circle of length 1")
        axes.legend(loc="lower right", fontsize=8.5)

    return drawn(draw, 7.5, 3.2, "Noise of the bridge by step, against the distance of messages") + survives()


def packaged(name: str) -> dict[str, Any]:
    """A file of numbers that `Bridge.describe` takes times from."""
    found: dict[str, Any] = json.loads((PACKAGE / name).read_text(encoding="utf-8"))
    return found


STEPS = (  # label, what is added there (of the model), where it is: 0 CKKS, 1 TFHE
    ("slots", None, 0),
    ("coefficients", None, 0),
    ("rows: one a slot", "extracted", 1),
    ("table", "reading", 1),
    ("rows: results", "looked_up", 1),
    ("one ciphertext", "packed", 0),
    ("slots again", None, 0),
)
MOVES = (
    "grid, SlotToCoeff",
    "key switch, extraction",
    "read",
    "blind rotation",
    "packing",
    "ModRaise to EvalMod",
)


def path() -> str:
    """The way of a slot there and back, with what is added at each place by the model."""
    record = data(RECORD)

    def draw(axes: Any) -> None:
        axes.set_xlim(-0.9, 2 * len(STEPS) - 1)
        axes.set_ylim(-0.5, 1.5)
        axes.axis("off")
        spots = [(2 * column, 1.0 if place == 0 else 0.0) for column, (_, _, place) in enumerate(STEPS)]
        boxes = []
        for (x, y), (label, noise, place) in zip(spots, STEPS, strict=True):
            text = label if noise is None else f"{label}\n+ 2^{math.log2(record['noise'][noise]):.1f}"
            box = {"boxstyle": "round,pad=0.35", "facecolor": COLOURS[place], "edgecolor": "none"}
            found = axes.text(x, y, text, ha="center", va="center", fontsize=8.5, color="#ffffff", bbox=box)
            boxes.append(found.get_bbox_patch())
        axes.figure.canvas.draw()  # boxes have their sizes from here on
        for i, move in enumerate(MOVES):
            (x, y), (to_x, to_y) = spots[i], spots[i + 1]
            ends = {"patchA": boxes[i], "patchB": boxes[i + 1], "shrinkA": 2, "shrinkB": 2}
            axes.annotate("", (to_x, to_y), (x, y), arrowprops={"arrowstyle": "-|>", "color": "grey", **ends})
            if y == to_y:
                axes.text(
                    (x + to_x) / 2, y + (0.32 if y else -0.32), move, ha="center", fontsize=8, va="center"
                )
            else:
                side = "right" if y else "left"
                away = -0.25 if y else 0.25
                axes.text((x + to_x) / 2 + away, 0.5, move, ha=side, fontsize=8, va="center")
        for y, name in ((1.0, "CKKS"), (0.0, "TFHE")):
            colour = COLOURS[0 if y else 1]
            axes.text(-1.5, y, name, fontsize=10, weight="bold", color=colour, va="center", ha="center")

    words = "The way from slots over rows of TFHE and back, with what each step adds to a phase"
    end = f"Standard deviations on a circle of length 1, by the model: `{record['params']}` and "
    return drawn(draw, 10.5, 2.6, words) + f"\n\n{end}`{record['tfhe_params']}`, {record['slots']:,} slots.\n"


def times() -> str:
    """What `Bridge.describe` says of numbers of slots, as a table."""
    found, batches = packaged("bridge_costs.json"), packaged("tfhe/lookups.json")["batches"]
    counts, seconds = zip(*batches, strict=True)
    text = (
        f"Predicted for an {found['machine']}, `{found['params']}` with `{found['tfhe_params']}`, in ms:\n\n"
    )
    text += "| slots | there | look-ups | packing | all that leads back |\n|---|---|---|---|---|\n"
    for row in found["rows"]:
        more = max(1.0, row["slots"] / counts[-1])  # above the largest batch at its rate
        look = 1e3 * more * float(np.interp(row["slots"], counts, seconds))
        text += f"| {row['slots']:,} | {row['there_ms']:.1f} | {look:.1f} | {row['packing_ms']:.1f} | "
        text += f"{row['back_ms']:.1f} |\n"
    return text


def survives() -> str:
    """The same in words and numbers."""
    record = data(RECORD)
    noise = record["noise"]
    reading = math.hypot(noise["reading"], noise["extracted"])
    slope = 2 * math.pi * math.hypot(noise["looked_up"], noise["packed"])
    signs = next(r for r in record["results"] if r["name"] == "comparison")
    step = 1 / (PLACES * reading)
    lost = math.log2(slope)
    largest = math.log2(signs["largest"])
    return (
        f"\n\n`{record['params']}` with `{record['tfhe_params']}`, {record['slots']:,} slots: a table reads "
        f"a number with a standard deviation of 1/{step:.0f} of the step, half a step is {step / 2:.0f} "
        f"deviations away; a comparison moves its threshold by 1/{1 / record['resolution']:.0f} of the "
        f"bound; values in the middle of a table's range come back with 2^{lost:.1f} of half the span, "
        f"and of the slots that were compared the largest error was 2^{largest:.1f}.\n"
    )


def noise() -> str:
    """The model's figures as a table."""
    record = data(RECORD)
    cells = [
        f"2^{math.log2(record['noise'][name]):.1f}"
        for name in ("extracted", "reading", "looked_up", "packed")
    ]
    return (
        "| | extracted | reading | result of a table | packed |\n|---|---|---|---|---|\n"
        f"| standard deviation | {' | '.join(cells)} |"
    )
