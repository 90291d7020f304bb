"""The algebra of placement (docs/theory/placement.md): a piece of a program is a square matrix, entry [i, j]
its lowest price from level i to level j; infinite where there is no way."""

from __future__ import annotations

from functools import reduce

import numpy as np

from crenel.nn.passes.structure import Bootstrap, Chain, Cut, Matrix, Op


def product(a: Matrix, b: Matrix) -> Matrix:
    """(min, +) product: c[i, j] = min over m of a[i, m] + b[m, j]. One piece after the other."""
    c: Matrix = (a[:, :, None] + b[None, :, :]).min(axis=1)
    return c


def identity(size: int) -> Matrix:
    """Nothing happens: 0 on the diagonal."""
    out = np.full((size, size), np.inf)
    np.fill_diagonal(out, 0.0)
    return out


def drops(chain: Chain) -> Matrix:
    """Levels given up by the cheapest way, in one step or several; no price for none."""
    out = identity(chain.top + 1)
    for i in range(1, chain.top + 1):
        out[i, :i] = chain.adjust[i][:i]
    for mid in range(chain.top + 1):
        out = np.minimum(out, out[:, mid : mid + 1] + out[mid : mid + 1, :])
    return out


def op_matrix(op: Op, size: int) -> Matrix:
    """Level l to l - depth, at its price."""
    out = np.full((size, size), np.inf)
    for level in range(op.depth, size):
        out[level, level - op.depth] = op.prices[level]
    return out


def cut_matrix(cut: Cut, size: int, choices: tuple[Bootstrap | None, ...] | None = None) -> Matrix:
    """The best of the choices, default all: None is no bootstrap."""
    out = np.full((size, size), np.inf)
    for choice in (None, *cut.bootstraps) if choices is None else choices:
        if choice is None:
            np.fill_diagonal(out, np.minimum(np.diag(out), 0.0))
        else:
            price = choice.price + cut.penalty
            out[choice.input, choice.output] = min(out[choice.input, choice.output], price)
    return out


def chosen(cut: Cut, i: int, j: int, choices: tuple[Bootstrap | None, ...] | None = None) -> Bootstrap | None:
    """Which choice the entry [i, j] of the cut's matrix is; nothing rather than a bootstrap of its price."""
    found: Bootstrap | None = None
    best = np.inf
    for choice in (None, *cut.bootstraps) if choices is None else choices:
        if choice is None:
            price = 0.0 if i == j else np.inf
        else:
            price = choice.price + cut.penalty if (i, j) == (choice.input, choice.output) else np.inf
        if price < best:
            found, best = choice, price
    return found


def prefixes(matrices: list[Matrix], size: int) -> list[Matrix]:
    """Products of the first 0, 1, ..., all matrices."""
    out = [identity(size)]
    for matrix in matrices:
        out.append(product(out[-1], matrix))
    return out


def suffixes(matrices: list[Matrix], size: int) -> list[Matrix]:
    """Products of the matrices from 0, 1, ... on; the last one is of none."""
    out = [identity(size)]
    for matrix in reversed(matrices):
        out.append(product(matrix, out[-1]))
    return out[::-1]


def total(matrices: list[Matrix], size: int) -> Matrix:
    """Sum of branches that begin and end together; 0 everywhere for none."""
    return reduce(np.add, matrices, np.zeros((size, size)))


def around(before: Matrix, outside: Matrix, after: Matrix) -> Matrix:
    """Price of all but one part of a series, by the levels [a, b] between which the part runs: `before` and
    `after` are the other parts, outside[i, j] what surrounds the series."""
    return product(product(before.T, outside), after.T)
