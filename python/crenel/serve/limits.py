"""How often somebody may ask: token buckets, in the memory of one process of the HTTP side."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from crenel.errors import LimitError

MOST = 10_000  # buckets; the ones that were not used for longest are full again, and forgotten


class Rate:
    """So many a second in the long run, and `burst` at once, of each name."""

    def __init__(self, per_second: float, burst: float) -> None:
        self.per_second, self.burst = per_second, max(1.0, burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> None:
        """One. Raises LimitError with the seconds to wait."""
        missing = self._missing(name, take=True)
        if missing > 0:
            wait = missing / self.per_second
            raise LimitError(
                f"more than {self.per_second:g} requests a second",
                {"limit": self.per_second, "retry_after": wait},
            )

    def check(self, name: str) -> None:
        """Raises LimitError where nothing is left; takes nothing."""
        missing = self._missing(name, take=False)
        if missing > 0:
            raise LimitError("too many refused requests", {"retry_after": missing / self.per_second})

    def _missing(self, name: str, take: bool) -> float:
        now = time.monotonic()
        with self._lock:
            level, then = self._buckets.pop(name, (self.burst, now))
            level = min(self.burst, level + (now - then) * self.per_second)
            missing = 1.0 - level
            self._buckets[name] = (level - 1.0 if take and missing <= 0 else level, now)
            if len(self._buckets) > MOST:
                self._buckets.popitem(last=False)
        return missing


class AtOnce:
    """So many requests of each name that are being answered, in this process."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._found: dict[str, int] = {}
        self._lock = threading.Lock()

    def enter(self, name: str) -> None:
        """One more. Raises LimitError."""
        with self._lock:
            count = self._found.get(name, 0)
            if count >= self.most:
                raise LimitError(
                    f"{count} requests are being answered", {"limit": self.most, "retry_after": 1}
                )
            self._found[name] = count + 1

    def leave(self, name: str) -> None:
        """One less."""
        with self._lock:
            self._found[name] -= 1
            if not self._found[name]:
                del self._found[name]
