"""The keys and levels that a program needs: found by running it on operands that record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import index
from typing import Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from crenel._crenel import (
    BlockTransform,
    BootstrapOptions,
    Bootstrapper,
    Ciphertext,
    Client,
    EvaluationKeys,
    LinearTransform,
    Operand,
    Params,
    Plaintext,
    linear_transform_rotations,
    polynomial_depth,
    sum_slots_rotations,
)
from crenel.errors import ParameterError, StateError, UnsupportedError
from crenel.progress_bar import Callback

Other: TypeAlias = "Recorded | Plaintext | ArrayLike"
MAX_INTEGER = 2.0**31  # beyond, a factor is encoded


@dataclass(frozen=True)
class Needs:
    """What a program needs of a server's keys and of the parameters. Made by `needs`."""

    rotation_levels: Mapping[int, int]
    """Steps, in the range of the slots of the vectors that are rotated, and the highest level of each."""
    conjugation_level: int | None
    """Highest level at which a vector is conjugated; None: never."""
    relinearisation_level: int | None
    """Highest level at which ciphertexts are multiplied; None: never."""
    bootstraps: tuple[BootstrapOptions, ...]
    """Options of the bootstrappers that it calls, each once."""
    depth: int
    """Levels from the highest input to the lowest result."""

    @property
    def rotations(self) -> list[int]:
        """The steps of `rotation_levels`, ascending."""
        return sorted(self.rotation_levels)

    @property
    def conjugate(self) -> bool:
        """Conjugates a vector."""
        return self.conjugation_level is not None

    @property
    def relinearisation(self) -> bool:
        """Multiplies ciphertexts."""
        return self.relinearisation_level is not None

    @property
    def bootstrap(self) -> BootstrapOptions | tuple[BootstrapOptions, ...] | None:
        """Options of the bootstrapper that it calls, of several all; None where it calls none."""
        return self.bootstraps if len(self.bootstraps) > 1 else next(iter(self.bootstraps), None)

    def __or__(self, other: Needs) -> Needs:
        """What both programs need: one set of keys, of each the higher level, serves them."""
        if not isinstance(other, Needs):
            return NotImplemented
        return Needs(
            _highest(self.rotation_levels, other.rotation_levels),
            _higher(self.conjugation_level, other.conjugation_level),
            _higher(self.relinearisation_level, other.relinearisation_level),
            _each_once(self.bootstraps + other.bootstraps),
            max(self.depth, other.depth),
        )

    def keys(
        self, client: Client, progress: bool | Callback | None = None, aligned: bool = False
    ) -> EvaluationKeys:
        """Exactly these keys, each for the levels up to the highest that it is used at; those of a bootstrap
        for what it needs, and for every normal level. `aligned`: beside each one for the aligned levels too,
        as `Client.evaluation_keys` makes them.

        Raises what `Client.evaluation_keys` raises."""
        return client.evaluation_keys(
            rotations=self.rotation_levels,
            conjugate=self.conjugate,
            relinearisation=self.relinearisation,
            bootstrap=self.bootstraps,
            max_level=_higher(self.conjugation_level, self.relinearisation_level),
            aligned=aligned,
            progress=progress,
        )

    def key_bytes(self, params: Params, aligned: bool = False) -> int:
        """Bytes of `keys` on the device, exactly, without a client."""
        return params.key_bytes(
            rotations=self.rotation_levels,
            conjugate=self.conjugate,
            relinearisation=self.relinearisation,
            bootstrap=self.bootstraps,
            max_level=_higher(self.conjugation_level, self.relinearisation_level),
            aligned=aligned,
        )


def _higher(a: int | None, b: int | None) -> int | None:
    return max((level for level in (a, b) if level is not None), default=None)


def _highest(*levels: Mapping[int, int]) -> dict[int, int]:
    return {k: max(each.get(k, -1) for each in levels) for k in sorted(set().union(*levels))}


def _each_once(options: tuple[BootstrapOptions, ...]) -> tuple[BootstrapOptions, ...]:
    return tuple({repr(each): each for each in options}.values())


