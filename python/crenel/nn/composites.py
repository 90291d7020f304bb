"""Layers of transformers as single operations, exact in float64; `passes.unfold` takes them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crenel.nn.ops import Op, Reals, Shape, _array, _equal
from crenel.nn.sequences import _divides, sequence


class Composite(Op):
    """An operation that ciphertexts do not have; none is left after `Unfold`."""

    linear: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class LayerNorm(Composite):
    """(x - mean) / sqrt(variance + epsilon) of every token's features, times weight, plus bias."""

    weight: Reals
    bias: Reals
    epsilon: float
    name: ClassVar[str] = "layer_norm"

    def shape(self, *inputs: Shape) -> Shape:
        _, features = sequence(inputs[0], self.name)
        _array(self.weight, (None,), "weight of a norm")
        _array(self.bias, self.weight.shape, "bias of a norm")
        _equal(features, len(self.weight), "features of a norm")
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        centred = inputs[0] - inputs[0].mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return np.asarray(centred / np.sqrt(variance + self.epsilon) * self.weight + self.bias)


@dataclass(frozen=True, eq=False)
class Softmax(Composite):
    """exp(x) over its sum, of every token's features."""

    name: ClassVar[str] = "softmax"

    def shape(self, *inputs: Shape) -> Shape:
        sequence(inputs[0], self.name)
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        return softmax(inputs[0])


@dataclass(frozen=True, eq=False)
class Attention(Composite):
    """softmax(q k' / sqrt(width)) v in each head, heads side by side: features (head, width).

    mask : (tokens,), 1 for tokens that are read and 0 for padding, whose own results mean nothing
    """

    heads: int
    mask: Reals
    name: ClassVar[str] = "attention"

    def shape(self, *inputs: Shape) -> Shape:
        tokens, features = sequence(inputs[0], self.name)
        _divides(self.heads, features, "heads of attention")
        _array(self.mask, (tokens,), "mask of tokens")
        for other in inputs[1:]:
            _equal(other[0], tokens, "tokens of attention")
            _equal(other[1], features, "features of attention")
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        q, k, v = (x.reshape(*x.shape[:2], self.heads, -1).transpose(0, 2, 1, 3) for x in inputs)
        scores = np.matmul(q, k.transpose(0, 1, 3, 2)) / np.sqrt(q.shape[3])
        weights = softmax(np.where(self.mask > 0, scores, -np.inf))
        return np.asarray(np.matmul(weights, v).transpose(0, 2, 1, 3)).reshape(inputs[0].shape)


def softmax(scores: Reals) -> Reals:
    """Over the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
