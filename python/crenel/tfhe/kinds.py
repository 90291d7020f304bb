"""The kinds of encrypted arrays, and the one rule of which operation takes which.

===========  ==============================  =====================================================
kind         made by                         taken by
===========  ==============================  =====================================================
bit          bool arrays, comparisons,       gates, `mux`, `refresh`, `lut`, `pack`, comparisons, `select`,
             gates, tables of bools          `sum`, `to_messages`, `to_integers`; conditions are bits
message      integers with `bits` or         `lut`, `refresh`, `pack`, `floor`, `sign`, `decompose`,
             `plain_modulus`                 `add`, `sub`, `mul`, `neg`, `min`, `max`, comparisons,
                                             `select`, `sum`, `to_bits`, `to_integers`, `one_hot`, `histogram`
integer      integers without `bits`         `add`, `sub`, `mul`, `neg`, `min`, `max`, `bit_and`, ...,
             (class Integers)                shifts, comparisons, `select`, `sum`, `div`, `divmod`, ...
===========  ==============================  =====================================================

A dtype of bool says bit, any other of a Ciphertext message; files carry it. Two encrypted operands are of
one kind.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from crenel.arguments import refuse_masked
from crenel.errors import ParameterError
from crenel.tfhe.types import are_integers

if TYPE_CHECKING:
    from typing import Protocol

    class HasKind(Protocol):
        """What has a kind: encrypted arrays."""

        @property
        def kind(self) -> Kind:
            """'bit', 'message' or 'integer'."""
            ...


Kind: TypeAlias = Literal["bit", "message", "integer"]

PLURAL: dict[Kind, str] = {"bit": "bits", "message": "messages", "integer": "integers"}

# What to call instead, by the kind that is asked for and the kind found.
_INSTEAD: dict[tuple[Kind, Kind], str] = {
    ("bit", "message"): "compare messages (ev.equal, ev.less, ...), look up a table of True and False "
    "(ev.lut), or take ev.to_bits for 'not 0'",
    ("bit", "integer"): "compare integers (ev.equal, ev.less, ...); bit by bit they have ev.bit_and, "
    "bit_or, bit_xor and bit_not",
    ("message", "bit"): "ev.to_messages(bits) makes messages 0 and 1 of them, ev.sum counts them",
    ("message", "integer"): "integers have operations of their own: ev.add, ev.equal, ev.select, ...; what "
    "is to be looked up, encrypt with bits=",
    ("integer", "bit"): "bits have gates (ev.and_, ev.or_, ev.xor, ev.not_); ev.to_integers(bits) makes "
    "integers of them",
    ("integer", "message"): "ev.to_integers(messages) makes integers of them; functions of a message are "
    "tables (ev.lut)",
}


def is_encrypted(value: object) -> bool:
    """Is it an encrypted array of this package?"""
    return hasattr(type(value), "_encrypted_kind")


def expect_kind(operation: str, array: object, *accepted: Kind) -> None:
    """TypeError naming the kind found, the kinds accepted and what to call, unless it is one of them."""
    known = is_encrypted(array)
    if known and array.kind in accepted:  # type: ignore[attr-defined]
        return
    expected = " or ".join(PLURAL[k] for k in accepted)
    if not known:
        raise TypeError(
            f"{operation}: expected an encrypted array of {expected}, got {type(array).__name__}; "
            "client.encrypt makes one"
        )
    found: Kind = array.kind  # type: ignore[attr-defined]
    advice = next(_INSTEAD[wanted, found] for wanted in accepted if (wanted, found) in _INSTEAD)
    raise TypeError(f"{operation}: found encrypted {PLURAL[found]}, expected {expected}; {advice}")


def expect_one_kind(operation: str, first: HasKind, second: HasKind) -> None:
    """TypeError unless both are of one kind."""
    if first.kind == second.kind:
        return
    convert = "ev.to_integers" if "integer" in (first.kind, second.kind) else "ev.to_messages"
    raise TypeError(
        f"{operation}: found encrypted {PLURAL[first.kind]} and {PLURAL[second.kind]}, expected one kind; "
        f"{convert} converts"
    )


def as_array(operation: str, values: object) -> np.ndarray:
    """The values as an array; ParameterError for lists whose rows are of several lengths, and for masked
    places."""
    refuse_masked(values, f"{operation}: the array")
    try:
        return np.asarray(values)
    except ValueError:
        raise ParameterError(
            f"{operation}: expected an array, got a list whose rows are of several lengths",
            {"operation": operation, "type": type(values).__name__},
        ) from None


def clear_values(operation: str, value: object, kind: Kind) -> np.ndarray:
    """Public integers, or bools beside bits, as an array; TypeError for anything else."""
    expected = "bools" if kind == "bit" else "integers"
    if isinstance(value, (bool, np.bool_, np.ndarray, list, tuple)):
        array = as_array(operation, value)
        if isinstance(value, (list, tuple)) and array.dtype.kind in ("f", "O"):
            array = np.asarray(value, dtype=object)  # numbers that no type of NumPy holds together
    else:
        try:
            number = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(
                f"{operation}: expected encrypted {PLURAL[kind]} or public {expected}, "
                f"got {type(value).__name__}"
            ) from None
        array = np.array(number, dtype=object)  # of any size: what does not fit is refused later
    if array.size == 0:
        raise ParameterError(
            f"{operation}: expected at least one element, got an array of shape {array.shape}",
            {"shape": list(array.shape)},
        )
    number_kinds = "b" if kind == "bit" else "iu"
    one_int = array.dtype == object and array.ndim == 0 and hasattr(type(array[()]), "__index__")
    if kind != "bit" and array.dtype == object and are_integers(array):
        return array
    if array.dtype.kind not in number_kinds and not (one_int and array[()] in (0, 1)):
        raise TypeError(
            f"{operation}: expected encrypted {PLURAL[kind]} or public {expected}, got an array of "
            f"{array.dtype}"
        )
    return array.astype(bool) if kind == "bit" else array
