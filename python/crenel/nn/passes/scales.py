"""One bound a value: what a ciphertext holds is the value over its bound.

For inputs whose values stay within the margin of the samples' that is within [-1, 1], but for squares with a
shift or a constant: `lower` gives them the bound |c2| times the square of their operand's, and
they reach 2.6, squares of them the square of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

from crenel.errors import ParameterError
from crenel.nn.graph import Graph
from crenel.nn.ops import Activation, Add, Flatten, Series
from crenel.nn.passes.calibrate import Range
from crenel.nn.sequences import Bilinear

ALIKE = 8.0
LEAST, MOST = 1e-100, 1e110
SILENT = 2.0**-8  # of the operand; fitted polynomials err by more
EDGE = 4.0  # by which bounds exceed intervals whose ends are crowded: bootstraps err there most
ROOM = 64.0  # how far a factor of a product may leave [-1, 1]; bootstraps do not stand there


@dataclass(frozen=True)
class Scales:
    """Bounds, one a node: margin times the largest absolute value. Operands and result of a sum share one,
    where none is more than 8 times another: a polynomial on an interval hardly filled is a bad one.

    Constants that would change a scale go into weights and coefficients: none costs a level.
    """

    margin: float = 2.0
    """How far beyond what was seen values may go."""

    def __call__(self, graph: Graph, ranges: tuple[Range, ...]) -> tuple[float, ...]:
        """Raises ParameterError for a margin below 1, and for bounds whose squares leave float64, naming the
        first layer that has one."""
        if not (isinstance(self.margin, Real) and 1.0 <= self.margin < math.inf):
            raise ParameterError(f"margin {self.margin}, expected at least 1", {"margin": str(self.margin)})
        sizes = _sizes(graph, ranges)
        groups = tied(graph, sizes)
        largest: dict[int, float] = {}
        for group, size in zip(groups, sizes, strict=True):
            largest[group] = max(largest.get(group, 0.0), size)
        bounds = _products(graph, groups, [self.margin * largest[group] for group in groups])
        for node, bound in zip(graph.nodes, bounds, strict=True):
            if not LEAST <= bound <= MOST:
                raise ParameterError(
                    f"{node.origin}: values within {bound:g}, expected a bound from {LEAST:g} to {MOST:g}: "
                    "multiply inputs or weights by a factor, or take another margin",
                    {"origin": node.origin, "bound": bound},
                )
        return bounds


def _products(graph: Graph, groups: Sequence[int], bounds: list[float]) -> tuple[float, ...]:
    """Bounds of products are those of their operands multiplied: one operand's is chosen so that the product
    has its own. Series that are in the graph have theirs."""
    held: dict[int, float] = {}
    for node in graph.nodes:
        if isinstance(node.op, Series):
            held[groups[node.inputs[0]]] = node.op.bound * (EDGE if node.op.crowded else 1.0)
        elif isinstance(node.op, Add):
            held.setdefault(groups[node.inputs[0]], bounds[node.inputs[0]])
    bounds = [held.get(group, bound) for group, bound in zip(groups, bounds, strict=True)]
    users = graph.users()
    for number, node in enumerate(graph.nodes):
        if not isinstance(node.op, Bilinear):
            continue
        tuned, other = node.inputs[node.op.tuned], node.inputs[1 - node.op.tuned]
        wanted = bounds[number] / bounds[other]
        free = len(users[tuned]) == 1 and tuned != other and groups.count(groups[tuned]) == 1
        if free and groups[tuned] not in held:
            least = 0.0 if groups[number] in held else bounds[tuned] / ROOM
            bounds[tuned] = max(wanted, least)
        made = bounds[tuned] * bounds[other]
        if math.isclose(made, bounds[number], rel_tol=1e-12):
            continue
        bounds = [made if groups[k] == groups[number] else bound for k, bound in enumerate(bounds)]
    return tuple(bounds)


def _sizes(graph: Graph, ranges: tuple[Range, ...]) -> list[float]:
    """Largest absolute values; where samples showed none, or an activation hardly any, its operands':
    a polynomial is not zero where the function is."""
    sizes: list[float] = []
    for node, found in zip(graph.nodes, ranges, strict=True):
        before = max((sizes[k] for k in node.inputs), default=1.0)
        least = before * SILENT if isinstance(node.op, Activation) else 0.0
        sizes.append(max(found.reach, least) or before)
    return sizes


def tied(graph: Graph, sizes: Sequence[float]) -> list[int]:
    """For each node the first one whose scale it shares. sizes: of the nodes' values."""
    leader = list(range(len(graph.nodes)))

    def first(k: int) -> int:
        while leader[k] != k:
            k = leader[k]
        return k

    for number, node in enumerate(graph.nodes):
        parts = [sizes[number], *(sizes[k] for k in node.inputs)]
        alike = isinstance(node.op, Add) and max(parts) <= ALIKE * min(parts)
        if alike or isinstance(node.op, Flatten):
            for operand in node.inputs:
                a, b = sorted((first(number), first(operand)))
                leader[b] = a
    return [first(k) for k in range(len(graph.nodes))]
