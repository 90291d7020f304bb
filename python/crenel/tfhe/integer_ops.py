"""Operations of encrypted integers alone: division, shifts, bits, types, overflow, tables, random numbers."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from crenel.arguments import items, positive, whole
from crenel.errors import ParameterError
from crenel.tfhe.arithmetic import Arithmetic
from crenel.tfhe.arrays import Ciphertext, Integers, Shape
from crenel.tfhe.kinds import clear_values, expect_kind, is_encrypted
from crenel.tfhe.operands import Pair, common_shape, stretched, words
from crenel.tfhe.types import IntegerType, integer_type, outside, to_words

if TYPE_CHECKING:
    import numpy.typing as npt

    from crenel import _crenel
    from crenel.tfhe.arrays import Clear
    from crenel.tfhe.types import TypeLike


class IntegerOperations(Arithmetic):
    """Operations on integers. Operands have one type; one may be public. Shapes broadcast."""

    __slots__ = ()

    # ---- division ------------------------------------------------------------------------------------------

    def div(self, a: Integers | Clear, b: Integers | Clear) -> Integers:
        """a // b, rounded down as Python and NumPy do.

        By an encrypted 0 it is -1: all bits set, the largest value of unsigned integers. The least value of
        a signed type by -1 is itself. Raises ParameterError for a public divisor that is or contains 0.
        """
        return self._divided("div", a, b)

    def rem(self, a: Integers | Clear, b: Integers | Clear) -> Integers:
        """a % b, of the divisor's sign. By an encrypted 0 it is a. Raises as `div`."""
        return self._divided("rem", a, b)

    def divmod(self, a: Integers | Clear, b: Integers | Clear) -> tuple[Integers, Integers]:
        """(a // b, a % b) for about the cost of one of them. Raises as `div`."""
        pair = self._division_pair("divmod", a, b)
        first, second = self._integer_operands("divmod", pair, modular=False)
        quotient, remainder = self._engine_i().divmod(first, second)
        return (
            Integers(self._context, quotient, pair.shape),
            Integers(self._context, remainder, pair.shape),
        )

    # ---- signs, extremes, overflow -------------------------------------------------------------------------

    def abs(self, a: Integers) -> Integers:
        """|a|; of unsigned integers themselves. The least value of a signed type stays what it is."""
        return self._unary("abs", a)

    def min_max(self, a: Integers | Clear, b: Integers | Clear) -> tuple[Integers, Integers]:
        """The smaller and the larger of each pair, by one comparison."""
        pair = Pair("min_max", ("integer",), a, b)
        first, second = self._integer_operands("min_max", pair, modular=False)
        low, high = self._engine_i().min_max(first, second)
        return Integers(self._context, low, pair.shape), Integers(self._context, high, pair.shape)

    def add_overflow(self, a: Integers | Clear, b: Integers | Clear) -> tuple[Integers, Ciphertext]:
        """a + b modulo 2^bits, and bits that say where that is not the sum."""
        return self._checked("add_overflow", a, b)

    def sub_overflow(self, a: Integers | Clear, b: Integers | Clear) -> tuple[Integers, Ciphertext]:
        """a - b modulo 2^bits, and bits that say where that is not the difference."""
        return self._checked("sub_overflow", a, b)

    def mul_overflow(self, a: Integers | Clear, b: Integers | Clear) -> tuple[Integers, Ciphertext]:
        """a b modulo 2^bits, and bits that say where that is not the product, which is made in full."""
        return self._checked("mul_overflow", a, b)

    # ---- bits ----------------------------------------------------------------------------------------------

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
        return self._unary("bit_not", a)

    def shift_left(self, a: Integers | Clear, count: int | Integers) -> Integers:
        """a << count modulo 2^bits.

        count : an int from 0 to bits - 1, or encrypted unsigned integers of any width, one for each element;
            these shift everything out from `bits` on. `a` may be public then: integers of the count's type

        Raises ParameterError for other ints, StateError for encrypted signed counts.
        """
        return self._shifted("shift_left", a, count)

    def shift_right(self, a: Integers | Clear, count: int | Integers) -> Integers:
        """a >> count, arithmetic for signed integers; count as for shift_left."""
        return self._shifted("shift_right", a, count)

    def rotate_left(self, a: Integers, count: int | Integers) -> Integers:
        """The bits of a moved up by count, what leaves the top coming in below; encrypted: modulo bits."""
        return self._shifted("rotate_left", a, count)

    def rotate_right(self, a: Integers, count: int | Integers) -> Integers:
        """The bits of a moved down by count, those below coming in at the top; as rotate_left."""
        return self._shifted("rotate_right", a, count)

    def leading_zeros(self, a: Integers) -> Integers:
        """How many bits are 0 above the highest 1, all of 0: uint8, or uint16 for 256 bits."""
        return self._unary("leading_zeros", a)

    def trailing_zeros(self, a: Integers) -> Integers:
        """How many bits are 0 below the lowest 1, all of 0: uint8, or uint16 for 256 bits."""
        return self._unary("trailing_zeros", a)

    def count_ones(self, a: Integers) -> Integers:
        """How many bits are 1, in two's complement: uint8, or uint16 for 256 bits."""
        return self._unary("count_ones", a)

    # ---- types, tables, random numbers ---------------------------------------------------------------------

    def cast(self, a: Integers, dtype: TypeLike) -> Integers:
        """The same values modulo 2^bits of another type, as NumPy's astype has them.

        Costs nothing, but for signed integers that get wider: one bootstrap an element. Raises
        ParameterError for no type of integers.
        """
        expect_kind("cast", a, "integer")
        return Integers(self._context, self._cast(a, integer_type("cast", dtype)), a.shape)

    def take(self, table: npt.ArrayLike, index: Integers, *, dtype: TypeLike | None = None) -> Integers:
        """table[index] of a public table with one axis and encrypted indices; 0 beyond its end.

        table : integers; no more entries than the index can say, and at most 65,536
        index : unsigned integers of any width and shape; the shape of the result
        dtype : of the result; default the table's own type

        The number of bootstraps an element grows with the table: about a sixteenth of its length a bit of
        the entries. Raises StateError for signed indices, ParameterError for other tables and for entries
        that the type does not hold.
        """
        expect_kind("take, index", index, "integer")
        values = clear_values("take, table", table, "integer")
        if values.ndim != 1:
            raise ParameterError(
                f"take: a table of shape {values.shape}, expected one axis", {"shape": list(values.shape)}
            )
        if dtype is None and values.dtype == object:
            raise ParameterError("take: a table of Python's ints needs dtype", {"dtype": "None"})
        kind = integer_type("take", values.dtype if dtype is None else dtype)
        wrong = outside(values, kind)
        if wrong is not None:
            raise ParameterError(
                f"take: entry {wrong} is no {kind}: expected {kind.low} to {kind.high}",
                {"entry": wrong, "expected": f"{kind.low}..{kind.high}", "dtype": str(kind)},
            )
        blocks = self._engine_i().look_up(index._data, to_words(values, kind), kind.bits, kind.signed)
        return Integers(self._context, blocks, index.shape)

    def random(self, shape: int | Shape, dtype: TypeLike = "uint8", *, seed: bytes | None = None) -> Integers:
        """Integers that are uniform, and known to nobody who lacks the secret key: one bootstrap a block.

        seed : 32 bytes, public; default from the operating system. Equal seeds give equal integers: with the
            seed and the secret key anyone knows them, and a server that may choose seeds may repeat them

        Each block of two bits is a function of the phase of a row that the seed expands to, which only the
        secret key tells. Raises ParameterError for other seeds, shapes without elements and types.
        """
        kind = integer_type("random", dtype)
        extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(items("shape", shape))
        extents = tuple(whole("shape", n) for n in extents)
        if any(n < 1 for n in extents):
            raise ParameterError(
                f"random: shape {extents}, expected at least one element", {"shape": list(extents)}
            )
        if seed is not None and not (isinstance(seed, (bytes, bytearray, memoryview)) and len(seed) == 32):
            # bytes(32) would be 32 zeros, and no bytes at all the system's choice
            found = f"{len(seed)} bytes" if isinstance(seed, (bytes, bytearray)) else type(seed).__name__
            raise ParameterError(f"random: seed of {found}, expected 32 bytes", {"seed": found})
        size = positive("elements of shape", math.prod(extents))
        blocks = self._engine_i().random(size, kind.bits, kind.signed, b"" if seed is None else bytes(seed))
        return Integers(self._context, blocks, extents)

    # ---- inside --------------------------------------------------------------------------------------------

    def _unary(self, name: str, a: Integers) -> Integers:
        expect_kind(name, a, "integer")
        return Integers(self._context, getattr(self._engine_i(), name)(a._data), a.shape)

    def _bitwise(self, name: str, a: object, b: object) -> Integers:
        return self._integer_pair(name, Pair(name, ("integer",), a, b), modular=False)

    def _division_pair(self, name: str, a: object, b: object) -> Pair:
        pair = Pair(name, ("integer",), a, b)
        divisor = pair.values[1]
        if isinstance(divisor, np.ndarray) and (divisor == 0).any():
            where = "" if divisor.ndim == 0 else f", element {int(np.flatnonzero(divisor == 0)[0])} of it"
            raise ParameterError(f"{name}: the public divisor is 0{where}", {"operation": name, "divisor": 0})
        return pair

    def _divided(self, name: str, a: object, b: object) -> Integers:
        return self._integer_pair(name, self._division_pair(name, a, b), modular=False)

    def _checked(self, name: str, a: object, b: object) -> tuple[Integers, Ciphertext]:
        pair = Pair(name, ("integer",), a, b)
        first, second = self._integer_operands(name, pair, modular=False)
        value, flag = getattr(self._engine_i(), name)(first, second)
        bits = self._message(flag, pair.shape, np.dtype(bool))
        return Integers(self._context, value, pair.shape), bits

    def _shifted(self, name: str, a: object, count: object) -> Integers:
        engine = self._engine_i()
        if not is_encrypted(count):
            expect_kind(name, a, "integer")
            assert isinstance(a, Integers)
            data = getattr(engine, name)(a._data, _public_count(name, count, a.bits))
            return Integers(self._context, data, a.shape)
        expect_kind(f"{name}, count", count, "integer")
        assert isinstance(count, Integers)
        if is_encrypted(a):
            expect_kind(name, a, "integer")
            assert isinstance(a, Integers)
            kind, shape = a.type, common_shape(a.shape, count.shape)
            data = stretched(a._data, a.shape, shape, self._context.params.slots)
        else:
            kind = count.type
            known = clear_values(name, a, "integer")
            shape = common_shape(known.shape, count.shape)
            data = self._known_integers(name, np.broadcast_to(known, shape), kind)
        counts = stretched(count._data, count.shape, shape, self._context.params.slots)
        return Integers(self._context, getattr(engine, name)(data, counts), shape)

    def _known_integers(self, name: str, values: np.ndarray, kind: IntegerType) -> _crenel.TfheIntegers:
        return self._engine_i().trivial(words(name, values, kind, modular=False), kind.bits, kind.signed)


def _public_count(operation: str, count: object, bits: int) -> int:
    """How far to shift; TypeError that says what to do where it is no int, ParameterError beyond bits."""
    try:
        number = operator.index(count)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{operation}: expected a public int as count, or encrypted integers, got {type(count).__name__}"
        ) from None
    if not 0 <= number < bits:
        raise ParameterError(
            f"{operation}: count {number}, expected 0..{bits - 1}",
            {"count": number, "expected": f"0..{bits - 1}"},
        )
    return number
