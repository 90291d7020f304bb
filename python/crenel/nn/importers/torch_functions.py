"""Functions of PyTorch that can be imported, by PyTorch's names and with its arguments.

Each takes the scope of the call and what the function of torch or torch.nn.functional takes; a class of
torch.nn is such a function with its attributes as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from crenel.errors import ParameterError
from crenel.nn import activations
from crenel.nn.functions import Reals
from crenel.nn.importers import elements, operators
from crenel.nn.importers.imported import BATCH, Either, Make, Scope, Tensor
from crenel.nn.ops import Pair

Numbers: TypeAlias = "int | Sequence[int]"


def _pair(value: Numbers) -> Pair:
    both = np.ravel(np.asarray(value))
    if both.dtype.kind not in "iu" or both.size not in (1, 2):
        raise ParameterError(f"{value!r:.60}, expected an integer or two", {"value": f"{value!r:.60}"})
    return int(both[0]), int(both[-1])


def _around(padding: Numbers) -> operators.Quad:
    rows, columns = _pair(padding)
    return rows, columns, rows, columns


def conv2d(
    s: Scope, input: Tensor, weight: Reals, bias: Reals | None = None, stride: Numbers = 1,
    padding: str | Numbers = 0, dilation: Numbers = 1, groups: int = 1, padding_mode: str = "zeros",
) -> Tensor:  # fmt: skip
    """`Conv2d`; padding of zeros, as numbers, "same" or "valid"."""
    steps, gaps = _pair(stride), _pair(dilation)
    if padding_mode != "zeros":
        s.refuse(f"padding_mode {padding_mode}")
    if padding == "same":
        around = operators.same_pads(s.shape(input), weight.shape[2:], steps, gaps, less_first=True)
    else:
        around = _around(0 if isinstance(padding, str) else padding)
    return operators.convolution(s, input, weight, bias, steps, around, gaps, groups)


def batch_norm(
    s: Scope, input: Tensor, running_mean: Reals | None, running_var: Reals | None,
    weight: Reals | None = None, bias: Reals | None = None, training: bool = False,
    momentum: float | None = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """`BatchNorm`, with the statistics of the training."""
    if training:
        s.refuse(TRAINING)
    return operators.norm(s, input, running_mean, running_var, weight, bias, eps)


def avg_pool2d(
    s: Scope, input: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """`AvgPool2d`; zeros of the padding count, ceil_mode where it changes nothing."""
    if divisor_override is not None:
        s.refuse("divisor_override")
    kernel = _pair(kernel_size)
    steps = _pair(stride) if stride else kernel
    return operators.pooled(s, input, kernel, steps, _around(padding), ceil_mode, count_include_pad)


def max_pool2d(
    s: Scope, input: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0,
    dilation: Numbers = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """`AvgPool2d`, where `replace={"MaxPool": "avg"}` asks for it."""
    if return_indices:
        s.refuse("return_indices")
    kernel = _pair(kernel_size)
    steps = _pair(stride) if stride else kernel
    return operators.max_pooled(s, input, kernel, steps, _around(padding), _pair(dilation), ceil_mode)


def adaptive_avg_pool2d(s: Scope, input: Tensor, output_size: Any) -> Tensor:
    """`AvgPool2d`; sizes that divide those of the planes."""
    both = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size, output_size)
    return operators.to_size(s, input, both)


def pad(s: Scope, input: Tensor, pad: Numbers, mode: str = "constant", value: float | None = None) -> Tensor:
    """Zeros around planes and channels, part of the linear layer that follows."""
    sides = [int(n) for n in np.ravel(np.asarray(pad))]
    sides = 4 * sides if len(sides) == 1 else sides + [0] * (6 - len(sides))
    if mode != "constant" or value or len(sides) > 6 or len(sides) % 2:
        s.refuse("only zeros around planes and channels")
        return Tensor(None)
    left, right, top, bottom, before, after = (*sides, 0, 0)[:6]
    return operators.padded(s, operators.widened(s, input, before, after), (top, left, bottom, right))


def zero_pad(s: Scope, input: Tensor, padding: Numbers) -> Tensor:
    """Zeros around planes, part of the linear layer that follows."""
    return pad(s, input, padding)


def square(s: Scope, input: Tensor) -> Tensor:
    """A `Polynomial`."""
    return elements.power(s, input, 2)


def dropout(s: Scope, input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Nothing."""
    if training:
        s.refuse(TRAINING)
    return input


