"""What lies in slots that hold no element of a value: zeros, or what polynomials can stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from crenel.nn.clear import Clear, Slots
from crenel.nn.graph import Graph, Node
from crenel.nn.interpret import perform
from crenel.nn.linear import SlotTransform, empty_slots
from crenel.nn.ops import Affine
from crenel.nn.plan import Decision, Evaluate, Plan, Quadratic, Refresh, Sum, Transform

BY_ELEMENT = (Evaluate, Quadratic, Sum, Refresh)
MOST = 1.0  # of a slot, in bounds: what elements reach


@dataclass(frozen=True)
class Fill:
    """%1 = transform(%0); %2 = evaluate(%1)  ->  %1 = transform(%0) fill 0.3; %2 = evaluate(%1)

    A polynomial takes the zero of a slot without an element to its value at 0, which samples need not have
    shown: a function that is fitted far from 0 may be anything there. Where that is more than elements reach,
    the transform before leaves the mean of its elements instead, with its constants: at no cost. Matrices of
    what reads such slots have zeros there.
    """

    means: Mapping[int, float]
    """Of the elements of each value on samples, in bounds."""

    def __call__(self, plan: Plan, transforms: Mapping[int, SlotTransform]) -> Plan:
        """Itself where zeros will do, and where the means would not."""
        beyond = strange(plan, transforms)
        filled = sources(plan, beyond) - {0}
        values = list(plan.values)
        for number in filled:
            mean = float(np.clip(self.means[number], -1.0, 1.0))
            values[number] = replace(values[number], fill=mean)
        found = replace(plan, values=tuple(values))
        if not filled or strange(found, transforms):
            return plan
        why = f"of 0 {', '.join(sorted({values[k].origin for k in beyond}))} would be out of range"
        decisions = [
            Decision(
                values[k].origin, f"slots without an element hold {values[k].fill:.4g} bounds", "zeros", why
            )
            for k in sorted(filled)
        ]  # fmt: skip
        return replace(found, decisions=(*plan.decisions, *decisions))


def strange(plan: Plan, transforms: Mapping[int, SlotTransform]) -> list[int]:
    """Values whose slots without an element hold more than elements reach."""
    ops = Clear({})
    held: dict[int, list[Slots]] = {0: [_one(0.0, plan.values[0].level)]}
    found: list[int] = []
    for step in plan.steps:
        value = plan.values[step.out]
        if isinstance(step, Transform) and fillable(plan, step, transforms[step.out]):
            held[step.out] = [_one(value.fill, value.level)]
        elif isinstance(step, BY_ELEMENT) and all(k in held for k in step.inputs):
            held[step.out] = perform(plan, step, ops, [held[k] for k in step.inputs])
            one = _one(float(held[step.out][0].values[0, 0]), value.level)
            held[step.out] = [one]
            if empty_slots(value.layout).any() and not abs(float(one.values[0, 0])) <= MOST:
                found.append(step.out)
    return found


def sources(plan: Plan, numbers: list[int]) -> set[int]:
    """Transforms, and 0 for the input, from which values come slot by slot."""
    made = {step.out: step for step in plan.steps}
    found, left = set[int](), list(numbers)
    while left:
        number = left.pop()
        step = made.get(number)
        if step is None or isinstance(step, Transform):
            found.add(number)
        elif isinstance(step, BY_ELEMENT):
            left += step.inputs
    return found


def behind_identity(graph: Graph, bounds: tuple[float, ...]) -> tuple[Graph, tuple[float, ...]]:
    """Everything reads a copy of the input that a transform makes, for a level: a client leaves zeros in
    slots without an element, and a transform may leave anything."""
    first = graph.nodes[0]
    ones = np.ones(first.shape[0])
    copy = Node(Affine(ones, np.zeros_like(ones)), (0,), first.shape, first.origin)
    behind = (replace(node, inputs=tuple(k + 1 for k in node.inputs)) for node in graph.nodes[1:])
    found = Graph((first, copy, *behind), graph.output + 1)
    return found.verify("fill"), (bounds[0], *bounds)


def fillable(plan: Plan, step: Transform, matrix: SlotTransform) -> bool:
    """May a transform's constants decide its slots without an element? Not where it treats those of tokens
    that are no power of two as tokens."""
    layout = plan.values[step.out].layout
    return matrix.each == layout.images and not layout.sequence


def _one(value: float, level: int) -> Slots:
    return Slots(np.array([[value]]), level)
