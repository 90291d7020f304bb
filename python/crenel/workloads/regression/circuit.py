"""Iterations of the training, written once: on ciphertexts they train, on clear slots they simulate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from crenel.workloads.regression.layout import Layout
from crenel.workloads.regression.schedule import Factors
from crenel.workloads.regression.sigmoid import Sigmoid
from crenel.workloads.stages import Stages

V = TypeVar("V")  # a batch of vectors
P = TypeVar("P")  # a plaintext vector
OnlyTaken = TypeVar("OnlyTaken", contravariant=True)


class Operations(Protocol[V, OnlyTaken]):
    """What an iteration is made of. Scales are canonical throughout: a product ends with its rescaling."""

    def level(self, a: V) -> int:
        """Products left."""
        ...

    def at(self, a: V, level: int) -> V:
        """The same at a lower level, or itself."""
        ...

    def add(self, a: V, b: V) -> V:
        """Sum. Level l, l -> l."""
        ...

    def add_number(self, a: V, number: float) -> V:
        """Sum with a number in all slots. Level l -> l."""
        ...

    def by_plaintext(self, a: V, plaintext: OnlyTaken) -> V:
        """Every vector times one plaintext of its level. Level l -> l - 1."""
        ...

    def product(self, a: V, b: V) -> V:
        """Every vector of a times that of b, or times the only one of b. Level l, l -> l - 1."""
        ...

    def dot(self, a: V, b: V) -> V:
        """One vector: the sum of the products of a's and b's. Level l, l -> l - 1."""
        ...

    def conjugate(self, a: V) -> V:
        """Complex conjugate. Level l -> l."""
        ...

    def sums(self, a: V, count: int, stride: int) -> V:
        """Slot i: the sum of `count` slots i, i + stride, ... Level l -> l."""
        ...

    def of_slots(self, a: V, slots: int) -> V:
        """A vector that repeats, as one of more or fewer slots. Level l -> l."""
        ...

    def refresh(self, a: Sequence[V]) -> list[V]:
        """Bootstraps of batches of one size: level 0 to that of the plan; copies of a vector are averaged."""
        ...


@dataclass(frozen=True)
class Block(Generic[V]):
    """Examples z = y (1, x) of a block, ready for the levels of the training."""

    examples: V
    """At the level that the first iteration and the highest state want."""
    conjugates: V
    """At the highest level of a state; of real packings the examples themselves."""


@dataclass(frozen=True)
class State(Generic[V]):
    """In units of the weights' range: batches of `ciphertexts` vectors, equal in all rows."""

    ahead: V
    """v, where the next gradient is taken."""
    weights: V
    """x = (1 - eta) w."""
    inner: V | None
    """u = mu z.v of the last iteration, a row's number in all of its columns; None after the first."""


@dataclass(frozen=True)
class Constants(Generic[P]):
    """Plaintexts of one iteration: arguments of a recording, which serves iterations of equal levels."""

    mask: P
    gradient: P
    half: P
    keep: P
    momentum: P


Encode = Callable[["NDArray[np.float64] | float", int], P]  # a vector, or a number in all slots; its level


def constants(
    layout: Layout, sigmoid: Sigmoid, weight_range: float, factors: Factors, level: int, encode: Encode[P]
) -> Constants[P]:
    """Of an iteration whose state is at `level`."""
    first_column = np.zeros((layout.rows, layout.columns))
    # The sum with the conjugate is twice the real part.
    first_column[:, 0] = sigmoid.mu * weight_range / layout.width
    gradient = factors.gradient / weight_range
    return Constants(
        mask=encode(first_column.reshape(-1), level - 1),
        gradient=encode(gradient, level - 1),
        half=encode(0.5 * gradient, level - 3),
        keep=encode(factors.keep, level - 3),
        momentum=encode(factors.momentum, level - 3),
    )


def first_constant(layout: Layout, weight_range: float, factors: Factors, level: int, encode: Encode[P]) -> P:
    """Of the first iteration, which leaves a state of `level`."""
    return encode(0.5 * factors.gradient / weight_range, level + 1)


