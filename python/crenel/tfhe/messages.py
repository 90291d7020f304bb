"""NumPy arrays as messages: which plain modulus they are encrypted with. All raise ParameterError."""

from __future__ import annotations

import operator

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError


def bit_modulus(params: _crenel.TfheParams, bits: int | None, fan_in: int) -> int:
    """The plain modulus of bits for gates of `fan_in` inputs."""
    if bits not in (None, 1):
        raise ParameterError(f"an array of bool has 1 bit, got bits={bits}", {"bits": bits})
    return _crenel.tfhe_bit_modulus(params, fan_in)


def check_bits(params: _crenel.TfheParams, values: np.ndarray, bits: int) -> None:
    """That the set has messages of so many bits, and that the values are such."""
    most = _crenel.tfhe_message_bound(params).bit_length() - 1
    if not 1 <= bits <= most:
        raise ParameterError(f"bits must be 1 to {most} with this set, got {bits}", {"bits": bits})
    _check_range(values, 1 << bits)


def plain_modulus_for(params: _crenel.TfheParams, values: np.ndarray, plain_modulus: int) -> int:
    """The modulus that a caller asks for, if the values are messages of it and their type holds them all."""
    p = operator.index(plain_modulus)
    if not 2 <= p < 1 << 32:
        raise ParameterError(
            f"plain_modulus must be even, at least 2 and what ciphertexts up to Q_KS can hold, got {p}",
            {"plain_modulus": p},
        )
    limit = _crenel.tfhe_message_bound(params, p)
    if values.dtype.kind not in "iu" or np.iinfo(values.dtype).max < limit - 1:
        raise ParameterError(
            f"values must be integers of a type that holds {limit - 1}, got {values.dtype}",
            {"dtype": str(values.dtype), "limit": limit},
        )
    _check_range(values, limit)
    return p


def _check_range(values: np.ndarray, limit: int) -> None:
    wrong = np.flatnonzero((values < 0) | (values >= limit))
    if wrong.size:
        # Where, not what: messages have no place in errors, which are logged.
        raise ParameterError(
            f"values must be 0 to {limit - 1}, element {wrong[0]} is not",
            {"index": int(wrong[0]), "limit": limit},
        )
