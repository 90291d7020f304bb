"""Sums and means along axes."""

from __future__ import annotations

from crenel.arguments import whole
from crenel.ckks.arrays.layout import Layout
from crenel.ckks.arrays.packed import P, Packed
from crenel.ckks.arrays.vector import Vector, each, fold, take
from crenel.errors import ParameterError


def checked_axis(a: Packed, axis: object) -> int:
    """In [0, ndim). Raises TypeError for what is no integer, ParameterError for another."""
    found = whole("axis", axis)
    if not -a.ndim <= found < a.ndim:
        raise ParameterError(f"axis {found} of an array of {a.ndim} axes", {"axis": found, "ndim": a.ndim})
    return found % a.ndim


def summed(data: Vector, count: int, stride: int = 1) -> Vector:
    """As Operand.sum."""
    return data if count == 1 else data.sum(count, stride)


def shrunk(data: Vector, slots: int) -> Vector:
    """Vectors that repeat after `slots` slots, as vectors of as many."""
    return data if data.slots == slots else data.with_slots(slots, repeating=True)


def total(a: P, axis: int | None, factor: float | None) -> P:
    """Sum along an axis (None: of all) times the factor, where there is one."""
    if axis is not None:
        axis = checked_axis(a, axis)
    if a._pad is None and factor is not None:  # the mask and the factor in one product
        a, factor = a._like(a._vector() * (a._layout.mask() * factor), pad=0.0), None
    a = a._cleaned()
    data, layout, kind = a._vector(), a._layout, type(a)
    if axis is None or a.ndim == 1:
        if layout.slots > 1:
            data = shrunk(summed(data, layout.slots), 1)
        out = kind(fold(data, layout.batch), (), Layout(1, 1, 1, 1))
    else:
        shape = a.shape[:axis] + a.shape[axis + 1 :]
        if (axis == 0) != a._transposed:
            out = kind(_over_rows(data, layout), shape, Layout(1, layout.columns, layout.width, 1))
        else:
            vectors, packed, pad = _along_rows(data, layout)
            out = kind(vectors, shape, packed, True, pad)
    return out if factor is None else out * factor


def _over_rows(data: Vector, layout: Layout) -> Vector:
    """Segment 0 is the sum of all segments, repeating."""
    data = shrunk(summed(data, layout.group, layout.width), layout.width)
    return fold(data, layout.batch, layout.pieces)


def _along_rows(data: Vector, layout: Layout) -> tuple[Vector, Layout, complex | None]:
    """The first slot of each segment is its sum; the others are anything, but where a segment is a vector."""
    data = summed(data, layout.width)
    if layout.group > 1:
        return data, Layout(layout.rows, 1, layout.width, layout.group), None
    if layout.pieces > 1:
        p = layout.pieces
        data = each(data, layout.rows, lambda r: fold(take(data, r * p, p), p))
    return shrunk(data, 1), Layout(layout.rows, 1, 1, 1), 0.0
