"""Baby and giant steps of all transforms of a plan, chosen together, so that they share rotations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from crenel import ckks
from crenel.nn.linear import SlotTransform
from crenel.nn.passes.prices import AbstractPrices
from crenel.nn.plan import Decision, Plan, Transform

KEY = 5e-4  # of a program's price: what one rotation more may cost, for each has a key of tens of mebibytes
ALL = 2000  # choices that are all looked at; of more, one or two transforms at a time are improved

Split: TypeAlias = tuple[int, float, frozenset[int]]
"""Baby steps, their price, and the rotations that they take."""


@dataclass(frozen=True)
class Splits:
    """%1 = transform(%0); %2 = transform(%1)  ->  %1 = transform by 16(%0); %2 = transform by 16(%1)

    The least price of all transforms and of the keys of all rotations that any of them takes.
    """

    prices: AbstractPrices

    def __call__(
        self, plan: Plan, transforms: Mapping[int, SlotTransform]
    ) -> tuple[Plan, dict[int, SlotTransform]]:
        """The plan at its levels, with its matrices, by the number of the value that a step makes."""
        steps = [step for step in plan.steps if isinstance(step, Transform)]
        alike: dict[tuple[object, ...], list[Transform]] = {}
        for step in steps:
            matrix = transforms[step.out]
            alike.setdefault((tuple(matrix.offsets), matrix.slots, matrix.ends), []).append(step)
        fixed = frozenset(k for step in steps for k in _sums(transforms[step.out]))
        fixed |= {
            k for out, m in transforms.items() if out not in {s.out for s in steps} for k in m.rotations()
        }
        groups = list(alike.values())
        options = [self._options(group, transforms) for group in groups]
        key = KEY * self.prices.total(plan, transforms)
        taken = chosen(options, fixed, key)
        babies = {step.out: split[0] for group, split in zip(groups, taken, strict=True) for step in group}
        before = [of_one[0] for of_one in options]
        if taken == before:
            return plan, dict(transforms)
        made = {k: replace(m, babies=babies.get(k, m.babies)) for k, m in transforms.items()}
        found = tuple(
            replace(step, babies=babies[step.out]) if isinstance(step, Transform) else step
            for step in plan.steps
        )
        counts = [len(_rotations(splits, fixed)) for splits in (taken, before)]
        spent = [sum(split[1] for split in splits) for splits in (taken, before)]
        decision = Decision(
            "rotations", f"{counts[0]} different ones in transforms",
            f"{counts[1]}, each transform split by itself",
            f"price of transforms {spent[0]:.6g}, not {spent[1]:.6g}; a key may cost {key:.3g}",
        )  # fmt: skip
        return replace(plan, steps=found, decisions=(*plan.decisions, decision)), made

    def _options(self, group: Sequence[Transform], transforms: Mapping[int, SlotTransform]) -> list[Split]:
        """Of transforms with the same diagonals; the first is the one that each takes by itself."""
        out: list[Split] = []
        matrix = transforms[group[0].out]
        babies = 0
        while babies <= matrix.slots:
            rotations = frozenset(matrix.rotations(babies))
            if all(rotations != there[2] for there in out):
                price = sum(
                    self.prices.transform(replace(transforms[step.out], babies=babies), step.level)
                    for step in group
                )
                out.append((babies, price, rotations))
            babies = max(2 * babies, 1)
        return out


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
