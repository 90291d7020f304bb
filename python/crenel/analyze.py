"""Sums over the launches of an account, and the time that measured ceilings allow them.

Pure arithmetic on the dictionaries of ``crenel.Account.records``; running an operation is
``crenel.cli.analyze``'s part, drawing ``crenel.plot_traffic``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crenel.account import Record
from crenel.ceilings import Ceilings as Ceilings
from crenel.ceilings import data as data
from crenel.ceilings import load_ceilings as load_ceilings
from crenel.dram import dram_bytes, seconds

WORKS = ("ntt", "base_conversion", "key_multiply", "elementwise", "automorphism", "sampling", "copy")
LIMB_RANGE = 10  # output limbs in one row of the table by limb count
NO_STAGE = "(no stage)"


@dataclass
class Row:
    """Sums over a group of launches. Times are in seconds, each at one ceiling alone.

    ``dram_read_bytes`` and ``dram_written_bytes`` are keys and plaintexts, and what the model of
    ``crenel.dram`` finds to have fallen out of the cache.
    """

    name: str
    launches: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    streamed_bytes: int = 0
    multiply_adds: int = 0
    butterflies: int = 0
    dram_read_bytes: float = 0.0
    dram_written_bytes: float = 0.0
    l2_time: float = 0.0
    dram_time: float = 0.0
    arithmetic_time: float = 0.0
    launch_time: float = 0.0  # of starting them, where nothing hides it
    bound: float = 0.0  # sum over the launches of the longest of the first three
    paced: float = 0.0  # the same, but no launch is shorter than it takes to start one

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    @property
    def dram_bytes(self) -> float:
        return self.dram_read_bytes + self.dram_written_bytes

    def add(self, record: Record, ceilings: Ceilings, memory: tuple[float, float]) -> None:
        self.launches += 1
        self.read_bytes += record["read_bytes"]
        self.written_bytes += record["written_bytes"]
        self.streamed_bytes += record["streamed_bytes"]
        self.multiply_adds += record["multiply_adds"]
        self.butterflies += record["butterflies"]
        self.dram_read_bytes += memory[0]
        self.dram_written_bytes += memory[1]
        l2, at_memory, arithmetic = times(record, ceilings, memory)
        self.l2_time += l2
        self.dram_time += at_memory
        self.arithmetic_time += arithmetic
        start = ceilings.launch if record.get("replayed", True) else ceilings.launch_queued
        self.launch_time += start
        self.bound += max(l2, at_memory, arithmetic)
        self.paced += max(l2, at_memory, arithmetic, start)

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "bytes": self.bytes, "dram_bytes": self.dram_bytes}


def memory_bytes(records: Iterable[Record], ceilings: Ceilings) -> list[tuple[float, float]]:
    """(read, written) of the memory during each launch."""
    curve = ceilings.curve
    if curve is None:
        return [(float(record["streamed_bytes"]), 0.0) for record in records]
    return dram_bytes(records, curve)


def times(record: Record, ceilings: Ceilings, memory: tuple[float, float]) -> tuple[float, float, float]:
    """Seconds that one launch needs at the cache, at the memory for these bytes (read, written), and at the
    multipliers."""
    moved = (record["read_bytes"] + record["written_bytes"]) / ceilings.l2
    l2 = max(moved, record["written_bytes"] / ceilings.l2_write)
    at_memory = seconds(*memory, (ceilings.dram_read, ceilings.dram_write, ceilings.dram))
    others = record["multiply_adds"] - record["butterflies"]
    arithmetic = record["butterflies"] / ceilings.butterfly + others / ceilings.multiply_add
    return l2, at_memory, arithmetic


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
    """One row a value of ``key``, in the given order, then in that of appearance. The launches of a whole
    computation: what stays in the cache depends on those before."""
    records = list(records)

    def of_field(record: Record) -> str:
        fields: Mapping[str, object] = record
        return str(fields[str(key)])

    name = key if callable(key) else of_field
    rows: dict[str, Row] = {}
    for record, memory in zip(records, memory_bytes(records, ceilings), strict=True):
        rows.setdefault(name(record), Row(name(record))).add(record, ceilings, memory)
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
