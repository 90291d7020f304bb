"""One round of a network on slots, written once: on operands it computes, on `clear.Slots` it is simulated,
and on operands of which only the level is known (`demand`) it is planned. docs/theory/sign.md derives the
formulas.

A vector has `slots` slots and repeats the numbers of the network: once for radix 2, twice for radix 4, whose
six comparisons of a group of four stand at three places of either copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from crenel.workloads.sorting.comparator import Comparator, Factor
from crenel.workloads.sorting.network import Round
from crenel.workloads.stages import Stages, unmeasured

Reals = NDArray[np.float64]
TAIL = {2: 1, 4: 3}
"""Levels from the signs to the exchanged numbers, by radix; before, radix 4 spends one on masks."""


class Vector(Protocol):
    """What a round needs of an encrypted vector."""

    @property
    def level(self) -> int: ...

    def __add__(self: V, other: V) -> V: ...

    def __sub__(self: V, other: V) -> V: ...

    def __neg__(self: V) -> V: ...

    def rotate(self: V, steps: int) -> V: ...

    def rotate_many(self: V, steps: Sequence[int]) -> list[V]: ...


V = TypeVar("V", bound=Vector)
M = TypeVar("M")  # public numbers, one for each slot: an array, or encoded for a level
Taken = TypeVar("Taken", contravariant=True)


class Machine(Protocol[V, Taken]):
    """What a round needs besides: who multiplies and who bootstraps."""

    def mask(self, x: V, mask: Taken) -> V:
        """The product with public numbers: a level."""
        ...

    def multiply(self, a: V, b: V) -> V:
        """The product: a level."""
        ...

    def fourfold(self, x: V) -> V:
        """4 x, without a level."""
        ...

    def factor(self, x: V, factor: Factor, real: bool) -> V:
        """A factor of a comparator: as many levels as its depth. real: without an imaginary part."""
        ...

    def refresh(self, vectors: list[V]) -> list[V]:
        """The same vectors at the level after a bootstrap; two of them share one."""
        ...


@dataclass(frozen=True)
class Masks(Generic[M]):
    """The public numbers of a round; what differs between rounds of one radix besides the distance."""

    sign: tuple[M, ...]
    """Of the differences; none for radix 2."""
    exchange: tuple[M, ...]
    """Of the numbers that are exchanged."""


def masks(round_: Round, slots: int) -> Masks[Reals]:
    """For vectors of so many slots, a multiple of the network's size (of its double for radix 4)."""
    m, h = round_.size, round_.distance
    first, direction = round_.first.astype(np.float64), round_.direction.astype(np.float64)
    copies = slots // m
    if round_.radix == 2:
        return Masks((), (np.tile(first / 2, copies), np.tile(-first * direction / 2, copies)))
    place = (np.arange(m) // h) % 4
    none = np.zeros(m)

    def halves(one: Reals, two: Reals) -> Reals:
        return np.tile(np.concatenate([one, two]), copies // 2)

    sign = (
        halves(direction * (place <= 2), none),  # x_(i+h) - x_i: 01, 12, 23
        halves(none, direction * (place <= 1)),  # x_(i+2h) - x_i: 02, 13
        halves(none, direction * (place == 2)),  # x_(i+h) - x_(i-2h): 03
    )
    return Masks(sign, (halves(first / 4, none), halves(first / 16, none)))


def rotations(round_: Round, slots: int) -> set[int]:
    """Steps that the round rotates by, in (-slots/2, slots/2]."""
    h, m = round_.distance, round_.size
    steps = {h, -h} if round_.radix == 2 else {h, 2 * h, 3 * h, -h, -2 * h, -3 * h, m, m + h, m + 2 * h}
    signed = {(s + slots // 2 - 1) % slots - slots // 2 + 1 for s in steps}
    return signed - {0}


def differences(on: Machine[V, M], x: V, round_: Round, sign: Sequence[M]) -> V:
    """What is compared. Radix 2: x_(i+h) - x_i, no level. Radix 4: all six of every group, a level."""
    h = round_.distance
    if round_.radix == 2:
        return x.rotate(h) - x
    one, two, back = x.rotate_many([h, 2 * h, -2 * h])
    parts = [one - x, two - x, one - back]
    masked = [on.mask(part, mask) for part, mask in zip(parts, sign, strict=True)]
    return masked[0] + masked[1] + masked[2]


def compare(
    on: Machine[V, M], x: V, s: V, comparator: Comparator, radix: int, stages: Stages = unmeasured
) -> tuple[V, V]:
    """The numbers, and the signs of the differences s, with levels for the exchange. Rotates nothing: rounds
    of all distances share it.

    Bootstraps where levels run out: of the numbers and the unfinished signs together, for nothing else is
    alive there.
    """
    tail, last = TAIL[radix], len(comparator.factors)
    depths = [*(factor.depth for factor in comparator.factors), tail]
    for place, depth in enumerate(depths):
        if s.level < depth or (place == last and x.level < needs(radix)):
            with stages("bootstrap"):
                x, s = on.refresh([x, s])
        if place < last:
            # Errors have imaginary parts, which factors amplify where numbers are about equal: by more than a
            # thousand. A bootstrap of x + i s would add them to x.
            real = place in comparator.real or s.level - depth < depths[place + 1]
            real |= place + 1 == last and x.level < needs(radix)
            with stages("comparison"):
                s = on.factor(s, comparator.factors[place], real)
    return x, s


def exchange(
    on: Machine[V, M], columns: Sequence[V], signs: V, round_: Round, masks: Sequence[Sequence[M]]
) -> list[V]:
    """The columns after the round, by the signs of the differences. masks: `Masks.exchange` of each."""
    if round_.radix == 2:
        return [_exchange2(on, x, signs, round_, of) for x, of in zip(columns, masks, strict=True)]
    decide = _decisions(on, signs, round_)
    return [_exchange4(on, x, decide, round_, of) for x, of in zip(columns, masks, strict=True)]


def _exchange2(on: Machine[V, M], x: V, sign: V, round_: Round, of: Sequence[M]) -> V:
    # The first of a pair gains d (1 - sign(d)) / 2 where the pair is to ascend, d (1 + sign(d)) / 2
    # where not.
    h = round_.distance
    d = x.rotate(h) - x
    gain = on.mask(d, of[0]) + on.multiply(on.mask(d, of[1]), sign)
    return x + gain - gain.rotate(-h)


def _decisions(on: Machine[V, M], s: V, round_: Round) -> tuple[V, V, V, V]:
    """The comparisons of the first stage, and four times those of the second, selected by the first."""
    h, m = round_.distance, round_.size
    s12, s23, s02, s13, s03 = s.rotate_many([h, 2 * h, m, m + h, m + 2 * h])
    s01, s21 = s, -s12
    p, q = on.multiply(s13, s01 - s03), on.multiply(s13, s21 - s23)
    u, v = on.multiply(s02, s01 + s03 - s21 - s23), on.multiply(s02, p - q)
    mean, turn = s01 + s03 + s21 + s23, p + q
    return s02, s13, mean + turn + u + v, mean - turn - u + v


def _exchange4(on: Machine[V, M], x: V, decide: tuple[V, V, V, V], round_: Round, of: Sequence[M]) -> V:
    h, m = round_.distance, round_.size
    s02, s13, low, high = decide
    x1, x2, x3 = x.rotate_many([h, 2 * h, 3 * h])
    quarter, sixteenth = of
    d02, d13 = on.mask(x - x2, sixteenth), on.mask(x1 - x3, sixteenth)
    between = on.mask(x + x2 - x1 - x3, sixteenth)
    g, k = on.multiply(s02, d02), on.multiply(s13, d13)
    e, f = on.multiply(low, between + g - k), on.multiply(high, between - g + k)
    half = on.fourfold(g + k)  # of the difference between upper and lower pair
    gains = [half + e, half - e, f - half, -f - half]
    total = x + x1 + x2 + x3
    for place, own in enumerate((x, x1, x2, x3)):
        gains[place] = gains[place] + on.mask(total - on.fourfold(own), quarter)
    both = gains[0]
    for place in (1, 2, 3):
        both = both + gains[place].rotate(-place * h)
    return x + both + both.rotate(m)  # the second copy of the numbers gains what the first does


class Parts(Generic[V]):
    """The parts of rounds between which only bootstraps of other columns stand; each is a stage, or several.

    `recorded.RecordedParts` replays them.
    """

    def __init__(self, on: Machine[V, Reals], comparator: Comparator, stages: Stages = unmeasured) -> None:
        self.on, self.comparator, self.stages = on, comparator, stages

    def differences(self, x: V, round_: Round, of: Masks[Reals]) -> V:
        """What is compared."""
        with self.stages("differences"):
            return differences(self.on, x, round_, of.sign)

    def compare(self, x: V, s: V, radix: int) -> tuple[V, V]:
        """Numbers and signs."""
        return compare(self.on, x, s, self.comparator, radix, self.stages)

    def exchange(self, columns: list[V], signs: V, round_: Round, of: Masks[Reals]) -> list[V]:
        """The columns after the round."""
        with self.stages("exchange"):
            return exchange(self.on, columns, signs, round_, [of.exchange] * len(columns))


def run_round(parts: Parts[V], columns: Sequence[V], round_: Round, of: Masks[Reals]) -> list[V]:
    """A whole round: the first column is compared, all are exchanged."""
    on, x, others = parts.on, columns[0], list(columns[1:])
    if x.level < len(of.sign[:1]):
        with parts.stages("bootstrap"):
            x, *others = on.refresh([x, *others])
    x, s = parts.compare(x, parts.differences(x, round_, of), round_.radix)
    low = [place for place, column in enumerate(others) if column.level < needs(round_.radix)]
    if low:
        with parts.stages("bootstrap"):
            for place, fresh in zip(low, on.refresh([others[place] for place in low]), strict=True):
                others[place] = fresh
    return parts.exchange([x, *others], s, round_, of)


def needs(radix: int) -> int:
    """Levels of a column before the exchange: masks cost one beside the products with signs."""
    return max(TAIL[radix], 2)
