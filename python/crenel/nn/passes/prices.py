"""What steps cost at each level: measured, where there is a table, or counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crenel import ckks
from crenel.nn.cost import CostModel
from crenel.nn.linear import SlotTransform
from crenel.nn.ops import Series
from crenel.nn.passes import priced
from crenel.nn.passes.structure import Chain
from crenel.nn.plan import Evaluate, Plan, Quadratic, Refresh, Step, Transform, bootstrap_options

# Key switches of a bootstrap besides its rotations, about: products of the sine and its double angles.
BOOTSTRAP_PRODUCTS = 30


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


def products(series: Series) -> int:
    """Products of ciphertexts that evaluate a series by baby and giant steps: powers up to 2^l, doublings,
    and one for each node of the tree above."""
    total = int(series.gated)
    for factor in series.factors:
        bits = (len(factor) - 1).bit_length()
        low = (bits + 1) // 2
        total += (1 << low) - 1 + (bits - low) + (1 << (bits - low)) - 1
    return total


@dataclass(frozen=True)
class AbstractPrices(ABC):
    """Prices of the steps of programs under a parameter set, in one unit."""

    params: ckks.Params
    batch: int

    @abstractmethod
    def transform(self, matrix: SlotTransform, level: int) -> float:
        """Of a linear transform, its sums and constants."""

    @abstractmethod
    def product(self, level: int) -> float:
        """Of a product of ciphertexts with its rescaling."""

    @abstractmethod
    def addition(self, level: int) -> float:
        """Of a sum of ciphertexts."""

    @abstractmethod
    def bootstrap(self, slots: int) -> float:
        """Of a ciphertext of so many slots, to the highest level."""

    @abstractmethod
    def chain(self) -> Chain:
        """Levels, and what going down costs."""

    def total(self, plan: Plan, transforms: Mapping[int, SlotTransform]) -> float:
        """Of all steps at their levels; levels given up between them are not counted."""
        found = 0.0
        for step in plan.steps:
            layout = plan.values[step.out].layout
            if isinstance(step, Refresh):
                found += layout.ciphertexts * self.bootstrap(layout.slots)
            else:
                found += self.of(step, transforms.get(step.out), layout.ciphertexts, step.level)
        return found

    def of(self, step: Step, matrix: SlotTransform | None, ciphertexts: int, level: int) -> float:
        """Of a step but a refresh that begins at a level. matrix: of a transform. ciphertexts: of the
        result."""
        if isinstance(step, Transform):
            assert matrix is not None, step
            return self.transform(matrix, level)
        if isinstance(step, Evaluate):
            middle = max(level - ckks.polynomial_depth(len(step.series.factors[0]) - 1) // 2, 1)
            return ciphertexts * products(step.series) * self.product(middle)
        if isinstance(step, Quadratic):
            return ciphertexts * self.product(level)
        return ciphertexts * self.addition(level)


def _rotations(matrix: SlotTransform) -> list[int]:
    return ckks.linear_transform_rotations(
        matrix.offsets, matrix.slots, inputs=len(matrix.blocks[0]), outputs=len(matrix.blocks)
    )


@dataclass(frozen=True)
class CountedPrices(AbstractPrices):
    """Key switches times limbs, where nothing was measured: enough to prefer few bootstraps, low levels."""

    def _limbs(self, level: int) -> int:
        return sum(self.params.levels[level])

    def transform(self, matrix: SlotTransform, level: int) -> float:
        switches = len(_rotations(matrix)) + 1 + (matrix.copies - 1).bit_length() * len(matrix.blocks)
        return float(switches * self._limbs(level))

    def product(self, level: int) -> float:
        return float(self._limbs(level))

    def addition(self, level: int) -> float:
        return 0.01 * self._limbs(level)

    def bootstrap(self, slots: int) -> float:
        switches = len(bootstrap_options(slots).rotations(self.params)) + BOOTSTRAP_PRODUCTS
        return float(switches * self._limbs(self.params.max_level))

    def chain(self) -> Chain:
        return Chain.of(self.params.normal_top_level, 0.1)


@dataclass(frozen=True)
class MeasuredPrices(AbstractPrices):
    """Microseconds of a table; a row that is absent raises, as CostModel says."""

    costs: CostModel

    def transform(self, matrix: SlotTransform, level: int) -> float:
        babies, giants = split(matrix.offsets, _rotations(matrix), matrix.slots)
        inputs, outputs = len(matrix.blocks[0]), len(matrix.blocks)
        full = matrix.diagonals * matrix.slots / self.params.slots
        quote = self.costs.transform(
            self.params, level, babies=1 + inputs * (babies - 1), giants=1 + outputs * (giants - 1),
            diagonals=full, batch=self.batch,
        )  # fmt: skip
        sums = (matrix.copies - 1).bit_length() * outputs
        return quote.us + sums * self.costs.us("rotation", self.params, level - 1, batch=self.batch)

    def product(self, level: int) -> float:
        return self.costs.us("product_rescale", self.params, level, batch=self.batch)

    def addition(self, level: int) -> float:
        return self.costs.us("add", self.params, level, batch=self.batch)

    def bootstrap(self, slots: int) -> float:
        output = priced.output_level(self.params)
        return self.costs.bootstrap(self.params, slots, output, batch=self.batch).us

    def chain(self) -> Chain:
        return priced.chain(self.params, self.costs, batch=self.batch)


def prices_of(params: ckks.Params, costs: CostModel | None, batch: int) -> AbstractPrices:
    """Measured ones where there is a table."""
    return CountedPrices(params, batch) if costs is None else MeasuredPrices(params, batch, costs)
