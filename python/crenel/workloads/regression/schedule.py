"""Nesterov's momentum by iteration, which block an iteration sees, and the numbers it multiplies by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from crenel.errors import ParameterError

Order: TypeAlias = Literal["cyclic", "random"]
FIRST = 0.01  # lambda_0 of HELR


def momenta(iterations: int) -> list[float]:
    """eta_t = (1 - lambda_t) / lambda_(t+1), lambda_(t+1) = (1 + sqrt(1 + 4 lambda_t^2)) / 2: towards -1."""
    here, found = FIRST, []
    for _ in range(iterations):
        following = (1 + math.sqrt(1 + 4 * here * here)) / 2
        found.append((1 - here) / following)
        here = following
    return found


def blocks_seen(order: Order, seed: int, blocks: int, iterations: int) -> list[int]:
    """The block of each iteration: in turn, or drawn with a public seed."""
    if order == "cyclic":
        return [t % blocks for t in range(iterations)]
    if order == "random":
        drawn = np.random.default_rng(seed).integers(blocks, size=iterations)
        return [int(block) for block in drawn]
    raise ParameterError(f"order {order!r}, expected 'cyclic' or 'random'", {"order": str(order)})


@dataclass(frozen=True)
class Factors:
    """What iteration t multiplies by. The state: v, where gradients are taken, and x = (1 - eta_(t-1)) w.

    x' = (1 - eta_t) v + (1 - eta_t) step; v' = x' + eta_t / (1 - eta_(t-1)) x.
    """

    keep: float
    """Of v in x': 1 - eta_t."""
    gradient: float
    """Of every example's part: (1 - eta_t) rate / batch."""
    momentum: float
    """Of x in v': eta_t / (1 - eta_(t-1)); 0 in the first iteration, which has no x."""


def factors(rate: float, batch: int, iterations: int) -> list[Factors]:
    """Of every iteration. The rate is that of a whole block's mean: one with fewer rows steps less far."""
    etas = momenta(iterations)
    return [
        Factors(1 - eta, (1 - eta) * rate / batch, eta / (1 - etas[t - 1]) if t else 0.0)
        for t, eta in enumerate(etas)
    ]
