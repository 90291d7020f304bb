"""The operations of the circuit on slots in the clear, with levels and, if wanted, their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crenel.errors import StateError
from crenel.workloads.regression.noise import Noise

Slots = NDArray[np.complex128]


def encode(values: NDArray[np.float64] | float, level: int) -> Slots:
    """`circuit.Encode` of slots: the numbers themselves."""
    return np.asarray(values, np.complex128)


@dataclass(frozen=True)
class Clear:
    """A batch of vectors: shape (batch, slots)."""

    values: Slots
    level: int


@dataclass
class ClearOperations:
    """`Operations` in double precision.

    `counts` has how often each was done, a batch counting as so many.
    """

    output: int | None
    """Level after a refresh."""
    columns: int
    """Slots of what is refreshed."""
    noise: Noise | None = None
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    counts: dict[str, int] = field(default_factory=dict)

    def fresh(self, values: Slots, level: int) -> Clear:
        """As an encryption."""
        return self._made(values, level, self.noise.fresh if self.noise else 0.0)

    def level(self, a: Clear) -> int:
        return a.level

    def at(self, a: Clear, level: int) -> Clear:
        if a.level == level:
            return a
        if level > a.level:
            raise StateError(
                f"adjust_level to level {level} needs level {level}, the operand is at level {a.level}",
                {"operation": "adjust_level", "level": a.level, "needed": level},
            )
        self._count("level adjustments", a)
        return self._made(a.values, level, self.noise.plain[level] if self.noise else 0.0)

    def add(self, a: Clear, b: Clear) -> Clear:
        self._same(a, b)
        return Clear(a.values + b.values, a.level)

    def add_number(self, a: Clear, number: float) -> Clear:
        return Clear(a.values + number, a.level)

    def by_plaintext(self, a: Clear, plaintext: Slots) -> Clear:
        self._count("plain products", a)
        level = self._spent(a)
        return self._made(a.values * plaintext, level, self.noise.plain[level] if self.noise else 0.0)

    def product(self, a: Clear, b: Clear) -> Clear:
        self._same(a, b)
        self._count("products", a)
        self._count("key switches", a)
        level = self._spent(a)
        return self._made(a.values * b.values, level, self.noise.product[level] if self.noise else 0.0)

    def dot(self, a: Clear, b: Clear) -> Clear:
        self._same(a, b)
        self._count("products", a)
        level = self._spent(a)
        total = (a.values * b.values).sum(axis=0, keepdims=True)
        result = self._made(total, level, self.noise.product[level] if self.noise else 0.0)
        self._count("key switches", result)
        return result

    def conjugate(self, a: Clear) -> Clear:
        return self._switched(a.values.conj(), a)

    def sums(self, a: Clear, count: int, stride: int) -> Clear:
        done = 1
        while done < count:
            a = self.add(a, self._switched(np.roll(a.values, -done * stride, axis=1), a))
            done *= 2
        return a

    def of_slots(self, a: Clear, slots: int) -> Clear:
        have = a.values.shape[1]
        if slots >= have:
            return Clear(np.tile(a.values, (1, slots // have)), a.level)
        # Its copies differ by noise: all of them are kept until a refresh averages them.
        return a

    def refresh(self, a: Sequence[Clear]) -> list[Clear]:
        if self.output is None:
            raise StateError("a refresh without a bootstrapper", {"operation": "refresh"})
        self.counts["refreshes"] = self.counts.get("refreshes", 0) + 1
        return [
            self._made(self._average(part), self.output, self.noise.refresh if self.noise else 0.0)
            for part in a
        ]

    def _average(self, a: Clear) -> Slots:
        average: Slots = a.values.reshape(len(a.values), -1, self.columns).mean(axis=1)
        return average

    def _switched(self, values: Slots, a: Clear) -> Clear:
        self._count("key switches", a)
        return self._made(values, a.level, self.noise.switch[a.level] if self.noise else 0.0)

    def _made(self, values: Slots, level: int, rms: float) -> Clear:
        if rms:
            parts = self.rng.standard_normal((2, *values.shape)) * (rms / np.sqrt(2))
            values = values + parts[0] + 1j * parts[1]
        return Clear(values, level)

    def _spent(self, a: Clear) -> int:
        if a.level < 1:
            raise StateError(
                f"a product at level {a.level}: it needs level 1",
                {"operation": "multiply", "level": a.level, "needed": 1},
            )
        return a.level - 1

    def _same(self, a: Clear, b: Clear) -> None:
        if a.level != b.level:
            raise StateError(
                f"levels {a.level} and {b.level} differ", {"level_a": a.level, "level_b": b.level}
            )

    def _count(self, what: str, a: Clear) -> None:
        self.counts[what] = self.counts.get(what, 0) + len(a.values)
