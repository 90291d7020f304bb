"""Operations on encrypted integers: the part of Evaluator that works on `Integers`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError, StateError
from crenel.tfhe.arrays import Ciphertext, Integers, Shape
from crenel.tfhe.place import Place

Operand = Integers | int


class IntegerOperations:
    """Arithmetic modulo 2^bits, comparisons, bits. Operands have one type and shape; one may be an int."""

    __slots__ = ()
    _context: Place
    _evaluator: _crenel.TfheEvaluator
    _integers: _crenel.TfheIntegerEvaluator | None

    def add(self, a: Operand, b: Operand) -> Integers:
        """a + b modulo 2^bits."""
        return self._arithmetic("add", a, b, modular=True)

    def sub(self, a: Operand, b: Operand) -> Integers:
        """a - b modulo 2^bits."""
        return self._arithmetic("sub", a, b, modular=isinstance(a, Integers))

    def mul(self, a: Operand, b: Operand) -> Integers:
        """a b modulo 2^bits."""
        return self._arithmetic("mul", a, b, modular=True)

    def neg(self, a: Integers) -> Integers:
        """-a modulo 2^bits."""
        return self._like(a, self._engine().neg(_integers(a)))

    def min(self, a: Operand, b: Operand) -> Integers:
        """The smaller of each pair."""
        return self._arithmetic("min", a, b)

    def max(self, a: Operand, b: Operand) -> Integers:
        """The larger of each pair."""
        return self._arithmetic("max", a, b)

    def bit_and(self, a: Operand, b: Operand) -> Integers:
        """a & b, bit by bit."""
        return self._arithmetic("bit_and", a, b)

    def bit_or(self, a: Operand, b: Operand) -> Integers:
        """a | b, bit by bit."""
        return self._arithmetic("bit_or", a, b)

    def bit_xor(self, a: Operand, b: Operand) -> Integers:
        """a ^ b, bit by bit."""
        return self._arithmetic("bit_xor", a, b)

    def bit_not(self, a: Integers) -> Integers:
        """~a, bit by bit."""
        return self._like(a, self._engine().bit_not(_integers(a)))

    def shift_left(self, a: Integers, count: int) -> Integers:
        """a << count modulo 2^bits, count from 0 to bits - 1. Raises ParameterError outside."""
        return self._like(a, self._engine().shift_left(_integers(a), count))

    def shift_right(self, a: Integers, count: int) -> Integers:
        """a >> count, arithmetic for signed integers; count as for shift_left."""
        return self._like(a, self._engine().shift_right(_integers(a), count))

    def equal(self, a: Operand, b: Operand) -> Ciphertext:
        """a == b, as bits."""
        return self._compare("equal", a, b)

    def not_equal(self, a: Operand, b: Operand) -> Ciphertext:
        """a != b, as bits."""
        return self._compare("not_equal", a, b)

    def less(self, a: Operand, b: Operand) -> Ciphertext:
        """a < b, as bits."""
        return self._compare("less", a, b)

    def less_equal(self, a: Operand, b: Operand) -> Ciphertext:
        """a <= b, as bits."""
        return self._compare("less_equal", a, b)

    def greater(self, a: Operand, b: Operand) -> Ciphertext:
        """a > b, as bits."""
        return self._compare("greater", a, b)

    def greater_equal(self, a: Operand, b: Operand) -> Ciphertext:
        """a >= b, as bits."""
        return self._compare("greater_equal", a, b)

    def select(self, condition: Ciphertext, a: Any, b: Any) -> Any:
        """a where the condition (bits, e.g. of a comparison) is 1, else b: integers, or bits as `mux`."""
        if isinstance(a, Ciphertext) and isinstance(b, Ciphertext):
            return self.mux(condition, a, b)  # type: ignore[attr-defined]
        like, first, second = _operands(a, b)
        if not isinstance(condition, Ciphertext):
            raise TypeError(f"expected an encrypted array of bits, got {condition!r}")
        _agree(condition.shape, like.shape)
        return self._like(like, self._engine().select(condition._data, first, second))

    # ---- inside --------------------------------------------------------------------------------------------

    def _engine(self) -> _crenel.TfheIntegerEvaluator:
        if self._integers is None:
            self._integers = _crenel.TfheIntegerEvaluator(self._evaluator)
        return self._integers

    def _arithmetic(self, name: str, a: Operand, b: Operand, modular: bool = False) -> Integers:
        like, first, second = _operands(a, b, modular)
        return self._like(like, getattr(self._engine(), name)(first, second))

    def _compare(self, name: str, a: Operand, b: Operand) -> Ciphertext:
        like, first, second = _operands(a, b)
        data = self._engine().compare(name, first, second)
        return Ciphertext(self._context, data, like.shape, np.dtype(bool))

    def _like(self, a: Integers, data: _crenel.TfheIntegers) -> Integers:
        return Integers(self._context, data, a.shape, a.dtype)


def _integers(a: Integers) -> _crenel.TfheIntegers:
    if not isinstance(a, Integers):
        raise TypeError(f"expected encrypted integers, got {type(a).__name__}")
    return a._data


def _operands(a: Operand, b: Operand, modular: bool = False) -> tuple[Integers, Any, Any]:
    """The array that the result is like, and both operands as the extension takes them."""
    like = a if isinstance(a, Integers) else b
    _integers(like)
    for other in (a, b):
        if isinstance(other, Integers):
            _agree(other.shape, like.shape)
            if other.dtype != like.dtype:
                raise StateError(
                    f"integers of types {like.dtype} and {other.dtype}, expected one type",
                    {"found": str(other.dtype), "expected": str(like.dtype)},
                )
    first, second = (x._data if isinstance(x, Integers) else _word(x, like, modular) for x in (a, b))
    return like, first, second


def _word(value: int, like: Integers, modular: bool) -> int:
    """The int as two's complement of 64 bits: one of the type's values, or modulo 2^bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"expected encrypted integers or an int, got {type(value).__name__}") from None
    info = np.iinfo(like.dtype)
    if not modular and not info.min <= number <= info.max:
        raise ParameterError(
            f"the scalar is no {like.dtype}: expected {info.min} to {info.max}",
            {"dtype": str(like.dtype), "expected": f"{info.min}..{info.max}"},
        )
    return number % (1 << 64)


def _agree(found: Shape, expected: Shape) -> None:
    if found != expected:
        raise StateError(
            f"arrays of shapes {found} and {expected}, expected equal ones",
            {"found": list(found), "expected": list(expected)},
        )
