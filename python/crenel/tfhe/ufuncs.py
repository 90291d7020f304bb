"""NumPy's functions on arrays that are bound to an evaluator: which of its methods computes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crenel.errors import StateError
from crenel.tfhe.arrays import Integers, concatenate
from crenel.tfhe.kinds import PLURAL, is_encrypted

if TYPE_CHECKING:
    from crenel.tfhe.operations import Operations

_NUMBERS: dict[np.ufunc, str] = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.negative: "neg",
    np.minimum: "min",
    np.maximum: "max",
}
_COMPARISONS: dict[np.ufunc, str] = {
    np.equal: "equal",
    np.not_equal: "not_equal",
    np.less: "less",
    np.less_equal: "less_equal",
    np.greater: "greater",
    np.greater_equal: "greater_equal",
}
_BITS: dict[np.ufunc, str] = {
    np.bitwise_and: "and_",
    np.bitwise_or: "or_",
    np.bitwise_xor: "xor",
    np.invert: "not_",
    np.logical_and: "and_",
    np.logical_or: "or_",
    np.logical_xor: "xor",
    np.logical_not: "not_",
}
_INTEGERS: dict[np.ufunc, str] = {
    np.floor_divide: "div",
    np.remainder: "rem",
    np.divmod: "divmod",
    np.absolute: "abs",
    np.bitwise_and: "bit_and",
    np.bitwise_or: "bit_or",
    np.bitwise_xor: "bit_xor",
    np.invert: "bit_not",
    np.left_shift: "shift_left",
    np.right_shift: "shift_right",
}

# What computes an element-wise function, by the kind of the operands.
_CALLS: dict[str, dict[np.ufunc, str]] = {
    "bit": {**_COMPARISONS, **_BITS},
    "message": {**_COMPARISONS, **_NUMBERS},
    "integer": {**_COMPARISONS, **_NUMBERS, **_INTEGERS},
}
_REDUCTIONS: dict[np.ufunc, str] = {np.add: "sum", np.minimum: "amin", np.maximum: "amax"}


def call_ufunc(
    evaluator: Operations, ufunc: np.ufunc, method: str, inputs: tuple[object, ...], options: dict[str, Any]
) -> object:
    """What `ufunc`, or its reduction, gives of arrays of which one at least is encrypted.

    Raises TypeError for functions that the kind has not, and for options other than those of reductions:
    results are new arrays, and every element is computed.
    """
    kind = next(x.kind for x in inputs if is_encrypted(x))  # type: ignore[attr-defined]
    if method == "__call__":
        _refuse(f"np.{ufunc.__name__}", options)
        if ufunc is np.positive:
            return inputs[0]
        if kind == "integer" and ufunc is np.matmul:
            return matmul(evaluator, *inputs)
        if kind == "integer" and ufunc is getattr(np, "bitwise_count", None):  # NumPy 2
            # NumPy counts in the absolute value, count_ones in two's complement
            return evaluator.count_ones(evaluator.abs(cast("Integers", inputs[0])))
        name = _CALLS[kind].get(ufunc)
        if name is None:
            raise TypeError(f"np.{ufunc.__name__}: not computed of encrypted {PLURAL[kind]}")
        return getattr(evaluator, name)(*inputs)
    name = _REDUCTIONS.get(ufunc) if method == "reduce" else None
    if name is None or (kind != "integer" and name != "sum"):
        raise TypeError(f"np.{ufunc.__name__}.{method}: not computed of encrypted {PLURAL[kind]}")
    given = {key: value for key, value in options.items() if value is not None or key == "axis"}
    axis, keepdims, dtype = given.pop("axis", 0), given.pop("keepdims", False), given.pop("dtype", None)
    if name != "sum":
        given["dtype"] = dtype
    _refuse(f"np.{ufunc.__name__}.reduce", given)
    more = {} if dtype is None else {"dtype": dtype}
    return getattr(evaluator, name)(inputs[0], axis, keepdims=keepdims, **more)


def matmul(evaluator: Operations, a: Any, b: Any) -> Integers:
    """a @ b where b has one axis. Raises TypeError for other axes, StateError for other lengths."""
    shapes = [x.shape if is_encrypted(x) else np.shape(x) for x in (a, b)]
    if len(shapes[1]) != 1 or not shapes[0]:
        raise TypeError(
            f"'@' of shapes {shapes[0]} and {shapes[1]}, expected one axis on the right; ev.dot adds up "
            "products along any axis of arrays that broadcast"
        )
    if shapes[0][-1] != shapes[1][0]:
        raise StateError(
            f"'@' of shapes {shapes[0]} and {shapes[1]}, expected last axes of one length",
            {"found": list(shapes[1]), "expected": list(shapes[0][-1:])},
        )
    return evaluator.dot(a, b)


def _refuse(name: str, options: Mapping[str, object]) -> None:
    found = sorted(key for key, value in options.items() if value is not None)
    if found:
        raise TypeError(f"{name}: encrypted arrays take no {', '.join(found)}")


def _sum(
    ev: Operations, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> object:
    _refuse("np.sum", {"out": out})
    return ev.sum(a, axis, dtype=dtype, keepdims=bool(keepdims))


def _along(name: str) -> Callable[..., object]:
    """A method of the evaluator with an axis and `keepdims`, called as NumPy calls its own."""

    def call(ev: Operations, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> object:
        _refuse(f"np.{name}", {"out": out})
        return getattr(ev, name)(a, axis, keepdims=bool(keepdims))

    return call


def _concatenated(ev: Operations, arrays: Sequence[Any], axis: int | None = 0) -> object:
    """Along any axis: joined along the first, then picked in NumPy's order."""
    if not all(is_encrypted(a) for a in arrays):
        raise TypeError("np.concatenate: public arrays beside encrypted ones, expected encrypted ones alone")
    places, first = [], 0
    for a in arrays:
        places.append(np.arange(first, first + a.size).reshape(a.shape))
        first += a.size
    try:
        order = np.concatenate(places, axis=axis)
    except ValueError:  # AxisError among them
        shapes = [a.shape for a in arrays]
        raise StateError(
            f"np.concatenate: shapes {' and '.join(map(str, shapes))} along axis {axis}, expected an axis "
            "that all have, and equal lengths of the others",
            {"found": str(shapes), "axis": str(axis)},
        ) from None
    return concatenate([a.reshape(-1) for a in arrays])[order]


