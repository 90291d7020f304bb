"""The polynomial in the sigmoid's place: s(x) near 1 / (1 + e^x), odd but for its constant, of degree 3."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crenel.errors import ParameterError

POINTS = 20001  # of the fit


@dataclass(frozen=True)
class Sigmoid:
    """s(x) = 1/2 + linear x + cubic x^3, with linear < 0 < cubic.

    The gradient of the logistic loss at weights v is -sum_i s(z_i v) z_i over examples z_i = y_i (1, x_i).
    Raises ParameterError for other signs.
    """

    linear: float
    cubic: float
    interval: float
    """It was made for |x| up to this."""

    def __post_init__(self) -> None:
        good = math.isfinite(self.linear) and math.isfinite(self.cubic) and self.linear < 0 < self.cubic
        if not (good and 0 < self.interval < math.inf):
            raise ParameterError(
                f"1/2 + {self.linear:g} x + {self.cubic:g} x^3 on [-{self.interval:g}, {self.interval:g}]: "
                "expected a negative linear and a positive cubic coefficient and an interval",
                {"linear": self.linear, "cubic": self.cubic, "interval": self.interval},
            )

    @property
    def limit(self) -> float:
        """Beyond this |x| the polynomial is on the wrong side of 1/2 and drives x away for good."""
        return math.sqrt(-self.linear / self.cubic)

    @property
    def mu(self) -> float:
        """With u = mu x the polynomial is u (u^2 + b) + 1/2: one product less."""
        return float(self.cubic ** (1 / 3))

    @property
    def b(self) -> float:
        """See mu."""
        return self.linear / self.mu

    @property
    def error(self) -> float:
        """Largest distance from 1 / (1 + e^x) on the interval."""
        x = np.linspace(-self.interval, self.interval, POINTS)
        return float(np.abs(self(x) - 1 / (1 + np.exp(x))).max())

    def __call__(self, x: ArrayLike) -> NDArray[np.float64]:
        """s(x)."""
        at = np.asarray(x, dtype=np.float64)
        return 0.5 + at * (self.linear + self.cubic * at * at)


HELR = Sigmoid(-0.0843, 0.0002, 16.0)
"""As published (HHCP19), for [-16, 16]."""


def least_squares(interval: float) -> Sigmoid:
    """The least-squares fit on [-interval, interval].

    Short intervals follow the sigmoid better and end sooner: what leaves them diverges. Raises ParameterError
    for intervals that are not finite or below 1.
    """
    if not 1 <= interval < math.inf:
        raise ParameterError(
            f"an interval of {interval:g}, expected at least 1 and finite", {"interval": interval}
        )
    x = np.linspace(-interval, interval, POINTS)
    t = x / interval  # powers of numbers up to 1 are well conditioned
    (linear, cubic), *_ = np.linalg.lstsq(np.stack([t, t**3], axis=1), 1 / (1 + np.exp(x)) - 0.5, rcond=None)
    return Sigmoid(float(linear) / interval, float(cubic) / interval**3, float(interval))
