"""Activations by name: a row here, and a class in `activations`, is all that another one needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError

Reals = NDArray[np.float64]
Function = Callable[[Reals], Reals]


def reals(values: object, what: str) -> Reals:
    """As float64. Raises ParameterError for what is no array of real numbers: complex ones, which NumPy would
    cut off, texts, rows of different lengths, missing values."""
    try:
        found = np.asanyarray(values)
        if found.dtype.kind in "biufO" and not np.ma.is_masked(found):
            return np.asarray(found, dtype=np.float64)
        kind = "masked values" if np.ma.is_masked(found) else f"numbers of type {found.dtype}"
    except (TypeError, ValueError) as error:
        kind = str(error)
    raise ParameterError(f"{what}: {kind}, expected an array of real numbers", {"what": what})


def _relu(x: Reals) -> Reals:
    return np.maximum(x, 0.0)


def _sigmoid(x: Reals) -> Reals:
    small = np.exp(-np.abs(x))  # of the side where the exponential cannot overflow
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def _gelu(x: Reals) -> Reals:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return np.asarray(0.5 * x * (1.0 + erf(x / math.sqrt(2.0))))


FUNCTIONS: Mapping[str, Function] = {
    "relu": _relu,
    "gelu": _gelu,
    "silu": lambda x: x * _sigmoid(x),
    "sigmoid": _sigmoid,
    "tanh": lambda x: np.asarray(np.tanh(x)),
}
"""Activations by name."""
