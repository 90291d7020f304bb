"""Broadcasting, ranges, repacking, concatenation: numbers that change their places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, index

import numpy as np

from crenel.arguments import whole
from crenel.ckks.arrays.layout import Integers, Layout, layout_of
from crenel.ckks.arrays.packed import P, bound_alike
from crenel.ckks.arrays.sums import shrunk, summed
from crenel.ckks.arrays.vector import Vector, each, join, most_slots, moved, repeat, take, widened
from crenel.errors import ParameterError

Key = int | slice


def _positions(layout: Layout, transposed: bool) -> Integers:
    """Of the elements of the matrix, not of what is packed."""
    p = layout.positions()
    return p.T if transposed else p


def moved_to(a: P, source: Integers, layout: Layout, transposed: bool, shape: tuple[int, ...]) -> P:
    """The elements at the positions `source`, in another layout. Level l -> l - 1."""
    target = _positions(layout, transposed).ravel()
    slots = max(a._layout.slots, layout.slots)
    target = target // layout.slots * slots + target % layout.slots
    data = join(moved(a._vector(), source.ravel(), target, slots))
    data = shrunk(summed(data, slots // layout.slots, layout.slots), layout.slots)
    return type(a)(data, shape, layout, transposed)


def relaid(a: P, layout: Layout, transposed: bool) -> P:
    """The same array in another layout."""
    if (a._layout, a._transposed) == (layout, transposed):
        return a
    return moved_to(a, _positions(a._layout, a._transposed), layout, transposed, a.shape)


def repacked(a: P, packing: str) -> P:
    """The same array in a named packing."""
    return relaid(a, *layout_of(a.shape, packing, most_slots(a._vector())))


def broadcast(a: P, shape: tuple[int, ...], like: tuple[Layout, bool] | None = None) -> P:
    """As numpy.broadcast_to, in the layout `like` where there is a choice."""
    if a.shape == shape:
        return a
    layout, transposed = like or layout_of(shape, None, most_slots(a._vector()))
    if a.size == 1:
        return _spread(a, shape, layout, transposed)
    if a.ndim == 2 and a.shape[1] == 1:
        flat = type(a)(a._vector(), (a.shape[0],), a._layout, not a._transposed, a._pad)
        return broadcast(flat, shape[::-1], (layout, not transposed)).T
    if a.ndim == 2:
        a = type(a)(a._vector(), (a.shape[1],), a._layout, a._transposed, a._pad)
    return _columns(a, shape, layout) if transposed else _rows(a, shape, layout)


def _spread(a: P, shape: tuple[int, ...], layout: Layout, transposed: bool) -> P:
    """One number everywhere."""
    a = a._cleaned()
    data = shrunk(summed(a._vector(), a._layout.slots), 1)
    return type(a)(repeat(widened(data, layout.slots), layout.batch), shape, layout, transposed, None)


def _rows(a: P, shape: tuple[int, ...], layout: Layout) -> P:
    """A vector in every row: more slots repeat."""
    row = Layout(1, layout.columns, layout.width, 1)
    wide = a._layout.width
    # What is narrower repeats, but not in pieces: they would stay vectors of their own.
    if (
        a._transposed
        or a._layout.group > 1
        or wide > layout.width
        or (wide < layout.width and a._layout.pieces > 1)
    ):
        a = relaid(a, row, False)
    same = a._layout == row and not layout.padded_rows
    data = repeat(widened(a._vector(), layout.slots), layout.batch // layout.pieces)
    return type(a)(data, shape, layout, False, a._pad if same else None)


def _columns(a: P, shape: tuple[int, ...], layout: Layout) -> P:
    """A vector whose element c fills segment c."""
    first = Layout(layout.rows, 1, layout.width, layout.group if layout.pieces == 1 else 1)
    a = relaid(a, first, True)._cleaned()
    data = summed(a._vector(), layout.width, -1)
    if layout.pieces > 1:
        every = data
        data = each(every, layout.rows, lambda c: repeat(take(every, c, 1), layout.pieces))
    return type(a)(data, shape, layout, True, None)


def common_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that both broadcast to, as NumPy has it."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ParameterError(
            f"shapes {a} and {b} do not broadcast", {"shape_a": list(a), "shape_b": list(b)}
        ) from None


def aligned(a: P, b: P) -> tuple[P, P]:
    """Both of one shape and layout, and with an evaluator."""
    a, b = bound_alike(a, b)
    shape = common_shape(a.shape, b.shape)
    model = a if a.shape == shape else b if b.shape == shape else None
    like = (
        (model._layout, model._transposed)
        if model is not None
        else layout_of(shape, None, most_slots(a._vector()))
    )
    a, b = broadcast(a, shape, like), broadcast(b, shape, like)
    if (a._layout, a._transposed) == (b._layout, b._transposed):
        return a, b
    plain = [
        x for x in (a, b) if x.ndim == 1 and not x._transposed and x._layout.batch == x._layout.group == 1
    ]
    if len(plain) == 2:
        wide = Layout(1, a.size, max(a._layout.width, b._layout.width), 1)
        return _rows_alone(a, wide), _rows_alone(b, wide)
    return a, relaid(b, a._layout, a._transposed)


def _rows_alone(a: P, layout: Layout) -> P:
    return a if a._layout == layout else _rows(a, a.shape, layout)


def _indices(key: object, size: int, axis: int) -> tuple[Integers, bool]:
    """The indices, and whether the axis stays."""
    if isinstance(key, slice):
        found = np.arange(size)[key]
        if not found.size:
            raise ParameterError(
                f"an empty range {key} of {size}: arrays have at least one number", {"key": str(key)}
            )
        return found, True
    try:
        i = index(key)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"indices are integers and ranges, got {type(key).__name__}") from None
    if not -size <= i < size:
        raise IndexError(f"index {i} of axis {axis}, which has {size}")
    return np.array([i % size]), False


def item(a: P, key: Key | tuple[Key, ...]) -> P:
    """a[key]."""
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) > a.ndim:
        raise IndexError(f"{len(keys)} indices of an array of {a.ndim} axes")
    if not a.ndim:
        return a
    full = (*keys, *[slice(None)] * (a.ndim - len(keys)))
    found = [_indices(k, n, axis) for axis, (k, n) in enumerate(zip(full, a.shape, strict=True))]
    shape = tuple(len(i) for i, stays in found if stays)
    rows, columns = [np.zeros(1, dtype=np.int64), *(i for i, _ in found)][-2:]
    if a._transposed:
        rows, columns = columns, rows
    layout, p = a._layout, a._layout.pieces
    whole = len(columns) == layout.columns and np.array_equal(columns, np.arange(layout.columns))
    run = np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows)))
    transposed = a._transposed if len(shape) == 2 else len(rows) > 1
    if whole and run and (layout.group == 1 or len(rows) == layout.rows):
        packed = Layout(len(rows), layout.columns, layout.width, layout.group)
        data = take(a._vector(), int(rows[0]) * p, len(rows) * p) if layout.group == 1 else a._vector()
        return type(a)(data, shape, packed, transposed, a._pad)
    source = layout.positions()[np.ix_(rows, columns)]
    if len(shape) == 2:
        group = layout.group if len(columns) <= layout.width else 1
        packed = Layout(len(rows), len(columns), layout.width, group)
        return moved_to(a, source.T if a._transposed else source, packed, a._transposed, shape)
    packed = Layout(1, source.size, layout.slots, 1)
    return moved_to(a, source, packed, False, shape)


def concatenate(arrays: Sequence[P], axis: int) -> P:
    """Along an axis."""
    if not arrays:
        raise ParameterError("concatenation of no arrays", {"arrays": 0})
    first, axis = arrays[0], whole("axis", axis)
    if not -first.ndim <= axis < first.ndim:
        raise ParameterError(f"axis {axis} of arrays of {first.ndim} axes", {"axis": axis})
    axis %= first.ndim
    for k, a in enumerate(arrays):
        if a.ndim != first.ndim or any(
            m != n for i, (m, n) in enumerate(zip(a.shape, first.shape, strict=True)) if i != axis
        ):
            raise ParameterError(
                f"array {k} has shape {a.shape}, the first has {first.shape}: they differ beside axis {axis}",
                {"array": k, "shape": list(a.shape), "expected": list(first.shape)},
            )
    if len(arrays) == 1:
        return first
    for a in arrays[1:]:  # one that has an evaluator gives it to all
        first = bound_alike(first, a)[0]
    arrays = [bound_alike(a, first)[0] for a in arrays]
    length = sum(a.shape[axis] for a in arrays)
    shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
    for way in (_joined(arrays, axis, shape), _shifted(arrays, shape)):
        if way is not None:
            return way
    return _placed(arrays, axis, shape)


def _joined(arrays: Sequence[P], axis: int, shape: tuple[int, ...]) -> P | None:
    """Whole vectors, one after the other."""
    first = arrays[0]
    layout = first._layout
    over_rows = (axis == 0) != first._transposed if first.ndim == 2 else first._transposed
    same = all(
        a._layout.group == 1
        and (a._layout.columns, a._layout.width) == (layout.columns, layout.width)
        and a._transposed == first._transposed
        for a in arrays
    )
    if not (over_rows and same):
        return None
    if len({a._pad for a in arrays}) > 1:
        arrays = [a if a._pad is None else a._cleaned() for a in arrays]
    pad = first._pad if len({a._pad for a in arrays}) == 1 else None
    packed = Layout(sum(a._layout.rows for a in arrays), layout.columns, layout.width, 1)
    return type(first)(join([a._vector() for a in arrays]), shape, packed, first._transposed, pad)


def _shifted(arrays: Sequence[P], shape: tuple[int, ...]) -> P | None:
    """Vectors that fit into one of them, rotated and added."""
    first = arrays[0]
    layout = first._layout
    fits = all(
        a.ndim == 1 and not a._transposed and a._layout.batch == a._layout.group == 1
        and a._layout.width == layout.width
        for a in arrays
    )  # fmt: skip
    if not fits or shape[0] > layout.width:
        return None
    parts, at = [], 0
    for a in arrays:
        data = a._cleaned()._vector()
        parts.append(data.rotate(-at) if at else data)
        at += a.size
    return type(first)(reduce(add, parts), shape, Layout(1, shape[0], layout.width, 1))


def _placed(arrays: Sequence[P], axis: int, shape: tuple[int, ...]) -> P:
    """Number by number."""
    first = arrays[0]
    most = max(most_slots(a._vector()) for a in arrays)
    packing = first.packing if first.ndim == 2 else "rows"
    layout, transposed = layout_of(shape, packing, most)
    slots = max(layout.slots, *(a._layout.slots for a in arrays))
    where = np.split(
        _positions(layout, transposed).reshape(shape),
        np.cumsum([a.shape[axis] for a in arrays])[:-1],
        axis=axis,
    )
    vectors: dict[int, list[Vector]] = {}
    for a, target in zip(arrays, where, strict=True):
        t = target.ravel()
        t = t // layout.slots * slots + t % layout.slots
        source = _positions(a._layout, a._transposed).ravel()
        for k in sorted({int(v) for v in t // slots}):
            here = t // slots == k
            vectors.setdefault(k, []).append(moved(a._vector(), source[here], t[here] - k * slots, slots)[0])
    data = join([reduce(add, vectors[k]) for k in sorted(vectors)])
    data = shrunk(summed(data, slots // layout.slots, layout.slots), layout.slots)
    return type(first)(data, shape, layout, transposed)