def prepare(
    ops: Operations[V, P], layout: Layout, features: V, labels: V, first: int, highest: int
) -> Block[V]:
    """Labels into features, and the conjugates once.

    Parameters
    ----------
    first : level of the state that the first iteration leaves
    highest : level of the highest state
    """
    level = max(first + 1, highest)
    examples = ops.product(ops.at(features, level + 1), ops.at(labels, level + 1))
    conjugates = ops.at(examples, highest)
    return Block(examples, ops.conjugate(conjugates) if layout.paired else conjugates)


def begin(
    ops: Operations[V, P], layout: Layout, block: Block[V], half: P, level: int, stages: Stages
) -> State[V]:
    """The first iteration, from weights that are zero: the sigmoid is 1/2 everywhere, no momentum yet."""
    with stages("gradient"):
        step = ops.by_plaintext(ops.at(block.examples, level + 1), half)
    with stages("row sums"):
        step = ops.sums(step, layout.rows, layout.columns)
    return State(step, step, None)


def iterate(
    ops: Operations[V, P],
    layout: Layout,
    sigmoid: Sigmoid,
    state: State[V],
    block: Block[V],
    by: Constants[P],
    stages: Stages,
) -> State[V]:
    """One more, four levels down. docs/theory/training.md has why no part of it takes a fifth."""
    level = ops.level(state.ahead)
    ahead = ops.of_slots(state.ahead, layout.slots)
    weights = ops.of_slots(state.weights, layout.slots)
    with stages("inner products"):
        inner = ops.dot(ops.at(block.conjugates, level), ahead)
        if layout.paired:
            inner = ops.add(inner, ops.conjugate(inner))
    with stages("column sums"):
        inner = ops.sums(inner, layout.columns, 1)  # right in the first column alone
        inner = ops.sums(ops.by_plaintext(inner, by.mask), layout.columns, -1)
    with stages("gradient"):
        cubic = ops.add_number(ops.product(inner, inner), sigmoid.b)
        # Data come to each place from above: no level of the state is spent on their constants.
        step = ops.by_plaintext(ops.at(block.examples, level - 1), by.gradient)
        step = ops.product(ops.product(step, inner), cubic)
        step = ops.add(step, ops.by_plaintext(ops.at(block.examples, level - 3), by.half))
    with stages("row sums"):
        step = ops.sums(step, layout.rows, layout.columns)
    with stages("update"):
        new = ops.add(step, ops.by_plaintext(ops.at(ahead, level - 3), by.keep))
        further = ops.add(new, ops.by_plaintext(ops.at(weights, level - 3), by.momentum))
    return State(further, new, inner)


def refresh(ops: Operations[V, P], layout: Layout, state: State[V], stages: Stages) -> State[V]:
    """Both halves of the state at the highest level again.

    Noise differs from row to row. Left alone, it takes v and x apart, and momentum amplifies their difference
    until the training explodes; the trace at the beginning of a bootstrap of few slots averages it away.
    """
    with stages("refresh"):
        ahead = ops.of_slots(ops.at(state.ahead, 0), layout.columns)
        weights = ops.of_slots(ops.at(state.weights, 0), layout.columns)
        ahead, weights = ops.refresh([ahead, weights])
    return State(ahead, weights, state.inner)


def segment(
    ops: Operations[V, P],
    layout: Layout,
    sigmoid: Sigmoid,
    state: State[V],
    blocks: Sequence[Block[V]],
    by: Sequence[Constants[P]],
    stages: Stages,
    *,
    refreshed: bool,
    after: Callable[[], object] = lambda: None,
) -> State[V]:
    """Iterations in a row, one for each block, behind a refresh: what one recording holds.

    after : called when an iteration has been asked for
    """
    if refreshed:
        state = refresh(ops, layout, state, stages)
    for block, constant in zip(blocks, by, strict=True):
        state = iterate(ops, layout, sigmoid, state, block, constant, stages)
        after()
    return state


def scores(ops: Operations[V, P], layout: Layout, features: V, weights: V) -> V:
    """Inner products of rows and weights in the first column, in units of the weights' range; of pairs twice.

    Level l -> l - 1.
    """
    level = ops.level(weights)
    wide = ops.of_slots(weights, layout.slots)
    if layout.paired:
        wide = ops.conjugate(wide)
    inner = ops.dot(ops.at(features, level), wide)
    if layout.paired:
        inner = ops.add(inner, ops.conjugate(inner))
    return ops.sums(inner, layout.columns, 1)
