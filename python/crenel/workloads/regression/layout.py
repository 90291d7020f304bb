"""Which slot holds which number: rows of a block down, features across, pairs of them as complex numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError

MIN_COLUMNS = 4  # fewer save nothing: a row of the block is a rotation either way


def power_of_two(count: int) -> int:
    """The smallest that is not less."""
    return 1 << max(0, count - 1).bit_length()


@dataclass(frozen=True)
class Layout:
    """Slot (r, j) = r * columns + j of vector c holds feature `width` (c columns + j) of row r of a block.

    With width 2 its imaginary part is the next feature. Feature 0 is the intercept's, a column of ones. The
    state, weights by column, is the same in all rows: a vector of `columns` slots.
    """

    features: int
    """Columns of the table, the intercept not counted."""
    batch: int
    """Rows of the table in a block."""
    width: int
    """Features in a slot: 2, or 1 in the real packing of the paper."""
    rows: int
    """Rows of slots, a power of two; those beyond `batch` are zero."""
    columns: int
    """Columns of slots, a power of two."""
    ciphertexts: int
    """Vectors in a block, as one batch."""

    @classmethod
    def fitting(cls, slots: int, features: int, batch: int, width: int) -> Layout:
        """As few vectors as `slots` slots allow.

        Raises ParameterError for counts below 1 and for more rows than fit.
        """
        for name, value in (("features", features), ("batch", batch)):
            if value < 1:
                raise ParameterError(f"{name} must be at least 1, got {value}", {name: value})
        rows, most = power_of_two(batch), slots // MIN_COLUMNS
        if rows > most:
            raise ParameterError(
                f"batch {batch}: a block has at most {most} rows with these parameters ({slots} slots, "
                f"{MIN_COLUMNS} columns at least)",
                {"batch": batch, "max_batch": most, "slots": slots},
            )
        places = -(-(features + 1) // width)
        columns = min(max(power_of_two(places), MIN_COLUMNS), slots // rows)
        return cls(features, batch, width, rows, columns, -(-places // columns))

    @property
    def slots(self) -> int:
        """Of a vector of a block."""
        return self.rows * self.columns

    @property
    def paired(self) -> bool:
        """Two features to a slot?"""
        return self.width == 2

    def block(self, rows: NDArray[np.float64]) -> NDArray[np.complex128]:
        """Rows with a leading one as vectors: shape (ciphertexts, slots), real where the packing is."""
        ones = np.ones((len(rows), 1))
        places = self._places(np.concatenate([ones, rows], axis=1), self.rows)
        return places.reshape(self.ciphertexts, self.slots)

    def labels(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels in all columns of their rows, zero in rows that the block does not have: shape (slots,)."""
        padded = np.zeros(self.rows)
        padded[: len(labels)] = labels
        return np.repeat(padded, self.columns)

    def state(self, weights: NDArray[np.float64]) -> NDArray[np.complex128]:
        """Weights, the intercept first, as the state's vectors: shape (ciphertexts, columns)."""
        return self._places(np.asarray(weights, dtype=np.float64)[None, :], 1)[:, 0, :]

    def weights(self, state: NDArray[np.complex128] | NDArray[np.float64]) -> NDArray[np.float64]:
        """What `state` made of them, of vectors with any number of equal rows, which are averaged."""
        rows = state.reshape(self.ciphertexts, -1, self.columns).mean(axis=1).reshape(-1)
        numbers = np.empty((len(rows), self.width))
        numbers[:, 0] = rows.real
        if self.paired:
            numbers[:, 1] = rows.imag
        return numbers.reshape(-1)[: self.features + 1]

    def first_column(self, vector: NDArray[np.complex128] | NDArray[np.float64]) -> NDArray[np.float64]:
        """A number for each row of the table: real parts of the first column, shape (batch,)."""
        return np.ascontiguousarray(vector.reshape(self.rows, self.columns)[: self.batch, 0].real)

    def _places(self, numbers: NDArray[np.float64], rows: int) -> NDArray[np.complex128]:
        """Numbers by row and feature as slots by vector, row and column, padded with zeros."""
        padded = np.zeros((rows, self.ciphertexts * self.columns * self.width))
        padded[: len(numbers), : numbers.shape[1]] = numbers
        pairs = padded.reshape(rows, -1, self.width)
        places = pairs[..., 0] + (1j * pairs[..., 1] if self.paired else 0j)
        shaped = places.reshape(rows, self.ciphertexts, self.columns).swapaxes(0, 1)
        return shaped.astype(np.complex128, copy=False)
