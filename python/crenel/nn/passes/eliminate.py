"""Levels of the points of a core, by elimination one after the other: exact for every graph, and affordable
where few points depend on one another at once (docs/theory/placement.md, "Other graphs")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crenel.errors import UnsupportedError

LARGEST = 2**24
"""Entries of a table that an elimination makes, at most: 128 MiB."""

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Factor:
    """A price that depends on the levels of some points: one axis each."""

    points: tuple[str, ...]
    table: Table


def order_of(factors: Sequence[Factor], keep: frozenset[str], size: int) -> list[str]:
    """Points in the order in which they are eliminated: always the one with the fewest neighbours.

    Raises UnsupportedError, before any work, where a table would have more than `LARGEST` entries, naming the
    points that depend on one another.
    """
    near: dict[str, set[str]] = {}
    for factor in factors:
        for point in factor.points:
            near.setdefault(point, set()).update(factor.points)
    order = []
    while left := [p for p in near if p not in keep]:
        point = min(left, key=lambda p: (len(near[p]), p))
        group = near.pop(point)
        if size ** len(group) > LARGEST:
            names = sorted(p.removeprefix("> ") for p in group)
            raise UnsupportedError(
                f"levels of {len(group)} tensors depend on one another, {size} levels each: too many to "
                f"place exactly ({', '.join(names)}). Join branches earlier, or place parts of the network "
                "by themselves",
                {"tensors": len(group), "levels": size},
            )
        for other in group - {point}:
            near[other] |= group
            near[other].discard(point)
        order.append(point)
    return order


def eliminate(
    factors: Sequence[Factor], order: Sequence[str], size: int
) -> tuple[list[Factor], list[tuple[str, tuple[str, ...], Table]]]:
    """The lowest sums of the factors over the levels of the points of `order`: factors of the others, and for
    each point the table from which its level is read once those of the points named are known."""
    left, trail = list(factors), []
    for point in order:
        mine = [f for f in left if point in f.points]
        left = [f for f in left if point not in f.points]
        points = (*sorted({p for f in mine for p in f.points} - {point}), point)
        table = _sum(mine, points, size)
        trail.append((point, points[:-1], table))
        left.append(Factor(points[:-1], table.min(axis=-1)))
    return left, trail


def solve(factors: Sequence[Factor], order: Sequence[str], size: int) -> tuple[float, dict[str, int]]:
    """The lowest sum and the levels that give it; infinite where there are none."""
    left, trail = eliminate(factors, order, size)
    levels: dict[str, int] = {}
    for point, others, table in reversed(trail):
        levels[point] = int(table[tuple(levels[p] for p in others)].argmin())
    return float(_sum(left, (), size)), levels


def marginal(factors: Sequence[Factor], tail: str, head: str, size: int) -> Table:
    """The lowest sums by the levels [tail, head] of two points."""
    order = order_of(factors, frozenset((tail, head)), size)
    return _sum(eliminate(factors, order, size)[0], (tail, head), size)


def _sum(factors: Sequence[Factor], points: tuple[str, ...], size: int) -> Table:
    """Factors added up, with one axis for each of the points."""
    out = np.zeros((size,) * len(points))
    for factor in factors:
        axes = sorted(range(len(factor.points)), key=lambda a: points.index(factor.points[a]))
        shape = tuple(size if p in factor.points else 1 for p in points)
        out = out + factor.table.transpose(axes).reshape(shape)
    return out
