"""Activations by name: a row here, and a class in `activations`, is all that another one needs.

A name is that of a row, or of a family with its parameter: ``"leaky_relu(0.1)"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from crenel.arguments import refuse_masked
from crenel.errors import ParameterError

Reals = NDArray[np.float64]
Function = Callable[[Reals], Reals]


def reals(values: object, what: str) -> Reals:
    """As float64. Raises ParameterError for what is no array of real numbers: complex ones, which NumPy would
    cut off, texts, rows of different lengths, missing values."""
    refuse_masked(values, what)
    try:
        found = np.asarray(values)
        if found.dtype.kind in "biufO":
            return np.asarray(found, dtype=np.float64)
        kind = f"numbers of type {found.dtype}"
    except (TypeError, ValueError) as error:
        kind = str(error)
    raise ParameterError(f"{what}: {kind}, expected an array of real numbers", {"what": what})


def _relu(x: Reals) -> Reals:
    return np.maximum(x, 0.0)


def _sigmoid(x: Reals) -> Reals:
    small = np.exp(-np.abs(x))  # of the side where the exponential cannot overflow
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def _erf(x: Reals) -> Reals:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _gelu(x: Reals) -> Reals:
    return np.asarray(0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))))


def _gelu_tanh(x: Reals) -> Reals:
    return np.asarray(0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))))


def _hard_sigmoid(x: Reals) -> Reals:
    return np.asarray(np.clip(x / 6.0 + 0.5, 0.0, 1.0))


FUNCTIONS: Mapping[str, Function] = {
    "relu": _relu,
    "relu6": lambda x: np.asarray(np.clip(x, 0.0, 6.0)),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x * _sigmoid(x),
    "hard_swish": lambda x: x * _hard_sigmoid(x),
    "sigmoid": _sigmoid,
    "hard_sigmoid": _hard_sigmoid,
    "softplus": lambda x: np.asarray(np.logaddexp(x, 0.0)),
    "tanh": lambda x: np.asarray(np.tanh(x)),
    "erf": _erf,
}
"""Activations by name."""

FAMILIES: Mapping[str, Callable[[Reals, float], Reals]] = {
    "leaky_relu": lambda x, slope: np.asarray(np.where(x >= 0, x, slope * x)),
    "elu": lambda x, alpha: np.asarray(np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0.0)))),
}
"""Activations of one number, by the name before the parenthesis."""


def member(family: str, parameter: float) -> str:
    """The name of an activation of a family."""
    return f"{family}({parameter!r})"


def function(name: str) -> Function:
    """The activation of a name. Raises ParameterError for a name that none has."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    family, _, rest = name.partition("(")
    try:
        parameter = float(rest.removesuffix(")"))
        rule = FAMILIES[family]
    except (KeyError, ValueError):
        raise ParameterError(
            f"{name!r:.60}: no such activation; there are {', '.join((*FUNCTIONS, *FAMILIES))}",
            {"function": f"{name!r:.60}"},
        ) from None
    return lambda x: rule(x, parameter)
