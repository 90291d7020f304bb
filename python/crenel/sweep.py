"""One operation over limb counts and batches: how far its kernels use L2, the memory and the multipliers.

From the launches that a device states, at the ceilings of ``crenel.analyze``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from crenel import analyze, dram
from crenel.account import Record
from crenel.analyze import Ceilings, Row

# Works (`crenel.analyze.WORKS`) whose bandwidth over limbs is drawn together: every launch states one of
# them, whatever its kernel is called and how much is fused in it.
GROUPS = {
    "NTT": ("ntt",),
    "base conversion": ("base_conversion",),
    "products with keys": ("key_multiply",),
    "all else": ("elementwise", "automorphism", "sampling", "copy"),
}


@dataclass(frozen=True)
class Point:
    """An operation on a batch of ciphertexts of so many limbs."""

    limbs: int
    batch: int
    total: Row
    works: tuple[Row, ...]
    kernels: tuple[Row, ...]
    largest: int
    """Most distinct bytes, keys aside, that one launch touches."""

    def group(self, name: str) -> Row | None:
        """The works of ``GROUPS`` together; None where the operation has none of them."""
        rows = [row for row in self.works if row.name in GROUPS[name]]
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
        works, kernels = ([row.as_dict() for row in rows] for rows in (self.works, self.kernels))
        return {**facts, "total": self.total.as_dict(), "by_work": works, "by_kernel": kernels}


def point(records: Sequence[Record], ceilings: Ceilings, limbs: int, batch: int) -> Point:
    """Of the launches of one run."""
    largest = max((dram.touched(r) - r["streamed_bytes"] for r in records), default=0)
    whole = analyze.total(records, ceilings)
    works, kernels = analyze.by_work(records, ceilings), analyze.by_kernel(records, ceilings)
    return Point(limbs, batch, whole, tuple(works), tuple(kernels), largest)


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
