"""Where the elements of a network's values lie: every layout that is known is priced, the least one taken."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np

from crenel.errors import UnsupportedError
from crenel.nn.graph import Graph
from crenel.nn.interpret import prepared
from crenel.nn.layout import Layout
from crenel.nn.linear import SlotTransform
from crenel.nn.ops import Op, Pair
from crenel.nn.passes.interleave import Interleave
from crenel.nn.passes.lower import Lower
from crenel.nn.passes.prices import AbstractPrices
from crenel.nn.plan import Contract, Decision, Plan, Transform

Levelled: TypeAlias = tuple[Plan, dict[int, SlotTransform]]
SIZES = 3  # of planes behind strides of which every choice is looked at; of more, all, none and one at a time
DEARER = 1.5  # times the least price of transforms alone: layouts beyond are not placed


@dataclass(frozen=True)
class Choice:
    """A way to lay a network out.

    Attributes
    ----------
    padded : planes whose rows and columns are powers of two
    dense : heights and widths of the values behind strides that lie in planes without gaps
    """

    padded: bool = False
    dense: frozenset[Pair] = frozenset()

    def __str__(self) -> str:
        planes = "padded planes" if self.padded else "planes"
        sizes = ", ".join(f"{height}x{width}" for height, width in sorted(self.dense, reverse=True))
        return planes + (f", {sizes} without gaps" if sizes else "")


@dataclass(frozen=True)
class Layouts:
    """%0 = input [3x12x12]  ->  %0 = input [3x12x12 planes 16x16], and so on behind it

    Levels, bootstraps and splits of every choice are found on the places of its diagonals alone; numbers are
    put there for the one that is taken.
    """

    prices: AbstractPrices
    interleave: Interleave
    levelled: Callable[[Plan, dict[int, SlotTransform]], Levelled]
    """From a plan without levels to one with them, and with the splits of its transforms."""

    def __call__(self, graph: Graph, bounds: tuple[float, ...]) -> Levelled:
        """Raises what lowering raises, and what levels raise where they do so for every choice."""
        known: dict[object, SlotTransform] = {}
        plain = self._lowered(graph, bounds, Choice())
        room = self.interleave.room(plain)
        choices = list(_choices(graph, plain))
        if len(choices) == 1:
            return self.levelled(self.interleave(plain), _matrices(self.interleave(plain)))
        outlined: list[tuple[Choice, Plan, dict[int, SlotTransform], float]] = []
        said: dict[Choice, str] = {}
        for choice in choices:
            plan = self._lowered(graph, bounds, choice)
            if self.interleave.room(plan) != room:
                said[choice] = "fewer samples a ciphertext"
                continue
            plan = self.interleave(plan)
            outlines = _outlines(plan, known)
            outlined.append((choice, plan, outlines, self._transforms(plan, outlines)))
        least = min(price for *_, price in outlined)
        found: list[tuple[float, int, Choice, Plan]] = []
        failure: UnsupportedError | None = None
        for number, (choice, plan, outlines, price) in enumerate(outlined):
            if price > DEARER * least:
                said[choice] = f"transforms alone {price / least:.2g} times the least"
                continue
            try:
                made, matrices = self.levelled(plan, outlines)
            except UnsupportedError as error:
                failure = failure or error
                said[choice] = "levels or times are missing"
                continue
            found.append((self.prices.total(made, matrices), number, choice, made))
            said[choice] = f"price {found[-1][0]:.6g}"
        if failure is not None and not found:
            raise failure
        price, _, chosen, plan = min(found, key=lambda one: one[:2])
        others = (f"{choice}: {why}" for choice, why in said.items() if choice != chosen)
        decision = Decision(
            "layouts", f"{chosen}; input {plan.values[0].layout}", "; ".join(others), f"price {price:.6g}"
        )
        return replace(plan, decisions=(decision, *plan.decisions)), _matrices(plan)

    def _lowered(self, graph: Graph, bounds: tuple[float, ...], choice: Choice) -> Plan:
        return Lower(self.prices.params.slots, choice.padded, choice.dense)(graph, bounds)

    def _transforms(self, plan: Plan, matrices: dict[int, SlotTransform]) -> float:
        """Of all transforms in the middle of the levels, where no level is known yet."""
        level = max(self.prices.params.normal_top_level // 2, 1)
        return sum(self.prices.of(s, matrices[s.out], 1, level) for s in plan.steps if s.out in matrices)


def _choices(graph: Graph, plain: Plan) -> Iterator[Choice]:
    """All there are, planes as they are first."""
    padded: tuple[bool, ...] = (False,)
    shape = graph.nodes[0].shape
    if len(shape) == 3:
        first = Layout.of(shape, plain.values[0].layout.capacity)
        padded = (False, True) if first.padded() != first else padded
    layouts = [value.layout for value in plain.values]
    sizes = sorted({v.size[1:] for v in layouts if v.gap != (1, 1) and v.size[1:] != (1, 1)}, reverse=True)
    counts = range(len(sizes) + 1) if len(sizes) <= SIZES else (0, 1, len(sizes))
    for dense in (some for count in counts for some in itertools.combinations(sizes, count)):
        for each in padded:
            yield Choice(each, frozenset(dense))


def _matrices(plan: Plan) -> dict[int, SlotTransform]:
    return {step.out: prepared(plan, step) for step in plan.steps if isinstance(step, (Transform, Contract))}


def _outlines(plan: Plan, known: dict[object, SlotTransform]) -> dict[int, SlotTransform]:
    """Matrices without numbers; those of like operations between like layouts are one."""
    found: dict[int, SlotTransform] = {}
    for step in plan.steps:
        if isinstance(step, Contract):
            found[step.out] = prepared(plan, step)
        elif isinstance(step, Transform):
            layouts = tuple(plan.values[k].layout for k in (*step.inputs, step.out))
            key = (tuple(tuple(map(_pattern, chain)) for chain in step.chains), layouts)
            if key not in known:
                known[key] = prepared(plan, step, outline=True)
            found[step.out] = known[key]
    return found


def _pattern(op: Op) -> object:
    """What decides where an operation's matrix has numbers: all but the numbers."""
    parts: list[object] = [op.name]
    for each in fields(op):  # type: ignore[arg-type]  # every operation is a dataclass
        value = getattr(op, each.name)
        if isinstance(value, np.ndarray):
            value = (value.shape, hashlib.sha256(np.packbits(value != 0.0).tobytes()).hexdigest())
        parts.append(value)
    return tuple(parts)
