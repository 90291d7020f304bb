"""Encrypted arrays bound to an evaluator, `ev(a)`: they have operators, and are taken wherever arrays are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

import numpy as np

from crenel import _crenel
from crenel.tfhe.arrays import Ciphertext, Integers, Shape
from crenel.tfhe.place import Place

if TYPE_CHECKING:
    import numpy.typing as npt

    from crenel.tfhe.arrays import Clear, Element
    from crenel.tfhe.operations import Operations

B = TypeVar("B", bound="BoundCiphertext")
I = TypeVar("I", bound="BoundIntegers")  # noqa: E741


class BoundCiphertext(Ciphertext):
    """Bits or messages with operators, `ev(a)`. A Ciphertext like any other; results are bound too.

    Bits have ``& | ^ ~``, messages ``+ - *``, both ``== != < <= > >=``; the other operand may be an
    encrypted array, bound or not, an int or a NumPy array. Shapes broadcast. What an operator costs and
    refuses is said at the method of Evaluator that it calls: `and_`, `or_`, `xor`, `not_`, `add`, `sub`,
    `mul`, `neg`, `equal`, `less`, ...
    """

    __slots__ = ("_evaluator",)

    def __init__(
        self,
        evaluator: Operations,
        context: Place,
        data: _crenel.TfheCiphertext,
        shape: Shape,
        dtype: np.dtype[Element],
    ) -> None:
        super().__init__(context, data, shape, dtype)
        self._evaluator = evaluator

    @property
    def evaluator(self) -> Operations:
        """The evaluator that computes."""
        return self._evaluator

    @property
    def unbound(self) -> Ciphertext:
        """The array without operators."""
        return Ciphertext(self._context, self._data, self._shape, self._dtype)

    def _like(self: B, data: _crenel.TfheCiphertext, shape: Shape) -> B:
        return type(self)(self._evaluator, self._context, data, shape, self._dtype)

    def sum(self, axis: int | tuple[int, ...] | None = None) -> BoundCiphertext:
        """Evaluator.sum without `dtype`: messages."""
        return _bound(self._evaluator, self._evaluator.sum(self, axis))

    def __add__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.add(self, other))

    def __radd__(self, other: Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.add(other, self))

    def __sub__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.sub(self, other))

    def __rsub__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.sub(other, self))

    def __mul__(self, other: Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.mul(self, other))

    def __rmul__(self, other: Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.mul(other, self))

    def __neg__(self) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.neg(self))

    def __and__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.and_(self, other))

    __rand__ = __and__

    def __or__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.or_(self, other))

    __ror__ = __or__

    def __xor__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.xor(self, other))

    __rxor__ = __xor__

    def __invert__(self) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.not_(self))

    def __lshift__(self, count: int) -> NoReturn:
        raise TypeError("'<<' shifts encrypted integers; of messages: ev.lut(m, lambda m: (m << count) % 16)")

    def __rshift__(self, count: int) -> NoReturn:
        raise TypeError("'>>' shifts encrypted integers; of messages: ev.lut(m, lambda m: m >> count)")

    def __rlshift__(self, other: npt.ArrayLike) -> NoReturn:
        raise TypeError("'<<' by an encrypted count: of messages: ev.lut(m, lambda m: (x << m) % 16)")

    def __rrshift__(self, other: npt.ArrayLike) -> NoReturn:
        raise TypeError("'>>' by an encrypted count: of messages: ev.lut(m, lambda m: x >> m)")

    def __eq__(self, other: Ciphertext | Clear) -> BoundCiphertext:  # type: ignore[override]
        return _bound(self._evaluator, self._evaluator.equal(self, other))

    def __ne__(self, other: Ciphertext | Clear) -> BoundCiphertext:  # type: ignore[override]
        return _bound(self._evaluator, self._evaluator.not_equal(self, other))

    def __lt__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.less(self, other))

    def __le__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.less_equal(self, other))

    def __gt__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.greater(self, other))

    def __ge__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.greater_equal(self, other))

    __hash__ = None  # type: ignore[assignment]


class BoundIntegers(Integers):
    """Integers with operators, `ev(a)`. Integers like any others; results are bound too.

    ``+ - * & | ^ ~ << >> == != < <= > >=``; the other operand may be encrypted integers of the same type,
    bound or not, an int or a NumPy array. Shapes broadcast. Costs and refusals are those of the method of
    Evaluator: `add`, `bit_and`, `shift_left`, `equal`, ...
    """

    __slots__ = ("_evaluator",)

    def __init__(
        self,
        evaluator: Operations,
        context: Place,
        data: _crenel.TfheIntegers,
        shape: Shape,
        dtype: np.dtype[Element],
    ) -> None:
        super().__init__(context, data, shape, dtype)
        self._evaluator = evaluator

    @property
    def evaluator(self) -> Operations:
        """The evaluator that computes."""
        return self._evaluator

    @property
    def unbound(self) -> Integers:
        """The array without operators."""
        return Integers(self._context, self._data, self._shape, self._dtype)

    def _like(self: I, data: _crenel.TfheIntegers, shape: Shape) -> I:
        return type(self)(self._evaluator, self._context, data, shape, self._dtype)

    def sum(self, axis: int | tuple[int, ...] | None = None) -> BoundIntegers:
        """Evaluator.sum."""
        return _bound_integers(self._evaluator, self._evaluator.sum(self, axis))

    def __add__(self, other: Integers | Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.add(self, other))

    def __radd__(self, other: Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.add(other, self))

    def __sub__(self, other: Integers | Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.sub(self, other))

    def __rsub__(self, other: Integers | Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.sub(other, self))

    def __mul__(self, other: Integers | Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.mul(self, other))

    def __rmul__(self, other: Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.mul(other, self))

    def __neg__(self) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.neg(self))

    def __and__(self, other: Integers | Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.bit_and(self, other))

    __rand__ = __and__

    def __or__(self, other: Integers | Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.bit_or(self, other))

    __ror__ = __or__

    def __xor__(self, other: Integers | Clear) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.bit_xor(self, other))

    __rxor__ = __xor__

    def __invert__(self) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.bit_not(self))

    def __lshift__(self, count: int) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.shift_left(self, count))

    def __rshift__(self, count: int) -> BoundIntegers:
        return _bound_integers(self._evaluator, self._evaluator.shift_right(self, count))

    def __rlshift__(self, other: npt.ArrayLike) -> NoReturn:
        raise TypeError("'<<' by an encrypted count: counts are public ints; ev.select chooses among shifts")

    def __rrshift__(self, other: npt.ArrayLike) -> NoReturn:
        raise TypeError("'>>' by an encrypted count: counts are public ints; ev.select chooses among shifts")

    def __eq__(self, other: Integers | Clear) -> BoundCiphertext:  # type: ignore[override]
        return _bound(self._evaluator, self._evaluator.equal(self, other))

    def __ne__(self, other: Integers | Clear) -> BoundCiphertext:  # type: ignore[override]
        return _bound(self._evaluator, self._evaluator.not_equal(self, other))

    def __lt__(self, other: Integers | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.less(self, other))

    def __le__(self, other: Integers | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.less_equal(self, other))

    def __gt__(self, other: Integers | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.greater(self, other))

    def __ge__(self, other: Integers | Clear) -> BoundCiphertext:
        return _bound(self._evaluator, self._evaluator.greater_equal(self, other))

    __hash__ = None  # type: ignore[assignment]


def _bound(evaluator: Operations, a: Ciphertext) -> BoundCiphertext:
    return BoundCiphertext(evaluator, a.context, a._data, a.shape, a.dtype)


def _bound_integers(evaluator: Operations, a: Integers) -> BoundIntegers:
    return BoundIntegers(evaluator, a.context, a._data, a.shape, a.dtype)
