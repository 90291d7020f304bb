"""A network as a list of operations in which every value is made once.

graph  := { node }                     the first is the input
node   := "%" id "=" op "(" { "%" id } ")" shape "#" origin
origin := where it came from: the places of modules, "0.2.relu"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crenel.errors import ParameterError, StateError
from crenel.nn.functions import reals
from crenel.nn.ops import Add, Input, Op, Reals, Shape

PART = 64  # samples


@dataclass(frozen=True, eq=False)
class Node:
    """One value and the operation that makes it."""

    op: Op
    inputs: tuple[int, ...]
    shape: Shape
    """Of one sample."""
    origin: str

    def text(self, number: int) -> str:
        """The line of `Graph.text`."""
        operands = ", ".join(f"%{k}" for k in self.inputs)
        return f"%{number} = {self.op.name}({operands}) {list(self.shape)} # {self.origin}"


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which operands come first."""

    nodes: tuple[Node, ...]
    output: int

    def text(self) -> str:
        """The printed form, a node a line, and which is returned."""
        lines = [node.text(number) for number, node in enumerate(self.nodes)]
        return "\n".join([*lines, f"return %{self.output}"])

    def verify(self, stage: str) -> Graph:
        """Itself. Raises StateError naming the stage, the node and its origin where it is no legal graph."""
        for number, node in enumerate(self.nodes):
            what = f"after {stage}: {node.text(number)}"
            if isinstance(node.op, Input) != (number == 0):
                raise StateError(f"{what}: the first node, and no other, is the input", {"node": number})
            if any(not 0 <= k < number for k in node.inputs):
                raise StateError(f"{what}: an operand that is not made before", {"node": number})
            expected = node.op.shape(*(self.nodes[k].shape for k in node.inputs))
            if expected != node.shape:
                raise StateError(f"{what}: the shape should be {list(expected)}", {"node": number})
        if not 0 <= self.output < len(self.nodes):
            raise StateError(f"after {stage}: the graph returns %{self.output}", {"node": self.output})
        return self

    def users(self) -> list[list[int]]:
        """For each node those that read it, ascending; a node twice where it reads a value twice."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for k in node.inputs:
                found[k].append(number)
        return found

    def values(self, samples: Reals) -> list[Reals]:
        """Every node's value in float64; samples: (count, *shape of the input)."""
        found: list[Reals] = []
        for node in self.nodes:
            operands = (samples,) if isinstance(node.op, Input) else [found[k] for k in node.inputs]
            found.append(node.op(*operands))
        return found

    def __call__(self, samples: Reals) -> Reals:
        """The output's value, a part of the samples at a time: memory does not grow with their number."""
        return np.concatenate(list(self.parts(samples)))

    def parts(self, samples: Reals) -> Iterator[Reals]:
        """The output's value of `PART` samples after the other."""
        for k in range(0, max(len(samples), 1), PART):
            yield self.values(samples[k : k + PART])[self.output]


class Builder:
    """Collects nodes; shapes follow from the operations."""

    def __init__(self, shape: Shape) -> None:
        self.nodes = [Node(Input(shape), (), shape, "input")]

    def add(self, op: Op, inputs: Sequence[int], origin: str) -> int:
        """The number of a new node. Raises ParameterError, naming the origin, for shapes that do not fit."""
        try:
            shape = op.shape(*(self.nodes[k].shape for k in inputs))
        except ParameterError as error:
            raise ParameterError(f"{origin}: {error}", {"origin": origin} | error.fields) from None
        if 0 in shape:
            raise ParameterError(f"{origin}: a tensor of shape {shape} has no elements", {"origin": origin})
        self.nodes.append(Node(op, tuple(inputs), shape, origin))
        return len(self.nodes) - 1

    def graph(self, output: int) -> Graph:
        """What is needed of the output alone, numbered anew; the input stays."""
        needed = {0, output}
        for number in range(len(self.nodes) - 1, 0, -1):
            if number in needed:
                needed.update(self.nodes[number].inputs)
        new = {old: at for at, old in enumerate(sorted(needed))}
        nodes = tuple(
            Node(node.op, tuple(new[k] for k in node.inputs), node.shape, node.origin)
            for old, node in enumerate(self.nodes)
            if old in new
        )
        return Graph(nodes, new[output])


def summed(builder: Builder, parts: Iterable[int], origin: str) -> int:
    """The sum of values, itself where there is one."""
    numbers = list(parts)
    return numbers[0] if len(numbers) == 1 else builder.add(Add(), numbers, origin)


def checked_samples(samples: object, shape: Shape | None) -> Reals:
    """Samples as float64, (count, *shape). Raises ParameterError for other shapes, for what is no array of
    real numbers and for numbers not finite."""
    found = reals(samples, "samples")
    if found.ndim < 2 or len(found) == 0 or (shape is not None and found.shape[1:] != shape):
        expected = "(count, ...)" if shape is None else f"(count, {', '.join(map(str, shape))})"
        raise ParameterError(
            f"samples of shape {found.shape}, expected {expected} with at least one",
            {"shape": list(found.shape)},
        )
    if not np.isfinite(found).all():
        where = [int(k) for k in np.argwhere(~np.isfinite(found))[0]]
        raise ParameterError(f"samples: the number at {where} is not finite", {"index": where})
    return found
