"""Do values fit what ciphertexts hold?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from crenel.nn.interpret import scaled_factors
from crenel.nn.ops import Reals
from crenel.nn.plan import Evaluate, Plan, Refresh, Step

HEADROOM = 2.0**8  # of a slot, in bounds: what the last levels of every parameter set hold
CENTRED = 1.001  # of a slot in front of a bootstrap


class Beyond(NamedTuple):
    """A value that overflows, or leads to an overflow on the way to it."""

    value: int
    reach: float  # of it, or of what is computed on the way, in bounds
    limit: float  # of that


def beyond(plan: Plan, step: Step, largest: Mapping[int, float]) -> Beyond | None:
    """What overflows in a step; None: nothing does.

    largest : absolute values, in bounds, by the values' numbers
    """
    operand = step.inputs[0]
    if isinstance(step, Refresh) and not largest[operand] <= CENTRED:
        return Beyond(operand, largest[operand], CENTRED)
    reach = largest[step.out]
    if isinstance(step, Evaluate):
        given = largest[operand] * plan.values[operand].bound / step.series.bound
        reach = max(reach, on_the_way(scaled_factors(plan, step), given))
    return None if reach <= HEADROOM else Beyond(step.out, reach, HEADROOM)


def first_beyond(plan: Plan, largest: Mapping[int, float]) -> Beyond | None:
    """The first of all steps; None: all values fit.

    largest : absolute value of any slot, also those without an element, in bounds, by the values' numbers.
        One slot that overflows spoils all: errors of coefficients are in every slot
    """
    found = (beyond(plan, step, largest) for step in plan.steps)
    return next((one for one in found if one is not None), None)


def on_the_way(factors: Sequence[Reals], given: float) -> float:
    """The largest |T_i(x)| that is made where Chebyshev series are evaluated, one of the other, of arguments
    up to `given` and down to its negative; infinity where it is no number. A slot loses as many bits as it
    has.

    src/ckks/paterson_stockmeyer.h: the largest i is the power of two up to the degree, or 1. Quotients and
    sums are of levels that hold far more.
    """
    reach = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for series in factors:
            largest = 1 << max((len(series) - 1).bit_length() - 1, 0)
            at = max(1.0, float("inf") if np.isnan(given) else given)  # within [-1, 1] no T_i leaves it
            reach = max(reach, float(np.cosh(largest * np.arccosh(at))))
            given = float(np.abs(chebyshev.chebval(np.array([at, -at]), series)).max())
    return reach
