"""Operators of ONNX that can be imported, by their names and with their attributes.

Each takes the scope of the call, its inputs (None: left out) and its attributes. What older versions of an
operator had as attributes and newer ones as inputs may be either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crenel.nn import activations
from crenel.nn.importers import elements, onnx_shapes, operators
from crenel.nn.importers.imported import Either, Make, Scope, Tensor
from crenel.nn.importers.operators import Quad
from crenel.nn.ops import Pair

Ints = Sequence[int]
UNLIMITED = 1e30  # and more, of a limit: exporters write the largest float32 where there is none


def _two(values: Ints | None, otherwise: int) -> Pair:
    found = tuple(int(v) for v in values) if values is not None else (otherwise, otherwise)
    return (found[0], found[1]) if len(found) == 2 else (0, 0)


def _pads(
    s: Scope, x: Tensor, auto_pad: str, pads: Ints | None, kernel: Ints, strides: Pair, dilations: Pair
) -> Quad:
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return operators.same_pads(s.shape(x), kernel, strides, dilations, auto_pad == "SAME_UPPER")
    if auto_pad not in ("NOTSET", "VALID", ""):
        s.refuse(f"auto_pad {auto_pad}")
    given = tuple(int(v) for v in pads or (0, 0, 0, 0))
    if len(given) != 4 or min(given) < 0:
        s.refuse(f"pads {list(given)}")
        return 0, 0, 0, 0
    return (0, 0, 0, 0) if auto_pad == "VALID" else (given[0], given[1], given[2], given[3])


def conv(
    s: Scope, x: Tensor, w: NDArray[Any], b: NDArray[Any] | None = None, *, auto_pad: str = "NOTSET",
    dilations: Ints | None = None, group: int = 1, kernel_shape: Ints | None = None, pads: Ints | None = None,
    strides: Ints | None = None,
) -> Tensor:  # fmt: skip
    """`Conv2d`; of planes."""
    w = np.asarray(w)
    if np.ndim(w) != 4:
        s.refuse(f"a kernel of {np.ndim(w) - 2} axes: only convolutions of planes are known")
        return Tensor(None)
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        s.refuse(f"kernel_shape {list(kernel_shape)} of weights {list(w.shape)}")
    steps, gaps = _two(strides, 1), _two(dilations, 1)
    around = _pads(s, x, auto_pad, pads, w.shape[2:], steps, gaps)
    return operators.convolution(s, x, w, b, steps, around, gaps, group)


def gemm(
    s: Scope, a: Tensor, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0,
) -> Tensor:  # fmt: skip
    """`Linear`; samples times a constant."""
    if transA:
        s.refuse("transA")
        return Tensor(None)
    weight = alpha * np.asarray(b, dtype=np.float64)
    bias = None if c is None else beta * np.asarray(c, dtype=np.float64)
    if bias is not None and weight.ndim == 2:
        outputs = weight.shape[0 if transB else 1]
        if bias.size > 1 and bias.shape not in ((outputs,), (1, outputs)):
            s.refuse(f"C of shape {bias.shape}, expected one number for each of the {outputs} outputs")
            return Tensor(None)
        bias = np.full(outputs, bias.reshape(())) if bias.size == 1 else bias.reshape(-1)
    return operators.linear(s, a, weight if transB else weight.T, bias)


def matmul(s: Scope, a: Tensor, b: Any) -> Tensor:
    """`Linear`; samples times a constant."""
    return operators.linear(s, a, np.asarray(b).T)


def batch_normalization(
    s: Scope, x: Tensor, scale: Any, bias: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5,
    momentum: float = 0.9, training_mode: int = 0, spatial: int = 1,
) -> Tensor:  # fmt: skip
    """`BatchNorm`, with the statistics of the training."""
    if training_mode or not spatial:
        s.refuse("training_mode" if training_mode else "spatial")
    return operators.norm(s, x, mean, variance, scale, bias, epsilon)


def average_pool(
    s: Scope, x: Tensor, *, kernel_shape: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    count_include_pad: int = 0, dilations: Ints | None = None, pads: Ints | None = None,
    strides: Ints | None = None,
) -> Tensor:  # fmt: skip
    """`AvgPool2d`; zeros of the padding count, ceil_mode where it changes nothing."""
    if _two(dilations, 1) != (1, 1):
        s.refuse("dilations")
    kernel, steps = _two(kernel_shape, 1), _two(strides, 1)
    around = _pads(s, x, auto_pad, pads, kernel, steps, (1, 1))
    return operators.pooled(s, x, kernel, steps, around, bool(ceil_mode), bool(count_include_pad))


def max_pool(
    s: Scope, x: Tensor, *, kernel_shape: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Ints | None = None, pads: Ints | None = None, storage_order: int = 0,
    strides: Ints | None = None,
) -> Tensor:  # fmt: skip
    """`AvgPool2d`, where `replace={"MaxPool": "avg"}` asks for it."""
    kernel, steps, gaps = _two(kernel_shape, 1), _two(strides, 1), _two(dilations, 1)
    around = _pads(s, x, auto_pad, pads, kernel, steps, gaps)
    return operators.max_pooled(s, x, kernel, steps, around, gaps, bool(ceil_mode))


def global_average_pool(s: Scope, x: Tensor) -> Tensor:
    """`AvgPool2d` over whole planes."""
    return operators.to_size(s, x, (1, 1))


def reduce_mean(
    s: Scope, x: Tensor, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    """`GlobalAvgPool`; over both axes of planes."""
    given = () if axes is None else tuple(int(a) for a in np.ravel(axes))
    return operators.plane_means(s, x, given, bool(keepdims))


def pad(
    s: Scope, x: Tensor, pads: Any = None, value: Any = None, axes: Any = None, *, mode: str = "constant"
) -> Tensor:
    """Zeros around planes and channels, part of the linear layer that follows."""
    sides = np.zeros((2, 4), dtype=int)
    given = np.ravel(np.asarray(pads if pads is not None else ())).astype(int)
    along = [0, 1, 2, 3] if axes is None else [int(a) % 4 for a in np.ravel(axes)]
    constant = 0.0 if value is None or np.size(value) == 0 else float(np.ravel(value)[0])
    if mode != "constant" or constant != 0.0 or len(given) != 2 * len(along) or len(s.shape(x)) != 3:
        s.refuse("only zeros around planes and channels")
        return Tensor(None)
    sides[:, along] = given.reshape(2, -1)
    if sides[:, 0].any():
        s.refuse("samples of zeros")
    x = operators.widened(s, x, int(sides[0, 1]), int(sides[1, 1]))
    (top, left), (bottom, right) = sides[0, 2:], sides[1, 2:]
    return operators.padded(s, x, (int(top), int(left), int(bottom), int(right)))


def dropout(
    s: Scope, x: Tensor, ratio: Any = None, training_mode: Any = None, *, seed: int = 0, is_test: int = 1
) -> Tensor:
    """Nothing."""
    if not is_test or (training_mode is not None and bool(np.ravel(training_mode)[0])):
        s.refuse("training_mode")
    return x


def clip(
    s: Scope, x: Tensor, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None
) -> Tensor:
    """`ReLU6` between two norms, or `ReLU`."""
    limits = [low if low is not None else min, high if high is not None else max]
    if any(np.size(v) != 1 for v in limits):
        s.refuse("limits that are no numbers")
        return Tensor(None)
    first, second = (None if v is None else float(np.ravel(v)[0]) for v in limits)
    return elements.clipped(
        s,
        x,
        None if first is not None and first < -UNLIMITED else first,
        None if second is not None and second > UNLIMITED else second,
    )


def div(s: Scope, a: Either, b: Either) -> object:
    """By a number, or one a channel; integers, of shapes, without their rest."""
    whole = all(not isinstance(v, Tensor) and np.asarray(v).dtype.kind in "iu" for v in (a, b))
    return elements.folded(s, _quotient, a, b) if whole else elements.divided(s, a, b)


def _quotient(a: Any, b: Any) -> Any:
    """Towards zero, as ONNX has it."""
    if not np.all(b):
        raise ZeroDivisionError("a division by 0")
    return abs(a) // abs(b) * np.sign(a) * np.sign(b)


def gelu(s: Scope, x: Tensor, *, approximate: str = "none") -> Tensor:
    """`GELU`, or `TanhGELU`."""
    return elements.gelu(s, x, approximate)


def hard_sigmoid(s: Scope, x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """`HardSigmoid`."""
    scaled = elements.affine(s, x, _plain(6.0 * alpha), _plain(6.0 * (beta - 0.5)))
    return elements.activated(s, scaled, "hard_sigmoid")


def leaky_relu(s: Scope, x: Tensor, *, alpha: float = 0.01) -> Tensor:
    """`LeakyReLU`."""
    return elements.of_family(s, x, activations.LeakyReLU, alpha)


def elu(s: Scope, x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """`ELU`."""
    return elements.of_family(s, x, activations.ELU, alpha)


def swish(s: Scope, x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """`SiLU`."""
    scaled = elements.affine(s, x, alpha)
    return elements.affine(s, elements.activated(s, scaled, "silu"), 1.0 / alpha)


def softmax(s: Scope, x: Tensor, *, axis: int = -1) -> Tensor:
    """Nothing, at the end of a network where `replace={"Softmax": "identity"}` asks for it."""
    return x


def _plain(number: float) -> float:
    """Without the error of float32 in a third, a sixth and the like."""
    return round(number) if abs(number - round(number)) < 1e-6 else number


def _sum(s: Scope, *parts: Either) -> object:
    """`Add`; constants are numbers, or one a channel."""
    total = parts[0]
    for part in parts[1:]:
        total = elements.added(s, total, part)
    return total


OPERATORS: Mapping[str, Make] = {
    "Add": _sum,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Cast": onnx_shapes.cast,
    "Clip": clip,
    "Concat": onnx_shapes.concat,
    "Constant": onnx_shapes.constant,
    "Conv": conv,
    "Div": div,
    "Dropout": dropout,
    "Elu": elu,
    "Erf": elements.activation(activations.Erf),
    "Flatten": onnx_shapes.flatten,
    "Gather": onnx_shapes.gather,
    "Gelu": gelu,
    "Gemm": gemm,
    "GlobalAveragePool": global_average_pool,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": elements.activation(activations.HardSwish),
    "Identity": onnx_shapes.identity,
    "LeakyRelu": leaky_relu,
    "LogSoftmax": softmax,
    "MatMul": matmul,
    "MaxPool": max_pool,
    "Mul": elements.multiplied,
    "Neg": elements.negated,
    "Pad": pad,
    "Pow": elements.power,
    "ReduceMean": reduce_mean,
    "Relu": elements.activation(activations.ReLU),
    "Reshape": onnx_shapes.reshape,
    "Shape": onnx_shapes.shape_of,
    "Sigmoid": elements.activation(activations.Sigmoid),
    "Slice": onnx_shapes.part,
    "Softmax": softmax,
    "Softplus": elements.activation(activations.Softplus),
    "Squeeze": onnx_shapes.squeeze,
    "Sub": elements.subtracted,
    "Sum": _sum,
    "Swish": swish,
    "Tanh": elements.activation(activations.Tanh),
    "Transpose": onnx_shapes.transpose,
    "Unsqueeze": onnx_shapes.unsqueeze,
}
"""By name, of ONNX's own domain."""
