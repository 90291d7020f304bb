"""Which counters are open in the current thread or task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from crenel._crenel import FhecoreCounts

_open: ContextVar[tuple[FhecoreCounts, ...]] = ContextVar("crenel_fhecore_counts", default=())


@contextmanager
def counting() -> Iterator[FhecoreCounts]:
    """Count what the calls of this module execute inside the ``with`` block.

    Yields
    ------
    Counts
        with ``fhe_sync``, ``fhec``, ``setc``, ``multiplications``, ``faults``: up to date after every call.
        Blocks nest: an inner call counts in all of them. Other threads are not counted.
    """
    counts = FhecoreCounts()
    token = _open.set((*_open.get(), counts))
    try:
        yield counts
    finally:
        _open.reset(token)


def record(executed: FhecoreCounts) -> None:
    """Add what a call executed to every open counter."""
    for counts in _open.get():
        counts += executed
