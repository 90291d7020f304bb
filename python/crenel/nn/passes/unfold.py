"""Norms, softmax and attention into what ciphertexts can do (docs/theory/attention.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.composites import Attention, Composite, LayerNorm, Softmax
from crenel.nn.graph import Builder, Graph, Node
from crenel.nn.intervals import Interval, degree, inverse_root, softmax_fits
from crenel.nn.ops import Add, Input, Linear, Op, Polynomial, Reals, Series
from crenel.nn.passes.scales import ROOM
from crenel.nn.plan import Decision
from crenel.nn.sequences import Attend, Grouped, Product, Roll, Scores, Weigh

WIDEN = 0.25  # of the margin's excess: exponentials grow with the margin of their exponent
LEAST = 2.0**-8  # reach of scores


@dataclass(frozen=True)
class Unfold:
    """%1 = layer_norm(%0)  ->  centred, squared, averaged, %1 = centred * inverse_root; and alike."""

    capacity: int
    """Slots of a ciphertext."""
    margin: float = 2.0
    """How far beyond what was seen sums and variances may go, up and down."""

    def __call__(self, graph: Graph, samples: Reals) -> tuple[Graph, tuple[Decision, ...]]:
        """Raises ParameterError for numbers of tokens that are no power of two or fewer than a head is wide,
        UnsupportedError where the scores of a head exceed a ciphertext, and where a range is too wide."""
        if not any(isinstance(node.op, Composite) for node in graph.nodes):
            return graph, ()
        found = _Unfolding(graph, self.capacity, self.margin, Builder(graph.nodes[0].shape), [samples])
        return _copied(found.graph()).verify("unfold"), tuple(found.decisions)


@dataclass
class _Unfolding:
    old: Graph
    capacity: int
    margin: float
    builder: Builder
    values: list[Reals]
    """Of every node so far, on the samples."""
    decisions: list[Decision] = field(default_factory=list)

    def graph(self) -> Graph:
        users, new = self.old.users(), {0: 0}
        for number, node in enumerate(self.old.nodes):
            inputs = [new[k] for k in node.inputs]
            if isinstance(node.op, Input):
                continue
            if isinstance(node.op, LayerNorm):
                before = self.builder.nodes[inputs[0]]
                alone = isinstance(before.op, Add) and users[node.inputs[0]] == [number]
                parts = before.inputs if alone and node.inputs[0] != self.old.output else inputs
                new[number] = self._layer_norm(node.op, parts, node.origin)
            elif isinstance(node.op, Softmax):
                new[number] = self._rows(inputs[0], node.origin)
            elif isinstance(node.op, Attention):
                new[number] = self._attention(node.op, inputs, node.origin)
            else:
                new[number] = self._add(node.op, inputs, node.origin)
        return self.builder.graph(new[self.old.output])

    def _add(self, op: Op, inputs: Sequence[int], origin: str) -> int:
        self.values.append(op(*(self.values[k] for k in inputs)))
        return self.builder.add(op, inputs, origin)

    def _linear(self, value: int, weight: Reals, origin: str, bias: Reals | None = None) -> int:
        shift = np.zeros(len(weight)) if bias is None else bias
        return self._add(Linear(weight, shift), [value], origin)

    def _whole(self, value: int, least: int, origin: str) -> None:
        """Raises ParameterError where slots of a feature are no tokens: their sums would leave intervals."""
        tokens = self.builder.nodes[value].shape[0]
        if tokens & (tokens - 1) or tokens < least:
            raise ParameterError(
                f"{origin}: {tokens} tokens, expected a power of two"
                f"{f' from the width of a head on ({least})' if least > 1 else ''}: "
                "pad samples, and mask the padding where tokens are read",
                {"origin": origin, "tokens": tokens, "least": least},
            )

    def _layer_norm(self, op: LayerNorm, parts: Sequence[int], origin: str) -> int:
        """parts: summands of the input, each centred by itself: the transforms before can do that."""
        self._whole(parts[0], 1, origin)
        size = len(op.weight)
        centre = np.eye(size) - 1.0 / size
        centred = [self._linear(part, centre, f"{origin}.centred") for part in parts]
        x = centred[0] if len(parts) == 1 else self._add(Add(), centred, f"{origin}.centred")
        squares = self._add(Polynomial(np.array([0.0, 0.0, 1.0])), [x], f"{origin}.squares")
        mean = np.full((1, size), 1.0 / size)
        variance = np.asarray(self.values[squares] @ mean.T) + op.epsilon
        interval = Interval(float(variance.min()) / self.margin, float(variance.max()) * self.margin)
        series = inverse_root(interval, origin)
        self._decide(
            origin, f"inverse root of degree {degree(series)} on {interval}",
            "a lower degree", "the least with a relative error of 2^-12",
        )  # fmt: skip
        root = self._on(squares, mean, np.array([op.epsilon]), interval, series, 1, f"{origin}.inverse_root")
        normal = self._add(Product(1), [x, root], f"{origin}.normal")
        return self._linear(normal, np.diag(op.weight), origin, op.bias)

    def _on(
        self, value: int, weight: Reals, bias: Reals, interval: Interval, series: Series, groups: int,
        origin: str,
    ) -> int:  # fmt: skip
        """A series of sums, which are taken to u in [-1, 1] on the way."""
        at = (bias - interval.middle) / interval.half
        sums = self._linear(value, weight / interval.half, f"{origin}.sums", at)
        if groups > 1:
            sums = self._add(Grouped(groups), [sums], f"{origin}.sums")
        return self._add(series, [sums], origin)

    def _rows(self, value: int, origin: str) -> int:
        """Softmax of features: shifted so that their mean is 0, which changes nothing."""
        features = self.builder.nodes[value].shape[1]
        centred = self._linear(value, np.eye(features) - 1.0 / features, f"{origin}.centred")
        powers, inverse = self._softmax(centred, np.ones((1, features)), None, features, 1, origin)
        return self._add(Product(1), [powers, inverse], origin)

    def _softmax(
        self, scores: int, sums: Reals, mask: Reals | None, count: int, groups: int, origin: str,
        least: float = LEAST,
    ) -> tuple[int, int]:  # fmt: skip
        """Numerators, and the inverses of their sums. Scores have mean 0 over the `count` that are summed:
        their exponentials sum to `count` or more. least : of their reach."""
        seen = self.values[scores]
        reach = max(float(np.abs(seen).max()) * (1.0 + WIDEN * (self.margin - 1.0)), least)

        def largest(shrunk: float) -> float:
            powers = np.exp(seen * shrunk) * (1.0 if mask is None else mask)
            return float((powers @ sums.T).max()) * self.margin

        fits = softmax_fits(reach, count, largest, origin)
        self._decide(origin, fits.chosen(), fits.instead(), fits.REASON)

        def inverted(powers: int, at: Interval, series: Series, name: str) -> int:
            read = powers if mask is None else self._add(Weigh(mask), [powers], f"{name}.read")
            return self._on(read, sums, np.zeros(len(sums)), at, series, groups, name)

        found = self._add(fits.exponential, [scores], f"{origin}.exp")
        root = inverted(found, fits.interval, fits.inverse, f"{origin}.inverse")
        for number in range(1, fits.rounds + 1):
            shares = self._add(Product(groups), [found, root], f"{origin}.shares{number}")
            square = Polynomial(np.array([0.0, 0.0, 1.0]))
            found = self._add(square, [shares], f"{origin}.squares{number}")
            root = inverted(found, fits.again, fits.inverse_again, f"{origin}.inverse{number}")
        return found, root

    def _attention(self, op: Attention, inputs: Sequence[int], origin: str) -> int:
        tokens, features = self.builder.nodes[inputs[0]].shape
        size = features // op.heads
        width = 1 << (size - 1).bit_length()
        self._whole(inputs[0], width, origin)
        if tokens**2 > self.capacity:
            raise UnsupportedError(
                f"{origin}: the scores of a head, {tokens}^2, exceed a ciphertext of {self.capacity} slots",
                {"origin": origin, "tokens": tokens, "slots": self.capacity},
            )
        shared = min(1 << (op.heads - 1).bit_length(), self.capacity // tokens**2)
        groups = -(-op.heads // shared)
        arranged = _arrangement(op.heads, size, groups, width, shared)
        q, k, v = (
            self._add(Grouped(groups), [self._linear(value, weight, f"{origin}.{name}")], f"{origin}.{name}")
            for value, weight, name in zip(
                inputs, (arranged / np.sqrt(size), arranged, arranged), ("queries", "keys", "values"),
                strict=True,
            )
        )  # fmt: skip
        read = np.asarray(op.mask > 0, dtype=np.float64)
        count = int(read.sum())
        # The mean key of what is read moves the scores of a query alike, and softmax does not see it. Keys of
        # padding become 0: their exponentials, 1, stay within the range of the others.
        centred = read[:, None] * (np.eye(tokens) - read / count)
        rolled = self._add(Roll(centred, groups, width), [k], f"{origin}.keys")
        values = self._add(Roll(np.diag(read), groups, width), [v], f"{origin}.values")
        scores = self._add(Scores(groups, width), [q, rolled], f"{origin}.scores")
        # Queries are divided by the bound of scores over that of keys: not by much less than they are.
        sizes = (float(np.abs(self.values[part]).max()) * self.margin for part in (q, k))
        least = max(LEAST, math.prod(sizes) / ROOM)
        token, offset = np.indices((tokens, tokens))
        mask = np.tile(np.repeat(read[(token + offset) % tokens], shared, axis=1), (1, groups))
        sums: Reals = np.asarray(np.kron(np.eye(groups), np.tile(np.eye(shared), (1, tokens))), np.float64)
        powers, inverse = self._softmax(
            scores, sums, None if read.all() else mask, count, groups, f"{origin}.softmax", least
        )
        summed = self._add(Attend(groups, width), [powers, values], f"{origin}.attend")
        mixed = self._add(Product(groups), [summed, inverse], f"{origin}.mixed")
        return self._linear(mixed, arranged.T, origin)

    def _decide(self, origin: str, chosen: str, instead: str, reason: str) -> None:
        self.decisions.append(Decision(origin, chosen, instead, reason))


def _arrangement(heads: int, size: int, groups: int, width: int, shared: int) -> Reals:
    """Features (head, size) to (group, width, head of the group); zeros where there is none."""
    found = np.zeros((groups, width, shared, heads, size))
    for head in range(heads):
        for feature in range(size):
            found[head // shared, feature, head % shared, head, feature] = 1.0
    return found.reshape(groups * width * shared, heads * size)


def _copied(graph: Graph) -> Graph:
    """A diagonal weight that linear operations read goes into each of them: it costs no level of its own."""
    users = graph.users()
    builder = Builder(graph.nodes[0].shape)
    new = {0: 0}
    copied: dict[int, Node] = {}
    for number, node in enumerate(graph.nodes):
        reads = [graph.nodes[k].op for k in users[number]]
        shared = len(reads) > 1 and number != graph.output and all(_goes_on(op) for op in reads)
        if shared and _diagonal(node) and node.inputs[0] not in copied:
            copied[number] = node
    for number, node in enumerate(graph.nodes):
        if isinstance(node.op, Input) or number in copied:
            continue
        inputs = [
            builder.add(copied[k].op, [new[copied[k].inputs[0]]], copied[k].origin) if k in copied else new[k]
            for k in node.inputs
        ]
        new[number] = builder.add(node.op, inputs, node.origin)
    return builder.graph(new[graph.output])


def _goes_on(op: Op) -> bool:
    return op.linear and not isinstance(op, Roll)


def _diagonal(node: Node) -> bool:
    if not isinstance(node.op, Linear) or len(node.shape) != 2:
        return False
    weight = node.op.weight
    return weight.shape[0] == weight.shape[1] and not (weight - np.diag(np.diag(weight))).any()
