"""A plan read on slots in float64, with a model of what encryption adds.

Errors live in all N/2 slots of the ring, independent of each other, while a vector of n slots repeats:
reading it averages the copies, so that n slots show the share 2n/N of an error's variance. Where a vector
gains slots, errors come to light that were averaged away before; `Slots.density` keeps account of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from crenel import ckks
from crenel.nn.linear import SlotTransform, applied
from crenel.nn.ops import Reals
from crenel.nn.plan import Boot, Contract, Transform

TINY = 2.0**-40  # a value so small that errors are those of the operation alone


@dataclass(frozen=True, eq=False)
class Slots:
    """Vectors, (samples, slots), and the level that ciphertexts would have."""

    values: Reals
    level: int
    density: float = 0.0
    """Variance of the errors so far in a slot, over the number of slots."""

    @property
    def slots(self) -> int:
        """Of each vector."""
        return int(self.values.shape[1])


@dataclass
class Noise:
    """Root mean squares of what operations add to a real slot, by the level of their operand, from the
    library's own model of errors (docs/theory/precision.md)."""

    params: ckks.Params
    random: np.random.Generator
    _known: dict[tuple[str, int, int], float] = field(default_factory=dict)
    """What was found before, by operation, level and slots; shared by simulations of one program."""

    def of(self, what: str, level: int, slots: int) -> float:
        """what: 'fresh', 'product', 'plain' (by a plaintext, to another level) or 'switch' (a rotation)."""
        key = (what, level, slots)
        if key not in self._known:
            self._known[key] = self._find(what, level, slots)
        return self._known[key]

    def _find(self, what: str, level: int, slots: int) -> float:
        model = ckks.ErrorModel(self.params)
        start = model.input(max_abs=TINY, real=True, level=level, slots=slots)
        if what == "product":
            found = model.multiply_rescale(start, start).variance
        elif what == "plain":
            found = model.rescale(model.multiply(start, TINY)).variance
        elif what == "switch":
            found = model.rotate(start, 1).variance - start.variance
        else:
            found = start.variance
        return float(np.sqrt(max(found, 0.0) / 2.0))  # of a complex slot's two numbers the real one

    def of_series(self, coefficients: Reals, level: int, slots: int) -> float:
        """Of a Chebyshev series of numbers in [-1, 1]."""
        model = ckks.ErrorModel(self.params)
        start = model.input(max_abs=1.0, real=True, level=level, slots=slots)
        return float(np.sqrt(model.polynomial(start, coefficients, basis="chebyshev").variance / 2.0))

    def of_bootstrap(self, boot: Boot) -> float:
        """Of a bootstrap of values in [-1, 1]."""
        key = (f"bootstrap {boot.pack} {boot.pair} {boot.target}", 0, boot.slots)
        if key not in self._known:
            # Its numbers are the same on every device; this one makes no plaintexts and is always there.
            context = ckks.Context(self.params, "cuda:dry")
            found = context.bootstrapper(options=boot.options(), progress=False)
            self._known[key] = found.report().expected_rms
        return self._known[key]


