"""Evaluator of TFHE: the operations, arrays bound to them, and programs of them as one circuit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

from crenel import _crenel
from crenel.errors import ParameterError, StateError
from crenel.tfhe.arrays import Ciphertext, EncryptedArray, Integers
from crenel.tfhe.bound import BoundCiphertext, BoundIntegers, bound
from crenel.tfhe.circuits import BitEngine, Description, IntegerEngine, outputs, refused, results
from crenel.tfhe.kinds import expect_kind
from crenel.tfhe.operands import common_shape, stretched
from crenel.tfhe.operations import Operations

T = TypeVar("T")


class Evaluator(Operations):
    """Operations on encrypted arrays, element by element; `ev(a)` is the array with operators.

    Each call is one batch of bootstraps: whole arrays are much faster than elements one after the other.
    What an operation takes is decided by the kind of its operands: bits (dtype bool), messages (encrypted
    with `bits`) or integers; another kind is a TypeError that says what to call. Shapes broadcast as NumPy's
    do (with packing they must be equal). Every operation raises StateError for arrays of another context or
    of shapes that do not broadcast, and KeyMissingError where a key is missing. Arrays carry the noise that
    they gathered (docs/theory/tfhe.md, "Noise that ciphertexts carry"); operations whose bootstraps would
    fail more often than `max_p_fail_log2` allows raise ParameterError.
    """

    __slots__ = ()

    @overload
    def __call__(self, array: Ciphertext) -> BoundCiphertext: ...
    @overload
    def __call__(self, array: Integers) -> BoundIntegers: ...
    def __call__(self, array: Ciphertext | Integers) -> BoundCiphertext | BoundIntegers:
        """The array with operators that this evaluator computes. Raises TypeError for anything else."""
        expect_kind("binding", array, "bit", "message", "integer")
        return bound(self, array)

    def circuit(self, program: Callable[..., T], *arrays: EncryptedArray) -> T:
        """``program(ev, a, b, ...)`` on integers and bits as one circuit, element by element.

        Operations that do not wait for each other share rounds of bootstraps, what two of them look up is
        looked up once, and nothing is copied between them. Decrypted, results are those of the program
        without `circuit`.

        Parameters
        ----------
        program : of an evaluator and bound arrays (with operators); returns an array, or a list or tuple of
            such. It is called once a call, on values that stand for the arrays. Public numbers are fixed in
            the circuit; other encrypted arrays that it reads are inputs too
        arrays : integers and bits, of shapes that broadcast to one

        The context keeps what was composed: a program of the same operations and types starts with its first
        bootstrap.

        Raises ParameterError for no arrays, StateError for shapes that do not broadcast and where the program
        computes with another evaluator, TypeError for arrays of messages and where it returns anything but
        arrays, UnsupportedError for operations that move elements or add them up along axes, and for those on
        messages; and what the operations raise.
        """
        description, found = self._described(program, arrays)
        made = self._engine_i().run(description.circuit, description.arrays)
        return cast("T", results(self._context, found, made))

    def circuit_rounds(self, program: Callable[..., T], *arrays: EncryptedArray) -> tuple[int, ...]:
        """Bootstraps of each round that `circuit` takes an element, without computing it. Raises as it."""
        description, _ = self._described(program, arrays)
        device, params = self._context.device, self._context.params
        _, _, _, rounds = description.circuit.cost(
            self._circuits, description.size, device.processors, params.max_norm2, bool(self.steps)
        )
        return tuple(rounds)

    def _described(
        self, program: Callable[..., T], arrays: tuple[EncryptedArray, ...]
    ) -> tuple[Description, T]:
        if not arrays:
            raise ParameterError("circuit of no arrays, expected at least one", {"arrays": 0})
        for array in arrays:
            expect_kind("circuit", array, "bit", "integer")
        shape = common_shape(*(array.shape for array in arrays))
        description = Description(shape, math.prod(shape))
        evaluator = _Describing(self, description)
        stands = [evaluator._stand(array) for array in arrays]
        try:
            found = program(evaluator, *stands)
        except TypeError as error:
            if "incompatible function arguments" not in str(error):
                raise
            raise StateError(
                "circuit: the program computed with another evaluator, expected the one that it was given",
                {"expected": "the program's first argument"},
            ) from None
        for array in outputs(found):
            description.output(array)
        return description, found


class _Describing(Evaluator):
    """The evaluator that a program of a circuit is given."""

    __slots__ = ("_description", "_engine")

    def __init__(self, evaluator: Evaluator, description: Description) -> None:
        bits = BitEngine(description, evaluator._evaluator)
        super().__init__(evaluator._context, cast("_crenel.TfheEvaluator", bits), evaluator._circuits)
        self._description = description
        self._engine = IntegerEngine(description, evaluator._engine_i())

    def _engine_i(self) -> _crenel.TfheIntegerEvaluator:
        return cast("_crenel.TfheIntegerEvaluator", self._engine)

    def _engine_m(self) -> _crenel.TfheMessageEvaluator:
        refused("operations of messages")

    def _stand(self, array: EncryptedArray) -> BoundCiphertext | BoundIntegers:
        shape, slots = self._description.shape, self._context.params.slots
        stand: Any  # in place of data
        if isinstance(array, Integers):
            stand = self._description.input(stretched(array._data, array.shape, shape, slots))
            return bound(self, Integers(self._context, stand, shape))
        stand = self._description.input(stretched(array._data, array.shape, shape, slots))
        return bound(self, Ciphertext(self._context, stand, shape, array.dtype))

    def circuit(self, program: Callable[..., T], *arrays: EncryptedArray) -> T:
        """Part of the circuit around it."""
        return program(self, *(bound(self, array) for array in arrays))

    def circuit_rounds(self, program: Callable[..., T], *arrays: EncryptedArray) -> tuple[int, ...]:
        """UnsupportedError: what a part would take alone is not what it adds."""
        refused("the rounds of a part")
