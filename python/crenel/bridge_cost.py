"""What crossing between CKKS and TFHE takes: keys, errors and time, said beforehand by `Bridge.describe`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

from crenel.tfhe import lookup_times


@dataclass(frozen=True)
class Times:
    """Milliseconds of a table or comparison of all slots on one GPU, and what they rest on.

    Attributes
    ----------
    device : the GPU
    there_ms, back_ms : of CKKS before and after the tables, with packing: by the bytes of its launches, as
        counted, at the rates that were measured of others
    packing_ms : of these, packing
    lookups_ms : of the tables, as measured
    """

    device: str
    there_ms: float
    packing_ms: float
    back_ms: float
    lookups_ms: float

    @property
    def ms(self) -> float:
        """All of it."""
        return self.there_ms + self.lookups_ms + self.back_ms


@dataclass(frozen=True)
class Cost:
    """Of a bridge: levels, keys on the device, standard deviations and time. ``print(cost)`` is a page.

    Deviations and probabilities are those of docs/theory/bridge.md, "Noise".

    Attributes
    ----------
    key_bytes, key_wire_bytes : of the bridge's own keys, on the device and in a file
    resolution : of a comparison's threshold, in units of the slots, within `bound` of it
    read : of a number that a table reads, in steps of the grid; half a step is where it is read wrong
    written : of a value in the middle of a table's range, in halves of its span; the largest and the smallest
        have (``written``^2) / 2
    times : None for sets that were not counted
    """

    ckks_params: str
    tfhe_params: str
    slots: int
    messages: int
    level: int
    output_level: int
    key_bytes: int
    key_wire_bytes: int
    ckks_key_bytes: int
    tfhe_key_bytes: int
    bound: float
    step: float
    resolution: float
    read: float
    written: float
    times: Times | None

    @property
    def failure_log2(self) -> float:
        """log2 of the bound on the probability that a table reads a number of the grid as another: a number
        of the grid itself, without errors of its own."""
        return self.failure_at(0.0)

    def failure_at(self, off: float) -> float:
        """The same of a number that is `off` steps away from the grid's, at most 0."""
        return _tail_log2(max(0.0, 0.5 - abs(off)) / self.read)

    def wrong_side_log2(self, distance: float) -> float:
        """log2 of the bound on the probability that a slot so far from the threshold is taken for one on the
        other side, at most 0."""
        return min(0.0, _tail_log2(abs(distance) / self.resolution) - 1)

    def __str__(self) -> str:
        mib = 2.0**20
        middle = math.log2(self.written)
        lines = [
            f"{self.ckks_params} and {self.tfhe_params}: {self.slots:,} slots, {self.messages} messages, "
            f"from level {self.level} or above to level {self.output_level}",
            f"keys: {self.key_bytes / mib:.1f} MiB of the bridge ({self.key_wire_bytes / mib:.1f} sent), "
            f"{self.ckks_key_bytes / mib:,.0f} of CKKS, {self.tfhe_key_bytes / mib:,.0f} of TFHE",
            f"a comparison of slots within {self.bound:g} of the threshold: standard deviation "
            f"{self.resolution:.2g}; {13.4 * self.resolution:.2g} away all but 2^-128 are right",
            f"a table of numbers {self.step:g} apart: standard deviation 1/{1 / self.read:.0f} of a step; "
            f"2^{self.failure_log2:.0f} of them are read as others",
            f"values: 2^{middle:.1f} of half the span in the middle, 2^{2 * middle - 1:.0f} and the errors "
            "of a bootstrap at the ends",
        ]
        t = self.times
        if t is None:
            return "\n".join([*lines, "time: not known for these sets"])
        known = f"{t.lookups_ms:.1f} look-ups (measured), {t.there_ms:.1f} before them, {t.back_ms:.1f} after"
        lines.append(f"{t.device}: {t.ms:.1f} ms predicted: {known}, {t.packing_ms:.1f} of that packing")
        return "\n".join(lines)


def _tail_log2(deviations: float) -> float:
    """log2 of 2 exp(-d^2 / 2), at most 0."""
    return min(0.0, 1 - deviations**2 / 2 / math.log(2))


@cache
def _counted() -> dict[str, Any]:
    text = resources.files("crenel").joinpath("bridge_costs.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def times(ckks_params: str, tfhe_params: str, slots: int) -> Times | None:
    """Of so many slots on the GPU of bridge_costs.json, between the numbers that were counted linear in them;
    None for other sets."""
    found = _counted()
    known = lookup_times.measured()
    if (found["params"], found["tfhe_params"]) != (ckks_params, tfhe_params) or known.params != tfhe_params:
        return None

    def between(name: str) -> float:
        rows = [(row["slots"], row[name]) for row in found["rows"]]
        if slots <= rows[0][0]:
            return float(rows[0][1])
        for (low, least), (high, most) in pairwise(rows):
            if slots <= high:
                return float(least + (most - least) * (slots - low) / (high - low))
        return float(rows[-1][1] * slots / rows[-1][0])

    lookups = 1e3 * known.seconds(slots)
    return Times(known.device, between("there_ms"), between("packing_ms"), between("back_ms"), lookups)
