"""What placement reads: operations, places where a bootstrap may stand, series and forks, levels and prices.

Prices are in any one unit, microseconds in Crenel's own tables. Level 0 is the last (docs/notation.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError

Prices: TypeAlias = tuple[float, ...]
Matrix: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Op:
    """An operation that consumes `depth` levels. Several inputs stand at one level.

    prices : by the level of its inputs, 0 to the top; infinite where it is not allowed. Entries below
        `depth` are not read
    """

    name: str
    depth: int
    prices: Prices


@dataclass(frozen=True)
class Bootstrap:
    """One way to refresh a tensor: it is taken at level `input` and is at level `output` afterwards."""

    name: str
    price: float
    output: int
    input: int = 0


@dataclass(frozen=True)
class Cut:
    """A place where a bootstrap may stand, or nothing. `penalty` is added to the price of any that does."""

    name: str
    bootstraps: tuple[Bootstrap, ...]
    penalty: float = 0.0


@dataclass(frozen=True)
class Series:
    """One after the other; empty: the tensor as it is."""

    parts: tuple[Structure, ...] = ()


@dataclass(frozen=True)
class Parallel:
    """Branches that begin with one tensor, at one level, and end at one level, where the operation behind
    them joins them: no level is given up in between, for there is no one tensor there."""

    branches: tuple[Structure, ...]


Structure: TypeAlias = Op | Cut | Series | Parallel


@dataclass(frozen=True)
class Chain:
    """Levels of a program and what giving them up costs.

    Parameters
    ----------
    top : the highest level that any tensor has
    adjust : adjust[i][j] is the price of going from level i to j < i; other entries are not read.
        Levels may be given up before every operation and cut, but directly behind a fork's branches, and
        at the end of every branch, by the cheapest way down
    entry : highest level of the program's input, default the top. Lower ones cost nothing there: a client
        encrypts at any level
    result : lowest level of the program's result
    """

    top: int
    adjust: tuple[Prices, ...]
    entry: int | None = None
    result: int = 0

    def __post_init__(self) -> None:
        if self.top < 0:
            raise ParameterError(f"top level {self.top}, expected at least 0", {"top": self.top})
        for name, level in (("entry", self.first), ("result", self.result)):
            if not 0 <= level <= self.top:
                raise ParameterError(
                    f"{name} level {level}, expected 0 to {self.top}", {name: level, "top": self.top}
                )
        if len(self.adjust) != self.top + 1 or any(len(row) != self.top + 1 for row in self.adjust):
            raise ParameterError(
                f"prices of adjusted levels: expected {self.top + 1} rows of {self.top + 1}",
                {"rows": len(self.adjust), "top": self.top},
            )
        for i, row in enumerate(self.adjust):
            for j in range(i):
                check_price(f"adjusting level {i} to {j}", row[j])

    @property
    def first(self) -> int:
        """Highest level of the program's input."""
        return self.top if self.entry is None else self.entry

    @staticmethod
    def of(top: int, price: float | Sequence[float], entry: int | None = None, result: int = 0) -> Chain:
        """A chain whose prices depend on the level reached alone, or are one number."""
        by_target = [float(price)] * (top + 1) if isinstance(price, (int, float)) else list(price)
        rows = tuple(tuple(by_target) for _ in range(top + 1))
        return Chain(top, rows, entry, result)


def check_price(what: str, price: float) -> None:
    """Raises ParameterError for prices that are negative or no number."""
    if math.isnan(price) or price < 0:
        raise ParameterError(f"price of {what} is {price}, expected at least 0", {"price": float(price)})


def leaves(structure: Structure) -> Iterator[Op | Cut]:
    """Operations and cuts in the order in which they run."""
    if isinstance(structure, (Op, Cut)):
        yield structure
        return
    for part in structure.parts if isinstance(structure, Series) else structure.branches:
        yield from leaves(part)


def verify(elements: Sequence[Op | Cut], chain: Chain) -> None:
    """Raises ParameterError for names that are empty, stand twice or begin with "> ", for prices that are
    negative or missing, and for levels that the chain does not have."""
    seen: set[str] = set()
    for element in elements:
        if not element.name or element.name.startswith("> "):
            raise ParameterError(f"{element.name!r} is no name of an element", {"name": element.name})
        if element.name in seen:
            raise ParameterError(f"two elements have the name {element.name!r}", {"name": element.name})
        seen.add(element.name)
        if isinstance(element, Op):
            _verify_op(element, chain)
        else:
            _verify_cut(element, chain)


def _verify_op(op: Op, chain: Chain) -> None:
    if op.depth < 0:
        raise ParameterError(
            f"{op.name}: depth {op.depth}, expected at least 0", {"name": op.name, "depth": op.depth}
        )
    if len(op.prices) != chain.top + 1:
        raise ParameterError(
            f"{op.name}: {len(op.prices)} prices, expected one for each level from 0 to {chain.top}",
            {"name": op.name, "prices": len(op.prices), "top": chain.top},
        )
    for level in range(op.depth, chain.top + 1):
        check_price(f"{op.name} at level {level}", op.prices[level])


def _verify_cut(cut: Cut, chain: Chain) -> None:
    check_price(f"the penalty of {cut.name}", cut.penalty)
    names = [boot.name for boot in cut.bootstraps]
    if len({"", *names}) <= len(names):
        raise ParameterError(
            f"bootstraps at {cut.name} have the names {names}, expected different ones", {"name": cut.name}
        )
    for boot in cut.bootstraps:
        check_price(f"bootstrap {boot.name} at {cut.name}", boot.price)
        for what, level in (("input", boot.input), ("output", boot.output)):
            if not 0 <= level <= chain.top:
                raise ParameterError(
                    f"bootstrap {boot.name} at {cut.name}: {what} level {level}, expected 0 to {chain.top}",
                    {"name": cut.name, "bootstrap": boot.name, what: level, "top": chain.top},
                )
