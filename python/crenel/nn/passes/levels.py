"""Levels of programs that need no bootstrap."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crenel.errors import UnsupportedError
from crenel.nn.plan import Plan, depth


@dataclass(frozen=True)
class Levels:
    """From the result, which has level 0, backwards: every step as low as its readers allow, because a lower
    level costs less time, smaller keys and smaller plaintexts."""

    available: int
    """Highest level at which a client encrypts."""

    def __call__(self, plan: Plan) -> Plan:
        """Raises UnsupportedError where the steps consume more levels than there are: ``fields["needed"]``,
        ``["available"]``, and the ``["origin"]`` of the first step that finds none left."""
        levels = [0] * len(plan.values)
        steps = []
        for step in reversed(plan.steps):
            begins = levels[step.out] + depth(step)
            steps.append(replace(step, level=begins))
            for k in step.inputs:
                levels[k] = max(levels[k], begins)
        steps.reverse()
        if levels[0] > self.available:
            spent = levels[0] - self.available
            late = next(s for s in steps if levels[s.out] < spent)
            raise UnsupportedError(
                f"the program needs {levels[0]} levels and the parameters have {self.available}: "
                f"none is left in {plan.values[late.out].origin}. Parameters with more levels, a lower "
                "degree, or squares in the place of fitted activations would fit",
                {
                    "needed": levels[0], "available": self.available, "origin": plan.values[late.out].origin,
                },
            )  # fmt: skip
        values = tuple(replace(value, level=level) for value, level in zip(plan.values, levels, strict=True))
        return replace(plan, values=values, steps=tuple(steps)).verify("levels")
