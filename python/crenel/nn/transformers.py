"""Layers of transformers, of sequences (tokens, features), and encoders made of them.

Looking up embeddings is the client's: a table of weights read by secret numbers is no polynomial. Samples are
sequences of embedded tokens, of one length, a power of two: shorter ones are padded, and a mask names what is
read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crenel.errors import ParameterError
from crenel.nn import sequences
from crenel.nn.activations import GELU
from crenel.nn.composites import Attention
from crenel.nn.composites import LayerNorm as LayerNormOp
from crenel.nn.composites import Softmax as SoftmaxOp
from crenel.nn.modules import Linear, _numbers, _vector
from crenel.nn.networks import Residual, Sequential, _within
from crenel.nn.ops import Reals
from crenel.nn.trace import Module, Tracer


@dataclass(frozen=True, eq=False, init=False)
class LayerNorm(Module):
    """(x - mean) / sqrt(variance + epsilon) of every token's features, times weight, plus bias."""

    weight: Reals
    bias: Reals
    epsilon: float

    def __init__(self, weight: ArrayLike, bias: ArrayLike | None = None, epsilon: float = 1e-5) -> None:
        """weight, bias : (features,). Raises ParameterError for other shapes, for what is not finite, and for
        an epsilon that is negative or not finite."""
        object.__setattr__(self, "weight", _numbers(weight, 1, "weight"))
        object.__setattr__(self, "bias", _vector(bias, len(self.weight), 0.0, "bias"))
        if not 0.0 <= epsilon < np.inf:
            raise ParameterError(f"epsilon {epsilon}, expected at least 0", {"epsilon": str(epsilon)})
        object.__setattr__(self, "epsilon", float(epsilon))

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(LayerNormOp(self.weight, self.bias, self.epsilon), [value], place or "layer_norm")


@dataclass(frozen=True, eq=False)
class Softmax(Module):
    """exp(x) over its sum, of every token's features (the last axis)."""

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(SoftmaxOp(), [value], place or "softmax")


