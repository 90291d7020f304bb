"""Transforms of sequences, straight as diagonals (docs/theory/attention.md).

Their matrices have as many numbers as tokens times weights, which `linear` would list one by one. A weight is
the same for every token: its diagonals are those of its features, each number standing for the slots of a
feature. A roll and the shifts of a contraction are the same for every group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crenel.nn.layout import Layout
from crenel.nn.linear import Diagonals, SlotTransform, SparseMap, slot_transform
from crenel.nn.ops import Linear, Op, Reals
from crenel.nn.sequences import Contraction, Grouped, Roll, Scores


def by_feature(chains: Sequence[Sequence[Op]], layouts: Sequence[Layout]) -> bool:
    """Do chains treat all tokens alike, and are inputs and output sequences of as many?"""
    alike = all(isinstance(op, (Linear, Grouped)) for chain in chains for op in chain)
    sequences = all(
        layout.sequence and len(layout.shape) == 2 and layout.plane[0] <= layout.capacity
        for layout in layouts
    )
    return alike and sequences and len({layout.plane for layout in layouts}) == 1


def feature_transform(
    chains: Sequence[Sequence[Op]],
    inputs: Sequence[Layout],
    output: Layout,
    factors: Sequence[float],
    unit: float,
) -> SlotTransform:
    """As `linear.slot_transform`, of chains that are `by_feature`."""
    tokens = output.plane[0]
    maps = [_feature_map(chain, layout.shape[1]) for chain, layout in zip(chains, inputs, strict=True)]
    found = slot_transform(maps, [_features(layout) for layout in inputs], _features(output), factors, unit)
    return replace(found, slots=found.slots * tokens, bias=np.repeat(found.bias, tokens, axis=1), each=tokens)


def _features(layout: Layout) -> Layout:
    """Of the features of one token."""
    features = layout.shape[1]
    capacity = max(layout.capacity // layout.plane[0], 1)
    return Layout((features,), (features, 1, 1), (1, 1), (1, 1), capacity, groups=layout.groups)


def _feature_map(chain: Sequence[Op], features: int) -> SparseMap:
    weight, bias = np.eye(features), np.zeros(features)
    for op in chain:
        if isinstance(op, Linear):
            weight, bias = op.weight @ weight, op.weight @ bias + op.bias
    row, column = np.nonzero(weight)
    return SparseMap(row, column, weight[row, column], (len(weight), features), bias)


def roll_transform(op: Roll, given: Layout, made: Layout, factor: float) -> SlotTransform:
    """Of one group: row a has matrix row a + b at slot b, on a diagonal for every distance of tokens."""
    tokens, slots = given.plane[0], made.slots
    heads = slots // tokens**2
    row, token = np.indices((tokens, tokens))
    diagonals: Diagonals = {}
    for offset in range(1 - tokens, tokens):
        inside = (token + offset >= 0) & (token + offset < tokens)
        values = op.matrix[(row + token) % tokens, (token + offset) % tokens] * inside * factor
        if values.any():
            at = offset % given.slots  # of one feature, distances d and d - T are one diagonal
            diagonals[at] = diagonals.get(at, 0.0) + _rows(values, heads)
    if not diagonals:  # the one key that is read, less the mean of those that are read
        diagonals[0] = np.zeros(slots)
    return SlotTransform([[diagonals]], slots, 1, np.zeros((1, slots)))


def moves(op: Contraction, babies: int = 0) -> tuple[list[int], list[int]]:
    """Rows by which the first operand is moved, and those by which sums of products are moved afterwards.

    Product k = g babies + x has rows x of the ones, g babies of the others; in attention, where all have the
    other sign, -g babies of the ones and -x of the others.

    babies : as `plan.Contract` has them; 0: k of the ones, for one sum
    """
    if not babies:
        return list(range(op.width)), [0]
    inner, outer = list(range(babies)), list(range(0, op.width, babies))
    return (inner, outer) if isinstance(op, Scores) else ([-k for k in outer], [-k for k in inner])


def shift_transform(op: Contraction, rolled: Layout, babies: int = 0) -> SlotTransform:
    """Of one group: an output for each k < width, the rolled operand moved to where it meets the other.

    Scores: row a + k, token b - k around the tokens; attention: token b + k. In baby and giant steps each is
    moved back by what its sum is moved by afterwards, and attention takes token b - k, so that scores and
    attention have the same matrices, and the same keys.

    babies : as `plan.Contract` has them
    """
    tokens, slots = rolled.plane[0], rolled.slots
    heads = slots // tokens**2
    token = np.arange(tokens)
    backwards = isinstance(op, Scores) or babies > 0
    blocks: list[list[Diagonals | None]] = []
    for k in range(op.width):
        rows = k % babies if babies else k * isinstance(op, Scores)
        step = rows * heads * tokens + (-k if backwards else k)
        around = token < k if backwards else token >= tokens - k
        back = tokens if backwards else -tokens
        moved = np.tile(around.astype(np.float64), (tokens, 1))
        block = {step % slots: _rows(1.0 - moved, heads)}
        if k:
            block[(step + back) % slots] = _rows(moved, heads)
        blocks.append([block])
    return SlotTransform(blocks, slots, 1, np.zeros((op.width, slots)))


def _rows(values: Reals, heads: int) -> Reals:
    """(offset, token) for each head: slots (offset, head, token)."""
    return np.repeat(values[:, None, :], heads, axis=1).reshape(-1)
