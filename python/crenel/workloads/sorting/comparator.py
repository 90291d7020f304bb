"""Comparators: odd polynomials one after the other whose result is close to the sign
(docs/theory/sign.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from math import hypot
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError

Reals = NDArray[np.float64]
Numbers = TypeVar("Numbers", Reals, NDArray[np.complex128])

SIGMAS = 5.0  # beyond which one of 2^20 errors lies
QUIET = 0.25  # its square / 6 is 2^-6.6, about the margin of the comparators' arguments
OWN = 4.0  # operations of a factor, whose errors add up


@dataclass(frozen=True)
class Factor:
    """One odd polynomial of a composite."""

    degree: int
    interval: float
    """It is close to 1 on [interval, 1]."""
    error: float
    """How close, before it is scaled for the next factor."""
    coefficients: tuple[float, ...]
    """Of T_1, T_3, ..., T_degree, scaled."""

    @property
    def depth(self) -> int:
        """Levels that its evaluation consumes."""
        return self.degree.bit_length()

    @property
    def chebyshev(self) -> Reals:
        """Coefficients of T_0 to T_degree: those of even ones are exactly zero, and cost nothing."""
        full = np.zeros(self.degree + 1)
        full[1::2] = self.coefficients
        return full

    @cached_property
    def slope(self) -> float:
        """The derivative at 0: by how much an imaginary error grows where numbers are about equal."""
        derivative = np.polynomial.chebyshev.chebder(self.chebyshev)
        return float(abs(np.polynomial.chebyshev.chebval(0.0, derivative)))

    def __call__(self, arguments: Numbers) -> Numbers:
        """The factor on numbers in the clear; beyond [-1, 1] they explode, to infinity at last."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.polynomial.chebyshev.chebval(arguments, self.chebyshev)
        return cast("Numbers", values)


@dataclass(frozen=True)
class Comparator:
    """A composite of factors that takes a difference in [-1, 1] to about its sign."""

    name: str
    """Degrees of the factors, as in ``"15,15,15,15"``."""
    factors: tuple[Factor, ...]
    margin: float
    """By how much an argument of any factor may be wrong before it leaves the factor's interval."""
    interval: float
    """Smallest difference whose sign is right to the error of the last factor."""
    exchange_error: float
    """Largest error of a compare-exchange, |d (1 - sign(d))| / 2 over all differences d."""
    real: frozenset[int] = frozenset()
    """Places of factors whose result's imaginary part is taken away."""

    @property
    def levels(self) -> int:
        """Levels that all factors consume."""
        return sum(factor.depth for factor in self.factors)

    def __call__(self, differences: Reals) -> Reals:
        """The composite on numbers in the clear."""
        result = differences
        for factor in self.factors:
            result = factor(result)
        return result

    def against(self, error: float) -> Comparator:
        """The same with `real` chosen for operations with imaginary errors of this root mean square.

        On arguments x + i y a polynomial p of degree n is p(x) - y^2 p''(x) / 2 in its real part, and near
        the ends of [-1, 1] p'' is up to n^4 / 3: n^2 times the largest y, SIGMAS times the error that slopes
        have made of the first, is kept below QUIET.
        """
        found, grown = set(), error
        for place, (factor, after) in enumerate(pairwise(self.factors)):
            grown = hypot(OWN * error, factor.slope * grown)
            if SIGMAS * grown * after.degree**2 > QUIET:
                found.add(place)
                grown = error
        return replace(self, real=frozenset(found))


@cache
def _table() -> dict[str, Comparator]:
    data = json.loads(Path(__file__).with_name("comparators.json").read_text(encoding="utf-8"))
    return {
        name: Comparator(
            name,
            tuple(
                Factor(f["degree"], f["interval"], f["error"], tuple(f["coefficients"]))
                for f in entry["factors"]
            ),
            data["margin"],
            entry["interval"],
            entry["exchange_error"],
        )
        for name, entry in data["sets"].items()
    }


def comparator_names() -> list[str]:
    """Names that `comparator` knows, by their levels."""
    return list(_table())


def comparator(name: str) -> Comparator:
    """A stored comparator by the degrees of its factors. Raises ParameterError with the known names."""
    key = name.replace(" ", "")
    if key not in _table():
        known = "; ".join(_table())
        raise ParameterError(f"comparator {name!r}, expected one of {known}", {"comparator": name})
    return _table()[key]
