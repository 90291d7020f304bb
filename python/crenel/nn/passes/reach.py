"""Why there is no placement: the first operation that no level reaches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crenel.errors import FieldValue, UnsupportedError
from crenel.nn.passes import minplus
from crenel.nn.passes.dag import Core
from crenel.nn.passes.pieces import Piece, Workshop
from crenel.nn.passes.structure import Bootstrap, Chain, Cut, Matrix, Op, Structure, leaves

Levels = NDArray[np.bool_]


class _Blocked(Exception):
    """At this operation, where its input has at most this level."""

    def __init__(self, op: Op, highest: int) -> None:
        super().__init__(op.name)
        self.op, self.highest = op, highest


def blocked(core: Core, chain: Chain) -> UnsupportedError:
    """The error for a program without a placement. Levels are followed forwards, each branch by itself."""
    shop = Workshop(minplus.drops(chain))
    at = np.arange(chain.top + 1)
    reached = dict.fromkeys(core.inputs, at <= chain.first)
    waiting = list(core.edges)
    highest = max((b.output for e in core.edges for b in _bootstraps(e.structure)), default=None)
    try:
        while waiting:
            heads = {edge.head for edge in waiting}
            edge = next(e for e in waiting if e.tail not in heads)
            waiting.remove(edge)
            piece = shop.piece(edge.structure, lead=edge.tail not in core.joins)
            here = _through(piece, reached[edge.tail], shop)
            reached[edge.head] = reached.get(edge.head, np.ones_like(here)) & here
    except _Blocked as found:
        return _error(found.op, found.highest, chain, highest)
    low = max((int(np.flatnonzero(reached[n]).max(initial=-1)) for n in core.results), default=-1)
    return UnsupportedError(
        f"the levels of branches that meet, or of the result, do not agree: it can have level {low} at "
        f"most, and {chain.result} is asked for",
        {"highest": low, "expected": chain.result},
    )


def _bootstraps(structure: Structure) -> list[Bootstrap]:
    return [b for leaf in leaves(structure) if isinstance(leaf, Cut) for b in leaf.bootstraps]


def _through(piece: Piece, levels: Levels, shop: Workshop) -> Levels:
    """Levels behind a piece that can be reached from these before it."""
    if piece.kind == "fork":
        meet = np.ones_like(levels)
        for part in piece.parts:
            meet &= _through(part, levels, shop)
        return meet
    if piece.kind == "series":
        for part, gap in zip(piece.parts, piece.gaps[:-1], strict=True):
            levels = _through(part, _step(levels, shop.drop) if gap else levels, shop)
        return _step(levels, shop.drop) if piece.gaps[-1] else levels
    behind = _step(levels, piece.matrix)
    if isinstance(piece.leaf, Op) and not behind.any():
        raise _Blocked(piece.leaf, int(np.flatnonzero(levels).max(initial=-1)))
    return behind


def _step(levels: Levels, matrix: Matrix) -> Levels:
    out: Levels = np.asarray(np.isfinite(matrix[levels]).any(axis=0))
    return out


def _error(op: Op, highest: int, chain: Chain, best: int | None) -> UnsupportedError:
    fields: dict[str, FieldValue] = {"name": op.name, "depth": op.depth, "highest": highest, "top": chain.top}
    if op.depth > chain.top:
        return UnsupportedError(
            f"{op.name} consumes {op.depth} levels, and the parameters have {chain.top}: take parameters "
            "with more levels, or a polynomial of a lower degree",
            fields,
        )
    said = f"{op.name} needs level {op.depth}, and its input can have level {highest} at most"
    if highest >= op.depth:  # levels are there, but have no finite price
        said = f"{op.name} is allowed at no level up to {highest}, the highest that its input can have"
    if best is None:
        return UnsupportedError(f"{said}: no bootstrap is possible anywhere", fields)
    return UnsupportedError(
        f"{said}: no bootstrap before it leads there (the best one ends at level {best})",
        fields | {"output": best},
    )
