"""Encrypted arrays bound to an evaluator, `ev(a)`: they have operators, and are taken wherever arrays are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast, overload

import numpy as np

from crenel import _crenel
from crenel.tfhe.arrays import Ciphertext, Integers, Shape
from crenel.tfhe.kinds import is_encrypted
from crenel.tfhe.place import Place
from crenel.tfhe.ufuncs import call_function, call_ufunc, matmul

if TYPE_CHECKING:
    import numpy.typing as npt

    from crenel.tfhe.arrays import Clear, Element
    from crenel.tfhe.operations import Operations
    from crenel.tfhe.types import TypeLike

A = TypeVar("A", Ciphertext, Integers)  # what is bound
R = TypeVar("R", "BoundCiphertext", "BoundIntegers")
B = TypeVar("B", bound="BoundCiphertext")
I = TypeVar("I", bound="BoundIntegers")  # noqa: E741


class _Operators(Generic[A, R]):
    """Operators of all kinds, by methods of the evaluator. First among the bases: the array refuses them."""

    __slots__ = ()
    _evaluator: Operations

    @property
    def evaluator(self) -> Operations:
        """The evaluator that computes."""
        return self._evaluator

    def _by(self, method: str, *operands: object) -> R:
        return cast("R", bound(self._evaluator, getattr(self._evaluator, method)(*operands)))

    def _compare(self, method: str, other: object) -> BoundCiphertext:
        bits: Ciphertext = getattr(self._evaluator, method)(self, other)
        return bound(self._evaluator, bits)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: Any) -> object:
        return _rebound(self._evaluator, call_ufunc(self._evaluator, ufunc, method, inputs, options))

    def __array_function__(
        self, function: Callable[..., object], types: object, args: tuple[Any, ...], options: dict[str, Any]
    ) -> object:
        return _rebound(self._evaluator, call_function(self._evaluator, function, args, options))

    def __add__(self, other: A | Clear) -> R:
        return self._by("add", self, other)

    def __radd__(self, other: Clear) -> R:
        return self._by("add", other, self)

    def __sub__(self, other: A | Clear) -> R:
        return self._by("sub", self, other)

    def __rsub__(self, other: A | Clear) -> R:
        return self._by("sub", other, self)

    def __rmul__(self, other: Clear) -> R:
        return self._by("mul", other, self)

    def __pos__(self) -> R:
        return cast("R", self)

    def __neg__(self) -> R:
        return self._by("neg", self)

    def __eq__(self, other: A | Clear) -> BoundCiphertext:  # type: ignore[override]
        return self._compare("equal", other)

    def __ne__(self, other: A | Clear) -> BoundCiphertext:  # type: ignore[override]
        return self._compare("not_equal", other)

    def __lt__(self, other: A | Clear) -> BoundCiphertext:
        return self._compare("less", other)

    def __le__(self, other: A | Clear) -> BoundCiphertext:
        return self._compare("less_equal", other)

    def __gt__(self, other: A | Clear) -> BoundCiphertext:
        return self._compare("greater", other)

    def __ge__(self, other: A | Clear) -> BoundCiphertext:
        return self._compare("greater_equal", other)

    __hash__ = None  # type: ignore[assignment]


class BoundCiphertext(_Operators[Ciphertext, "BoundCiphertext"], Ciphertext):
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
    def unbound(self) -> Ciphertext:
        """The array without operators."""
        return Ciphertext(self._context, self._data, self._shape, self._dtype)

    def _like(self: B, data: _crenel.TfheCiphertext, shape: Shape) -> B:
        return type(self)(self._evaluator, self._context, data, shape, self._dtype)

    def sum(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> BoundCiphertext:
        """Evaluator.sum without `dtype`: messages."""
        return bound(self._evaluator, self._evaluator.sum(self, axis, keepdims=keepdims))

    def any(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> BoundCiphertext:
        """Evaluator.any, of bits."""
        return bound(self._evaluator, self._evaluator.any(self, axis, keepdims=keepdims))

    def all(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> BoundCiphertext:
        """Evaluator.all, of bits."""
        return bound(self._evaluator, self._evaluator.all(self, axis, keepdims=keepdims))

    def __mul__(self, other: Clear) -> BoundCiphertext:
        return self._by("mul", self, other)

    def __and__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return self._by("and_", self, other)

    __rand__ = __and__

    def __or__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return self._by("or_", self, other)

    __ror__ = __or__

    def __xor__(self, other: Ciphertext | Clear) -> BoundCiphertext:
        return self._by("xor", self, other)

    __rxor__ = __xor__

    def __invert__(self) -> BoundCiphertext:
        return self._by("not_", self)

    def __lshift__(self, count: int) -> NoReturn:
        raise TypeError("'<<' shifts encrypted integers; of messages: ev.lut(m, lambda m: (m << count) % 16)")

    def __rshift__(self, count: int) -> NoReturn:
        raise TypeError("'>>' shifts encrypted integers; of messages: ev.lut(m, lambda m: m >> count)")

    def __rlshift__(self, other: npt.ArrayLike) -> NoReturn:
        raise TypeError("'<<' by an encrypted count: of messages: ev.lut(m, lambda m: (x << m) % 16)")

    def __rrshift__(self, other: npt.ArrayLike) -> NoReturn:
        raise TypeError("'>>' by an encrypted count: of messages: ev.lut(m, lambda m: x >> m)")


class BoundIntegers(_Operators[Integers, "BoundIntegers"], Integers):
    """Integers with operators, `ev(a)`. Integers like any others; results are bound too.

    ``+ - * // % @ & | ^ ~ << >> == != < <= > >=``, abs() and divmod(), in-place forms (which make a new
    array), and NumPy's functions of the same; the other operand may be encrypted integers of the same type,
    bound or not, an int or a NumPy array. Shapes broadcast. Costs and refusals are those of the method of
    Evaluator: `add`, `div`, `bit_and`, `shift_left`, `equal`, ...
    """

    __slots__ = ("_evaluator",)

    def __init__(
        self, evaluator: Operations, context: Place, data: _crenel.TfheIntegers, shape: Shape
    ) -> None:
        super().__init__(context, data, shape)
        self._evaluator = evaluator

    @property
    def unbound(self) -> Integers:
        """The array without operators."""
        return Integers(self._context, self._data, self._shape)

    def _like(self: I, data: _crenel.TfheIntegers, shape: Shape) -> I:
        return type(self)(self._evaluator, self._context, data, shape)

    def sum(
        self,
        axis: int | tuple[int, ...] | None = None,
        *,
        dtype: TypeLike | None = None,
        keepdims: bool = False,
    ) -> BoundIntegers:
        """Evaluator.sum."""
        return bound(self._evaluator, self._evaluator.sum(self, axis, dtype=dtype, keepdims=keepdims))

    def min(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> BoundIntegers:
        """Evaluator.amin."""
        return bound(self._evaluator, self._evaluator.amin(self, axis, keepdims=keepdims))

    def max(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> BoundIntegers:
        """Evaluator.amax."""
        return bound(self._evaluator, self._evaluator.amax(self, axis, keepdims=keepdims))

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> BoundIntegers:
        """Evaluator.argmin."""
        return bound(self._evaluator, self._evaluator.argmin(self, axis, keepdims=keepdims))

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> BoundIntegers:
        """Evaluator.argmax."""
        return bound(self._evaluator, self._evaluator.argmax(self, axis, keepdims=keepdims))

    def astype(self, dtype: TypeLike) -> BoundIntegers:
        """Evaluator.cast."""
        return self._by("cast", self, dtype)

    def dot(self, other: Integers | Clear) -> BoundIntegers:
        """Evaluator.dot over the last axis."""
        return self._by("dot", self, other)

    def __matmul__(self, other: Integers | Clear) -> BoundIntegers:
        return bound(self._evaluator, matmul(self._evaluator, self, other))

    def __rmatmul__(self, other: Integers | Clear) -> BoundIntegers:
        return bound(self._evaluator, matmul(self._evaluator, other, self))

    def __floordiv__(self, other: Integers | Clear) -> BoundIntegers:
        return self._by("div", self, other)

    def __rfloordiv__(self, other: Integers | Clear) -> BoundIntegers:
        return self._by("div", other, self)

    def __mod__(self, other: Integers | Clear) -> BoundIntegers:
        return self._by("rem", self, other)

    def __rmod__(self, other: Integers | Clear) -> BoundIntegers:
        return self._by("rem", other, self)

    def __divmod__(self, other: Integers | Clear) -> tuple[BoundIntegers, BoundIntegers]:
        return self._both(self._evaluator.divmod(self, other))

    def __rdivmod__(self, other: Integers | Clear) -> tuple[BoundIntegers, BoundIntegers]:
        return self._both(self._evaluator.divmod(other, self))

    def _both(self, pair: tuple[Integers, Integers]) -> tuple[BoundIntegers, BoundIntegers]:
        return bound(self._evaluator, pair[0]), bound(self._evaluator, pair[1])

    def __truediv__(self, other: Integers | Clear) -> NoReturn:
        raise TypeError("'/' of encrypted integers would be a fraction; '//' divides and rounds down")

    __rtruediv__ = __truediv__

    def __abs__(self) -> BoundIntegers:
        return self._by("abs", self)

    def __mul__(self, other: Integers | Clear) -> BoundIntegers:
        return self._by("mul", self, other)

    def __and__(self, other: Integers | Clear) -> BoundIntegers:
        return self._by("bit_and", self, other)

    __rand__ = __and__

    def __or__(self, other: Integers | Clear) -> BoundIntegers:
        return self._by("bit_or", self, other)

    __ror__ = __or__

    def __xor__(self, other: Integers | Clear) -> BoundIntegers:
        return self._by("bit_xor", self, other)

    __rxor__ = __xor__

    def __invert__(self) -> BoundIntegers:
        return self._by("bit_not", self)

    def __lshift__(self, count: int | Integers) -> BoundIntegers:
        return self._by("shift_left", self, count)

    def __rshift__(self, count: int | Integers) -> BoundIntegers:
        return self._by("shift_right", self, count)

    def __rlshift__(self, other: Clear) -> BoundIntegers:
        return self._by("shift_left", other, self)

    def __rrshift__(self, other: Clear) -> BoundIntegers:
        return self._by("shift_right", other, self)


@overload
def bound(evaluator: Operations, array: Ciphertext) -> BoundCiphertext: ...
@overload
def bound(evaluator: Operations, array: Integers) -> BoundIntegers: ...
def bound(evaluator: Operations, array: Ciphertext | Integers) -> BoundCiphertext | BoundIntegers:
    """The array with operators that `evaluator` computes."""
    if isinstance(array, Integers):
        return BoundIntegers(evaluator, array.context, array._data, array.shape)
    return BoundCiphertext(evaluator, array.context, array._data, array.shape, array.dtype)


def _rebound(evaluator: Operations, result: object) -> object:
    """Encrypted results with operators, also within a tuple."""
    if isinstance(result, tuple) and any(is_encrypted(x) for x in result):
        return tuple(_rebound(evaluator, x) for x in result)
    return bound(evaluator, result) if isinstance(result, (Ciphertext, Integers)) else result
