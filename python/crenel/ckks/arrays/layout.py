"""Where the elements of a matrix lie in the slots of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError

Packing = Literal["rows", "columns", "batch", "features"]
Numbers = NDArray[np.float64] | NDArray[np.complex128]
Integers = NDArray[np.int64]

PACKINGS: dict[str, str] = {
    "rows": "row after row, as many to a vector as fit",
    "columns": "column after column, as many to a vector as fit",
    "batch": "a row to a vector",
    "features": "a column to a vector",
}


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


@dataclass(frozen=True)
class Layout:
    """A matrix of `rows` x `columns` in segments of `width` slots, `group` of them to a vector.

    A row is one segment; a row that is longer than `width` is several (`pieces`), which then are a vector
    each. Slots and segments that hold no element are padding.
    """

    rows: int
    columns: int
    width: int
    group: int

    @property
    def slots(self) -> int:
        """Slots of a vector."""
        return self.width * self.group

    @property
    def pieces(self) -> int:
        """Segments of a row."""
        return -(-self.columns // self.width)

    @property
    def batch(self) -> int:
        """Vectors."""
        return self.rows * self.pieces if self.pieces > 1 else -(-self.rows // self.group)

    @property
    def padded(self) -> bool:
        """Are there slots without an element?"""
        return self.batch * self.slots != self.rows * self.columns

    @property
    def padded_rows(self) -> bool:
        """Are there segments without an element?"""
        return self.pieces == 1 and self.batch * self.group != self.rows

    def place(self, matrix: Numbers, fill: float = 0.0) -> Numbers:
        """The slots, a row to a vector (one vector: one axis), of a matrix; padding is `fill`."""
        segments = self.batch * self.group // self.pieces
        out = np.full((segments, self.pieces * self.width), fill, dtype=matrix.dtype)
        out[: self.rows, : self.columns] = matrix
        vectors = out.reshape(self.batch, self.slots)
        return vectors[0] if self.batch == 1 else vectors

    def gather(self, slots: Numbers) -> Numbers:
        """The matrix in these slots."""
        segments = self.batch * self.group // self.pieces
        return slots.reshape(segments, self.pieces * self.width)[: self.rows, : self.columns]

    def mask(self) -> Numbers:
        """1 where there is an element, 0 in padding."""
        return self.place(np.ones((self.rows, self.columns)))

    def positions(self) -> Integers:
        """For each element of the matrix, vector * slots + slot."""
        return self.gather(np.arange(self.batch * self.slots)).astype(np.int64)


def check_slots(slots: int | None, most: int) -> int:
    """`slots`, a power of two, or all there are."""
    if slots is None:
        return most
    if slots < 1 or slots > most or slots & (slots - 1):
        raise ParameterError(
            f"slots must be a power of two of at most {most}, got {slots}",
            {"slots": slots, "max_slots": most},
        )
    return slots


def layout_of(shape: tuple[int, ...], packing: str | None, slots: int) -> tuple[Layout, bool]:
    """Layout of an array in vectors of at most `slots` slots, and whether it is that of the transpose."""
    if len(shape) > 2 or 0 in shape:
        raise ParameterError(
            f"arrays have up to two axes and at least one element, got shape {shape}",
            {"shape": list(shape)},
        )
    if packing is not None and packing not in PACKINGS:
        raise ParameterError(
            f"packing must be one of {', '.join(PACKINGS)}, got {packing!r}", {"packing": str(packing)}
        )
    transposed = packing in ("columns", "features")
    rows, columns = shape if len(shape) == 2 else (1, shape[0] if shape else 1)
    if transposed:
        rows, columns = columns, rows
    width = min(power_of_two(columns), slots)
    group = 1 if packing in ("batch", "features") else min(power_of_two(rows), slots // width)
    return Layout(rows, columns, width, group), transposed
