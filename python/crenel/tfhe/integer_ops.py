"""Operations on encrypted integers: the part of Evaluator that works on `Integers`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError, StateError
from crenel.tfhe.arrays import Ciphertext, Integers, Shape

if TYPE_CHECKING:
    from crenel.tfhe.context import Context

Operand = Integers | int


class IntegerOperations:
    """Arithmetic modulo 2^bits, comparisons, bits. Operands have one type and shape; one may be an int."""

    __slots__ = ()
    _context: Context
    _evaluator: _crenel.TfheEvaluator
    _integers: _crenel.TfheIntegerEvaluator | None

    def add(self, a: Operand, b: Operand) -> Integers:
        """a + b modulo 2^bits."""
        return self._arithmetic("add", a, b, scalar=True, commutes=True)

    def sub(self, a: Operand, b: Operand) -> Integers:
        """a - b modulo 2^bits."""
        return self._arithmetic("sub", a, b, scalar=True)

    def mul(self, a: Operand, b: Operand) -> Integers:
        """a b modulo 2^bits."""
        return self._arithmetic("mul", a, b, scalar=True, commutes=True)

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
        return self._compare("equal", "equal", a, b)

    def not_equal(self, a: Operand, b: Operand) -> Ciphertext:
        """a != b, as bits."""
        return self._compare("not_equal", "not_equal", a, b)

    def less(self, a: Operand, b: Operand) -> Ciphertext:
        """a < b, as bits."""
        return self._compare("less", "greater", a, b)

    def less_equal(self, a: Operand, b: Operand) -> Ciphertext:
        """a <= b, as bits."""
        return self._compare("less_equal", "greater_equal", a, b)

    def greater(self, a: Operand, b: Operand) -> Ciphertext:
        """a > b, as bits."""
        return self._compare("greater", "less", a, b)

    def greater_equal(self, a: Operand, b: Operand) -> Ciphertext:
        """a >= b, as bits."""
        return self._compare("greater_equal", "less_equal", a, b)

    def select(self, condition: Ciphertext, a: Any, b: Any) -> Any:
        """a where the condition (bits, e.g. of a comparison) is 1, else b: integers, or bits as `mux`."""
        if isinstance(a, Ciphertext) and isinstance(b, Ciphertext):
            return self.mux(condition, a, b)  # type: ignore[attr-defined]
        first, second = self._pair(a, b)
        if not isinstance(condition, Ciphertext):
            raise TypeError(f"expected an encrypted array of bits, got {condition!r}")
        _agree(condition.shape, first.shape)
        return self._like(first, self._engine().select(condition._data, first._data, second._data))

    # ---- inside --------------------------------------------------------------------------------------------

    def _engine(self) -> _crenel.TfheIntegerEvaluator:
        if self._integers is None:
            self._integers = _crenel.TfheIntegerEvaluator(self._evaluator)
        return self._integers

    def _arithmetic(
        self, name: str, a: Operand, b: Operand, scalar: bool = False, commutes: bool = False
    ) -> Integers:
        if scalar and commutes and not isinstance(a, Integers):
            a, b = b, a
        call = getattr(self._engine(), name)
        if scalar and isinstance(a, Integers) and not isinstance(b, Integers):
            # Everything is modulo 2^bits, the scalar too.
            return self._like(a, call(a._data, _index(b) % (1 << a.bits)))
        first, second = self._pair(a, b)
        return self._like(first, call(first._data, second._data))

    def _compare(self, name: str, mirrored: str, a: Operand, b: Operand) -> Ciphertext:
        if not isinstance(a, Integers):
            return self._compare(mirrored, name, b, a)
        if isinstance(b, Integers):
            first, second = self._pair(a, b)
            data = self._engine().compare(name, first._data, second._data)
        else:
            data = self._engine().compare(name, _integers(a), _word(b, a))
        return Ciphertext(self._context, data, a.shape, np.dtype(bool))

    def _pair(self, a: Operand, b: Operand) -> tuple[Integers, Integers]:
        """Two arrays of one type and shape, an int made one."""
        if isinstance(a, Integers) and not isinstance(b, Integers):
            return a, self._constant(b, a)
        if isinstance(b, Integers) and not isinstance(a, Integers):
            return self._constant(a, b), b
        _integers(a), _integers(b)
        _agree(a.shape, b.shape)
        if a.dtype != b.dtype:
            raise StateError(
                f"integers of types {a.dtype} and {b.dtype}, expected one type",
                {"found": str(b.dtype), "expected": str(a.dtype)},
            )
        return a, b

    def _constant(self, value: int, like: Integers) -> Integers:
        values = np.full(like.size, _word(value, like), dtype=np.uint64)
        return self._like(like, self._engine().trivial(values, like.bits, like.signed))

    def _like(self, a: Integers, data: _crenel.TfheIntegers) -> Integers:
        return Integers(self._context, data, a.shape, a.dtype)


def _integers(a: Integers) -> _crenel.TfheIntegers:
    if not isinstance(a, Integers):
        raise TypeError(f"expected encrypted integers, got {a!r}")
    return a._data


def _index(value: int) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"expected encrypted integers or an int, got {value!r}") from None


def _word(value: int, like: Integers) -> int:
    """The int, one of the type's values, as two's complement of 64 bits, whatever the type's width."""
    number = _index(value)
    info = np.iinfo(like.dtype)
    if not info.min <= number <= info.max:
        raise ParameterError(
            f"{number} is no {like.dtype}: expected {info.min} to {info.max}",
            {"value": str(number), "dtype": str(like.dtype)},
        )
    return number % (1 << 64)


def _agree(found: Shape, expected: Shape) -> None:
    if found != expected:
        raise StateError(
            f"arrays of shapes {found} and {expected}, expected equal ones",
            {"found": str(found), "expected": str(expected)},
        )
