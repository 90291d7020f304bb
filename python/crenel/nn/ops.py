"""The primitives that a graph is made of: for each its shape rule and its meaning in float64.

This table is the specification: modules are compositions of it, passes rewrite it, and what runs under
encryption is compared with it. Shapes are those of one sample; arrays have the samples in front.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crenel.errors import ParameterError
from crenel.nn.functions import Reals as Reals
from crenel.nn.functions import function

CONVOLVED = 8  # samples at a time: what a kernel sees of them is many times their size
EVALUATED = 1 << 14  # elements of a series at a time, which stay in a cache

Shape = tuple[int, ...]
Pair = tuple[int, int]


def windows(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Places of a kernel along one axis. Raises ParameterError where there is none."""
    reach = dilation * (kernel - 1) + 1
    if size + 2 * padding < reach:
        raise ParameterError(
            f"a kernel that reaches over {reach} has no place in an axis of {size} with padding {padding}",
            {"size": size, "reach": reach, "padding": padding},
        )
    return (size + 2 * padding - reach) // stride + 1


def _planes(shape: Shape, what: str) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise ParameterError(
            f"{what} of a tensor of shape {shape}, expected (channels, height, width)",
            {"operation": what, "shape": list(shape)},
        )
    return shape[0], shape[1], shape[2]


def _equal(found: int, expected: int, what: str) -> None:
    if found != expected:
        raise ParameterError(
            f"{what}: {found} in the tensor, {expected} in the weights",
            {"found": found, "expected": expected},
        )


def _array(found: Reals, shape: tuple[int | None, ...], what: str) -> None:
    if found.ndim != len(shape) or any(e not in (None, n) for n, e in zip(found.shape, shape, strict=True)):
        expected = ", ".join("any" if n is None else str(n) for n in shape)
        raise ParameterError(
            f"{what} of shape {found.shape}, expected ({expected})",
            {"what": what, "shape": list(found.shape)},
        )


class Op(ABC):
    """A function of tensors. Frozen."""

    name: ClassVar[str]
    linear: ClassVar[bool] = True
    """Is it an affine map?"""

    @abstractmethod
    def shape(self, *inputs: Shape) -> Shape:
        """The result's shape. Raises ParameterError for shapes that do not fit, of inputs and own arrays."""

    @abstractmethod
    def __call__(self, *inputs: Reals) -> Reals:
        """The result, of arrays with samples in front."""


@dataclass(frozen=True, eq=False)
class Input(Op):
    """What the client encrypts."""

    size: Shape
    name: ClassVar[str] = "input"
    linear: ClassVar[bool] = False

    def shape(self, *inputs: Shape) -> Shape:
        return self.size

    def __call__(self, *inputs: Reals) -> Reals:
        return inputs[0]


