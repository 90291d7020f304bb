"""Where numbers lie in the slots; public, known to both sides.

Feature f of patient p is slot ``f * row + p``, ``row = slots / 32``: 30 features padded to 32. Adding
up rotations by multiples of `row` then leaves, in every slot of a column, the sum over the features of
its patient, for all patients at once.
"""

from __future__ import annotations

FEATURES = 32  # a power of two, at least the 30 of the data
BABY = 4  # the 32 rotations are made as two hoisted sums: 4, then 8 of every 4th


def row_length(slots: int) -> int:
    """Patients that fit into one ciphertext."""
    return slots // FEATURES


def baby_steps(slots: int) -> list[int]:
    """Rotations of the first sum."""
    return [k * row_length(slots) for k in range(BABY)]


def giant_steps(slots: int) -> list[int]:
    """Rotations of the second sum."""
    return [k * BABY * row_length(slots) for k in range(FEATURES // BABY)]


def rotations(slots: int) -> list[int]:
    """Every rotation that the server needs a key for."""
    return sorted({*baby_steps(slots), *giant_steps(slots)} - {0})
