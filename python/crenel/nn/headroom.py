"""Do values fit what ciphertexts hold?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crenel.nn.plan import Evaluate, Plan, Refresh

HEADROOM = 2.0**8  # of a slot, in bounds: what the last levels of every parameter set hold
CENTRED = 1.001  # of a slot in front of a bootstrap


def first_beyond(plan: Plan, largest: Mapping[int, float]) -> tuple[int, float] | None:
    """The first value that overflows, or leads to an overflow on the way to the next, and what it or the
    way to it reaches, in bounds; None: there is none.

    largest : absolute value of any slot, also those without an element, in bounds, by the values' numbers.
        One slot that overflows spoils all: errors of coefficients are in every slot
    """
    for step in plan.steps:
        operand = step.inputs[0]
        if isinstance(step, Refresh) and not largest[operand] <= CENTRED:
            return operand, largest[operand]
        reach = largest[step.out]
        if isinstance(step, Evaluate):  # T_d(v), the largest that is computed on the way
            degree = len(step.series.factors[0]) - 1
            given = largest[operand] * plan.values[operand].bound / step.series.bound
            with np.errstate(over="ignore"):
                reach = max(reach, float(np.cosh(degree * np.arccosh(max(given, 1.0)))))
        if not reach <= HEADROOM:
            return step.out, reach
    return None