@dataclass(frozen=True, eq=False)
class Conv2d(Op):
    """Cross-correlation: weight (outputs, inputs / groups, height, width), bias (outputs,)."""

    weight: Reals
    bias: Reals
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    name: ClassVar[str] = "conv2d"

    def shape(self, *inputs: Shape) -> Shape:
        channels, height, width = _planes(inputs[0], self.name)
        _array(self.weight, (None,) * 4, "weight of a convolution")
        _array(self.bias, (len(self.weight),), "bias of a convolution")
        _equal(len(self.weight) % self.groups, 0, "outputs beyond those that the groups divide")
        _equal(channels, self.weight.shape[1] * self.groups, "channels of a convolution")
        return (
            self.weight.shape[0],
            windows(height, self.weight.shape[2], self.stride[0], self.padding[0], self.dilation[0]),
            windows(width, self.weight.shape[3], self.stride[1], self.padding[1], self.dilation[1]),
        )

    def __call__(self, *inputs: Reals) -> Reals:
        x = inputs[0]
        outputs, rows, columns = self.shape(x.shape[1:])
        (pv, ph), (sv, sh), (dv, dh) = self.padding, self.stride, self.dilation
        _, inner, kernel_rows, kernel_columns = self.weight.shape
        taps = inner * kernel_rows * kernel_columns
        weight = self.weight.reshape(self.groups, -1, taps)
        result = np.empty((len(x), self.groups, outputs // self.groups, rows * columns))
        for start in range(0, len(x), CONVOLVED):
            padded = np.pad(x[start : start + CONVOLVED], ((0, 0), (0, 0), (pv, pv), (ph, ph)))
            seen = np.empty((len(padded), self.groups, inner, kernel_rows, kernel_columns, rows, columns))
            grouped = padded.reshape(len(padded), self.groups, inner, *padded.shape[2:])
            for v in range(kernel_rows):
                for h in range(kernel_columns):
                    below = slice(v * dv, v * dv + sv * (rows - 1) + 1, sv)
                    right = slice(h * dh, h * dh + sh * (columns - 1) + 1, sh)
                    seen[:, :, :, v, h] = grouped[..., below, right]
            matrix = seen.reshape(len(padded), self.groups, taps, rows * columns)
            np.matmul(weight, matrix, out=result[start : start + CONVOLVED])
        return result.reshape(len(x), outputs, rows, columns) + self.bias[:, None, None]


@dataclass(frozen=True, eq=False)
class Linear(Op):
    """weight (outputs, inputs) times a vector, or each token of (tokens, inputs), plus bias (outputs,)."""

    weight: Reals
    bias: Reals
    name: ClassVar[str] = "linear"

    def shape(self, *inputs: Shape) -> Shape:
        if len(inputs[0]) > 2:
            raise ParameterError(
                f"linear of a tensor of shape {inputs[0]}, expected a vector or (tokens, features): put a "
                "Flatten before it",
                {"operation": self.name, "shape": list(inputs[0])},
            )
        _array(self.weight, (None, None), "weight of a linear layer")
        _array(self.bias, (len(self.weight),), "bias of a linear layer")
        *tokens, features = list(inputs[0])
        _equal(features, self.weight.shape[1], "inputs of a linear layer")
        return (*tokens, self.weight.shape[0])

    def __call__(self, *inputs: Reals) -> Reals:
        # One product of matrices: `@` of sequences would be one of small ones for each sample.
        return np.asarray(np.tensordot(inputs[0], self.weight, axes=(-1, 1)) + self.bias)


@dataclass(frozen=True, eq=False)
class Affine(Op):
    """Each channel (first axis) times its scale, plus its shift; both (channels,)."""

    scale: Reals
    shift: Reals
    name: ClassVar[str] = "affine"

    def shape(self, *inputs: Shape) -> Shape:
        _array(self.scale, (None,), "scale of a norm")
        _array(self.shift, self.scale.shape, "shift of a norm")
        _equal(inputs[0][0], len(self.scale), "channels of a norm")
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        along = (-1,) + (1,) * (inputs[0].ndim - 2)
        return inputs[0] * self.scale.reshape(along) + self.shift.reshape(along)


@dataclass(frozen=True, eq=False)
class AvgPool2d(Op):
    """Mean over windows; zeros of the padding count."""

    kernel: Pair
    stride: Pair
    padding: Pair
    name: ClassVar[str] = "avg_pool2d"

    def shape(self, *inputs: Shape) -> Shape:
        channels, height, width = _planes(inputs[0], self.name)
        return (
            channels,
            windows(height, self.kernel[0], self.stride[0], self.padding[0], 1),
            windows(width, self.kernel[1], self.stride[1], self.padding[1], 1),
        )

    def __call__(self, *inputs: Reals) -> Reals:
        x = inputs[0]
        _, rows, columns = self.shape(x.shape[1:])
        (pv, ph), (sv, sh) = self.padding, self.stride
        padded = np.pad(x, ((0, 0), (0, 0), (pv, pv), (ph, ph)))
        total = np.zeros((*x.shape[:2], rows, columns))
        for v in range(self.kernel[0]):
            for h in range(self.kernel[1]):
                total += padded[..., v : v + sv * (rows - 1) + 1 : sv, h : h + sh * (columns - 1) + 1 : sh]
        return total / (self.kernel[0] * self.kernel[1])


@dataclass(frozen=True, eq=False)
class Flatten(Op):
    """All axes as one, the last running fastest."""

    name: ClassVar[str] = "flatten"

    def shape(self, *inputs: Shape) -> Shape:
        return (int(np.prod(inputs[0])),)

    def __call__(self, *inputs: Reals) -> Reals:
        return inputs[0].reshape(len(inputs[0]), -1)


@dataclass(frozen=True, eq=False)
class Place(Op):
    """Channels at an offset among more of them, the others zero: an operand of a concatenation."""

    channels: int
    offset: int
    name: ClassVar[str] = "place"

    def shape(self, *inputs: Shape) -> Shape:
        if self.offset + inputs[0][0] > self.channels:
            raise ParameterError(
                f"{inputs[0][0]} channels at {self.offset} of {self.channels}",
                {"offset": self.offset, "channels": self.channels},
            )
        return (self.channels, *inputs[0][1:])

    def __call__(self, *inputs: Reals) -> Reals:
        x = inputs[0]
        result = np.zeros((len(x), *self.shape(x.shape[1:])))
        result[:, self.offset : self.offset + x.shape[1]] = x
        return result


@dataclass(frozen=True, eq=False)
class Add(Op):
    """The sum of tensors of one shape."""

    name: ClassVar[str] = "add"

    def shape(self, *inputs: Shape) -> Shape:
        if len(set(inputs)) != 1:
            raise ParameterError(
                f"a sum of tensors of the shapes {', '.join(map(str, inputs))}: they must be equal",
                {"operation": self.name, "shapes": " ".join(map(str, inputs))},
            )
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        total = inputs[0]
        for other in inputs[1:]:
            total = total + other
        return total


@dataclass(frozen=True, eq=False)
class Activation(Op):
    """A function by its name, `functions.function`, exact; `Approximate` puts a polynomial in its place."""

    function: str
    name: ClassVar[str] = "activation"
    linear: ClassVar[bool] = False

    def shape(self, *inputs: Shape) -> Shape:
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        return function(self.function)(inputs[0])


@dataclass(frozen=True, eq=False)
class Polynomial(Op):
    """sum_k coefficients[k] x^k of every element."""

    coefficients: Reals
    name: ClassVar[str] = "polynomial"
    linear: ClassVar[bool] = False

    def shape(self, *inputs: Shape) -> Shape:
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        return np.asarray(np.polynomial.polynomial.polyval(inputs[0], self.coefficients), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Series(Op):
    """Chebyshev series one after the other, of u = x / bound: p_k(... p_1(u)); `gated`: times x.

    function : what they stand for. bound : beyond it the result means nothing.
    """

    function: str
    bound: float
    factors: tuple[Reals, ...]
    gated: bool
    name: ClassVar[str] = "series"
    linear: ClassVar[bool] = False

    @property
    def crowded(self) -> bool:
        """Do arguments lie at the ends of the interval, as sums of a softmax and variances do?"""
        return self.function in ("reciprocal", "inverse root")

    def shape(self, *inputs: Shape) -> Shape:
        return inputs[0]

    def __call__(self, *inputs: Reals) -> Reals:
        x = np.ascontiguousarray(inputs[0]).reshape(-1)
        made = np.empty_like(x)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(x), EVALUATED):
                part = slice(start, start + EVALUATED)
                z: Reals = x[part] / self.bound
                for factor in self.factors:
                    z = np.asarray(np.polynomial.chebyshev.chebval(z, factor), dtype=np.float64)
                made[part] = x[part] * z if self.gated else z
        return made.reshape(inputs[0].shape)


OPS: dict[str, type[Op]] = {
    kind.name: kind
    for kind in (
        Input, Conv2d, Linear, Affine, AvgPool2d, Flatten, Place, Add, Activation, Polynomial, Series,
    )
}  # fmt: skip
"""By name, as in files. `Activation` is legal until `Approximate`, `Series` from then on; others always."""
