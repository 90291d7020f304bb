"""Functions on intervals that do not lie around 0, as Chebyshev series of u in [-1, 1].

x = middle + half u is made by the linear operation before, and costs no level. The fit is by least squares of
the error relative to a scale, on a grid that is dense at the interval's ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crenel.errors import UnsupportedError
from crenel.nn.ops import Reals, Series

DEGREES = (7, 15, 31, 63, 127, 255)
"""The highest for each number of levels."""
TOLERANCE = 2.0**-12
GRID = 2048
ROUNDS = 5  # of squares and sums that a softmax has at most
SLACK = 0.03  # by which sums that are bounded by mathematics may miss their bounds


@dataclass(frozen=True)
class Interval:
    """From least to largest."""

    least: float
    largest: float

    @property
    def middle(self) -> float:
        """What u = 0 stands for."""
        return 0.5 * (self.least + self.largest)

    @property
    def half(self) -> float:
        """What a step of 1 in u is."""
        return 0.5 * (self.largest - self.least)

    def __str__(self) -> str:
        """As ``[0.5, 4]``."""
        return f"[{self.least:.4g}, {self.largest:.4g}]"


def fitted(
    name: str,
    function: Callable[[Reals], Reals],
    interval: Interval,
    scale: Callable[[Reals], Reals],
    most: int = DEGREES[-1],
) -> Series | None:
    """The series of u of the least degree of `DEGREES`, up to `most`, whose error is everywhere below
    2^-12 times the scale; None where there is none."""
    u = np.cos(np.pi * (np.arange(GRID) + 0.5) / GRID)
    x = interval.middle + interval.half * u
    wanted, weight = function(x), 1.0 / scale(x)
    for degree in (d for d in DEGREES if d <= most):
        basis = np.polynomial.chebyshev.chebvander(u, degree) * weight[:, None]
        found = np.linalg.lstsq(basis, wanted * weight, rcond=None)[0]
        if np.abs(basis @ found - wanted * weight).max() <= TOLERANCE:
            return Series(name, 1.0, (np.asarray(found, dtype=np.float64),), gated=False)
    return None


def reciprocal(interval: Interval, most: int = DEGREES[-1]) -> Series | None:
    """1 / x, relative to itself; as `fitted`."""
    return fitted("reciprocal", lambda x: 1.0 / x, interval, lambda x: 1.0 / x, most)


def inverse_root(interval: Interval, origin: str) -> Series:
    """1 / sqrt(x), relative to itself. Raises UnsupportedError where no degree is enough."""
    found = fitted("inverse root", lambda x: 1.0 / np.sqrt(x), interval, lambda x: 1.0 / np.sqrt(x))
    if found is None:
        raise UnsupportedError(
            f"{origin}: variances from {interval.least:.3g} to {interval.largest:.3g}: no polynomial up to "
            f"degree {DEGREES[-1]} is their inverse root to 2^-12; a smaller margin, or samples of one size",
            {"origin": origin, "least": interval.least, "largest": interval.largest},
        )
    return found


def exponential(reach: float) -> Series | None:
    """exp(x) on [-reach, reach], to 2^-12 of 1; of x / reach. As `fitted`."""
    return fitted("exp", np.exp, Interval(-reach, reach), np.ones_like, most=127)


@dataclass(frozen=True, eq=False)
class SoftmaxFits:
    """exp(x / 2^rounds) over its sum, then `rounds` times squares over their sum."""

    rounds: int
    exponential: Series
    """Of x."""
    interval: Interval
    """Of the first sum."""
    inverse: Series
    again: Interval
    """Of sums of squares of shares, which sum to 1."""
    inverse_again: Series
    REASON: ClassVar[str] = "the fewest squares whose inverses have a relative error of 2^-12"

    def chosen(self) -> str:
        """In words."""
        squares = f" / {2**self.rounds}, {self.rounds} times squared," if self.rounds else ""
        return (
            f"exponential of degree {degree(self.exponential)} of scores within "
            f"{self.exponential.bound:.3g}{squares} and inverse of degree {degree(self.inverse)} on "
            f"{self.interval}"
        )

    def instead(self) -> str:
        """What was rejected."""
        return "fewer squares: inverses beyond degree 127" if self.rounds else "squares: none are needed"


def softmax_fits(reach: float, count: int, largest: Callable[[float], float], origin: str) -> SoftmaxFits:
    """For scores within [-reach, reach] of mean 0, `count` of them; largest(c): the largest sum of exp(c x).

    Raises UnsupportedError where five squares are too few.
    """
    again = Interval((1.0 - SLACK) / count, 1.0 + SLACK)
    inverse_again = reciprocal(again)
    top = 0.0
    for rounds in range(ROUNDS + 1):
        shrunk = 0.5**rounds
        top = largest(shrunk)
        interval = Interval(count * (1.0 - SLACK), max(top, count * (1.0 + SLACK)))
        powers, inverse = exponential(reach * shrunk), reciprocal(interval, most=127)
        if powers is not None and inverse is not None and inverse_again is not None:
            return SoftmaxFits(rounds, replace(powers, bound=reach), interval, inverse, again, inverse_again)
    raise UnsupportedError(
        f"{origin}: {count} scores within {reach:.3g}, sums of exponentials up to {top:.3g}: softmax takes "
        f"more than {ROUNDS} squares",
        {"origin": origin, "reach": reach, "count": count},
    )


def degree(series: Series) -> int:
    """Of a series of one factor."""
    return len(series.factors[0]) - 1
