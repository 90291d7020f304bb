"""One operation over limb counts and batches: how far its kernels use L2, the memory and the multipliers.

From the launches that a device states, at the ceilings of ``crenel.analyze``; and from hardware counters,
where a record of them is given (``dev/kernels/ncu_account.sh`` makes one on a GPU host).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crenel import analyze, dram
from crenel.account import Record
from crenel.analyze import Ceilings, Row
from crenel.errors import ParameterError, SerializationError

COUNTERS = "crenel-ncu-account"
# Kernels that bandwidth over limbs is drawn of, as groups of their names.
GROUPS = {
    "NTT": (
        "column_forward",
        "row_forward",
        "row_inverse",
        "column_inverse",
        "small_forward",
        "small_inverse",
    ),
    "base conversion": ("base_convert",),
}


@dataclass(frozen=True)
class Point:
    """An operation on a batch of ciphertexts of so many limbs."""

    limbs: int
    batch: int
    total: Row
    kernels: tuple[Row, ...]
    largest: int
    """Most distinct bytes, keys aside, that one launch touches."""

    def group(self, name: str) -> Row | None:
        """The kernels of ``GROUPS`` together; None where the operation has none of them."""
        rows = [row for row in self.kernels if row.name in GROUPS[name]]
        if not rows:
            return None
        whole = Row(name)
        for row in rows:
            for field, value in vars(row).items():
                if field != "name":
                    setattr(whole, field, getattr(whole, field) + value)
        return whole

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        facts = {"limbs": self.limbs, "batch": self.batch, "largest_bytes": self.largest}
        kernels = [row.as_dict() for row in self.kernels]
        return {**facts, "total": self.total.as_dict(), "by_kernel": kernels}


def point(records: Sequence[Record], ceilings: Ceilings, limbs: int, batch: int) -> Point:
    """Of the launches of one run."""
    largest = max((dram.touched(r) - r["streamed_bytes"] for r in records), default=0)
    whole = analyze.total(records, ceilings)
    return Point(limbs, batch, whole, tuple(analyze.by_kernel(records, ceilings)), largest)


def levels_of(limbs: Sequence[int], steps: int) -> list[int]:
    """Levels whose limb counts (by level) are spread evenly, ascending, each limb count once."""
    first: dict[int, int] = {}
    for level, count in enumerate(limbs):
        first.setdefault(count, level)
    counts = sorted(first)
    if steps < 2 or len(counts) <= steps:
        return [first[count] for count in counts]
    wanted = [counts[0] + k * (counts[-1] - counts[0]) / (steps - 1) for k in range(steps)]
    near = dict.fromkeys(min(counts, key=lambda c, w=w: abs(c - w)) for w in wanted)  # type: ignore[misc]
    return [first[count] for count in near]


def sweep(
    run: Callable[[int, int], Sequence[Record]],
    limbs: Sequence[int],
    levels: Sequence[int],
    batches: Sequence[int],
    ceilings: Ceilings,
) -> list[Point]:
    """`run(level, batch)` returns the launches of one run; `limbs` by level."""
    return [point(run(level, batch), ceilings, limbs[level], batch) for batch in batches for level in levels]


@dataclass(frozen=True)
class Counted:
    """A kernel under hardware counters, over all its launches."""

    kernel: str
    launches: int
    us: float
    l2_bytes: float
    dram_bytes: float
    products: float
    """As the account states them; 0 where the record does not."""


def counters(path: Path, stages: Sequence[str] = ()) -> list[Counted]:
    """Kernels of a record of counters, longest first; of these outermost stages, or all.

    Raises
    ------
    SerializationError : not such a record
    ParameterError : it has none of these stages
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["kind"] != COUNTERS:
            raise ValueError(f"kind {data['kind']}")
        rows = [r for r in data["rows"] if not stages or r["stage"].split("/")[0] in stages]
        sums: dict[str, list[float]] = {}
        for row in rows:
            own = sums.setdefault(row["kernel"], [0, 0.0, 0.0, 0.0, 0.0])
            moved = row["read"] + row["written"]
            parts = (1, row["us"], moved, row["dram_bytes"], row.get("multiply_adds", 0))
            sums[row["kernel"]] = [a + b for a, b in zip(own, parts, strict=True)]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise SerializationError(
            f"{path}: expected a record of kind {COUNTERS}, found {error!r}", {"path": str(path)}
        ) from None
    if not sums:
        raise ParameterError(f"{path} has no launches of {', '.join(stages)}", {"path": str(path)})
    found = [Counted(name, int(n), us, l2, memory, p) for name, (n, us, l2, memory, p) in sums.items()]
    return sorted(found, key=lambda each: -each.us)


def utilisation(counted: Counted, ceilings: Ceilings) -> tuple[float, float]:
    """Shares of L2's and of the memory's measured rate that a kernel used, 0 to 1."""
    seconds = 1e-6 * counted.us
    return counted.l2_bytes / seconds / ceilings.l2, counted.dram_bytes / seconds / ceilings.dram
