"""Samples of a batch in neighbouring slots, where one leaves slots idle."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crenel.nn.plan import Contract, Decision, Multiply, Plan


@dataclass(frozen=True)
class Interleave:
    """%0 = input [3x32x32, 1 x 4096 slots]  ->  %0 = input [2 samples of 3x32x32, 1 x 4096 slots]

    As many as the widest value leaves room for. Every step then does for all of them what it does for one:
    with as many rotations, diagonals and products.
    """

    batch: int
    """Samples of a run at most."""

    def __call__(self, plan: Plan) -> Plan:
        """Itself where there is no room, and of sequences, whose products rotate slots by tokens."""
        images = self.room(plan)
        if self.batch == 1:
            return plan
        reason = f"the widest value takes {max(v.layout.slots for v in plan.values)} slots"
        chosen = f"{images} in neighbouring slots, {-(-self.batch // images)} rows"
        decision = Decision("samples", chosen, f"{self.batch} rows of one sample", reason)
        values = tuple(replace(v, layout=replace(v.layout, images=images)) for v in plan.values)
        return replace(plan, values=values, decisions=(*plan.decisions, decision))

    def room(self, plan: Plan) -> int:
        """How many samples fit."""
        layouts = [value.layout for value in plan.values]
        rotating = any(isinstance(step, (Contract, Multiply)) for step in plan.steps)
        if rotating or any(v.sequence or v.groups > 1 or v.ciphertexts > 1 for v in layouts):
            return 1
        room = layouts[0].capacity // max(v.slots for v in layouts)
        return min(room, 1 << (self.batch - 1).bit_length())
