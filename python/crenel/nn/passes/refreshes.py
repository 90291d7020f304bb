"""Levels of programs that need bootstraps: where they stand and of which kinds is the cheapest choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from crenel.errors import UnsupportedError
from crenel.nn.layout import Layout
from crenel.nn.linear import SlotTransform
from crenel.nn.passes.boots import Boots
from crenel.nn.passes.dag import Node
from crenel.nn.passes.kinds import Few
from crenel.nn.passes.place import Placement, place_graph
from crenel.nn.passes.priced import output_level
from crenel.nn.passes.prices import AbstractPrices
from crenel.nn.passes.structure import Bootstrap, Chain, Cut, Op
from crenel.nn.plan import (
    KINDS_ORIGIN,
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

KINDS = 6  # of bootstraps
WORTH = 0.005  # of a program's price: what a kind must save, for it takes gibibytes


@dataclass(frozen=True)
class Refreshes:
    """%2 = evaluate(%1)  ->  %9 = refresh(%1) in 4096 slots to level 9; %2 = evaluate(%9)

    A bootstrap may stand behind every step but the last, once for all that read the value, and where values
    over their bounds are within [-1, 1], as bootstraps want them: not behind squares with a shift or a
    constant, whose values reach 2.6, nor behind squares of such. That is for inputs whose values stay within
    the margin of the samples'. Nor behind factors of products whose bound gave way, nor behind exponentials,
    most of which are far below their bound.

    A bootstrap to a lower level costs less, and so does one of fewer slots; but each kind has plaintexts
    and a recording of its own, and one of other slots keys as well. A vector of few slots is one of many
    that repeats, so that what serves the widest serves all.
    """

    prices: AbstractPrices
    few: Few = Few(KINDS, WORTH)
    """How many kinds of bootstraps."""

    def __call__(self, plan: Plan, transforms: Mapping[int, SlotTransform]) -> Plan:
        """transforms: matrices, by the number of the value that a step makes.

        Raises UnsupportedError, as `place_graph`, where no choice of bootstraps has a way through the levels.
        """
        chain = self.prices.chain()
        kinds = self._kinds(plan)
        nodes: list[Node] = []
        read = {0: "input"}  # what a value is called where it is read
        for step in plan.steps:
            needed = depth(step)
            if needed > chain.top:
                raise UnsupportedError(
                    f"{plan.values[step.out].origin} consumes {needed} levels, the parameters have "
                    f"{chain.top}",
                    {"needed": needed, "available": chain.top, "origin": plan.values[step.out].origin},
                )
            ciphertexts = plan.values[step.out].layout.ciphertexts
            prices = [0.0] * needed + [
                self.prices.of(step, transforms.get(step.out), ciphertexts, level)
                for level in range(needed, chain.top + 1)
            ]
            nodes.append(
                Node(Op(_name(step.out), needed, tuple(prices)), tuple(read[k] for k in step.inputs))
            )
            read[step.out] = _name(step.out)
            if step.out in kinds:
                read[step.out] = _cut(step.out)
                layout = plan.values[step.out].layout
                cut = Cut(_cut(step.out), tuple(self._bootstraps(layout, set(kinds.values()))))
                nodes.append(Node(cut, (_name(step.out),)))
        placement = place_graph(nodes, chain, self.few)
        highest = self._to_highest(nodes, chain)
        return Boots()(self._placed(plan, placement, kinds, highest))

    def _to_highest(self, nodes: Sequence[Node], chain: Chain) -> str:
        """The price where all bootstraps end at the highest level, in words."""
        top = output_level(self.prices.params)
        fewer = [
            replace(node, element=replace(node.element, bootstraps=tuple(
                boot for boot in node.element.bootstraps if boot.output == top
            ))) if isinstance(node.element, Cut) else node
            for node in nodes
        ]  # fmt: skip
        try:
            return f"all to level {top}, price {place_graph(fewer, chain, self.few).price:.6g}"
        except UnsupportedError:
            return f"all to level {top}, which has no way through the levels"

    def _kinds(self, plan: Plan) -> dict[int, Boot]:
        """The cheapest kind by itself, to the highest level, of each value that may be bootstrapped."""
        beyond = _factors(plan)  # values that may leave [-1, 1]
        kinds: dict[int, Boot] = {}
        for step in plan.steps:
            if step.out in beyond or not _within(step, beyond):
                beyond.add(step.out)
            elif step.out != plan.output:
                layout = plan.values[step.out].layout
                kinds[step.out] = self.prices.refresh(layout.slots, layout.ciphertexts)[1]
        return kinds

    def _bootstraps(self, layout: Layout, kinds: Set[Boot]) -> Iterator[Bootstrap]:
        """Of a value: by each kind that it fits, to each level that has a price."""
        vectors = layout.ciphertexts * self.prices.batch
        for kind in sorted(kinds, key=_order):
            if kind.slots < layout.slots:
                continue
            count = kind.bootstraps(vectors)
            for level in self.prices.targets(kind, count):
                to = replace(kind, target=level)
                yield Bootstrap(_called(to), self.prices.bootstrap(to, count), level)

    def _placed(self, plan: Plan, placement: Placement, kinds: Mapping[int, Boot], highest: str) -> Plan:
        levels = range(output_level(self.prices.params) + 1)
        targeted = [replace(kind, target=level) for kind in set(kinds.values()) for level in levels]
        named = {_called(kind): kind for kind in targeted}
        boots = {k: step for step in placement.bootstraps for k in kinds if step.name == _cut(k)}
        values = [replace(plan.values[0], level=placement.entry["input"]), *plan.values[1:]]
        renamed: dict[int, int] = {}
        steps: list[Step] = []
        for step in plan.steps:
            before, after = placement.levels[_name(step.out)]
            inputs = tuple(renamed.get(k, k) for k in step.inputs)
            steps.append(replace(step, inputs=inputs, level=before))  # type: ignore[arg-type]
            values[step.out] = replace(values[step.out], level=after)
            if (boot := boots.get(step.out)) is None:
                continue
            made = values[step.out]
            renamed[step.out] = len(values)
            values.append(Value(made.layout, made.bound, boot.level_out, made.origin))
            steps.append(Refresh(renamed[step.out], (step.out,), boot.level_in, named[boot.bootstrap]))
        made_at = ", ".join(f"{plan.values[k].origin} of {boot.bootstrap}" for k, boot in boots.items())
        decisions = (
            *plan.decisions,
            Decision(
                "placement", f"{len(boots)} bootstraps, at {made_at}", placement.why(),
                f"price {placement.price:.6g}",
            ),
            self._bound(placement, highest),
        )  # fmt: skip
        placed = replace(plan, values=tuple(values), steps=tuple(steps), decisions=decisions)
        return placed.verify("refreshes")

    def _bound(self, placement: Placement, highest: str) -> Decision:
        most, reason = self.few.most, f"price {placement.price:.6g}"
        if placement.above:
            reason += f", within {placement.above:.3g} of the least"
        if self.few.worth:
            reason += f"; every kind saves {self.few.worth:.1%} of it or more"
        said = "any number" if most is None else f"at most {most}"
        return Decision(KINDS_ORIGIN, said, highest, reason)


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


def _called(boot: Boot) -> str:
    """A name for each kind."""
    return f"{boot}{' in pairs' if boot.pair else ''} to level {boot.target}"


def _order(boot: Boot) -> tuple[int, int, bool]:
    return boot.slots, boot.pack, boot.pair


def _name(value: int) -> str:
    return f"%{value}"


def _cut(value: int) -> str:
    return f"boot {value}"
