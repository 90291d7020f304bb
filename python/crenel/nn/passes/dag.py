"""From a list of nodes with inputs to series and forks, or to the core that is left of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.passes.structure import Cut, Op, Parallel, Series, Structure


@dataclass(frozen=True)
class Node:
    """An operation or a cut and the names of what it reads: nodes listed before it, or inputs of the
    program, which are all names that no node has. A name twice counts once."""

    element: Op | Cut
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """A piece of the program from one point to another. Tensors are points, named by what makes them; so are
    the common inputs of a node, named "> " and the node."""

    tail: str
    head: str
    structure: Structure
    place: int
    """Of its first node in the list; of a plain dependency that of the node that reads."""


@dataclass(frozen=True)
class Core:
    """What is left when no series and no fork can be contracted: one edge where the program consists of them.

    joins : points where a node has several inputs
    """

    edges: tuple[Edge, ...]
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    joins: frozenset[str]


def verify_nodes(nodes: Sequence[Node]) -> None:
    """Raises ParameterError for nodes without inputs, cuts with several, and nodes that read later ones."""
    places = {node.element.name: k for k, node in enumerate(nodes)}
    for k, node in enumerate(nodes):
        name = node.element.name
        if not node.inputs:
            raise ParameterError(f"{name} has no inputs", {"name": name})
        if isinstance(node.element, Cut) and len(set(node.inputs)) > 1:
            raise ParameterError(
                f"{name} is a cut with {len(set(node.inputs))} inputs, expected one tensor", {"name": name}
            )
        for read in node.inputs:
            if places.get(read, -1) >= k:
                raise ParameterError(
                    f"{name} reads {read}, which does not stand before it", {"name": name, "input": read}
                )


def reduce(nodes: Sequence[Node]) -> Core:
    """Contract series and forks until none is left. Raises what `verify_nodes` raises."""
    verify_nodes(nodes)
    made = {node.element.name for node in nodes}
    read = {name for node in nodes for name in node.inputs}
    inputs = tuple(dict.fromkeys(n for node in nodes for n in node.inputs if n not in made))
    results = tuple(node.element.name for node in nodes if node.element.name not in read)
    edges: list[Edge] = []
    joins = set()
    for k, node in enumerate(nodes):
        name, reads = node.element.name, tuple(dict.fromkeys(node.inputs))
        if len(reads) == 1:
            edges.append(Edge(reads[0], name, node.element, k))
            continue
        joins.add("> " + name)
        edges.append(Edge("> " + name, name, node.element, k))
        edges += [Edge(tensor, "> " + name, Series(), k) for tensor in reads]
    ends = {*inputs, *results}
    while (fewer := _once(edges, ends)) is not None:
        edges = fewer
    points = {edge.tail for edge in edges}
    return Core(tuple(sorted(edges, key=lambda e: e.place)), inputs, results, frozenset(joins & points))


def structure_of(nodes: Sequence[Node]) -> Structure:
    """Nodes as series and forks, in an order in which they can run.

    Raises UnsupportedError for those that are not series-parallel, naming the tensors between which paths
    cross, and for several inputs or results; ParameterError as `verify_nodes`.
    """
    core = reduce(nodes)
    edges = list(core.edges)
    if not edges:
        return Series()
    if len(edges) > 1:
        between = sorted({p.removeprefix("> ") for edge in edges for p in (edge.tail, edge.head)})
        raise UnsupportedError(
            f"not series-parallel: {len(core.inputs)} inputs, {len(core.results)} results, "
            f"{len(edges)} paths between {', '.join(between[:8])}{', ...' * (len(between) > 8)}",
            {"inputs": len(core.inputs), "results": len(core.results), "paths": len(edges)},
        )
    return edges[0].structure


def _once(edges: list[Edge], ends: set[str]) -> list[Edge] | None:
    """Forks between two points contracted, then points that one path runs through; None: there are none."""
    between: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        between.setdefault((edge.tail, edge.head), []).append(edge)
    fewer = [_fork(group) for group in between.values()]
    changed = len(fewer) < len(edges)
    into: dict[str, list[Edge]] = {}
    out_of: dict[str, list[Edge]] = {}
    for edge in fewer:
        out_of.setdefault(edge.tail, []).append(edge)
        into.setdefault(edge.head, []).append(edge)
    for point in [p for p in into if p in out_of and p not in ends]:
        if len(into[point]) == len(out_of[point]) == 1:
            first, second = into[point][0], out_of[point][0]
            merged = Edge(first.tail, second.head, _series(first, second), _place(first, second))
            into[merged.head] = [e for e in into[merged.head] if e is not second] + [merged]
            out_of[merged.tail] = [e for e in out_of[merged.tail] if e is not first] + [merged]
            into[point], out_of[point] = [], []
            changed = True
    return [edge for group in out_of.values() for edge in group] if changed else None


def _fork(group: list[Edge]) -> Edge:
    if len(group) == 1:
        return group[0]
    group = sorted(group, key=lambda e: e.place)
    branches: list[Structure] = []
    for edge in group:  # one fork, whatever order its branches were contracted in
        branches += edge.structure.branches if isinstance(edge.structure, Parallel) else [edge.structure]
    return Edge(group[0].tail, group[0].head, Parallel(tuple(branches)), group[0].place)


def _series(first: Edge, second: Edge) -> Structure:
    return Series((*_parts(first.structure), *_parts(second.structure)))


def _parts(structure: Structure) -> tuple[Structure, ...]:
    return structure.parts if isinstance(structure, Series) else (structure,)


def _place(first: Edge, second: Edge) -> int:
    """A dependency has no nodes of its own."""
    return second.place if first.structure == Series() else first.place