class Clear:
    """`Operations` on `Slots`. Without noise they are exact but for float64's rounding."""

    def __init__(self, transforms: Mapping[int, SlotTransform], noise: Noise | None = None) -> None:
        """transforms: matrices, by the number of the value that a step makes."""
        self.transforms, self.noise = transforms, noise

    def input(self, values: Reals, level: int) -> Slots:
        """A fresh encryption of (samples, slots)."""
        return self._with(Slots(values, level), "fresh")

    def _with(self, a: Slots, *what: str) -> Slots:
        """Errors of operations on operands of a's level."""
        if self.noise is None:
            return a
        return self._spread(a, sum(self.noise.of(w, a.level, a.slots) ** 2 for w in what))

    def _spread(self, a: Slots, variance: float) -> Slots:
        if self.noise is None:
            return a
        errors = np.sqrt(variance) * self.noise.random.standard_normal(a.values.shape)
        return Slots(a.values + errors, a.level, a.density + variance / a.slots)

    def at(self, a: Slots, level: int) -> Slots:
        if level == a.level:
            return a
        lowered = self._with(a, "plain")
        return Slots(lowered.values, level, lowered.density)

    def of_slots(self, a: Slots, slots: int) -> Slots:
        count = len(a.values)
        if slots <= a.slots:
            mean = a.values.reshape(count, a.slots // slots, slots).mean(axis=1)
            return Slots(mean, a.level, a.density)
        copies = slots // a.slots
        values = np.tile(a.values, (1, copies))
        if self.noise is not None and a.density > 0.0:
            hidden = np.sqrt(a.density * slots) * self.noise.random.standard_normal((count, copies, a.slots))
            values = values + (hidden - hidden.mean(axis=1, keepdims=True)).reshape(count, slots)
        return Slots(values, a.level, a.density)

    def transform(self, step: Transform | Contract, inputs: Sequence[Slots]) -> list[Slots]:
        matrix, level = self.transforms[step.out], inputs[0].level
        made = []
        for row, values in zip(matrix.blocks, applied(matrix, [a.values for a in inputs]), strict=True):
            gains = [sum(float(np.mean(d**2)) for d in (block or {}).values()) for block in row]
            density = sum(gain * a.density for gain, a in zip(gains, inputs, strict=True))
            # Rotated inputs keep their errors below the final division's, which is a rotation's own.
            found = self._with(Slots(values, level, density), "plain", "switch")
            made.append(Slots(found.values, level - 1, found.density))
        return made

    def copies(self, step: Transform) -> tuple[int, int]:
        matrix = self.transforms[step.out]
        return matrix.copies, matrix.slots // matrix.copies

    def rotated(self, a: Slots, steps: Sequence[int]) -> list[Slots]:
        return [
            self._with(Slots(np.roll(a.values, -k, axis=1), a.level, a.density), "switch") if k else a
            for k in steps
        ]

    def inner(self, a: Sequence[Slots], b: Sequence[Slots]) -> Slots:
        values, density = np.zeros_like(a[0].values), 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for x, y in zip(a, b, strict=True):
                values += x.values * y.values
                if self.noise is not None:
                    density += float(np.mean(x.values**2)) * y.density
                    density += float(np.mean(y.values**2)) * x.density
        found = self._with(Slots(values, a[0].level, density), "product")
        return Slots(found.values, a[0].level - 1, found.density)

    def biased(self, step: Transform, output: int, a: Slots) -> Slots:
        return Slots(a.values + self.transforms[step.out].bias[output], a.level, a.density)

    def sums(self, a: Slots, count: int, stride: int) -> Slots:
        while count > 1:
            count //= 2
            rotated = self._with(
                Slots(np.roll(a.values, -stride * count, axis=1), a.level, a.density), "switch"
            )
            a = Slots(a.values + rotated.values, a.level, a.density + rotated.density)
        return a

    def series(self, a: Slots, coefficients: Reals) -> Slots:
        chebyshev = np.polynomial.chebyshev
        level = a.level - ckks.polynomial_depth(len(coefficients) - 1)
        with np.errstate(over="ignore", invalid="ignore"):
            values: Reals = np.asarray(chebyshev.chebval(a.values, coefficients), dtype=np.float64)
            if self.noise is None:
                return Slots(values, level)
            slope = chebyshev.chebval(a.values, chebyshev.chebder(coefficients))
            made = Slots(values, level, a.density * float(np.mean(slope**2)))
        return self._spread(made, self.noise.of_series(coefficients, a.level, a.slots) ** 2)

    def add(self, a: Slots, b: Slots) -> Slots:
        density = 4.0 * a.density if a is b else a.density + b.density
        return Slots(a.values + b.values, a.level, density)

    def add_number(self, a: Slots, number: float) -> Slots:
        return Slots(a.values + number, a.level, a.density)

    def negate(self, a: Slots) -> Slots:
        return Slots(-a.values, a.level, a.density)

    def product(self, a: Slots, b: Slots) -> Slots:
        with np.errstate(over="ignore", invalid="ignore"):
            values = a.values * b.values
            if self.noise is None:
                return Slots(values, a.level - 1)
            sizes = float(np.mean(a.values**2)), float(np.mean(b.values**2))
        # A square's two operands have the same error.
        shared = 2.0 if a is b else 1.0
        density = shared * (sizes[0] * b.density + sizes[1] * a.density)
        found = self._with(Slots(values, a.level, density), "product")
        return Slots(found.values, a.level - 1, found.density)

    def refresh(self, a: Sequence[Slots], boot: Boot, level: int) -> list[Slots]:
        variance = 0.0 if self.noise is None else self.noise.of_bootstrap(boot) ** 2
        found = [self._spread(x, variance) for x in a]
        return [Slots(x.values, level, x.density) for x in found]

    def level(self, a: Slots) -> int:
        return a.level
