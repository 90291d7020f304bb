"""Times that no kernel can be faster than, in words and figures beside the goals that they are about."""

from __future__ import annotations

from crenel import analyze
from report.text import number

OPERANDS, COMPONENTS = 2, 2  # of an addition: ciphertexts that are read, polynomials of each
WORD = 4  # bytes of a residue
SAME = ("name", "params", "limbs", "batch", "graph")


def addition(goal: dict, name: str, data: dict, row: dict) -> str:
    """Of an addition whose operands and result no cache holds, timed by events: its bytes at the memory's
    rates, and what events add to calls on the same inputs (`row`, and the others of its record)."""
    polynomial = row["limbs"] * WORD << row["log_n"]
    read, written = OPERANDS * COMPONENTS * polynomial, COMPONENTS * polynomial
    rates = analyze.load_ceilings()
    apart = 1e6 * (read / rates.dram_read + written / rates.dram_write)
    together = 1e6 * (read + written) / rates.dram
    each, queued = (
        next(
            r["latency_us"]
            for r in data["results"]
            if (r.get("timing"), r.get("inputs")) == (timing, "same") and all(r[k] == row[k] for k in SAME)
        )
        for timing in ("each", "queued")
    )
    low, high = (us + each - queued for us in (apart, together))
    text = (
        f"{goal['title']}: {OPERANDS} x {COMPONENTS} x {row['limbs']} x 2^{row['log_n']} words of {WORD}"
        f" bytes are read, {read / 1e6:.1f} MB, and half as many written, {written / 1e6:.1f} MB, none of"
        f" them in L2. That takes {number(apart)} us at the rates of reading and of writing alone of one"
        f" {rates.device}, {number(together)} us at that of both at once (`python/crenel/ceilings.json`), and"
        f" events of single calls add {number(each - queued)} us, what calls on the same inputs take more by"
        f" themselves than queued (`{name}`): {number(low)} to {number(high)} us at least."
    )
    beyond = {key: goal[key] for key in ("must", "aim") if key in goal and goal[key] < low}
    if beyond:
        names = {"must": "What must be", "aim": "the aim"}
        told = " and ".join(f"{names[key]}, {value:g} us," for key, value in beyond.items())
        text += f" {told[0].upper()}{told[1:]} {'are' if len(beyond) > 1 else 'is'} below it."
    return text + "\n"


FLOORS = {"addition": addition}
