"""Pieces of a program with their (min, +) matrices: inside out to make them, outside in to ask what else
would do, and along the levels chosen to say what happens where (docs/theory/placement.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crenel.errors import ParameterError
from crenel.nn.passes import minplus
from crenel.nn.passes.structure import Bootstrap, Cut, Matrix, Op, Parallel, Series, Structure, leaves

Choices = tuple[Bootstrap | None, ...]


@dataclass(frozen=True)
class Step:
    """What happens to a tensor: an operation, a bootstrap, or levels given up.

    name : of the operation or cut; of levels given up the operation or bootstrap that they stand before, the
        first of several behind a fork, empty at the end
    after : what made the tensor, an operation or bootstrap; empty where it is the program's input
    bootstrap : which one, of a bootstrap
    """

    kind: Literal["op", "bootstrap", "adjust"]
    name: str
    level_in: int
    level_out: int
    price: float
    after: str = ""
    bootstrap: str = ""


@dataclass(frozen=True)
class Piece:
    """An operation, a cut, a series or a fork. `parts` are the structure's; of a fork each is a series.

    gaps : of a series, whether levels may be given up before each part and, last, at the end
    """

    kind: Literal["op", "cut", "series", "fork"]
    matrix: Matrix
    parts: tuple[Piece, ...] = ()
    gaps: tuple[bool, ...] = ()
    leaf: Op | Cut | None = None


class Workshop:
    """Makes pieces and walks through them.

    drop : price of levels given up, from row to column
    forced : choices that are left at cuts, by name; others have all
    """

    def __init__(self, drop: Matrix, forced: Mapping[str, Choices] | None = None) -> None:
        self.drop, self.size = drop, drop.shape[0]
        self.forced = forced or {}

    def piece(self, structure: Structure, *, lead: bool = True) -> Piece:
        """A structure as a series. lead : levels may be given up before its first part.

        Raises ParameterError for forks without branches and for those that no operation joins.
        """
        parts: list[Piece] = []
        for part in _flat(structure):
            if parts and parts[-1].kind == "fork" and not isinstance(part, Op):
                raise _unjoined(part)
            parts.append(self._part(part))
        behind = [lead, *(part.kind != "fork" for part in parts)]
        matrices = self._matrices(parts, behind)
        return Piece("series", minplus.prefixes(matrices, self.size)[-1], tuple(parts), tuple(behind))

    def outsides(self, piece: Piece, outside: Matrix) -> Iterator[tuple[Cut, Matrix]]:
        """For each cut the price of all the rest, by the levels before and behind the cut, where
        `outside` is that of all but the piece."""
        if isinstance(piece.leaf, Cut):
            yield piece.leaf, outside
        elif piece.kind == "series":
            matrices = self._matrices(list(piece.parts), list(piece.gaps))
            before = minplus.prefixes(matrices, self.size)
            after = minplus.suffixes(matrices, self.size)
            for place, part in zip(self._places(piece), piece.parts, strict=True):
                if part.kind != "op":
                    rest = minplus.around(before[place], outside, after[place + 1])
                    yield from self.outsides(part, rest)
        elif piece.kind == "fork":
            for k, part in enumerate(piece.parts):
                others = [p.matrix for m, p in enumerate(piece.parts) if m != k]
                yield from self.outsides(part, outside + minplus.total(others, self.size))

    def steps(self, piece: Piece, i: int, j: int, after: str = "", before: str = "") -> Iterator[Step]:
        """What happens between level i and level j, in order; the levels must be a way through. `after` and
        `before` are the elements around the piece."""
        if isinstance(piece.leaf, Op):
            yield Step("op", piece.leaf.name, i, j, float(piece.matrix[i, j]), after)
        elif isinstance(piece.leaf, Cut):
            boot = minplus.chosen(piece.leaf, i, j, self.forced.get(piece.leaf.name))
            if boot is not None:
                price = boot.price + piece.leaf.penalty
                yield Step("bootstrap", piece.leaf.name, i, j, price, after, boot.name)
        elif piece.kind == "series":
            yield from self._series_steps(piece, i, j, after, before)
        else:
            for part in piece.parts:
                yield from self.steps(part, i, j, after, before)

    def _series_steps(self, piece: Piece, i: int, j: int, after: str, before: str) -> Iterator[Step]:
        matrices, levels, parts = self._way(piece, i, j)
        coming = [
            *(self._first(part, *levels[k : k + 2]) if part else "" for k, part in enumerate(parts)),
            before,
        ]
        for k, (matrix, part) in enumerate(zip(matrices, parts, strict=True)):
            a, b = levels[k], levels[k + 1]
            name = next((name for name in coming[k + 1 :] if name), "")
            if part is None:
                if a != b:
                    yield Step("adjust", name, a, b, float(matrix[a, b]), after)
                continue
            for step in self.steps(part, a, b, after, name):
                yield step
                after = step.name if step.kind != "adjust" and part.kind != "fork" else after

    def _way(self, piece: Piece, i: int, j: int) -> tuple[list[Matrix], list[int], list[Piece | None]]:
        """Of a series: its matrices, the levels before each and behind the last, and the part of each."""
        matrices = self._matrices(list(piece.parts), list(piece.gaps))
        places = dict(zip(self._places(piece), piece.parts, strict=True))
        return matrices, _levels(matrices, i, j), [places.get(k) for k in range(len(matrices))]

    def _first(self, piece: Piece, i: int, j: int) -> str:
        """Name of the first operation or bootstrap between these levels; empty where there is none."""
        if isinstance(piece.leaf, Cut):
            taken = minplus.chosen(piece.leaf, i, j, self.forced.get(piece.leaf.name))
            return piece.leaf.name if taken else ""
        if piece.leaf is not None:
            return piece.leaf.name
        if piece.kind == "fork":
            return next((name for part in piece.parts if (name := self._first(part, i, j))), "")
        _, levels, parts = self._way(piece, i, j)
        firsts = (self._first(part, *levels[k : k + 2]) for k, part in enumerate(parts) if part)
        return next((name for name in firsts if name), "")

    def _part(self, structure: Op | Cut | Parallel) -> Piece:
        if isinstance(structure, Op):
            return Piece("op", minplus.op_matrix(structure, self.size), leaf=structure)
        if isinstance(structure, Cut):
            choices = self.forced.get(structure.name)
            return Piece("cut", minplus.cut_matrix(structure, self.size, choices), leaf=structure)
        if not structure.branches:
            raise ParameterError("a fork without branches", {"branches": 0})
        branches = tuple(self.piece(branch) for branch in structure.branches)
        return Piece("fork", minplus.total([b.matrix for b in branches], self.size), branches)

    def _matrices(self, parts: list[Piece], gaps: list[bool]) -> list[Matrix]:
        out: list[Matrix] = []
        for part, gap in zip(parts, gaps[:-1], strict=True):
            out += [self.drop] * gap + [part.matrix]
        return out + [self.drop] * gaps[-1]

    @staticmethod
    def _places(piece: Piece) -> list[int]:
        """Where in the list of matrices each part is."""
        out, place = [], -1
        for gap in piece.gaps[:-1]:
            place += 1 + gap
            out.append(place)
        return out


def _flat(structure: Structure) -> Iterator[Op | Cut | Parallel]:
    """The parts of a series, those of series inside it too."""
    if isinstance(structure, Series):
        for part in structure.parts:
            yield from _flat(part)
    else:
        yield structure


def _levels(matrices: list[Matrix], i: int, j: int) -> list[int]:
    """Levels before each matrix and behind the last one, of the cheapest way from i to j."""
    row = np.full(matrices[0].shape[0] if matrices else i + 1, np.inf)
    row[i] = 0.0
    rows = [row]
    for matrix in matrices:
        rows.append((rows[-1][:, None] + matrix).min(axis=0))
    levels = [j]
    for row, matrix in zip(rows[-2::-1], reversed(matrices), strict=True):
        levels.append(int((row + matrix[:, levels[-1]]).argmin()))
    return levels[::-1]


def _unjoined(part: Cut | Parallel) -> ParameterError:
    name = next((leaf.name for leaf in leaves(part)), "")
    return ParameterError(
        f"a fork whose branches no operation joins: behind it comes {name or 'another fork'!r}",
        {"name": name},
    )
