"""Profiling: what the launches of a context move and compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict

from crenel._crenel import Account

if TYPE_CHECKING:
    from crenel._crenel import Context

__all__ = ["Account", "Record", "profile"]


class Record(TypedDict):
    """One launch, as `Account.records` states it. Bytes are those at the second-level cache."""

    kernel: str
    work: str
    stage: str
    """Labels, outermost first, a slash between them; empty outside any stage."""
    limbs: int
    """Of the output, special ones included; 0 for copies."""
    polys: int
    """Polynomials of the output."""
    read_bytes: int
    written_bytes: int
    streamed_bytes: int
    """Of those read: keys and plaintexts."""
    repeated_bytes: int
    """Of those read: tables, and data that the launch has read before."""
    multiply_adds: int
    """Core products: a butterfly, a source times a matrix entry, a digit times a key, two residues."""
    butterflies: int
    """Of these products."""
    replayed: bool
    """By a graph."""
    overlapped: bool
    """May begin while the launch before it ends."""


@contextmanager
def profile(context: Context) -> Iterator[Account]:
    """State every launch of a context inside the ``with`` block.

    >>> with crenel.profile(context) as account:
    ...     product = ev.multiply(a, b)
    >>> sum(r["read_bytes"] + r["written_bytes"] for r in account.records())

    Only CUDA devices state their launches; ``"cuda:dry"`` does so on any machine, without computing.
    """
    account = Account()
    account.attach(context)
    try:
        yield account
    finally:
        account.detach()
