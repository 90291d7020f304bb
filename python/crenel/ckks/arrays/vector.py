"""What an array computes on: operands, their error bounds, and operands that record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crenel._crenel import Ciphertext, ErrorBound, ErrorModel, Evaluator, Operand, concatenate
from crenel.ckks.arrays.layout import Integers, Numbers
from crenel.ckks.recorder import Recorded, Recorder
from crenel.errors import StateError

V = TypeVar("V", bound="Vector")
Diagonals = Mapping[int, Numbers]


class Vector(Protocol):
    """Vectors of one or more ciphertexts that can be computed with: what Operand, ErrorBound and Recorded
    share. Those of one computation are of one kind."""

    @property
    def level(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def real(self) -> bool: ...
    @property
    def bound(self) -> float: ...
    @property
    def ciphertext(self) -> Ciphertext | ErrorBound | Recorded: ...
    @property
    def evaluator(self) -> Evaluator | ErrorModel | Recorder: ...

    def __add__(self: V, other: V | ArrayLike) -> V: ...
    def __sub__(self: V, other: V | ArrayLike) -> V: ...
    def __mul__(self: V, other: V | ArrayLike) -> V: ...
    def __pow__(self: V, exponent: int) -> V: ...
    def __neg__(self: V) -> V: ...
    def square(self: V) -> V: ...
    def conjugate(self: V) -> V: ...
    def rotate(self: V, steps: int) -> V: ...
    def sum(self: V, count: int, stride: int) -> V: ...
    def at_level(self: V, level: int) -> V: ...
    def with_slots(self: V, slots: int, *, repeating: bool = False) -> V: ...
    def linear_transform(self: V, matrix: Diagonals) -> V: ...
    def polynomial(
        self: V,
        coefficients: ArrayLike,
        basis: Literal["power", "chebyshev"],
        interval: tuple[float, float],
    ) -> V: ...


def alike(data: Vector) -> bool:
    """Does it hold of all vectors alike, as bounds and records do?"""
    return not isinstance(data, Operand)


def take(data: Vector, first: int, count: int) -> Vector:
    """The vectors [first, first + count). Bounds and records hold of all vectors alike."""
    if not isinstance(data, Operand):
        return data
    if first == 0 and count == data.ciphertext.batch:
        return data
    return data.evaluator(data.ciphertext[first : first + count])


def join(parts: Sequence[Vector]) -> Vector:
    """The vectors of all parts, at the lowest of their levels."""
    first = parts[0]
    if all(part is first for part in parts) and not isinstance(first, Operand):
        return first
    if len(parts) == 1:
        return first
    if not isinstance(first, Operand):
        # A bound of each of them: that of the sum of all different ones.
        return reduce(add, {id(part): part for part in parts}.values())
    level = min(part.level for part in parts)
    ciphertexts = []
    for part in parts:
        if not isinstance(part, Operand):
            raise StateError("ciphertexts beside error bounds", {"found": type(part).__name__})
        ciphertexts.append(part if part.level == level else part.at_level(level))
    return first.evaluator(concatenate(ciphertexts))


def each(data: Vector, count: int, part: Callable[[int], Vector]) -> Vector:
    """The vectors of part(0), part(1), ...; of bounds and records, which hold of all alike, part(0)."""
    return join([part(i) for i in range(1 if alike(data) else count)])


def most_slots(data: Vector) -> int:
    """N/2 of its parameters."""
    ev = data.evaluator
    return ev.context.params.slots if isinstance(ev, Evaluator) else ev.params.slots


def repeat(data: Vector, times: int) -> Vector:
    """The vectors, `times` over."""
    return join([data] * times) if times > 1 else data


def fold(data: Vector, batch: int, pieces: int = 1) -> Vector:
    """Of `batch` vectors, the sums of those whose numbers agree modulo `pieces`."""
    if batch == pieces:
        return data
    if alike(data):
        return data * (batch // pieces)
    rest: Vector | None = None
    rows = batch // pieces
    while rows > 1:
        if rows % 2:
            last = take(data, (rows - 1) * pieces, pieces)
            rest = last if rest is None else rest + last
        rows //= 2
        data = take(data, 0, rows * pieces) + take(data, rows * pieces, rows * pieces)
    return data if rest is None else data + rest


def widened(data: Vector, slots: int) -> Vector:
    """The vectors, repeating in `slots` slots."""
    return data if data.slots == slots else data.with_slots(slots)


def transform(data: Vector, diagonals: Diagonals) -> Vector:
    """The matrix of these diagonals times each vector. Level l -> l - 1."""
    kept = {k: d for k, d in diagonals.items() if np.any(d)}
    return data.linear_transform(kept or {0: np.zeros(1)})


def moved(data: Vector, source: Integers, target: Integers, slots: int) -> list[Vector]:
    """Vectors of `slots` slots (at least data.slots) in which slot `target[i]` is slot `source[i]`, counted
    through all vectors, and 0 elsewhere. Level l -> l - 1."""
    (v, s), (w, t) = np.divmod(source, data.slots), np.divmod(target, slots)
    parts: list[Vector] = []
    for out in range(int(w.max()) + 1):
        terms: list[Vector] = []
        for vector in np.unique(v[w == out]):
            here = (w == out) & (v == vector)
            offsets = (s[here] - t[here]) % slots
            diagonals: dict[int, Numbers] = {}
            for k in np.unique(offsets):
                diagonals[int(k)] = np.zeros(slots)
                diagonals[int(k)][t[here][offsets == k]] = 1.0
            terms.append(transform(widened(take(data, int(vector), 1), slots), diagonals))
        parts.append(reduce(add, terms))
    return parts
