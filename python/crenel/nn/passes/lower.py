"""From a graph to steps: linear operations that follow each other become one transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from crenel.errors import ParameterError, StateError
from crenel.nn.graph import Graph, Node
from crenel.nn.layout import Layout
from crenel.nn.ops import Add, Affine, Conv2d, Flatten, Linear, Op, Pair, Polynomial, Reals, Series
from crenel.nn.passes.scales import MOST, tied
from crenel.nn.plan import (
    Contract,
    Decision,
    Evaluate,
    Multiply,
    Plan,
    Quadratic,
    Step,
    Sum,
    Transform,
    Value,
)  # fmt: skip
from crenel.nn.sequences import Attend, Bilinear, Product, Roll, Scores

Terms: TypeAlias = "tuple[tuple[int, tuple[Op, ...]], ...]"  # a sum of linear operations on values

SHIFT = 0.25  # of the bound: what a quadratic may shift its input by


@dataclass(frozen=True)
class Lower:
    """%1 = conv2d(%0); %2 = avg_pool2d(%1); %3 = series(%2)  ->  %1 = transform(%0); %2 = evaluate(%1)

    A transform ends where a value is read more than once or element by element. Branches of a sum share one
    transform where they end in linear operations; where one does not, and lies in the same slots, the sum is
    an addition. Levels are left at zero.
    """

    capacity: int
    """Slots of a ciphertext."""
    padded: bool = False
    """Is the input in planes of powers of two?"""
    dense: frozenset[Pair] = frozenset()
    """Heights and widths of values that lie in planes without gaps, which strides leave elsewhere."""

    def __call__(self, graph: Graph, bounds: tuple[float, ...]) -> Plan:
        """bounds: one a node, those that the series of the graph were made for."""
        return _Lowering(graph, list(bounds), self.capacity, self.padded, self.dense).plan()


@dataclass
class _Lowering:
    graph: Graph
    bounds: list[float]
    capacity: int
    padded: bool
    dense: frozenset[Pair]
    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def plan(self) -> Plan:
        graph = self.graph
        users = graph.users()
        quadratics = self._quadratics()
        layout = Layout.of(graph.nodes[0].shape, self.capacity)
        layout = layout.padded() if self.padded else layout
        self.values.append(Value(layout, self.bounds[0], 0, "input"))
        terms: list[Terms] = [((0, ()),)]
        for number, node in enumerate(graph.nodes[1:], 1):
            operands = [terms[k] for k in node.inputs]
            if isinstance(node.op, Add):
                found = self._sum(number, node, operands)
            elif isinstance(node.op, Bilinear):
                found = self._bilinear(number, node.op, operands)
            elif node.op.linear:
                found = tuple(
                    (value, (*chain, node.op if at == 0 else _unbiased(node.op)))
                    for at, (value, chain) in enumerate(operands[0])
                )
            else:
                found = self._elementwise(number, node, operands[0], quadratics)
            by_element = any(_apart(graph.nodes[k].op) for k in users[number])
            if len(users[number]) > 1 or number == graph.output or by_element:
                found = self._one(number, found)
            terms.append(found)
        output = terms[graph.output][0][0]
        shape = graph.nodes[graph.output].shape
        return Plan(tuple(self.values), tuple(self.steps), output, shape, tuple(self.decisions))

    def _value(self, layout: Layout, number: int) -> int:
        self.values.append(Value(layout, self.bounds[number], 0, self.graph.nodes[number].origin))
        return len(self.values) - 1

    def _one(self, number: int, terms: Terms) -> Terms:
        """The node as one value, under flattenings at most."""
        return terms if _same(terms) else ((self._transform(number, terms), ()),)

    def _transform(self, number: int, terms: Terms) -> int:
        layout = self._layout(terms[0])
        out = self._value(layout, number)
        self.steps.append(Transform(out, tuple(v for v, _ in terms), tuple(chain for _, chain in terms), 0))
        return out

    def _layout(self, term: tuple[int, tuple[Op, ...]]) -> Layout:
        layout = self.values[term[0]].layout
        for op in term[1]:
            layout = layout.after(op)
        gaps = layout.gap != (1, 1) and layout.size[1:] in self.dense
        return layout.without_gaps(self.padded) if gaps else layout

    def _sum(self, number: int, node: Node, operands: Sequence[Terms]) -> Terms:
        plain = [terms for terms in operands if _same(terms)]
        linear = tuple(term for terms in operands if not _same(terms) for term in terms)
        if not plain:
            return linear
        layouts = [self._layout(terms[0]) for terms in plain]
        if linear:
            layouts.append(self._layout(linear[0]))
        alike = all(self.values[terms[0][0]].bound == self.bounds[number] for terms in plain)
        if alike and all(layout.same_places(layouts[0]) for layout in layouts):
            parts = [terms[0][0] for terms in plain]
            if linear:
                parts.append(self._transform(number, linear))
            out = self._value(layouts[0], number)
            self.steps.append(Sum(out, tuple(parts), 0))
            return ((out, ()),)
        self.decisions.append(
            Decision(
                node.origin,
                "one transform of all operands",
                "an addition",
                "operands lie in other slots" if alike else "operands differ much in size",
            )
        )
        return (*linear, *(term for terms in plain for term in terms))  # linear first: its layout is kept

    def _elementwise(self, number: int, node: Node, terms: Terms, quadratics: set[int]) -> Terms:
        ((value, flattening),) = terms  # one value: it was made so because this node reads it
        bound = self.values[value].bound
        out = self._value(self.values[value].layout, number)
        if number in quadratics:
            self.steps.append(Quadratic(out, (value,), _powers(node.op), 0))
        else:
            series = node.op if isinstance(node.op, Series) else _series(node.op, bound, node.origin)
            self.steps.append(Evaluate(out, (value,), series, 0))
        return ((out, flattening),)

    def _bilinear(self, number: int, op: Bilinear, operands: Sequence[Terms]) -> Terms:
        (((x, _),), ((y, _),)) = operands  # values: they were made so because this node reads them
        layout = self.values[x if isinstance(op, Product) else y].layout
        if isinstance(op, Attend):
            layout = replace(Layout.of(self.graph.nodes[number].shape, self.capacity), groups=op.groups)
        out = self._value(layout, number)
        if isinstance(op, Product):
            self.steps.append(Multiply(out, (x, y), op, 0))
        elif isinstance(op, (Scores, Attend)):
            self.steps.append(Contract(out, (x, y), op, 0))
        else:
            raise StateError(f"no step for {op.name}", {"operation": op.name})
        return ((out, ()),)

    def _quadratics(self) -> set[int]:
        """Nodes that become squares; the bounds of their results, and what shares them, become theirs.

        Not where a sum or a series has the bound in its own hands, nor where the shift or the constant would
        be large beside the values.
        """
        groups = tied(self.graph, self.bounds)
        held = {groups[k] for k, node in enumerate(self.graph.nodes) if isinstance(node.op, Add)}
        for node in self.graph.nodes:
            if isinstance(node.op, Series):
                held.add(groups[node.inputs[0]])
        found = set()
        for number, node in enumerate(self.graph.nodes):
            if isinstance(node.op, Bilinear):
                made = self.bounds[node.inputs[0]] * self.bounds[node.inputs[1]]
                if not math.isclose(made, self.bounds[number], rel_tol=1e-9):  # of squares: theirs changed
                    self.bounds[number] = made
            if not isinstance(node.op, (Polynomial, Series)):
                continue
            c = _powers(node.op)
            bound = self.bounds[node.inputs[0]]  # of what comes first: already final
            if len(c) != 3 or c[2] == 0.0 or groups[number] in held:
                continue
            made = abs(float(c[2])) * bound**2
            shift = float(c[1] / (2.0 * c[2]))
            if abs(shift) > SHIFT * bound or abs(float(c[0]) - float(c[2]) * shift**2) > made:
                continue
            found.add(number)
            for k, group in enumerate(groups):
                if group == groups[number]:
                    self.bounds[k] = made
        return found


def _apart(op: Op) -> bool:
    """Does an operation read a value, rather than go on in the transform that makes it?"""
    return not op.linear or isinstance(op, Roll)


def _same(terms: Terms) -> bool:
    """One value as it lies, under flattenings at most?"""
    return len(terms) == 1 and all(isinstance(op, Flatten) for op in terms[0][1])


def _unbiased(op: Op) -> Op:
    """The same without its constant, which enters a sum once."""
    if isinstance(op, (Conv2d, Linear)):
        return replace(op, bias=np.zeros_like(op.bias))
    return replace(op, shift=np.zeros_like(op.shift)) if isinstance(op, Affine) else op


def _no_polynomial(op: Op) -> StateError:
    return StateError(
        f"{op.name} is not a polynomial: activations are approximated before", {"operation": op.name}
    )


def _powers(op: Op) -> Reals:
    """Coefficients in x, lowest first; of series beyond degree 2 none. Raises StateError for others."""
    if isinstance(op, Polynomial):
        return op.coefficients
    if not isinstance(op, Series):
        raise _no_polynomial(op)
    if op.gated or len(op.factors) != 1 or len(op.factors[0]) > 3:
        return np.zeros(0)
    powers = np.polynomial.chebyshev.cheb2poly(op.factors[0])
    return np.asarray(powers / op.bound ** np.arange(len(powers)))


def _series(op: Op, bound: float, origin: str) -> Series:
    """A user's polynomial on an interval: the same polynomial. Raises StateError for what is none,
    ParameterError for values there that float64 has not."""
    if not isinstance(op, Polynomial):
        raise _no_polynomial(op)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = op.coefficients * np.float64(bound) ** np.arange(len(op.coefficients))
    if not (np.abs(scaled) <= MOST).all():
        raise ParameterError(
            f"{origin}: the polynomial goes beyond {MOST:g} on [-{bound:g}, {bound:g}], where inputs may be",
            {"origin": origin, "bound": bound},
        )
    return Series(
        "polynomial",
        bound,
        (np.asarray(np.polynomial.chebyshev.poly2cheb(scaled), dtype=np.float64),),
        gated=False,
    )
