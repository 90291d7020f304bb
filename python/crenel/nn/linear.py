"""Linear operations as sparse matrices, and these as diagonals on slots.

A transform takes tensors in layouts to a tensor in a layout: out = sum_i A_i in_i + b. Between ciphertexts
of n slots, entry (d, s) of a block lies on the diagonal of offset s - d. Vectors of fewer slots repeat, so
offsets count modulo the smaller of the two sides only:

* a smaller input repeats up to the output's slots: offsets modulo the input's;
* for a smaller output, an entry goes to that copy of its row which brings the offset below the output's
  slots, and rotations at the end sum the copies: a dense layer with 10 outputs has at most 16 diagonals,
  however many inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crenel import ckks
from crenel.errors import StateError, UnsupportedError
from crenel.nn.layout import Layout
from crenel.nn.ops import Affine, AvgPool2d, Conv2d, Flatten, Linear, Op, Pair, Place, Reals, Shape
from crenel.nn.sequences import Grouped, Pool, Weigh

SQUARE = 1024  # rows of a matrix that is multiplied as one

Indices = NDArray[np.int64]
Diagonals = dict[int, Reals]


@dataclass(frozen=True, eq=False)
class SparseMap:
    """y[rows] += values * x[columns] of flat tensors, plus a bias."""

    rows: Indices
    columns: Indices
    values: Reals
    shape: tuple[int, int]
    bias: Reals

    def __call__(self, x: Reals) -> Reals:
        """Of a flat vector."""
        return np.bincount(self.rows, self.values * x[self.columns], self.shape[0]) + self.bias

    def after(self, first: SparseMap) -> SparseMap:
        """This map of the result of another."""
        order = np.argsort(first.rows, kind="stable")
        counts = np.bincount(first.rows, minlength=first.shape[0])
        starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
        many = counts[self.columns]  # entries of `first` that each entry here meets
        mine = np.repeat(np.arange(len(self.rows)), many)
        within = np.arange(len(mine)) - np.repeat(np.cumsum(many) - many, many)
        theirs = order[starts[self.columns[mine]] + within]
        return _collected(
            self.rows[mine],
            first.columns[theirs],
            self.values[mine] * first.values[theirs],
            (self.shape[0], first.shape[1]),
            self(first.bias),
        )


def _collected(
    rows: Indices, columns: Indices, values: Reals, shape: tuple[int, int], bias: Reals
) -> SparseMap:
    """Entries of one place as one."""
    keys, place = np.unique(rows * shape[1] + columns, return_inverse=True)
    total = np.bincount(place.reshape(-1), values, len(keys)).astype(np.float64)
    return SparseMap(keys // shape[1], keys % shape[1], total, shape, bias)


def sparse_map(op: Op, shape: Shape) -> SparseMap:
    """The matrix of a linear operation on tensors of a shape. Raises StateError for other operations."""
    out = op.shape(shape)
    size = (int(np.prod(out)), int(np.prod(shape)))
    zeros = np.zeros(size[0])
    same = np.arange(size[1], dtype=np.int64)
    if isinstance(op, Conv2d):
        return _conv(op, shape, out)
    if isinstance(op, AvgPool2d):
        channels = shape[0]
        weight = np.full((channels, 1, *op.kernel), 1.0 / (op.kernel[0] * op.kernel[1]))
        return _conv(Conv2d(weight, np.zeros(channels), op.stride, op.padding, (1, 1), channels), shape, out)
    if isinstance(op, Linear):
        return _dense(op, size)
    if isinstance(op, Weigh):
        return SparseMap(same, same, op.weight.reshape(-1), size, zeros)
    if isinstance(op, Pool):
        token, feature = np.indices(shape)
        return SparseMap(feature.reshape(-1), same, np.repeat(op.weight, shape[1]), size, zeros)
    if isinstance(op, Affine):
        each = size[1] // len(op.scale)
        return SparseMap(same, same, np.repeat(op.scale, each), size, np.repeat(op.shift, each))
    if isinstance(op, Place):
        return SparseMap(same + op.offset * (size[1] // shape[0]), same, np.ones(size[1]), size, zeros)
    if not isinstance(op, (Flatten, Grouped)):
        raise StateError(f"a matrix of {op.name}, which is not linear", {"operation": op.name})
    return SparseMap(same, same, np.ones(size[1]), size, zeros)


def _dense(op: Linear, size: tuple[int, int]) -> SparseMap:
    """Of a vector, or of every token."""
    outputs, inputs = op.weight.shape
    row, column = np.nonzero(op.weight) if size[1] > inputs else np.indices(op.weight.shape)
    row, column = row.reshape(-1), column.reshape(-1)
    token = np.arange(size[1] // inputs, dtype=np.int64)[:, None]
    values = np.tile(op.weight[row, column], len(token))
    rows, columns = (token * outputs + row).reshape(-1), (token * inputs + column).reshape(-1)
    return SparseMap(rows, columns, values, size, np.tile(op.bias, len(token)))


def _conv(op: Conv2d, shape: Shape, out: Shape) -> SparseMap:
    _, height, width = shape
    outputs, inner, kernel_rows, kernel_columns = op.weight.shape
    o, i = np.indices((outputs, inner))
    channel = o // (outputs // op.groups) * inner + i
    found: list[tuple[Indices, Indices, Reals]] = []
    for v in range(kernel_rows):
        y, from_y = _taps(v, out[1], height, op.stride[0], op.padding[0], op.dilation[0])
        for h in range(kernel_columns):
            x, from_x = _taps(h, out[2], width, op.stride[1], op.padding[1], op.dilation[1])
            there = (y[:, None] * out[2] + x).reshape(-1)
            here = (from_y[:, None] * width + from_x).reshape(-1)
            rows = (o[..., None] * (out[1] * out[2]) + there).reshape(-1)
            columns = (channel[..., None] * (height * width) + here).reshape(-1)
            found.append((rows, columns, np.repeat(op.weight[:, :, v, h].reshape(-1), len(there))))
    rows, columns, values = (np.concatenate(part) for part in zip(*found, strict=True))
    size = (int(np.prod(out)), int(np.prod(shape)))
    return SparseMap(rows, columns, values, size, np.repeat(op.bias, out[1] * out[2]))


def _taps(
    tap: int, places: int, size: int, stride: int, padding: int, dilation: int
) -> tuple[Indices, Indices]:
    """Places of a kernel along an axis whose tap falls into it, and where."""
    place = np.arange(places, dtype=np.int64)
    seen = place * stride + tap * dilation - padding
    inside = (seen >= 0) & (seen < size)
    return place[inside], seen[inside]


def chain_map(chain: Sequence[Op], shape: Shape) -> SparseMap:
    """One matrix for linear operations one after the other; of none the identity."""
    found = sparse_map(Flatten(), shape)
    for op in chain:
        step = sparse_map(op, shape)
        found = step if len(found.rows) == found.shape[1] and _identity(found) else step.after(found)
        shape = op.shape(shape)
    return found


def _identity(found: SparseMap) -> bool:
    return bool(
        found.shape[0] == found.shape[1]
        and np.array_equal(found.rows, found.columns)
        and (found.values == 1.0).all()
        and not found.bias.any()
    )


@dataclass(frozen=True, eq=False)
class SlotTransform:
    """A transform ready for slots: out = folded(sum_i blocks[o][i] in_i) + bias[o]."""

    blocks: list[list[Diagonals | None]]
    """[output][input]: diagonals by offset, vectors of `slots`; inputs are the ciphertexts of all tensors.
    Both in units of `each` slots."""
    slots: int
    """Of the product; inputs of fewer repeat."""
    copies: int
    """Parts of the result that are summed, at stride slots / copies."""
    bias: Reals
    """(outputs, slots / copies)."""
    each: int = 1
    """Neighbouring slots that have one number of a diagonal."""
    babies: int = 0
    """Baby steps, as `plan.Transform` has them."""

    def interleaved(self, images: int) -> SlotTransform:
        """The same of several samples in neighbouring slots."""
        bias = np.repeat(self.bias, images, axis=1)
        return replace(self, slots=self.slots * images, bias=bias, each=self.each * images)

    @property
    def offsets(self) -> list[int]:
        """Of all diagonals in slots, each once."""
        found = {k for row in self.blocks for block in row if block is not None for k in block}
        return sorted(k * self.each for k in found)

    @property
    def ends(self) -> tuple[int, int]:
        """Ciphertexts given and made."""
        return len(self.blocks[0]), len(self.blocks)

    def rotations(self, babies: int | None = None) -> list[int]:
        """That it needs keys for, with its baby steps or others."""
        inputs, outputs = self.ends
        return ckks.linear_transform_rotations(
            self.offsets, self.slots, baby_steps=self.babies if babies is None else babies,
            inputs=inputs, outputs=outputs,
        )  # fmt: skip

    def full(self) -> list[list[Diagonals | None]]:
        """The blocks in units of one slot."""
        if self.each == 1:
            return self.blocks
        return [
            [block and {k * self.each: np.repeat(d, self.each) for k, d in block.items()} for block in row]
            for row in self.blocks
        ]

    @property
    def diagonals(self) -> int:
        """Of all blocks."""
        return sum(len(block) for row in self.blocks for block in row if block is not None)


def slot_transform(
    maps: Sequence[SparseMap],
    inputs: Sequence[Layout],
    output: Layout,
    factors: Sequence[float],
    unit: float,
    outline: bool = False,
) -> SlotTransform:
    """Maps of tensors as one transform on slots.

    Parameters
    ----------
    maps : one an input tensor
    factors : what each map's values are multiplied by: the input's bound over the output's
    unit : what the biases are divided by: the output's bound
    outline : diagonals by their offsets alone, without numbers: enough to tell what the transform costs

    Raises UnsupportedError for capacities that differ.
    """
    if {layout.capacity for layout in inputs} != {output.capacity}:
        raise UnsupportedError(
            "layouts of different ciphertexts in one transform", {"slots": output.capacity}
        )
    slots = max(layout.slots for layout in (*inputs, output))
    to = output.positions()
    blocks: list[list[Diagonals | None]] = [[] for _ in range(output.ciphertexts)]
    bias = np.zeros(output.ciphertexts * output.slots)
    for found, layout, factor in zip(maps, inputs, factors, strict=True):
        bias[to] += found.bias / unit
        row, column = to[found.rows], layout.positions()[found.columns]
        for o in range(output.ciphertexts):
            for i in range(layout.ciphertexts):
                here = (row // output.slots == o) & (column // layout.slots == i)
                pair = (layout.slots, output.slots)
                entries = row[here] % pair[1], column[here] % pair[0], found.values[here] * factor
                blocks[o].append(_diagonals(*entries, pair, slots, outline))
    for block in blocks:
        if all(part is None for part in block):  # weights that are all zero
            block[0] = {0: np.zeros(slots)}
    return SlotTransform(blocks, slots, slots // output.slots, bias.reshape(output.ciphertexts, output.slots))


def _diagonals(
    rows: Indices, columns: Indices, values: Reals, sides: Pair, slots: int, outline: bool
) -> Diagonals | None:
    """sides: slots of input and output."""
    kept = values != 0.0
    rows, columns, values = rows[kept], columns[kept], values[kept]
    if not len(rows):
        return None
    given, made = sides
    if given > made:
        rows = rows + (columns - rows) % given // made * made
    modulus = min(given, made)
    offset = (columns - rows) % modulus
    used = np.zeros(modulus, dtype=np.int64)
    used[offset] = 1
    offsets, place = np.flatnonzero(used), np.cumsum(used) - 1
    if outline:
        return dict.fromkeys(map(int, offsets), np.zeros(0))
    table = np.bincount(place[offset] * slots + rows, values, len(offsets) * slots).reshape(-1, slots)
    return {int(k): table[at] for at, k in enumerate(offsets)}


def empty_slots(layout: Layout) -> NDArray[np.bool_]:
    """(ciphertexts, slots): those that hold no element of any sample."""
    empty = np.ones(layout.ciphertexts * layout.slots, dtype=bool)
    empty[layout.positions() + np.arange(layout.images)[:, None]] = False
    return empty.reshape(layout.ciphertexts, layout.slots)


def applied(transform: SlotTransform, inputs: Sequence[Reals]) -> list[Reals]:
    """The products in the clear, before copies are summed and without bias; inputs: (count, slots) each."""
    found = []
    for row in transform.blocks:
        total = np.zeros_like(inputs[0])
        for block, x in zip(row, inputs, strict=True):
            if block is not None and transform.each > 1 and transform.slots <= SQUARE * transform.each:
                parts = x.reshape(len(x), -1, transform.each)
                total += np.matmul(_square(block), parts).reshape(x.shape)
                continue
            _add_diagonals(total, block or {}, x, transform.each)
        found.append(total)
    return found


def _add_diagonals(total: Reals, block: Diagonals, x: Reals, each: int) -> None:
    """Row by row: what is read for each diagonal stays in a cache."""
    for made, row in zip(total, x, strict=True):
        parts, into = row.reshape(-1, each), made.reshape(-1, each)
        twice, found = np.concatenate([parts, parts]), np.empty_like(parts)
        for offset, diagonal in block.items():
            np.multiply(diagonal[:, None], twice[offset : offset + len(parts)], out=found)
            into += found


def _square(block: Diagonals) -> Reals:
    """Diagonals as a matrix."""
    size = len(next(iter(block.values())))
    row, found = np.arange(size), np.zeros((size, size))
    for offset, diagonal in block.items():
        found[row, (row + offset) % size] += diagonal
    return found
