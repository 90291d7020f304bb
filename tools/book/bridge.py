"""What crossing between CKKS and TFHE adds, from the record of `crenel bench bridge`."""

from __future__ import annotations

import math
from typing import Any

from book.peers import data
from book.svg import COLOURS, drawn

RECORD = "bridge-boot40-h100.json"
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
