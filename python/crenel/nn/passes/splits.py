"""Baby and giant steps of all transforms and contractions, chosen together: they share rotations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from crenel import ckks
from crenel.nn.interpret import prepared, rotations_of
from crenel.nn.linear import SlotTransform
from crenel.nn.passes.prices import AbstractPrices
from crenel.nn.plan import Contract, Decision, Plan, Step, Transform

KEY = 5e-4  # of a program's price: what one rotation more may cost, for each has a key of tens of mebibytes
ALL = 2000  # choices that are all looked at; of more, one or two transforms at a time are improved

Split: TypeAlias = tuple[int, float, frozenset[int]]
"""Baby steps, their price, and the rotations that they take."""


@dataclass(frozen=True)
class Splits:
    """%1 = transform(%0); %2 = transform(%1)  ->  %1 = transform by 16(%0); %2 = transform by 16(%1)

    The least price of all transforms and contractions and of the keys of all rotations that any of them
    takes.
    """

    prices: AbstractPrices

    def __call__(
        self, plan: Plan, transforms: Mapping[int, SlotTransform]
    ) -> tuple[Plan, dict[int, SlotTransform]]:
        """The plan at its levels, with its matrices, by the number of the value that a step makes."""
        alike: dict[tuple[object, ...], list[Transform | Contract]] = {}
        for step in plan.steps:
            if isinstance(step, (Transform, Contract)):
                matrix = transforms[step.out]
                kind = type(step.op) if isinstance(step, Contract) else Transform
                alike.setdefault((kind, tuple(matrix.offsets), matrix.slots, matrix.ends), []).append(step)
        fixed = frozenset(k for matrix in transforms.values() for k in _sums(matrix))
        groups = list(alike.values())
        options = [self._options(plan, group, transforms) for group in groups]
        key = KEY * self.prices.total(plan, transforms)
        taken = chosen(options, fixed, key)
        babies = {step.out: split[0] for group, split in zip(groups, taken, strict=True) for step in group}
        before = [of_one[0] for of_one in options]
        if taken == before:
            return plan, dict(transforms)
        found = tuple(
            replace(step, babies=babies[step.out]) if isinstance(step, (Transform, Contract)) else step
            for step in plan.steps
        )
        split = replace(plan, steps=found)
        made = {
            step.out: _with(split, step, transforms[step.out])
            for step in found
            if isinstance(step, (Transform, Contract))
        }
        counts = [len(_rotations(splits, fixed)) for splits in (taken, before)]
        spent = [sum(split[1] for split in splits) for splits in (taken, before)]
        decision = Decision(
            "rotations", f"{counts[0]} different ones in transforms{_folded(found)}",
            f"{counts[1]}, each transform split by itself",
            f"price of transforms {spent[0]:.6g}, not {spent[1]:.6g}; a key may cost {key:.3g}",
        )  # fmt: skip
        return replace(split, decisions=(*plan.decisions, decision)), made

    def _options(
        self, plan: Plan, group: Sequence[Transform | Contract], transforms: Mapping[int, SlotTransform]
    ) -> list[Split]:
        """Of steps with the same diagonals; the first is the one that each takes by itself."""
        out: list[Split] = []
        first = group[0]
        most = first.op.width // 2 if isinstance(first, Contract) else transforms[first.out].slots
        babies = 0
        while babies <= most:
            split = [replace(step, babies=babies) for step in group]
            matrices = [_with(plan, step, transforms[step.out]) for step in split]
            rotations = frozenset(matrices[0].rotations()) | _moves(plan, split[0])
            if all(rotations != there[2] for there in out):
                price = sum(
                    self.prices.of(step, matrix, 1, step.level)
                    for step, matrix in zip(split, matrices, strict=True)
                )
                out.append((babies, price, rotations))
            babies = max(2 * babies, 1)
        return out


def _with(plan: Plan, step: Transform | Contract, matrix: SlotTransform) -> SlotTransform:
    """The matrix of a step with its baby steps, from one with others."""
    if isinstance(step, Contract):
        return prepared(plan, step)
    return replace(matrix, babies=step.babies)


def _moves(plan: Plan, step: Transform | Contract) -> frozenset[int]:
    """Rotations of a contraction besides its matrix's."""
    if isinstance(step, Transform):
        return frozenset()
    return frozenset(k for rows in rotations_of(plan, step) for k in rows) - {0}


def _folded(steps: Sequence[Step]) -> str:
    """Of contractions in baby and giant steps."""
    found = sorted({(s.op.name, s.babies) for s in steps if isinstance(s, Contract) and s.babies})
    return "".join(f", {name} by {babies}" for name, babies in found)


def chosen(options: Sequence[Sequence[Split]], fixed: Set[int], key: float) -> list[Split]:
    """One of each, with the least sum of prices and of `key` times the different rotations.

    Exact where there are at most `ALL` choices; else what no change of one or two improves.
    """

    def value(splits: Iterable[Split]) -> float:
        splits = list(splits)
        return sum(split[1] for split in splits) + key * len(_rotations(splits, fixed))

    if math.prod(len(of_one) for of_one in options) <= ALL:
        return list(min(itertools.product(*options), key=value))
    best = [of_one[0] for of_one in options]
    least, improved = value(best), True
    while improved:
        improved = False
        for i, j in itertools.combinations_with_replacement(range(len(options)), 2):
            for a, b in itertools.product(options[i], options[j] if j > i else options[i][:1]):
                tried = list(best)
                tried[j] = b if j > i else a
                tried[i] = a
                if (found := value(tried)) < least:
                    best, least, improved = tried, found, True
    return best


def _rotations(splits: Sequence[Split], fixed: Set[int]) -> set[int]:
    return set(fixed).union(*(split[2] for split in splits))


def _sums(matrix: SlotTransform) -> list[int]:
    return ckks.sum_slots_rotations(matrix.copies, matrix.slots // matrix.copies) if matrix.copies > 1 else []
