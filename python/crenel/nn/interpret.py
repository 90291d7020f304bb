"""How the steps of a plan are carried out: written once, over any vectors.

Three readings give the operations a meaning: `clear` (slots in float64, with a noise model), `encrypted`
(ciphertexts) and `counting` (levels, keys and costs alone). They cannot drift apart: they share this walk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from crenel.errors import StateError
from crenel.nn.blocks import by_feature, feature_transform, moves, roll_transform, shift_transform
from crenel.nn.layout import Layout
from crenel.nn.linear import SlotTransform, chain_map, empty_slots, slot_transform
from crenel.nn.ops import Reals
from crenel.nn.plan import (
    Boot,
    Contract,
    Evaluate,
    Multiply,
    Plan,
    Quadratic,
    Refresh,
    Step,
    Sum,
    Transform,
    Value,
    doublings,
    repeated,
    roll_of,
)  # fmt: skip
from crenel.nn.sequences import Scores

V = TypeVar("V")
Watch = Callable[[int, "list[V]"], object]


class Operations(Protocol[V]):
    """On vectors of slots, as many rows as samples. Scales are canonical throughout."""

    def at(self, a: V, level: int) -> V:
        """The same at a lower level, or itself."""
        ...

    def of_slots(self, a: V, slots: int) -> V:
        """More slots: the vector repeats; fewer: it repeated."""
        ...

    def transform(self, step: Transform | Contract, inputs: Sequence[V]) -> list[V]:
        """The products of a step's matrices with vectors of its slots. Level l -> l - 1."""
        ...

    def rotated(self, a: V, steps: Sequence[int]) -> list[V]:
        """Slot i: slot i + step, for each step. Level l -> l."""
        ...

    def inner(self, a: Sequence[V], b: Sequence[V]) -> V:
        """sum_k a[k] b[k], relinearised once. Level l, l -> l - 1."""
        ...

    def copies(self, step: Transform) -> tuple[int, int]:
        """Parts of the products that are summed, and their distance."""
        ...

    def biased(self, step: Transform, output: int, a: V) -> V:
        """With the constants of a step's output added. Level l -> l."""
        ...

    def sums(self, a: V, count: int, stride: int) -> V:
        """Slot i: the sum of `count` slots i, i + stride, ... Level l -> l."""
        ...

    def series(self, a: V, coefficients: Reals) -> V:
        """A Chebyshev series on [-1, 1]. Level l -> l - polynomial_depth(degree)."""
        ...

    def add(self, a: V, b: V) -> V:
        """Level l, l -> l."""
        ...

    def add_number(self, a: V, number: float) -> V:
        """A number in all slots. Level l -> l."""
        ...

    def negate(self, a: V) -> V:
        """Level l -> l."""
        ...

    def product(self, a: V, b: V) -> V:
        """Level l, l -> l - 1."""
        ...

    def refresh(self, a: Sequence[V], boot: Boot, level: int) -> list[V]:
        """Bootstraps of vectors of equal slots: level l -> `level`."""
        ...

    def level(self, a: V) -> int:
        """Levels left."""
        ...


def prepared(plan: Plan, step: Transform | Contract, outline: bool = False) -> SlotTransform:
    """The matrices of a step, as diagonals: decided by the plan alone. Of one group where all have the same.

    outline : numbers may be left out, for `SlotTransform`'s counts alone
    """
    result = plan.values[step.out]
    operands = [plan.values[k] for k in step.inputs]
    layouts = [v.layout for v in operands]
    if isinstance(step, Contract):
        return shift_transform(step.op, layouts[1], step.babies)
    found = replace(_matrix(step, layouts, operands, result, outline), babies=step.babies)
    if not result.fill:
        return found
    return replace(found, bias=np.where(empty_slots(result.layout), result.fill, found.bias))


def _matrix(
    step: Transform, layouts: Sequence[Layout], operands: Sequence[Value], result: Value, outline: bool
) -> SlotTransform:
    factors = [v.bound / result.bound for v in operands]
    roll = roll_of(step)
    if roll is not None:
        return roll_transform(roll, layouts[0], result.layout, factors[0])
    if by_feature(step.chains, [*layouts, result.layout]):
        return feature_transform(step.chains, layouts, result.layout, factors, result.bound)
    maps = [chain_map(chain, v.shape) for chain, v in zip(step.chains, layouts, strict=True)]
    inputs, output = [v.alone() for v in layouts], result.layout.alone()
    alone = slot_transform(maps, inputs, output, factors, result.bound, outline)
    return alone.interleaved(result.layout.images)


def scaled_factors(plan: Plan, step: Evaluate) -> list[Reals]:
    """Coefficients of a step's factors, of ciphertexts divided by their bounds."""
    *first, last = step.series.factors
    given, made = plan.values[step.inputs[0]].bound, plan.values[step.out].bound
    return [*first, last * ((given if step.series.gated else 1.0) / made)]


