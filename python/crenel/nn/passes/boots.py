"""Bootstraps to no higher level than is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from crenel.nn.plan import Boot, Decision, Plan, Refresh


@dataclass(frozen=True)
class Boots:
    """%9 = refresh(%1) in 4096 slots to level 15; %10 = transform(%9) level 12
    ->  %9 = refresh(%1) in 4096 slots to level 12

    Placement knows levels at which bootstraps get cheaper; what ends lower still has fewer limbs behind it,
    and needs no levels given up. All of a kind end where the one ends that is read at the highest level.
    """

    def __call__(self, plan: Plan) -> Plan:
        """The same with lower targets."""
        kinds = {step.out: step.boot for step in plan.steps if isinstance(step, Refresh)}
        if not kinds:
            return plan
        read = dict.fromkeys(kinds, 1)
        for step in plan.steps:
            for k in step.inputs:
                if k in read:
                    read[k] = max(read[k], step.level)
        target = {boot: max(read[k] for k in kinds if kinds[k] == boot) for boot in kinds.values()}
        values = list(plan.values)
        for k, boot in kinds.items():
            values[k] = replace(values[k], level=target[boot])
        steps = tuple(
            replace(step, boot=replace(step.boot, target=target[step.boot]))
            if isinstance(step, Refresh) else step
            for step in plan.steps
        )  # fmt: skip
        after = (step.boot for step in steps if isinstance(step, Refresh))
        decision = Decision(
            "bootstraps", _counted(after), _counted(kinds.values()), "no reader needs a higher level"
        )
        found = replace(plan, values=tuple(values), steps=steps, decisions=(*plan.decisions, decision))
        return found.verify("boots")


def _counted(boots: Iterable[Boot]) -> str:
    """Kinds in words, and how often each is taken."""
    found = Counter(f"{boot} to level {boot.target}" for boot in boots)
    return "; ".join(f"{count} times {said}" if count > 1 else said for said, count in sorted(found.items()))
