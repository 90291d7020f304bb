"""Steps of a workload, told as other long work tells how far it is."""

from __future__ import annotations

from types import TracebackType

from crenel import _crenel
from crenel.progress_bar import Bar, Callback


class Steps:
    """Counts steps of a program; what the library computes inside says nothing of its own.

    Parameters
    ----------
    progress : True for a bar, False for nobody, or a function f(done, total, what), called on this thread;
        what it raises stops the work. None: whom `crenel.progress` names
    total : how many steps there will be
    what : of what
    done : how many were done before
    """

    def __init__(self, progress: bool | Callback | None, total: int, what: str, done: int = 0) -> None:
        self._bar = Bar() if progress is True else None
        self._sink: Callback | None = self._bar or (progress if callable(progress) else None)
        self._default, self._total, self._what, self._done = progress is None, total, what, done

    def __enter__(self) -> Steps:
        self._before = _crenel.set_progress(None)
        if self._default:
            self._sink = self._before
        if self._sink is not None:
            self._sink(0, self._total, self._what)
            if self._done:
                self._sink(self._done, self._total, self._what)
        return self

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        if self._sink is not None:
            self._sink(self._done, self._total, self._what)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _crenel.set_progress(self._before)
        if self._bar is not None:
            self._bar.close()
