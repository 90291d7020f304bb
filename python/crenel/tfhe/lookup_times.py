"""How long look-ups take on a GPU where they were measured, and what that makes of circuits of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise


@dataclass(frozen=True)
class LookupTimes:
    """Times of batches of look-ups of 4-bit messages, decrypted and compared, on one GPU."""

    device: str
    processors: int
    """Multiprocessors."""
    params: str
    source: str
    """Files of bench/results, which tools/gen_lookups.py reads."""
    batches: tuple[tuple[int, float], ...]
    """(look-ups, seconds) by the fastest step for each, ascending; no time is above a later one."""
    steps: tuple[tuple[int, tuple[tuple[int, float], ...]], ...] = ()
    """(secret bits a step of the rotation, the batches of that step alone)."""

    def of_step(self, step: int) -> LookupTimes:
        """Where every batch is rotated by this step. Raises KeyError for one that was not measured."""
        return replace(self, batches=dict(self.steps)[step])

    def seconds(self, count: int) -> float:
        """Of `count` look-ups as one batch: linear between the measured batches, as long as the smallest
        below them, at the rate of the largest above."""
        first, last = self.batches[0], self.batches[-1]
        if count <= first[0]:
            return first[1]
        for (low, short), (high, long) in pairwise(self.batches):
            if count <= high:
                return short + (long - short) * (count - low) / (high - low)
        return last[1] * count / last[0]

    def circuit(self, rounds: Sequence[int], size: int = 1) -> float:
        """Of a circuit on `size` integers, whose rounds (look-ups of one integer each) wait for each other.

        A round is taken as one batch. What lies between rounds, sums and copies on the device, is not in it.
        """
        return sum(self.seconds(count * size) for count in rounds)


@cache
def measured() -> LookupTimes:
    """The times of lookups.json."""
    found = json.loads(resources.files("crenel.tfhe").joinpath("lookups.json").read_text(encoding="utf-8"))

    def batches(rows: list[list[float]]) -> tuple[tuple[int, float], ...]:
        return tuple((int(count), float(seconds)) for count, seconds in rows)

    steps = tuple((int(step), batches(rows)) for step, rows in found["steps"].items())
    return LookupTimes(
        found["device"],
        found["processors"],
        found["params"],
        found["source"],
        batches(found["batches"]),
        steps,
    )
