"""Sorting in one call, on encrypted numbers that know who computes: ``sort(x.bound_to(ev))``.

The program is the one that `Sorting` makes of the numbers' parameters, count and payload with its defaults;
`sorting_keys` makes keys that serve all of these calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crenel._crenel import Client, EvaluationKeys, Evaluator
from crenel.ckks.recorder import Needs
from crenel.errors import ParameterError, StateError
from crenel.workloads.checked import whole
from crenel.workloads.sorting.plan import Sorting
from crenel.workloads.sorting.values import EncryptedValues, padded

DIGIT_BITS = 7
"""Of an index that travels as payload: a digit is right where its error is below 1 / 2 of 2^7 - 1."""


def encrypt_values(
    client: Client,
    values: ArrayLike,
    *,
    low: float = 0.0,
    high: float = 1.0,
    payload: Sequence[ArrayLike] = (),
    payload_low: float = 0.0,
    payload_high: float = 1.0,
) -> EncryptedValues:
    """Numbers within [low, high], to be sorted, with columns of numbers that follow them.

    Raises ParameterError as `Sorting.encrypt`.
    """
    count = int(np.size(values))
    plan = Sorting(client.context.params, count, payload=len(payload))
    return plan.encrypt(
        client, values, payload, low=low, high=high, payload_low=payload_low, payload_high=payload_high
    )


def encrypt_indexed(
    client: Client, values: ArrayLike, *, low: float = 0.0, high: float = 1.0
) -> EncryptedValues:
    """Numbers within [low, high] with their indices as payload, for `argsort`: a column for every seven
    bits."""
    count = int(np.size(values))
    digits = index_digits(count)
    places = np.arange(count)
    payload = [(places >> (DIGIT_BITS * d)) & (2**DIGIT_BITS - 1) for d in range(digits)]
    return encrypt_values(
        client, values, low=low, high=high, payload=payload, payload_high=2**DIGIT_BITS - 1.0
    )


def sorting_keys(client: Client, count: int, *, payload: int = 0) -> EvaluationKeys:
    """Evaluation keys for every call of this module on so many numbers.

    Raises ParameterError as `Sorting.keys`.
    """
    plan = Sorting(client.context.params, count, payload=payload)
    return plan.keys_of(client, needs_of_all(plan))


def needs_of_all(plan: Sorting) -> Needs:
    """What a sort and every smaller number of results need: the same steps, at other levels."""
    needs, block = plan.needs, 1
    while block < plan.size:  # networks differ by the power of two that holds the results
        needs |= Sorting(plan.params, plan.count, payload=plan.payload, top=block).needs
        block *= 2
    return needs


def sort(x: EncryptedValues, *, descending: bool = False) -> EncryptedValues:
    """All numbers in order, their payload with them. Ties come out as means of each other.

    Raises StateError for numbers without an evaluator; otherwise as `Sorting.run`.
    """
    return _program(x, descending=descending).run(_evaluator(x), x)


def argsort(x: EncryptedValues, *, descending: bool = False) -> EncryptedValues:
    """`sort` of numbers with their indices: `decrypt_indices` reads the result.

    Raises StateError for numbers that `encrypt_indexed` did not make.
    """
    if x.payload != index_digits(x.count) or any(s.high != 2**DIGIT_BITS - 1 for s in x.scales[1:]):
        raise StateError(
            "argsort needs numbers that carry their indices: encrypt_indexed(client, values) makes them",
            {"payload": x.payload, "expected": index_digits(x.count)},
        )
    return sort(x, descending=descending)


def decrypt_indices(client: Client, out: EncryptedValues) -> NDArray[np.int64]:
    """The indices of an `argsort`, or of what was taken of one.

    Raises StateError where they are not different indices: the indices of numbers closer than the
    program's resolution come out mixed. fields: index, the first place that has none of its own; count. Mixed
    indices that happen to be different others are not seen: compare decrypted numbers where gaps may be
    small.
    """
    digits = out.decrypt_payload(client)
    whole = np.rint(digits).astype(np.int64)
    weights = 2 ** (DIGIT_BITS * np.arange(len(whole)))
    indices: NDArray[np.int64] = np.sum(whole * weights[:, None], axis=0)
    seen = np.zeros(out.count, dtype=np.bool_)
    bad = np.abs(digits - whole).max(axis=0) > 0.25
    for place, index in enumerate(indices):
        inside = 0 <= index < out.count
        bad[place] |= not inside or bool(seen[index])
        if inside:
            seen[index] = True
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise StateError(
            f"result {first} has no index of its own, {int(bad.sum())} in all: its number has ties, whose "
            "indices come out mixed",
            {"index": first, "count": int(bad.sum())},
        )
    return indices


def top_k(x: EncryptedValues, k: int, *, largest: bool = True) -> EncryptedValues:
    """The k largest numbers, largest first (or the smallest, smallest first), in fewer rounds than a sort."""
    return _program(x, descending=largest, top=_within(x, k)).run(_evaluator(x), x)


def kth(x: EncryptedValues, k: int, *, largest: bool = True) -> EncryptedValues:
    """The k-th largest (smallest) number; k = 1 is the largest (smallest)."""
    k = _within(x, k)
    out = top_k(x, k, largest=largest)
    return replace(out, places=(k - 1,))


def median(x: EncryptedValues) -> EncryptedValues:
    """The median: of an even count the mean of the two in the middle."""
    half = x.count // 2 + 1
    out = top_k(x, half, largest=False)
    if x.count % 2:
        return replace(out, places=(half - 1,))
    evaluator = _evaluator(x)
    both = [evaluator(column) + evaluator(column).rotate(1) for column in out.columns]
    return replace(out, columns=tuple(c.ciphertext for c in both), places=(half - 2,), terms=2)


def index_digits(count: int) -> int:
    """Columns of payload that indices of so many numbers take."""
    return max(1, ceil(log2(padded(count)) / DIGIT_BITS))


def _within(x: EncryptedValues, k: int) -> int:
    k = whole("k", k)
    if not 1 <= k <= x.count:
        raise ParameterError(
            f"k = {k} of {x.count} numbers, expected 1 to {x.count}", {"k": k, "count": x.count}
        )
    return k


def _evaluator(x: EncryptedValues) -> Evaluator:
    if x.evaluator is None:
        raise StateError("encrypted numbers without an evaluator: x.bound_to(ev)", {"what": "evaluator"})
    return x.evaluator


def _program(x: EncryptedValues, *, descending: bool, top: int | None = None) -> Sorting:
    params = _evaluator(x).context.params
    return Sorting(params, x.count, payload=x.payload, descending=descending, top=top)
