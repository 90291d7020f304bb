"""Two operands of an operation made one: kinds, types, shapes and public values."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError, StateError
from crenel.tfhe.arrays import Ciphertext, EncryptedArray, Integers, Shape
from crenel.tfhe.kinds import Kind, clear_values, expect_kind, expect_one_kind

Data = TypeVar("Data", _crenel.TfheCiphertext, _crenel.TfheIntegers)


def common_shape(*shapes: Shape) -> Shape:
    """The shape that all broadcast to, as NumPy has it. Raises StateError where there is none."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        names = " and ".join(str(s) for s in shapes)
        raise StateError(
            f"arrays of shapes {names}, expected shapes that broadcast to one as NumPy's do",
            {"found": list(shapes[-1]), "expected": list(shapes[0])},
        ) from None


def stretched(data: Data, shape: Shape, wanted: Shape, slots: int) -> Data:
    """The elements repeated as NumPy broadcasts them."""
    if shape == wanted:
        return data
    if math.prod(shape) == math.prod(wanted):
        return data
    if slots != 1:
        raise StateError(
            f"arrays of shapes {shape} and {wanted}, expected equal ones with packing",
            {"found": list(shape), "expected": list(wanted)},
        )
    index = np.broadcast_to(np.arange(data.size, dtype=np.uint64).reshape(shape), wanted)
    return data.take(np.ascontiguousarray(index).reshape(-1))


def taken_apart(data: Data, shape: Shape, axes: tuple[int, ...]) -> list[Data]:
    """The parts that a sum over `axes` adds up, element by element."""
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    index = np.arange(data.size, dtype=np.uint64).reshape(shape).transpose(axes + kept)
    rows = np.ascontiguousarray(index).reshape(math.prod(shape[i] for i in axes), -1)
    if len(rows) == 1:
        return [data]
    leading = axes == tuple(range(len(axes)))
    if leading:
        return [data.slice(int(row[0]), row.size) for row in rows]
    return [data.take(row) for row in rows]


class Pair:
    """Operands of one kind: encrypted ones, or a public one beside an encrypted one."""

    __slots__ = ("clear", "dtype", "kind", "like", "shape", "values")

    def __init__(self, operation: str, accepted: tuple[Kind, ...], a: object, b: object) -> None:
        encrypted = [x for x in (a, b) if isinstance(x, (Ciphertext, Integers))]
        if not encrypted:
            expect_kind(operation, a, *accepted)
        for x in encrypted:
            expect_kind(operation, x, *accepted)
        self.like: EncryptedArray = encrypted[0]
        if len(encrypted) == 2:
            expect_one_kind(operation, *encrypted)
            other = encrypted[1]
            if self.like.kind == "integer" and other.dtype != self.like.dtype:
                raise StateError(
                    f"{operation}: integers of types {self.like.dtype} and {other.dtype}, expected one type",
                    {"found": str(other.dtype), "expected": str(self.like.dtype)},
                )
        self.kind: Kind = self.like.kind
        self.dtype = self.like.dtype
        if self.kind == "message" and len(encrypted) == 2:
            self.dtype = np.promote_types(self.like.dtype, encrypted[1].dtype)
        self.values: list[EncryptedArray | np.ndarray] = [
            x if isinstance(x, (Ciphertext, Integers)) else clear_values(operation, x, self.kind)
            for x in (a, b)
        ]
        self.shape = common_shape(*(x.shape for x in self.values))


def word(operation: str, value: int, dtype: np.dtype, modular: bool) -> int:
    """The int as two's complement of 64 bits: one of the type's values, or modulo 2^bits."""
    number = int(value)
    info = np.iinfo(dtype)
    if not modular and not info.min <= number <= info.max:
        raise ParameterError(
            f"{operation}: the scalar is no {dtype}: expected {info.min} to {info.max}",
            {"dtype": str(dtype), "expected": f"{info.min}..{info.max}"},
        )
    return number % (1 << 64)


def words(operation: str, values: np.ndarray, dtype: np.dtype, modular: bool) -> np.ndarray:
    """An array of such, as the type's own values modulo 2^64."""
    info = np.iinfo(dtype)
    if not modular and (values.min() < info.min or values.max() > info.max):
        raise ParameterError(
            f"{operation}: an element is no {dtype}: expected {info.min} to {info.max}",
            {"dtype": str(dtype), "expected": f"{info.min}..{info.max}"},
        )
    wide = np.uint64 if dtype.kind == "u" else np.int64
    return np.ascontiguousarray(values).astype(dtype).astype(wide).astype(np.uint64).reshape(-1)
