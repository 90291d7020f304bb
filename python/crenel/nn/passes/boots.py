"""Kinds of bootstraps: few of them, and none to a higher level than is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crenel.nn.passes.prices import AbstractPrices
from crenel.nn.plan import Boot, Decision, Plan, Refresh

ALIKE = 1.05  # how much dearer bootstraps of one kind may be, all together: a kind has keys and plaintexts


@dataclass(frozen=True)
class Boots:
    """%9 = refresh(%1) in 4096 slots to level 15; %10 = transform(%9) level 12
    ->  %9 = refresh(%1) in 16384 slots, with others, to level 12

    A vector of few slots is one of many that repeats, so that one kind may serve all, but for vectors that
    share their bootstraps: each kind costs gibibytes of keys and plaintexts. What ends at a lower level has
    fewer limbs all the way.
    """

    prices: AbstractPrices
    lean: bool = False
    """One kind whatever it costs."""

    def __call__(self, plan: Plan) -> Plan:
        """The same with other kinds, and the levels at which they end."""
        refreshes = [step for step in plan.steps if isinstance(step, Refresh)]
        if not refreshes:
            return plan
        widest = Boot(max(step.boot.slots for step in refreshes))
        pair = replace(widest, pair=True)
        if self.lean and any(step.boot == pair for step in refreshes):
            widest = pair
        shared = {s.out: widest if s.boot.vectors == 1 else s.boot for s in refreshes}
        price = [
            sum(self._price(plan, s, boots[s.out]) for s in refreshes)
            for boots in ({s.out: s.boot for s in refreshes}, shared)
        ]
        alone = self.lean or price[1] <= ALIKE * price[0]
        kinds = {step.out: shared[step.out] if alone else step.boot for step in refreshes}
        read: dict[int, int] = {step.out: 1 for step in refreshes}
        for step in plan.steps:
            for k in step.inputs:
                if k in read:
                    read[k] = max(read[k], step.level)
        targets = {boot: max(read[k] for k in kinds if kinds[k] == boot) for boot in kinds.values()}
        values = list(plan.values)
        for k, boot in kinds.items():
            values[k] = replace(values[k], level=targets[boot])
        steps = tuple(
            replace(step, boot=replace(kinds[step.out], target=targets[kinds[step.out]]))
            if isinstance(step, Refresh) else step
            for step in plan.steps
        )  # fmt: skip
        made = sorted({f"{boot} to level {level}" for boot, level in targets.items()})
        before = sorted({str(step.boot) for step in refreshes})
        decision = Decision(
            "bootstraps", "; ".join(made), "; ".join(before),
            f"no reader needs a higher level; price {price[alone]:.6g}, not {price[0]:.6g}",
        )  # fmt: skip
        found = replace(plan, values=tuple(values), steps=steps, decisions=(*plan.decisions, decision))
        return found.verify("boots")

    def _price(self, plan: Plan, step: Refresh, boot: Boot) -> float:
        vectors = plan.values[step.out].layout.ciphertexts * self.prices.batch
        return self.prices.bootstrap(boot, boot.bootstraps(vectors))
