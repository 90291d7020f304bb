"""Layers of a trained network: frozen, weights as NumPy arrays, ``layer(x)`` their meaning in float64.

Shapes are those of one sample, (features,) or (channels, height, width); a call takes samples in front. What
a layer means is said once, by the operations that it adds to a graph (`crenel.nn.ops`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crenel.errors import ParameterError
from crenel.nn import ops
from crenel.nn.functions import reals
from crenel.nn.ops import Pair, Reals
from crenel.nn.trace import Module, Tracer

MOST_PADDING = 4096  # a plane padded so is one of 2^26 places, the most that a program's tensor has


def _numbers(values: ArrayLike, axes: int, what: str) -> Reals:
    found = np.array(reals(values, what))
    if found.ndim != axes or 0 in found.shape:
        raise ParameterError(
            f"{what} of shape {found.shape}, expected {axes} axes of at least one",
            {"what": what, "shape": list(found.shape)},
        )
    if not np.isfinite(found).all():
        where = [int(k) for k in np.argwhere(~np.isfinite(found))[0]]
        raise ParameterError(f"{what}: the number at {where} is not finite", {"what": what, "index": where})
    found.setflags(write=False)
    return found


def _vector(values: ArrayLike | None, length: int, otherwise: float, what: str) -> Reals:
    found = _numbers(np.full(length, otherwise) if values is None else values, 1, what)
    if len(found) != length:
        raise ParameterError(
            f"{what} of length {len(found)}, expected {length}",
            {"what": what, "length": len(found), "expected": length},
        )
    return found


def _pair(value: int | Pair, least: int, what: str, most: float = math.inf) -> Pair:
    both = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2 or any(
        isinstance(v, bool) or not isinstance(v, (int, np.integer)) or not least <= v <= most for v in both
    ):
        upper = "on" if most == math.inf else f"to {most}"
        raise ParameterError(
            f"{what} {value}, expected an integer from {least} {upper}, or two",
            {"what": what, "value": str(value)},
        )
    return int(both[0]), int(both[1])


@dataclass(frozen=True, eq=False, init=False)
class Linear(Module):
    """weight (outputs, inputs) times a vector of `inputs` numbers, plus bias (outputs,), default zeros."""

    weight: Reals
    bias: Reals

    def __init__(self, weight: ArrayLike, bias: ArrayLike | None = None) -> None:
        """Raises ParameterError for other shapes, and for what is not real or not finite."""
        object.__setattr__(self, "weight", _numbers(weight, 2, "weight"))
        object.__setattr__(self, "bias", _vector(bias, len(self.weight), 0.0, "bias"))

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(ops.Linear(self.weight, self.bias), [value], place or "linear")


@dataclass(frozen=True, eq=False, init=False)
class Conv2d(Module):
    """Cross-correlation of (channels, height, width); weight (outputs, channels / groups, rows, columns)."""

    weight: Reals
    bias: Reals
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int

    def __init__(
        self,
        weight: ArrayLike,
        bias: ArrayLike | None = None,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        dilation: int | Pair = 1,
        groups: int = 1,
    ) -> None:
        """
        Parameters
        ----------
        bias : (outputs,), default zeros
        stride, padding, dilation : of rows and columns, one number or two; the padding is zeros on both sides
        groups : divides channels and outputs; output o sees the channels of its group alone

        Raises ParameterError for other shapes and ranges, and for numbers that are not finite.
        """
        object.__setattr__(self, "weight", _numbers(weight, 4, "weight"))
        object.__setattr__(self, "bias", _vector(bias, len(self.weight), 0.0, "bias"))
        object.__setattr__(self, "stride", _pair(stride, 1, "stride"))
        object.__setattr__(self, "padding", _pair(padding, 0, "padding", MOST_PADDING))
        object.__setattr__(self, "dilation", _pair(dilation, 1, "dilation"))
        right = isinstance(groups, (int, np.integer)) and not isinstance(groups, bool)
        if not right or groups < 1 or len(self.weight) % groups:
            raise ParameterError(
                f"groups {groups}, expected a divisor of the {len(self.weight)} outputs",
                {"groups": str(groups), "outputs": len(self.weight)},
            )
        object.__setattr__(self, "groups", int(groups))

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        op = ops.Conv2d(self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        return tracer.add(op, [value], place or "conv2d")


@dataclass(frozen=True, eq=False, init=False)
class BatchNorm(Module):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias for each channel, the first axis of a sample.

    That of a trained network: its running statistics, of vectors as of planes.
    """

    scale: Reals
    shift: Reals

    def __init__(
        self,
        mean: ArrayLike,
        variance: ArrayLike,
        weight: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        epsilon: float = 1e-5,
    ) -> None:
        """
        Parameters
        ----------
        mean, variance, weight, bias : (channels,); weight and bias default to ones and zeros

        Raises ParameterError for other shapes, numbers that are not finite, and variance + epsilon <= 0.
        """
        means = _numbers(mean, 1, "mean")
        channels = len(means)
        spread = _vector(variance, channels, 1.0, "variance") + epsilon
        if not (spread > 0).all():
            raise ParameterError(
                f"variance + epsilon is {spread.min()}, expected positive", {"least": float(spread.min())}
            )
        scale = _vector(weight, channels, 1.0, "weight") / np.sqrt(spread)
        object.__setattr__(self, "scale", _numbers(scale, 1, "weight"))
        object.__setattr__(
            self, "shift", _numbers(_vector(bias, channels, 0.0, "bias") - means * scale, 1, "bias")
        )

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(ops.Affine(self.scale, self.shift), [value], place or "batch_norm")


@dataclass(frozen=True, eq=False, init=False)
class AvgPool2d(Module):
    """Means over windows of (channels, height, width); zeros of the padding count."""

    kernel: Pair
    stride: Pair
    padding: Pair

    def __init__(self, kernel: int | Pair, stride: int | Pair | None = None, padding: int | Pair = 0) -> None:
        """stride : default the kernel. Raises ParameterError."""
        object.__setattr__(self, "kernel", _pair(kernel, 1, "kernel"))
        object.__setattr__(self, "stride", self.kernel if stride is None else _pair(stride, 1, "stride"))
        object.__setattr__(self, "padding", _pair(padding, 0, "padding", MOST_PADDING))

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(
            ops.AvgPool2d(self.kernel, self.stride, self.padding), [value], place or "avg_pool2d"
        )


@dataclass(frozen=True, eq=False)
class GlobalAvgPool(Module):
    """The mean of every channel: (channels, height, width) to (channels,)."""

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        name = place or "global_avg_pool"
        if value is None:
            return None
        shape = tracer.shape(value)
        window = (shape[1], shape[2]) if len(shape) == 3 else (1, 1)  # the operation refuses the others
        pooled = tracer.add(ops.AvgPool2d(window, window, (0, 0)), [value], name)
        return tracer.add(ops.Flatten(), [pooled], name)


@dataclass(frozen=True, eq=False)
class Flatten(Module):
    """All axes of a sample as one, the last running fastest."""

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(ops.Flatten(), [value], place or "flatten")
