"""Search in an encrypted text: where a pattern stands, how often, and first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crenel.errors import ParameterError
from crenel.tfhe import Ciphertext, Integers

if TYPE_CHECKING:
    from crenel.tfhe import Evaluator


@dataclass(frozen=True)
class Hits:
    """What is found of a pattern of m characters in a text of n, all encrypted."""

    places: Ciphertext
    """Bits of shape (n - m + 1,): 1 where the pattern begins."""
    count: Integers
    """How many, uint8 to uint32."""
    first: Integers
    """The first place, 0 where there is none."""


def find(ev: Evaluator, text: Integers, pattern: Integers | bytes) -> Hits:
    """Every place of `pattern` in `text`, overlapping ones too.

    text : uint8 of shape (n,), a character each
    pattern : bytes that the server may know, or uint8 of shape (m,), m up to n; its length is public

    A public pattern takes n comparisons for each of its different characters, an encrypted one
    m (n - m + 1). Raises ParameterError for other types and shapes.
    """
    _expect_characters("text", text)
    if not isinstance(pattern, bytes):
        _expect_characters("pattern", pattern)
    known = np.frombuffer(pattern, dtype=np.uint8) if isinstance(pattern, bytes) else None
    length = len(known) if known is not None else pattern.size  # type: ignore[union-attr]
    if text.ndim != 1 or not 1 <= length <= text.size:
        raise ParameterError(
            f"find: a pattern of {length} characters in a text of shape {text.shape}, expected 1 to as many "
            "as a text of one axis has",
            {"pattern": length, "shape": list(text.shape)},
        )
    windows = np.arange(text.size - length + 1)[:, None] + np.arange(length)
    if known is None:
        assert isinstance(pattern, Integers)
        same = ev.equal(text[windows], pattern.reshape(1, length))
    else:
        characters, place = np.unique(known, return_inverse=True)
        each = ev.equal(text.reshape(1, text.size), characters.reshape(-1, 1))
        same = each[np.broadcast_to(place, windows.shape), windows]
    places = ev.all(same, axis=1)
    size = len(windows)
    kind = "uint8" if size < 1 << 8 else "uint16" if size < 1 << 16 else "uint32"
    flags = ev.sum(places.reshape(1, size), 0, dtype="uint2")
    return Hits(places, ev.sum(places, dtype=kind), ev.argmax(flags))


def _expect_characters(what: str, given: object) -> None:
    kind = str(given.type) if isinstance(given, Integers) else type(given).__name__
    if kind != "uint8":
        known = " or bytes" if what == "pattern" else ""
        raise ParameterError(
            f"find: a {what} of {kind}, expected encrypted integers of uint8{known}", {what: kind}
        )


def find_clear(text: bytes, pattern: bytes) -> tuple[list[bool], int, int]:
    """The same in the clear: places, count, first."""
    places = [text.startswith(pattern, i) for i in range(len(text) - len(pattern) + 1)]
    return places, sum(places), places.index(True) if any(places) else 0