def identity(s: Scope, input: Tensor) -> Tensor:
    """Nothing."""
    return input


def flatten(s: Scope, input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """`Flatten`; all axes of a sample."""
    return operators.flattened(s, input, start_dim, end_dim)


def view(s: Scope, input: Tensor, *shape: Any) -> Tensor:
    """`Flatten`, or nothing."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return operators.reshaped(s, input, sizes)


def size(s: Scope, input: Tensor, dim: int | None = None) -> object:
    """A number for `view`."""
    sizes = (BATCH, *s.shape(input))
    return sizes if dim is None else sizes[dim]


def attribute(s: Scope, input: Either, name: str) -> object:
    """The attribute `shape`, for `view`."""
    if isinstance(input, Tensor) and name == "shape":
        return size(s, input)
    s.refuse(f"attribute {name}")
    return Tensor(None)


def item(s: Scope, input: Either, key: Any) -> object:
    """Of a shape, for `view`; every so many rows and columns, as of `x[:, :, ::2, ::2]`."""
    if isinstance(input, tuple):
        return input[key]
    keys = key if isinstance(key, tuple) else (key,)
    if not isinstance(input, Tensor) or not all(isinstance(each, slice) for each in keys):
        s.refuse("a part that is not every so many rows and columns")
        return Tensor(None)
    return operators.part(s, input, keys)


def mean(s: Scope, input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """`GlobalAvgPool`; over both axes of planes."""
    axes = (dim,) if isinstance(dim, int) else dim or ()
    return operators.plane_means(s, input, axes, keepdim)


def cat(s: Scope, tensors: Sequence[Either], dim: int = 0) -> Tensor:
    """`Concat`; of channels."""
    return operators.joined(s, tensors, dim)


def add(s: Scope, input: Either, other: Either, alpha: float = 1.0) -> object:
    """`Add`; constants are numbers, or one a channel."""
    return elements.added(s, input, other, alpha)


def sub(s: Scope, input: Either, other: Either, alpha: float = 1.0) -> object:
    """`Add`; constants are numbers, or one a channel."""
    return elements.added(s, input, other, -alpha)


def mul(s: Scope, input: Either, other: Either) -> object:
    """By a number or one a channel; `Square`; products that are an activation, as x sigmoid(x)."""
    return elements.multiplied(s, input, other)


def div(s: Scope, input: Either, other: Either, rounding_mode: str | None = None) -> object:
    """By a number, or one a channel."""
    if rounding_mode is not None:
        s.refuse("rounding_mode")
    return elements.divided(s, input, other)


def gelu(s: Scope, input: Tensor, approximate: str = "none") -> Tensor:
    """`GELU`, or `TanhGELU`."""
    return elements.gelu(s, input, approximate)


def leaky_relu(s: Scope, input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`LeakyReLU`."""
    return elements.of_family(s, input, activations.LeakyReLU, negative_slope)


def elu(s: Scope, input: Tensor, alpha: float = 1.0) -> Tensor:
    """`ELU`."""
    return elements.of_family(s, input, activations.ELU, alpha)


def softplus(s: Scope, input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`Softplus`; thresholds below 15, where PyTorch's goes over to a line, are refused."""
    if not threshold >= 15.0:
        s.refuse(f"threshold {threshold}")
    scaled = elements.affine(s, input, beta)
    return elements.affine(s, elements.activated(s, scaled, "softplus"), 1.0 / beta)


def hardtanh(s: Scope, input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`ReLU6` between two norms."""
    return elements.clipped(s, input, min_val, max_val)


def clamp(s: Scope, input: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """`ReLU6` between two norms, or `ReLU`."""
    return elements.clipped(s, input, min, max)


def softmax(s: Scope, input: Tensor, dim: int | None = None, dtype: object = None) -> Tensor:
    """Nothing, at the end of a network where `replace={"Softmax": "identity"}` asks for it."""
    return input


TRAINING = "in training mode: call eval() of the network first"
_relu = elements.activation(activations.ReLU)
_sigmoid = elements.activation(activations.Sigmoid)
_tanh = elements.activation(activations.Tanh)

FUNCTIONS: Mapping[str, Make] = {
    "adaptive_avg_pool2d": adaptive_avg_pool2d, "add": add, "avg_pool2d": avg_pool2d,
    "batch_norm": batch_norm, "cat": cat, "clamp": clamp, "clip": clamp, "concat": cat,
    "contiguous": identity, "conv2d": conv2d,
    "div": div, "dropout": dropout, "dropout2d": dropout, "elu": elu,
    "erf": elements.activation(activations.Erf), "flatten": flatten, "gelu": gelu, "getattr": attribute,
    "getitem": item, "hardsigmoid": elements.activation(activations.HardSigmoid),
    "hardswish": elements.activation(activations.HardSwish), "hardtanh": hardtanh, "iadd": add, "imul": mul,
    "isub": sub, "itruediv": div, "leaky_relu": leaky_relu,
    "linear": operators.linear, "log_softmax": softmax, "max_pool2d": max_pool2d, "mean": mean, "mul": mul,
    "neg": elements.negated, "pad": pad, "pow": elements.power,
    "relu": _relu, "relu6": elements.activation(activations.ReLU6), "reshape": view, "sigmoid": _sigmoid,
    "silu": elements.activation(activations.SiLU), "size": size, "softmax": softmax, "softplus": softplus,
    "square": square, "sub": sub, "tanh": _tanh, "truediv": div,
    "view": view,
}  # fmt: skip
"""Functions of torch and torch.nn.functional, methods of tensors and Python's operators, by name."""

_POOL = ("kernel_size", "stride", "padding", "ceil_mode")
_NORM = ("running_mean", "running_var", "weight", "bias", "training", "eps")

MODULES: Mapping[str, tuple[Make, tuple[str, ...]]] = {
    "AdaptiveAvgPool2d": (FUNCTIONS["adaptive_avg_pool2d"], ("output_size",)),
    "AvgPool2d": (FUNCTIONS["avg_pool2d"], (*_POOL, "count_include_pad", "divisor_override")),
    "BatchNorm1d": (FUNCTIONS["batch_norm"], _NORM),
    "BatchNorm2d": (FUNCTIONS["batch_norm"], _NORM),
    "Conv2d": (
        conv2d, ("weight", "bias", "stride", "padding", "dilation", "groups", "padding_mode"),
    ),
    "Dropout": (FUNCTIONS["dropout"], ("training",)),
    "Dropout2d": (FUNCTIONS["dropout2d"], ("training",)),
    "ELU": (FUNCTIONS["elu"], ("alpha",)),
    "Flatten": (FUNCTIONS["flatten"], ("start_dim", "end_dim")),
    "GELU": (FUNCTIONS["gelu"], ("approximate",)),
    "Hardsigmoid": (FUNCTIONS["hardsigmoid"], ()),
    "Hardswish": (FUNCTIONS["hardswish"], ()),
    "Hardtanh": (FUNCTIONS["hardtanh"], ("min_val", "max_val")),
    "Identity": (identity, ()),
    "LeakyReLU": (FUNCTIONS["leaky_relu"], ("negative_slope",)),
    "Linear": (FUNCTIONS["linear"], ("weight", "bias")),
    "LogSoftmax": (FUNCTIONS["log_softmax"], ("dim",)),
    "MaxPool2d": (FUNCTIONS["max_pool2d"], (*_POOL, "dilation", "return_indices")),
    "ReLU": (FUNCTIONS["relu"], ()),
    "ReLU6": (FUNCTIONS["relu6"], ()),
    "SiLU": (FUNCTIONS["silu"], ()),
    "Sigmoid": (FUNCTIONS["sigmoid"], ()),
    "Softmax": (FUNCTIONS["softmax"], ("dim",)),
    "Softplus": (FUNCTIONS["softplus"], ("beta", "threshold")),
    "Tanh": (FUNCTIONS["tanh"], ()),
    "ZeroPad2d": (zero_pad, ("padding",)),
}  # fmt: skip
"""Classes of torch.nn: what function each is, and the attributes that are its arguments."""

VIEWS = frozenset(
    {
        "Dropout", "Dropout2d", "Flatten", "Identity", "contiguous", "dropout", "dropout2d", "flatten",
        "getitem", "reshape", "view",
    }
)  # fmt: skip
"""What may return its operand, or a view of it."""
