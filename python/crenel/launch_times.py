"""What a launch takes: a part that does not divide, and a part that goes with its work.

The account's bound of a launch divides without end: half the limbs, half the time. Launches do not. Grids
that leave multiprocessors idle, a kernel's start and its last blocks, latencies of memory that nothing
hides take what they take however little there is to do. Launches of one whole bootstrap, each counted by
itself, say how much: over the launches of a kernel time is, to some per cent, a constant and a multiple of
what the caches and the multipliers need together. ``bench/results/launches-boot40-h200.json`` has them;
``tools/fit_launches.py`` made it.

Pure arithmetic, like ``crenel.analyze``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crenel import analyze
from crenel.account import Record
from crenel.analyze import Ceilings

ENOUGH = 8  # launches of a kernel that its two numbers are fitted to
APART = 3.0  # how many times the work of the least the largest of them has, or they say nothing of a constant
OF_PARTS = "_spread"  # what a kernel's name ends in where it stores to other GPUs, too


@dataclass(frozen=True)
class LaunchTimes:
    """Of each kernel (seconds that do not divide, how many times its work it takes); ``rest``: of kernels
    that were not counted; ``ahead``: seconds by which a launch in a queue is shorter than when counted
    alone."""

    by_kernel: Mapping[str, tuple[float, float]]
    rest: tuple[float, float]
    ahead: float

    def seconds(self, record: Record, ceilings: Ceilings) -> float:
        """Of one launch in a queue. Keys and plaintexts come from memory, and no faster than that; what
        else may have fallen out of the caches is in the factor."""
        at_memory = record["streamed_bytes"] / ceilings.dram_read
        fixed, factor = self.by_kernel.get(record["kernel"].removesuffix(OF_PARTS), self.rest)
        counted = max(fixed + factor * work(record, ceilings), at_memory)
        return max(counted - self.ahead, ceilings.launch)


def work(record: Record, ceilings: Ceilings) -> float:
    """Seconds of a launch at the caches and at the multipliers, one after the other."""
    l2, _, arithmetic = analyze.times(record, ceilings, (0.0, 0.0))
    return l2 + arithmetic


def fitted(
    records: Sequence[Record], counted: Sequence[float], whole: float, ceilings: Ceilings
) -> LaunchTimes:
    """From launches, the seconds that each took alone, and those that all took in a queue.

    Least squares, weighted so that a launch's error counts by its square over the time. A kernel with few
    launches, or all of about one size, has the median of the others' constants, or its shortest time if that
    is less, and the factor that gives its sum.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for record, took in zip(records, counted, strict=True):
        found.setdefault(record["kernel"], []).append((work(record, ceilings), took))
    told = {kernel: _line(pairs) for kernel, pairs in found.items() if _tells(pairs)}
    rest = tuple(float(np.median([line[i] for line in told.values()])) for i in range(2))
    for kernel, pairs in found.items():
        if kernel not in told:
            fixed = min(rest[0], min(took for _, took in pairs))
            over = sum(took for _, took in pairs) - len(pairs) * fixed
            told[kernel] = (fixed, over / sum(need for need, _ in pairs))
    free = LaunchTimes(told, (rest[0], rest[1]), 0.0)
    alone = sum(free.seconds(record, ceilings) for record in records)
    return LaunchTimes(told, free.rest, (alone - whole) / len(records))


def _tells(pairs: Sequence[tuple[float, float]]) -> bool:
    needs = [need for need, _ in pairs]
    return len(pairs) >= ENOUGH and max(needs) >= APART * min(needs)


def _line(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    needs, took = (np.array(column) for column in zip(*pairs, strict=True))
    weights = took**-0.5
    columns = np.stack([np.ones_like(needs), needs], axis=1) * weights[:, None]
    fixed, factor = np.linalg.lstsq(columns, took * weights, rcond=None)[0]
    return float(fixed), float(factor)


def load_launch_times() -> LaunchTimes:
    """The numbers of ceilings.json."""
    found = analyze.data()["launches"]
    by_kernel = {name: (1e-6 * us, factor) for name, (us, factor) in found["by_kernel"].items()}
    us, factor = found["rest"]
    return LaunchTimes(by_kernel, (1e-6 * us, factor), 1e-6 * found["ahead_us"])


# Of a record, what the account says of a launch without what only people read.
COLUMNS = (
    "kernel",
    "work",
    "stage",
    "limbs",
    "polys",
    "read_bytes",
    "written_bytes",
    "streamed_bytes",
    "repeated_bytes",
    "multiply_adds",
    "butterflies",
)


def rows(records: Iterable[Record]) -> list[list[Any]]:
    """An account as rows of `COLUMNS`, for files."""
    return [[dict(record)[name] for name in COLUMNS] for record in records]


def records_of(columns: Sequence[str], found: Iterable[Sequence[Any]]) -> list[Record]:
    """The account back from a file's rows; columns that are no account's are left out."""
    known = [i for i, name in enumerate(columns) if name in COLUMNS]
    out: list[Any] = [{columns[i]: row[i] for i in known} for row in found]
    return out
