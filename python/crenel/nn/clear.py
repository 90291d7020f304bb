"""A plan read on slots in float64, with a model of what encryption adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from crenel import ckks
from crenel.nn.linear import SlotTransform, applied
from crenel.nn.ops import Reals
from crenel.nn.plan import Transform

TINY = 2.0**-40  # a value so small that errors are those of the operation alone


@dataclass(frozen=True, eq=False)
class Slots:
    """Vectors, (samples, slots), and the level that ciphertexts would have."""

    values: Reals
    level: int


@dataclass
class Noise:
    """Root mean squares of what operations add to a real slot, by the level of their operand, from the
    library's own model of errors (docs/theory/precision.md)."""

    params: ckks.Params
    slots: int
    _known: dict[tuple[str, int], float] = field(default_factory=dict)

    def of(self, what: str, level: int) -> float:
        """what: 'fresh', 'product', 'plain' (by a plaintext, or to another level) or 'switch' (a rotation)."""
        if (what, level) not in self._known:
            self._known[what, level] = self._find(what, level)
        return self._known[what, level]

    def _find(self, what: str, level: int) -> float:
        model = ckks.ErrorModel(self.params)
        start = model.input(max_abs=TINY, real=True, level=level, slots=self.slots)
        if what == "product":
            found = model.multiply_rescale(start, start).variance
        elif what == "plain":
            found = model.rescale(model.multiply(start, TINY)).variance
        elif what == "switch":
            found = model.rotate(start, 1).variance - start.variance
        else:
            found = start.variance
        return float(np.sqrt(max(found, 0.0) / 2.0))  # of a complex slot's two numbers the real one

    def of_series(self, coefficients: Reals, level: int) -> float:
        """Of a Chebyshev series of numbers in [-1, 1]."""
        model = ckks.ErrorModel(self.params)
        start = model.input(max_abs=1.0, real=True, level=level, slots=self.slots)
        return float(np.sqrt(model.polynomial(start, coefficients, basis="chebyshev").variance / 2.0))


class Clear:
    """`Operations` on `Slots`. Without noise they are exact but for float64's rounding."""

    def __init__(
        self,
        transforms: Mapping[int, SlotTransform],
        noise: Noise | None = None,
        random: np.random.Generator | None = None,
    ) -> None:
        """
        Parameters
        ----------
        transforms : matrices, by the number of the value that a step makes
        noise, random : the model and what its errors are drawn from; both or none
        """
        self.transforms, self.noise, self.random = transforms, noise, random

    def input(self, values: Reals, level: int) -> Slots:
        """A fresh encryption of (samples, slots)."""
        return Slots(self._with(values, "fresh", level), level)

    def _with(self, values: Reals, what: str, level: int) -> Reals:
        if self.noise is None or self.random is None:
            return values
        return self._spread(values, self.noise.of(what, level))

    def _spread(self, values: Reals, rms: float) -> Reals:
        return values if self.random is None else values + rms * self.random.standard_normal(values.shape)

    def at(self, a: Slots, level: int) -> Slots:
        return a if level == a.level else Slots(self._with(a.values, "plain", a.level), level)

    def of_slots(self, a: Slots, slots: int) -> Slots:
        now = a.values.shape[1]
        if slots <= now:
            return Slots(a.values[:, :slots], a.level)
        return Slots(np.tile(a.values, (1, slots // now)), a.level)

    def transform(self, step: Transform, inputs: Sequence[Slots]) -> list[Slots]:
        level = inputs[0].level
        found = applied(self.transforms[step.out], [a.values for a in inputs])
        # Rotated inputs keep their errors below the final division's, which is a rotation's own.
        return [Slots(self._with(self._with(y, "plain", level), "switch", level), level - 1) for y in found]

    def copies(self, step: Transform) -> tuple[int, int]:
        matrix = self.transforms[step.out]
        return matrix.copies, matrix.slots // matrix.copies

    def biased(self, step: Transform, output: int, a: Slots) -> Slots:
        return Slots(a.values + self.transforms[step.out].bias[output], a.level)

    def sums(self, a: Slots, count: int, stride: int) -> Slots:
        values = a.values
        while count > 1:
            count //= 2
            values = values + self._with(np.roll(values, -stride * count, axis=1), "switch", a.level)
        return Slots(values, a.level)

    def series(self, a: Slots, coefficients: Reals) -> Slots:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.polynomial.chebyshev.chebval(a.values, coefficients)
        if self.noise is not None:
            values = self._spread(values, self.noise.of_series(coefficients, a.level))
        return Slots(values, a.level - ckks.polynomial_depth(len(coefficients) - 1))

    def add(self, a: Slots, b: Slots) -> Slots:
        return Slots(a.values + b.values, a.level)

    def add_number(self, a: Slots, number: float) -> Slots:
        return Slots(a.values + number, a.level)

    def negate(self, a: Slots) -> Slots:
        return Slots(-a.values, a.level)

    def product(self, a: Slots, b: Slots) -> Slots:
        with np.errstate(over="ignore", invalid="ignore"):
            return Slots(self._with(a.values * b.values, "product", a.level), a.level - 1)

    def level(self, a: Slots) -> int:
        return a.level
