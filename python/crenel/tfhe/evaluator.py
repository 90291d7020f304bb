"""Evaluator of TFHE: gates and look-up tables; integers are in crenel.tfhe.integer_ops."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError, StateError
from crenel.tfhe.arrays import Ciphertext, Integers, Shape
from crenel.tfhe.integer_ops import IntegerOperations
from crenel.tfhe.place import Place

if TYPE_CHECKING:
    import numpy.typing as npt

Table = Callable[[int], int] | Sequence[int]


class Evaluator(IntegerOperations):
    """Operations on encrypted arrays, element by element; shapes must agree.

    Each call is one batch of bootstraps: whole arrays are much faster than elements one after the other.
    Every operation raises StateError for arrays of another context or of different shapes, TypeError for
    objects of another kind, and KeyMissingError where a key is missing. Arrays carry the noise that they
    gathered; operations whose bootstraps would fail more often than `max_p_fail_log2` allows raise
    ParameterError.
    """

    __slots__ = ("_context", "_evaluator", "_integers")

    def __init__(self, context: Place, evaluator: _crenel.TfheEvaluator) -> None:
        self._context = context
        self._evaluator = evaluator
        self._integers: _crenel.TfheIntegerEvaluator | None = None

    @property
    def context(self) -> Place:
        """The context."""
        return self._context

    @property
    def keys(self) -> _crenel.TfheEvaluationKeys:
        """The keys."""
        return self._evaluator.keys

    @property
    def max_p_fail_log2(self) -> float:
        """log2 of the largest failure probability that a bootstrap may have (Context.evaluator)."""
        return self._evaluator.max_p_fail_log2

    def p_fail_log2(self, operation: str) -> float:
        """log2 of the bound on the failure probability of an operation's bootstraps, the worst of them.

        operation : a gate ('and', 'nand', 'xor', 'majority', 'and3', 'or4', ...), 'mux', 'refresh', or 'lut'
            of a table without symmetry

        For independent inputs that are fresh or bootstrapped, whichever has more noise. Raises ParameterError
        for any other name.
        """
        return self._evaluator.p_fail_log2(operation)

    # ---- gates -----------------------------------------------------------------------------------------

    def not_(self, a: Ciphertext) -> Ciphertext:
        """~a, without a bootstrap."""
        return self._wrap(self._evaluator.not_(_messages(a)), a.shape, bool)

    def and_(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a & b of bits. One bootstrap an element, as all gates of two inputs, which must be two arrays."""
        return self._gate("and", a, b)

    def or_(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a | b of bits."""
        return self._gate("or", a, b)

    def nand(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """~(a & b) of bits."""
        return self._gate("nand", a, b)

    def nor(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """~(a | b) of bits."""
        return self._gate("nor", a, b)

    def xor(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a ^ b of bits."""
        return self._gate("xor", a, b)

    def xnor(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """~(a ^ b) of bits."""
        return self._gate("xnor", a, b)

    def majority(self, a: Ciphertext, b: Ciphertext, c: Ciphertext) -> Ciphertext:
        """1 where at least two of three bits are. One bootstrap."""
        return self._gate("majority", a, b, c)

    def and3(self, a: Ciphertext, b: Ciphertext, c: Ciphertext) -> Ciphertext:
        """a & b & c of bits encrypted with fan_in=3. One bootstrap."""
        return self._gate("and3", a, b, c)

    def or3(self, a: Ciphertext, b: Ciphertext, c: Ciphertext) -> Ciphertext:
        """a | b | c of bits encrypted with fan_in=3. One bootstrap."""
        return self._gate("or3", a, b, c)

    def and4(self, a: Ciphertext, b: Ciphertext, c: Ciphertext, d: Ciphertext) -> Ciphertext:
        """a & b & c & d of bits encrypted with fan_in=4. One bootstrap."""
        return self._gate("and4", a, b, c, d)

    def or4(self, a: Ciphertext, b: Ciphertext, c: Ciphertext, d: Ciphertext) -> Ciphertext:
        """a | b | c | d of bits encrypted with fan_in=4. One bootstrap."""
        return self._gate("or4", a, b, c, d)

    def mux(self, condition: Ciphertext, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a where the condition is 1, else b, all bits. Three bootstraps, or two with sets for tables."""
        data = [_messages(x) for x in (condition, a, b)]
        _same_shape(condition, a, b)
        return self._wrap(self._evaluator.mux(*data), condition.shape, bool)

    def refresh(self, a: Ciphertext) -> Ciphertext:
        """The same bits or messages with fresh noise. One bootstrap."""
        return self._wrap(self._evaluator.refresh(_messages(a)), a.shape, a.dtype)

    # ---- look-up tables ----------------------------------------------------------------------------------

    def lut(
        self, a: Ciphertext, table: Table | Sequence[Table], index: npt.ArrayLike | None = None
    ) -> Ciphertext:
        """f(a) of small messages: one bootstrap with padded sets such as lut4-128, up to two with others.

        Parameters
        ----------
        a : messages (encrypted with `bits`) or bits
        table : a function of an int, or its values for 0, 1, ..., as many as there are messages: 16 with
            lut4-128. With `index`, a list of such tables
        index : an array of a's shape that says which table each element takes

        Raises ParameterError for tables of another length and values that are no messages.
        """
        data = _messages(a)
        if index is None:
            tables, chosen = [self._entries(a, table)], None
        else:
            tables = [self._entries(a, t) for t in table]
            chosen = _index(index, a.shape)
        result = self._evaluator.lut(data, tables, 0, chosen)
        bits = a.dtype == np.bool_ and all(value < 2 for t in tables for value in t)
        dtype = a.dtype if bits or a.dtype != np.bool_ else np.uint8
        return self._wrap(result, a.shape, dtype)

    def floor(self, a: Ciphertext, bits: int) -> Ciphertext:
        """Clears the low `bits` bits of each message. Two bootstraps; sets for large messages."""
        return self._wrap(self._evaluator.floor(_messages(a), bits), a.shape, a.dtype)

    def sign(self, a: Ciphertext) -> Ciphertext:
        """Bits: 1 where the message is in the upper half of all messages, the negative ones."""
        return self._wrap(self._evaluator.sign(_messages(a)), a.shape, bool)

    def decompose(self, a: Ciphertext, base_bits: int) -> list[Ciphertext]:
        """Digits of each message to base 2^base_bits, least significant first."""
        digits = self._evaluator.decompose(_messages(a), base_bits)
        return [self._wrap(digit, a.shape, a.dtype) for digit in digits]

    def pack(self, single: Ciphertext) -> Ciphertext:
        """Messages encrypted by Client.single put under common masks, r to each.

        Raises KeyMissingError unless the keys were made with packing=True.
        """
        return self._wrap(self._evaluator.pack(_messages(single)), single.shape, single.dtype)

    # ---- inside --------------------------------------------------------------------------------------------

    def _gate(self, name: str, *inputs: Ciphertext) -> Ciphertext:
        data = [_messages(a) for a in inputs]
        _same_shape(*inputs)
        return self._wrap(self._evaluator.gate(name, data), inputs[0].shape, bool)

    def _entries(self, a: Ciphertext, table: Table) -> list[int]:
        if callable(table):
            limit = _crenel.tfhe_message_bound(self._context.params, a.plain_modulus)
            table = [table(m) for m in range(limit)]
        entries = [operator.index(value) for value in table]
        for m, entry in enumerate(entries):
            if not 0 <= entry < 1 << 64:
                raise ParameterError(f"table: entry {m} is no message, expected 0 or more", {"entry": m})
        return entries

    def _wrap(self, data: _crenel.TfheCiphertext, shape: Shape, dtype: npt.DTypeLike) -> Ciphertext:
        return Ciphertext(self._context, data, shape, np.dtype(dtype))

    def __repr__(self) -> str:
        return f"<tfhe.Evaluator of {self._context!r}>"


def _messages(a: Ciphertext) -> _crenel.TfheCiphertext:
    if not isinstance(a, Ciphertext):
        what = "integers, which have operations of their own" if isinstance(a, Integers) else type(a).__name__
        raise TypeError(f"expected an encrypted array of bits or messages, got {what}")
    return a._data


def _same_shape(*arrays: Ciphertext | Integers) -> None:
    for other in arrays[1:]:
        if other.shape != arrays[0].shape:
            raise StateError(
                f"arrays of shapes {arrays[0].shape} and {other.shape}, expected equal ones",
                {"found": list(other.shape), "expected": list(arrays[0].shape)},
            )


def _index(index: npt.ArrayLike, shape: Shape) -> np.ndarray:
    array = np.asarray(index)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise ParameterError(
            f"index must be integers of shape {shape}, got {array.dtype} of shape {array.shape}",
            {"shape": list(array.shape), "dtype": str(array.dtype)},
        )
    if array.min() < 0 or array.max() >= 1 << 32:
        wrong = array.min() if array.min() < 0 else array.max()
        raise ParameterError(f"index {wrong}, expected the number of a table", {"index": int(wrong)})
    return np.ascontiguousarray(array.reshape(-1), dtype=np.uint32)
