"""Activations as polynomials: fits weighted by measured density, composites.

A fit is a Chebyshev series of u = x / bound on [-1, 1] by least squares; nine tenths of the weight follow the
histogram that calibration saw, one tenth is uniform, so that the interval's rare ends stay bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crenel import ckks
from crenel.errors import ParameterError
from crenel.nn import functions
from crenel.nn.ops import Reals, Series
from crenel.nn.plan import series_depth

POINTS = 4001  # of the grid; 127 oscillations have 30 points each
UNIFORM_SHARE = 0.1
MAX_DEGREE = 127
DEGREES = (3, 7, 15, 31, 63, 127)  # the highest for each number of levels


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of values in equal bins over [-reach, reach]."""

    reach: float
    counts: Reals

    @classmethod
    def of(cls, values: Reals, bins: int = 128) -> Histogram:
        """Of values whose largest absolute one sets the reach (1 where all are zero)."""
        reach = float(np.abs(values).max()) or 1.0
        return cls(reach, np.histogram(values, bins, (-reach, reach))[0].astype(np.float64))

    def density(self, x: Reals) -> Reals:
        """At points, summing to 1 over them; 0 beyond the reach."""
        bins = len(self.counts)
        within = np.abs(x) <= self.reach
        place = np.minimum(
            ((np.where(within, x, 0.0) / self.reach + 1.0) * (0.5 * bins)).astype(int), bins - 1
        )
        found = np.where(within, self.counts[place], 0.0)
        total = found.sum()
        return np.asarray(found / total if total else found)


@dataclass(frozen=True)
class Quality:
    """How well a polynomial stands for a function."""

    rms: float
    """Weighted by the density that was measured."""
    worst: float
    """On the whole interval."""


def fit(function: str, bound: float, degree: int, histogram: Histogram) -> Series:
    """The weighted least-squares series of a function of `functions` on [-bound, bound].

    Raises ParameterError for a degree outside 1 to 127 and a bound that is not positive and finite.
    """
    if not 1 <= degree <= MAX_DEGREE:
        raise ParameterError(f"degree {degree}, expected 1 to {MAX_DEGREE}", {"degree": degree})
    _positive(bound)
    u = np.linspace(-1.0, 1.0, POINTS)
    weight = (1.0 - UNIFORM_SHARE) * histogram.density(u * bound) + UNIFORM_SHARE / POINTS
    root = np.sqrt(weight)
    basis = np.polynomial.chebyshev.chebvander(u, degree)
    found = np.linalg.lstsq(
        basis * root[:, None], functions.function(function)(u * bound) * root, rcond=None
    )[0]
    return Series(function, bound, (np.asarray(found, dtype=np.float64),), gated=False)


def interpolated(function: str, bound: float, degree: int) -> Series:
    """The series that agrees with the function in the degree + 1 Chebyshev nodes of [-bound, bound]: no
    density enters.

    Raises as `fit`.
    """
    if not 1 <= degree <= MAX_DEGREE:
        raise ParameterError(f"degree {degree}, expected 1 to {MAX_DEGREE}", {"degree": degree})
    _positive(bound)
    exact = functions.function(function)
    found = ckks.chebyshev_fit(lambda u: float(exact(np.asarray(u * bound))), degree)
    return Series(function, bound, (found,), gated=False)


def minimax(bound: float, degrees: str = "15,15,15") -> Series:
    """ReLU as x (1 + sign(x)) / 2, the sign a composite of minimax polynomials.

    Parameters
    ----------
    degrees : of the sign's factors; crenel.workloads.sorting has the stored ones

    Raises ParameterError for degrees that are not stored.
    """
    from crenel.workloads.sorting.comparator import comparator

    _positive(bound)
    factors = [factor.chebyshev for factor in comparator(degrees).factors]
    last = factors[-1] / 2.0
    last[0] += 0.5
    return Series("relu", bound, (*factors[:-1], last), gated=True)


def quality(series: Series, histogram: Histogram) -> Quality:
    """Errors of a series for the function it stands for."""
    x = np.linspace(-series.bound, series.bound, POINTS)
    error = np.abs(series(x) - functions.function(series.function)(x))
    return Quality(float(np.sqrt(np.sum(histogram.density(x) * error**2))), float(error.max()))


def levels(series: Series) -> int:
    """Levels that a series consumes under encryption; one of degree 2 is a square: one."""
    if not series.gated and len(series.factors) == 1 and len(series.factors[0]) <= 3:
        return 1
    return series_depth(series)


def _positive(bound: float) -> None:
    if not (math.isfinite(bound) and bound > 0):
        raise ParameterError(f"bound {bound}, expected a positive number", {"bound": str(bound)})
