"""Encrypted arrays in the form for storage, in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from crenel import _crenel
from crenel.pickling import refuse
from crenel.tfhe.arrays import Shape
from crenel.tfhe.kinds import PLURAL, Kind
from crenel.tfhe.place import Place
from crenel.tfhe.types import IntegerType

if TYPE_CHECKING:
    from crenel.tfhe.arrays import Element


class Compressed:
    """An encrypted array in few bytes, in host memory: what may be stored or sent. Immutable.

    Made by `Evaluator.compress`; `Evaluator.decompress` gives the array again.
    """

    __slots__ = ("_context", "_data", "_dtype", "_shape")

    def __init__(
        self, context: Place, data: _crenel.TfheCompressed, shape: Shape, dtype: np.dtype[Element]
    ) -> None:
        self._context = context
        self._data = data
        self._shape = shape
        self._dtype = dtype

    @property
    def context(self) -> Place:
        """The context."""
        return self._context

    @property
    def kind(self) -> Kind:
        """'bit', 'message' or 'integer': what `decompress` gives. Files keep it."""
        if self._data.integer_bits:
            return "integer"
        return "bit" if self._dtype == np.bool_ else "message"

    @property
    def shape(self) -> Shape:
        """The extents, as NumPy has them."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Element]:
        """What it decrypts to."""
        return self._dtype

    @property
    def blocks(self) -> int:
        """Messages that are stored, each of which takes a rotation to come back; integers have bits / 2."""
        return self._data.size

    @property
    def nbytes(self) -> int:
        """Bytes in host memory."""
        return self._data.nbytes

    @property
    def lists(self) -> bool:
        """In lists of up to N messages in a ciphertext of the ring? Otherwise each by itself."""
        return self._data.lists

    @property
    def secret_key_id(self) -> str:
        """The public name of the secret keys that decrypt it."""
        return self._data.secret_key_id

    def to_bytes(self) -> bytes:
        """A complete safetensors file. Context.compressed_from_bytes reads it."""
        return self._data.to_bytes(list(self._shape), self._type_name)

    @property
    def _type_name(self) -> str:
        if self._data.integer_bits:
            return IntegerType(self._data.integer_bits, self._data.signed).name
        return self._dtype.name

    def __reduce__(self) -> NoReturn:
        refuse(self, "send to_bytes(), and read it with Context.compressed_from_bytes")

    def __repr__(self) -> str:
        what = PLURAL[self.kind]
        return f"<tfhe.Compressed {self._type_name} {self._shape}, {what}, {self.nbytes} bytes>"
