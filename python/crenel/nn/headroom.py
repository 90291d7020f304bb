"""Do values fit what ciphertexts hold?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

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
    if isinstance(step, Evaluate):  # T_d(v), the largest that is computed on the way
        degree = len(step.series.factors[0]) - 1
        given = largest[operand] * plan.values[operand].bound / step.series.bound
        with np.errstate(over="ignore"):
            reach = max(reach, float(np.cosh(degree * np.arccosh(max(given, 1.0)))))
    return None if reach <= HEADROOM else Beyond(step.out, reach, HEADROOM)


def first_beyond(plan: Plan, largest: Mapping[int, float]) -> Beyond | None:
    """The first of all steps; None: all values fit.

    largest : absolute value of any slot, also those without an element, in bounds, by the values' numbers.
        One slot that overflows spoils all: errors of coefficients are in every slot
    """
    found = (beyond(plan, step, largest) for step in plan.steps)
    return next((one for one in found if one is not None), None)
