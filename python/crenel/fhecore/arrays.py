"""Arrays of words and lists of moduli, checked. All raise ParameterError naming value and expectation."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex, cast

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError

if TYPE_CHECKING:
    import numpy.typing as npt

WORD = 1 << 32


def words(array: npt.ArrayLike, name: str) -> npt.NDArray[np.uint32]:
    """Integers of any dtype in [0, 2^32) as uint32; the same array when it is uint32 already."""
    try:
        values = np.asarray(array)
    except ValueError as error:  # ragged lists
        raise ParameterError(f"{name} is not an array: {error}", {name: "ragged"}) from None
    if values.dtype == np.uint32:
        return values
    if values.dtype.kind not in "iu":
        raise ParameterError(
            f"{name} must be integers, got dtype {values.dtype}", {"dtype": str(values.dtype)}
        )
    bad = (values < 0) | (values >= WORD) if values.dtype.itemsize > 4 else values < 0
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        value = int(values[place])
        raise ParameterError(
            f"{name}{list(place) if place else ''} = {value}, expected a word in 0..2^32 - 1",
            {"value": int(value)},
        )
    return values.astype(np.uint32)


def flat(array: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """One contiguous row for the C++ side."""
    return np.ascontiguousarray(array).reshape(-1)


def modulus(value: object, name: str = "q") -> int:
    """One integer in [1, 2^32)."""
    try:
        number = operator.index(cast("SupportsIndex", value))
    except TypeError:
        raise ParameterError(f"{name} must be an integer, got {value!r}", {name: repr(value)}) from None
    if not 1 <= number < WORD:
        raise ParameterError(f"{name} = {number}, expected 1..2^32 - 1", {name: number})
    return number


def moduli(values: object, name: str) -> list[int]:
    """The primes of parameters or of a context, or a sequence of integers in [1, 2^32)."""
    if isinstance(values, _crenel.Context):
        values = values.params
    if isinstance(values, _crenel.Params):
        return list(values.primes)
    if not isinstance(values, Iterable):
        raise ParameterError(f"{name} must be a sequence of integers, got {values!r}", {name: repr(values)})
    return [modulus(v, name) for v in values]


def log_dim(array: npt.NDArray[np.uint32], name: str) -> int:
    """log2 of the last axis."""
    size = array.shape[-1] if array.ndim else 0
    if size < 1 or size & (size - 1):
        raise ParameterError(
            f"{name} has {size} coefficients in its last axis, expected a power of two",
            {"shape": list(array.shape)},
        )
    return size.bit_length() - 1


def expect_limbs(array: npt.NDArray[np.uint32], count: int, name: str) -> None:
    """That the axis before the last has one limb a modulus."""
    got = array.shape[-2] if array.ndim >= 2 else None
    if got != count:
        raise ParameterError(
            f"{name} has shape {array.shape}, expected (..., {count}, N): a limb for each of {count} moduli",
            {"shape": list(array.shape), "moduli": count},
        )
