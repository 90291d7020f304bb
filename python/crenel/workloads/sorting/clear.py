"""Sorting in the clear, on slots, with the errors that encryption has: the same rounds, operation by
operation.

Slots are complex: numbers are real, but their errors are not, and factors of a comparator amplify imaginary
errors where numbers are about equal until the next factor explodes on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from crenel.workloads.sorting.comparator import Factor

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]


@dataclass(frozen=True)
class Noise:
    """Errors of encrypted vectors, absolute, of the real and of the imaginary part of a slot."""

    bootstrap: float
    """Root mean square of a bootstrap's random error."""
    operation: float
    """Root mean square of a product's or rotation's error."""
    message_ratio: int | None
    """Of the bootstrap: the sine's error of every coefficient is that of this ratio. None: no such error."""
    seed: int = 0
    """Of the random errors."""


EXACT = Noise(0.0, 0.0, None)


@dataclass(frozen=True)
class Slots:
    """A vector in the clear with the level that its ciphertext would have."""

    values: Complexes
    level: int
    machine: ClearMachine

    def _made(self, values: Complexes, level: int) -> Slots:
        if level < 0:
            raise AssertionError("a plan without the levels of its circuit")
        return Slots(values, level, self.machine)

    def __add__(self, other: Slots) -> Slots:
        return self._made(self.values + other.values, min(self.level, other.level))

    def __sub__(self, other: Slots) -> Slots:
        return self._made(self.values - other.values, min(self.level, other.level))

    def __neg__(self) -> Slots:
        return self._made(-self.values, self.level)

    def rotate(self, steps: int) -> Slots:
        """As Operand.rotate."""
        return self._made(self.machine.noisy(np.roll(self.values, -steps)), self.level)

    def rotate_many(self, steps: Sequence[int]) -> list[Slots]:
        """As Operand.rotate_many."""
        return [self.rotate(step) for step in steps]


class ClearMachine:
    """What an evaluator and a bootstrapper do, on slots. Counts bootstraps, two vectors to one."""

    def __init__(self, output_level: int, noise: Noise = EXACT) -> None:
        self.output_level = output_level
        self.noise = noise
        self.bootstraps = 0
        self.largest = 0.0
        """Largest argument of a factor so far."""
        self._random = np.random.default_rng(noise.seed)

    def vector(self, values: Reals, level: int) -> Slots:
        """An encryption of values."""
        return Slots(self.noisy(values), level, self)

    def noisy(self, values: Reals | Complexes, rms: float | None = None) -> Complexes:
        """With a random error."""
        return self._with(values, self.noise.operation if rms is None else rms, self._random.standard_normal)

    def _with(self, values: Reals | Complexes, rms: float, draw: Callable[..., Reals]) -> Complexes:
        if not rms:
            return values.astype(np.complex128)
        return np.asarray(values + rms * (draw(size=values.size) + 1j * draw(size=values.size)))

    def mask(self, x: Slots, mask: Reals) -> Slots:
        """As Machine.mask."""
        return x._made(self.noisy(x.values * mask), x.level - 1)

    def multiply(self, a: Slots, b: Slots) -> Slots:
        """As Machine.multiply."""
        return a._made(self.noisy(a.values * b.values), min(a.level, b.level) - 1)

    def fourfold(self, x: Slots) -> Slots:
        """As Machine.fourfold."""
        return x._made(4 * x.values, x.level)

    def factor(self, x: Slots, factor: Factor, real: bool) -> Slots:
        """As Machine.factor."""
        self.largest = max(self.largest, float(np.abs(x.values).max()))
        found = self.noisy(factor(x.values), 4 * self.noise.operation)
        return x._made(self.noisy(found.real) if real else found, x.level - factor.depth)

    def refresh(self, vectors: list[Slots]) -> list[Slots]:
        """As Machine.refresh."""
        fresh: list[Slots] = []
        for place in range(0, len(vectors), 2):
            self.bootstraps += 1
            pair = [*vectors[place : place + 2], vectors[-1]][:2]
            both = self._bootstrapped(pair[0].values + 1j * pair[1].values)
            # Slots differ in how much a bootstrap errs: its errors have the tails of a Laplace distribution
            # (a kurtosis of 5 to 7 was measured, 6 is this one's), whose scale is its deviation / sqrt 2.
            both = self._with(both, self.noise.bootstrap / 2**0.5, self._random.laplace)
            fresh += [Slots(self.noisy(part), self.output_level, self) for part in (both.real, both.imag)]
        return fresh[: len(vectors)]

    def _bootstrapped(self, pair: Complexes) -> Complexes:
        ratio = self.noise.message_ratio
        return pair if ratio is None else pair + sine_error(pair, ratio)


def sine_error(values: Complexes, message_ratio: int) -> Complexes:
    """What a bootstrap's sine makes wrong in slots: of every coefficient c of the polynomial that has these
    slots, the difference between c and the sine that stands for it (docs/guide/bootstrap_precision.md)."""
    c = coefficients(values)
    turn = 2 * np.pi * 2.0**-message_ratio
    return slots_of(np.sin(turn * c) / turn - c)


@cache
def _places(slots: int) -> NDArray[np.intp]:
    """Where slot j and its conjugate stand among the odd powers of a primitive 4 n-th root of one: as index k
    of the power 2 k + 1."""
    powers = np.empty(slots, dtype=np.int64)
    power = 1
    for j in range(slots):
        powers[j] = power
        power = power * 5 % (4 * slots)
    return np.concatenate([(powers - 1) // 2, (4 * slots - powers - 1) // 2]).astype(np.intp)


def coefficients(values: Complexes) -> Reals:
    """Those, 2 n of them, of the polynomial in X^(N / 2 n) that has these n slots."""
    n = values.size
    spread = np.empty(2 * n, dtype=np.complex128)
    spread[_places(n)] = np.concatenate([values, np.conj(values)])
    twist = np.exp(-1j * np.pi * np.arange(2 * n) / (2 * n))
    return np.asarray((np.fft.fft(spread) / (2 * n) * twist).real)


def slots_of(polynomial: Reals) -> Complexes:
    """The slots of a polynomial: the inverse of `coefficients`."""
    n = polynomial.size // 2
    twist = np.exp(1j * np.pi * np.arange(2 * n) / (2 * n))
    at_roots = np.fft.ifft(polynomial * twist) * (2 * n)
    return np.asarray(at_roots[_places(n)[:n]])
