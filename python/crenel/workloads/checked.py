"""Arguments that decide a program's shape: whole numbers, NumPy's as well as Python's."""

from __future__ import annotations

import operator
import re
from typing import SupportsIndex, cast

from crenel.arguments import refuse_masked as refuse_masked
from crenel.errors import ParameterError

_WHOLE = re.compile(r"-?[0-9]{1,9}", re.ASCII)


def whole(name: str, value: object) -> int:
    """Python's int, whose methods NumPy's integers lack. Raises ParameterError for what is no integer."""
    try:
        return operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise ParameterError(f"{name} must be an integer, got {value!r}", {name: repr(value)}) from None


def seed_of(value: object) -> int:
    """A seed as NumPy takes it. Raises ParameterError for others."""
    seed = whole("seed", value)
    if seed < 0:
        raise ParameterError(f"seed must be at least 0, got {seed}", {"seed": seed})
    return seed


def positive(name: str, value: object) -> int:
    """A number of things. Raises ParameterError for others, and for fewer than one."""
    found = whole(name, value)
    if found < 1:
        raise ParameterError(f"{name} must be at least 1, got {found}", {name: found})
    return found


def number_in(text: str) -> int | None:
    """The integer that a text is, in ASCII digits, none where it is something else or has more than nine."""
    return int(text) if _WHOLE.fullmatch(text) else None
