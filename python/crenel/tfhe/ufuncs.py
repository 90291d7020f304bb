"""NumPy's functions on arrays that are bound to an evaluator: which of its methods computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

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
if hasattr(np, "bitwise_count"):  # NumPy 2
    _INTEGERS[np.bitwise_count] = "count_ones"

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
        if ufunc is np.matmul and kind == "integer":
            return matmul(evaluator, *inputs)
        name = _CALLS[kind].get(ufunc)
        if name is None:
            raise TypeError(f"np.{ufunc.__name__}: not computed of encrypted {PLURAL[kind]}")
        return getattr(evaluator, name)(*inputs)
    name = _REDUCTIONS.get(ufunc) if method == "reduce" else None
    if name is None or (kind != "integer" and name != "sum"):
        raise TypeError(f"np.{ufunc.__name__}.{method}: not computed of encrypted {PLURAL[kind]}")
    given = {key: value for key, value in options.items() if value is not None or key == "axis"}
    axis, keepdims, dtype = given.pop("axis", 0), given.pop("keepdims", False), given.pop("dtype", None)
    _refuse(f"np.{ufunc.__name__}.reduce", given)
    more = {} if dtype is None else {"dtype": dtype}
    return getattr(evaluator, name)(inputs[0], axis, keepdims=keepdims, **more)


def matmul(evaluator: Operations, a: Any, b: Any) -> Integers:
    """a @ b where b has one axis. Raises TypeError for other shapes."""
    shapes = [x.shape if is_encrypted(x) else np.shape(x) for x in (a, b)]
    if len(shapes[1]) != 1 or not shapes[0]:
        raise TypeError(
            f"'@' of shapes {shapes[0]} and {shapes[1]}, expected one axis on the right; ev.dot adds up "
            "products along any axis of arrays that broadcast"
        )
    return evaluator.dot(a, b)


def _refuse(name: str, options: Mapping[str, object]) -> None:
    found = sorted(key for key, value in options.items() if value is not None)
    if found:
        raise TypeError(f"{name}: encrypted arrays take no {', '.join(found)}: results are new arrays")


def _reduced(name: str) -> Callable[..., object]:
    def call(
        ev: Operations, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **more: Any
    ) -> object:
        _refuse(f"np.{name}", {"out": out, **{k: v for k, v in more.items() if k != "keepdims"}})
        given = {} if dtype is None else {"dtype": dtype}
        return getattr(ev, name)(a, axis, keepdims=bool(more.get("keepdims", False)), **given)

    return call


def _concatenated(ev: Operations, arrays: Sequence[Any], axis: int = 0) -> object:
    """Along any axis: joined along the first, then picked in NumPy's order."""
    parts = [a if is_encrypted(a) else None for a in arrays]
    if any(part is None for part in parts):
        raise TypeError("np.concatenate: public arrays beside encrypted ones, expected encrypted ones alone")
    flat = concatenate([a.reshape(-1) for a in arrays])
    places, first = [], 0
    for a in arrays:
        places.append(np.arange(first, first + a.size).reshape(a.shape))
        first += a.size
    return flat[np.concatenate(places, axis=axis)]


_FUNCTIONS: dict[object, Callable[..., object]] = {
    np.sum: _reduced("sum"),
    np.amin: _reduced("amin"),
    np.amax: _reduced("amax"),
    np.argmin: lambda ev, a, axis=None: ev.argmin(a, axis),
    np.argmax: lambda ev, a, axis=None: ev.argmax(a, axis),
    np.sort: lambda ev, a, axis=-1: ev.sort(a, axis),
    np.where: lambda ev, condition, a, b: ev.select(condition, a, b),
    np.concatenate: _concatenated,
    np.reshape: lambda ev, a, shape: a.reshape(shape),
    np.shape: lambda ev, a: a.shape,
    np.size: lambda ev, a: a.size,
    np.ndim: lambda ev, a: a.ndim,
}
_FUNCTIONS |= {getattr(np, name): _reduced(f"a{name}") for name in ("min", "max")}


def call_function(
    evaluator: Operations, function: Callable[..., object], args: tuple[Any, ...], options: dict[str, Any]
) -> object:
    """What a function of NumPy gives of bound arrays. Raises TypeError for those that are not computed."""
    known = _FUNCTIONS.get(function)
    if known is None:
        raise TypeError(f"np.{getattr(function, '__name__', function)}: not computed of encrypted arrays")
    return known(evaluator, *args, **options)
