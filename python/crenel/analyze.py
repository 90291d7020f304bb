"""Sums over the launches of an account, and the time that measured ceilings allow them.

Pure arithmetic on the dictionaries of ``crenel.Account.records``; running an operation is
``crenel.cli.analyze``'s part, drawing ``crenel.plot_traffic``'s.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Any

from crenel.account import Record

WORKS = ("ntt", "base_conversion", "key_multiply", "elementwise", "automorphism", "sampling", "copy")
LIMB_RANGE = 10  # output limbs in one row of the table by limb count
NO_STAGE = "(no stage)"


@dataclass(frozen=True)
class Ceilings:
    """Rates that were measured on one device; see ceilings.json for what each one is.

    ``l2_curve``: (bytes of working set, rate) in ascending order, what remains of ``l2`` as data falls out of
    the cache; empty: ``l2`` throughout.
    """

    device: str
    l2: float
    l2_write: float
    dram_read: float
    butterfly: float
    multiply_add: float
    launch: float
    l2_curve: tuple[tuple[float, float], ...] = ()

    def l2_at(self, working_set: float) -> float:
        """Bytes a second through the cache for a launch on so many bytes; linear between measurements."""
        if not self.l2_curve or working_set <= self.l2_curve[0][0]:
            return self.l2
        for (low, fast), (high, slow) in pairwise(self.l2_curve):
            if working_set <= high:
                return fast + (slow - fast) * (working_set - low) / (high - low)
        return self.l2_curve[-1][1]


@dataclass
class Row:
    """Sums over a group of launches. Times are in seconds, each at one ceiling alone.

    ``l2_time`` and ``bound`` take the rate of each launch's working set, ``best_l2_time`` the best for all.
    """

    name: str
    launches: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    streamed_bytes: int = 0
    multiply_adds: int = 0
    butterflies: int = 0
    l2_time: float = 0.0
    best_l2_time: float = 0.0
    dram_time: float = 0.0
    arithmetic_time: float = 0.0
    bound: float = 0.0  # sum over the launches of the longest of the three

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    def add(self, record: Record, ceilings: Ceilings) -> None:
        self.launches += 1
        self.read_bytes += record["read_bytes"]
        self.written_bytes += record["written_bytes"]
        self.streamed_bytes += record["streamed_bytes"]
        self.multiply_adds += record["multiply_adds"]
        self.butterflies += record["butterflies"]
        l2, dram, arithmetic = times(record, ceilings)
        self.l2_time += l2
        self.best_l2_time += l2_time(record, ceilings, ceilings.l2)
        self.dram_time += dram
        self.arithmetic_time += arithmetic
        self.bound += max(l2, dram, arithmetic)

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "bytes": self.bytes}


def data() -> dict[str, Any]:
    """The content of ceilings.json: rates with their sources, and what the papers print."""
    return json.loads(resources.files("crenel").joinpath("ceilings.json").read_text(encoding="utf-8"))


def load_ceilings() -> Ceilings:
    """The rates alone."""
    found = data()
    curve = tuple((float(size), float(rate)) for size, rate in found["rates"]["l2"]["by_working_set"])
    rates = {name: rate["value"] for name, rate in found["rates"].items()}
    return Ceilings(found["device"], **rates, l2_curve=curve)


def working_set(record: Record) -> int:
    """The least number of bytes that a launch can hold in the cache: what it reads of data and tables, or
    writes, whichever is more. In place they are the same bytes; apart, the sum of both."""
    return max(record["read_bytes"] - record["streamed_bytes"], record["written_bytes"])


def l2_time(record: Record, ceilings: Ceilings, rate: float) -> float:
    """Seconds at the cache, where ``rate`` is that of reading and writing together."""
    moved = (record["read_bytes"] + record["written_bytes"]) / rate
    return max(moved, record["written_bytes"] / ceilings.l2_write)


def times(record: Record, ceilings: Ceilings) -> tuple[float, float, float]:
    """Seconds that one launch needs at the cache, at the memory, and at the multipliers."""
    l2 = l2_time(record, ceilings, ceilings.l2_at(working_set(record)))
    dram = record["streamed_bytes"] / ceilings.dram_read
    others = record["multiply_adds"] - record["butterflies"]
    arithmetic = record["butterflies"] / ceilings.butterfly + others / ceilings.multiply_add
    return l2, dram, arithmetic


def stage_of(record: Record) -> str:
    """The outermost label: coeff_to_slot of coeff_to_slot/key_switch."""
    return record["stage"].split("/")[0] or NO_STAGE


def limb_range(record: Record) -> str:
    """Ten counts in one group; copies have none."""
    if record["limbs"] == 0:
        return "none"
    first = (record["limbs"] - 1) // LIMB_RANGE * LIMB_RANGE
    return f"{first + 1}-{first + LIMB_RANGE}"


def group(
    records: Iterable[Record],
    ceilings: Ceilings,
    key: str | Callable[[Record], str],
    order: Sequence[str] = (),
) -> list[Row]:
    """One row a value of ``key``, in the given order, then in that of appearance."""

    def of_field(record: Record) -> str:
        fields: Mapping[str, object] = record
        return str(fields[str(key)])

    name = key if callable(key) else of_field
    rows: dict[str, Row] = {}
    for record in records:
        rows.setdefault(name(record), Row(name(record))).add(record, ceilings)
    first = [rows.pop(n) for n in order if n in rows]
    return first + list(rows.values())


def total(records: Iterable[Record], ceilings: Ceilings) -> Row:
    """Everything."""
    rows = group(records, ceilings, lambda _: "total")
    return rows[0] if rows else Row("total")


def by_work(records: Iterable[Record], ceilings: Ceilings) -> list[Row]:
    """By operation: Fig. 3 of Theodosian."""
    return group(records, ceilings, "work", WORKS)


def by_stage(records: Iterable[Record], ceilings: Ceilings) -> list[Row]:
    """By the outermost stage, in the order in which they begin."""
    return group(records, ceilings, stage_of)


def by_kernel(records: Iterable[Record], ceilings: Ceilings) -> list[Row]:
    """By kernel, most bytes first."""
    return sorted(group(records, ceilings, "kernel"), key=lambda row: -row.bytes)


def by_limbs(records: Iterable[Record], ceilings: Ceilings, exact: bool = False) -> list[Row]:
    """By limb count of the output: Fig. 8b of Theodosian."""
    rows = group(records, ceilings, "limbs" if exact else limb_range)
    return sorted(rows, key=lambda row: int(row.name.split("-")[0]) if row.name[0].isdigit() else 0)


def key_switch_stages(records: Sequence[Record]) -> tuple[int, int, int]:
    """Bytes of one key switch as Table III of Theodosian cuts it: ModUp, key product, ModDown.

    Our last transform pass of ModUp runs in the kernel of the key product and counts there.
    """
    stages = [0, 0, 0]
    for record in records:
        moved = record["read_bytes"] + record["written_bytes"]
        label = record["stage"].split("/")[-1]
        if record["work"] == "key_multiply":
            stages[1] += moved
        elif label in ("key_switch", "mod_up"):
            stages[0] += moved
        elif label == "divide":
            stages[2] += moved
    return stages[0], stages[1], stages[2]


def document(records: Sequence[Record], ceilings: Ceilings) -> dict[str, Any]:
    """All tables as plain data."""
    return {
        "total": total(records, ceilings).as_dict(),
        "by_work": [row.as_dict() for row in by_work(records, ceilings)],
        "by_stage": [row.as_dict() for row in by_stage(records, ceilings)],
        "by_limbs": [row.as_dict() for row in by_limbs(records, ceilings, exact=True)],
        "by_kernel": [row.as_dict() for row in by_kernel(records, ceilings)],
    }
