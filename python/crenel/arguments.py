"""Arguments as they are expected, or a TypeError that names the argument, what it may be and what it is.

For functions that hand their arguments on: what the extension module says of a wrong one is in words of its
own functions. No value is in these messages: one may be a secret.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from numbers import Real
from typing import NoReturn, TypeVar

import numpy as np

from crenel.errors import ParameterError

T = TypeVar("T")


def wrong(name: str, expected: str, value: object) -> NoReturn:
    """Raises TypeError."""
    raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}")


def instance(value: object, kind: type[T], name: str = "") -> T:
    """An object of this class; no name where the class says enough.

    Raises
    ------
    TypeError : another
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name and f'{name}: '}expected {_public(kind)}, got {type(value).__name__}")
    return value


def _public(kind: type) -> str:
    """A class by the name that users have for it: the extension module's own are of no package."""
    for package in ("crenel", "crenel.ckks", "crenel.tfhe", "crenel.bridge"):
        names = vars(sys.modules[package]) if package in sys.modules else {}
        for name, found in list(names.items()):
            if found is kind and not name.startswith("_"):
                return f"{package}.{name}"
    return f"{kind.__module__}.{kind.__name__}"


def flag(name: str, value: object) -> bool:
    """True or False, of NumPy too; no other number.

    Raises
    ------
    TypeError : anything else
    """
    if not isinstance(value, (bool, np.bool_)):
        wrong(name, "True or False", value)
    return bool(value)


def whole(name: str, value: object) -> int:
    """An integer, of NumPy too; not True or False.

    Raises
    ------
    TypeError : anything else
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        wrong(name, "an integer", value)
    return int(value)


def positive(name: str, value: object) -> int:
    """An integer from 1 to 2^32 - 1.

    Raises
    ------
    TypeError : not an integer
    ParameterError : out of this range
    """
    return _of_32_bits(name, value, 1)


def natural(name: str, value: object) -> int:
    """An integer from 0 to 2^32 - 1.

    Raises
    ------
    TypeError : not an integer
    ParameterError : out of this range
    """
    return _of_32_bits(name, value, 0)


def _of_32_bits(name: str, value: object, least: int) -> int:
    found = whole(name, value)
    if not least <= found < 1 << 32:
        # A field holds 64 bits.
        shown = found if -(1 << 63) <= found < 1 << 63 else str(found)
        raise ParameterError(f"{name} is {found}, expected {least} to 2^32 - 1", {name: shown})
    return found


def real(name: str, value: object) -> float:
    """A real number, of NumPy too.

    Raises
    ------
    TypeError : anything else
    ParameterError : an integer beyond a float
    """
    if not isinstance(value, Real):
        wrong(name, "a real number", value)
    try:
        return float(value)
    except OverflowError:
        raise ParameterError(f"{name} is too large for a float", {"name": name}) from None


def most_bytes(value: object, name: str = "max_bytes") -> int | None:
    """A number of bytes as a limit, or None; its range is the loader's to check.

    Raises
    ------
    TypeError : anything else
    """
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        wrong(name, "an integer or None", value)
    return int(value)


def buffer(value: object, name: str = "data") -> bytes | bytearray | memoryview:
    """Anything that lends its bytes, as it is.

    Raises
    ------
    TypeError : anything else
    """
    if not isinstance(value, (bytes, bytearray, memoryview)):
        try:
            memoryview(value).release()  # type: ignore[arg-type]
        except TypeError:
            wrong(name, "bytes", value)
    return value  # type: ignore[return-value]


def text(name: str, value: object) -> str:
    """A string.

    Raises
    ------
    TypeError : anything else
    """
    return value if isinstance(value, str) else wrong(name, "a string", value)


def refuse_masked(values: object, name: str) -> None:
    """Nothing for arrays of which every place counts: what stands under a mask is no number, and NumPy's own
    conversions would bring it back.

    Raises
    ------
    ParameterError : a masked array with a masked place, or a list with such
    """
    if _masked(values):
        raise ParameterError(f"{name} has masked places, expected numbers in all of them", {"name": name})


def _masked(values: object, depth: int = 0) -> bool:
    if isinstance(values, np.ma.MaskedArray):
        return bool(np.ma.is_masked(values))
    nested = isinstance(values, (list, tuple)) and depth < 64  # the most axes that NumPy has
    return nested and any(_masked(value, depth + 1) for value in values)  # type: ignore[attr-defined]


def items(name: str, values: Iterable[T]) -> list[T]:
    """Several values, as a list.

    Raises
    ------
    TypeError : what does not hold several
    """
    try:
        return list(values)
    except TypeError:
        wrong(name, "several", values)
