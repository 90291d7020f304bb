"""Which numbers are compared when: sorting networks as lists of rounds.

A round compares numbers `distance` apart. Where radix is 4 it is two stages of a merge at once, distances
2 h and h, on groups of four numbers i, i + h, i + 2 h, i + 3 h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Signs = NDArray[np.int8]


@dataclass(frozen=True)
class Round:
    """One comparison depth."""

    radix: int
    """2: pairs i, i + distance. 4: groups of four at multiples of `distance`."""
    distance: int
    size: int
    """Numbers of the network, a power of two."""
    period: int
    """Directions alternate at every multiple of it; `size` or more: all are alike."""
    descending: bool
    """Direction of the first group."""

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Places that are the first of their group."""
        inside = np.arange(self.size) & (self.distance * (self.radix - 1))
        return np.asarray(inside == 0, dtype=np.bool_)

    @cached_property
    def direction(self) -> Signs:
        """Of every place: 1 where its group is sorted ascending, -1 where descending."""
        odd = (np.arange(self.size) // self.period) & 1
        return np.where(odd ^ int(self.descending), -1, 1).astype(np.int8)


def merge(size: int, width: int, radix: int, descending: bool, period: int | None = None) -> list[Round]:
    """Rounds that sort bitonic sequences of `width` numbers each, which alternate in direction at every
    `period` (default: the width)."""
    distance = width // 2
    rounds = []
    while distance >= 1:
        if radix == 4 and distance >= 2:
            rounds.append(Round(4, distance // 2, size, period or width, descending))
            distance //= 4
        else:
            rounds.append(Round(2, distance, size, period or width, descending))
            distance //= 2
    return rounds


def sort(size: int, radix: int, descending: bool = False) -> list[Round]:
    """The bitonic network of Batcher (1968)."""
    rounds: list[Round] = []
    width = 2
    while width <= size:
        rounds += merge(size, width, radix, descending)
        width *= 2
    return rounds


def top(size: int, count: int, radix: int, largest: bool = True) -> list[Round]:
    """Rounds after which the first `count` places hold the largest (smallest) numbers, the first of them
    first.

    Blocks of `count`, rounded up to a power of two, are sorted, in turn up and down; then half of the blocks
    that are left is dropped at a time: of two blocks the elementwise larger numbers are the largest of both,
    a bitonic sequence, and are merged. What the dropped places hold then is of no meaning.
    """
    block = 1 << (count - 1).bit_length()
    rounds: list[Round] = []
    width = 2
    while width <= block:
        rounds += merge(size, width, radix, largest)
        width *= 2
    stride = block
    while stride < size:
        rounds.append(Round(2, stride, size, size, largest))
        rounds += merge(size, block, radix, largest, period=2 * stride)
        stride *= 2
    return rounds


def apply(rounds: list[Round], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The network with exact comparisons."""
    values = values.copy()
    for r in rounds:
        base = np.flatnonzero(r.first)
        places = base[:, None] + r.distance * np.arange(r.radix)
        group = np.sort(values[places], axis=1) if r.radix == 2 else _bitonic(values[places], r, base)
        up = (r.direction[base] > 0)[:, None]
        values[places] = np.where(up, group, group[:, ::-1]) if r.radix == 2 else group
    return values


def _bitonic(group: NDArray[np.float64], r: Round, base: NDArray[np.intp]) -> NDArray[np.float64]:
    sign = r.direction[base][:, None].astype(np.float64)
    group = group * sign
    group = np.hstack([np.minimum(group[:, :2], group[:, 2:]), np.maximum(group[:, :2], group[:, 2:])])
    pairs = np.sort(group.reshape(-1, 2, 2), axis=2).reshape(-1, 4)
    return pairs * sign