class Recorder:
    """Stands where an evaluator does, computes nothing, and keeps what would be needed."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.rotations: dict[int, int] = {}
        self.conjugation: int | None = None
        self.relinearisation: int | None = None
        self.bootstraps: tuple[BootstrapOptions, ...] = ()
        self.highest = self.lowest = params.normal_top_level
        self.shortage: str | None = None

    def input(self, level: int | None = None, slots: int | None = None, real: bool = True) -> Recorded:
        """An input of the program."""
        start = self.params.normal_top_level if level is None else level
        self.highest = max(self.highest, start)
        return Recorded(self, start, self.params.slots if slots is None else slots, real)

    def __call__(self, ciphertext: Ciphertext | Operand | Recorded) -> Recorded:
        """The record of a ciphertext."""
        if isinstance(ciphertext, Recorded):
            return ciphertext
        return self.input(ciphertext.level, ciphertext.slots, bool(ciphertext.real))

    def linear_transform(self, transform: LinearTransform, a: Recorded) -> Recorded:
        """As Evaluator.linear_transform of a prepared one."""
        for step in transform.rotations:
            self.rotate(step, a.slots, a.level)
        return a._consume(1, "linear_transform", real=False)

    def block_transform(self, transform: BlockTransform, inputs: Sequence[Recorded]) -> list[Recorded]:
        """As BlockTransform.__call__ with an evaluator."""
        if len(inputs) != transform.inputs:
            raise StateError(
                f"transform of {len(inputs)} inputs, expected {transform.inputs}",
                {"operation": "block_transform", "inputs": len(inputs), "expected": transform.inputs},
            )
        beside = inputs[0]
        for other in inputs[1:]:
            beside = beside._beside(other)
        for step in transform.rotations:
            self.rotate(step, beside.slots, beside.level)
        return [beside._consume(1, "block_transform", real=False) for _ in range(transform.outputs)]

    def bootstrapped(self, boot: Bootstrapper, a: Recorded) -> Recorded:
        """As Bootstrapper.__call__."""
        self.bootstraps = _each_once((*self.bootstraps, boot.options))
        return Recorded(self, boot.levels.output, a.slots, a.real)

    def rotate(self, steps: int, slots: int, level: int) -> None:
        """A rotation of vectors of so many slots at this level."""
        step = steps % slots
        if step:
            step = step if 2 * step <= slots else step - slots
            self.rotations[step] = max(level, self.rotations.get(step, 0))

    def conjugate(self, level: int) -> None:
        """A conjugation at this level."""
        self.conjugation = max(level, self.conjugation or 0)

    def relinearise(self, level: int) -> None:
        """A product of ciphertexts at this level, before its rescale."""
        self.relinearisation = max(level, self.relinearisation or 0)

    def reached(self, level: int, operation: str) -> None:
        """The lowest level so far, and the first operation that had none left."""
        if level < 0 and self.shortage is None:
            self.shortage = operation
        self.lowest = min(self.lowest, level)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(
            f"{name}: keys are found for programs of operands and arrays, not of explicit operations",
            {"operation": name},
        )


def _is_integer(x: complex) -> bool:
    return all(abs(p) < MAX_INTEGER and float(p).is_integer() for p in (complex(x).real, complex(x).imag))


def _real(other: Other) -> bool:
    if isinstance(other, (Recorded, Plaintext)):
        return bool(other.real)
    return not np.iscomplexobj(other) or (np.ndim(other) == 0 and complex(np.asarray(other)[()]).imag == 0.0)


class Recorded:
    """An operand of which only level, slots and realness are known. Has the operations of Operand."""

    __slots__ = ("evaluator", "level", "real", "slots")
    __array_ufunc__ = None

    def __init__(self, evaluator: Recorder, level: int, slots: int, real: bool) -> None:
        self.evaluator, self.level, self.slots, self.real = evaluator, level, slots, real

    @property
    def bound(self) -> float:
        """inf, as of a ciphertext whose values nobody bounded."""
        return inf

    @property
    def ciphertext(self) -> Recorded:
        """Itself."""
        return self

    def __repr__(self) -> str:
        return f"<recorded operand of level {self.level}, {self.slots} slots>"

    def _consume(self, levels: int, operation: str, *, real: bool | None = None) -> Recorded:
        level = self.level - levels
        self.evaluator.reached(level, operation)
        return Recorded(self.evaluator, level, self.slots, self.real if real is None else real)

    def _beside(self, other: Other) -> Recorded:
        level = self.level
        if isinstance(other, Recorded):
            if other.slots != self.slots:
                raise StateError(
                    f"slots {self.slots} and {other.slots} differ",
                    {"slots_a": self.slots, "slots_b": other.slots},
                )
            level = min(level, other.level)
        elif isinstance(other, (Ciphertext, Operand)):
            raise TypeError("a ciphertext beside a recorded operand: make it an input of the program")
        return Recorded(self.evaluator, level, self.slots, self.real and _real(other))

    def __add__(self, other: Recorded | Plaintext | ArrayLike) -> Recorded:
        return self._beside(other)

    __radd__ = __sub__ = __rsub__ = __add__

    def __mul__(self, other: Recorded | Plaintext | ArrayLike) -> Recorded:
        a = self._beside(other)
        if isinstance(other, Recorded):
            self.evaluator.relinearise(a.level)
        elif not isinstance(other, Plaintext):
            number = np.asarray(other)
            whole = number.dtype.kind in "biu" or (number.dtype.kind == "c" and number.ndim == 0)
            if number.ndim == 0 and whole and _is_integer(complex(number[()])):
                return a
        return a._consume(1, "product")

    __rmul__ = __mul__

    def __truediv__(self, other: ArrayLike) -> Recorded:
        if isinstance(other, (Recorded, Plaintext, Ciphertext, Operand)):
            return NotImplemented
        if np.ndim(other) == 0 and np.asarray(other)[()] == 0:
            raise ZeroDivisionError("division of a ciphertext by zero")
        return self._beside(other)._consume(1, "division")

    def __pow__(self, exponent: int) -> Recorded:
        if not hasattr(exponent, "__index__") or index(exponent) < 1:
            raise ParameterError(
                f"the exponent must be a positive integer, got {exponent}", {"exponent": exponent}
            )
        exponent = index(exponent)
        if exponent > 1:
            self.evaluator.relinearise(self.level)
        return self._consume((exponent - 1).bit_length(), "power")

    def __neg__(self) -> Recorded:
        return self

    __pos__ = __neg__

    def square(self) -> Recorded:
        """As Operand.square."""
        return self * self

    def multiply_monomial(self, power: int) -> Recorded:
        """As Operand.multiply_monomial."""
        dim = 2 * self.evaluator.params.slots
        power = index(power) % (2 * dim)
        if power % dim == 0:
            return self
        slots = max(self.slots, dim // (2 * min(power & -power, dim // 2)))
        return Recorded(self.evaluator, self.level, slots, False)

    def rotate(self, steps: int) -> Recorded:
        """As Operand.rotate."""
        self.evaluator.rotate(steps, self.slots, self.level)
        return self

    def rotate_many(self, steps: Sequence[int]) -> list[Recorded]:
        """As Operand.rotate_many."""
        return [self.rotate(k) for k in steps]

    def rotate_sum(self, steps: Sequence[int]) -> Recorded:
        """As Operand.rotate_sum."""
        self.rotate_many(steps)
        return self

    def conjugate(self) -> Recorded:
        """As Operand.conjugate."""
        self.evaluator.conjugate(self.level)
        return self

    def sum(self, count: int | None = None, stride: int = 1) -> Recorded:
        """As Operand.sum."""
        if count is None:
            if self.slots % max(abs(stride), 1):
                raise ParameterError(
                    f"sum at stride {stride} over all of {self.slots} slots, which it does not divide; say "
                    "over how many (count)",
                    {"stride": stride, "slots": self.slots},
                )
            count = self.slots // max(abs(stride), 1)
        return self.rotate_sum(sum_slots_rotations(count, stride))

    def mean(self) -> Recorded:
        """As Operand.mean."""
        return self.sum()._consume(1, "mean")

    def with_slots(self, slots: int, *, repeating: bool = False) -> Recorded:
        """As Operand.with_slots."""
        if slots < self.slots and not repeating:
            raise StateError(
                f"a vector of {self.slots} slots as one of {slots}: only where it repeats",
                {"slots": self.slots, "wanted": slots},
            )
        return Recorded(self.evaluator, self.level, slots, self.real)

    def at_level(self, level: int) -> Recorded:
        """As Operand.at_level."""
        if level > self.level:
            raise StateError(
                f"adjust_level to level {level} needs level {level}, the operand is at level {self.level}",
                {"operation": "adjust_level", "level": self.level, "needed": level},
            )
        return Recorded(self.evaluator, level, self.slots, self.real)

    def polynomial(
        self,
        coefficients: ArrayLike,
        basis: Literal["power", "chebyshev"] = "power",
        interval: tuple[float, float] = (-1.0, 1.0),
    ) -> Recorded:
        """As Operand.polynomial."""
        degree = np.asarray(coefficients).size - 1
        while degree > 0 and np.asarray(coefficients)[degree] == 0:
            degree -= 1
        mapped = basis == "chebyshev" and tuple(interval) != (-1.0, 1.0)
        if degree > 1:
            self.evaluator.relinearise(self.level - mapped)
        depth = polynomial_depth(degree) + mapped
        return self._consume(depth if degree else 0, "polynomial")

    def linear_transform(self, matrix: ArrayLike | Mapping[int, ArrayLike]) -> Recorded:
        """As Operand.linear_transform."""
        values: Sequence[ArrayLike]
        if isinstance(matrix, Mapping):
            offsets, values = list(matrix), list(matrix.values())
        else:
            dense = np.asarray(matrix)
            rows, columns = np.nonzero(dense)
            offsets, values = sorted({int(k) for k in (columns - rows) % self.slots}) or [0], [dense]
        for step in linear_transform_rotations(offsets, self.slots):
            self.evaluator.rotate(step, self.slots, self.level)
        return self._consume(1, "linear_transform", real=self.real and not any(map(np.iscomplexobj, values)))

    def __matmul__(self, other: Recorded | ArrayLike) -> Recorded:
        if isinstance(other, Recorded) or np.ndim(other) == 1:
            return (self * other).sum()
        return self.linear_transform(np.asarray(other).T)

    def __rmatmul__(self, other: ArrayLike) -> Recorded:
        return (self * other).sum() if np.ndim(other) == 1 else self.linear_transform(other)

    def dot(self, other: Recorded | ArrayLike) -> Recorded:
        """As Operand.dot."""
        return (self * other).sum()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"{name}: no operation of operands", {"operation": name})
