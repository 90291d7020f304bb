"""A plan read for what it needs: keys with their levels, operations, bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from crenel import ckks
from crenel.errors import KeyMissingError
from crenel.nn.interpret import prepared
from crenel.nn.linear import SlotTransform
from crenel.nn.ops import Reals
from crenel.nn.passes.prices import split
from crenel.nn.plan import Boot, Contract, Plan, Transform
from crenel.nn.sizes import plaintext_bytes

TOGETHER = 8
"""Sums of products that share a grid where most places of one for all would be empty."""


def places(matrix: SlotTransform, babies: int, giants: int) -> int:
    """Diagonals for which there is room: of every input a grid of its sums and baby steps, with places for
    those that are zero. Outputs without giant steps that meet few baby steps each share one by eights, where
    no step is met by several; docs/theory/attention.md, "Shifts"."""
    inputs, outputs = matrix.ends
    whole = inputs * outputs * babies * giants
    if giants > 1:
        return whole
    total = 0
    for i in range(inputs):
        rows = [set(row[i] or ()) for row in matrix.blocks if row[i] is not None]
        used = [set().union(*rows[k : k + TOGETHER]) for k in range(0, len(rows), TOGETHER)]
        grid = len(rows) * len(set().union(*rows))
        parts = sum(len(rows[k * TOGETHER :][:TOGETHER]) * len(steps) for k, steps in enumerate(used))
        again = sum(map(len, used)) > len(set().union(*rows)) + len(rows) // TOGETHER
        total += grid if 2 * parts > grid or again else parts
    return total


@dataclass(frozen=True)
class Counted:
    """All that a vector is here."""

    level: int
    slots: int


@dataclass
class Counting:
    """`Operations` on `Counted`; what they need is added up in the fields."""

    plan: Plan
    params: ckks.Params
    batch: int = 1
    """Rows of every vector."""
    rotations: dict[int, int] = field(default_factory=dict)
    """Steps, and the highest level of each."""
    relinearisation: int | None = None
    """Highest level of a product of ciphertexts."""
    operations: Counter[str] = field(default_factory=Counter)
    bootstraps: Counter[Boot] = field(default_factory=Counter)
    """How many of each kind."""
    plaintext_bytes: int = 0
    layer_bytes: int = 0
    """Of the largest step's diagonals."""
    transforms: dict[int, SlotTransform] = field(default_factory=dict)
    """Matrices, by the number of the value that a step makes; of those that are missing the outlines are made
    and put here."""
    encoded: set[int] = field(default_factory=set)
    """Steps whose plaintexts are counted."""

    def _matrix(self, step: Transform | Contract) -> SlotTransform:
        if step.out not in self.transforms:
            self.transforms[step.out] = prepared(self.plan, step, outline=True)
        return self.transforms[step.out]

    def _rotate(self, steps: Sequence[int], level: int) -> None:
        for k in steps:
            self.rotations[k] = max(level, self.rotations.get(k, 0))

    def _product(self, level: int) -> None:
        self.relinearisation = max(level, self.relinearisation or 0)

    def at(self, a: Counted, level: int) -> Counted:
        if level == a.level:
            return a
        self.operations["adjusted levels"] += 1
        return Counted(level, a.slots)

    def of_slots(self, a: Counted, slots: int) -> Counted:
        return Counted(a.level, slots)

    def transform(self, step: Transform | Contract, inputs: Sequence[Counted]) -> list[Counted]:
        matrix = self._matrix(step)
        outputs, slots, level = len(matrix.blocks), matrix.slots, inputs[0].level
        steps = matrix.rotations()
        self._rotate(steps, level)
        self.operations["transforms"] += 1
        self.operations["diagonals"] += matrix.diagonals
        self.operations["rotations of transforms"] += len(steps)
        self._plain(step, matrix, level)
        return [Counted(level - 1, slots)] * outputs

    def _plain(self, step: Transform | Contract, matrix: SlotTransform, level: int) -> None:
        """Bytes of the diagonals, once for all groups. Those of shifts repeat with every row."""
        if step.out in self.encoded:
            return
        self.encoded.add(step.out)
        period = self.plan.values[step.out].layout.plane[0] if isinstance(step, Contract) else matrix.slots
        babies, giants = split(matrix.offsets, matrix.rotations(), matrix.slots)
        each = plaintext_bytes(self.params, level, period=period, extended=True)
        found = places(matrix, babies, giants) * each
        self.plaintext_bytes += found
        self.layer_bytes = max(self.layer_bytes, found)

    def rotated(self, a: Counted, steps: Sequence[int]) -> list[Counted]:
        moves = [k for k in steps if k]
        self._rotate(moves, a.level)
        self.operations["rotations of products"] += len(moves)
        return [a] * len(steps)

    def inner(self, a: Sequence[Counted], b: Sequence[Counted]) -> Counted:
        self._product(a[0].level)
        self.operations["products"] += 1
        self.operations["products summed"] += len(a)
        return Counted(a[0].level - 1, a[0].slots)

    def copies(self, step: Transform) -> tuple[int, int]:
        matrix = self._matrix(step)
        return matrix.copies, matrix.slots // matrix.copies

    def biased(self, step: Transform, output: int, a: Counted) -> Counted:
        self.plaintext_bytes += plaintext_bytes(self.params, a.level, period=a.slots)
        return a

    def sums(self, a: Counted, count: int, stride: int) -> Counted:
        steps = ckks.sum_slots_rotations(count, stride)
        self._rotate(steps, a.level)
        self.operations["rotations of sums"] += len(steps)
        return a

    def series(self, a: Counted, coefficients: Reals) -> Counted:
        degree = len(coefficients) - 1
        if degree > 1:
            self._product(a.level)
        self.operations["series"] += 1
        return Counted(a.level - ckks.polynomial_depth(degree), a.slots)

    def add(self, a: Counted, b: Counted) -> Counted:
        self.operations["additions"] += 1
        return a

    def add_number(self, a: Counted, number: float) -> Counted:
        return a

    def negate(self, a: Counted) -> Counted:
        return a

    def product(self, a: Counted, b: Counted) -> Counted:
        self._product(a.level)
        self.operations["products"] += 1
        return Counted(a.level - 1, a.slots)

    def refresh(self, a: Sequence[Counted], boot: Boot, level: int) -> list[Counted]:
        count = boot.bootstraps(len(a) * self.batch)
        self.bootstraps[boot] += count
        self.operations["bootstraps"] += count
        if boot.target is not None and boot.target > level:
            self.operations["adjusted levels"] += len(a)
        return [Counted(level, x.slots) for x in a]

    def level(self, a: Counted) -> int:
        return a.level


