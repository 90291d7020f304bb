"""What bits, messages and integers have in common: arithmetic, comparisons, selection, sums, conversions."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError
from crenel.tfhe.arrays import Ciphertext, E, EncryptedArray, Integers, Shape
from crenel.tfhe.kinds import Kind, expect_kind, is_encrypted
from crenel.tfhe.operands import Pair, common_shape, reduced, residues, stretched, taken_apart, word, words
from crenel.tfhe.types import IntegerType, integer_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crenel.tfhe.arrays import Clear
    from crenel.tfhe.place import Place
    from crenel.tfhe.types import TypeLike

# Which circuits of integers run: fewest bootstraps, fewest rounds, or whichever ends first here.
Circuits: TypeAlias = Literal["automatic", "lean", "fast"]
CIRCUITS: tuple[Circuits, ...] = ("automatic", "lean", "fast")

_NUMBERS: tuple[Kind, ...] = ("message", "integer")
_ALL: tuple[Kind, ...] = ("bit", "message", "integer")


class Arithmetic:
    """Operations whose meaning follows the kind of their operands.

    Messages compute modulo the number of messages of the set: 16 with lut4-128, p without padding; nothing
    saturates. Integers compute modulo 2^bits. Operands are of one kind; one of them may be public: an int or
    an array of integers (bools beside bits). Shapes broadcast as NumPy's do. How they are computed:
    docs/theory/tfhe.md, "Functions of messages".
    """

    _circuits: Circuits
    __slots__ = ("_circuits", "_context", "_evaluator", "_integers", "_messages_engine")

    def __init__(
        self, context: Place, evaluator: _crenel.TfheEvaluator, circuits: Circuits = "automatic"
    ) -> None:
        self._context = context
        self._circuits = circuits
        self._evaluator = evaluator
        self._integers: _crenel.TfheIntegerEvaluator | None = None
        self._messages_engine: _crenel.TfheMessageEvaluator | None = None

    # ---- arithmetic ------------------------------------------------------------------------------------

    @overload
    def add(self, a: E, b: E | Clear) -> E: ...
    @overload
    def add(self, a: Clear, b: E) -> E: ...
    def add(self, a: EncryptedArray | Clear, b: EncryptedArray | Clear) -> EncryptedArray:
        """a + b of messages or integers, in their space (class Arithmetic).

        Messages need no bootstrap where their ranges leave room (2-bit messages on a set of 4 bits, say),
        else one. Raises TypeError for other kinds, StateError for types or shapes that do not go together.
        """
        return self._binary("add", a, b)

    @overload
    def sub(self, a: E, b: E | Clear) -> E: ...
    @overload
    def sub(self, a: Clear, b: E) -> E: ...
    def sub(self, a: EncryptedArray | Clear, b: EncryptedArray | Clear) -> EncryptedArray:
        """a - b of messages or integers, in their space; as `add`, but from a public value of their type."""
        return self._binary("sub", a, b, modular=is_encrypted(a))

    @overload
    def mul(self, a: E, b: E | Clear) -> E: ...
    @overload
    def mul(self, a: Clear, b: E) -> E: ...
    def mul(self, a: EncryptedArray | Clear, b: EncryptedArray | Clear) -> EncryptedArray:
        """a b of integers, or of messages and public integers, in their space.

        Messages: no bootstrap where the product has room, else one. Raises TypeError for two encrypted arrays
        of messages: ev.to_integers makes integers of them, which multiply.
        """
        pair = Pair("mul", _NUMBERS, a, b)
        if pair.kind == "integer":
            return self._integer_pair("mul", pair, modular=True)
        arrays = [x for x in pair.values if isinstance(x, Ciphertext)]
        clear = [x for x in pair.values if isinstance(x, np.ndarray)]
        if not clear:
            raise TypeError(
                "mul: found two encrypted arrays of messages, expected public integers beside one; "
                "ev.mul(ev.to_integers(a), ev.to_integers(b)) multiplies encrypted numbers"
            )
        array = arrays[0]
        limit = self._limit(array)
        factors = residues(clear[0], limit)
        if factors.ndim == 0:
            product = self._engine_m().mul(array._data, int(factors[()]))
            return self._message(product, array.shape, array.dtype)
        data = self._stretch(array, pair.shape)
        tables = [[m * f % limit for m in range(limit)] for f in range(limit)]
        index = np.broadcast_to(factors, pair.shape).reshape(-1).astype(np.uint32)
        return self._message(self._evaluator.lut(data, tables, 0, index), pair.shape, array.dtype)

    @overload
    def neg(self, a: Ciphertext) -> Ciphertext: ...
    @overload
    def neg(self, a: Integers) -> Integers: ...
    def neg(self, a: EncryptedArray) -> EncryptedArray:
        """-a of messages or integers, in their space."""
        expect_kind("neg", a, *_NUMBERS)
        if isinstance(a, Integers):
            return Integers(self._context, self._engine_i().neg(a._data), a.shape)
        return self._message(self._engine_m().sub(0, a._data), a.shape, a.dtype)

    @overload
    def min(self, a: E, b: E | Clear) -> E: ...
    @overload
    def min(self, a: Clear, b: E) -> E: ...
    def min(self, a: EncryptedArray | Clear, b: EncryptedArray | Clear) -> EncryptedArray:
        """The smaller of each pair of messages (six bootstraps) or integers."""
        return self._extreme("min", a, b)

    @overload
    def max(self, a: E, b: E | Clear) -> E: ...
    @overload
    def max(self, a: Clear, b: E) -> E: ...
    def max(self, a: EncryptedArray | Clear, b: EncryptedArray | Clear) -> EncryptedArray:
        """The larger of each pair of messages (six bootstraps) or integers."""
        return self._extreme("max", a, b)

    @overload
    def sum(
        self,
        a: Ciphertext,
        axis: int | tuple[int, ...] | None = ...,
        *,
        dtype: None = ...,
        keepdims: bool = ...,
    ) -> Ciphertext: ...
    @overload
    def sum(
        self,
        a: Ciphertext,
        axis: int | tuple[int, ...] | None = ...,
        *,
        dtype: TypeLike,
        keepdims: bool = ...,
    ) -> Integers: ...
    @overload
    def sum(
        self,
        a: Integers,
        axis: int | tuple[int, ...] | None = ...,
        *,
        dtype: TypeLike | None = ...,
        keepdims: bool = ...,
    ) -> Integers: ...
    def sum(
        self,
        a: Ciphertext | Integers,
        axis: int | tuple[int, ...] | None = None,
        *,
        dtype: TypeLike | None = None,
        keepdims: bool = False,
    ) -> Ciphertext | Integers:
        """Sum of elements over `axis`, all by default: of messages, integers, and bits, which it counts.

        Bits and messages give messages modulo their number (16 with lut4-128), type uint8 for bits;
        additions are linear and refresh what the noise demands. With `dtype`, a type of integers, they give
        integers of that type, exact where it holds the sum: counts above 15. Integers give integers, modulo
        2^bits, of their own type or, cast before they are added, of `dtype`. With `keepdims` the axes stay,
        of length 1.

        Raises ParameterError for axes that are not there or no type of integers.
        """
        expect_kind("sum", a, *_ALL)
        axes = self._axes("sum", a.shape, axis)
        shape = reduced(a.shape, axes, keepdims)
        if isinstance(a, Integers):
            data = a._data if dtype is None else self._cast(a, integer_type("sum", dtype))
            return Integers(self._context, self._engine_i().sum(taken_apart(data, a.shape, axes)), shape)
        parts = taken_apart(a._data, a.shape, axes)
        if dtype is not None:
            return self._counted("sum", parts, shape, dtype)
        kept = np.dtype(np.uint8) if a.kind == "bit" else a.dtype
        return self._message(self._engine_m().sum(parts), shape, kept)

    def one_hot(self, a: Ciphertext) -> Ciphertext:
        """Which message each one is: bits of shape (*a.shape, 16) with lut4-128, 1 at [..., v] where it is v.

        One rotation an element and a key switch a bit: 16 comparisons for about the time of four. The bits of
        one element come from one rotation: sums of them are judged as if their errors were one error.

        Raises TypeError for other kinds, UnsupportedError on sets without padding or with packing.
        """
        expect_kind("one_hot", a, "message")
        return self._message(self._engine_m().one_hot(a._data), (*a.shape, self._limit(a)), np.dtype(bool))

    def histogram(self, a: Ciphertext, bins: int | None = None, *, dtype: TypeLike = np.uint8) -> Integers:
        """How many elements of `a` are 0, 1, ..., bins - 1, as integers of type `dtype` and shape (bins,).

        `bins`: 1 to the number of messages (16 with lut4-128), all by default; messages from `bins` on are
        not counted. One rotation an element (`one_hot`) and about a quarter of a bootstrap an element and bin
        for the counts.

        Raises TypeError for other kinds, ParameterError for other `bins` and where the type does not hold
        a.size, UnsupportedError on sets without padding or with packing.
        """
        expect_kind("histogram", a, "message")
        limit = self._limit(a)
        kept = limit if bins is None else operator.index(bins)
        if not 1 <= kept <= limit:
            raise ParameterError(
                f"histogram: bins = {kept}, expected 1 to {limit}, the number of messages",
                {"bins": kept, "expected": f"1..{limit}"},
            )
        kind = integer_type("histogram", dtype)
        if a.size > kind.high:
            raise ParameterError(
                f"histogram: counts of {a.size} elements do not fit {kind}, whose largest value is "
                f"{kind.high}; take a wider dtype",
                {"dtype": str(kind), "size": a.size, "expected": f"up to {kind.high}"},
            )
        hits = self._engine_m().one_hot(a._data)
        parts = [hits.slice(first, kept) for first in range(0, hits.size, limit)]
        return self._counted("histogram", parts, (kept,), kind)

    # ---- comparisons -----------------------------------------------------------------------------------

    def equal(self, a: E | Clear, b: E | Clear) -> Ciphertext:
        """a == b, as bits. Messages: one bootstrap, two without padding. Bits: `xnor`."""
        return self._compare("equal", a, b)

    def not_equal(self, a: E | Clear, b: E | Clear) -> Ciphertext:
        """a != b, as bits."""
        return self._compare("not_equal", a, b)

    def less(self, a: E | Clear, b: E | Clear) -> Ciphertext:
        """a < b, as bits. Messages: one bootstrap.

        Raises UnsupportedError for two encrypted arrays of messages on a set without padding.
        """
        return self._compare("less", a, b)

    def less_equal(self, a: E | Clear, b: E | Clear) -> Ciphertext:
        """a <= b, as bits; as `less`."""
        return self._compare("less_equal", a, b)

    def greater(self, a: E | Clear, b: E | Clear) -> Ciphertext:
        """a > b, as bits; as `less`."""
        return self._compare("greater", a, b)

    def greater_equal(self, a: E | Clear, b: E | Clear) -> Ciphertext:
        """a >= b, as bits; as `less`."""
        return self._compare("greater_equal", a, b)

    @overload
    def select(self, condition: Ciphertext, a: E, b: E | Clear) -> E: ...
    @overload
    def select(self, condition: Ciphertext, a: Clear, b: E) -> E: ...
    def select(
        self, condition: Ciphertext, a: EncryptedArray | Clear, b: EncryptedArray | Clear
    ) -> EncryptedArray:
        """a where the condition is 1, else b: both bits, messages or integers; the condition is bits.

        Bits take what `mux` takes, messages five bootstraps on sets with padding (UnsupportedError without),
        integers a look-up a block and two.
        """
        expect_kind("select, condition", condition, "bit")
        pair = Pair("select", _ALL, a, b)
        shape = common_shape(condition.shape, pair.shape)
        pair.shape = shape
        chosen = self._stretch(condition, shape)
        if pair.kind == "integer":
            first, second = self._integer_operands("select", pair, modular=False)
            blocks = self._engine_i().select(chosen, first, second)
            return Integers(self._context, blocks, shape)
        x, y = self._message_operands("select", pair, modular=False)
        if pair.kind == "bit":
            first_bit, second_bit = self._encrypted(x, pair), self._encrypted(y, pair)
            return self._message(self._evaluator.mux(chosen, first_bit, second_bit), shape, np.dtype(bool))
        return self._message(self._engine_m().select(chosen, x, y), shape, pair.dtype)

    # ---- conversions -----------------------------------------------------------------------------------

    def to_messages(self, bits: Ciphertext) -> Ciphertext:
        """Bits as messages 0 and 1 of type uint8, for `add`, `sum` and `lut`. Costs nothing."""
        expect_kind("to_messages", bits, "bit")
        return Ciphertext(bits.context, bits._data, bits.shape, np.dtype(np.uint8))

    def to_bits(self, messages: Ciphertext) -> Ciphertext:
        """Messages as bits: 1 where they are not 0. One bootstrap, two without padding."""
        expect_kind("to_bits", messages, "message")
        return self.not_equal(messages, 0)

    def to_integers(self, a: Ciphertext, dtype: TypeLike = np.uint8) -> Integers:
        """Bits or messages as integers of a type of 2 to 256 bits, in which sums and products have room.

        Modulo 2^bits: a type of 2 bits keeps the low two of a message. At most two bootstraps an element.
        Raises ParameterError for other types and for sets without integers.
        """
        expect_kind("to_integers", a, "bit", "message")
        return self._counted("to_integers", [a._data], a.shape, dtype)

    # ---- inside ----------------------------------------------------------------------------------------

    def _engine_i(self) -> _crenel.TfheIntegerEvaluator:
        if self._integers is None:
            self._integers = _crenel.TfheIntegerEvaluator(self._evaluator, self._circuits)
        return self._integers

    def _engine_m(self) -> _crenel.TfheMessageEvaluator:
        if self._messages_engine is None:
            self._messages_engine = _crenel.TfheMessageEvaluator(self._evaluator)
        return self._messages_engine

    def _limit(self, a: Ciphertext) -> int:
        return _crenel.tfhe_message_bound(self._context.params, a.plain_modulus)

    def _message(self, data: _crenel.TfheCiphertext, shape: Shape, dtype: np.dtype) -> Ciphertext:
        return Ciphertext(self._context, data, shape, dtype)

    def _stretch(self, a: Ciphertext, shape: Shape) -> _crenel.TfheCiphertext:
        return stretched(a._data, a.shape, shape, self._context.params.slots)

    def _counted(
        self, operation: str, parts: Sequence[_crenel.TfheCiphertext], shape: Shape, dtype: TypeLike
    ) -> Integers:
        kind = integer_type(operation, dtype)
        blocks = self._engine_i().sum_messages(list(parts), kind.bits, kind.signed)
        return Integers(self._context, blocks, shape)

    def _cast(self, a: Integers, kind: IntegerType) -> _crenel.TfheIntegers:
        return a._data if a.type == kind else self._engine_i().convert(a._data, kind.bits, kind.signed)

    def _binary(self, name: str, a: object, b: object, modular: bool = True) -> Ciphertext | Integers:
        pair = Pair(name, _NUMBERS, a, b)
        if pair.kind == "integer":
            return self._integer_pair(name, pair, modular)
        first, second = self._message_operands(name, pair, modular=True)
        return self._message(getattr(self._engine_m(), name)(first, second), pair.shape, pair.dtype)

    def _extreme(self, name: str, a: object, b: object) -> Ciphertext | Integers:
        pair = Pair(name, _NUMBERS, a, b)
        if pair.kind == "integer":
            return self._integer_pair(name, pair, modular=False)
        first, second = self._message_operands(name, pair, modular=False)
        condition = self._engine_m().compare("less" if name == "min" else "greater", first, second)
        return self._message(self._engine_m().select(condition, first, second), pair.shape, pair.dtype)

    def _integer_pair(self, name: str, pair: Pair, modular: bool) -> Integers:
        first, second = self._integer_operands(name, pair, modular)
        return Integers(self._context, getattr(self._engine_i(), name)(first, second), pair.shape)

    def _integer_operands(
        self, name: str, pair: Pair, modular: bool
    ) -> tuple[_crenel.TfheIntegers | list[int], _crenel.TfheIntegers | list[int]]:
        assert isinstance(pair.like, Integers)
        kind = pair.like.type

        def one(x: EncryptedArray | np.ndarray) -> _crenel.TfheIntegers | list[int]:
            if isinstance(x, Integers):
                return stretched(x._data, x.shape, pair.shape, self._context.params.slots)
            assert isinstance(x, np.ndarray)  # of one kind: Pair
            if x.ndim == 0:
                return word(name, int(x[()]), kind, modular)
            known = words(name, np.broadcast_to(x, pair.shape), kind, modular)
            return self._engine_i().trivial(known, kind.bits, kind.signed)

        first, second = pair.values
        return one(first), one(second)

    def _message_operands(
        self, name: str, pair: Pair, modular: bool
    ) -> tuple[_crenel.TfheCiphertext | int, _crenel.TfheCiphertext | int]:
        like = next(x for x in pair.values if isinstance(x, Ciphertext))
        limit = 2 if pair.kind == "bit" else self._limit(like)

        def one(x: EncryptedArray | np.ndarray) -> _crenel.TfheCiphertext | int:
            if isinstance(x, Ciphertext):
                return self._stretch(x, pair.shape)
            assert isinstance(x, np.ndarray)  # of one kind: Pair
            if modular:
                x = residues(x, limit)
            elif x.min() < 0 or x.max() >= limit:
                raise ParameterError(
                    f"{name}: a public value is no message, expected 0 to {limit - 1}",
                    {"operation": name, "expected": f"0..{limit - 1}"},
                )
            if x.ndim == 0:
                return int(x[()])
            return self._known(np.broadcast_to(x, pair.shape), like)

        first, second = pair.values
        return one(first), one(second)

    def _known(self, values: np.ndarray, like: Ciphertext) -> _crenel.TfheCiphertext:
        flat = np.ascontiguousarray(values).reshape(-1).astype(np.uint64)
        return self._evaluator.trivial(flat, like.plain_modulus)

    def _encrypted(self, x: _crenel.TfheCiphertext | int, pair: Pair) -> _crenel.TfheCiphertext:
        """A bit for gates: public ones as encryptions without noise."""
        if not isinstance(x, int):
            return x
        like = next(v for v in pair.values if isinstance(v, Ciphertext))
        return self._known(np.full(pair.shape, x), like)

    def _compare(self, name: str, a: object, b: object) -> Ciphertext:
        pair = Pair(name, _ALL, a, b)
        if pair.kind == "integer":
            first, second = self._integer_operands(name, pair, modular=False)
            data = self._engine_i().compare(name, first, second)
        elif pair.kind == "message":
            x, y = self._message_operands(name, pair, modular=False)
            data = self._engine_m().compare(name, x, y)
        else:
            x, y = self._message_operands(name, pair, modular=False)
            data = self._compare_bits(name, self._encrypted(x, pair), self._encrypted(y, pair))
        return self._message(data, pair.shape, np.dtype(bool))

    def _compare_bits(
        self, name: str, a: _crenel.TfheCiphertext, b: _crenel.TfheCiphertext
    ) -> _crenel.TfheCiphertext:
        ev = self._evaluator
        if name in ("equal", "not_equal"):
            return ev.gate("xnor" if name == "equal" else "xor", [a, b])
        if name in ("less", "less_equal"):
            return ev.gate("and" if name == "less" else "or", [ev.invert(a), b])
        return ev.gate("and" if name == "greater" else "or", [a, ev.invert(b)])

    def _axes(self, operation: str, shape: Shape, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
        if axis is None:
            return tuple(range(len(shape)))
        wanted = [operator.index(i) for i in (axis if isinstance(axis, tuple) else (axis,))]
        for i in wanted:
            if not -len(shape) <= i < len(shape):
                raise ParameterError(
                    f"{operation}: axis {i} of an array with {len(shape)} axes",
                    {"axis": i, "ndim": len(shape)},
                )
        axes = tuple(sorted(i % len(shape) for i in wanted))
        if len(set(axes)) != len(axes):
            raise ParameterError(f"{operation}: axis {axis} names one axis twice", {"axis": str(axis)})
        return axes
