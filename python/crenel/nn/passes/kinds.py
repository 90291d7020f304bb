"""Few kinds of bootstraps: each has keys, plaintexts and a recording of its own
(docs/theory/placement.md, "Kinds of bootstraps")."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

S = TypeVar("S")
Kinds: TypeAlias = frozenset[str]
SOLVED = 200  # sets of kinds that are looked at; of more, the best found is taken, and how far it may be off


@dataclass(frozen=True)
class Few:
    """Of how many kinds bootstraps may be.

    Attributes
    ----------
    most : kinds, at least 1; None: any number
    worth : share of the price that every kind saves at least: those that save less are left out
    """

    most: int | None = None
    worth: float = 0.0


@dataclass(frozen=True)
class Found(Generic[S]):
    """A solution, its price, and the kinds of its bootstraps."""

    price: float
    kinds: Kinds
    solution: S


@dataclass(frozen=True)
class Chosen(Generic[S]):
    """A solution of few kinds. None of so few is cheaper than the best by more than `above`."""

    found: Found[S]
    above: float = 0.0


Solve: TypeAlias = Callable[[Kinds], Found[S] | None]
"""The cheapest solution with bootstraps of some of these kinds, and of no other; None: there is none."""


def cheapest(solve: Solve[S], every: Kinds, few: Few, solved: int = SOLVED) -> Chosen[S] | None:
    """The cheapest solution of at most so many kinds; then kinds are left out, one by one, that it hardly
    takes more without. None: there is none.

    Exact, by branch and bound: where the cheapest solution of the kinds K has too many kinds U, a part of K,
    one of few kinds does without one of U; and the price of K bounds from below that of K without it. Where
    `solved` sets do not suffice, the best of those that were found by then.
    """
    best, above = _fewest(solve, every, len(every) if few.most is None else few.most, solved)
    if best is None:
        return None
    allowed = few.worth * best.price
    while few.worth:
        fewer = _without_one(solve, best)
        if fewer is None or fewer.price > best.price + allowed:
            break
        best = fewer
    return Chosen(best, above)


def _fewest(solve: Solve[S], every: Kinds, most: int, solved: int) -> tuple[Found[S] | None, float]:
    """The cheapest solution of so many kinds, and by how much it may be dearer than the least."""
    first = solve(every)
    if first is None or len(first.kinds) <= most:
        return first, 0.0
    best, known = _greedy(solve, first, most), {every}
    waiting = [(first.price, 0, every, first)]
    while waiting and len(known) < solved and (best is None or waiting[0][0] < best.price):
        _, _, kinds, found = heapq.heappop(waiting)
        if len(found.kinds) <= most:
            return found, 0.0  # the least of all that wait
        for fewer in (kinds - {kind} for kind in sorted(found.kinds)):
            if fewer not in known:
                known.add(fewer)
                made = solve(fewer)
                if made is not None and (best is None or made.price < best.price):
                    heapq.heappush(waiting, (made.price, len(known), fewer, made))
    if best is None or not waiting:
        return best, 0.0
    return best, max(best.price - waiting[0][0], 0.0)


def _greedy(solve: Solve[S], found: Found[S], most: int) -> Found[S] | None:
    """Without one kind after the other, each time the one that is missed least."""
    fewer: Found[S] | None = found
    while fewer is not None and len(fewer.kinds) > most:
        fewer = _without_one(solve, fewer)
    return fewer


def _without_one(solve: Solve[S], found: Found[S]) -> Found[S] | None:
    """The cheapest solution without one of a solution's kinds."""
    made = [solve(found.kinds - {kind}) for kind in sorted(found.kinds)]
    return min((one for one in made if one is not None), key=lambda one: one.price, default=None)
