"""What of an account's traffic reaches the memory: a model of the cache over the launches in their order.

Launches state bytes, not addresses, so the model takes what is read to be what was used last. Between two
uses of a byte lies its *distance*: all distinct bytes that launches touched meanwhile, and half of those of
the two launches themselves. The share that is still in the cache at a distance is what the measured rate at
a working set of that size says (``hit_share``); nothing is fitted to a counter. docs/guide/traffic_account.md
compares it with counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from crenel.account import Record

# Kernels that write over what they read.
IN_PLACE = frozenset(
    ("column_forward", "column_inverse", "row_forward", "row_divide", "automorphism_add", "mul_add",
     "mul_add_scalar", "small_forward", "small_inverse")
)  # fmt: skip


@dataclass(frozen=True)
class CacheCurve:
    """Rate of reading and writing in place, over working sets in bytes, ascending; ``memory``: far beyond the
    cache. Rates in bytes a second."""

    points: tuple[tuple[float, float], ...]
    memory: float

    def rate(self, working_set: float) -> float:
        """Linear between measurements."""
        if working_set <= self.points[0][0]:
            return self.points[0][1]
        for (low, fast), (high, slow) in pairwise(self.points):
            if working_set <= high:
                return fast + (slow - fast) * (working_set - low) / (high - low)
        return self.memory

    def hit_share(self, distance: float) -> float:
        """Share of the bytes that come from the cache when each is used again after ``distance`` others: the
        time of a byte is that of a hit or that of a miss."""
        best, miss = 1 / self.points[0][1], 1 / self.memory
        return min(1.0, max(0.0, (miss - 1 / self.rate(distance)) / (miss - best)))


@dataclass
class _Piece:
    """Bytes of the cache that were last used at a time, counted in touched bytes."""

    size: float
    dirty: float
    used: float


def distinct(record: Record) -> int:
    """Bytes of data that a launch reads, each once: no tables, no keys."""
    return record["read_bytes"] - record["streamed_bytes"] - record.get("repeated_bytes", 0)


def touched(record: Record) -> int:
    """Distinct bytes that pass through the cache during a launch."""
    read, written = distinct(record), record["written_bytes"]
    both = max(read, written) if record["kernel"] in IN_PLACE else read + written
    return record["streamed_bytes"] + both


def dram_bytes(records: Iterable[Record], curve: CacheCurve) -> list[tuple[float, float]]:
    """(read, written) of the memory during each launch. What is written is written back by whoever pushes it
    out, what is left at the end by the last launch."""
    stack: list[_Piece] = []  # used last on top
    found: list[tuple[float, float]] = []
    now = 0.0
    for record in records:
        span = touched(record)
        at = now + span / 2
        wanted, written = distinct(record), record["written_bytes"]
        missed, back, dirty = _take(stack, wanted, at, curve)
        back += _age(stack, at, curve)
        over = min(wanted, written) if record["kernel"] in IN_PLACE else 0
        if wanted > over:  # what was read and stays as it is
            stack.append(_Piece(wanted - over, dirty * (wanted - over) / wanted, at))
        if written:
            stack.append(_Piece(written, written, at))
        now += span
        found.append((record["streamed_bytes"] + missed, back))
    if found:
        read, back = found[-1]
        found[-1] = read, back + sum(piece.dirty for piece in stack)
    return found


def _take(stack: list[_Piece], wanted: float, at: float, curve: CacheCurve) -> tuple[float, float, float]:
    """Takes bytes from the top: (not in the cache, written back meanwhile, still dirty)."""
    missed = back = dirty = 0.0
    while wanted > 0 and stack:
        piece = stack[-1]
        part = min(wanted, piece.size)
        share, own = curve.hit_share(at - piece.used), piece.dirty * part / piece.size
        missed += part * (1 - share)
        back += own * (1 - share)
        dirty += own * share
        piece.size -= part
        piece.dirty -= own
        wanted -= part
        if piece.size < 1:
            stack.pop()
    return missed + wanted, back, dirty


def _age(stack: list[_Piece], at: float, curve: CacheCurve) -> float:
    """Drops what is too old to be in the cache; returns what of it is written back."""
    old = [piece for piece in stack if curve.hit_share(at - piece.used) == 0.0]
    if old:
        stack[:] = [piece for piece in stack if curve.hit_share(at - piece.used) > 0.0]
    return sum(piece.dirty for piece in old)


def seconds(read: float, written: float, rates: Sequence[float]) -> float:
    """Of the memory, for so many bytes; ``rates``: read alone, written alone, both at once in equal parts."""
    both = min(read, written)
    return 2 * both / rates[2] + (read - both) / rates[0] + (written - both) / rates[1]
