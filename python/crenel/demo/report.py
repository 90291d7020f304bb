"""What a person sees: progress by rich on a terminal, plain lines elsewhere; the plot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crenel.cli.output import watched
from crenel.progress_bar import Callback, progress

if TYPE_CHECKING:
    import numpy as np
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


def draw(path: Path, clear: np.ndarray, encrypted: np.ndarray, labels: np.ndarray) -> None:
    """Encrypted against clear probabilities, one point a patient."""
    from crenel.errors import UnsupportedError

    try:
        import matplotlib
    except ImportError:
        raise UnsupportedError("--plot needs matplotlib: pip install 'crenel[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 6), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, zorder=0)
    for label, name, colour in ((0, "benign", "tab:blue"), (1, "malignant", "tab:red")):
        chosen = labels == label
        axes.scatter(clear[chosen], encrypted[chosen], s=14, alpha=0.6, label=name, color=colour)
    axes.axhline(0.5, color="0.85", linewidth=1, zorder=0)
    axes.set_xlabel("probability of malignancy, clear model with the exact sigmoid")
    axes.set_ylabel("computed under encryption and decrypted")
    axes.set_title("Encrypted logistic regression, Wisconsin breast cancer")
    axes.legend(title="diagnosis")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
