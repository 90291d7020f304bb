"""Two operands of an operation made one: kinds, types, shapes and public values."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from crenel import _crenel
from crenel.arguments import flag
from crenel.errors import ParameterError, StateError
from crenel.tfhe.arrays import Ciphertext, EncryptedArray, Integers, Shape
from crenel.tfhe.kinds import Kind, clear_values, expect_kind, expect_one_kind
from crenel.tfhe.types import IntegerType, outside, to_words

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


def reduced(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """What is left of a shape without these axes, or with them as ones.

    Raises
    ------
    TypeError : keepdims is neither True nor False
    """
    kept = flag("keepdims", keepdims)
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if kept or i not in axes)


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
            if isinstance(self.like, Integers) and isinstance(other, Integers):
                expect_type(operation, other, self.like.type)
        self.kind: Kind = self.like.kind
        self.dtype = self.like.dtype
        if self.kind == "message" and len(encrypted) == 2:
            self.dtype = np.promote_types(self.like.dtype, encrypted[1].dtype)
        self.values: list[EncryptedArray | np.ndarray] = [
            x if isinstance(x, (Ciphertext, Integers)) else clear_values(operation, x, self.kind)
            for x in (a, b)
        ]
        self.shape = common_shape(*(x.shape for x in self.values))


def residues(values: np.ndarray, modulus: int) -> np.ndarray:
    """Public integers modulo the number of messages, which the array's own type may not hold."""
    wide = values.astype(np.int64) if values.dtype != object and values.dtype.itemsize < 8 else values
    return np.asarray(wide % modulus)


def expect_type(operation: str, array: Integers, kind: IntegerType) -> None:
    """StateError unless these integers are of the type."""
    if array.type == kind:
        return
    raise StateError(
        f"{operation}: integers of types {kind} and {array.type}, expected one type; "
        f"ev.cast(a, '{kind}') converts",
        {"found": str(array.type), "expected": str(kind)},
    )


def word(operation: str, value: int, kind: IntegerType, modular: bool) -> list[int]:
    """The int as words of two's complement of 256 bits: one of the type's values, or modulo 2^bits."""
    number = int(value)
    if not modular and not kind.low <= number <= kind.high:
        raise ParameterError(
            f"{operation}: the scalar is no {kind}: expected {kind.low} to {kind.high}",
            {"dtype": str(kind), "expected": f"{kind.low}..{kind.high}"},
        )
    number %= 1 << 256
    return [number >> shift & (1 << 64) - 1 for shift in range(0, 256, 64)]


def words(operation: str, values: np.ndarray, kind: IntegerType, modular: bool) -> np.ndarray:
    """An array of such, as the words of the type's values."""
    if not modular and outside(values, kind) is not None:
        raise ParameterError(
            f"{operation}: an element is no {kind}: expected {kind.low} to {kind.high}",
            {"dtype": str(kind), "expected": f"{kind.low}..{kind.high}"},
        )
    return to_words(values, kind)