_FUNCTIONS: dict[object, Callable[..., object]] = {
    np.sum: _sum,
    np.amin: _along("amin"),
    np.amax: _along("amax"),
    np.argmin: _along("argmin"),
    np.argmax: _along("argmax"),
    np.sort: lambda ev, a, axis=-1: ev.sort(a, axis),
    np.where: lambda ev, condition, x, y: ev.select(condition, x, y),
    np.concatenate: _concatenated,
    np.reshape: lambda ev, a, shape: a.reshape(shape),
    np.shape: lambda ev, a: a.shape,
    np.size: lambda ev, a: a.size,
    np.ndim: lambda ev, a: a.ndim,
}
_FUNCTIONS |= {getattr(np, name): _along(f"a{name}") for name in ("min", "max")}


def call_function(
    evaluator: Operations, function: Callable[..., object], args: tuple[Any, ...], options: dict[str, Any]
) -> object:
    """What a function of NumPy gives of bound arrays. Raises TypeError for those that are not computed."""
    name = f"np.{getattr(function, '__name__', function)}"
    known = _FUNCTIONS.get(function)
    if known is None:
        raise TypeError(f"{name}: not computed of encrypted arrays")
    accepted = inspect.signature(known)
    try:
        accepted.bind(evaluator, *args, **options)
    except TypeError as error:
        taken = ", ".join(list(accepted.parameters)[1:])
        raise TypeError(f"{name}: encrypted arrays take {taken}; {error}") from None
    return known(evaluator, *args, **options)
