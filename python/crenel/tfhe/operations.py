"""Gates, look-up tables and functions; arithmetic is in arithmetic.py, integer_ops.py and reductions.py."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from crenel import _crenel
from crenel.arguments import flag, natural, refuse_masked, text
from crenel.errors import ParameterError
from crenel.tfhe.arrays import Ciphertext, Integers, Shape, concatenate
from crenel.tfhe.compressed import Compressed
from crenel.tfhe.kinds import as_array, expect_kind
from crenel.tfhe.operands import Pair, common_shape, reduced, taken_apart
from crenel.tfhe.place import Place
from crenel.tfhe.reductions import Reductions

if TYPE_CHECKING:
    import numpy.typing as npt

    from crenel.tfhe.arithmetic import Circuits
    from crenel.tfhe.arrays import Clear

Table: TypeAlias = Callable[[int], int] | Sequence[int]


class Operations(Reductions):
    """All operations of `Evaluator`, which adds the binding of arrays. Failures: docs/theory/tfhe.md,
    "Probability of failure"."""

    __slots__ = ()

    @property
    def context(self) -> Place:
        """The context."""
        return self._context

    @property
    def keys(self) -> _crenel.TfheEvaluationKeys:
        """The keys."""
        return self._evaluator.keys

    @property
    def circuits(self) -> Circuits:
        """Which circuits of integers run (Context.evaluator)."""
        return self._circuits

    @property
    def max_p_fail_log2(self) -> float:
        """log2 of the largest failure probability that a bootstrap may have (Context.evaluator)."""
        return self._evaluator.max_p_fail_log2

    @property
    def steps(self) -> tuple[int, ...]:
        """Secret bits a step that batches may be rotated by, ascending; of sets without groups none."""
        return tuple(self._evaluator.steps)

    @property
    def step_table(self) -> tuple[tuple[int, int], ...]:
        """Which batch takes which of them: (rotations, step) for batches of up to so many, those beyond the
        last as the last. Empty where all take the context's own."""
        return tuple((rotations, step) for rotations, step in self._evaluator.step_table)

    def p_fail_log2(self, operation: str) -> float:
        """log2 of the bound on the failure probability of an operation's bootstraps, the worst of them.

        operation : a gate ('and', 'nand', 'xor', 'majority', 'and3', 'or4', ...), 'mux', 'refresh', or 'lut'
            of a table without symmetry

        For independent inputs that are fresh or bootstrapped, whichever has more noise. Raises ParameterError
        for any other name.
        """
        return self._evaluator.p_fail_log2(text("operation", operation))

    # ---- gates -----------------------------------------------------------------------------------------

    def not_(self, a: Ciphertext) -> Ciphertext:
        """~a of bits, without a bootstrap."""
        expect_kind("not_", a, "bit")
        return self._wrap(self._evaluator.invert(a._data), a.shape, bool)

    def and_(self, a: Ciphertext | Clear, b: Ciphertext | Clear) -> Ciphertext:
        """a & b of bits. One bootstrap an element, as all gates of two inputs, which must be two arrays.

        One of them may be public: a bool or an array of bools.
        """
        return self._gate2("and_", a, b)

    def or_(self, a: Ciphertext | Clear, b: Ciphertext | Clear) -> Ciphertext:
        """a | b of bits."""
        return self._gate2("or_", a, b)

    def nand(self, a: Ciphertext | Clear, b: Ciphertext | Clear) -> Ciphertext:
        """~(a & b) of bits."""
        return self._gate2("nand", a, b)

    def nor(self, a: Ciphertext | Clear, b: Ciphertext | Clear) -> Ciphertext:
        """~(a | b) of bits."""
        return self._gate2("nor", a, b)

    def xor(self, a: Ciphertext | Clear, b: Ciphertext | Clear) -> Ciphertext:
        """a ^ b of bits."""
        return self._gate2("xor", a, b)

    def xnor(self, a: Ciphertext | Clear, b: Ciphertext | Clear) -> Ciphertext:
        """~(a ^ b) of bits."""
        return self._gate2("xnor", a, b)

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
        """a where the condition is 1, else b, all bits. Three bootstraps, or two with sets for tables.

        `select` does the same of bits, and of messages and integers.
        """
        for name, x in (("mux, condition", condition), ("mux", a), ("mux", b)):
            expect_kind(name, x, "bit")
        shape = common_shape(condition.shape, a.shape, b.shape)
        chosen, first, second = (self._stretch(x, shape) for x in (condition, a, b))
        return self._wrap(self._evaluator.mux(chosen, first, second), shape, bool)

    def refresh(self, a: Ciphertext) -> Ciphertext:
        """The same bits or messages with fresh noise. One bootstrap, or two without padding."""
        expect_kind("refresh", a, "bit", "message")
        if a.kind == "message" and not self._context.params.padded:
            return self.lut(a, range(self._limit(a)))
        return self._wrap(self._evaluator.refresh(a._data), a.shape, a.dtype)

    # ---- bits along axes ---------------------------------------------------------------------------------

    def any(
        self, a: Ciphertext, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
    ) -> Ciphertext:
        """Bits: 1 where one at least is 1 along `axis`, all by default.

        Sets for tables take 15 bits a bootstrap (with lut4-128), others two. Raises TypeError for other
        kinds, ParameterError for axes that are not there.
        """
        expect_kind("any", a, "bit")
        axes = self._axes("any", a.shape, axis)
        shape = reduced(a.shape, axes, keepdims)
        each = math.prod(shape)
        bits = [Ciphertext(a.context, part, (each,), a.dtype) for part in taken_apart(a._data, a.shape, axes)]
        most = self._limit(a) - 1 if self._context.params.padded else 2
        while len(bits) > 1:
            groups = [bits[i : i + most] for i in range(0, len(bits), most)]
            rest = groups.pop() if len(groups[-1]) == 1 else []
            if most == 2:
                found = self.or_(*(concatenate([g[i] for g in groups]) for i in (0, 1)))
            else:
                sums = [self._engine_m().sum([bit._data for bit in g]) for g in groups]
                counts = concatenate([self._message(s, (each,), np.dtype(np.uint8)) for s in sums])
                found = self.lut(counts, lambda m: m != 0)
            bits = [found[i * each : (i + 1) * each] for i in range(len(groups))] + rest
        return bits[0].reshape(shape)

    def all(
        self, a: Ciphertext, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
    ) -> Ciphertext:
        """Bits: 1 where all are 1 along `axis`; as `any`."""
        expect_kind("all", a, "bit")
        return self.not_(self.any(self.not_(a), axis, keepdims=keepdims))

    # ---- look-up tables ----------------------------------------------------------------------------------

    def lut(
        self, a: Ciphertext, table: Table | Sequence[Table], index: npt.ArrayLike | None = None
    ) -> Ciphertext:
        """f(a) of small messages: one bootstrap with padded sets such as lut4-128, up to two with others.

        Parameters
        ----------
        a : messages (encrypted with `bits`) or bits
        table : a function of an int, or its values for 0, 1, ..., as many as there are messages: 16 with
            lut4-128. With `index`, a list of such tables. Values that are all bools give an array of bits
        index : an array of a's shape that says which table each element takes

        Raises ParameterError for tables of another length and values that are no messages.
        """
        expect_kind("lut", a, "bit", "message")
        if index is None:
            entries = [self._entries(a, table)]  # type: ignore[arg-type]
            chosen = None
        else:
            entries = [self._entries(a, t) for t in table]  # type: ignore[arg-type, union-attr]
            chosen = _index(index, a.shape)
        tables = [[int(value) for value in t] for t in entries]
        gives_bits = all(isinstance(value, (bool, np.bool_)) for t in entries for value in t) or (
            a.kind == "bit" and all(value < 2 for t in tables for value in t)
        )
        modulus = (
            _crenel.tfhe_bit_modulus(self._context.params, 2) if gives_bits and a.kind == "message" else 0
        )
        dtype = np.dtype(bool) if gives_bits else a.dtype if a.kind == "message" else np.dtype(np.uint8)
        return self._wrap(self._evaluator.lut(a._data, tables, modulus, chosen), a.shape, dtype)

    def floor(self, a: Ciphertext, bits: int) -> Ciphertext:
        """Clears the low `bits` bits of each message. Two bootstraps; sets for large messages."""
        expect_kind("floor", a, "message")
        return self._wrap(self._evaluator.floor(a._data, natural("bits", bits)), a.shape, a.dtype)

    def sign(self, a: Ciphertext) -> Ciphertext:
        """Bits: 1 where the message is in the upper half of all messages, the negative ones.

        Sets with padding take one bootstrap, as `lut` does.
        """
        expect_kind("sign", a, "message")
        if self._context.params.padded:
            # of the messages, which are half of what the modulus has: a padded phase never gets there
            limit = self._limit(a)
            return self.lut(a, [2 * m >= limit for m in range(limit)])
        return self._wrap(self._evaluator.sign(a._data), a.shape, bool)

    def decompose(self, a: Ciphertext, base_bits: int) -> list[Ciphertext]:
        """Digits of each message to base 2^base_bits, least significant first."""
        expect_kind("decompose", a, "message")
        digits = self._evaluator.decompose(a._data, natural("base_bits", base_bits))
        return [self._wrap(digit, a.shape, a.dtype) for digit in digits]

    def pack(self, single: Ciphertext) -> Ciphertext:
        """Messages encrypted by Client.single put under common masks, r to each.

        Raises KeyMissingError unless the keys were made with packing=True.
        """
        expect_kind("pack", single, "bit", "message")
        return self._wrap(self._evaluator.pack(single._data), single.shape, single.dtype)

    # ---- storage ---------------------------------------------------------------------------------------

    def compress(self, a: Ciphertext | Integers, *, lists: bool = False) -> Compressed:
        """The array in host memory in a fraction of its bytes, for storage: sets with groups of secret bits.

        Each message, or block of an integer, is switched to the LWE secret and rounded to the 2N steps of a
        rotation: n + 1 words of log2 2N bits, 1.3 KB with lut4-128.

        lists : in lists: up to N messages in one ciphertext of the ring, N words and one for each message,
            down to 4 bytes a message with lut4-128 (`Context.stored_bytes` says how many). Takes keys with
            ``lists=True``, and of sets those with one polynomial. Packing many is faster than switching each

        The rounding is noise: raises ParameterError where the array could not be read again with the failure
        probability that the evaluator allows, UnsupportedError for sets without groups, StateError for bits
        encrypted with fan_in=3 or 4, KeyMissingError for lists without their key.
        """
        expect_kind("compress", a, "bit", "message", "integer")
        if isinstance(a, Integers):
            data = self._engine_i().compress(a._data, flag("lists", lists))
        else:
            data = self._evaluator.compress(a._data, flag("lists", lists))
        return Compressed(self._context, data, a.shape, a.dtype)

    def decompress(self, compressed: Compressed) -> Ciphertext | Integers:
        """The array that was compressed, with fresh noise: one rotation a message, or block of an integer.

        Raises StateError for what was compressed in another context or with other keys, ParameterError as
        `compress`, OutOfMemoryError, before anything is taken, where there is no room for the array.
        """
        if not isinstance(compressed, Compressed):
            raise TypeError(f"decompress: expected a compressed array, got {type(compressed).__name__}")
        if compressed.kind == "integer":
            return Integers(self._context, self._engine_i().decompress(compressed._data), compressed.shape)
        return self._wrap(self._evaluator.decompress(compressed._data), compressed.shape, compressed.dtype)

    # ---- inside --------------------------------------------------------------------------------------------

    def _gate2(self, name: str, a: object, b: object) -> Ciphertext:
        pair = Pair(name, ("bit",), a, b)
        first, second = (self._encrypted(x, pair) for x in self._message_operands(name, pair, modular=False))
        return self._wrap(self._evaluator.gate(name.rstrip("_"), [first, second]), pair.shape, bool)

    def _gate(self, name: str, *inputs: Ciphertext) -> Ciphertext:
        for a in inputs:
            expect_kind(name, a, "bit")
        shape = common_shape(*(a.shape for a in inputs))
        data = [self._stretch(a, shape) for a in inputs]
        return self._wrap(self._evaluator.gate(name, data), shape, bool)

    def _entries(self, a: Ciphertext, table: Table) -> list[int]:
        if callable(table):
            table = [table(m) for m in range(self._limit(a))]
        refuse_masked(table, "the table")
        entries = [v if isinstance(v, (bool, np.bool_)) else operator.index(v) for v in table]
        for m, entry in enumerate(entries):
            if not 0 <= entry < 1 << 64:
                raise ParameterError(f"table: entry {m} is no message, expected 0 or more", {"entry": m})
        return entries

    def _wrap(self, data: _crenel.TfheCiphertext, shape: Shape, dtype: npt.DTypeLike) -> Ciphertext:
        return Ciphertext(self._context, data, shape, np.dtype(dtype))

    def __repr__(self) -> str:
        return f"<tfhe.Evaluator of {self._context!r}>"


def _index(index: npt.ArrayLike, shape: Shape) -> np.ndarray:
    array = as_array("index", index)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise ParameterError(
            f"index must be integers of shape {shape}, got {array.dtype} of shape {array.shape}",
            {"shape": list(array.shape), "dtype": str(array.dtype)},
        )
    if array.min() < 0 or array.max() >= 1 << 32:
        wrong = array.min() if array.min() < 0 else array.max()
        raise ParameterError(f"index {wrong}, expected the number of a table", {"index": int(wrong)})
    return np.ascontiguousarray(array.reshape(-1), dtype=np.uint32)
