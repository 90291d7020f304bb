"""Which messages a set encrypts: plain moduli and ranges, checked. All raise ParameterError."""

from __future__ import annotations

import math
import operator

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError

_GATE_MODULUS = {2: 4, 3: 6, 4: 8}  # of the inputs of gates with so many inputs


def message_limit(params: _crenel.TfheParams) -> int:
    """Messages are below it."""
    return params.plain_modulus // 2 if params.padded else params.plain_modulus


def bit_modulus(params: _crenel.TfheParams, bits: int | None, fan_in: int) -> int:
    """The plain modulus of bits for gates of `fan_in` inputs, 0 for the set's."""
    if bits not in (None, 1):
        raise ParameterError(f"an array of bool has 1 bit, got bits={bits}", {"bits": str(bits)})
    if params.padded and fan_in == 2:
        return 0
    if params.padded or fan_in not in _GATE_MODULUS:
        allowed = "2 with this set" if params.padded else "2, 3 or 4"
        raise ParameterError(f"fan_in must be {allowed}, got {fan_in}", {"fan_in": str(fan_in)})
    return _GATE_MODULUS[fan_in]


def check_bits(params: _crenel.TfheParams, values: np.ndarray, bits: int) -> None:
    """That the set has messages of so many bits, and that the values are such."""
    most = int(math.log2(message_limit(params)))
    if not 1 <= bits <= most:
        raise ParameterError(f"bits must be 1 to {most} with this set, got {bits}", {"bits": str(bits)})
    _check_range(values, 1 << bits)


def plain_modulus_for(params: _crenel.TfheParams, values: np.ndarray, plain_modulus: int) -> int:
    """The modulus that a caller asks for, if the set can compute with it, the values are messages of it,
    and their type holds all of them.
    """
    p = operator.index(plain_modulus)
    if p < 2 or p % 2 != 0:
        raise ParameterError(f"plain_modulus must be even and at least 2, got {p}", {"plain_modulus": str(p)})
    own, most = params.plain_modulus, int(params.numbers["log_switch_modulus"])
    if p > max(own, *_GATE_MODULUS.values()):
        # The modulus that Client::encrypt takes. Above Q_KS no function of the messages can be computed.
        log_modulus = int(params.numbers["log_lwe_modulus"]) + (p - 1).bit_length() - own.bit_length() + 1
        if log_modulus > most:
            raise ParameterError(
                f"plain_modulus {p} needs ciphertexts modulo 2^{log_modulus}, "
                f"expected at most Q_KS = 2^{most}",
                {"plain_modulus": str(p), "log_modulus": str(log_modulus), "limit": str(most)},
            )
    limit = p // 2 if params.padded else p
    if values.dtype.kind not in "iu" or np.iinfo(values.dtype).max < limit - 1:
        raise ParameterError(
            f"values must be integers of a type that holds {limit - 1}, got {values.dtype}",
            {"dtype": str(values.dtype), "limit": str(limit)},
        )
    _check_range(values, limit)
    return p


def _check_range(values: np.ndarray, limit: int) -> None:
    low, high = int(values.min()), int(values.max())
    if low < 0 or high >= limit:
        wrong = low if low < 0 else high
        raise ParameterError(
            f"values must be 0 to {limit - 1}, got {wrong}", {"value": str(wrong), "limit": str(limit)}
        )
