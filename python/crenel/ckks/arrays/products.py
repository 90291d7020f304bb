"""Products with matrices."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from crenel.ckks.arrays.layout import Layout, Numbers, power_of_two
from crenel.ckks.arrays.packed import P, bound_alike
from crenel.ckks.arrays.sums import shrunk, summed
from crenel.ckks.arrays.vector import Vector, each, join, most_slots, take, transform, widened
from crenel.errors import ParameterError, UnsupportedError


def times(a: complex | None, b: complex | None) -> complex | None:
    """What padding holds in a product: nothing is known only where neither is 0."""
    if a == 0 or b == 0:
        return 0.0
    return None if a is None or b is None else a * b


def matmul(a: P, b: P | Numbers) -> P:
    """a @ b."""
    if not isinstance(b, np.ndarray):
        a, b = bound_alike(a, b)
    if not a.ndim or not b.ndim or b.ndim > 2 or a.shape[-1] != b.shape[0]:
        raise ParameterError(
            f"product of shapes {a.shape} and {b.shape}: the last axis of the first is not the first of the "
            "other",
            {"shape_a": list(a.shape), "shape_b": list(b.shape)},
        )
    if 0 in b.shape:
        raise ParameterError(
            f"product of shapes {a.shape} and {b.shape}: arrays have at least one number",
            {"shape_a": list(a.shape), "shape_b": list(b.shape)},
        )
    if b.ndim == 1:
        return (a * b).sum(axis=a.ndim - 1)
    if isinstance(b, np.ndarray):
        return _across(a, b) if a._transposed else _along(a, b)
    if a.ndim == 1:
        return (b.T * a).sum(axis=1)
    raise UnsupportedError(
        "product of two encrypted matrices: multiply by one vector at a time, as a @ b[:, j]",
        {"shape_a": list(a.shape), "shape_b": list(b.shape)},
    )


def _along(a: P, matrix: Numbers) -> P:
    """The axis that goes lies within segments."""
    if a._layout.group > 1:
        return _segments(a, matrix)
    data, layout, m = a._vector(), a._layout, matrix.shape[1]
    width = min(power_of_two(m), most_slots(data))
    slots, p = max(layout.width, width), layout.pieces
    out = []
    for q in range(0, m, width):
        terms = []
        for k in range(p):
            block = matrix[k * layout.width : (k + 1) * layout.width, q : q + width]
            piece = data if p == 1 else _pieces(data, layout, k)
            terms.append(transform(widened(piece, slots), _wrapped(block, slots, width)))
        # What lies `width` apart belongs together: few diagonals, and a sum of few steps.
        out.append(shrunk(summed(reduce(add, terms), slots // width, width), width))
    if len(out) > 1:
        out = [take(part, r, 1) for r in range(layout.rows) for part in out]
    result = Layout(layout.rows, m, width, 1)
    return type(a)(join(out), (*a.shape[:-1], m), result)


def _pieces(data: Vector, layout: Layout, k: int) -> Vector:
    """Piece k of every row."""
    return each(data, layout.rows, lambda r: take(data, r * layout.pieces + k, 1))


def _wrapped(block: Numbers, slots: int, width: int) -> dict[int, Numbers]:
    """`width` diagonals: slot j of diagonal d is the entry in row j + d and column j mod `width`."""
    padded = np.zeros((slots, width), dtype=block.dtype)
    padded[: block.shape[0], : block.shape[1]] = block
    j = np.arange(slots)
    return {d: padded[(j + d) % slots, j % width] for d in range(width)}


def _segments(a: P, matrix: Numbers) -> P:
    """The same matrix in every segment of a vector."""
    a = a._cleaned() if a._pad is not None else a
    data, layout, m = a._vector(), a._layout, matrix.shape[1]
    width = max(layout.width, power_of_two(m))
    slots = width * layout.group
    if width > layout.width and (layout.batch > 1 or slots > most_slots(data)):
        raise ParameterError(
            f"rows of {m} in {layout.group} segments of {layout.width} slots: there is no room; pack the "
            "array as 'columns', 'batch' or 'features'",
            {"columns": m, "width": layout.width, "packing": a.packing},
        )
    rows = layout.group if layout.batch > 1 else layout.rows
    diagonals: dict[int, Numbers] = {}
    for s in range(rows if width > layout.width else 1):
        for delta in range(1 - m, layout.columns):
            i = np.arange(max(0, -delta), min(m, layout.columns - delta))
            key = (s * (layout.width - width) + delta) % slots
            diagonal = diagonals.setdefault(key, np.zeros(slots, dtype=matrix.dtype))
            diagonal[s * width + i] = matrix[i + delta, i]
    if width == layout.width:
        used = np.arange(slots) // width < rows
        diagonals = {k: np.tile(d[:width], layout.group) * used for k, d in diagonals.items()}
    pad = None if a._pad is None and layout.padded_rows and layout.batch > 1 else 0.0
    result = Layout(layout.rows, m, width, layout.group)
    return type(a)(transform(widened(data, slots), diagonals), (*a.shape[:-1], m), result, False, pad)


def _across(a: P, matrix: Numbers) -> P:
    """The axis that goes lies across segments: a segment is a column."""
    if a._layout.group == 1 and a._layout.batch > 1:
        return _vectors(a, matrix)
    data, layout, m = a._vector(), a._layout, matrix.shape[1]
    width, g = layout.width, layout.group
    group = min(power_of_two(m), most_slots(data) // width)
    n = max(g, group)  # segments
    used = np.arange(width) < layout.columns
    s, out = np.arange(n), []
    for q in range(0, m, group):
        terms = []
        for b in range(layout.batch):
            block = matrix[b * g : (b + 1) * g, q : q + group]
            padded = np.zeros((n, group), dtype=matrix.dtype)
            padded[: block.shape[0], : block.shape[1]] = block
            diagonals = {
                d * width: np.outer(padded[(s + d) % n, s % group], used).ravel() for d in range(group)
            }
            terms.append(transform(widened(take(data, b, 1), n * width), diagonals))
        total = summed(reduce(add, terms), n // group, group * width)
        out.append(shrunk(total, group * width))
    result = Layout(m, layout.columns, width, group)
    return type(a)(join(out), (*a.shape[:-1], m), result, True)


def _vectors(a: P, matrix: Numbers) -> P:
    """A column to a vector, or to several: combinations of vectors, without a rotation."""
    a = a._cleaned() if a._pad is not None else a
    data, layout, p = a._vector(), a._layout, a._layout.pieces

    def column(m: int) -> Vector:
        factors = [complex(x) for x in matrix[:, m]]
        real = all(x.imag == 0.0 for x in factors)
        terms = [take(data, c * p, p) * (x.real if real else x) for c, x in enumerate(factors) if x]
        return reduce(add, terms) if terms else take(data, 0, p) * 0.0

    result = Layout(matrix.shape[1], layout.columns, layout.width, 1)
    out = join([column(m) for m in range(matrix.shape[1])])
    return type(a)(out, (*a.shape[:-1], matrix.shape[1]), result, True, None if a._pad is None else 0.0)
