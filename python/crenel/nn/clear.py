"""A plan read on slots in float64, with a model of what encryption adds.

Errors live in all N/2 slots of the ring, independent of each other, while a vector of n slots repeats:
reading it averages the copies, so that n slots show the share 2n/N of an error's variance. Where a vector
gains slots, errors come to light that were averaged away before; `Slots.density` keeps account of them, slot
by slot through polynomials and products: a composite sign is steep where its argument is about 0, and a gate
multiplies it by just that argument. Transforms mix slots, and what they make has the mean.

The product with a matrix of zeros is a ciphertext of two zeros, and what constants make of it has no second
polynomial: no error is multiplied by the secret key, and a key switch has nothing to switch. Of such vectors
the operations only round (`Slots.public`), until they meet others or are bootstrapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from crenel import ckks
from crenel.nn.linear import SlotTransform, applied
from crenel.nn.ops import Reals
from crenel.nn.plan import Boot, Contract, Transform
from crenel.nn.planning import planning_context

GRID = np.linspace(-1.0, 1.0, 1001)
SIGMAS = 5.0  # beyond which one error of 2^20 lies
TINY = 2.0**-40  # a value so small that errors are those of the operation alone


@dataclass(frozen=True, eq=False)
class Slots:
    """Vectors, (samples, slots), and the level that ciphertexts would have."""

    values: Reals
    level: int
    density: float | Reals = 0.0
    """Variance of the errors so far in a slot, over the number of slots: of all, or (samples, slots)."""
    public: bool = False
    """Is the second polynomial zero, so that the first alone is the message?"""

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

    def rounding(self, slots: int) -> float:
        """Of coefficients to integers."""
        return float(np.sqrt(slots / 12.0) / 2.0**self.params.log_scale)

    def of_series(self, coefficients: Reals, level: int, slots: int) -> float:
        """Of a Chebyshev series of numbers in [-1, 1]."""
        model = ckks.ErrorModel(self.params)
        start = model.input(max_abs=1.0, real=True, level=level, slots=slots)
        return float(np.sqrt(model.polynomial(start, coefficients, basis="chebyshev").variance / 2.0))

    def of_bootstrap(self, boot: Boot) -> float:
        """Of a bootstrap of values in [-1, 1]."""
        key = (f"bootstrap {boot.pack} {boot.pair} {boot.target}", 0, boot.slots)
        if key not in self._known:
            found = planning_context(self.params).bootstrapper(options=boot.options(), progress=False)
            self._known[key] = found.report().expected_rms
        return self._known[key]


def _moved(a: Slots, k: int) -> Slots:
    """Rotated by k slots, errors included."""
    density = np.roll(a.density, -k, axis=1) if np.ndim(a.density) else a.density
    return replace(a, values=np.roll(a.values, -k, axis=1), density=density)


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
        if a.public:
            return a if what == ("switch",) else self._spread(a, self.noise.rounding(a.slots) ** 2)
        return self._spread(a, sum(self.noise.of(w, a.level, a.slots) ** 2 for w in what))

    def _spread(self, a: Slots, variance: float) -> Slots:
        if self.noise is None:
            return a
        errors = np.sqrt(variance) * self.noise.random.standard_normal(a.values.shape)
        return replace(a, values=a.values + errors, density=a.density + variance / a.slots)

    def at(self, a: Slots, level: int) -> Slots:
        if level == a.level:
            return a
        return replace(self._with(a, "plain"), level=level)

    def of_slots(self, a: Slots, slots: int) -> Slots:
        count = len(a.values)
        if slots <= a.slots:
            values, density = (
                found.reshape(count, a.slots // slots, slots).mean(axis=1)
                for found in (a.values, np.broadcast_to(a.density, a.values.shape))
            )
            return replace(a, values=values, density=density if np.ndim(a.density) else a.density)
        copies = slots // a.slots
        values = np.tile(a.values, (1, copies))
        if self.noise is not None and np.any(a.density):
            each = np.broadcast_to(a.density, a.values.shape)[:, None, :]
            hidden = np.sqrt(each * slots) * self.noise.random.standard_normal((count, copies, a.slots))
            values = values + (hidden - hidden.mean(axis=1, keepdims=True)).reshape(count, slots)
        return replace(
            a, values=values, density=np.tile(a.density, (1, copies)) if np.ndim(a.density) else a.density
        )

    def transform(self, step: Transform | Contract, inputs: Sequence[Slots]) -> list[Slots]:
        matrix, level = self.transforms[step.out], inputs[0].level
        made = []
        for row, values in zip(matrix.blocks, applied(matrix, [a.values for a in inputs]), strict=True):
            gains = [sum(float(np.mean(d**2)) for d in (block or {}).values()) for block in row]
            if not any(d.any() for block in row for d in (block or {}).values()):
                made.append(Slots(values, level - 1, public=True))
                continue
            density = sum(gain * float(np.mean(a.density)) for gain, a in zip(gains, inputs, strict=True))
            public = all(a.public for block, a in zip(row, inputs, strict=True) if block)
            # Rotated inputs keep their errors below the final division's, which is a rotation's own.
            found = self._with(Slots(values, level, density, public), "plain", "switch")
            made.append(replace(found, level=level - 1))
        return made

    def copies(self, step: Transform) -> tuple[int, int]:
        matrix = self.transforms[step.out]
        return matrix.copies, matrix.slots // matrix.copies

    def rotated(self, a: Slots, steps: Sequence[int]) -> list[Slots]:
        return [self._with(_moved(a, k), "switch") if k else a for k in steps]

    def inner(self, a: Sequence[Slots], b: Sequence[Slots]) -> Slots:
        values, density = np.zeros_like(a[0].values), np.zeros_like(a[0].values)
        with np.errstate(over="ignore", invalid="ignore"):
            for x, y in zip(a, b, strict=True):
                values += x.values * y.values
                if self.noise is not None:
                    density += x.values**2 * y.density + y.values**2 * x.density
        public = all(x.public and y.public for x, y in zip(a, b, strict=True))
        found = self._with(Slots(values, a[0].level, density, public), "product")
        return replace(found, level=a[0].level - 1)

    def biased(self, step: Transform, output: int, a: Slots) -> Slots:
        bias = self.transforms[step.out].bias[output]
        found = replace(a, values=a.values + bias)
        return self._with(found, "plain") if a.public and bias.any() else found

    def sums(self, a: Slots, count: int, stride: int) -> Slots:
        while count > 1:
            count //= 2
            rotated = self._with(_moved(a, stride * count), "switch")
            a = replace(a, values=a.values + rotated.values, density=a.density + rotated.density)
        return a

    def series(self, a: Slots, coefficients: Reals) -> Slots:
        chebyshev = np.polynomial.chebyshev
        level = a.level - ckks.polynomial_depth(len(coefficients) - 1)
        with np.errstate(over="ignore", invalid="ignore"):
            values: Reals = np.asarray(chebyshev.chebval(a.values, coefficients), dtype=np.float64)
            if self.noise is None:
                return replace(a, values=values, level=level)
            slope = np.asarray(chebyshev.chebval(a.values, chebyshev.chebder(coefficients)))
            density = a.density * slope**2
            # Steep is not far: within the interval an error is at most what the polynomial reaches there.
            most = float(np.abs(chebyshev.chebval(GRID, coefficients)).max()) ** 2 / self.noise.params.slots
            spread = SIGMAS * np.sqrt(a.density * self.noise.params.slots)
            inside = np.abs(a.values) + spread <= 1.0
            made = replace(
                a, values=values, level=level, density=np.where(inside, np.minimum(density, most), density)
            )
        if a.public:  # each polynomial is rounded, and then multiplied by its coefficient
            grown = 1.0 + float(np.sum(coefficients**2))
            return self._spread(made, self.noise.rounding(a.slots) ** 2 * grown)
        return self._spread(made, self.noise.of_series(coefficients, a.level, a.slots) ** 2)

    def add(self, a: Slots, b: Slots) -> Slots:
        density = 4.0 * a.density if a is b else a.density + b.density
        return Slots(a.values + b.values, a.level, density, a.public and b.public)

    def add_number(self, a: Slots, number: float) -> Slots:
        return replace(a, values=a.values + number)

    def negate(self, a: Slots) -> Slots:
        return replace(a, values=-a.values)

    def product(self, a: Slots, b: Slots) -> Slots:
        with np.errstate(over="ignore", invalid="ignore"):
            values = a.values * b.values
            if self.noise is None:
                return Slots(values, a.level - 1, public=a.public and b.public)
            # A square's two operands have the same error.
            shared = 2.0 if a is b else 1.0
            density = shared * (a.values**2 * b.density + b.values**2 * a.density)
        found = self._with(Slots(values, a.level, density, a.public and b.public), "product")
        return replace(found, level=a.level - 1)

    def refresh(self, a: Sequence[Slots], boot: Boot, level: int) -> list[Slots]:
        variance = 0.0 if self.noise is None else self.noise.of_bootstrap(boot) ** 2
        found = [self._spread(x, variance) for x in a]
        return [replace(x, level=level, public=False) for x in found]

    def level(self, a: Slots) -> int:
        return a.level
