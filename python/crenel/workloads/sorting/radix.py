"""Which radix: four where it costs no precision that anybody would miss, for it takes half of the rounds."""

from __future__ import annotations

from typing import Literal

from crenel._crenel import Params
from crenel.workloads.sorting.comparator import Comparator
from crenel.workloads.sorting.setup import Setup
from crenel.workloads.sorting.simulate import Errors, expected
from crenel.workloads.sorting.values import padded

ENOUGH = 2.0**-12  # an error of radix 4 that is not compared with another
LOSS = 2.0  # by which radix 4 may be worse otherwise: a bit

_errors: dict[tuple[str, int, int, str, int | None], Errors] = {}


def choose(params: Params, count: int, comparator: Comparator, message_ratio: int | None) -> Literal[2, 4]:
    """By simulated sorts of numbers that fill the vectors: all calls on as many numbers choose alike,
    whatever their payload, order and `top`. Simulated once in a process."""
    size = padded(count)
    if 2 * size > params.slots:
        return 2
    four = _expected(params, size, 4, comparator, message_ratio)
    if four <= ENOUGH:
        return 4
    two = _expected(params, size, 2, comparator, message_ratio)
    return 4 if four < LOSS * two else 2


def _expected(
    params: Params, size: int, radix: Literal[2, 4], comparator: Comparator, message_ratio: int | None
) -> float:
    key = params.id, size, radix, comparator.name, message_ratio
    if key not in _errors:
        _errors[key] = expected(Setup(params, size, radix, comparator, message_ratio=message_ratio))
    return _errors[key].largest
