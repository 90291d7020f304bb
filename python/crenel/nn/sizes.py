"""Bytes on a device of what a program holds, from parameters alone."""

from __future__ import annotations

from crenel.ckks import Params
from crenel.errors import ParameterError

WORD = 4
"""Bytes of a residue."""


def limbs_at(params: Params, level: int) -> int:
    """Limbs of a level. Raises ParameterError for levels out of range."""
    if not 0 <= level <= params.max_level:
        raise ParameterError(f"level {level}, expected 0 to {params.max_level}", {"level": level})
    main, terminal = params.levels[level]
    return main + terminal


def plaintext_bytes(params: Params, level: int, *, period: int | None = None, extended: bool = False) -> int:
    """Of a plaintext. A slot vector that repeats after `period` values, a power of two, default N/2, is a
    polynomial of 2 period coefficients, and has no more different values in evaluation form: only they are
    kept.

    extended : with the special primes behind the level's, as the diagonals of a linear transform are."""
    period = params.slots if period is None else period
    if period < 1 or period & (period - 1) or period > params.slots:
        raise ParameterError(
            f"period {period}, expected a power of two up to {params.slots}", {"period": period}
        )
    return (limbs_at(params, level) + extended * params.alpha) * 2 * period * WORD


def rotation_key_bytes(params: Params, level: int) -> int:
    """Of the key of one rotation that serves this level and those below."""
    limbs_at(params, level)
    return params.key_bytes(rotations=[1], relinearisation=False, max_level=level)
