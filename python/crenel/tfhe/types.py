"""Types of encrypted integers: 2 to 256 bits, signed or not, and their values as NumPy arrays."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from crenel.errors import ParameterError

if TYPE_CHECKING:
    import numpy.typing as npt

_WORD = 64  # bits


@dataclass(frozen=True)
class IntegerType:
    """A type of encrypted integers.

    Parameters
    ----------
    bits : width, an even number from 2 to 256
    signed : two's complement

    Raises ParameterError for other widths and signs.
    """

    bits: int
    signed: bool = False

    def __post_init__(self) -> None:
        known = hasattr(type(self.bits), "__index__") and isinstance(self.signed, (bool, np.bool_))
        if not (known and 2 <= self.bits <= 256 and self.bits % 2 == 0):
            raise ParameterError(
                f"integers of {self.bits!r} bits, signed {self.signed!r}: expected an even number from 2 to "
                "256, and a bool",
                {"bits": str(self.bits), "signed": str(self.signed), "expected": "2, 4, ..., 256"},
            )
        object.__setattr__(self, "bits", operator.index(self.bits))  # 1 << bits overflows NumPy's ints
        object.__setattr__(self, "signed", bool(self.signed))

    @property
    def name(self) -> str:
        """'uint8', 'int128', ..."""
        return f"{'int' if self.signed else 'uint'}{self.bits}"

    @property
    def dtype(self) -> np.dtype[np.integer] | np.dtype[np.object_]:
        """What arrays of it decrypt to: the smallest type of NumPy that holds it, object above 64 bits."""
        if self.bits > _WORD:
            return np.dtype(object)
        size = next(n for n in (8, 16, 32, 64) if n >= self.bits)
        return np.dtype(f"{'int' if self.signed else 'uint'}{size}")

    @property
    def low(self) -> int:
        """The smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The largest value."""
        return (1 << (self.bits - 1 if self.signed else self.bits)) - 1

    @property
    def words(self) -> int:
        """Words of 64 bits that a value takes."""
        return -(-self.bits // _WORD)

    def __str__(self) -> str:
        return self.name


# What says a type: one itself, its name ('uint8', 'int20', 'uint256') or a type of NumPy.
TypeLike: TypeAlias = "IntegerType | str | type[np.integer] | np.dtype[np.integer]"


def integer_type(operation: str, dtype: TypeLike | npt.DTypeLike) -> IntegerType:
    """The type that is meant; ParameterError for anything that is none of integers."""
    if isinstance(dtype, IntegerType):
        return dtype
    if isinstance(dtype, str) and (found := re.fullmatch(r"(u?)int([0-9]{1,4})", dtype)):
        return IntegerType(int(found[2]), not found[1])
    try:
        known = np.dtype(dtype)
    except TypeError:
        known = None
    if known is None or known.kind not in "iu":
        raise ParameterError(
            f"{operation}: dtype must be of integers of 2 to 256 bits, 'uint8' or 'int128' say, "
            f"got {known if known is not None else dtype!r}",
            {"dtype": str(dtype)},
        )
    return IntegerType(8 * known.itemsize, known.kind == "i")


def are_integers(values: np.ndarray) -> bool:
    """Is it an array of integers, of NumPy's or of Python's?"""
    if values.dtype != object:
        return values.dtype.kind in "iu"
    return all(
        hasattr(type(v), "__index__") and not isinstance(v, (bool, np.bool_)) for v in values.reshape(-1)
    )


def to_words(values: np.ndarray, kind: IntegerType) -> np.ndarray:
    """Integers modulo 2^bits as words for the core, [value][word] in one row, sign extended."""
    flat = values.reshape(-1)
    if kind.bits in (8, 16, 32, 64) and flat.dtype != object:
        wide = np.int64 if kind.signed else np.uint64
        return np.ascontiguousarray(flat.astype(kind.dtype).astype(wide)).view(np.uint64)
    size = 8 * kind.words
    top, modulus = 1 << (kind.bits - 1), 1 << kind.bits

    def encoded(value: object) -> bytes:
        number = operator.index(value) % modulus  # type: ignore[arg-type]
        if kind.signed and number >= top:
            number -= modulus
        return number.to_bytes(size, "little", signed=kind.signed)

    return np.frombuffer(b"".join(map(encoded, flat.tolist())), dtype="<u8").astype(np.uint64)


def from_words(words: np.ndarray, kind: IntegerType) -> np.ndarray:
    """The values of such words, as an array of kind.dtype with one axis."""
    if kind.bits <= _WORD:
        return (words.view(np.int64) if kind.signed else words).astype(kind.dtype)
    data = np.ascontiguousarray(words, dtype="<u8").tobytes()
    size = 8 * kind.words
    values = np.empty(len(data) // size, dtype=object)
    values[:] = [
        int.from_bytes(data[i : i + size], "little", signed=kind.signed) for i in range(0, len(data), size)
    ]
    return values


def outside(values: np.ndarray, kind: IntegerType) -> int | None:
    """Where the first value stands that the type does not hold."""
    flat = values.reshape(-1)
    if flat.dtype == kind.dtype and kind.bits == 8 * flat.dtype.itemsize:
        return None
    if flat.dtype == object:
        wrong = [i for i, v in enumerate(flat) if not kind.low <= operator.index(v) <= kind.high]
        return wrong[0] if wrong else None
    info = np.iinfo(flat.dtype)
    low, high = max(kind.low, int(info.min)), min(kind.high, int(info.max))
    found = np.flatnonzero((flat < low) | (flat > high))
    return int(found[0]) if found.size else None
