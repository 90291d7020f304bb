"""What steps cost at each level: measured, where there is a table, or counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from crenel import ckks
from crenel.errors import StateError, UnsupportedError
from crenel.nn.blocks import moves
from crenel.nn.cost import CostModel
from crenel.nn.linear import SlotTransform
from crenel.nn.ops import Series
from crenel.nn.passes import priced
from crenel.nn.passes.structure import Chain
from crenel.nn.plan import (
    Boot,
    Contract,
    Evaluate,
    Multiply,
    Plan,
    Quadratic,
    Refresh,
    Step,
    Transform,
    repeated,
)  # fmt: skip

# Key switches of a bootstrap besides its rotations, about: 11 relinearisations of the sine and double angles
# on each of two halves, conjugations, the sparse secret.
BOOTSTRAP_PRODUCTS = 30
# A sum of ciphertexts, beside a key switch of as many limbs; and levels given up, beside one of one limb:
# little, so that they decide among ways of as many key switches only.
ADDITION, ADJUSTING = 0.01, 0.1
HOISTED = 0.2  # of a key switch: a baby step, as where transforms choose their steps themselves


def split(offsets: Sequence[int], rotations: Sequence[int], slots: int) -> tuple[int, int]:
    """Baby and giant steps, those by 0 included, of a transform with these diagonals and rotations."""
    wanted = {k % slots for k in rotations} - {0}
    step = slots
    while step:  # the fewest giant steps first, which is what the library prefers among equal rotations
        babies, giants = {k % step for k in offsets}, {k - k % step for k in offsets}
        if {k % slots for k in babies | giants} - {0} == wanted:
            return len(babies | {0}), len(giants | {0})
        step //= 2
    return len(wanted) + 1, 1


def products(degree: int) -> int:
    """Products of ciphertexts that evaluate a polynomial by baby and giant steps: powers up to 2^l,
    doublings, and one for each node of the tree above."""
    bits = degree.bit_length()
    low = (bits + 1) // 2
    return (1 << low) - 1 + (bits - low) + (1 << (bits - low)) - 1


@dataclass(frozen=True)
class AbstractPrices(ABC):
    """Prices of the steps of programs under a parameter set, in one unit."""

    params: ckks.Params
    batch: int

    @abstractmethod
    def transform(self, matrix: SlotTransform, level: int) -> float:
        """Of a linear transform, the sums of its copies and its constants."""

    @abstractmethod
    def product(self, level: int) -> float:
        """Of a product of ciphertexts with its rescaling."""

    @abstractmethod
    def contraction(self, inner: int, outer: int, level: int) -> float:
        """Of `outer` sums of products with the same `inner` rotations of one ciphertext; each is relinearised
        once, and all but one are rotated."""

    @abstractmethod
    def addition(self, level: int) -> float:
        """Of a sum of ciphertexts."""

    @abstractmethod
    def bootstrap(self, boot: Boot, count: int) -> float:
        """Of so many bootstraps of a kind, to its target."""

    @abstractmethod
    def targets(self, boot: Boot, count: int) -> tuple[int, ...]:
        """Levels to which so many bootstraps of such a kind are priced, the highest first."""

    def refresh(self, slots: int, ciphertexts: int) -> tuple[float, Boot]:
        """Of bootstraps of all rows of ciphertexts of so many slots to the highest level: the cheapest kind,
        and among those the one with the most slots, which are the most alike."""
        vectors = ciphertexts * self.batch
        found: list[tuple[float, int, Boot]] = []
        pack = 1
        while pack * slots <= self.params.slots and pack < 2 * vectors:
            for pair in (False, True)[:vectors]:
                boot = Boot(slots, pack, pair)
                found.append((self.bootstrap(boot, boot.bootstraps(vectors)), boot.vectors, boot))
            pack *= 2
        price, _, boot = min(found, key=lambda one: one[:2])
        return price, boot

    @abstractmethod
    def adjusting(self, level: int, target: int) -> float:
        """Of a ciphertext taken to a lower level, or left where it is."""

    @abstractmethod
    def chain(self) -> Chain:
        """Levels, and what going down costs."""

    def total(self, plan: Plan, transforms: Mapping[int, SlotTransform]) -> float:
        """Of all steps at their levels, and of the levels that each gives up of its operands first, as
        `interpret.perform` does."""
        found = 0.0
        for step in plan.steps:
            layout = plan.values[step.out].layout
            for value in (plan.values[k] for k in step.inputs):
                found += value.layout.ciphertexts * self.adjusting(value.level, step.level)
            if isinstance(step, Refresh):
                count = step.boot.bootstraps(layout.ciphertexts * self.batch)
                found += self.bootstrap(step.boot, count)
            else:
                found += self.of(step, transforms.get(step.out), layout.ciphertexts, step.level)
        return found

    def of(self, step: Step, matrix: SlotTransform | None, ciphertexts: int, level: int) -> float:
        """Of a step but a refresh that begins at a level. matrix: of a transform. ciphertexts: of the
        result. Raises StateError for a transform without its matrix."""
        if isinstance(step, (Transform, Contract)):
            if matrix is None:
                raise StateError(f"the price of %{step.out}: no matrix was given", {"value": step.out})
            once = self.transform(matrix, level)
            more = 0.0
            if isinstance(step, Contract):
                inner, outer = moves(step.op, step.babies)
                more = self.contraction(len(inner), len(outer), level - 1)
            return repeated(step) * (once + more)
        if isinstance(step, Evaluate):
            return ciphertexts * self.series(step.series, level)
        if isinstance(step, (Quadratic, Multiply)):
            return ciphertexts * self.product(level)
        return ciphertexts * (len(step.inputs) - 1) * self.addition(level)

    def series(self, series: Series, level: int) -> float:
        """Of a series that begins at a level: products of each factor in the middle of its levels, and of a
        gate where the factors end. Products with coefficients and their sums are not counted."""
        found, at = 0.0, level
        for factor in series.factors:
            below = at - ckks.polynomial_depth(len(factor) - 1)
            found += products(len(factor) - 1) * self.product(max((at + below) // 2, 1))
            at = below
        return found + (self.adjusting(level, at) + self.product(at) if series.gated else 0.0)


def _ends(matrix: SlotTransform) -> float:
    """Base costs of a transform: half of one raises an input, half of it divides and rescales an output."""
    return 0.5 * (len(matrix.blocks[0]) + len(matrix.blocks))


@dataclass(frozen=True)
class CountedPrices(AbstractPrices):
    """Key switches times limbs, of one row of a batch, where nothing was measured: enough to prefer few
    bootstraps, low levels."""

    _rotations: dict[Boot, int] = field(default_factory=dict, init=False, repr=False)
    """Of bootstraps to the highest level, by kind."""

    def _limbs(self, level: int) -> int:
        return sum(self.params.levels[level])

    def transform(self, matrix: SlotTransform, level: int) -> float:
        babies, giants = split(matrix.offsets, matrix.rotations(), matrix.slots)
        inputs, outputs = matrix.ends
        switches = _ends(matrix) + HOISTED * inputs * (babies - 1) + outputs * (giants - 1)
        sums = (matrix.copies - 1).bit_length() * len(matrix.blocks)
        constants = len(matrix.blocks) * self.addition(level - 1)
        return switches * self._limbs(level) + sums * self._limbs(level - 1) + constants

    def product(self, level: int) -> float:
        return float(self._limbs(level))

    def contraction(self, inner: int, outer: int, level: int) -> float:
        switches = (inner - 1 + outer) * self._limbs(level) + (outer - 1) * self._limbs(level - 1)
        return switches + inner * outer * self.addition(level)

    def addition(self, level: int) -> float:
        return ADDITION * self._limbs(level)

    def bootstrap(self, boot: Boot, count: int) -> float:
        highest = replace(boot, target=None)
        if highest not in self._rotations:
            self._rotations[highest] = len(highest.options().rotations(self.params))
        switches = self._rotations[highest] + BOOTSTRAP_PRODUCTS
        saved = 0 if boot.target is None else priced.unraised(self.params)[boot.target]
        return float(count * switches * (self._limbs(self.params.max_level) - saved)) / self.batch

    def targets(self, boot: Boot, count: int) -> tuple[int, ...]:
        return priced.targets(self.params)

    def adjusting(self, level: int, target: int) -> float:
        return ADJUSTING if level > target else 0.0

    def chain(self) -> Chain:
        return Chain.of(self.params.normal_top_level, ADJUSTING)


@dataclass(frozen=True)
class MeasuredPrices(AbstractPrices):
    """Microseconds of a table; a row that is absent raises, as CostModel says."""

    costs: CostModel
    _targets: dict[tuple[Boot, int], tuple[int, ...]] = field(default_factory=dict, init=False, repr=False)
    """By kind and count."""

    def transform(self, matrix: SlotTransform, level: int) -> float:
        babies, giants = split(matrix.offsets, matrix.rotations(), matrix.slots)
        inputs, outputs = len(matrix.blocks[0]), len(matrix.blocks)
        full = matrix.diagonals * matrix.slots / self.params.slots
        quote = self.costs.transform(
            self.params, level, babies=1 + inputs * (babies - 1), giants=1 + outputs * (giants - 1),
            diagonals=full, batch=self.batch,
        )  # fmt: skip
        more = (_ends(matrix) - 1.0) * self.costs.us("transform", self.params, level, batch=self.batch)
        sums = (matrix.copies - 1).bit_length() * outputs
        rotation = self.costs.us("rotation", self.params, level - 1, batch=self.batch)
        return quote.us + more + sums * rotation + outputs * self.addition(level - 1)

    def product(self, level: int) -> float:
        return self.costs.us("product_rescale", self.params, level, batch=self.batch)

    def contraction(self, inner: int, outer: int, level: int) -> float:
        hoisted, plain, add = (self.costs.us(name, self.params, level, batch=self.batch)
                               for name in ("hoisted_rotation", "plain_product", "add"))  # fmt: skip
        found = (inner - 1) * hoisted + outer * ((inner - 1) * (plain + add) + self.product(level))
        if outer == 1:
            return found
        rotation = self.costs.us("rotation", self.params, level - 1, batch=self.batch)
        return found + (outer - 1) * (rotation + self.addition(level - 1))

    def addition(self, level: int) -> float:
        return self.costs.us("add", self.params, level, batch=self.batch)

    def bootstrap(self, boot: Boot, count: int) -> float:
        levels = self.targets(boot, count) or (priced.output_level(self.params),)
        asked = levels[0] if boot.target is None else boot.target
        return self._timed(boot, count, min(level for level in levels if level >= asked))

    def targets(self, boot: Boot, count: int) -> tuple[int, ...]:
        """Those to which such bootstraps were timed: of what ends between two of these the price is that of
        the higher one."""
        key = replace(boot, target=None), count
        if key not in self._targets:
            found, highest = [], priced.output_level(self.params)
            for level in {highest, *self.costs.targets(self.params)}:
                try:
                    self._timed(boot, count, level)
                except UnsupportedError:  # of other slots, or of another batch
                    continue
                found += [level] if level <= highest else []
            self._targets[key] = tuple(sorted(found, reverse=True))
        return self._targets[key]

    def _timed(self, boot: Boot, count: int, level: int) -> float:
        slots, message = boot.slots * boot.pack, "pair" if boot.pair else "real"
        return self.costs.bootstrap(self.params, slots, level, batch=count, message=message).us

    def adjusting(self, level: int, target: int) -> float:
        levels = priced.adjusting_levels(self.params, level, target)
        return sum(self.costs.us("adjust_level", self.params, at, batch=self.batch) for at in levels)

    def chain(self) -> Chain:
        return priced.chain(self.params, self.costs, batch=self.batch)


def prices_of(params: ckks.Params, costs: CostModel | None, batch: int) -> AbstractPrices:
    """Measured ones where there is a table."""
    return CountedPrices(params, batch) if costs is None else MeasuredPrices(params, batch, costs)
