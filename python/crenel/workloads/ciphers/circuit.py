"""Boolean circuits on arrays of bits, evaluated level by level: few calls with many gates each.

A circuit is written as plain code on `Bits` (``a & b``, ``a ^ b``, ``~a``, slices, `concatenate`), which only
takes notes. `evaluate` then computes it with what knows the gates, `Clear` or `Encrypted`: all gates of a
kind at a level become one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

AND, OR, XOR = "and", "or", "xor"
_GATES = (AND, OR, XOR)
_NOT, _SLICE, _JOIN, _INPUT = "not", "slice", "join", "input"


class Gates(Protocol):
    """What computes on arrays: one call of `gate` is one batch of len(a) gates."""

    def gate(self, kind: str, a: Any, b: Any) -> Any: ...
    def invert(self, a: Any) -> Any: ...
    def join(self, parts: list[Any]) -> Any: ...


class Bits:
    """An array of bits to be computed: a node of the circuit."""

    __slots__ = ("_inputs", "_kind", "_range", "length", "value")

    def __init__(self, kind: str, inputs: tuple[Bits, ...], length: int, range_: slice | None = None) -> None:
        self._kind = kind
        self._inputs = inputs
        self._range = range_
        self.length = length
        self.value: Any = None

    @staticmethod
    def of(array: Any) -> Bits:
        """A computed array: its length is that of its first axis."""
        bits = Bits(_INPUT, (), len(array))
        bits.value = array
        return bits

    def __len__(self) -> int:
        return self.length

    def __and__(self, other: Bits) -> Bits:
        return self._gate(AND, other)

    def __xor__(self, other: Bits) -> Bits:
        return self._gate(XOR, other)

    def __or__(self, other: Bits) -> Bits:
        return self._gate(OR, other)

    def _gate(self, kind: str, other: Bits) -> Bits:
        if len(self) != len(other):
            raise ValueError(f"{kind} of {len(self)} and {len(other)} bits")
        return Bits(kind, (self, other), len(self))

    def __invert__(self) -> Bits:
        return Bits(_NOT, (self,), len(self))

    def __getitem__(self, key: slice) -> Bits:
        start, stop, step = key.indices(len(self))
        if step != 1 or stop <= start:
            raise ValueError(f"not a range of {len(self)} bits: {key}")
        if stop - start == len(self):
            return self
        return Bits(_SLICE, (self,), stop - start, slice(start, stop))


def concatenate(parts: Sequence[Bits]) -> Bits:
    """The arrays one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Bits(_JOIN, tuple(parts), sum(map(len, parts)))


def rotate(bits: Bits, count: int) -> Bits:
    """Element i becomes element i + count, around the end."""
    count %= len(bits)
    return concatenate([bits[count:], bits[:count]]) if count else bits


def count_gates(outputs: Iterable[Bits]) -> int:
    """Gates that `evaluate` would compute."""
    return sum(len(node) for node in _pending(outputs) if node._kind in _GATES)


def evaluate(outputs: Sequence[Bits], gates: Gates, done: Callable[[int], None] | None = None) -> list[Any]:
    """The arrays of `outputs`; afterwards these nodes are inputs of whatever is built on them.

    `done` is told the number of gates of every call.
    """
    nodes = _pending(outputs)
    depths: dict[int, int] = {}  # gates on the longest path from what is computed
    levels: dict[int, dict[str, list[Bits]]] = {}
    for node in nodes:
        depth = max((depths.get(id(i), 0) for i in node._inputs), default=0) + (node._kind in _GATES)
        depths[id(node)] = depth
        levels.setdefault(depth, {}).setdefault(node._kind, []).append(node)
    for depth in sorted(levels):
        for kind in _GATES:
            if same := levels[depth].get(kind):
                _batch(kind, same, gates)
                if done:
                    done(sum(map(len, same)))
    for node in nodes:
        _value(node, gates)
    return [_value(node, gates) for node in outputs]


def _pending(outputs: Iterable[Bits]) -> list[Bits]:
    """Nodes without a value that the outputs need, inputs before what uses them."""
    order: list[Bits] = []
    seen: set[int] = set()
    stack = [(node, False) for node in outputs]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node.value is None and id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((i, False) for i in node._inputs)
    return order


def _batch(kind: str, nodes: list[Bits], gates: Gates) -> None:
    a, b = (_joined([_value(n._inputs[side], gates) for n in nodes], gates) for side in (0, 1))
    result = gates.gate(kind, a, b)
    at = 0
    for node in nodes:
        node.value = result if len(nodes) == 1 else result[at : at + len(node)]
        node._inputs = ()
        at += len(node)


def _joined(parts: list[Any], gates: Gates) -> Any:
    return parts[0] if len(parts) == 1 else gates.join(parts)


def _value(node: Bits, gates: Gates) -> Any:
    """The array of a node whose gates are computed; free operations happen here."""
    if node.value is None:
        inputs = [_value(i, gates) for i in node._inputs]
        if node._kind == _NOT:
            node.value = gates.invert(inputs[0])
        elif node._kind == _SLICE:
            node.value = inputs[0][node._range]
        else:
            node.value = gates.join(inputs)
        node._inputs = ()
    return node.value


class Clear:
    """The gates on NumPy arrays of bool, to know what encrypted ones must give."""

    def gate(self, kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return {AND: np.logical_and, OR: np.logical_or, XOR: np.logical_xor}[kind](a, b)

    def invert(self, a: np.ndarray) -> np.ndarray:
        return ~a

    def join(self, parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts)


class Encrypted:
    """The gates of a TFHE evaluator on encrypted arrays of bool."""

    def __init__(self, evaluator: Any) -> None:
        self._calls = {AND: evaluator.and_, OR: evaluator.or_, XOR: evaluator.xor}
        self._not = evaluator.not_

    def gate(self, kind: str, a: Any, b: Any) -> Any:
        return self._calls[kind](a, b)

    def invert(self, a: Any) -> Any:
        return self._not(a)

    def join(self, parts: list[Any]) -> Any:
        from crenel.tfhe import concatenate as join

        return join(parts)
