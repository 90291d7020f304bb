"""The convenient form: operators on ciphertexts, with levels and scales handled.

``ev(a) * ev(b) + 0.5`` is written on top of the explicit operations of `crenel.ckks.Evaluator`:

* products are rescaled at once, so every operand sits at the canonical scale of its level;
* operands at different levels are brought to the lower one first;
* a product with a Python integer, or a complex number whose parts are integers (``1j``), repeats
  addition and consumes no level; any other product consumes one.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from crenel._crenel import Ciphertext, Evaluator, Plaintext
from crenel.errors import ParameterError, StateError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    OperandLike: TypeAlias = "Operand | Ciphertext | Plaintext | npt.ArrayLike"

_SAME_SCALE = 1e-12  # relative, as the evaluator demands
_MAX_INTEGER = 1 << 31  # above, a factor is encoded like any other number


def sum_rotations(count: int, stride: int = 1) -> list[int]:
    """Rotations whose keys a sum over `count` slots (a power of two) at this distance needs."""
    if count < 1 or count & (count - 1):
        raise ParameterError(f"count must be a power of two, got {count}", {"count": str(count)})
    return [stride << j for j in range(count.bit_length() - 1)]


class Operand:
    """A ciphertext bound to an evaluator. Immutable; every operation returns a new one.

    Operands combine by ``+ - * /`` with operands, ciphertexts, plaintexts, NumPy arrays (encoded
    as needed; shorter ones are padded with zeros) and Python numbers.
    """

    __slots__ = ("_ciphertext", "_evaluator")
    _ciphertext: Ciphertext
    _evaluator: Evaluator
    __array_ufunc__ = None  # numpy_array * operand is ours, not NumPy's

    def __init__(self, evaluator: Evaluator, ciphertext: Ciphertext | Operand) -> None:
        if isinstance(ciphertext, Operand):
            ciphertext = ciphertext._ciphertext
        if not isinstance(ciphertext, Ciphertext):
            raise TypeError(f"expected a ciphertext, got {type(ciphertext).__name__}")
        self._evaluator = evaluator
        self._ciphertext = ciphertext

    # -- what it is ------------------------------------------------------------------------------

    @property
    def ciphertext(self) -> Ciphertext:
        """The ciphertext, for the explicit operations."""
        return self._ciphertext

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator whose keys and device are used."""
        return self._evaluator

    @property
    def level(self) -> int:
        """Index of the modulus: levels that can still be consumed."""
        return self._ciphertext.level

    @property
    def scale(self) -> float:
        """Scale of the message."""
        return self._ciphertext.scale

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self._ciphertext.slots

    @property
    def real(self) -> bool:
        """Every slot is known to be real."""
        return self._ciphertext.real

    def to_bytes(self) -> bytes:
        """The ciphertext as a complete safetensors file."""
        return self._ciphertext.to_bytes()

    def __repr__(self) -> str:
        return f"<ckks.Operand level {self.level}, scale {self.scale:g}, {self.slots} slots>"

    # -- sums: level l -> l ----------------------------------------------------------------------

    def __add__(self, other: OperandLike) -> Operand:
        """Sum. Level: the lower one of the operands."""
        return self._linear(other, self._evaluator.add)

    __radd__ = __add__

    def __sub__(self, other: OperandLike) -> Operand:
        """Difference. Level: the lower one of the operands."""
        return self._linear(other, self._evaluator.sub)

    def __rsub__(self, other: OperandLike) -> Operand:
        return (-self).__add__(other)

    def __neg__(self) -> Operand:
        return self._new(self._evaluator.negate(self._ciphertext))

    def __pos__(self) -> Operand:
        return self

    # -- products: level l -> l - 1 (integers: l) --------------------------------------------------

    def __mul__(self, other: OperandLike) -> Operand:
        """Product, rescaled. Level l -> l - 1; by an integer: l -> l."""
        ev = self._evaluator
        if (b := _ciphertext_of(other)) is not None:
            if b is self._ciphertext:
                return self.square()
            a, b = self._aligned(b)
            return self._new(ev.multiply_rescale(a, b))
        a = self._reduced(self._ciphertext)
        if isinstance(other, Plaintext):
            return self._new(ev.rescale(ev.multiply(a, other)))
        if (number := _number(other)) is None:
            factor = self._encoded_factor(a, other)  # type: ignore[arg-type]
            return self._new(ev.rescale(ev.multiply(a, factor)))
        if (gaussian := _gaussian_integer(number)) is not None:
            return self._new(ev.multiply_integer(a, *gaussian))
        return self._new(ev.rescale(ev.multiply(a, complex(number))))

    __rmul__ = __mul__

    def __truediv__(self, other: complex | npt.ArrayLike) -> Operand:
        """Quotient by a number or an array. Level l -> l - 1."""
        if isinstance(other, Ciphertext | Operand | Plaintext):
            return NotImplemented
        import numpy as np

        number = _number(other)
        if number == 0:
            raise ZeroDivisionError("division of a ciphertext by zero")
        return self * (1.0 / np.asarray(other) if number is None else 1.0 / number)

    def __pow__(self, exponent: int) -> Operand:
        """Power with a positive integer. Level l -> l - ceil(log2 exponent)."""
        if not isinstance(exponent, numbers.Integral) or exponent < 1:
            raise ParameterError(
                f"the exponent must be a positive integer, got {exponent!r}",
                {"exponent": repr(exponent)},
            )
        powers = {1: self}

        def power(k: int) -> Operand:
            if k not in powers:
                high = power((k + 1) // 2)
                powers[k] = high * power(k // 2)
            return powers[k]

        return power(int(exponent))

    def square(self) -> Operand:
        """Square, rescaled. Level l -> l - 1."""
        a = self._reduced(self._ciphertext)
        return self._new(self._evaluator.multiply_rescale(a, a))

    # -- slots: level l -> l -------------------------------------------------------------------------

    def rotate(self, steps: int) -> Operand:
        """Slot i becomes slot i + steps: ``numpy.roll(x, -steps)``. Level l -> l."""
        return self._new(self._evaluator.rotate(self._ciphertext, steps))

    def rotate_many(self, steps: Sequence[int]) -> list[Operand]:
        """All these rotations with one decomposition (hoisting). Level l -> l."""
        rotated = self._evaluator.rotate_many(self._ciphertext, list(steps))
        return [self._new(c) for c in rotated]

    def rotate_sum(self, steps: Sequence[int]) -> Operand:
        """Sum of these rotations (0: the operand itself), hoisted. Level l -> l."""
        return self._new(self._evaluator.rotate_sum(self._ciphertext, list(steps)))

    def conjugate(self) -> Operand:
        """Complex conjugate of every slot. Level l -> l."""
        return self._new(self._evaluator.conjugate(self._ciphertext))

    def sum(self, count: int | None = None, stride: int = 1) -> Operand:
        """Slot i becomes the sum of `count` slots i, i + stride, ... (default: of all slots).

        Needs the rotations of ``ckks.sum_rotations(count, stride)``. Level l -> l.
        """
        count = self.slots // abs(stride or 1) if count is None else count
        return self._new(self._evaluator.sum_slots(self._ciphertext, count, stride))

    # -- levels and polynomials ----------------------------------------------------------------------

    def at_level(self, level: int) -> Operand:
        """The same message at a lower level and its canonical scale."""
        return self._new(self._evaluator.adjust_level(self._ciphertext, level))

    def polynomial(
        self,
        coefficients: npt.ArrayLike,
        basis: Literal["power", "chebyshev"] = "power",
        interval: tuple[float, float] = (-1.0, 1.0),
    ) -> Operand:
        """Polynomial of every slot. Level l -> l - polynomial_depth(degree)."""
        x = self._reduced(self._ciphertext)
        return self._new(self._evaluator.polynomial(x, coefficients, basis, interval))

    # -- alignment -----------------------------------------------------------------------------------

    def _new(self, ciphertext: Ciphertext) -> Operand:
        return Operand(self._evaluator, ciphertext)

    def _linear(self, other: OperandLike, operation) -> Operand:
        if (b := _ciphertext_of(other)) is not None:
            return self._new(operation(*self._aligned(b)))
        a = self._ciphertext
        if isinstance(other, Plaintext):
            return self._new(operation(a, other))
        if (number := _number(other)) is not None:
            return self._new(operation(a, complex(number)))
        encode = self._evaluator.context.encode
        term = encode(other, a.level, a.scale, a.slots)  # type: ignore[arg-type]
        return self._new(operation(a, term))

    def _reduced(self, c: Ciphertext) -> Ciphertext:
        """A fresh product (of the explicit form) relinearised and rescaled to an ordinary scale."""
        ev, params = self._evaluator, self._evaluator.context.params
        if c.components > 2:
            c = ev.relinearise(c)
        while c.level > 0 and c.scale > params.scale(c.level) * 2 ** (params.log_scale / 2):
            c = ev.rescale(c)
        return c

    def _aligned(self, other: Ciphertext) -> tuple[Ciphertext, Ciphertext]:
        """Both ciphertexts at the lower of their levels and at one scale."""
        ev = self._evaluator
        a, b = self._reduced(self._ciphertext), self._reduced(other)
        if a.level > b.level:
            a = ev.adjust_level(a, b.level, b.scale)
        elif b.level > a.level:
            b = ev.adjust_level(b, a.level, a.scale)
        elif abs(a.scale - b.scale) > _SAME_SCALE * a.scale:
            if a.level == 0:
                raise StateError(
                    f"scales {a.scale!r} and {b.scale!r} differ at level 0",
                    {"scale": repr(a.scale), "expected": repr(b.scale), "level": "0"},
                )
            a, b = ev.adjust_level(a, a.level - 1), ev.adjust_level(b, b.level - 1)
        return a, b

    def _encoded_factor(self, a: Ciphertext, values: npt.ArrayLike) -> Plaintext:
        """`values` at the scale with which the rescaled product is canonical."""
        context = self._evaluator.context
        if a.level == 0:
            return context.encode(values, 0, None, a.slots)  # the rescale that follows will refuse
        params = context.params
        scale = params.rescale_ratio(a.level) * params.scale(a.level - 1) / a.scale
        return context.encode(values, a.level, scale, a.slots)


def _ciphertext_of(other: object) -> Ciphertext | None:
    if isinstance(other, Operand):
        return other.ciphertext
    return other if isinstance(other, Ciphertext) else None


def _number(other: object) -> complex | None:
    """Python and NumPy scalars, also as arrays without dimensions; None for vectors."""
    if isinstance(other, numbers.Number):
        return other  # type: ignore[return-value]
    if getattr(other, "ndim", None) == 0:
        return other.item()  # type: ignore[attr-defined]
    return None


def _gaussian_integer(number: complex | np.number) -> tuple[int, int] | None:
    """(re, im) of an integer, or of a complex number whose parts are integers."""
    if isinstance(number, numbers.Integral):
        re, im = int(number), 0
    elif isinstance(number, numbers.Complex) and not isinstance(number, numbers.Real):
        z = complex(number)
        if not (z.real.is_integer() and z.imag.is_integer()):
            return None
        re, im = int(z.real), int(z.imag)
    else:
        return None
    return (re, im) if max(abs(re), abs(im)) < _MAX_INTEGER else None
