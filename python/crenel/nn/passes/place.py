"""Placement: the level of every operation, where bootstraps stand and where levels are given up, at the
lowest total price. Exact (docs/theory/placement.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from crenel.errors import UnsupportedError
from crenel.nn.passes import eliminate, minplus
from crenel.nn.passes.dag import Core, Edge, Node, reduce
from crenel.nn.passes.eliminate import Factor
from crenel.nn.passes.kinds import Chosen, Few, Found, Kinds, cheapest
from crenel.nn.passes.pieces import Choices, Piece, Step, Workshop
from crenel.nn.passes.reach import blocked
from crenel.nn.passes.structure import (
    Bootstrap,
    Chain,
    Cut,
    Matrix,
    Op,
    Parallel,
    Series,
    Structure,
    leaves,
    verify,
)

__all__ = [
    "Alternative",
    "Bootstrap",
    "Chain",
    "Cut",
    "Node",
    "Op",
    "Parallel",
    "Placement",
    "Series",
    "Step",
    "Structure",
    "place",
    "place_graph",
]


@dataclass(frozen=True)
class Alternative:
    """The best placement among those whose choice at some cut is another one.

    cut : where it differs, and perhaps elsewhere too
    instead : the bootstrap that it has there; empty: none
    bootstraps : cut and name of each of its bootstraps, in order
    """

    cut: str
    instead: str
    price: float
    bootstraps: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Placement:
    """What happens to every tensor.

    price : of all steps together
    entry, result : levels of the program's inputs and results, by name; of a structure that of its one input
        is named "input" and of its result "result"
    steps : in an order in which they can run
    runner_up : the next best choice of bootstraps, of the same kinds where few are allowed; None where there
        is no other
    above : no placement of so few kinds is cheaper by more, but for kinds that are not worth it: 0 unless
        there are very many
    """

    price: float
    entry: Mapping[str, int]
    result: Mapping[str, int]
    steps: tuple[Step, ...]
    runner_up: Alternative | None
    above: float = 0.0

    @property
    def bootstraps(self) -> tuple[Step, ...]:
        """The bootstraps among the steps."""
        return tuple(step for step in self.steps if step.kind == "bootstrap")

    @property
    def adjustments(self) -> tuple[Step, ...]:
        """The steps that give up levels."""
        return tuple(step for step in self.steps if step.kind == "adjust")

    @property
    def levels(self) -> dict[str, tuple[int, int]]:
        """Level before and behind each operation, by name."""
        return {s.name: (s.level_in, s.level_out) for s in self.steps if s.kind == "op"}

    def why(self) -> str:
        """The runner-up in words."""
        other = self.runner_up
        if other is None:
            return "no other choice of bootstraps has a way through the levels"
        mine = {s.name: s.bootstrap for s in self.bootstraps}
        here = f"bootstrap {mine[other.cut]!r}" if other.cut in mine else "no bootstrap"
        there = f"bootstrap {other.instead!r}" if other.instead else "none"
        return (
            f"at {other.cut}: {here}, where the next best placement has {there}; it has "
            f"{len(other.bootstraps)} bootstraps and costs {other.price:.6g}, "
            f"{other.price - self.price:.6g} more"
        )

    def explain(self) -> str:
        """A table of the steps, the total and the runner-up."""
        width = max([len(step.name) for step in self.steps] + [4])
        lines = [f"{'step':9} {'name':{width}} {'levels':>8} {'price':>12}"]
        for step in self.steps:
            levels = f"{step.level_in} > {step.level_out}"
            note = f"  {step.bootstrap}" if step.bootstrap else ""
            note = f"  of {step.after or 'the input'}" if step.kind == "adjust" else note
            lines.append(f"{step.kind:9} {step.name:{width}} {levels:>8} {step.price:12.6g}{note}")
        lines.append(f"total {self.price:.6g}, {len(self.bootstraps)} bootstraps")
        lines.append(f"runner-up: {self.why()}")
        return "\n".join(lines)


def place(structure: Structure, chain: Chain, few: Few | None = None) -> Placement:
    """The cheapest placement of series and forks.

    few : of how many kinds bootstraps may be, which are told apart by their names; None: of any number

    Raises ParameterError as `structure.verify` and for forks that no operation joins, and UnsupportedError
    where no choice of bootstraps has a way through the levels, naming the first operation that cannot run,
    the levels that it needs and the highest that is left there; or where none of so few kinds was found.
    """
    verify(list(leaves(structure)), chain)
    edge = Edge("input", "result", structure, 0)
    return _solve(Core((edge,), ("input",), ("result",), frozenset()), chain, {}, few or Few())


def place_graph(nodes: Sequence[Node], chain: Chain, few: Few | None = None) -> Placement:
    """The cheapest placement of any graph: as `place` where nodes are series and forks; else the levels of
    the points that are left are found by elimination, exactly too.

    few : as of `place`

    Raises what `place` raises, ParameterError as `dag.verify_nodes`, and UnsupportedError, when series and
    forks are priced but before any point is eliminated, for graphs in which too many tensors depend on one
    another.
    """
    verify([node.element for node in nodes], chain)
    order = {node.element.name: k for k, node in enumerate(nodes)}
    return _solve(reduce(nodes), chain, order, few or Few())


@dataclass(frozen=True)
class _Solved:
    price: float
    levels: dict[str, int]
    pieces: list[Piece]
    shop: Workshop
    factors: list[Factor]


_Taken: TypeAlias = tuple[_Solved, tuple[Step, ...]]


def _solve(core: Core, chain: Chain, order: Mapping[str, int], few: Few) -> Placement:
    found = _of_few(core, chain, order, few)
    if found is None:
        raise blocked(core, chain) if few.most is None else _too_few(core, chain, few.most)
    best, steps = found.found.solution
    return Placement(
        float(sum(step.price for step in steps)),
        {name: best.levels[name] for name in core.inputs},
        {name: best.levels[name] for name in core.results},
        steps,
        _runner_up(core, chain, best, steps, order),
        found.above,
    )


def _of_few(core: Core, chain: Chain, order: Mapping[str, int], few: Few) -> Chosen[_Taken] | None:
    """The optimum with bootstraps of few kinds."""
    cuts = _cuts(core)
    every = frozenset(boot.name for cut in cuts for boot in cut.bootstraps)

    def solve(kinds: Kinds) -> Found[_Taken] | None:
        left = {c.name: (None, *(b for b in c.bootstraps if b.name in kinds)) for c in cuts}
        best = _optimum(core, chain, None if kinds == every else left)
        if not np.isfinite(best.price):
            return None
        steps = _steps(core, best, order)
        return Found(best.price, frozenset(s.bootstrap for s in steps if s.bootstrap), (best, steps))

    chosen = cheapest(solve, every, few)
    if chosen is None or few == Few():
        return chosen
    again = solve(chosen.found.kinds)  # the same price; that of other choices is one of these kinds
    return None if again is None else Chosen(again, chosen.above)


def _cuts(core: Core) -> list[Cut]:
    return [leaf for edge in core.edges for leaf in leaves(edge.structure) if isinstance(leaf, Cut)]


def _too_few(core: Core, chain: Chain, most: int) -> UnsupportedError:
    """The error for a program without a placement with so few kinds of bootstraps."""
    if not np.isfinite(_optimum(core, chain).price):  # nor with any number
        return blocked(core, chain)
    return UnsupportedError(
        f"no choice of bootstraps of at most {most} kinds was found that has a way through the levels",
        {"kinds": most},
    )


def _optimum(core: Core, chain: Chain, forced: Mapping[str, Choices] | None = None) -> _Solved:
    shop = Workshop(minplus.drops(chain), forced)
    pieces = [shop.piece(edge.structure, lead=edge.tail not in core.joins) for edge in core.edges]
    factors = [Factor((e.tail, e.head), p.matrix) for e, p in zip(core.edges, pieces, strict=True)]
    factors += _ends(core, chain)
    price, levels = eliminate.solve(factors, eliminate.order_of(factors, frozenset(), shop.size), shop.size)
    return _Solved(price, levels, pieces, shop, factors)


def _ends(core: Core, chain: Chain) -> list[Factor]:
    """Levels that inputs and results may have."""
    at = np.arange(chain.top + 1)
    first = np.where(at <= chain.first, 0.0, np.inf)
    result = np.where(at >= chain.result, 0.0, np.inf)
    return [Factor((n,), first) for n in core.inputs] + [Factor((n,), result) for n in core.results]


def _steps(core: Core, solved: _Solved, order: Mapping[str, int]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for edge, piece in zip(core.edges, solved.pieces, strict=True):
        i, j = solved.levels[edge.tail], solved.levels[edge.head]
        after = "" if edge.tail in core.inputs else edge.tail.removeprefix("> ")
        before = edge.head[2:] if edge.head.startswith("> ") else ""
        steps += solved.shop.steps(piece, i, j, after, before)
    if not order:
        return tuple(steps)
    late = len(order)
    return tuple(sorted(steps, key=lambda s: (order.get(s.name, late), s.kind != "adjust")))


def _runner_up(
    core: Core, chain: Chain, best: _Solved, steps: tuple[Step, ...], order: Mapping[str, int]
) -> Alternative | None:
    """Placements with other bootstraps differ from the best at some cut: of each cut the lowest price with
    another choice there, from the price of all around it."""
    taken = {s.name: s.bootstrap for s in steps if s.kind == "bootstrap"}
    found: tuple[float, Cut, Bootstrap | None] | None = None
    for k, (edge, piece) in enumerate(zip(core.edges, best.pieces, strict=True)):
        if not any(isinstance(leaf, Cut) for leaf in leaves(edge.structure)):
            continue
        rest = [*best.factors[:k], *best.factors[k + 1 :]]
        outside: Matrix = eliminate.marginal(rest, edge.tail, edge.head, best.shop.size)
        for cut, around in best.shop.outsides(piece, outside):
            for choice in best.shop.forced.get(cut.name, (None, *cut.bootstraps)):
                if (choice.name if choice else "") == taken.get(cut.name, ""):
                    continue
                price = float((around + minplus.cut_matrix(cut, best.shop.size, (choice,))).min())
                if np.isfinite(price) and (found is None or price < found[0]):
                    found = price, cut, choice
    if found is None:
        return None
    _, cut, choice = found
    other = _optimum(core, chain, {**best.shop.forced, cut.name: (choice,)})
    others = _steps(core, other, order)
    boots = tuple((s.name, s.bootstrap) for s in others if s.kind == "bootstrap")
    total = float(sum(s.price for s in others))
    return Alternative(cut.name, choice.name if choice else "", total, boots)
