"""Coverage bins of the processing element's bench and what fills them."""

from __future__ import annotations

from fhecore.dv.coverage import Coverage
from fhecore.dv.golden import Column
from fhecore.dv.pe_model import LEVELS, Element, Inputs

BINS = {
    "step": "steps sampled",
    "first step": "steps that begin a tile",
    "last step": "steps that end a tile",
    "tile of one step": "first and last at once",
    "tile after tile": "a first step in the cycle after a last step",
    "idle with first or last": "a bubble with junk on first or last",
    "bubble between steps of a tile": "idle cycles inside a tile",
    "c without first": "c not zero in a step that must ignore it",
    "c on first": "c not zero in a first step",
    "both banks in flight": "steps of both banks at once",
    "bank rewritten in its first free cycle": "constants change one edge after their last use",
    "full pipeline": "a step at every level",
    "a >= q'": "operand a not reduced",
    "b >= q'": "operand b not reduced",
    "c >= q'": "addend c not reduced, first step",
    "all ones": "a, b, c all ones in a first step: the greatest product",
    "zero operand": "a or b zero",
    "q' of W-3 bits": "modulus in (2^(W-4), 2^(W-3))",
    "q' of W-2 bits": "modulus in [2^(W-3), 2^(W-2))",
    "q' of W-1 bits": "modulus in [2^(W-2), 2^(W-1))",
    "q' of W bits": "modulus in [2^(W-1), 2^W)",
    "least q'": "2^(W-4) + 1",
    "greatest q'": "2^W - 1",
    "exact, - 0": "estimate exact, nothing subtracted from acc + r2",
    "exact, - q'": "estimate exact, q' subtracted",
    "1 off, - q'": "estimate 1 too small, q' subtracted",
    "1 off, - 2q'": "estimate 1 too small, 2q' subtracted",
    **{f"reset over level {n}": f"reset with a step at level {n}" for n in range(1, LEVELS)},
    "reset over a step": "reset while valid",
}
# (error of the estimate, multiples subtracted) -> bin. No other pair can occur: r2 < q' iff the error is 0.
ACCUMULATIONS = {(0, 0): "exact, - 0", (0, 1): "exact, - q'", (1, 1): "1 off, - q'", (1, 2): "1 off, - 2q'"}


def observe(
    coverage: Coverage, model: Element, given: Inputs, top: int, columns: tuple[Column, Column]
) -> None:
    """Count what the inputs of this edge and the model's state before it mean."""
    hit = coverage.hit
    if model.last_step is not None:
        hit(ACCUMULATIONS[model.last_step.error, model.last_step.subtractions])
    if given.rst:
        for level, step in enumerate(model.pipe, start=1):
            hit(f"reset over level {level}", step is not None)
        hit("reset over a step", given.valid)
        return
    if not given.valid:
        hit("idle with first or last", given.first or given.last)
        return
    q = columns[given.bank].shifted
    before = model.pipe[0]
    hit("step")
    hit("first step", given.first)
    hit("last step", given.last)
    hit("tile of one step", given.first and given.last)
    hit("tile after tile", given.first and before is not None and before[0].last)
    hit("c without first", not given.first and given.c != 0)
    hit("c on first", given.first and given.c != 0)
    hit("both banks in flight", model.in_flight(1 - given.bank) > 0)
    hit("full pipeline", model.in_flight() == LEVELS - 1)
    hit("a >= q'", given.a >= q)
    hit("b >= q'", given.b >= q)
    hit("c >= q'", given.first and given.c >= q)
    hit("all ones", given.first and given.a == given.b == given.c == top)
    hit("zero operand", not given.a or not given.b)
    short = top.bit_length() - q.bit_length()
    hit(f"q' of W{f'-{short}' if short else ''} bits")
    hit("least q'", q == (top >> 4) + 2)
    hit("greatest q'", q == top)
