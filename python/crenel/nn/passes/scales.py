"""One bound a value: what a ciphertext holds is the value over its bound, within [-1, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crenel.errors import ParameterError
from crenel.nn.graph import Graph
from crenel.nn.ops import Add, Flatten
from crenel.nn.passes.calibrate import Range


@dataclass(frozen=True)
class Scales:
    """Bounds, one a node: margin times the largest absolute value; operands and result of a sum share one.

    Constants that would change a scale go into weights and coefficients: none costs a level.
    """

    margin: float = 2.0
    """How far beyond what was seen values may go."""

    def __call__(self, graph: Graph, ranges: tuple[Range, ...]) -> tuple[float, ...]:
        """Raises ParameterError for a margin below 1."""
        if not (math.isfinite(self.margin) and self.margin >= 1.0):
            raise ParameterError(f"margin {self.margin}, expected at least 1", {"margin": str(self.margin)})
        groups = tied(graph)
        largest: dict[int, float] = {}
        for group, found in zip(groups, ranges, strict=True):
            largest[group] = max(largest.get(group, 0.0), found.reach)
        return tuple(self.margin * largest[group] for group in groups)


def tied(graph: Graph) -> list[int]:
    """For each node the first one whose scale it shares."""
    leader = list(range(len(graph.nodes)))

    def first(k: int) -> int:
        while leader[k] != k:
            k = leader[k]
        return k

    for number, node in enumerate(graph.nodes):
        if isinstance(node.op, (Add, Flatten)):
            for operand in node.inputs:
                a, b = sorted((first(number), first(operand)))
                leader[b] = a
    return [first(k) for k in range(len(graph.nodes))]
