"""Rates that were measured on one card: those of the library, and those of a file.

``ceilings.json`` of this package is such a file, of an H200; ``dev/kernels/ceilings_probe.cu`` measures
and writes one of the GPU at hand.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from crenel.dram import CacheCurve
from crenel.errors import SerializationError

KIND, FORMAT = "crenel-rates", 1
MOST_BYTES = 1 << 20  # of a file
RATES = ("l2", "l2_write", "dram_read", "dram_write", "dram", "butterfly", "multiply_add", "launch",
         "launch_queued")  # fmt: skip


@dataclass(frozen=True)
class Ceilings:
    """Rates that were measured on one device; see ceilings.json for what each one is.

    ``l2_curve``: (bytes of working set, rate) in ascending order, what remains of ``l2`` as data falls out of
    the cache; empty: nothing ever does.
    """

    device: str
    l2: float
    l2_write: float
    dram_read: float
    dram_write: float
    dram: float
    butterfly: float
    multiply_add: float
    launch: float
    launch_queued: float
    l2_curve: tuple[tuple[float, float], ...] = ()

    @property
    def curve(self) -> CacheCurve | None:
        """None: everything stays in the cache."""
        return CacheCurve(self.l2_curve, self.dram) if self.l2_curve else None

    def warning(self, description: str) -> str | None:
        """What is to be said before times at these ceilings are shown for a device of this description
        (``Device.description``); None where it is the card that they were measured on."""
        card = card_of(description)
        if _same_card(self.device, card):
            return None
        return (
            f"the device is {card}, the ceilings are of {self.device}: times and bounds are those of "
            "these launches on that card. --ceilings takes those of a file, dev/kernels/ceilings_probe.cu "
            "measures them"
        )


def card_of(description: str) -> str:
    """Of a ``Device.description``: the model of the GPU, or of the one that a model is of."""
    text = description.rpartition("each: ")[2].removeprefix("model of an ")
    return re.split(r", | that executes nothing", text)[0]


def _same_card(one: str, other: str) -> bool:
    """Equal, or one is the beginning of the other's words: NVIDIA H100 of NVIDIA H100 80GB HBM3."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and not long[len(short) : len(short) + 1].isalnum()


def data() -> dict[str, Any]:
    """The content of ceilings.json: rates with their sources, and what the papers print."""
    return dict(json.loads(resources.files("crenel").joinpath("ceilings.json").read_text(encoding="utf-8")))


def load_ceilings(path: str | Path | None = None) -> Ceilings:
    """The library's, of an H200, or those of a file.

    Raises SerializationError for a file that is no ceilings, saying what was expected, FileError where it
    cannot be read.
    """
    return of_document(data(), "ceilings.json") if path is None else of_document(read(path), str(path))


def read(path: str | Path) -> dict[str, Any]:
    """A file's JSON, whose ceilings `of_document` checks.

    Raises SerializationError for what is no JSON object, FileError where it cannot be read.
    """
    from crenel.workloads.files import opened

    with opened(Path(path)) as file:
        text = file.read(MOST_BYTES + 1)
    _expect(len(text) <= MOST_BYTES, str(path), f"at most {MOST_BYTES} bytes")
    found: Any = None
    with suppress(ValueError, RecursionError):  # not of the kind, as is said next
        found = json.loads(text)
    _expect(isinstance(found, dict), str(path), f"JSON of kind {KIND}")
    return dict(found)


def of_document(found: Mapping[str, Any], name: str) -> Ceilings:
    """The rates of a document; `name` is what errors call it.

    Raises SerializationError for another kind or format, rates that are missing, unknown or no positive
    numbers, and a curve that does not begin with the rate of L2 or does not fall over growing working sets.
    """
    _expect(found.get("kind") == KIND, name, f"kind {KIND}")
    _expect(found.get("format") == FORMAT, name, f"format {FORMAT}")
    device: Any = found.get("device")
    rates: Any = found.get("rates")
    right = isinstance(device, str) and 0 < len(device) <= 200 and device.isprintable()
    _expect(right, name, "device, the name of a card")
    _expect(isinstance(rates, dict) and set(rates) == set(RATES), name, "rates of " + ", ".join(RATES))
    values: dict[str, float] = {}
    for each in RATES:
        rate = rates[each]
        value: Any = rate.get("value") if isinstance(rate, dict) else None
        _expect(_positive(value), name, f"rates.{each}.value, a positive number, found {value!r:.40}")
        values[each] = float(value)
    points = rates["l2"].get("by_working_set")
    pairs = isinstance(points, list) and 0 < len(points) <= 1000
    pairs = pairs and all(isinstance(p, list) and len(p) == 2 and all(map(_positive, p)) for p in points)
    _expect(pairs, name, "rates.l2.by_working_set, pairs of bytes and a rate")
    curve = tuple((float(size), float(rate)) for size, rate in points)
    falls = all(a[0] < b[0] and a[1] >= b[1] for a, b in pairwise(curve))
    _expect(falls, name, "rates.l2.by_working_set of growing working sets and falling rates")
    starts = curve[0][1] == values["l2"] and curve[-1][1] >= values["dram"]
    _expect(starts, name, "rates.l2.by_working_set from rates.l2 down to no less than rates.dram")
    return Ceilings(str(device), **values, l2_curve=curve)


def _positive(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value > 0  # type: ignore[arg-type, operator]


def _expect(right: bool, name: str, expected: str) -> None:
    if not right:
        raise SerializationError(f"{name}: expected {expected}", {"file": name, "expected": expected})
