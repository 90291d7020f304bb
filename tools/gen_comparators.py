#!/usr/bin/env python3
"""Write python/crenel/workloads/sorting/comparators.json: composite minimax polynomials close to the sign.

    tools/gen_comparators.py            write the file
    tools/gen_comparators.py --check    fail where it is not what this program finds

A factor is the odd polynomial of its degree closest to 1 on an interval [a, 1], found by Remez's exchange
(docs/theory/sign.md). Its values there lie in [1 - e, 1 + e]; divided by (1 + e) / (1 - margin) they lie in
the interval of the next factor and stay `margin` away from its end, so that an argument wrong by noise does
not leave the interval. The last factor is not scaled. The first interval is chosen so that the error of a
compare-exchange, |d (1 - sign(d))| / 2 over all differences d in (0, 1], is smallest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).resolve().parents[1] / "python/crenel/workloads/sorting/comparators.json"
MARGIN = 2.0**-7
SETS = ["7,7", "7,15", "15,15", "7,7,15", "7,15,15", "15,15,15", "15,15,27", "7,15,15,15", "15,15,15,15",
        "15,15,15,27", "15,15,27,27"]  # fmt: skip

Reals = NDArray[np.float64]


def basis(degree: int, x: Reals) -> Reals:
    """T_1(x), T_3(x), ..., T_degree(x) as columns, for |x| <= 1."""
    return np.cos(np.arange(1, degree + 1, 2) * np.arccos(x)[:, None])


def points(a: float) -> Reals:
    """Where errors on [a, 1] are looked at: dense at both ends, logarithmically and evenly between."""
    ends = (1 + a) / 2 - (1 - a) / 2 * np.cos(np.linspace(0, np.pi, 4001))
    return np.unique(np.concatenate([np.geomspace(a, 1, 6001), ends]).clip(a, 1))


def minimax(degree: int, a: float) -> tuple[Reals, float]:
    """Coefficients of T_1, T_3, ... of the odd polynomial closest to 1 on [a, 1], and its error.

    Raises ArithmeticError where the exchange does not settle.
    """
    free = (degree + 1) // 2
    grid = points(a)
    values = basis(degree, grid)
    squares = (a * a + 1) / 2 - (1 - a * a) / 2 * np.cos(np.pi * np.arange(free + 1) / free)
    at = np.searchsorted(grid, np.sqrt(squares)).clip(0, grid.size - 1)
    signs = (-1.0) ** np.arange(free + 1)
    for _ in range(100):
        solved = np.linalg.solve(np.column_stack([values[at], signs]), np.ones(free + 1))
        error = 1 - values @ solved[:-1]
        worst = float(np.abs(error).max())
        if worst <= abs(solved[-1]) * (1 + 1e-9):
            return solved[:-1], worst
        turns = np.flatnonzero(np.diff(np.sign(error))) + 1
        peaks = np.array(
            [part[np.abs(error[part]).argmax()] for part in np.split(np.arange(grid.size), turns)]
        )
        while peaks.size > free + 1:  # the smaller end goes: the others must alternate still
            peaks = peaks[1:] if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else peaks[:-1]
        if peaks.size < free + 1:
            raise ArithmeticError(f"degree {degree} on [{a}, 1]: {peaks.size} alternations")
        if (peaks == at).all():
            return solved[:-1], worst
        at = peaks
    raise ArithmeticError(f"degree {degree} on [{a}, 1]: no end of exchanges")


def composite(degrees: list[int], a: float) -> tuple[list[Reals], list[tuple[float, float]]]:
    """Factors for differences of [a, 1], scaled, and (lower end, error) of each."""
    factors, fits = [], []
    for place, degree in enumerate(degrees):
        coefficients, error = minimax(degree, a)
        fits.append((a, error))
        if place + 1 < len(degrees):
            scale = (1 - MARGIN) / (1 + error)
            coefficients = coefficients * scale
            a = (1 - error) * scale
        factors.append(coefficients)
    return factors, fits


def exchange_error(factors: list[Reals]) -> float:
    """Largest |d (1 - sign(d))| / 2 over d in (0, 1]."""
    d = np.unique(np.concatenate([np.geomspace(2.0**-24, 1, 40001), np.linspace(0, 1, 20001)]))
    s = d
    for factor in factors:
        s = basis(2 * factor.size - 1, s.clip(-1, 1)) @ factor
    return float((d * np.abs(1 - s)).max() / 2)


def best(degrees: list[int]) -> dict[str, object]:
    """The composite whose first interval gives the smallest error of a compare-exchange."""

    def error(log_a: float) -> float:
        try:
            return exchange_error(composite(degrees, 2.0**log_a)[0])
        except (ArithmeticError, np.linalg.LinAlgError):
            return 1.0

    coarse = np.arange(-15.0, -1.0, 0.25)
    low = float(coarse[np.argmin([error(v) for v in coarse])])
    step = 0.125
    while step > 1e-3:  # once more around the best, in smaller steps
        tried = [low - step, low, low + step]
        low = tried[int(np.argmin([error(v) for v in tried]))]
        step /= 2
    factors, fits = composite(degrees, 2.0**low)
    return {
        "interval": 2.0**low,
        "exchange_error": exchange_error(factors),
        "levels": sum(degree.bit_length() for degree in degrees),
        "factors": [
            {"degree": degree, "interval": a, "error": e, "coefficients": factor.tolist()}
            for degree, (a, e), factor in zip(degrees, fits, factors, strict=True)
        ],
    }


def main() -> int:
    """Write or compare."""
    made = {"margin": MARGIN, "sets": {name: best([int(d) for d in name.split(",")]) for name in SETS}}
    if "--check" in sys.argv[1:]:
        there = json.loads(FILE.read_text(encoding="utf-8"))["sets"]
        for name, value in made["sets"].items():
            a, b = there[name]["exchange_error"], value["exchange_error"]
            if abs(a / b - 1) > 1e-3:
                print(f"{FILE.name}: {name} has an error of {a}, found {b}")
                return 1
        return 0
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    for name, value in made["sets"].items():
        print(name, value["levels"], np.log2(value["interval"]), np.log2(value["exchange_error"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
