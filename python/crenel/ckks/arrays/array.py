"""Array: numbers with a shape, encrypted, that compute as NumPy's do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from crenel._crenel import Ciphertext, Client, Context, ErrorBound, ErrorModel, Evaluator, Operand, PublicKey
from crenel.arguments import instance, items, real, refuse_masked, text
from crenel.ckks.arrays import archive, moves, products, sums
from crenel.ckks.arrays.layout import PACKINGS, Numbers, Packing, check_slots, layout_of
from crenel.ckks.arrays.packed import Packed
from crenel.ckks.arrays.vector import Vector
from crenel.ckks.recorder import Recorded, Recorder
from crenel.errors import ParameterError, StateError

Scalar = int | float | complex


def numbers_of(values: ArrayLike, name: str = "values") -> Numbers:
    """float64 or complex128. Raises ParameterError for what is no numbers, and for masked places."""
    refuse_masked(values, f"the array of {name}")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ParameterError(
            f"{name} must be numbers with a shape, got rows of different lengths", {"dtype": "object"}
        ) from None
    if array.dtype.kind not in "biufc":
        # As numbers go: None would become a NaN, and text the number that it spells.
        foreign = array.dtype.kind != "O" or any(x is None or isinstance(x, (str, bytes)) for x in array.flat)
        try:
            if foreign:
                raise TypeError
            array = array.astype(np.float64)
        except OverflowError:
            raise ParameterError(
                f"{name} have an integer beyond the range of float64, expected numbers within",
                {"number": "beyond float64"},
            ) from None
        except (TypeError, ValueError):
            raise ParameterError(
                f"{name} must be numbers, got an array of {array.dtype}", {"dtype": str(array.dtype)}
            ) from None
    return array.astype(np.complex128) if array.dtype.kind == "c" else array.astype(np.float64)


class Array(Packed):
    """Encrypted numbers with a shape of up to two axes, over one ciphertext of one or more vectors.

    Made by `encrypt`, and bound by ``ev(array)`` to the evaluator that computes; the client needs none. It
    computes as NumPy's arrays do: ``+ - * / **`` with arrays and numbers, clear and encrypted, by its rules
    of broadcasting; ``@``, ``dot``, ``sum``, ``mean``, ``T``, ranges, `polynomial`, `concatenate`. Levels and
    scales are those of `Operand`; what an operation costs beyond them is said with it.

    Shape, packing and what padding holds (a constant, which follows from the operations) are public: they
    travel with the ciphertext in `to_bytes`, and a server sees them.
    """

    __slots__ = ()
    _decrypted_by_client = True  # what Client.decrypt looks for (python/src/client.cpp)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    @property
    def packing(self) -> Packing:
        """'rows', 'columns', 'batch' or 'features': the one that names how the numbers lie."""
        one = self._layout.group == 1 and self._layout.batch > 1
        names: tuple[Packing, Packing] = ("features", "batch") if one else ("columns", "rows")
        return names[0] if self._transposed else names[1]

    @property
    def ciphertext(self) -> Ciphertext | ErrorBound | Recorded:
        """All vectors, for the explicit operations; of a bound, the bound."""
        return self._data if isinstance(self._data, Ciphertext) else self._data.ciphertext

    def describe(self) -> str:
        """Shape, packing, slots, level and padding in words."""
        padding = "none"
        if self._layout.padded:
            padding = "any numbers" if self._pad is None else f"{self._pad:g}"
        return (
            f"shape {self._shape}, packing {self.packing!r} ({PACKINGS[self.packing]}): {self._layout.batch} "
            f"vector(s) of {self._layout.slots} slots, "
            f"{self._layout.group} segment(s) of {self._layout.width}; level {self.level}; padding: {padding}"
        )

    def __repr__(self) -> str:
        return f"<ckks.Array of shape {self._shape}, packing {self.packing!r}, level {self.level}>"

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of an array without axes")
        return self._shape[0]

    def __bool__(self) -> NoReturn:
        raise TypeError("an encrypted array has no truth value: decrypt it first")

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("encrypted arrays are not compared: decrypt them first")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __iter__(self) -> NoReturn:
        """Rows cost a level and rotations each: TypeError says to ask for those that are needed."""
        raise TypeError(
            "an encrypted array is not iterated: a[i] is a row, at the cost of a level; decrypt(a) has all"
        )

    def __contains__(self, _: object) -> NoReturn:
        raise TypeError("an encrypted array does not tell what is in it: decrypt it first")

    if not TYPE_CHECKING:  # in a type, it would make an Array one of the things that NumPy takes as arrays

        def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> NoReturn:
            raise TypeError("an encrypted array is no NumPy array: decrypt it first")

    # -- binding, decryption, files

    def bound_to(self, evaluator: Evaluator | Recorder | ErrorModel) -> Array:
        """The array as one that `evaluator` computes with: ``ev(array)``."""
        data = self._data
        if isinstance(evaluator, ErrorModel):
            if isinstance(data, ErrorBound):
                return self
            raise StateError(
                "a ciphertext beside an error model: array.error_bound(model, max_abs=...) is its bound",
                {"found": type(data).__name__},
            )
        if not isinstance(data, (Ciphertext, Operand)):
            raise StateError(f"an evaluator beside {data}", {"found": type(data).__name__})
        return self._like(evaluator(data))

    @property
    def bound(self) -> float:
        """Largest absolute value that a number can have, as of `Ciphertext`; inf: unknown."""
        return self._data.bound

    def error_bound(self, model: ErrorModel, *, max_abs: float) -> Array:
        """An input like this one on an error model: numbers of at most `max_abs`, of this level, in this
        packing. Functions of arrays run on it as on ciphertexts."""
        slots = self._layout.slots
        return self._like(
            model.input(max_abs=max_abs, real=bool(self._data.real), level=self.level, slots=slots), pad=0.0
        )

    def decrypt(self, client: Client) -> Numbers:
        """The numbers, in the shape of the array. As exact as Client.decrypt, and for the same eyes.

        Raises StateError for what is no ciphertext, TypeError for what is no client."""
        instance(client, Client, "client")
        if not isinstance(self._data, (Ciphertext, Operand)):
            raise StateError(f"decryption of {self._data}", {"found": type(self._data).__name__})
        return self._unpacked(client.decrypt(self._data))

    def unpack(self, slots: Numbers) -> Numbers:
        """From numbers in slots, a row to a vector (as Share.values), those of the array, in its shape.

        Raises ParameterError for other than as many numbers as there are slots."""
        numbers = numbers_of(slots, "slots")
        batch, length = self._layout.batch, self._layout.slots
        if numbers.size != batch * length:
            raise ParameterError(
                f"slots of shape {numbers.shape}, expected {batch} row(s) of {length} numbers",
                {"shape": list(numbers.shape), "expected": [batch, length]},
            )
        return self._unpacked(numbers)

    def _unpacked(self, slots: Numbers) -> Numbers:
        matrix = self._layout.gather(slots)
        return np.ascontiguousarray(matrix.T if self._transposed else matrix).reshape(self._shape)

    def to_bytes(self) -> bytes:
        """Shape, packing and ciphertext; `Array.from_bytes` reads it. Raises StateError for what is no
        ciphertext: a bound, or what a recorder holds."""
        if not isinstance(self._data, (Ciphertext, Operand)):
            raise StateError(f"bytes of {self._data}", {"found": type(self._data).__name__})
        return archive.write(self._data.to_bytes(), self._shape, self._layout, self._transposed, self._pad)

    @staticmethod
    def from_bytes(
        context: Context, data: bytes | bytearray | memoryview, max_bytes: int | None = None
    ) -> Array:
        """An array from untrusted bytes.

        max_bytes : most memory that the ciphertext may take, as of Context.ciphertext_from_bytes

        Raises SerializationError saying what is wrong."""
        head, body = archive.read(data)
        layout, transposed = archive.layout(head)
        ciphertext = context.ciphertext_from_bytes(body, max_bytes=max_bytes)
        archive.expect(layout, ciphertext.slots, ciphertext.batch)
        return Array(ciphertext, archive.shape(head), layout, transposed, archive.pad(head))

    # -- arithmetic

    def __add__(self, other: Array | ArrayLike) -> Array:
        """Sum. Level: the lower one."""
        return self._combined(other, lambda a, b: a + b, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Array | ArrayLike) -> Array:
        """Difference. Level: the lower one."""
        return self._combined(other, lambda a, b: a - b, lambda a, b: a - b)

    def __rsub__(self, other: ArrayLike) -> Array:
        return -self + other

    # Packed declares products of two of one class; pyright does not know that there is no other.
    def __mul__(self, other: Array | ArrayLike) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Product. Level l -> l - 1; by one integer: l -> l."""
        return self._combined(other, lambda a, b: a * b, None)

    __rmul__ = __mul__

    def __truediv__(self, other: ArrayLike) -> Array:
        """Quotient by clear numbers. Level l -> l - 1."""
        if isinstance(other, (Array, Ciphertext, Operand)):
            return NotImplemented
        numbers = numbers_of(other)
        if np.any(numbers == 0):
            if numbers.ndim == 0:
                raise ZeroDivisionError("division of an encrypted array by zero")
            raise ParameterError("division of an encrypted array by zero", {"divisor": 0})
        return self * (1.0 / numbers if numbers.ndim else float_factor((1.0 / numbers).item()))

    def __pow__(self, exponent: int) -> Array:
        """Level l -> l - ceil(log2 exponent)."""
        tame = self._tamed(1.0)
        power = tame._vector() ** exponent  # refuses what is no positive integer
        return tame._like(power, pad=None if tame._pad is None else tame._pad**exponent)

    def __neg__(self) -> Array:
        return self._like(-self._vector(), pad=None if self._pad is None else -self._pad)

    def __pos__(self) -> Array:
        return self

    def square(self) -> Array:
        """Level l -> l - 1."""
        tame = self._tamed(1.0)
        return tame._like(tame._vector().square(), pad=products.times(tame._pad, tame._pad))

    def conjugate(self) -> Array:
        """Level l -> l."""
        pad = None if self._pad is None else complex(self._pad).conjugate()
        return self._like(self._vector().conjugate(), pad=pad)

    def at_level(self, level: int) -> Array:
        """The same numbers at a lower level."""
        return self._like(self._vector().at_level(level))

    def polynomial(
        self,
        coefficients: ArrayLike,
        basis: Literal["power", "chebyshev"] = "power",
        interval: tuple[float, float] = (-1.0, 1.0),
    ) -> Array:
        """Polynomial of every number, as Operand.polynomial. Padding is kept within the interval.

        Raises TypeError for a basis that is no string and an interval that is no two real numbers, and what
        Operand.polynomial does."""
        if text("basis", basis) != "power":
            interval = _ends(interval)
        low, high = (-1.0, 1.0) if basis == "power" else interval
        middle = 0.0 if low <= 0.0 <= high else (low + high) / 2
        tame = self._tamed(0.0, middle, (low, high))
        c = numbers_of(coefficients, "coefficients")
        result = tame._vector().polynomial(c, basis, interval)
        pad: complex | None = None
        if tame._pad is not None and np.isfinite(c).all():
            x = complex(tame._pad)
            if basis == "power":
                pad = complex(np.polynomial.polynomial.polyval(x, c))
            else:
                z = (2 * x - interval[0] - interval[1]) / (interval[1] - interval[0])
                pad = complex(np.polynomial.chebyshev.chebval(z, c))
        return tame._like(result, pad=pad)

    # -- sums, products of matrices, ranges

    def sum(self, axis: int | None = None) -> Array:
        """Sum of all numbers, or along an axis. Level l -> l, and one lower where padding is unknown.

        Needs the rotations of powers of two up to the slots (`ckks.needs` lists them). Raises
        TypeError for an axis that is neither an integer nor None, ParameterError for one that there is not.
        """
        return sums.total(self, axis, None)

    def mean(self, axis: int | None = None) -> Array:
        """Mean of all numbers, or along an axis. Level l -> l - 1. Raises as `sum`."""
        count = self.size if axis is None else self._shape[sums.checked_axis(self, axis)]
        return sums.total(self, axis, 1.0 / count)

    @property
    def T(self) -> Array:
        """The transpose: a change of name, free."""
        if self.ndim < 2:
            return self
        return Array(self._data, self._shape[::-1], self._layout, not self._transposed, self._pad)

    def __matmul__(self, other: Array | ArrayLike) -> Array:
        """As NumPy's, with clear vectors and matrices and encrypted vectors. Level l -> l - 1."""
        return products.matmul(self, other if isinstance(other, Array) else numbers_of(other))

    def __rmatmul__(self, other: ArrayLike) -> Array:
        """A clear vector or matrix times this. Level l -> l - 1."""
        numbers = numbers_of(other)
        if not self.ndim:
            return NotImplemented
        return products.matmul(self.T, numbers.T).T

    def dot(self, other: Array | ArrayLike) -> Array:
        """``self @ other``."""
        return self @ other

    def __getitem__(self, key: int | slice | tuple[int | slice, int | slice]) -> Array:
        """Numbers by index, ranges of any step. Level l -> l for whole vectors, else l - 1."""
        return moves.item(self, key)

    def repacked(self, packing: Packing) -> Array:
        """The same numbers in another packing. Level l -> l - 1, or as it is where nothing moves."""
        return moves.repacked(self, packing)

    def _combined(
        self,
        other: Array | ArrayLike,
        operation: Callable[[Vector, Vector | ArrayLike], Vector],
        pads: Callable[[complex, complex], complex] | None,
    ) -> Array:
        """`pads` is the operation on what padding holds; None says that it is a product."""
        if isinstance(other, (Ciphertext, Operand, ErrorBound)):
            return NotImplemented  # type: ignore[no-any-return]  # which the operators hand on
        if isinstance(other, Array):
            a, b = moves.aligned(self, other)
            if pads is None:
                a, b = a._tamed(1.0), b._tamed(1.0)
            return a._like(operation(a._vector(), b._vector()), pad=_pad(pads, a._pad, b._pad))
        numbers = numbers_of(other)
        if numbers.ndim == 0:
            number = integer_or_float(other, numbers)
            return self._like(operation(self._vector(), number), pad=_pad(pads, self._pad, number))
        shape = moves.common_shape(self._shape, numbers.shape)
        a = moves.broadcast(self, shape)
        packed = a._packed(np.broadcast_to(numbers, shape))
        return a._like(operation(a._vector(), packed), pad=_pad(pads, a._pad, 0.0))