def walk(plan: Plan, ops: Operations[V], inputs: Sequence[V], watch: Watch[V] | None = None) -> list[V]:
    """The result's ciphertexts for the input's.

    watch : called with each value's number and ciphertexts when it is made

    A StateError of an operation, as of the model of errors where a polynomial's values do not fit the
    modulus, is raised with the origin of the value in front.
    """
    values: dict[int, list[V]] = {0: list(inputs)}
    last = {k: number for number, step in enumerate(plan.steps) for k in step.inputs}
    for number, step in enumerate(plan.steps):
        try:
            made = perform(plan, step, ops, [values[k] for k in step.inputs])
        except StateError as error:
            origin = plan.values[step.out].origin
            raise StateError(f"{origin}: {error}", error.fields | {"origin": origin}) from error
        values[step.out] = made
        if watch is not None:
            watch(step.out, made)
        for k in set(step.inputs):
            if last[k] == number and k != plan.output:
                del values[k]  # device memory is dear
    return values[plan.output]


def perform(plan: Plan, step: Step, ops: Operations[V], operands: Sequence[list[V]]) -> list[V]:
    """One step; operands: the ciphertexts of each input."""
    if isinstance(step, Contract):
        return _contract(plan, step, ops, *operands)
    lowered = [[ops.at(a, step.level) for a in operand] for operand in operands]
    if isinstance(step, Transform):
        return _transform(step, ops, lowered)
    if isinstance(step, Sum):
        total = lowered[0]
        for other in lowered[1:]:
            total = [ops.add(a, b) for a, b in zip(total, other, strict=True)]
        return total
    if isinstance(step, Refresh):
        return ops.refresh(lowered[0], step.boot, plan.values[step.out].level)
    if isinstance(step, Quadratic):
        return [_quadratic(plan, step, ops, a) for a in lowered[0]]
    if isinstance(step, Multiply):
        return _multiply(plan, step, ops, *lowered)
    return [_evaluate(plan, step, ops, a) for a in lowered[0]]


def _transform(step: Transform, ops: Operations[V], operands: Sequence[list[V]]) -> list[V]:
    count, stride = ops.copies(step)
    wide = [ops.of_slots(a, count * stride) for operand in operands for a in operand]
    made: list[V] = []
    for part in _parts(wide, repeated(step)):
        found = ops.transform(step, part)
        if count > 1:
            found = [ops.of_slots(ops.sums(a, count, stride), stride) for a in found]
        made += [ops.biased(step, k, a) for k, a in enumerate(found)]
    return made


def _parts(values: list[V], groups: int) -> list[list[V]]:
    size = len(values) // groups
    return [values[k : k + size] for k in range(0, len(values), size)]


def _multiply(plan: Plan, step: Multiply, ops: Operations[V], x: list[V], y: list[V]) -> list[V]:
    slots = plan.values[step.out].layout.slots
    factors = [ops.of_slots(b, slots) for b in y]
    return [ops.product(a, factors[k % len(factors)]) for k, a in enumerate(x)]


def _contract(plan: Plan, step: Contract, ops: Operations[V], moved: list[V], rolled: list[V]) -> list[V]:
    layout, result = plan.values[step.inputs[1]].layout, plan.values[step.out].layout
    inner, outer = rotations_of(plan, step)
    copies = layout.slots // result.slots
    made: list[V] = []
    for a, b in zip(moved, rolled, strict=True):
        shifted = ops.transform(step, [ops.at(b, step.level)])
        wide = ops.of_slots(ops.at(a, step.level - 1), layout.slots)
        factors = ops.rotated(wide, inner)
        found = ops.inner(factors, _of_sum(step, shifted, 0))
        for k, back in enumerate(outer[1:], 1):
            part = ops.inner(factors, _of_sum(step, shifted, k))
            found = ops.add(found, ops.rotated(part, [back])[0])
        if copies > 1:
            found = ops.of_slots(ops.sums(found, copies, result.slots), result.slots)
        made.append(found)
    return made


def rotations_of(plan: Plan, step: Contract) -> tuple[list[int], list[int]]:
    """Of a contraction's operand, and of its sums of products: `moves` in slots."""
    layout = plan.values[step.inputs[1]].layout
    row = layout.slots // layout.plane[0]
    inner, outer = ([k * row % layout.slots for k in rows] for rows in moves(step.op, step.babies))
    return inner, outer


def _of_sum(step: Contract, shifted: list[V], k: int) -> list[V]:
    """Those outputs of the shifts that meet the operand's moves in the k-th sum."""
    if not step.babies:
        return shifted
    whole = isinstance(step.op, Scores)
    return shifted[k * step.babies :][: step.babies] if whole else shifted[k :: step.babies]


def _quadratic(plan: Plan, step: Quadratic, ops: Operations[V], a: V) -> V:
    c0, c1, c2 = (float(c) for c in step.coefficients)
    bound = plan.values[step.inputs[0]].bound
    shift = c1 / (2.0 * c2)
    if shift:
        a = ops.add_number(a, shift / bound)
    found = ops.product(a, a)
    if c2 < 0:
        found = ops.negate(found)
    constant = (c0 - c2 * shift**2) / plan.values[step.out].bound
    return ops.add_number(found, constant) if constant else found


def _evaluate(plan: Plan, step: Evaluate, ops: Operations[V], a: V) -> V:
    found = a
    for _ in range(doublings(step.series, plan.values[step.inputs[0]].bound) or 0):
        found = ops.add(found, found)
    for factor in scaled_factors(plan, step):
        found = ops.series(found, factor)
    return ops.product(ops.at(a, ops.level(found)), found) if step.series.gated else found
