"""Encrypted arrays: a flat array on the device with a shape and the type that it decrypts to."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeAlias, TypeVar, cast, overload

import numpy as np

from crenel import _crenel
from crenel.arguments import refuse_masked
from crenel.errors import ParameterError, StateError
from crenel.pickling import refuse
from crenel.tfhe.kinds import PLURAL, Kind, is_encrypted
from crenel.tfhe.place import Place
from crenel.tfhe.types import IntegerType

if TYPE_CHECKING:
    import numpy.typing as npt

    # What may stand beside an encrypted array: ints, and arrays of integers or bools.
    Clear: TypeAlias = (
        int | np.integer | np.bool_ | npt.NDArray[np.integer] | npt.NDArray[np.bool_] | Sequence[int]
    )

    # What an encrypted array decrypts to.
    Element: TypeAlias = np.integer | np.bool_ | np.object_

Shape: TypeAlias = tuple[int, ...]
# What picks elements of an array, alone or in a tuple.
Index: TypeAlias = "int | slice | None | npt.NDArray[np.integer] | npt.NDArray[np.bool_] | tuple[object, ...]"
Data = TypeVar("Data", _crenel.TfheCiphertext, _crenel.TfheIntegers)
A = TypeVar("A", bound="_Array")  # type: ignore[type-arg]
I = TypeVar("I", bound="Integers")  # noqa: E741

_OPERATORS = {
    "eq": ("==", "equal"),
    "ne": ("!=", "not_equal"),
    "lt": ("<", "less"),
    "le": ("<=", "less_equal"),
    "gt": (">", "greater"),
    "ge": (">=", "greater_equal"),
    "add": ("+", "add"),
    "sub": ("-", "sub"),
    "mul": ("*", "mul"),
    "floordiv": ("//", "div"),
    "mod": ("%", "rem"),
    "matmul": ("@", "dot"),
    "and": ("&", "and_"),
    "or": ("|", "or_"),
    "xor": ("^", "xor"),
    "lshift": ("<<", "shift_left"),
    "rshift": (">>", "shift_right"),
}


class _Array(Generic[Data]):
    """An encrypted array in C order. Immutable, without operators: an evaluator binds it for those."""

    __slots__ = ("_context", "_data", "_dtype", "_shape")
    _context: Place
    _data: Data
    _dtype: np.dtype
    _shape: Shape
    __array_ufunc__: ClassVar[Any] = None  # NumPy leaves operators to us instead of looping
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # == compares elements

    def __init__(self, context: Place, data: Data, shape: Shape, dtype: np.dtype) -> None:
        self._context = context
        self._data = data
        self._shape = shape
        self._dtype = dtype

    @property
    def _encrypted_kind(self) -> Kind:
        raise NotImplementedError

    @property
    def kind(self) -> Kind:
        """'bit', 'message' or 'integer': which operations take it. Files keep it."""
        return self._encrypted_kind

    def _like(self: A, data: Data, shape: Shape) -> A:
        return type(self)(self._context, data, shape, self._dtype)

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

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"the truth of encrypted {PLURAL[self.kind]} is not known without the secret key: compute on "
            "both cases and choose with ev.select(condition, a, b), or decrypt"
        )

    def __contains__(self, item: object) -> NoReturn:
        raise TypeError(
            "'in' would have to know encrypted elements: ev.equal(a, item) gives encrypted bits, ev.sum of "
            "which counts them"
        )

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise TypeError(f"NumPy cannot read {self!r}: client.decrypt gives an array, ev(a) operators")

    def __iter__(self: A) -> Iterator[A]:
        """The elements along the first axis, copied one by one."""
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of an encrypted array without axes")
        return self._shape[0]

    def __getitem__(self: A, key: Index) -> A:
        """Elements as NumPy picks them, copied: ints, ranges, ..., None, arrays of ints or bools, and tuples.

        Where messages share masks (packing): an int or a range of step 1 along the first axis, that begins
        with a mask.

        Raises IndexError outside the array and for other keys, TypeError for an encrypted key or a bool,
        ParameterError where nothing is picked, and for masked places of a key.
        """
        if not self._shape:
            raise IndexError("an encrypted array without axes has no elements to pick")
        keys = key if isinstance(key, tuple) else (key,)
        for part in keys:
            if is_encrypted(part):
                raise TypeError(
                    "an encrypted key picks nothing without the secret key: ev.take(table, index) looks "
                    "up a public table, ev.select chooses between two arrays"
                )
            if isinstance(part, (bool, np.bool_, str, float)):
                # True would be 1 by Python's rules, and a new axis by NumPy's
                raise TypeError(f"an encrypted array takes ints, ranges, arrays, got {type(part).__name__}")
            if isinstance(part, (int, np.integer)) and not -(1 << 63) <= part < 1 << 63:
                # NumPy's words for these are of other errors
                raise IndexError(f"an index beyond 64 bits of an encrypted array of shape {self._shape}")
            refuse_masked(part, "the index")
        if self._context.params.slots != 1:
            return self._packed_part(key)
        index = np.arange(self.size, dtype=np.uint64).reshape(self._shape)[cast("Any", key)]
        if index.size == 0:
            raise ParameterError(
                f"ranges have at least one element, got {key} of shape {self._shape}",
                {"key": str(key), "shape": list(self._shape)},
            )
        flat = np.ascontiguousarray(index).reshape(-1)
        first = int(flat[0])
        if np.array_equal(flat, np.arange(first, first + flat.size, dtype=np.uint64)):
            return self._like(self._data.slice(first, flat.size), index.shape)
        return self._like(self._data.take(flat), index.shape)

    def _packed_part(self: A, key: object) -> A:
        row: Shape = self._shape[1:]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1 or stop <= start:
                raise ParameterError(
                    f"with packing, ranges have step 1 and at least one element, got {key} of length "
                    f"{len(self)}",
                    {"key": str(key), "length": len(self)},
                )
            return self._part(start, stop - start, (stop - start, *row))
        if not hasattr(type(key), "__index__"):
            raise TypeError(
                "with packing, an encrypted array takes an int or a range along its first axis, got "
                f"{type(key).__name__}; a[i][j] picks along two, tfhe.concatenate joins what was picked"
            )
        index = operator.index(key)  # type: ignore[arg-type]
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of an encrypted array of length {len(self)}")
        return self._part(index % len(self), 1, row)

    def _part(self: A, start: int, count: int, shape: Shape) -> A:
        step = math.prod(self._shape[1:])
        return self._like(self._data.slice(start * step, count * step), shape)

    def reshape(self: A, *shape: int | Sequence[int]) -> A:
        """The same elements with other extents; one of them may be -1. Raises ParameterError."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        try:
            found = np.empty(self._shape, dtype=np.uint8).reshape(wanted).shape  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ParameterError(
                f"cannot reshape an encrypted array of {self.size} elements to {wanted}",
                {"size": self.size, "shape": str(wanted)},
            ) from None
        return self._like(self._data, found)

    @property
    def T(self: A) -> A:  # noqa: N802
        """The array with its axes in reverse order: a copy, or itself with fewer than two axes."""
        places = np.arange(self.size, dtype=np.uint64).reshape(self._shape).T
        return self.reshape(-1)[places.reshape(-1)].reshape(places.shape) if self.ndim > 1 else self

    def ravel(self: A) -> A:
        """The elements along one axis."""
        return self.reshape(-1)

    def to_bytes(self) -> bytes:
        """A complete safetensors file. Context.ciphertext_from_bytes and integers_from_bytes read it."""
        return self._data.to_bytes(list(self._shape), self._type_name)

    def __reduce__(self) -> NoReturn:
        refuse(self, "send to_bytes(), and read it with the loaders of a context")

    @property
    def _type_name(self) -> str:
        return self._dtype.name

    def _facts(self) -> str:
        return f"{self._type_name} {self._shape}"


