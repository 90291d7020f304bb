"""What an array is without its operations: data, shape, layout, and what padding holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from crenel._crenel import Ciphertext, ErrorModel, Evaluator, Operand
from crenel.ckks.arrays.layout import Layout, N, Numbers, Packing
from crenel.ckks.arrays.vector import Vector
from crenel.ckks.recorder import Recorded, Recorder
from crenel.errors import StateError

P = TypeVar("P", bound="Packed")


def _vectors(data: Ciphertext | Vector) -> int | None:
    """How many; None for bounds and records, which hold of any number."""
    if isinstance(data, Ciphertext):
        return data.batch
    return data.ciphertext.batch if isinstance(data, Operand) else None


def bound_alike(a: P, b: P) -> tuple[P, P]:
    """Both with an evaluator where one has it: ``ev(a) + b`` is ``ev(a) + ev(b)``."""
    if isinstance(a._data, Ciphertext) and isinstance(b._data, (Operand, Recorded)):
        return a.bound_to(b._data.evaluator), b
    if isinstance(b._data, Ciphertext) and isinstance(a._data, (Operand, Recorded)):
        return a, b.bound_to(a._data.evaluator)
    return a, b


class Packed:
    """Data in a layout. Operations are Array's; some are declared here for the modules that use them."""

    __slots__ = ("_data", "_layout", "_pad", "_shape", "_transposed")

    def __init__(
        self,
        data: Ciphertext | Vector,
        shape: tuple[int, ...],
        layout: Layout,
        transposed: bool = False,
        pad: complex | None = 0.0,
    ) -> None:
        """`data` in this layout (of the transpose if `transposed`); padding is `pad`, None for anything.

        Raises StateError for other slots or another number of vectors than the layout has.
        """
        vectors = _vectors(data)
        if data.slots != layout.slots or (vectors is not None and vectors != layout.batch):
            raise StateError(
                f"{data} of {vectors} vectors for an array of {layout.batch} vectors of {layout.slots} slots",
                {
                    "slots": data.slots,
                    "expected": layout.slots,
                    "vectors": layout.batch if vectors is None else vectors,
                    "expected_vectors": layout.batch,
                },
            )
        self._data, self._shape, self._layout = data, shape, layout
        self._transposed = transposed and len(shape) > 0
        self._pad = pad if layout.padded else 0.0

    # -- facts

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers, as NumPy's."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Axes: 0, 1 or 2."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Numbers."""
        return self._layout.rows * self._layout.columns

    @property
    def dtype(self) -> np.dtype[np.float64] | np.dtype[np.complex128]:
        """float64 where every number is known to be real, else complex128."""
        return np.dtype(np.float64) if self._data.real else np.dtype(np.complex128)

    @property
    def level(self) -> int:
        """Of the ciphertext: levels that can still be consumed."""
        return self._data.level

    @property
    def layout(self) -> Layout:
        """Of the matrix of one or two axes as packed: of the transpose for 'columns' and 'features'."""
        return self._layout

    # -- for the modules beside this one

    def _like(self: P, data: Ciphertext | Vector, *, pad: complex | Literal["same"] | None = "same") -> P:
        return type(self)(
            data, self._shape, self._layout, self._transposed,
            self._pad if isinstance(pad, str) else pad,
        )  # fmt: skip

    def _vector(self) -> Vector:
        if isinstance(self._data, Ciphertext):
            raise StateError(
                "an array that is bound to no evaluator computes nothing: ev(array) is one that does",
                {"expected": "an evaluator"},
            )
        return self._data

    def _packed(self, numbers: NDArray[N], fill: float = 0.0) -> NDArray[N]:
        """Numbers of this shape in slots."""
        matrix = numbers.reshape((1, -1) if self.ndim < 2 else self._shape)
        return self._layout.place(matrix.T if self._transposed else matrix, fill)

    def _cleaned(self: P, pad: complex = 0.0) -> P:
        """Padding is `pad`. Level l -> l, and one lower where it is unknown."""
        if self._pad == pad or not self._layout.padded:
            return self
        mask = self._layout.mask()
        if self._pad is None:
            return self._like(self._vector() * mask, pad=0.0)._cleaned(pad)
        step = complex(pad - self._pad)
        change = (1.0 - mask) * (step.real if step.imag == 0.0 else step)
        return self._like(self._vector() + change, pad=pad)

    def _tamed(self: P, most: float, to: float = 0.0, within: tuple[float, float] | None = None) -> P:
        """Padding that is known is small, or in an interval: products must not blow it up."""
        if self._pad is None:
            return self
        p = complex(self._pad)
        low, high = within or (-most, most)
        fine = p.imag == 0.0 and low <= p.real <= high
        return self if fine else self._cleaned(to)

    if TYPE_CHECKING:

        @property
        def T(self: P) -> P:
            """The transpose."""
            ...

        @property
        def packing(self) -> Packing:
            """How the numbers lie."""
            ...

        def bound_to(self: P, evaluator: Evaluator | Recorder | ErrorModel) -> P:
            """With the evaluator that computes."""
            ...

        def sum(self: P, axis: int | None = None) -> P:
            """Of all numbers, or along an axis."""
            ...

        def __mul__(self: P, other: P | Numbers | float) -> P: ...
