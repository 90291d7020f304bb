"""What is known of Keras' layers: their settings and weights as modules of crenel.nn.

Keras has channels last. Networks take and give (channels, height, width) here: kernels are turned, and so are
the rows of what reads flattened planes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crenel.errors import ParameterError
from crenel.nn import activations as kinds
from crenel.nn.importers import elements, operators
from crenel.nn.importers.imported import Make, Scope, Tensor
from crenel.nn.importers.operators import Quad
from crenel.nn.ops import Pair, Reals, Shape

Weights = Mapping[str, Reals]
Settings = Mapping[str, Any]


@dataclass
class Layer:
    """One layer of a file: its class, settings and weights, and how planes before it were flattened."""

    kind: str
    settings: Settings
    weights: Weights
    order: Order
    major: int
    """Of the version of Keras that wrote the file."""

    def pair(self, name: str, otherwise: object = None) -> Pair:
        """Two integers, or one that stands for both."""
        given = self.settings.get(name, otherwise)
        both = list(given) if isinstance(given, (list, tuple)) else [given, given]
        if len(both) != 2 or not all(type(n) is int for n in both):
            raise ParameterError(f"{name} {given!r:.60}, expected an integer or two", {"setting": name})
        return both[0], both[1]

    def weight(self, name: str, axes: int) -> Reals:
        """Raises ParameterError where it is missing or has other axes."""
        if name not in self.weights or self.weights[name].ndim != axes:
            raise ParameterError(f"no weight {name} of {axes} axes", {"weight": name})
        return self.weights[name]

    def bias(self) -> Reals | None:
        """None where the layer has none."""
        return self.weight("bias", 1) if self.settings.get("use_bias", True) else None

    def pads(self, s: Scope, x: Tensor, kernel: Pair, stride: Pair, dilation: Pair = (1, 1)) -> Quad:
        """Of 'valid' and 'same', as TensorFlow has it: the odd one at the end."""
        padding = self.settings.get("padding", "valid")
        if padding == "same":
            return operators.same_pads(s.shape(x), kernel, stride, dilation, less_first=True)
        if padding != "valid":
            s.refuse(f"padding {padding!r:.40}")
        return 0, 0, 0, 0


@dataclass
class Order:
    """The shape (channels, height, width) of planes that were flattened, until a matrix reads them."""

    shape: Shape = field(default=())

    def rows(self) -> np.ndarray | None:
        """Places in Keras' order (height, width, channels) of elements in this library's; None: the same."""
        if len(self.shape) < 3:
            return None
        channels, height, width = self.shape
        return (
            np.arange(channels * height * width).reshape(height, width, channels).transpose(2, 0, 1).ravel()
        )


def conv(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`Conv2d`; padding 'valid' or 'same'."""
    kernel = layer.weight("kernel", 4).transpose(3, 2, 0, 1)
    return _convolved(s, x, layer, kernel, int(layer.settings.get("groups", 1)))