def _refused(name: str, symbol: str, method: str, reflected: bool) -> object:
    def refused(self: _Array, other: object) -> NoReturn:  # type: ignore[type-arg]
        call = f"ev.{method}({'b, a' if reflected else 'a, b'})"
        bound = f"b {symbol} ev(a)" if reflected else f"ev(a) {symbol} b"
        raise TypeError(
            f"'{symbol}' of an encrypted array needs the evaluator: call {call}, or bind it, {bound}"
        )

    refused.__name__ = f"__{'r' if reflected else ''}{name}__"
    refused.__doc__ = "TypeError that says what to call: only arrays bound by ev(a) have operators."
    return refused


for _name, (_symbol, _method) in _OPERATORS.items():
    setattr(_Array, f"__{_name}__", _refused(_name, _symbol, _method, False))
    if _symbol[0] not in "=!" and _symbol not in ("<", "<=", ">", ">="):
        setattr(_Array, f"__r{_name}__", _refused(_name, _symbol, _method, True))


class Ciphertext(_Array[_crenel.TfheCiphertext]):
    """An encrypted array of bits (dtype bool) or of small messages (dtype of integers). Immutable.

    `ev(a)` has operators; comparison operators, `bool()` and `in` of the array itself raise TypeError.
    """

    __slots__ = ()

    @property
    def _encrypted_kind(self) -> Kind:
        return "bit" if self._dtype == np.bool_ else "message"

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


