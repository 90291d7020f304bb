"""Operators of ONNX that change shapes, or work on shapes and constants before any sample is there.

As in `onnx_operators`. A shape is a tuple, with the number of samples in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crenel.nn.importers import operators
from crenel.nn.importers.imported import BATCH, Either, Scope, Tensor

Ints = Sequence[int]
REAL_TYPES = (1, 10, 11, 16)  # of onnx.TensorProto: float, half, double, bfloat16
WHOLE_TYPES = (6, 7)  # of 32 and 64 bits
MOST_AXES = 32


def flatten(s: Scope, x: Tensor, *, axis: int = 1) -> Tensor:
    """`Flatten`; all axes of a sample."""
    if axis != 1:
        s.refuse(f"axis {axis}")
    return operators.flattened(s, x)


def reshape(s: Scope, x: Either, shape: Any, *, allowzero: int = 0) -> Any:
    """`Flatten`, or nothing; any, of constants."""
    if allowzero and 0 in np.ravel(np.asarray(shape, dtype=object)):
        s.refuse("allowzero, with an axis of none")
        return Tensor(None)
    sizes = shape if isinstance(shape, tuple) else tuple(int(n) for n in np.ravel(shape))
    if isinstance(x, Tensor):
        return operators.reshaped(s, x, sizes)
    try:
        return np.reshape(x, sizes)
    except (TypeError, ValueError):
        s.refuse(f"a constant of shape {np.shape(x)} as {sizes}")
        return Tensor(None)


def squeeze(s: Scope, x: Either, axes: Any = None) -> Any:
    """`Flatten` of planes of one element; any, of constants and shapes."""
    along = None if axes is None else tuple(int(a) for a in np.ravel(axes))
    if isinstance(x, tuple):
        return x[0] if len(x) == 1 else x
    if not isinstance(x, Tensor):
        return np.squeeze(x, along)
    shape = s.shape(x)
    if len(shape) != 3 or shape[1:] != (1, 1) or along is None or sorted(a % 4 for a in along) != [2, 3]:
        s.refuse("only planes of one element")
        return Tensor(None)
    return operators.flattened(s, x)


def unsqueeze(s: Scope, x: Any, axes: Any) -> Any:
    """Of constants and shapes."""
    along = tuple(int(a) for a in np.ravel(axes))
    return (x,) if x is BATCH or isinstance(x, int) else np.expand_dims(x, along)


def shape_of(s: Scope, x: Either) -> object:
    """For `Reshape`."""
    return (BATCH, *s.shape(x)) if isinstance(x, Tensor) else tuple(np.shape(x))


def gather(s: Scope, x: Any, indices: Any, *, axis: int = 0) -> Any:
    """Of shapes."""
    if not isinstance(x, tuple) or np.size(indices) != 1:
        s.refuse("only of a shape")
        return Tensor(None)
    at = int(np.ravel(indices)[0])
    if not -len(x) <= at < len(x):
        s.refuse(f"entry {at} of a shape with {len(x)}")
        return Tensor(None)
    return (x[at],) if np.ndim(indices) else x[at]


def part(s: Scope, x: Either, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """Every so many rows and columns; of shapes."""
    first, last = [int(n) for n in np.ravel(starts)], [int(n) for n in np.ravel(ends)]
    along = list(range(len(first))) if axes is None else [int(n) for n in np.ravel(axes)]
    strides = [1] * len(first) if steps is None else [int(n) for n in np.ravel(steps)]
    cut = zip(along, first, last, strides, strict=True)
    if isinstance(x, Tensor):
        slices = {axis % (len(s.shape(x)) + 1): slice(*each) for axis, *each in cut}
        return operators.part(s, x, [slices.get(axis, slice(None)) for axis in range(len(s.shape(x)) + 1)])
    if not isinstance(x, tuple) or len(first) != 1:
        s.refuse("of a constant")
        return Tensor(None)
    return x[slice(first[0], last[0], strides[0])]


def concat(s: Scope, *parts: Either, axis: int) -> Any:
    """`Concat`; of channels. Any of constants, and of shapes."""
    if any(isinstance(part, Tensor) for part in parts):
        return operators.joined(s, parts, axis)
    if all(isinstance(part, np.ndarray) for part in parts):
        s.takes(sum(part.size for part in parts))
        return np.concatenate(parts, axis)
    found = [n for part in parts for n in (part if isinstance(part, tuple) else np.ravel(part).tolist())]
    if len(found) > MOST_AXES:
        s.refuse(f"a shape of {len(found)} axes")
        return Tensor(None)
    return tuple(found)


def transpose(s: Scope, x: Any, *, perm: Ints | None = None) -> Any:
    """Of constants."""
    return np.transpose(x, perm)


def identity(s: Scope, x: Either) -> Any:
    """Nothing."""
    return x


def cast(s: Scope, x: Either, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """Nothing, between types of real numbers; any, of constants."""
    if isinstance(x, np.ndarray):
        return converted(x, to)
    if to not in REAL_TYPES and (isinstance(x, Tensor) or to not in WHOLE_TYPES):
        s.refuse("to what is no real number")
    return x


def converted(x: NDArray[Any], to: int) -> NDArray[Any]:
    """An array's numbers in a type of onnx.TensorProto."""
    import onnx

    with np.errstate(over="ignore", invalid="ignore"):
        return numbers(x.astype(onnx.helper.tensor_dtype_to_np_dtype(to)))


def numbers(found: NDArray[Any]) -> NDArray[Any]:
    """Of a type that NumPy itself has: bfloat16 and shorter ones are not."""
    return found if found.dtype.kind in "biufcOSU" else found.astype(np.float64)


def constant(
    s: Scope, *, value: Any = None, value_float: float | None = None, value_int: int | None = None,
    value_floats: Sequence[float] | None = None, value_ints: Ints | None = None,
) -> Any:  # fmt: skip
    """Arrays and numbers."""
    given = [v for v in (value, value_float, value_int, value_floats, value_ints) if v is not None]
    if len(given) != 1:
        s.refuse("no array of numbers")
        return Tensor(None)
    return np.asarray(given[0])
