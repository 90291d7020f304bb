"""How far long operations are: the bar of progress=True, and `progress` for a block of code."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from crenel import _crenel

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

Callback = Callable[[int, int, str], object]

# Shorter work needs no bar; where there is no terminal, no line.
SHOWN_AFTER_S, WRITTEN_AFTER_S = 0.3, 2.0


class progress:
    """Whom operations inside a with block, on this thread, tell how far they are.

    >>> with crenel.progress():
    ...     keys = client.evaluation_keys(bootstrap=True)

    For gates, tables and integers too, which have no argument `progress` of their own.

    Parameters
    ----------
    sink : True for a bar (in a terminal or a notebook; elsewhere a line on stderr for each long operation),
        False for nobody, or a function f(done, total, what) of two integers and a text. It is called on this
        thread, first with done = 0, last with done = total, at most about 20 times a second between. What it
        raises stops the operation. It must not compute with the library.
    """

    def __init__(self, sink: bool | Callback = True) -> None:
        self._bar = Bar() if sink is True else None
        self._sink: Callback | None = self._bar or (sink if callable(sink) else None)
        if not (isinstance(sink, bool) or callable(sink)):
            raise TypeError(f"sink must be a bool or a function, got {type(sink).__name__}")
        self._before: list[Callback | None] = []

    def __enter__(self) -> progress:
        self._before.append(_crenel.set_progress(self._sink))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _crenel.set_progress(self._before.pop())
        if self._bar is not None:
            self._bar.close()


class Bar:
    """A bar for the operation under way: called as every progress function is."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._shown: _Terminal | _Notebook | None = None
        self._began = 0.0

    def __call__(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        if done == 0:
            self.close()
            self._began = now
            return
        took = now - self._began
        if self._shown is None and took >= SHOWN_AFTER_S:
            self._shown = self._show(total, what)
        if self._shown is not None:
            self._shown.update(done, what)
        if done == total:
            if self._shown is None and took >= WRITTEN_AFTER_S:
                print(f"crenel: {what}: {total} of {total}, {took:.0f} s", file=sys.stderr, flush=True)
            self.close()

    def close(self) -> None:
        """Leaves what is drawn, and ends drawing."""
        shown, self._shown = self._shown, None
        if shown is not None:
            shown.close()

    def _show(self, total: int, what: str) -> _Terminal | _Notebook | None:
        from rich.console import Console  # what draws nothing need not wait for the import

        console = self._console or Console(stderr=True)
        if console.is_jupyter:
            return _Notebook(total, what)
        return _Terminal(console, total, what) if console.is_terminal else None


def _columns(console: Console) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        auto_refresh=False,  # no thread: what draws is the work's own
    )


class _Terminal:
    def __init__(self, console: Console, total: int, what: str) -> None:
        self._bars = _columns(console)
        self._task = self._bars.add_task(what, total=total)
        self._bars.start()

    def update(self, done: int, what: str) -> None:
        self._bars.update(self._task, completed=done, description=what, refresh=True)

    def close(self) -> None:
        self._bars.stop()


class _Notebook:
    """Rich's bar as HTML in an output of the cell, which is replaced. No widgets: files show it too."""

    def __init__(self, total: int, what: str) -> None:
        self._bars = _columns(_recorder())
        self._task = self._bars.add_task(what, total=total)
        self._handle: Any = None

    def update(self, done: int, what: str) -> None:
        from IPython.display import HTML, display

        self._bars.update(self._task, completed=done, description=what)
        html = HTML(_html(self._bars.get_renderable()))
        if self._handle is None:
            self._handle = display(html, display_id=True)
        else:
            self._handle.update(html)

    def close(self) -> None:
        pass


def _recorder() -> Console:
    from rich.console import Console

    return Console(record=True, file=io.StringIO(), width=100, force_jupyter=False, color_system="truecolor")


def _html(renderable: RenderableType) -> str:
    recorder = _recorder()
    recorder.print(renderable)
    return recorder.export_html(
        inline_styles=True, code_format='<pre style="line-height:normal">{code}</pre>'
    )


_crenel.register_bar(Bar)
