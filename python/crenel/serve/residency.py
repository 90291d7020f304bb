"""What lies ready within a budget of bytes: reserved before it is made, leased while in use, the least
recently used dropped first, never one in use.

Three tiers of one tenant's keys: expanded on the device (`Residency`), the file in host memory (another one),
the file on a disk. A miss of a tier costs time and nothing else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from crenel.errors import OutOfMemoryError

T = TypeVar("T")


@dataclass
class _Entry(Generic[T]):
    value: T | None
    nbytes: int
    users: int = 0
    ready: bool = False
    doomed: bool = False


@dataclass(frozen=True)
class Use:
    """How a tier is used."""

    nbytes: int
    entries: int
    hits: int
    misses: int
    evictions: int


class Residency(Generic[T]):
    """Values by name within a budget.

    budget : bytes that all of them take at most, those in use and those being made included

    Threads may share one. A value that is being made is waited for by those who want it, and by nobody else.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()
        self._changed = threading.Condition()
        self._hits = self._misses = self._evictions = 0

    @contextmanager
    def lease(self, name: str, nbytes: int, make: Callable[[], tuple[T, int]]) -> Iterator[T]:
        """The value, which stays until the block ends; made where it is not there.

        nbytes : what `make` will take, reserved before it is called; where it takes more, others go
        make : returns the value and the bytes that it really has

        Waits until others in use leave room. Raises OutOfMemoryError for more than the budget, and what
        `make` raises; nothing stays reserved then.
        """
        entry = self._reserved(name, nbytes)
        try:
            if not entry.ready:
                self._filled(name, entry, make)
            assert entry.value is not None
            yield entry.value
        finally:
            self._returned(name, entry)

    def drop(self, name: str) -> None:
        """Forgets a value; one in use goes when its last user is done."""
        with self._changed:
            entry = self._entries.get(name)
            if entry is not None:
                entry.doomed = True
                if entry.users == 0:
                    self._remove(name)

    def shrink(self, nbytes: int = 0) -> int:
        """Drops values that nobody uses until at most so many bytes are held; returns how many went."""
        with self._changed:
            return self._evict(lambda: self._held() > nbytes)

    @property
    def leaving(self) -> int:
        """How many were dropped while in use, and still are."""
        with self._changed:
            return sum(e.doomed for e in self._entries.values())

    @property
    def names(self) -> set[str]:
        """Of what is ready."""
        with self._changed:
            return {name for name, e in self._entries.items() if e.ready and not e.doomed}

    def __contains__(self, name: str) -> bool:
        """Is it ready?"""
        with self._changed:
            entry = self._entries.get(name)
            return entry is not None and entry.ready and not entry.doomed

    @property
    def use(self) -> Use:
        """Bytes and counts."""
        with self._changed:
            return Use(self._held(), len(self._entries), self._hits, self._misses, self._evictions)

    def _reserved(self, name: str, nbytes: int) -> _Entry[T]:
        if nbytes > self.budget:
            raise OutOfMemoryError(
                f"{nbytes} bytes are needed, the budget is {self.budget}",
                {"needed": nbytes, "available": self.budget, "limit": "budget"},
            )
        with self._changed:
            while True:
                entry = self._entries.get(name)
                if entry is not None and not entry.doomed:
                    entry.users += 1
                    self._entries.move_to_end(name)
                    while not entry.ready and not entry.doomed:
                        self._changed.wait()
                    if entry.ready:
                        self._hits += 1
                        return entry
                    entry.users -= 1  # making it failed: try ourselves
                    continue
                self._evict(lambda: self._held() + nbytes > self.budget)
                if self._held() + nbytes <= self.budget and name not in self._entries:
                    self._misses += 1
                    entry = self._entries[name] = _Entry(None, nbytes, users=1)
                    return entry
                self._changed.wait()

    def _filled(self, name: str, entry: _Entry[T], make: Callable[[], tuple[T, int]]) -> None:
        try:
            value, taken = make()
        except BaseException:
            with self._changed:
                entry.doomed = True
                if self._entries.get(name) is entry:
                    del self._entries[name]
                self._changed.notify_all()
            raise
        with self._changed:
            entry.value, entry.nbytes, entry.ready = value, taken, True
            self._evict(lambda: self._held() > self.budget)  # where it took more than was thought
            self._changed.notify_all()

    def _returned(self, name: str, entry: _Entry[T]) -> None:
        with self._changed:
            entry.users -= 1
            if (
                entry.users == 0
                and self._entries.get(name) is entry
                and (entry.doomed or self._held() > self.budget)
            ):
                self._remove(name)
            self._changed.notify_all()

    def _held(self) -> int:
        return sum(e.nbytes for e in self._entries.values())

    def _evict(self, more: Callable[[], bool]) -> int:
        """Least recently used first, those in use never, while `more` says so."""
        gone = 0
        for name in [n for n, e in self._entries.items() if e.users == 0]:
            if not more():
                break
            self._remove(name)
            self._evictions += 1
            gone += 1
        return gone

    def _remove(self, name: str) -> None:
        del self._entries[name]
        self._changed.notify_all()
