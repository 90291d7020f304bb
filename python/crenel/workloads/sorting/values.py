"""Encrypted numbers to be sorted: how they are put into slots and taken out again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crenel._crenel import Ciphertext, Client, Context, Evaluator
from crenel.errors import DivergenceError, ParameterError, SerializationError, StateError
from crenel.workloads import checkpoint
from crenel.workloads.checked import refuse_masked

Reals = NDArray[np.float64]
KIND = "numbers to sort"
MARGIN = 2.0**-7
"""Numbers fill the slots' range but for this part, so that errors and padding stay within the
comparators'."""
SPAN = 1 - MARGIN
UNDER_WAY = "under way"
PADDING = SPAN / 2 + MARGIN / 4
"""|slot| of padding: beyond every number, by MARGIN / 4, which comparators of 13 levels and more resolve.
With coarser ones, numbers at that end of the range are mixed with padding, and so is their payload."""


@dataclass(frozen=True)
class Scale:
    """Numbers of [low, high] as slots of [-SPAN / 2, SPAN / 2]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "low", float(self.low))
            object.__setattr__(self, "high", float(self.high))
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(
                f"range [{self.low!r:.40}, {self.high!r:.40}], expected two numbers",
                {"low": f"{self.low!r:.40}", "high": f"{self.high!r:.40}"},
            ) from None
        if not (self.low < self.high and self.high - self.low < float("inf")):
            raise ParameterError(
                f"range [{self.low}, {self.high}], expected two numbers, the first one smaller, whose "
                f"difference is finite",
                {"low": float(self.low), "high": float(self.high)},
            )

    def to_slots(self, numbers: ArrayLike, what: str) -> Reals:
        """Raises ParameterError naming the place, not the value, of a number that is NaN, infinite or out of
        range."""
        refuse_masked(numbers, what)
        kind = np.asarray(numbers).dtype.kind
        if kind not in "biuf":
            raise ParameterError(
                f"{what}: expected real numbers, got {np.asarray(numbers).dtype}", {"what": what}
            )
        values = np.asarray(numbers, dtype=np.float64)
        outside = ~((values >= self.low) & (values <= self.high))
        if outside.any():
            first = int(np.flatnonzero(outside.ravel())[0])
            raise ParameterError(
                f"{what} {first} is not within [{self.low}, {self.high}], and {int(outside.sum())} in all: "
                "state a range that has them all",
                {
                    "what": what,
                    "index": first,
                    "count": int(outside.sum()),
                    "low": self.low,
                    "high": self.high,
                },
            )
        middle, width = self.low / 2 + self.high / 2, self.high - self.low
        return (values - middle) / width * SPAN

    def from_slots(self, slots: Reals, terms: int = 1) -> Reals:
        """The inverse, of slots that hold a sum of `terms` numbers, as their mean."""
        middle, width = self.low / 2 + self.high / 2, self.high - self.low
        return slots / (terms * SPAN) * width + middle


@dataclass(frozen=True)
class EncryptedValues:
    """Encrypted numbers and what goes with them. Made by `Sorting.encrypt` or `encrypt_values`.

    What is in the clear: how many there are, their stated ranges, and where the results stand.
    """

    columns: tuple[Ciphertext, ...]
    """The numbers, then the payload."""
    count: int
    """Numbers, padding not counted."""
    size: int
    """With padding, a power of two: the vectors repeat it."""
    scales: tuple[Scale, ...]
    """Of every column."""
    places: tuple[int, ...]
    """Slots that hold results; the others are padding or of no meaning."""
    order: str = "unsorted"
    """"unsorted", "ascending", "descending" or, after some of the rounds, "under way"."""
    tolerance: float = float("inf")
    """By how much, of slots, neighbours may be out of order before the result is refused."""
    terms: int = 1
    """Numbers of which a slot holds the sum."""
    evaluator: Evaluator | None = None
    """Who computes with them; see `bound_to`."""

    @property
    def payload(self) -> int:
        """Columns beside the numbers."""
        return len(self.columns) - 1

    @property
    def slots(self) -> int:
        """Slots of the vectors."""
        return self.columns[0].slots

    @property
    def level(self) -> int:
        """The lowest level of a column."""
        return min(column.level for column in self.columns)

    def to_bytes(self) -> bytes:
        """For the other side: ciphertexts and what is in the clear, without the evaluator. Nothing secret."""
        facts = {
            "count": self.count, "size": self.size, "scales": [[s.low, s.high] for s in self.scales],
            "places": list(self.places), "order": self.order, "terms": self.terms,
            "tolerance": self.tolerance if np.isfinite(self.tolerance) else None,
        }  # fmt: skip
        columns = {f"column {number}": column for number, column in enumerate(self.columns)}
        return checkpoint.packed(KIND, {}, {"values": json.dumps(facts, allow_nan=False)}, columns)

    @classmethod
    def from_bytes(cls, context: Context, data: bytes) -> EncryptedValues:
        """Numbers from untrusted bytes. Ranges and order are what the sender says they are.

        Raises SerializationError for what is damaged or contradicts itself, StateError for another kind.
        """
        _, progress, parts = checkpoint.unpacked(data, context, KIND)
        contradiction = SerializationError(
            f"{len(parts)} encrypted columns with a description that is not theirs", {"parts": len(parts)}
        )
        try:
            facts = json.loads(str(progress.get("values")))
            scales = tuple(Scale(float(low), float(high)) for low, high in facts["scales"])
            count, size, terms = (_whole(facts[name]) for name in ("count", "size", "terms"))
            places = tuple(_whole(place, least=0) for place in facts["places"])
            tolerance = float("inf") if facts["tolerance"] is None else float(facts["tolerance"])
            order = str(facts["order"])
            columns = tuple(parts[f"column {number}"] for number in range(len(scales)))
            slots = {(column.slots, column.batch) for column in columns}
            good = (
                len(columns) == len(parts) and len(slots) == 1 and size == padded(count)
                and order in ("unsorted", "ascending", "descending", UNDER_WAY) and tolerance >= 0
                and slots <= {(size << shift, 1) for shift in range(32)}
                and 0 < len(places) <= count and max(places) < columns[0].slots
            )  # fmt: skip
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            raise contradiction from None
        if not good:
            raise contradiction
        return cls(columns, count, size, scales, places, order, tolerance, terms)

    def bound_to(self, evaluator: Evaluator) -> EncryptedValues:
        """The same with an evaluator, for `sort` and its relatives; ``ev(x)`` does it too."""
        return replace(self, evaluator=evaluator)

    def decrypt(self, client: Client) -> Reals:
        """The numbers, one for each place. For the key holder's own eyes, as Client.decrypt.

        Raises DivergenceError where slots left their range or are out of order: then errors grew
        beyond what the comparators stand, or the result is of another program, and nothing of it is right.
        """
        slots = client.decrypt(self.columns[0])[: self.slots].real
        self._check(slots)
        return self.scales[0].from_slots(slots[list(self.places)], self.terms)

    def decrypt_payload(self, client: Client) -> Reals:
        """A row for each column of payload, in the order of the numbers. Raises as `decrypt`."""
        self._check(client.decrypt(self.columns[0]).real)
        rows = [
            scale.from_slots(client.decrypt(column).real[list(self.places)], self.terms)
            for column, scale in zip(self.columns[1:], self.scales[1:], strict=True)
        ]
        return np.array(rows).reshape(self.payload, len(self.places))

    def _check(self, slots: Reals) -> None:
        """Of all slots, since a network that diverged does so everywhere."""
        limit = self.terms * (PADDING + MARGIN / 4)
        outside = np.flatnonzero(~(np.abs(slots) <= limit))
        if outside.size:
            raise DivergenceError(
                f"slot {outside[0]} and {outside.size} in all left the range of sorted numbers: the result "
                "means nothing. A comparator's argument left its interval, by errors too large for it",
                {"what": "slot", "index": int(outside[0]), "count": int(outside.size)},
            )
        if self.order in ("unsorted", UNDER_WAY) or len(self.places) < 2:
            return
        steps = np.diff(slots[list(self.places)]) * (1 if self.order == "ascending" else -1)
        wrong = np.flatnonzero(steps < -self.tolerance)
        if wrong.size:
            raise DivergenceError(
                f"results {wrong[0]} and {wrong[0] + 1} are out of order by more than errors explain, "
                f"{wrong.size} pairs in all: the result means nothing",
                {"what": "result", "index": int(wrong[0]), "count": int(wrong.size)},
            )


def slot_vectors(
    numbers: ArrayLike,
    payload: Sequence[ArrayLike],
    scales: tuple[Scale, ...],
    slots: int,
    last: float = 0.0,
) -> list[Reals]:
    """Numbers and payload, each as a vector of so many slots that repeats it. last: padding of the numbers.

    Raises ParameterError for columns of unequal length, and as `Scale.to_slots`."""
    if np.ndim(numbers) != 1 or np.size(numbers) < 1:
        raise ParameterError(
            f"numbers of shape {np.shape(numbers)}, expected one axis", {"axes": np.ndim(numbers)}
        )
    count = np.size(numbers)
    vectors = []
    for place, (column, scale) in enumerate(zip([numbers, *payload], scales, strict=True)):
        what = "value" if place == 0 else f"payload {place - 1}, number"
        if np.shape(column) != (count,):
            raise ParameterError(
                f"payload {place - 1} of shape {np.shape(column)} beside {count} values",
                {"what": what, "count": count},
            )
        period = np.full(padded(count), 0.0 if place else last)
        period[:count] = scale.to_slots(column, what)
        vectors.append(np.tile(period, slots // period.size))
    return vectors


def encrypt(
    client: Client,
    numbers: ArrayLike,
    payload: Sequence[ArrayLike],
    scales: tuple[Scale, ...],
    slots: int,
) -> EncryptedValues:
    """Numbers and payload, each a ciphertext of so many slots. Raises as `slot_vectors`."""
    vectors = slot_vectors(numbers, payload, scales, slots)
    columns = tuple(client.encrypt(vector, slots=slots) for vector in vectors)
    count = np.size(numbers)
    return EncryptedValues(columns, count, padded(count), scales, tuple(range(count)))


def _whole(number: object, least: int = 1) -> int:
    if type(number) is not int or not least <= number < 1 << 32:
        raise ValueError(number)
    return number


def padded(count: int) -> int:
    """The smallest power of two, at least 2, that is no less."""
    if count < 1:
        raise ParameterError(f"{count} numbers to sort, expected at least one", {"count": count})
    return max(2, 1 << (count - 1).bit_length())


def padding(values: EncryptedValues, last: float) -> Reals:
    """What makes zeros in the padding of `values` the number `last`."""
    period = np.zeros(values.size)
    period[values.count :] = last
    return np.tile(period, values.slots // values.size)


def same_program(values: EncryptedValues, count: int, payload: int, slots: int) -> None:
    """Raises StateError where numbers were encrypted for another program."""
    for what, found, expected in (
        ("values", values.count, count),
        ("payload columns", values.payload, payload),
        ("slots", values.slots, slots),
    ):
        if found != expected:
            raise StateError(
                f"encrypted {what}: {found}, this program is of {expected}",
                {"what": what, "found": found, "expected": expected},
            )
    if values.order == UNDER_WAY:
        # Their padding is there already, and a network begun anew on it sorts wrongly.
        raise StateError(
            "these numbers are the state after some rounds of a sort; a checkpoint goes on from there",
            {"order": values.order},
        )
    if values.order != "unsorted":
        raise StateError(f"these numbers are results, {values.order} already", {"order": values.order})
