"""Executed counts without a GPU: static SASS times trip counts times warps.

For kernels whose loops' trips are known from their shape. The cross-check of what the profiler counts, and
the means to count instructions of code that no GPU has run yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from .sass import Function, SassError


def static_counts(
    function: Function, warps: int, trips: Sequence[float] = (), skipped: Sequence[int] = ()
) -> list[int]:
    """Executions of every block by a launch of so many warps, without a GPU. `trips`: of each loop, in the
    order of their headers, rounds an entry, mean over warps; `skipped`: blocks that no warp executes. All
    other branches are taken as going on (a guard that lets every warp pass). SassError when a loop has no
    trip count."""
    if len(trips) != len(function.loops):
        raise SassError(f"{function.name}: {len(function.loops)} loops, {len(trips)} trip counts")
    out = []
    for n in range(len(function.blocks)):
        rounds = float(warps)
        for loop, trip in zip(function.loops, trips, strict=True):
            if loop.header <= n <= loop.latch:
                rounds *= trip
        out.append(0 if n in skipped else round(rounds))
    return out


def instructions(function: Function, block_counts: Sequence[int]) -> int:
    """Warp instructions, of executions of every block."""
    return sum((b.last - b.first) * n for b, n in zip(function.blocks, block_counts, strict=True))
