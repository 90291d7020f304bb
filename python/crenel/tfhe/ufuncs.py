"""NumPy's functions on arrays that are bound to an evaluator: which of its methods computes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crenel.errors import ParameterError, StateError
from crenel.tfhe.arrays import Integers, concatenate
from crenel.tfhe.kinds import PLURAL, Kind, is_encrypted

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
_OF_BITS: dict[np.ufunc, str] = {
    np.logical_or: "any",
    np.bitwise_or: "any",
    np.logical_and: "all",
    np.bitwise_and: "all",
}


def call_ufunc(
    evaluator: Operations, ufunc: np.ufunc, method: str, inputs: tuple[object, ...], options: dict[str, Any]
) -> object:
    """What `ufunc`, or its reduction, gives of arrays of which one at least is encrypted.

    Raises TypeError for functions that the kind has not, and for options other than those of reductions:
    results are new arrays, and every element is computed.
    """
    kinds: list[Kind] = [x.kind for x in inputs if is_encrypted(x)]  # type: ignore[attr-defined]
    if not kinds:  # NumPy asks for an encrypted `out` too
        raise TypeError(f"np.{ufunc.__name__}: encrypted arrays take no out")
    kind = kinds[0]
    if method == "__call__":
        _refuse(f"np.{ufunc.__name__}", options)
        if ufunc is np.positive:
            return inputs[0]
        if kind == "integer" and ufunc is np.matmul:
            return matmul(evaluator, inputs[0], inputs[1])
        if kind == "integer" and ufunc is getattr(np, "bitwise_count", None):  # NumPy 2
            # NumPy counts in the absolute value, count_ones in two's complement
            return evaluator.count_ones(evaluator.abs(cast("Integers", inputs[0])))
        if kind == "integer" and ufunc is np.square:
            return evaluator.mul(cast("Integers", inputs[0]), cast("Integers", inputs[0]))
        name = _CALLS[kind].get(ufunc)
        if name is None:
            raise TypeError(f"np.{ufunc.__name__}: not computed of encrypted {PLURAL[kind]}")
        return getattr(evaluator, name)(*inputs)
    name = None
    if method == "reduce":
        name = (kind == "bit" and _OF_BITS.get(ufunc)) or _REDUCTIONS.get(ufunc)
    if name is None or (kind != "integer" and name not in ("sum", "any", "all")):
        raise TypeError(f"np.{ufunc.__name__}.{method}: not computed of encrypted {PLURAL[kind]}")
    given = {key: value for key, value in options.items() if value is not None or key == "axis"}
    axis, keepdims, dtype = given.pop("axis", 0), given.pop("keepdims", False), given.pop("dtype", None)
    if name != "sum":
        given["dtype"] = dtype
    _refuse(f"np.{ufunc.__name__}.reduce", given)
    more = {} if dtype is None else {"dtype": dtype}
    return getattr(evaluator, name)(inputs[0], axis, keepdims=keepdims, **more)


def matmul(evaluator: Operations, a: Any, b: Any, name: str = "'@'") -> Integers:
    """a @ b where b has one axis. Raises TypeError for other axes, StateError for other lengths."""
    shapes = [x.shape if is_encrypted(x) else np.shape(x) for x in (a, b)]
    if len(shapes[1]) != 1 or not shapes[0]:
        raise TypeError(
            f"{name} of shapes {shapes[0]} and {shapes[1]}, expected one axis on the right; ev.dot adds up "
            "products along any axis of arrays that broadcast"
        )
    if shapes[0][-1] != shapes[1][0]:
        raise StateError(
            f"{name} of shapes {shapes[0]} and {shapes[1]}, expected last axes of one length",
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


def _clipped(ev: Operations, a: Any, a_min: Any = None, a_max: Any = None, out: Any = None) -> object:
    _refuse("np.clip", {"out": out})
    if a_min is None and a_max is None:
        raise TypeError("np.clip: neither a least nor a largest value, expected one at least")
    low = a if a_min is None else ev.max(a, a_min)
    return low if a_max is None else ev.min(low, a_max)


def _moved(function: Callable[..., Any]) -> Callable[..., object]:
    """A function that gives elements of one array in other places: NumPy's own, on their numbers."""

    def call(ev: Operations, a: Any, *arguments: Any, **options: Any) -> object:
        name = f"np.{function.__name__}"
        _refuse(name, {"out": options.pop("out", None)})  # it would get the places
        if not is_encrypted(a):
            raise TypeError(f"{name}: expected an encrypted array first, got {type(a).__name__}")
        if any(map(is_encrypted, (*arguments, *options.values()))):
            raise TypeError(f"{name}: expected a public argument, got an encrypted array")
        try:
            places = np.asarray(function(np.arange(a.size).reshape(a.shape), *arguments, **options))
        except (ValueError, IndexError, OverflowError) as error:  # AxisError is the first two
            raise ParameterError(
                f"{name}: {error}", {"operation": function.__name__, "shape": list(a.shape)}
            ) from None
        return a.reshape(-1)[places.reshape(-1)].reshape(places.shape)

    return call


def _stacked(ev: Operations, arrays: Sequence[Any], axis: int = 0) -> object:
    shapes = [a.shape if is_encrypted(a) else np.shape(a) for a in arrays]
    if len(set(shapes)) != 1:
        raise StateError(
            f"np.stack: shapes {' and '.join(map(str, shapes))}, expected equal ones", {"found": str(shapes)}
        )
    return _concatenated(ev, [_moved(np.expand_dims)(ev, a, axis) for a in arrays], axis)


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
    np.any: _along("any"),
    np.all: _along("all"),
    np.clip: _clipped,
    np.dot: lambda ev, a, b: matmul(ev, a, b, "np.dot"),
    np.stack: _stacked,
}
_MOVES = (np.broadcast_to, np.expand_dims, np.flip, np.moveaxis, np.ravel, np.repeat, np.roll, np.squeeze)
_FUNCTIONS |= {
    function: _moved(function) for function in (*_MOVES, np.swapaxes, np.take, np.tile, np.transpose)
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
