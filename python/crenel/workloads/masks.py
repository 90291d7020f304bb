"""Public vectors that a program multiplies by again and again, encoded once."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from crenel._crenel import Context, Plaintext


class MaskStore:
    """Masks as encoded plaintexts of one context, by content and level.

    Kept from run to run they save their encoding and take memory: a polynomial of the level each.
    """

    def __init__(self) -> None:
        self._encoded: dict[tuple[bytes, int], Plaintext] = {}

    def __len__(self) -> int:
        return len(self._encoded)

    def encoded(self, context: Context, mask: NDArray[np.float64], level: int) -> Plaintext:
        """For a product with a vector of this level and as many slots."""
        key = hashlib.sha256(mask.tobytes()).digest(), level
        if key not in self._encoded:
            self._encoded[key] = context.encode(mask, level=level, slots=mask.size)
        return self._encoded[key]
