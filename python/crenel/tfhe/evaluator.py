"""Evaluator of TFHE: the operations, and arrays bound to them."""

from __future__ import annotations

from typing import overload

from crenel.tfhe.arrays import Ciphertext, Integers
from crenel.tfhe.bound import BoundCiphertext, BoundIntegers, bound
from crenel.tfhe.kinds import expect_kind
from crenel.tfhe.operations import Operations


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