@dataclass(frozen=True, eq=False, init=False)
class MultiHeadAttention(Module):
    """softmax(Q K' / sqrt(width)) V in each head of (tokens, features), then a linear layer.

    Tokens must be a power of two, and no fewer than a head is wide.
    """

    heads: int
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    mask: Reals | None

    def __init__(
        self, heads: int, query: Linear, key: Linear, value: Linear, output: Linear,
        mask: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """
        Parameters
        ----------
        heads : divides the outputs of query, key and value; head h has the h-th part of them
        query, key, value, output : of every token
        mask : (tokens,), 1 for tokens that are read, 0 for padding, the same for all samples; default all

        Raises ParameterError for layers that are not `Linear`, for heads that do not divide the features, and
        for a mask of other numbers or of zeros alone.
        """
        for name, given in (("query", query), ("key", key), ("value", value), ("output", output)):
            if not isinstance(given, Linear):
                kind = type(given).__qualname__
                raise ParameterError(f"{name}: {kind}, expected a Linear", {"name": name, "type": kind})
        features = len(query.weight)
        right = isinstance(heads, (int, np.integer)) and not isinstance(heads, bool)
        if not right or heads < 1 or features % heads:
            raise ParameterError(
                f"heads {heads}, expected a divisor of the {features} features",
                {"heads": str(heads), "features": features},
            )
        values = (int(heads), query, key, value, output, _mask(mask))
        for name, found in zip(("heads", "query", "key", "value", "output", "mask"), values, strict=True):
            object.__setattr__(self, name, found)

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        name = place or "attention"
        if value is None:
            return None
        parts = [
            tracer.module(module, value, _within(name, part))
            for module, part in ((self.query, "query"), (self.key, "key"), (self.value, "value"))
        ]
        tokens = tracer.shape(value)[0]
        mask = np.ones(tokens) if self.mask is None else self.mask
        found = tracer.add(Attention(self.heads, mask), parts, name)
        return tracer.module(self.output, found, _within(name, "output"))


def _mask(mask: ArrayLike | None) -> Reals | None:
    """As it was given. Raises ParameterError for what does not name tokens by ones and zeros."""
    if mask is None:
        return None
    found = _numbers(mask, 1, "mask")
    if not np.isin(found, (0.0, 1.0)).all() or not found.any():
        raise ParameterError(
            "mask: expected ones for tokens that are read, at least one, and zeros",
            {"tokens": len(found), "read": float(found.sum())},
        )
    return found


@dataclass(frozen=True, eq=False, init=False)
class TokenMean(Module):
    """The mean of the tokens that a mask (tokens,) names, default all: (tokens, features) to (features,)."""

    mask: Reals | None

    def __init__(self, mask: ArrayLike | None = None) -> None:
        """Raises ParameterError for a mask of other numbers than 0 and 1, and for one of zeros alone."""
        object.__setattr__(self, "mask", _mask(mask))

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        if value is None:
            return None
        mask = np.ones(tracer.shape(value)[0]) if self.mask is None else self.mask
        return tracer.add(sequences.Pool(mask / mask.sum()), [value], place or "token_mean")


@dataclass(frozen=True, eq=False)
class Token(Module):
    """One token of a sequence: (tokens, features) to (features,)."""

    index: int = 0

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        if value is None:
            return None
        tokens = tracer.shape(value)[0]
        whole = isinstance(self.index, (int, np.integer)) and not isinstance(self.index, bool)
        if not whole or not 0 <= self.index < tokens:
            raise ParameterError(
                f"{place or 'token'}: token {self.index!r:.60} of {tokens}",
                {"index": f"{self.index!r:.60}", "tokens": tokens},
            )
        return tracer.add(sequences.Pool(np.eye(tokens)[self.index]), [value], place or "token")


def encoder_layer(
    weights: Mapping[str, ArrayLike], prefix: str, heads: int, mask: ArrayLike | None = None,
    epsilon: float = 1e-12,
) -> Sequential:  # fmt: skip
    """A layer of BERT: attention and a GELU network, each added to its input and normalised.

    weights : by the names of BERT's layers behind `prefix`, as ``attention.self.query.weight`` (outputs,
    inputs). Raises ParameterError naming what is missing.
    """

    def linear(name: str) -> Linear:
        return Linear(_of(weights, f"{prefix}{name}.weight"), _of(weights, f"{prefix}{name}.bias"))

    def norm(name: str) -> LayerNorm:
        weight, bias = (_of(weights, f"{prefix}{name}.LayerNorm.{part}") for part in ("weight", "bias"))
        return LayerNorm(weight, bias, epsilon)

    query, key, value = (linear(f"attention.self.{part}") for part in ("query", "key", "value"))
    attention = MultiHeadAttention(heads, query, key, value, linear("attention.output.dense"), mask)
    forward = Sequential(linear("intermediate.dense"), GELU(), linear("output.dense"))
    return Sequential(Residual(attention), norm("attention.output"), Residual(forward), norm("output"))


def bert(
    weights: Mapping[str, ArrayLike], layers: int, heads: int, *, mask: ArrayLike | None = None,
    epsilon: float = 1e-12, head: Sequence[Module] = (),
) -> Sequential:  # fmt: skip
    """BERT's encoder: (tokens, features) of normalised embeddings in, the last layer's tokens out, or what
    modules of `head` make of them. Raises as `encoder_layer`."""
    encoder = [encoder_layer(weights, f"encoder.layer.{k}.", heads, mask, epsilon) for k in range(layers)]
    return Sequential(*encoder, *head)


def _of(weights: Mapping[str, ArrayLike], name: str) -> ArrayLike:
    if name not in weights:
        raise ParameterError(f"no weights {name}", {"name": name})
    return weights[name]
