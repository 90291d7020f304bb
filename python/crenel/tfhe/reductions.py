"""Encrypted integers along an axis: extremes and where they are, order, dot products."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from crenel import _crenel
from crenel.tfhe.arrays import Integers
from crenel.tfhe.integer_ops import IntegerOperations
from crenel.tfhe.kinds import expect_kind
from crenel.tfhe.operands import Pair, reduced, stretched, taken_apart, word, words
from crenel.tfhe.types import IntegerType

if TYPE_CHECKING:
    from crenel.tfhe.arrays import Clear


class Reductions(IntegerOperations):
    """Operations along axes of arrays of integers."""

    __slots__ = ()

    def amin(
        self, a: Integers, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
    ) -> Integers:
        """The smallest elements over `axis`, all by default: k - 1 `min` in log2 k rounds.

        Raises ParameterError for axes that are not there.
        """
        return self._tournament("min", a, axis, keepdims)

    def amax(
        self, a: Integers, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
    ) -> Integers:
        """The largest elements over `axis`; as `amin`."""
        return self._tournament("max", a, axis, keepdims)

    def argmin(self, a: Integers, axis: int | None = None, *, keepdims: bool = False) -> Integers:
        """Where the smallest element is along `axis`, the first of equal ones; as `argmax`."""
        return self._where("less", a, axis, keepdims)

    def argmax(self, a: Integers, axis: int | None = None, *, keepdims: bool = False) -> Integers:
        """Where the largest element is along `axis`, the first of equal ones; by default of all as one row.

        Unsigned integers of the fewest bits of 8, 16, 32 that hold the answer. k - 1 comparisons in log2 k
        rounds, and two selections for each. Raises ParameterError for axes that are not there.
        """
        return self._where("greater", a, axis, keepdims)

    def sort(self, a: Integers, axis: int | None = -1) -> Integers:
        """The elements in ascending order along `axis`; None: of all, as one row.

        A network of about k (log2 k)^2 / 4 exchanges, each a comparison and the choice of both sides. Equal
        integers are the same. Raises ParameterError for axes that are not there.
        """
        expect_kind("sort", a, "integer")
        if axis is None:
            a, axis = a.reshape(-1), 0
        (along,) = self._axes("sort", a.shape, operator.index(axis))
        length = a.shape[along]
        order = np.moveaxis(np.arange(a.size, dtype=np.uint64).reshape(a.shape), along, 0)
        rows = np.ascontiguousarray(order).reshape(length, -1)
        data = a._data
        for pairs in exchanges(length):
            low = rows[[i for i, _ in pairs]].reshape(-1)
            high = rows[[j for _, j in pairs]].reshape(-1)
            smaller, larger = self._engine_i().min_max(data.take(low), data.take(high))
            place = np.arange(a.size, dtype=np.uint64)  # in the three behind each other
            place[low] = a.size + np.arange(low.size, dtype=np.uint64)
            place[high] = a.size + low.size + np.arange(high.size, dtype=np.uint64)
            data = _joined([data, smaller, larger]).take(place)
        return Integers(self._context, data, a.shape)

    def dot(self, a: Integers | Clear, b: Integers | Clear, axis: int = -1) -> Integers:
        """The sum of a * b over `axis` of their common shape, the last by default, modulo 2^bits.

        Of two encrypted arrays the digits of all products are added before any carry goes through. Public
        numbers with one axis, as long as `axis`, multiply without products of digits. Raises ParameterError
        for axes that are not there, StateError for types or shapes that do not go together.
        """
        pair = Pair("dot", ("integer",), a, b)
        (along,) = self._axes("dot", pair.shape, operator.index(axis))
        shape = tuple(n for i, n in enumerate(pair.shape) if i != along)
        public = [x for x in pair.values if isinstance(x, np.ndarray)]
        if public and public[0].ndim == 1 and along == len(pair.shape) - 1:
            weights = np.broadcast_to(public[0], pair.shape[-1:])
            parts = taken_apart(self._operand(pair, pair.like), pair.shape, (along,))
            assert isinstance(pair.like, Integers)
            factors = [word("dot", w, pair.like.type, modular=True) for w in weights.tolist()]
            products = [self._engine_i().mul(x, w) for x, w in zip(parts, factors, strict=True)]
            return Integers(self._context, self._engine_i().sum(products), shape)
        first, second = (taken_apart(self._operand(pair, x), pair.shape, (along,)) for x in pair.values)
        return Integers(self._context, self._engine_i().dot(first, second), shape)

    # ---- inside --------------------------------------------------------------------------------------------

    def _operand(self, pair: Pair, x: object) -> _crenel.TfheIntegers:
        """The operand in the pair's shape, encrypted."""
        if isinstance(x, Integers):
            return stretched(x._data, x.shape, pair.shape, self._context.params.slots)
        assert isinstance(x, np.ndarray) and isinstance(pair.like, Integers)
        kind = pair.like.type
        known = words("dot", np.broadcast_to(x, pair.shape), kind, modular=True)
        return self._engine_i().trivial(known, kind.bits, kind.signed)

    def _tournament(
        self, name: str, a: Integers, axis: int | tuple[int, ...] | None, keepdims: bool
    ) -> Integers:
        operation = f"a{name}"
        expect_kind(operation, a, "integer")
        axes = self._axes(operation, a.shape, axis)
        shape = reduced(a.shape, axes, keepdims)
        parts = taken_apart(a._data, a.shape, axes)
        count, each = len(parts), math.prod(shape)
        data = _joined(parts)
        while count > 1:
            half = count // 2
            best = getattr(self._engine_i(), name)(
                data.slice(0, half * each), data.slice(half * each, half * each)
            )
            rest = [data.slice(2 * half * each, each)] if count % 2 else []
            data, count = _joined([best, *rest]), half + count % 2
        return Integers(self._context, data, shape)

    def _where(self, better: str, a: Integers, axis: int | None, keepdims: bool) -> Integers:
        operation = "argmax" if better == "greater" else "argmin"
        expect_kind(operation, a, "integer")
        axes = self._axes(operation, a.shape, axis if axis is None else operator.index(axis))
        shape = reduced(a.shape, axes, keepdims)
        parts = taken_apart(a._data, a.shape, axes)
        count, each = len(parts), math.prod(shape)
        kind = IntegerType(8 if count <= 1 << 8 else 16 if count <= 1 << 16 else 32)
        places = np.repeat(np.arange(count, dtype=np.uint64), each)
        found = self._known_integers(operation, places, kind)
        data, engine = _joined(parts), self._engine_i()
        while count > 1:
            # neighbours, so that what stands before stays before: equal elements keep the first
            rows = np.arange(count * each, dtype=np.uint64).reshape(count, each)
            left, right = rows[: count // 2 * 2 : 2].reshape(-1), rows[1::2].reshape(-1)
            first, second = data.take(left), data.take(right)
            is_better = engine.compare(better, second, first)
            best = engine.select(is_better, second, first)
            at = engine.select(is_better, found.take(right), found.take(left))
            rest = rows[-1] if count % 2 else None
            data = _joined([best] if rest is None else [best, data.take(rest)])
            found = _joined([at] if rest is None else [at, found.take(rest)])
            count = (count + 1) // 2
        return Integers(self._context, found, shape)


def _joined(parts: list[_crenel.TfheIntegers]) -> _crenel.TfheIntegers:
    return parts[0] if len(parts) == 1 else _crenel.tfhe_concatenate(parts)


def exchanges(length: int) -> list[list[tuple[int, int]]]:
    """Rounds of exchanges (i, j), i < j, that sort any `length` elements (Batcher's merge exchange)."""
    rounds: list[list[tuple[int, int]]] = []
    top = 1 << max(length - 1, 1).bit_length() - 1
    p = top
    while p > 0 and length > 1:
        q, r, d = top, 0, p
        while True:
            pairs = [(i, i + d) for i in range(length - d) if i & p == r]
            if pairs:
                rounds.append(pairs)
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1
    return rounds