class Integers(_Array[_crenel.TfheIntegers]):
    """An encrypted array of integers in radix form, two bits a block. Immutable.

    `ev(a)` has operators; comparison operators, `bool()` and `in` of the array itself raise TypeError.
    """

    __slots__ = ()

    def __init__(self, context: Place, data: _crenel.TfheIntegers, shape: Shape) -> None:
        super().__init__(context, data, shape, IntegerType(data.bits, data.signed).dtype)

    def _like(self: I, data: _crenel.TfheIntegers, shape: Shape) -> I:
        return type(self)(self._context, data, shape)

    @property
    def _encrypted_kind(self) -> Kind:
        return "integer"

    @property
    def _type_name(self) -> str:
        return self.type.name

    @property
    def type(self) -> IntegerType:
        """Width and sign. `dtype` is the type of NumPy that it decrypts to."""
        return IntegerType(self._data.bits, self._data.signed)

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


EncryptedArray: TypeAlias = Ciphertext | Integers
E = TypeVar("E", Ciphertext, Integers)


@overload
def concatenate(arrays: Iterable[Ciphertext]) -> Ciphertext: ...
@overload
def concatenate(arrays: Iterable[Integers]) -> Integers: ...
def concatenate(arrays: Iterable[Ciphertext] | Iterable[Integers]) -> Ciphertext | Integers:
    """One array from several of a kind, along the first axis.

    Raises ParameterError for no arrays and, where messages share masks (packing), when an array but the last
    ends within a mask; TypeError for anything but encrypted arrays with an axis; StateError where kinds,
    types or the other axes differ.
    """
    if is_encrypted(arrays):
        raise TypeError("expected a list of encrypted arrays, got one array; it is whole already")
    parts: list[Ciphertext | Integers] = list(arrays)
    if not parts:
        raise ParameterError("concatenation of no arrays", {"arrays": 0})
    first = parts[0]
    for other in parts:
        if not is_encrypted(other) or not other.shape:
            raise TypeError(f"expected encrypted arrays with an axis, got {other!r}")
        same = (
            other.kind == first.kind
            and other._type_name == first._type_name
            and other.shape[1:] == first.shape[1:]
        )
        if not same:
            raise StateError(
                f"cannot concatenate {first!r} and {other!r}", {"found": repr(other), "expected": repr(first)}
            )
    shape = (sum(a.shape[0] for a in parts), *first.shape[1:])
    if isinstance(first, Integers):
        blocks = _crenel.tfhe_concatenate([a._data for a in parts if isinstance(a, Integers)])
        return Integers(first.context, blocks, shape)
    data = _crenel.tfhe_concatenate([a._data for a in parts if isinstance(a, Ciphertext)])
    return Ciphertext(first.context, data, shape, first.dtype)
