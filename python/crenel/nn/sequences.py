"""Primitives on sequences, (tokens, features), and on pairs of values: what attention comes down to.

Features of attention are numbered (group, feature, head): the heads of a group share a ciphertext, and heads
run fastest. Scores are a sequence too: feature (group, offset, head) of token i is the score of query i for
key i + offset, counted around the tokens (docs/theory/attention.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crenel.errors import ParameterError
from crenel.nn.ops import OPS, Op, Reals, Shape, _array, _equal


def sequence(shape: Shape, what: str) -> tuple[int, int]:
    """Tokens and features. Raises ParameterError for a tensor of other axes."""
    if len(shape) != 2:
        raise ParameterError(
            f"{what} of a tensor of shape {shape}, expected (tokens, features)",
            {"operation": what, "shape": list(shape)},
        )
    return shape[0], shape[1]


def _divides(part: int, whole: int, what: str) -> None:
    if part < 1 or whole % part:
        raise ParameterError(f"{what}: {part} does not divide {whole}", {"found": part, "expected": whole})


@dataclass(frozen=True, eq=False)
class Weigh(Op):
    """Every element times its weight (tokens, features)."""

    weight: Reals
    name: ClassVar[str] = "weigh"

    def shape(self, *inputs: Shape) -> Shape:
        sequence(inputs[0], self.name)
        _array(self.weight, inputs[0], "weight of elements")
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        return np.asarray(inputs[0] * self.weight)


@dataclass(frozen=True, eq=False)
class Pool(Op):
    """sum_t weight[t] x[t]: one token, or a mean of tokens; weight (tokens,)."""

    weight: Reals
    name: ClassVar[str] = "pool"

    def shape(self, *inputs: Shape) -> Shape:
        tokens, features = sequence(inputs[0], self.name)
        _array(self.weight, (tokens,), "weight of tokens")
        return (features,)

    def __call__(self, *inputs: Reals) -> Reals:
        return np.asarray(np.einsum("t,ntf->nf", self.weight, inputs[0]))


@dataclass(frozen=True, eq=False)
class Grouped(Op):
    """The same tensor; its features in equal groups, each of which begins a ciphertext."""

    groups: int
    name: ClassVar[str] = "grouped"

    def shape(self, *inputs: Shape) -> Shape:
        _divides(self.groups, sequence(inputs[0], self.name)[1], "groups of features")
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        return inputs[0]


@dataclass(frozen=True, eq=False)
class Roll(Op):
    """Offsets beside features: y[b, (g, a, h)] = z[(a + b) mod T, (g, a mod width, h)], z = matrix x over
    tokens; matrix (T, T). From groups of width x heads features to groups of T x heads."""

    matrix: Reals
    groups: int
    width: int
    name: ClassVar[str] = "roll"

    def shape(self, *inputs: Shape) -> Shape:
        tokens, features = sequence(inputs[0], self.name)
        _array(self.matrix, (tokens, tokens), "matrix of tokens")
        _divides(self.groups * self.width, features, "width of heads")
        _divides(self.width, tokens, "width of heads")
        return (tokens, features // self.width * tokens)

    def __call__(self, *inputs: Reals) -> Reals:
        count, tokens, features = inputs[0].shape
        mixed = np.matmul(self.matrix, inputs[0])
        heads = features // (self.groups * self.width)
        parts = mixed.reshape(count, tokens, self.groups, self.width, heads)
        token, offset = np.indices((tokens, tokens))
        found = parts[:, (token + offset) % tokens, :, offset % self.width]
        found = found.transpose(2, 0, 3, 1, 4)  # NumPy puts the indexed axes first
        return np.ascontiguousarray(found).reshape(count, tokens, -1)


class Bilinear(Op):
    """A product of two values. `tuned` is the operand whose bound gives way, so that the product has its own:
    a factor between them costs no level where that operand is made."""

    linear: ClassVar[bool] = False
    tuned: ClassVar[int]


@dataclass(frozen=True, eq=False)
class Product(Bilinear):
    """x[t, (g, f, h)] y[t, (g, h)]: element by element, with one factor for all f of a head."""

    groups: int
    name: ClassVar[str] = "product"
    tuned: ClassVar[int] = 1

    def shape(self, *inputs: Shape) -> Shape:
        (tokens, features), (others, factors) = (sequence(shape, self.name) for shape in inputs)
        _equal(tokens, others, "tokens of a product")
        _divides(factors, features, "factors of a product")
        _divides(self.groups, factors, "groups of a product")
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        x, y = inputs
        heads = y.shape[2] // self.groups
        parts = x.reshape(*x.shape[:2], self.groups, -1, heads)
        return np.asarray(parts * y.reshape(*y.shape[:2], self.groups, 1, heads)).reshape(x.shape)


@dataclass(frozen=True, eq=False)
class Contraction(Bilinear):
    """A product summed over `width` features, or over all tokens; the second operand is rolled."""

    groups: int
    width: int

    def _heads(self, name: str, queries: Shape, rolled: Shape, per_token: int) -> int:
        tokens, features = sequence(rolled, name)
        _divides(self.groups * tokens, features, "offsets of a rolled value")
        heads = features // (self.groups * tokens)
        _equal(sequence(queries, name)[0], tokens, "tokens of a product")
        _equal(queries[1], self.groups * per_token * heads, "features of a product")
        _divides(self.width, tokens, "width of heads")
        return heads

    def _unrolled(self, rolled: Reals) -> Reals:
        """The value before it was rolled: (count, groups, heads, tokens, width)."""
        count, tokens, _ = rolled.shape
        parts = rolled.reshape(count, tokens, self.groups, tokens, -1)
        token, feature = np.indices((tokens, self.width))
        return np.asarray(parts[:, (token - feature) % tokens, :, feature].transpose(2, 3, 4, 0, 1))


@dataclass(frozen=True, eq=False)
class Scores(Contraction):
    """s[b, (g, a, h)] = sum_f q[b, (g, f, h)] k[(a + b) mod T, (g, f, h)], of q and the rolled k."""

    name: ClassVar[str] = "scores"
    tuned: ClassVar[int] = 0

    def shape(self, *inputs: Shape) -> Shape:
        self._heads(self.name, inputs[0], inputs[1], self.width)
        return inputs[1]

    def __call__(self, *inputs: Reals) -> Reals:
        q, rolled = inputs
        count, tokens, _ = q.shape
        keys = self._unrolled(rolled)
        queries = q.reshape(count, tokens, self.groups, self.width, -1).transpose(0, 2, 4, 1, 3)
        scores = np.matmul(queries, keys.transpose(0, 1, 2, 4, 3))
        token, offset = np.indices((tokens, tokens))
        found = scores[:, :, :, token, (token + offset) % tokens]  # (count, groups, heads, token, offset)
        return np.ascontiguousarray(found.transpose(0, 3, 1, 4, 2)).reshape(rolled.shape)


@dataclass(frozen=True, eq=False)
class Attend(Contraction):
    """o[b, (g, f, h)] = sum_a e[b, (g, a, h)] v[(a + b) mod T, (g, f, h)], of e and the rolled v."""

    name: ClassVar[str] = "attend"
    tuned: ClassVar[int] = 1

    def shape(self, *inputs: Shape) -> Shape:
        tokens = sequence(inputs[0], self.name)[0]
        heads = self._heads(self.name, inputs[0], inputs[1], tokens)
        return (tokens, self.groups * self.width * heads)

    def __call__(self, *inputs: Reals) -> Reals:
        e, rolled = inputs
        count, tokens, _ = e.shape
        parts = e.reshape(count, tokens, self.groups, tokens, -1)
        token, other = np.indices((tokens, tokens))
        weights = parts[:, token, :, (other - token) % tokens].transpose(2, 3, 4, 0, 1)
        found = np.matmul(weights, self._unrolled(rolled))  # (count, groups, heads, token, feature)
        return np.ascontiguousarray(found.transpose(0, 3, 1, 4, 2)).reshape(count, tokens, -1)


OPS.update({kind.name: kind for kind in (Weigh, Pool, Grouped, Roll, Product, Scores, Attend)})
