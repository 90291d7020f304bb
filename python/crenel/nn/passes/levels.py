"""Levels of programs that need no bootstrap."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

from crenel import ckks
from crenel.errors import UnsupportedError
from crenel.nn.passes.priced import output_level
from crenel.nn.plan import Plan, depth


@dataclass(frozen=True)
class Levels:
    """From the result, which has level 0, backwards: every step as low as its readers allow, because a lower
    level costs less time, smaller keys and smaller plaintexts."""

    available: int
    """Highest level at which a client encrypts."""
    insecure: bool = False
    """Are other sets for tests too those that an error names?"""

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
                f"none is left in {plan.values[late.out].origin}. "
                f"{enough(levels[0], max(map(depth, plan.steps)), self.insecure)}; or a lower degree, "
                "or squares in the place of fitted activations",
                {
                    "needed": levels[0], "available": self.available, "origin": plan.values[late.out].origin,
                },
            )  # fmt: skip
        values = tuple(replace(value, level=level) for value, level in zip(plan.values, levels, strict=True))
        return replace(plan, values=values, steps=tuple(steps)).verify("levels")


def enough(levels: int, deepest: int, insecure: bool) -> str:
    """Which sets that come with Crenel have so many levels, or bootstraps and levels for the deepest step.

    insecure : those for tests, in place of those for real data
    """
    leveled, bootstrapped = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        sets = [(name, ckks.preset(name, allow_insecure=True)) for name in ckks.preset_names()]
    for name, params in sets:
        if params.insecure != insecure:
            continue
        if params.max_level > params.normal_top_level:
            bootstrapped += [name] if output_level(params) >= deepest else []
        elif params.normal_top_level >= levels:
            leveled.append(name)
    found = f"so many have {', '.join(leveled)}" if leveled else "no set has so many"
    if not bootstrapped:
        return f"Of sets that come with Crenel {found}, and none bootstraps to the {deepest} of one step"
    return (
        f"Of sets that come with Crenel {found}; bootstraps, to the {deepest} that one step takes, have "
        f"{', '.join(bootstrapped)}"
    )
