"""A function that is not a polynomial, by a Chebyshev series on an interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from crenel._crenel import Ciphertext, Evaluator, polynomial_depth
from crenel.errors import ParameterError
from crenel.operand import Operand

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_POINTS = 2048  # at which the error of a fit is measured, at least
_POINTS_PER_DEGREE = 16


@dataclass(frozen=True, eq=False, repr=False)
class ChebyshevFit:
    """A Chebyshev series on an interval, to be called on ciphertexts. See `Evaluator.chebyshev`.

    Attributes
    ----------
    coefficients : of T_0, T_1, ..., as Evaluator.polynomial(..., basis="chebyshev") takes them
    interval : where the series was fitted; outside, it grows without bound
    error : largest distance from the function on the interval, measured on a dense grid; the errors of
        encryption come on top
    """

    coefficients: np.ndarray
    interval: tuple[float, float]
    error: float
    evaluator: Evaluator

    def __repr__(self) -> str:
        a, b = self.interval
        return f"<ckks.ChebyshevFit of degree {self.degree} on [{a:g}, {b:g}], error {self.error:.3g}>"

    @property
    def degree(self) -> int:
        """Degree of the series, without trailing zeros."""
        used = self.coefficients.nonzero()[0]
        return int(used[-1]) if used.size else 0

    @property
    def depth(self) -> int:
        """Levels that a call consumes: one more where the interval is not [-1, 1]."""
        mapped = self.degree > 0 and self.interval != (-1.0, 1.0)
        return polynomial_depth(self.degree) + int(mapped)

    @overload
    def __call__(self, x: Ciphertext) -> Ciphertext: ...
    @overload
    def __call__(self, x: Operand) -> Operand: ...
    def __call__(self, x: Ciphertext | Operand) -> Ciphertext | Operand:
        """The series of every slot. Level l -> l - depth, scale -> canonical.

        Raises StateError naming both levels when there are too few.
        """
        if isinstance(x, Operand):
            return x.polynomial(self.coefficients, "chebyshev", self.interval)
        return self.evaluator.polynomial(x, self.coefficients, "chebyshev", self.interval)

    def clear(self, x: npt.ArrayLike) -> np.ndarray:
        """The series of real numbers in the clear."""
        return _series(self.coefficients, self.interval, x)


def fit(evaluator: Evaluator, f: Callable[[float], float], a: float, b: float, degree: int) -> ChebyshevFit:
    """What `Evaluator.chebyshev` does."""
    import numpy as np

    coefficients = evaluator.chebyshev_fit(f, degree, (a, b))
    if not np.isfinite(coefficients).all():
        raise ParameterError(
            f"the function has values on [{a}, {b}] that are not finite", {"a": repr(a), "b": repr(b)}
        )
    # The extrema of a Chebyshev polynomial of high degree: both ends, and dense near them, where the
    # error of an interpolation oscillates fastest.
    count = max(_POINTS, _POINTS_PER_DEGREE * (degree + 1))
    grid = np.clip(0.5 * (a + b) - 0.5 * (b - a) * np.cos(np.pi * np.arange(count + 1) / count), a, b)
    values = np.array([float(f(float(x))) for x in grid])
    if not np.isfinite(values).all():
        x = float(grid[~np.isfinite(values)][0])
        raise ParameterError(f"the function at {x!r} is {f(x)}, expected a finite number", {"x": repr(x)})
    error = float(np.abs(_series(coefficients, (a, b), grid) - values).max())
    return ChebyshevFit(coefficients, (a, b), error, evaluator)


def _series(coefficients: np.ndarray, interval: tuple[float, float], x: npt.ArrayLike) -> np.ndarray:
    import numpy as np

    a, b = interval
    t = (2 * np.asarray(x, np.float64) - a - b) / (b - a)
    return np.polynomial.chebyshev.chebval(t, coefficients)
