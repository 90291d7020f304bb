"""Levels of programs that need bootstraps: where they stand is the cheapest choice of all."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from crenel.errors import UnsupportedError
from crenel.nn.linear import SlotTransform
from crenel.nn.passes.boots import Boots
from crenel.nn.passes.dag import Node
from crenel.nn.passes.place import Placement, place_graph
from crenel.nn.passes.priced import output_level
from crenel.nn.passes.prices import AbstractPrices
from crenel.nn.passes.structure import Bootstrap, Cut, Op
from crenel.nn.plan import (
    Boot,
    Contract,
    Decision,
    Evaluate,
    Multiply,
    Plan,
    Quadratic,
    Refresh,
    Step,
    Value,
    depth,
)  # fmt: skip


@dataclass(frozen=True)
class Refreshes:
    """%2 = evaluate(%1)  ->  %9 = refresh(%1); %2 = evaluate(%9)

    A bootstrap may stand behind every step but the last, once for all that read the value, and where values
    over their bounds are within [-1, 1], as bootstraps want them: not behind squares with a shift or a
    constant, whose values reach 2.6, nor behind squares of such. That is for inputs whose values stay within
    the margin of the samples'. Nor behind factors of products whose bound gave way, nor behind exponentials,
    most of which are far below their bound.
    """

    prices: AbstractPrices
    lean: bool = False
    """As `Boots` has it."""

    def __call__(self, plan: Plan, transforms: Mapping[int, SlotTransform]) -> Plan:
        """transforms: matrices, by the number of the value that a step makes.

        Raises UnsupportedError, as `place_graph`, where no choice of bootstraps has a way through the levels.
        """
        params = self.prices.params
        output, chain = output_level(params), self.prices.chain()
        nodes: list[Node] = []
        read = {0: "input"}  # what a value is called where it is read
        beyond = _factors(plan)  # values that may leave [-1, 1]
        kinds: dict[int, Boot] = {}
        cuts: dict[str, int] = {}  # the values that bootstraps by these names refresh
        for step in plan.steps:
            ciphertexts = plan.values[step.out].layout.ciphertexts
            needed = depth(step)
            if needed > chain.top:
                raise UnsupportedError(
                    f"{plan.values[step.out].origin} consumes {needed} levels, the parameters have "
                    f"{chain.top}",
                    {"needed": needed, "available": chain.top, "origin": plan.values[step.out].origin},
                )
            prices = [0.0] * needed + [
                self.prices.of(step, transforms.get(step.out), ciphertexts, level)
                for level in range(needed, chain.top + 1)
            ]
            nodes.append(
                Node(Op(_name(step.out), needed, tuple(prices)), tuple(read[k] for k in step.inputs))
            )
            read[step.out] = _name(step.out)
            if step.out in beyond or not _within(step, beyond):
                beyond.add(step.out)
            elif step.out != plan.output:
                read[step.out] = _cut(step.out)
                cuts[_cut(step.out)] = step.out
                layout = plan.values[step.out].layout
                price, kinds[step.out] = self.prices.refresh(layout.slots, layout.ciphertexts)
                cut = Cut(_cut(step.out), (Bootstrap("real", price, output),))
                nodes.append(Node(cut, (_name(step.out),)))
        return self._placed(plan, place_graph(nodes, chain), cuts, kinds)

    def _placed(
        self, plan: Plan, placement: Placement, cuts: Mapping[str, int], kinds: Mapping[int, Boot]
    ) -> Plan:
        boots = {cuts[step.name]: step for step in placement.bootstraps}
        levels = placement.levels
        values = [replace(plan.values[0], level=placement.entry["input"]), *plan.values[1:]]
        renamed: dict[int, int] = {}
        steps: list[Step] = []
        decisions = list(plan.decisions)
        for step in plan.steps:
            before, after = levels[_name(step.out)]
            inputs = tuple(renamed.get(k, k) for k in step.inputs)
            steps.append(replace(step, inputs=inputs, level=before))  # type: ignore[arg-type]
            values[step.out] = replace(values[step.out], level=after)
            boot = boots.get(step.out)
            if boot is None:
                continue
            made = values[step.out]
            renamed[step.out] = len(values)
            values.append(Value(made.layout, made.bound, boot.level_out, made.origin))
            steps.append(Refresh(renamed[step.out], (step.out,), boot.level_in, kinds[step.out]))
        decisions.append(
            Decision(
                "placement",
                f"{len(boots)} bootstraps, at {', '.join(plan.values[value].origin for value in boots)}",
                placement.why(),
                f"price {placement.price:.6g}",
            )
        )
        placed = replace(plan, values=tuple(values), steps=tuple(steps), decisions=tuple(decisions))
        return Boots(self.prices, self.lean)(placed.verify("refreshes"))


def _factors(plan: Plan) -> set[int]:
    """Operands of products whose bound gave way, and exponentials."""
    found = {s.inputs[s.op.tuned] for s in plan.steps if isinstance(s, (Multiply, Contract))}
    found |= {s.out for s in plan.steps if isinstance(s, Evaluate) and s.series.function == "exp"}
    return found


def _within(step: Step, beyond: Set[int]) -> bool:
    """Is the result over its bound within [-1, 1], for inputs like the samples? A square is where its operand
    is and has neither a shift nor a constant; the bound of every other result comes from its own values."""
    if not isinstance(step, Quadratic):
        return True
    return step.inputs[0] not in beyond and not step.coefficients[:2].any()


def _name(value: int) -> str:
    return f"%{value}"


def _cut(value: int) -> str:
    return f"boot {value}"
