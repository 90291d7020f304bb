"""What runs: steps on ciphertexts, as data.

    plan  := { step }
    step  := transform | evaluate | quadratic | multiply | contract | sum | refresh
    value := a tensor in a layout, divided by its bound; value 0 is the input

A step says what happens; `crenel.nn.interpret.walk` says how, once for all readings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from crenel import ckks
from crenel.errors import StateError
from crenel.nn.layout import Layout
from crenel.nn.ops import Op, Reals, Series, Shape
from crenel.nn.sequences import Attend, Product, Roll, Scores

KINDS_ORIGIN = "kinds of bootstraps"
"""Of the decision how many there may be."""


def legible(line: str) -> str:
    """A line as it may stand on a terminal: of a stranger's file names and reasons are what he wrote."""
    return "".join(c if c.isprintable() else "?" for c in line)


@dataclass(frozen=True)
class Decision:
    """What a pass chose."""

    origin: str
    chosen: str
    instead: str
    """What it rejected, or that there was no choice."""
    reason: str


@dataclass(frozen=True)
class Value:
    """A tensor as ciphertexts hold it: in a layout, divided by `bound`."""

    layout: Layout
    bound: float
    level: int
    """Of the ciphertexts that a step leaves; readers drop what they do not need."""
    origin: str
    fill: float = 0.0
    """What a transform leaves in slots without an element, in bounds: within [-1, 1]."""


@dataclass(frozen=True, eq=False)
class Transform:
    """out = sum_i chains[i](inputs[i]): linear operations; one level."""

    out: int
    inputs: tuple[int, ...]
    chains: tuple[tuple[Op, ...], ...]
    level: int
    babies: int = 0
    """Baby steps of its diagonals, a power of two; 0: as many as cost least by themselves."""


@dataclass(frozen=True, eq=False)
class Evaluate:
    """out = series(input), element by element."""

    out: int
    inputs: tuple[int]
    series: Series
    level: int


@dataclass(frozen=True, eq=False)
class Quadratic:
    """out = c0 + c1 x + c2 x^2 with c2 != 0, as a square of x + c1 / (2 c2); one level.

    The bound of the result is |c2| times the square of the input's: no factor is left to multiply by.
    """

    out: int
    inputs: tuple[int]
    coefficients: Reals
    level: int


@dataclass(frozen=True, eq=False)
class Multiply:
    """out = the product of inputs, element by element; the second repeats along the first. One level.

    The bound of the result is the product of the operands'.
    """

    out: int
    inputs: tuple[int, int]
    op: Product
    level: int


@dataclass(frozen=True, eq=False)
class Contract:
    """out = sum_k moved_k(inputs[0]) shifted_k(inputs[1]): one level for the shifts, one for the products.

    The bound of the result is the product of the operands'.
    """

    out: int
    inputs: tuple[int, int]
    op: Scores | Attend
    level: int
    babies: int = 0
    """A power of two, at most op.width: the operand is moved by baby steps, and sums of products by giant
    steps (`crenel.nn.blocks.moves`); 0: the operand is moved once for each product."""


@dataclass(frozen=True, eq=False)
class Sum:
    """out = the sum of inputs in one layout with one bound; no level."""

    out: int
    inputs: tuple[int, ...]
    level: int


