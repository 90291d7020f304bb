"""Encrypted arrays: a flat array on the device with a shape and the type that it decrypts to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError, StateError
from crenel.pickling import refuse
from crenel.tfhe.place import Place

Shape = tuple[int, ...]
A = TypeVar("A", bound="_Array")


class _Array:
    """An encrypted array in C order. Immutable."""

    __slots__ = ("_context", "_data", "_dtype", "_shape")

    def __init__(self, context: Place, data: Any, shape: Shape, dtype: np.dtype) -> None:
        self._context = context
        self._data = data
        self._shape = shape
        self._dtype = dtype

    @property
    def context(self) -> Place:
        """The context."""
        return self._context

    @property
    def shape(self) -> Shape:
        """The extents, as NumPy has them."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._data.size

    @property
    def dtype(self) -> np.dtype:
        """What it decrypts to."""
        return self._dtype

    @property
    def secret_key_id(self) -> str:
        """The public name of the secret keys that decrypt it, or 'none': known messages, which any do."""
        return self._data.secret_key_id

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self._data.nbytes

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of an encrypted array without axes")
        return self._shape[0]

    def __getitem__(self: A, key: int | slice) -> A:
        """Elements or a range along the first axis, copied.

        Raises IndexError outside the array, ParameterError for an empty range, for steps other than 1, and
        where messages share masks (packing) for a range that does not begin with a mask.
        """
        if not self._shape:
            raise IndexError("an encrypted array without axes has no elements to pick")
        row = self._shape[1:]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1 or stop <= start:
                raise ParameterError(
                    f"ranges have step 1 and at least one element, got {key} of length {len(self)}",
                    {"key": str(key), "length": len(self)},
                )
            return self._part(start, stop - start, (stop - start, *row))
        index = key.__index__()
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of an encrypted array of length {len(self)}")
        return self._part(index % len(self), 1, row)

    def _part(self: A, start: int, count: int, shape: Shape) -> A:
        step = math.prod(self._shape[1:])
        return type(self)(self._context, self._data.slice(start * step, count * step), shape, self._dtype)

    def reshape(self: A, *shape: int | Sequence[int]) -> A:
        """The same elements with other extents; one of them may be -1. Raises ParameterError."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        try:
            found = np.empty(self._shape, dtype=np.uint8).reshape(wanted).shape
        except (TypeError, ValueError):
            raise ParameterError(
                f"cannot reshape an encrypted array of {self.size} elements to {wanted}",
                {"size": self.size, "shape": str(wanted)},
            ) from None
        return type(self)(self._context, self._data, found, self._dtype)

    def to_bytes(self) -> bytes:
        """A complete safetensors file. Context.ciphertext_from_bytes and integers_from_bytes read it."""
        return self._data.to_bytes(list(self._shape), self._dtype.name)

    def __reduce__(self) -> Any:
        refuse(self, "send to_bytes(), and read it with the loaders of a context")

    def _facts(self) -> str:
        return f"{self._dtype.name} {self._shape}"


class Ciphertext(_Array):
    """An encrypted array of bits or of small messages. Immutable."""

    __slots__ = ()

    @property
    def plain_modulus(self) -> int:
        """Messages are residues modulo this number."""
        return self._data.plain_modulus

    @property
    def noise_variance(self) -> float:
        """Variance of the phases' errors by the noise model, in squared units of the modulus' integers.

        The largest of all elements. Of a loaded array it is what the file claims.
        """
        return self._data.noise_variance

    def __repr__(self) -> str:
        return (
            f"<tfhe.Ciphertext {self._facts()}, modulo {self.plain_modulus}, on {self._context.device.name}>"
        )


class Integers(_Array):
    """An encrypted array of integers in radix form, two bits a block. Immutable."""

    __slots__ = ()

    @property
    def bits(self) -> int:
        """Width of an integer."""
        return self._data.bits

    @property
    def signed(self) -> bool:
        """Two's complement."""
        return self._data.signed

    def __repr__(self) -> str:
        return f"<tfhe.Integers {self._facts()} on {self._context.device.name}>"


def concatenate(arrays: Sequence[A]) -> A:
    """One array from several of a kind, along the first axis.

    Raises ParameterError for no arrays and, where messages share masks (packing), when an array but the last
    ends within a mask; StateError where kinds, types or the other axes differ.
    """
    if not arrays:
        raise ParameterError("concatenation of no arrays", {"arrays": 0})
    first = arrays[0]
    for other in arrays:
        if not isinstance(other, _Array) or not other.shape:
            raise TypeError(f"expected encrypted arrays with an axis, got {other!r}")
        same = (
            type(other) is type(first) and other.dtype == first.dtype and other.shape[1:] == first.shape[1:]
        )
        if not same:
            raise StateError(
                f"cannot concatenate {first!r} and {other!r}", {"found": repr(other), "expected": repr(first)}
            )
    if len(arrays) == 1:
        return first
    data = _crenel.tfhe_concatenate([a._data for a in arrays])
    shape = (sum(a.shape[0] for a in arrays), *first.shape[1:])
    return type(first)(first.context, data, shape, first.dtype)
