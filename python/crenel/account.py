"""Profiling: what the launches of a context move and compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crenel._crenel import Account

if TYPE_CHECKING:
    from crenel._crenel import Context

__all__ = ["Account", "profile"]


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