def _pad(
    pads: Callable[[complex, complex], complex] | None, a: complex | None, b: complex | None
) -> complex | None:
    if pads is None:
        return products.times(a, b)
    return None if a is None or b is None else pads(a, b)


def _ends(interval: object) -> tuple[float, float]:
    """An interval's. Raises TypeError for what is no two real numbers."""
    ends = items("interval", cast(Sequence[object], interval))
    if len(ends) != 2:
        raise TypeError(f"interval: expected two real numbers, got {len(ends)}")
    return real("interval", ends[0]), real("interval", ends[1])


def float_factor(number: complex) -> Scalar:
    """A float where the imaginary part is zero."""
    z = complex(number)
    return z.real if z.imag == 0.0 else z


def integer_or_float(given: object, number: Numbers) -> Scalar:
    """An integer where the caller wrote one: its product consumes no level."""
    if np.asarray(given).dtype.kind in "biu":
        return int(cast(int, np.asarray(given)[()]))
    return float_factor(number.item())


def encrypt(
    key: Client | PublicKey | Recorder,
    values: ArrayLike,
    packing: Packing | None = None,
    *,
    level: int | None = None,
    slots: int | None = None,
    bound: float | None = None,
) -> Array:
    """Encrypt numbers as an Array of their shape.

    Parameters
    ----------
    key : the client, or a public key
    values : bool, int, float or complex numbers with up to two axes
    packing : 'rows' (default: row after row, as many to a vector as fit), 'columns' (column after column: for
        products with clear matrices), 'batch' (a row to a vector), 'features' (a column to a vector: products
        with clear matrices need no rotation)
    level : default the top normal level
    slots : of a vector at most; default N/2. What is longer takes several vectors
    bound : states, in the clear, that no absolute value exceeds it, as of Client.encrypt: operations whose
        results could exceed what their level holds are a StateError. Without it nothing is checked

    Raises ParameterError as Client.encrypt does.
    """
    if not isinstance(key, (Client, PublicKey, Recorder)):
        raise TypeError(
            f"expected the client or a public key, got {type(key).__name__}: "
            "ckks.encrypt(client, numbers), where client = context.keygen()"
        )
    numbers = numbers_of(values)
    layout, transposed = layout_of(numbers.shape, packing, check_slots(slots, key_slots(key)))
    matrix = numbers.reshape((1, -1) if numbers.ndim < 2 else numbers.shape)
    packed = layout.place(matrix.T if transposed else matrix)
    if isinstance(key, Recorder):
        data: Ciphertext | Recorded = key.input(level, layout.slots, not np.iscomplexobj(numbers))
    else:
        data = key.encrypt(packed, level=level, slots=layout.slots, bound=bound)
    return Array(data, numbers.shape, layout, transposed)


def key_slots(key: Client | PublicKey | Recorder) -> int:
    """N/2 of the parameters of a key."""
    return int(key.params.slots if isinstance(key, Recorder) else key.context.params.slots)


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays one after the other along an axis, as NumPy's. Level l -> l where whole vectors are joined, or
    vectors fit into the slots of one; else l -> l - 1."""
    return moves.concatenate(arrays, axis)
