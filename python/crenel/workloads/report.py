"""What a person sees: progress by rich on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crenel.cli.output import watched
from crenel.progress_bar import Callback, progress

if TYPE_CHECKING:
    from rich.status import Status


class Report:
    """Runs named steps, one after the other, and shows the time of each."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.console = None
        if watched():
            from rich.console import Console

            self.console = Console(highlight=False)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        if self.console:
            with self.console.status(name) as status, progress(_bar_of(status, name)):
                yield
        else:
            yield
        self.times[name] = time.perf_counter() - start
        self.line(f"{name:<44}{self.times[name]:9.3f} s")

    def line(self, text: str = "") -> None:
        if self.console:
            self.console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, flush=True)

    def facts(self, rows: list[tuple[str, str]]) -> None:
        for name, value in rows:
            self.line(f"{name:<23} {value}")


def _bar_of(status: Status, name: str) -> Callback:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    def show(done: int, total: int, what: str) -> None:
        row = Table.grid(padding=(0, 1))
        row.add_row(name, ProgressBar(total, done, width=30), f"{done}/{total} {what}")
        status.update(row if done < total else name)

    return show
