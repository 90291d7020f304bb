"""Norms into their neighbours, polynomials of degree one into norms, operations that do nothing out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crenel.nn.graph import Builder, Graph, Node
from crenel.nn.ops import Affine, Conv2d, Flatten, Input, Linear, Op, Polynomial


@dataclass(frozen=True)
class Fold:
    """%1 = conv2d(%0); %2 = affine(%1)  ->  %1 = conv2d(%0), with other weights.

    Where the convolution or linear layer is read by the norm alone; and a norm in front of a linear layer or
    of a convolution without padding (which would pad with the shift), where these alone read it.
    """

    def __call__(self, graph: Graph) -> Graph:
        changed = True
        while changed:
            graph, changed = self._once(graph)
        return graph.verify("fold")

    def _once(self, graph: Graph) -> tuple[Graph, bool]:
        users = graph.users()
        builder = Builder(graph.nodes[0].shape)
        new = {0: 0}
        changed = False
        for number, node in enumerate(graph.nodes):
            if isinstance(node.op, Input):
                continue
            before = graph.nodes[node.inputs[0]]
            alone = (
                len(node.inputs) == 1 and users[node.inputs[0]] == [number] and graph.output != node.inputs[0]
            )
            simple = _simpler(node)
            merged = _merged(before.op, node.op) if alone else None
            if simple is not None:
                changed = True
            if simple is None and isinstance(node.op, Flatten) and len(before.shape) == 1:
                new[number], changed = new[node.inputs[0]], True
                continue
            if simple is None and merged is not None:
                operands, origin, op = before.inputs, before.origin, merged
                changed = True
            else:
                operands, origin, op = node.inputs, node.origin, simple or node.op
            new[number] = builder.add(op, [new[k] for k in operands], origin)
        return builder.graph(new[graph.output]), changed


def _simpler(node: Node) -> Op | None:
    """A polynomial of degree one or zero as a norm; trailing zeros of others dropped."""
    if not isinstance(node.op, Polynomial):
        return None
    coefficients = np.trim_zeros(node.op.coefficients, "b")
    if len(coefficients) > 2:
        return Polynomial(coefficients) if len(coefficients) < len(node.op.coefficients) else None
    constant, slope = np.pad(coefficients, (0, 2 - len(coefficients)))
    return Affine(np.full(node.shape[0], slope), np.full(node.shape[0], constant))


def _merged(before: Op, after: Op) -> Op | None:
    """One operation that does both, where there is one."""
    if isinstance(after, Affine):
        if isinstance(before, Affine):
            return Affine(before.scale * after.scale, before.shift * after.scale + after.shift)
        if isinstance(before, Linear):
            return Linear(before.weight * after.scale[:, None], before.bias * after.scale + after.shift)
        if isinstance(before, Conv2d):
            weight = before.weight * after.scale[:, None, None, None]
            return _conv(before, weight, before.bias * after.scale + after.shift)
    if isinstance(before, Affine):
        if isinstance(after, Linear):
            return Linear(after.weight * before.scale, after.bias + after.weight @ before.shift)
        if isinstance(after, Conv2d) and after.padding == (0, 0):
            outputs, inputs = after.weight.shape[:2]
            group = np.repeat(np.arange(after.groups), outputs // after.groups)
            channel = group[:, None] * inputs + np.arange(inputs)  # (outputs, inputs of a group)
            shift = np.einsum("oivh,oi->o", after.weight, before.shift[channel])
            return _conv(after, after.weight * before.scale[channel][:, :, None, None], after.bias + shift)
    return None


def _conv(like: Conv2d, weight: np.ndarray, bias: np.ndarray) -> Conv2d:
    return Conv2d(weight, bias, like.stride, like.padding, like.dilation, like.groups)
