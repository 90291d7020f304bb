"""Programs on encrypted integers as one circuit: what stands for arrays while a program is described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from crenel import _crenel
from crenel.errors import StateError, UnsupportedError
from crenel.tfhe.arrays import Ciphertext, EncryptedArray, Integers, Shape
from crenel.tfhe.kinds import is_encrypted

if TYPE_CHECKING:
    from crenel.tfhe.place import Place

Data: TypeAlias = _crenel.TfheIntegers | _crenel.TfheCiphertext  # of an array that is there

# Operations of circuits, by the names of the engine of integers.
OPERATIONS = {
    *("abs", "add", "add_overflow", "bit_and", "bit_not", "bit_or", "bit_xor", "compare", "convert"),
    *("count_ones", "div", "divmod", "leading_zeros", "look_up", "max", "min", "min_max", "mul"),
    *("mul_overflow", "neg", "rem", "rotate_left", "rotate_right", "select", "shift_left"),
    *("shift_right", "sub", "sub_overflow", "trailing_zeros"),
}
# What a program may ask an evaluator of bits without computing.
KNOWN = {"keys", "max_p_fail_log2", "p_fail_log2", "step_table", "steps"}


def refused(what: str) -> NoReturn:
    """UnsupportedError for what circuits do not have."""
    raise UnsupportedError(
        f"circuit: {what}, expected operations on integers and bits element by element; compute it before "
        "the circuit or after it",
        {"operation": what},
    )


class Stand:
    """The data of an array that a program is described on: a value of a circuit, for `size` elements."""

    __slots__ = ("bits", "plain_modulus", "signed", "size", "value")

    def __init__(self, value: _crenel.TfheCircuitValue, size: int) -> None:
        self.value, self.size = value, size
        self.bits, self.signed = value.bits, value.signed
        self.plain_modulus = 32  # of bits on sets for integers

    def slice(self, first: int, count: int) -> Stand:
        """All elements; UnsupportedError for some of them."""
        return self if (first, count) == (0, self.size) else refused("some elements of an array")

    def take(self, index: np.ndarray) -> Stand:
        """UnsupportedError: elements keep their places."""
        refused("elements moved or repeated")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what protocols ask for
            raise AttributeError(name)
        raise StateError(
            f"circuit: '{name}' of an array that is not computed yet, expected of a result of the circuit",
            {"found": name},
        )


class Description:
    """A circuit while a program is run, and the arrays that it takes."""

    __slots__ = ("_inputs", "circuit", "shape", "size")

    def __init__(self, shape: Shape, size: int) -> None:
        self.circuit = _crenel.TfheIntegerCircuit()
        self.shape, self.size = shape, size
        self._inputs: list[tuple[Data, Stand]] = []

    @property
    def arrays(self) -> list[Data]:
        """In the order of the circuit's inputs."""
        return [array for array, _ in self._inputs]

    def input(self, array: Data) -> Stand:
        """What stands for an array: an argument of the program, or one that it knows besides."""
        for known, stand in self._inputs:
            if known is array:
                return stand
        if not isinstance(array, Data):
            raise StateError(
                "circuit: an array that another circuit has not computed yet, expected one that is there; "
                "within a program, call circuit of the evaluator that the program was given",
                {"found": "not computed yet", "expected": "an encrypted array"},
            )
        if isinstance(array, _crenel.TfheIntegers):
            value = self.circuit.integers(array.bits, array.signed)
        else:
            value = self.circuit.bit()
        self._inputs.append((array, Stand(value, self.size)))
        return self._inputs[-1][1]

    def operation(self, name: str, *operands: Any) -> Any:
        """By name, of stands, arrays, words and numbers; its results as stands."""
        return self._stands(getattr(self.circuit, name)(*map(self._operand, operands)))

    def output(self, array: EncryptedArray) -> None:
        """The next result."""
        data: Any = array._data
        self.circuit.output((data if isinstance(data, Stand) else self.input(data)).value)

    def _operand(self, x: Any) -> Any:
        if isinstance(x, Data):
            x = self.input(x)
        if isinstance(x, Stand):
            return x.value
        return list(map(self._operand, x)) if isinstance(x, list) else x

    def _stands(self, found: Any) -> Any:
        if isinstance(found, tuple):
            return tuple(map(self._stands, found))
        return Stand(found, self.size)


class IntegerEngine:
    """In place of the engine of integers: describes instead of computing."""

    __slots__ = ("_description", "_engine")

    def __init__(self, description: Description, engine: _crenel.TfheIntegerEvaluator) -> None:
        self._description, self._engine = description, engine

    def __getattr__(self, name: str) -> Any:
        if name not in OPERATIONS:
            refused(f"'{name}' of integers")
        return lambda *operands: self._description.operation(name, *operands)

    def trivial(self, words: np.ndarray, bits: int, signed: bool) -> Data:
        """Public integers, which become an input."""
        return self._engine.trivial(words, bits, signed)

    def sum(self, parts: Sequence[Stand]) -> Stand:
        """Of one part."""
        return parts[0] if len(parts) == 1 else refused("sums along axes")

    def sum_messages(self, parts: Sequence[Stand], bits: int, signed: bool) -> Any:
        """Bits as integers."""
        if len(parts) != 1:
            refused("sums along axes")
        return self._description.operation("convert", parts[0], bits, signed)


class BitEngine:
    """In place of the engine of bits."""

    __slots__ = ("_description", "_engine")

    def __init__(self, description: Description, engine: _crenel.TfheEvaluator) -> None:
        self._description, self._engine = description, engine

    def __getattr__(self, name: str) -> Any:
        if name in KNOWN:
            return getattr(self._engine, name)
        refused(f"'{name}' of bits")

    def trivial(self, messages: np.ndarray, plain_modulus: int) -> Data:
        """Public bits, which become an input."""
        return self._engine.trivial(messages, plain_modulus)

    def gate(self, name: str, bits: Sequence[Stand | Data]) -> Any:
        """A gate by its name."""
        return self._description.operation("gate", name, list(bits))

    def invert(self, bit: Stand) -> Any:
        """Not."""
        return self._description.operation("invert", bit)

    def mux(self, condition: Stand, a: Stand, b: Stand) -> Any:
        """a where the condition is 1, else b."""
        return self._description.operation("select", condition, a, b)


def results(place: Place, found: Any, made: Sequence[Data]) -> Any:
    """What a program returned, with the arrays that its circuit gave."""
    rest = iter(made)

    def rebuilt(part: Any) -> Any:
        if is_encrypted(part):
            data: Any = next(rest)
            if isinstance(part, Integers):
                return Integers(place, data, part.shape)
            return Ciphertext(place, data, part.shape, part.dtype)
        return type(part)(map(rebuilt, part))

    return rebuilt(found)


def outputs(found: Any) -> list[EncryptedArray]:
    """The arrays that a program returned, alone or in lists and tuples; TypeError for anything else."""
    if is_encrypted(found):
        return [found]
    if type(found) in (list, tuple) and found:
        return [array for part in found for array in outputs(part)]
    raise TypeError(
        "circuit: a program returns encrypted arrays, alone or in lists and tuples, got "
        f"{type(found).__name__}"
    )
