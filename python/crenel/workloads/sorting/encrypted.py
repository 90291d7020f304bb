"""Rounds on ciphertexts: an evaluator's operations and a bootstrapper's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crenel._crenel import Bootstrapper, Ciphertext, Evaluator, Operand, Plaintext, concatenate
from crenel.workloads.masks import MaskStore
from crenel.workloads.sorting.comparator import Factor

Reals = NDArray[np.float64]


class EncryptedMachine:
    """`circuit.Machine` of operands."""

    def __init__(self, evaluator: Evaluator, boot: Bootstrapper, masks: MaskStore) -> None:
        self.evaluator, self.boot, self.masks = evaluator, boot, masks

    def mask(self, x: Operand, mask: Reals | Plaintext) -> Operand:
        """As Machine.mask; a plaintext is of the level of x."""
        if isinstance(mask, np.ndarray):
            mask = self.masks.encoded(self.evaluator.context, mask, x.level)
        return x * mask

    def multiply(self, a: Operand, b: Operand) -> Operand:
        """As Machine.multiply."""
        return a * b

    def fourfold(self, x: Operand) -> Operand:
        """As Machine.fourfold."""
        return x * 4

    def factor(self, x: Operand, factor: Factor, real: bool) -> Operand:
        """As Machine.factor: the evaluator computes no even Chebyshev polynomial but those of powers of
        two."""
        if not real:
            return x.polynomial(factor.chebyshev, basis="chebyshev")
        half = x.polynomial(factor.chebyshev / 2, basis="chebyshev")
        return half + half.conjugate()

    def refresh(self, vectors: list[Operand]) -> list[Operand]:
        """As Machine.refresh, all of them as one batch; a single one is its own partner."""
        low = [x.at_level(self.boot.levels.input) for x in vectors]
        first, second = low[::2], low[1::2]
        if len(second) < len(first):
            second = [*second, low[-1]]
        u, v = self.boot.pair(_joined(first), _joined(second), self.evaluator)
        fresh: list[Operand] = []
        for place in range(len(first)):
            fresh += [self.evaluator(u[place : place + 1]), self.evaluator(v[place : place + 1])]
        return fresh[: len(vectors)]


def _joined(vectors: Sequence[Operand]) -> Ciphertext:
    return vectors[0].ciphertext if len(vectors) == 1 else concatenate(vectors)
