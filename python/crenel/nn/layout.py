"""Which slot holds which element of a tensor.

Channels lie in planes of rows x columns slots. In a plane with a gap (v, h), element (y, x) of a channel is
at row y v and column x h, and v h channels interleave between them; further channels lie in further planes.
A vector has planes of one slot. What does not fit into one ciphertext goes on in the next.
Samples of a batch may interleave: each then has one of every few neighbouring slots.

A sequence, (tokens, features), has a plane of one column for each feature: token t of feature j is at slot
j T + t, T the power of two from the tokens on. Then a product with a weight moves by multiples of T alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError, StateError
from crenel.nn.ops import Affine, AvgPool2d, Conv2d, Flatten, Linear, Op, Pair, Place, Reals, Shape
from crenel.nn.sequences import Grouped, Pool, Roll, Weigh


@dataclass(frozen=True)
class Layout:
    """Where the elements of a tensor lie: a one-to-one map of them into the slots."""

    shape: Shape
    """Of the tensor."""
    size: tuple[int, int, int]
    """Channels, height, width: the tensor without its flattening."""
    gap: Pair
    plane: Pair
    """Rows and columns of a plane."""
    capacity: int
    """Slots that a ciphertext has at most: a power of two."""
    sequence: bool = False
    """Is the flat order (height, width, channels), that of (tokens, features)?"""
    groups: int = 1
    """Equal parts of the channels, each of which begins a ciphertext."""
    images: int = 1
    """Samples in neighbouring slots, a power of two: element e of sample i is at slot images * e + i.
    Diagonals, and the rotations of a transform, are as many as for one."""

    @classmethod
    def of(cls, shape: Shape, capacity: int) -> Layout:
        """The dense one: (channels, height, width) as planes, (tokens, features) as a sequence, all else as a
        vector."""
        if len(shape) == 2:
            tokens, features = shape
            plane = (1 << (tokens - 1).bit_length(), 1)
            return cls(shape, (features, tokens, 1), (1, 1), plane, capacity, sequence=True)
        if len(shape) == 3:
            return cls(shape, (shape[0], shape[1], shape[2]), (1, 1), (shape[1], shape[2]), capacity)
        return cls(shape, (int(np.prod(shape)), 1, 1), (1, 1), (1, 1), capacity)

    def padded(self) -> Layout:
        """In planes whose rows and columns are powers of two: planes that differ by a power of two share
        diagonals, because offsets count modulo one."""
        rows, columns = (1 << (side - 1).bit_length() for side in self.plane)
        return replace(self, plane=(rows, columns))

    def without_gaps(self, padded: bool) -> Layout:
        """In planes of its own size, or of the powers of two above it."""
        found = replace(self, gap=(1, 1), plane=(self.size[1], self.size[2]))
        return found.padded() if padded else found

    def after(self, op: Op) -> Layout:
        """Of a linear operation's result: strides widen the gap, so that hardly anything moves. Raises
        StateError for other operations."""
        shape = op.shape(self.shape)
        if isinstance(op, (Conv2d, AvgPool2d)):
            gap = (self.gap[0] * op.stride[0], self.gap[1] * op.stride[1])
            rows = max(self.plane[0], shape[1] * gap[0])
            columns = max(self.plane[1], shape[2] * gap[1])
            return Layout(shape, (shape[0], shape[1], shape[2]), gap, (rows, columns), self.capacity)
        if isinstance(op, Flatten):
            return replace(self, shape=shape)
        if isinstance(op, (Affine, Weigh)):
            return self
        if isinstance(op, (Grouped, Roll)):
            return replace(Layout.of(shape, self.capacity), groups=op.groups)
        if isinstance(op, Place) and len(shape) == 3:
            return replace(self, shape=shape, size=(shape[0], shape[1], shape[2]))
        if not isinstance(op, (Linear, Place, Pool)):
            raise StateError(f"a layout after {op.name}, which is not linear", {"operation": op.name})
        return Layout.of(shape, self.capacity)

    @property
    def total(self) -> int:
        """Slots of all planes."""
        planes = -(-self.size[0] // (self.gap[0] * self.gap[1]))
        return planes * self.plane[0] * self.plane[1]

    @property
    def slots(self) -> int:
        """Of each ciphertext: the least power of two that holds a group, or the capacity."""
        least = 1 << (self.total // self.groups - 1).bit_length()
        return min(self.capacity, least * self.images)

    def alone(self) -> Layout:
        """Of one of the samples in neighbouring slots."""
        return replace(self, images=1, capacity=self.capacity // self.images)

    def rows(self, samples: int) -> int:
        """Vectors for so many samples."""
        return -(-samples // self.images)

    @property
    def ciphertexts(self) -> int:
        """How many the tensor takes."""
        return self.groups * -(-(self.total // self.groups * self.images) // self.slots)

    def positions(self) -> NDArray[np.int64]:
        """Of each element of the first sample, in the order of the flat tensor: ciphertext * slots + slot."""
        c, y, x = np.indices(self.size)
        (v, h), (rows, columns) = self.gap, self.plane
        plane, within = c // (v * h), c % (v * h)
        slot = plane * (rows * columns) + (y * v + within // h) * columns + x * h + within % h
        if self.groups > 1:
            part = self.total // self.groups
            slot = slot // part * (self.ciphertexts // self.groups * self.slots) + slot % part
        if self.sequence:
            slot = slot.transpose(1, 2, 0)
        return np.asarray(slot.reshape(-1) * self.images, dtype=np.int64)

    def pack(self, tensors: Reals) -> Reals:
        """(count, *shape) to (ciphertexts, rows, slots), zeros elsewhere; the last sample fills a row, so
        that all values are of samples. Raises ParameterError."""
        if tensors.shape[1:] != self.shape:
            raise ParameterError(
                f"tensors of shape {tensors.shape[1:]}, expected {self.shape}",
                {"shape": list(tensors.shape[1:])},
            )
        rows, positions = self.rows(len(tensors)), self.positions()
        flat = np.zeros((rows, self.ciphertexts * self.slots))
        for image in range(self.images):
            whose = np.minimum(np.arange(rows) * self.images + image, len(tensors) - 1)
            flat[:, positions + image] = tensors[whose].reshape(rows, -1)
        return np.ascontiguousarray(flat.reshape(rows, self.ciphertexts, self.slots).transpose(1, 0, 2))

    def unpack(self, slots: Reals, count: int | None = None) -> Reals:
        """The inverse of `pack`; other slots are not read. count: of samples, default as many as fit."""
        rows = slots.shape[1]
        flat = slots.transpose(1, 0, 2).reshape(rows, -1)
        where = self.positions() + np.arange(self.images)[:, None]
        return np.asarray(flat[:, where].reshape(rows * self.images, *self.shape)[:count])

    def same_places(self, other: Layout) -> bool:
        """Do elements of equal flat index lie in equal slots?"""
        return (
            replace(self, shape=other.shape) == other
            or (self.size == other.size and self.slots == other.slots)
            and bool(np.array_equal(self.positions(), other.positions()))
        )

    def __str__(self) -> str:
        """As ``16x8x8 gap 2x2 planes 16x16, 1 x 1024 slots``."""
        if self.images > 1:
            return f"{self.images} samples of {self.alone()}"
        if self.sequence:
            tokens, features = self.size[1], self.size[0]
            return f"{tokens} tokens x {features}, {self.ciphertexts} x {self.slots} slots"
        size = "x".join(map(str, self.size)) if self.size[1:] != (1, 1) else str(self.size[0])
        planes = f" gap {self.gap[0]}x{self.gap[1]} planes {self.plane[0]}x{self.plane[1]}"
        return f"{size}{planes if self.plane != (1, 1) else ''}, {self.ciphertexts} x {self.slots} slots"
