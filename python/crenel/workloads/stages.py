"""Where the time of a workload goes: its code names its stages, and whoever measures it times them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol


class Stages(Protocol):
    """``with stages("row sums"): ...`` around a part of a program. They may nest, and names may repeat."""

    def __call__(self, name: str) -> AbstractContextManager[None]:
        """Everything until the context ends belongs to the stage of this name."""
        ...


def unmeasured(name: str) -> AbstractContextManager[None]:
    """The stages of who does not measure."""
    return nullcontext()


class Stopwatch:
    """Seconds by stage, in the order in which stages were met first; a stage has what it nests as well."""

    def __init__(self, synchronise: Callable[[], object] = lambda: None) -> None:
        """
        Parameters
        ----------
        synchronise : waits until the device has done what was asked of it: a stage is given its own work
        """
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self._synchronise = synchronise

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """As `Stages`. What was raised inside is not counted."""
        self._synchronise()
        start = time.perf_counter()
        yield
        self._synchronise()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        self.counts[name] = self.counts.get(name, 0) + 1
