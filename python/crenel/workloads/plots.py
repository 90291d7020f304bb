"""Figures of what workloads found. Needs matplotlib, which is imported where something is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crenel.errors import UnsupportedError
from crenel.workloads.records import Result, Sort, Stage, Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLEAR, ENCRYPTED = "0.55", "tab:red"
MOST_STAGES = 12


@contextmanager
def _figure(path: Path, side: int, inches: tuple[float, float], heading: str = "") -> Iterator[list[Axes]]:
    """side x side axes, row by row; the file is written when the context ends."""
    try:
        import matplotlib
    except ImportError:
        raise UnsupportedError("--plot needs matplotlib: pip install 'crenel[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(side, side, figsize=inches, layout="constrained", squeeze=False)
    figure.suptitle(heading)
    try:
        yield list(axes.flat)
        figure.savefig(path, dpi=150)
    finally:
        pyplot.close(figure)


def draw(path: Path, result: Result) -> None:
    """The figure of a record: of training, or of a sort. Raises UnsupportedError without matplotlib."""
    if isinstance(result, Training):
        _training(path, result)
    elif isinstance(result, Sort):
        _sort(path, result)


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=10)


def _heading(result: Result) -> str:
    warning = "   INSECURE" if result.insecure else ""
    return f"{result.data}, {result.params}, {result.slots} slots, variant {result.variant}{warning}"


def _training(path: Path, result: Training) -> None:
    """Accuracy, loss, deviation of the weights, and the time by stage."""
    with _figure(path, 2, (11, 8), _heading(result)) as (accuracy, loss, error, stages):
        seen = [i for i in result.iterations if i.accuracy is not None]
        steps, at = [i.iteration for i in result.iterations], [i.iteration for i in seen]
        clear = [100 * i.clear_accuracy for i in result.iterations]
        accuracy.plot(steps, clear, color=CLEAR, label="in the clear")
        found = [100 * i.accuracy for i in seen if i.accuracy is not None]
        accuracy.plot(at, found, "o", color=ENCRYPTED, label="encrypted, decrypted here", markersize=5)
        accuracy.set_ylabel("accuracy on the test rows, %")
        loss.plot(steps, [i.clear_loss for i in result.iterations], color=CLEAR, label="in the clear")
        losses = np.array([i.loss for i in seen], np.float64)
        loss.plot(at, losses, "o", color=ENCRYPTED, label="encrypted", markersize=5)
        loss.set_ylabel("mean log-loss of the training rows")
        loss.set_ylim(bottom=0)
        error.semilogy(at, [max(i.error or 0.0, 1e-16) for i in seen], "o-", color=ENCRYPTED, markersize=5)
        error.axhline(result.bound, color=CLEAR, linestyle=":", label="bound")
        error.set_ylabel("largest deviation of a weight from the clear run")
        for axes in (accuracy, loss, error):
            axes.set_xlabel("iteration")
            axes.locator_params(axis="x", integer=True)
            axes.legend(fontsize=8)
        _title(accuracy, f"{result.test_rows} test rows of {result.features} features")
        _title(
            loss, f"{result.rows} training rows, {result.steps} iterations, bootstraps: {result.bootstraps}"
        )
        _title(error, "error of encryption")
        _bars(stages, result)


def _sort(path: Path, result: Sort) -> None:
    """Values in their new order, their errors, the error round by round, and the time by stage."""
    with _figure(path, 2, (11, 8), _heading(result)) as (values, error, rounds, stages):
        found, expected = np.array(result.found), np.array(result.expected)
        places = np.arange(len(found))
        values.plot(places, expected, color=CLEAR, label="sorted in the clear", drawstyle="steps-mid")
        values.plot(places, found, ".", color=ENCRYPTED, label="encrypted, decrypted here", markersize=4)
        values.set_ylabel("value")
        deviation = np.maximum(np.abs(found - expected), 1e-16)
        error.semilogy(places, deviation, ".", color=ENCRYPTED, markersize=4)
        error.axhline(result.bound, color=CLEAR, linestyle=":", label="bound")
        error.set_ylabel("deviation from the exact order")
        if len(found) == 0:
            values.text(0.5, 0.5, "too many for the record", ha="center", transform=values.transAxes)
        for axes in (values, error):
            axes.set_xlabel("place")
            axes.legend(fontsize=8)
        rounds.semilogy(
            [r.round for r in result.rounds],
            [max(r.error, 1e-16) for r in result.rounds],
            "o-",
            color=ENCRYPTED,
            markersize=4,
        )
        rounds.set_xlabel("round")
        rounds.locator_params(axis="x", integer=True)
        rounds.set_ylabel("largest deviation from the same circuit in the clear")
        _title(values, f"{result.count} values, comparator {result.comparator}, radix {result.radix}")
        _title(error, f"largest error $2^{{{-result.error_bits:.1f}}}$ of the range")
        _title(rounds, f"{result.steps} rounds, bootstraps: {result.bootstraps}")
        _bars(stages, result)


def shown_stages(stages: Sequence[Stage], most: int = MOST_STAGES) -> list[Stage]:
    """The longest ones in their order, and what all the others take together."""
    if len(stages) <= most:
        return list(stages)
    kept = sorted(stages, key=lambda s: -s.seconds)[: most - 1]
    rest = [s for s in stages if s not in kept]
    others = Stage(f"{len(rest)} others", sum(s.seconds for s in rest), sum(s.count for s in rest))
    return [*(s for s in stages if s in kept), others]


def _bars(axes: Axes, result: Result) -> None:
    stages = shown_stages(result.stages)
    names = [f"{s.name} ({s.count}x)" if s.count > 1 else s.name for s in stages]
    drawn = axes.barh(names, [s.seconds for s in stages], color="tab:blue")
    axes.bar_label(drawn, [f"{s.seconds:.3g}" for s in stages], fontsize=8, padding=2)
    axes.margins(x=0.12)
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    whole = f"time by stage, {result.total_s:.3g} s in all"
    _title(axes, whole if result.stages_timed else f"{result.total_s:.3g} s in all, stages were not timed")


def draw_probabilities(path: Path, clear: np.ndarray, encrypted: np.ndarray, labels: np.ndarray) -> None:
    """Encrypted against clear probabilities, one point a patient."""
    with _figure(path, 1, (6, 6)) as (axes,):
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, zorder=0)
        for label, name, colour in ((0, "benign", "tab:blue"), (1, "malignant", "tab:red")):
            chosen = labels == label
            axes.scatter(clear[chosen], encrypted[chosen], s=14, alpha=0.6, label=name, color=colour)
        axes.axhline(0.5, color="0.85", linewidth=1, zorder=0)
        axes.set_xlabel("probability of malignancy, clear model with the exact sigmoid")
        axes.set_ylabel("computed under encryption and decrypted")
        axes.set_title("Encrypted logistic regression, Wisconsin breast cancer")
        axes.legend(title="diagnosis")
