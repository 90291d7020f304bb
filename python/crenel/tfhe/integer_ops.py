"""Operations on the bits of encrypted integers: the part of Evaluator that takes `Integers` alone."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from crenel.tfhe.arithmetic import Arithmetic
from crenel.tfhe.arrays import Integers
from crenel.tfhe.kinds import expect_kind
from crenel.tfhe.operands import Pair

if TYPE_CHECKING:
    from crenel.tfhe.arrays import Clear


class IntegerOperations(Arithmetic):
    """Bitwise operations and shifts. Operands have one type; one may be public. Shapes broadcast."""

    __slots__ = ()

    def bit_and(self, a: Integers | Clear, b: Integers | Clear) -> Integers:
        """a & b, bit by bit."""
        return self._bitwise("bit_and", a, b)

    def bit_or(self, a: Integers | Clear, b: Integers | Clear) -> Integers:
        """a | b, bit by bit."""
        return self._bitwise("bit_or", a, b)

    def bit_xor(self, a: Integers | Clear, b: Integers | Clear) -> Integers:
        """a ^ b, bit by bit."""
        return self._bitwise("bit_xor", a, b)

    def bit_not(self, a: Integers) -> Integers:
        """~a, bit by bit."""
        expect_kind("bit_not", a, "integer")
        return Integers(self._context, self._engine_i().bit_not(a._data), a.shape, a.dtype)

    def shift_left(self, a: Integers, count: int) -> Integers:
        """a << count modulo 2^bits, count from 0 to bits - 1. Raises ParameterError outside."""
        expect_kind("shift_left", a, "integer")
        count = _public_count("shift_left", count)
        return Integers(self._context, self._engine_i().shift_left(a._data, count), a.shape, a.dtype)

    def shift_right(self, a: Integers, count: int) -> Integers:
        """a >> count, arithmetic for signed integers; count as for shift_left."""
        expect_kind("shift_right", a, "integer")
        count = _public_count("shift_right", count)
        return Integers(self._context, self._engine_i().shift_right(a._data, count), a.shape, a.dtype)

    def _bitwise(self, name: str, a: object, b: object) -> Integers:
        return self._integer_pair(name, Pair(name, ("integer",), a, b), modular=False)


def _public_count(operation: str, count: object) -> int:
    """How far to shift; TypeError that says what to do, where it is no int or encrypted."""
    try:
        return operator.index(count)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{operation}: expected a public int as count, got {type(count).__name__}; ev.select chooses "
            "among shifts"
        ) from None