@dataclass(frozen=True)
class Boot:
    """A kind of bootstrap of real vectors, several of which may share one: client and server must agree."""

    slots: int
    """Of each vector."""
    pack: int = 1
    """Ciphertexts whose coefficients interleave in one bootstrap, of pack * slots slots."""
    pair: bool = False
    """Are there a second vector's numbers as imaginary parts?"""
    target: int | None = None
    """Level of the result; None: the highest."""

    @property
    def vectors(self) -> int:
        """That share one bootstrap."""
        return self.pack * (2 if self.pair else 1)

    def bootstraps(self, vectors: int) -> int:
        """For so many vectors."""
        return -(-vectors // self.vectors)

    def options(self) -> ckks.BootstrapOptions:
        """For the library."""
        return ckks.BootstrapOptions(
            slots=self.slots,
            pack=self.pack,
            message="pair" if self.pair else "real",
            target_level=self.target,
        )

    def __str__(self) -> str:
        """As ``4096 slots, 16 a bootstrap``."""
        return f"{self.slots} slots" + (f", {self.vectors} a bootstrap" if self.vectors > 1 else "")


@dataclass(frozen=True, eq=False)
class Refresh:
    """out = input at a higher level: a bootstrap, of values within [-1, 1]."""

    out: int
    inputs: tuple[int]
    level: int
    boot: Boot


Step: TypeAlias = Transform | Evaluate | Quadratic | Multiply | Contract | Sum | Refresh


def series_depth(series: Series) -> int:
    """Levels that the evaluation of a series consumes."""
    return sum(ckks.polynomial_depth(len(f) - 1) for f in series.factors) + int(series.gated)


def doublings(series: Series, bound: float) -> int | None:
    """How often an operand of this bound is doubled to be on the interval of a series, at no level; None for
    bounds that no doubling brings there."""
    times = [k for k in range(5) if series.bound * 2**k == bound]
    return times[0] if times and not (times[0] and series.gated) else None


def depth(step: Step) -> int:
    """Levels that a step consumes; a refresh none."""
    if isinstance(step, Evaluate):
        return series_depth(step.series)
    if isinstance(step, Contract):
        return 2
    return 0 if isinstance(step, (Sum, Refresh)) else 1


def linear(step: Step) -> TypeGuard[Transform | Contract]:
    """Has a step matrices?"""
    return isinstance(step, (Transform, Contract))


def roll_of(step: Transform) -> Roll | None:
    """The roll that a transform is, if it is one. A chain may be empty: an operand as it lies."""
    first = next(iter(step.chains[0]), None)
    return first if isinstance(first, Roll) and len(step.chains) == 1 else None


def repeated(step: Step) -> int:
    """Groups of ciphertexts for each of which a step does the same with the same plaintexts."""
    if isinstance(step, Contract):
        return step.op.groups
    roll = roll_of(step) if isinstance(step, Transform) else None
    return 1 if roll is None else roll.groups


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps in order, the values that they make, and what is returned."""

    values: tuple[Value, ...]
    steps: tuple[Step, ...]
    output: int
    output_shape: Shape
    decisions: tuple[Decision, ...]

    @property
    def input_level(self) -> int:
        """Level at which the client encrypts: what the steps consume."""
        return self.values[0].level

    def rows(self, samples: int) -> int:
        """Of every ciphertext, for so many samples."""
        return self.values[0].layout.rows(samples)

    def verify(self, stage: str) -> Plan:
        """Itself. Raises StateError naming the stage, the step and its origin for what cannot run."""
        made = {0}
        if len({(value.layout.capacity, value.layout.images) for value in self.values}) != 1:
            raise StateError(f"after {stage}: values in ciphertexts of different capacities, or samples")
        one = all(isinstance(s, (Transform, Evaluate, Quadratic, Sum, Refresh)) for s in self.steps)
        if self.values[0].layout.images > 1 and not one:
            raise StateError(f"after {stage}: samples in neighbouring slots of a product that rotates them")
        for step in self.steps:
            what = f"after {stage}: {self.line(step)}"
            missing = [k for k in step.inputs if k not in made]
            if missing or not step.inputs or step.out in made:
                raise StateError(
                    f"{what}: a value that is not made before, or made twice", {"value": step.out}
                )
            made.add(step.out)
            operands, result = [self.values[k] for k in step.inputs], self.values[step.out]
            gains = isinstance(step, Refresh) and result.level > step.level
            ends = result.level == step.level - depth(step) or gains
            if result.fill and not (isinstance(step, Transform) and abs(result.fill) <= 1.0):
                raise StateError(f"{what}: filled slots", {"value": step.out, "fill": result.fill})
            if any(v.level < step.level for v in operands) or not ends:
                raise StateError(f"{what}: levels do not fit", {"level": step.level, "value": step.out})
            if result.level < 0:
                raise StateError(f"{what}: no level is left", {"level": result.level})
            self._fit(step, what)
        if self.output not in made:
            raise StateError(f"after {stage}: the result %{self.output} is not made", {"value": self.output})
        layout = self.values[self.output].layout
        if math.prod(self.output_shape) != math.prod(layout.shape):
            raise StateError(f"after {stage}: a result of shape {self.output_shape} in {layout}")
        return self

    def _fit(self, step: Step, what: str) -> None:
        """Raises StateError for operands and a result that do not belong together."""
        operands, result = [self.values[k] for k in step.inputs], self.values[step.out]
        fields = {"value": step.out}
        if not operands or any(v.layout.capacity != result.layout.capacity for v in operands):
            raise StateError(f"{what}: no operand, or ciphertexts of other sizes", fields)
        if isinstance(step, (Multiply, Contract)):
            return self._fit_pair(step, what)
        if not isinstance(step, Transform) and not all(v.layout.same_places(result.layout) for v in operands):
            raise StateError(f"{what}: operands in other slots", fields)
        if isinstance(step, (Sum, Refresh)) and any(v.bound != result.bound for v in operands):
            raise StateError(f"{what}: operands of other bounds", fields)
        if isinstance(step, Refresh) and not self._boots(step):
            raise StateError(f"{what}: a bootstrap of other slots, or to another level", fields)
        if isinstance(step, Evaluate) and doublings(step.series, operands[0].bound) is None:
            raise StateError(f"{what}: a series on another interval", fields)
        if isinstance(step, Quadratic):
            made = abs(float(step.coefficients[2])) * operands[0].bound * operands[0].bound
            if not math.isclose(made, result.bound, rel_tol=1e-9):
                raise StateError(f"{what}: a bound that is not the square's, {made:.4g}", fields)
        if isinstance(step, Transform):
            self._fit_roll(step, what)
            for value, chain in zip(operands, step.chains, strict=True):
                shape = value.layout.shape
                for op in chain:
                    shape = op.shape(shape)
                if math.prod(shape) != math.prod(result.layout.shape):
                    raise StateError(f"{what}: a chain that ends in shape {shape}", fields)

    def _boots(self, step: Refresh) -> bool:
        layout, boot = self.values[step.out].layout, step.boot
        reached = boot.target is None or boot.target >= self.values[step.out].level
        return layout.slots <= boot.slots <= boot.slots * boot.pack <= layout.capacity and reached

    def _fit_roll(self, step: Transform, what: str) -> None:
        rolls = [op for chain in step.chains for op in chain if isinstance(op, Roll)]
        if not rolls:
            return
        given, made = self.values[step.inputs[0]].layout, self.values[step.out].layout
        op, groups = rolls[0], {rolls[0].groups}
        alone = [len(chain) for chain in step.chains] == [1]
        fits = alone and given.sequence and given.size[1] == given.plane[0]
        fits = fits and {given.groups, made.groups, given.ciphertexts, made.ciphertexts} == groups
        fits = fits and made == given.after(op) and made.slots == made.total // op.groups
        if not (fits and given.slots * given.plane[0] == made.slots * op.width):
            raise StateError(f"{what}: a roll between other slots", {"value": step.out})

    def _fit_pair(self, step: Multiply | Contract, what: str) -> None:
        (x, y), result = (self.values[k] for k in step.inputs), self.values[step.out]
        fields = {"value": step.out}
        if not math.isclose(x.bound * y.bound, result.bound, rel_tol=1e-9):
            raise StateError(f"{what}: a bound that is not the operands' product", fields)
        if step.op.shape(x.layout.shape, y.layout.shape) != result.layout.shape:
            raise StateError(f"{what}: operands of other shapes", fields)
        layouts = [value.layout for value in (x, y, result)]
        one = len({(a.plane, a.gap, a.sequence) for a in layouts}) == 1 and x.layout.sequence
        if isinstance(step, Contract):
            tokens = x.layout.plane[0]
            rolled, narrow = y.layout, x.layout if isinstance(step.op, Scores) else result.layout
            wide = result.layout if isinstance(step.op, Scores) else x.layout
            groups = {a.groups for a in layouts} | {a.ciphertexts for a in layouts}
            fits = groups == {step.op.groups} and wide == rolled and tokens == x.layout.size[1]
            fits = fits and rolled.slots == rolled.total // step.op.groups
            fits = fits and narrow.slots == rolled.slots // tokens * step.op.width
            fits = fits and 0 <= step.babies <= step.op.width and not step.babies & (step.babies - 1)
        else:
            fits = x.layout == result.layout and y.layout.ciphertexts in (1, x.layout.ciphertexts)
            fits = fits and y.layout.slots <= x.layout.slots and step.op.groups == y.layout.groups
            fits = fits and y.layout.slots == y.layout.total // y.layout.groups
            fits = fits and (y.layout.groups == 1 or x.layout.groups == y.layout.groups)
        if not (one and fits):
            raise StateError(f"{what}: operands in other slots", fields)

    def line(self, step: Step) -> str:
        """A step in one line, the stable text form."""
        operands = ", ".join(f"%{k}" for k in step.inputs)
        result = self.values[step.out]
        what = type(step).__name__.lower()
        if isinstance(step, Transform):
            what += " " + " + ".join("*".join(op.name for op in chain) or "identity" for chain in step.chains)
            what += f" by {step.babies}" if step.babies else ""
        elif isinstance(step, Contract):
            what += f" {step.op.name}{f' by {step.babies}' if step.babies else ''}"
        elif isinstance(step, Evaluate):
            degrees = ",".join(str(len(f) - 1) for f in step.series.factors)
            what += f" {step.series.function} of degree {degrees}{' gated' if step.series.gated else ''}"
        elif isinstance(step, Refresh) and step.boot != Boot(result.layout.slots):
            what += f" in {step.boot}"
        filled = f" fill {result.fill:.4g}" if result.fill else ""
        return (
            f"%{step.out} = {what}({operands}) level {step.level} -> {result.level} "
            f"[{result.layout}] bound {result.bound:.4g}{filled} # {result.origin}"
        )

    def explain(self) -> str:
        """The plan as text: the input, a line a step, what is returned, and what was decided."""
        first = self.values[0]
        lines = [f"%0 = input level {first.level} [{first.layout}] bound {first.bound:.4g}"]
        lines += [self.line(step) for step in self.steps]
        lines.append(f"return %{self.output} as {list(self.output_shape)}")
        lines += [
            f"decided {d.origin}: {d.chosen} ({d.reason}); instead of {d.instead}" for d in self.decisions
        ]
        return "\n".join(map(legible, lines))