@dataclass(frozen=True, eq=False)
class Demand:
    """What running a plan needs."""

    rotations: Mapping[int, int]
    """Steps, and the highest level at which each is used."""
    relinearisation: int | None
    """Highest level of a product of ciphertexts; None: there is none."""
    bootstraps: tuple[Boot, ...]
    """Kinds of bootstraps, each once."""
    operations: Mapping[str, int]
    plaintext_bytes: int
    """Of encoded weights, on the device."""
    layer_bytes: int
    """Of those of one layer, at most: what is there of them at once where they are staged."""
    key_bytes: int
    """Of the evaluation keys, on the device."""

    def check(self, keys: ckks.EvaluationKeys, params: ckks.Params) -> None:
        """Raises KeyMissingError naming every key that is missing or serves too low a level; those of
        bootstraps are for the bootstrapper to find."""
        missing = {k: level for k, level in self.rotations.items() if not _serves(keys, k, level, params)}
        short = [f"{k} to level {level}" for k, level in missing.items()]
        needed = self.relinearisation
        if needed is not None and not _serves(keys, "relinearisation", needed, params):
            short.append(f"relinearisation to level {needed}")
        if short:
            raise KeyMissingError(
                f"keys are missing, or serve too low a level: {', '.join(short)}. "
                "client.evaluation_keys(spec) makes all of them",
                {"rotations": list(missing), "keys": ", ".join(short)},
            )


def _serves(
    keys: ckks.EvaluationKeys, key: int | Literal["relinearisation"], level: int, params: ckks.Params
) -> bool:
    """Can it be used at all levels up to one? Beside a key for aligned levels the plain one, as bootstraps
    ask for it, may end below the highest of these."""
    plain, aligned = keys.level_of(key), keys.level_of(key, aligned=True)
    above = range(0 if plain is None else plain + 1, level + 1)
    return all(
        aligned is not None and each <= aligned and params.highest_aligned(each) == each for each in above
    )


def _sorted(boots: Iterable[Boot]) -> tuple[Boot, ...]:
    return tuple(sorted(boots, key=lambda b: (b.slots, b.pack, b.pair, -1 if b.target is None else b.target)))


def demand_of(counted: Counting) -> Demand:
    """What was counted on a walk; no key, no device."""
    rotations = dict(sorted(counted.rotations.items()))
    return Demand(
        rotations,
        counted.relinearisation,
        _sorted(counted.bootstraps),
        dict(sorted(counted.operations.items())),
        counted.plaintext_bytes,
        counted.layer_bytes,
        counted.params.key_bytes(
            rotations=rotations,
            relinearisation=counted.relinearisation is not None,
            bootstrap=[boot.options() for boot in _sorted(counted.bootstraps)],
            max_level=counted.relinearisation,
        ),
    )