def depthwise(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`Conv2d` of each channel by itself."""
    name = "depthwise_kernel" if "depthwise_kernel" in layer.weights else "kernel"
    found = layer.weight(name, 4)
    rows, columns, channels, each = found.shape
    kernel = found.transpose(2, 3, 0, 1).reshape(channels * each, 1, rows, columns)
    return _convolved(s, x, layer, kernel, channels)


def _convolved(s: Scope, x: Tensor, layer: Layer, kernel: Reals, groups: int) -> Tensor:
    stride, dilation = layer.pair("strides", 1), layer.pair("dilation_rate", 1)
    pads = layer.pads(s, x, (kernel.shape[2], kernel.shape[3]), stride, dilation)
    return operators.convolution(s, x, kernel, layer.bias(), stride, pads, dilation, groups)


def dense(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`Linear`; of vectors."""
    if len(s.shape(x)) != 1:
        s.refuse("of planes, which are to be flattened before")
        return Tensor(None)
    kernel, rows = layer.weight("kernel", 2), layer.order.rows()
    if rows is not None and len(rows) == len(kernel):
        kernel = kernel[rows]
    layer.order.shape = ()
    return operators.linear(s, x, kernel.T, layer.bias())


def norm(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`BatchNorm`, with the statistics of the training, over channels."""
    axis = layer.settings.get("axis", -1)
    last = len(s.shape(x))
    if axis not in (-1, last, [-1], [last]):
        s.refuse(f"axis {axis!r:.40}, expected the last")
        return x
    mean, variance = layer.weight("moving_mean", 1), layer.weight("moving_variance", 1)
    gamma = layer.weight("gamma", 1) if layer.settings.get("scale", True) else np.ones_like(mean)
    beta = layer.weight("beta", 1) if layer.settings.get("center", True) else np.zeros_like(mean)
    parts, rows = (mean, variance, gamma, beta), layer.order.rows()
    if rows is not None and len(rows) == len(mean):
        parts = tuple(part[rows] for part in parts)
    return operators.norm(s, x, *parts, eps=float(layer.settings.get("epsilon", 1e-3)))


def average(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`AvgPool2d`; padding 'valid', or 'same' where it adds nothing."""
    kernel = layer.pair("pool_size", 2)
    stride = kernel if layer.settings.get("strides") is None else layer.pair("strides")
    return operators.pooled(s, x, kernel, stride, layer.pads(s, x, kernel, stride), counted=False)


def maximum(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`AvgPool2d`, or maxima of pairs by ReLU, where `replace` asks for it; of one place the place itself."""
    kernel = layer.pair("pool_size", 2)
    stride = kernel if layer.settings.get("strides") is None else layer.pair("strides")
    return operators.max_pooled(s, x, kernel, stride, layer.pads(s, x, kernel, stride), (1, 1), False)


def means(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`GlobalAvgPool`."""
    return operators.plane_means(s, x, (2, 3), bool(layer.settings.get("keepdims", False)))


def zeros(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """Zeros around planes, part of the linear layer that follows."""
    given = layer.settings.get("padding", 1)
    sides = [side if isinstance(side, (list, tuple)) else (side, side)
             for side in (given if isinstance(given, (list, tuple)) else (given, given))]  # fmt: skip
    (top, bottom), (left, right) = sides
    return operators.padded(s, x, (int(top), int(left), int(bottom), int(right)))


def rescaled(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """A norm."""
    return elements.affine(s, x, float(layer.settings["scale"]), float(layer.settings.get("offset", 0.0)))


def flattened(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`Flatten`; the rows of what follows are put in its order."""
    layer.order.shape = s.shape(x)
    return operators.flattened(s, x)


def nothing(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """Nothing."""
    return x


def relu(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`ReLU`, `LeakyReLU`, or `ReLU6` at that largest value; no threshold."""
    most, slope = layer.settings.get("max_value"), layer.settings.get("negative_slope") or 0.0
    if layer.settings.get("threshold") or (most is not None and (most != 6 or slope)):
        s.refuse("a threshold, or a largest value other than 6")
    if slope:
        return elements.of_family(s, x, kinds.LeakyReLU, float(slope))
    return elements.activated(s, x, "relu" if most is None else "relu6")


def leaky(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`LeakyReLU`."""
    slope = layer.settings.get("negative_slope", layer.settings.get("alpha", 0.3))
    return elements.of_family(s, x, kinds.LeakyReLU, float(slope))


def elu(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`ELU`."""
    return elements.of_family(s, x, kinds.ELU, float(layer.settings.get("alpha", 1.0)))


def softmax(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """Nothing, at the end of a network where `replace={"Softmax": "identity"}` asks for it."""
    return x


LAYERS: dict[str, Callable[[Scope, Tensor, Layer], Tensor]] = {
    "Conv2D": conv, "DepthwiseConv2D": depthwise, "Dense": dense, "BatchNormalization": norm,
    "AveragePooling2D": average, "MaxPooling2D": maximum, "GlobalAveragePooling2D": means,
    "ZeroPadding2D": zeros, "Rescaling": rescaled, "Flatten": flattened, "Dropout": nothing,
    "SpatialDropout2D": nothing, "GaussianNoise": nothing, "ActivityRegularization": nothing,
    "ReLU": relu, "LeakyReLU": leaky, "ELU": elu, "Softmax": softmax,
}  # fmt: skip
"""By the name of the class."""


def _hard_sigmoid(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`HardSigmoid`; that of Keras 2, which is steeper, is refused."""
    if layer.major < 3:
        s.refuse("hard_sigmoid of Keras 2, which is another than everybody's")
    return elements.activated(s, x, kinds.HardSigmoid.function)


def _elu(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`ELU`."""
    return elements.of_family(s, x, kinds.ELU, 1.0)


def _gelu(s: Scope, x: Tensor, layer: Layer) -> Tensor:
    """`GELU`."""
    return elements.gelu(s, x, "none")


def _plain(kind: type[kinds.AbstractActivation]) -> Callable[[Scope, Tensor, Layer], Tensor]:
    def make(s: Scope, x: Tensor, layer: Layer) -> Tensor:
        return elements.activated(s, x, kind.function)

    make.__doc__ = f"`{kind.__name__}`."
    return make


ACTIVATIONS: dict[str, Callable[[Scope, Tensor, Layer], Tensor]] = {
    "relu": _plain(kinds.ReLU), "relu6": _plain(kinds.ReLU6), "sigmoid": _plain(kinds.Sigmoid),
    "tanh": _plain(kinds.Tanh), "swish": _plain(kinds.SiLU), "silu": _plain(kinds.SiLU), "elu": _elu,
    "gelu": _gelu, "hard_sigmoid": _hard_sigmoid, "softmax": softmax,
}  # fmt: skip
"""By the name that a layer has of its activation."""


def make_of(rule: Callable[[Scope, Tensor, Layer], Tensor], layer: Layer) -> Make:
    """The rule of a layer, as calls have it."""

    def make(s: Scope, x: Tensor) -> Tensor:
        return rule(s, x, layer)

    # imported looks for the annotations of strings; without them every operand would be a constant
    make.__annotations__ = {"s": "Scope", "x": "Tensor", "return": "Tensor"}
    return make
