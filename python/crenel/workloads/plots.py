"""Figures of what workloads found. Needs matplotlib, which is imported where something is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from crenel.errors import UnsupportedError
from crenel.workloads.records import Network, Result, Sort, Stage, Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes

R = TypeVar("R", Training, Sort)

SMALLEST = 1e-16  # on a logarithmic axis
CLEAR, ENCRYPTED = "0.55", "tab:red"
MOST_STAGES = 12


@contextmanager
def _figure(
    path: Path, panels: int, inches: tuple[float, float] = (5.5, 4), heading: str = ""
) -> Iterator[list[Axes]]:
    """So many axes, two to a row, `inches` each; the file is written when the context ends."""
    try:
        from matplotlib import figure as figures
    except ImportError:
        raise UnsupportedError("--plot needs matplotlib: pip install 'crenel[plot]'") from None
    columns = min(panels, 2)
    rows = -(-panels // columns)
    size = inches[0] * columns, inches[1] * rows
    figure = figures.Figure(figsize=size, layout="constrained")  # not pyplot's: a notebook keeps its backend
    axes = figure.subplots(rows, columns, squeeze=False)
    figure.suptitle(heading)
    for unused in axes.flat[panels:]:
        unused.remove()
    yield list(axes.flat[:panels])
    figure.savefig(path, dpi=150)


def draw(path: Path, result: Result) -> None:
    """The figure of a record. Raises UnsupportedError without matplotlib."""
    if isinstance(result, Training):
        _training(path, result)
    elif isinstance(result, Sort):
        _sort(path, result)
    elif isinstance(result, Network):
        _network(path, result)


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=10)


def _heading(result: Result) -> str:
    warning = "   INSECURE" if result.insecure else ""
    if isinstance(result, Network):
        run = f"runs of {result.batch}, polynomials: {result.activation}"
        return f"{result.network} on {result.data}, {result.params}, {run}{warning}"
    return f"{result.data}, {result.params}, {result.slots} slots, variant {result.variant}{warning}"


def _draw_panels(path: Path, result: R, panels: Sequence[Callable[[Axes, R], None]]) -> None:
    with _figure(path, len(panels), heading=_heading(result)) as axes:
        for place, panel in zip(axes, panels, strict=True):
            panel(place, result)


def _training(path: Path, result: Training) -> None:
    """Accuracy, loss, deviation of the weights, and the time by stage where it was measured."""
    _draw_panels(path, result, [_accuracy, _loss, _weights, *([_bars] if result.stages else [])])


def _accuracy(axes: Axes, result: Training) -> None:
    seen = [i for i in result.iterations if i.accuracy is not None]
    clear = [100 * i.clear_accuracy for i in result.iterations]
    axes.plot([i.iteration for i in result.iterations], clear, color=CLEAR, label="in the clear")
    found = [100 * i.accuracy for i in seen if i.accuracy is not None]
    at = [i.iteration for i in seen]
    axes.plot(at, found, "o", color=ENCRYPTED, label="encrypted, decrypted here", markersize=5)
    axes.set_ylabel("accuracy on the test rows, %")
    _over_iterations(axes, f"{result.test_rows} test rows of {result.features} features")


def _loss(axes: Axes, result: Training) -> None:
    seen = [i for i in result.iterations if i.accuracy is not None]
    steps = [i.iteration for i in result.iterations]
    axes.plot(steps, [i.clear_loss for i in result.iterations], color=CLEAR, label="in the clear")
    losses = np.array([i.loss for i in seen], np.float64)
    axes.plot([i.iteration for i in seen], losses, "o", color=ENCRYPTED, label="encrypted", markersize=5)
    axes.set_ylabel("mean log-loss of the training rows")
    axes.set_ylim(bottom=0)
    what = f"{result.rows} training rows, {result.steps} iterations, bootstraps: {result.bootstraps}"
    _over_iterations(axes, what)


def _weights(axes: Axes, result: Training) -> None:
    seen = [i for i in result.iterations if i.accuracy is not None]
    errors = [max(i.error or 0.0, SMALLEST) for i in seen]
    axes.semilogy([i.iteration for i in seen], errors, "o-", color=ENCRYPTED, markersize=5)
    axes.axhline(result.bound, color=CLEAR, linestyle=":", label="bound")
    axes.set_ylabel("largest deviation of a weight from the clear run")
    _over_iterations(axes, "error of encryption")


def _over_iterations(axes: Axes, title: str) -> None:
    axes.set_xlabel("iteration")
    axes.locator_params(axis="x", integer=True)
    axes.legend(fontsize=8)
    _title(axes, title)


def _sort(path: Path, result: Sort) -> None:
    """Values in their new order, their errors, the error round by round, and the time by stage where it was
    measured."""
    order = [_values, _deviations] if result.found else []
    _draw_panels(path, result, [*order, _rounds, *([_bars] if result.stages else [])])


def _values(axes: Axes, result: Sort) -> None:
    places = _places(result)
    axes.plot(places, result.expected, color=CLEAR, label="sorted in the clear", drawstyle="steps-mid")
    axes.plot(places, result.found, ".", color=ENCRYPTED, label="encrypted, decrypted here", markersize=4)
    axes.set_ylabel("value")
    axes.set_xlabel("place")
    axes.legend(fontsize=8)
    _title(axes, _sorted(result))


def _deviations(axes: Axes, result: Sort) -> None:
    deviation = np.abs(np.subtract(result.found, result.expected))
    axes.semilogy(_places(result), np.maximum(deviation, SMALLEST), ".", color=ENCRYPTED, markersize=4)
    axes.axhline(result.bound, color=CLEAR, linestyle=":", label="bound")
    axes.set_ylabel("deviation from the exact order")
    axes.set_xlabel("place")
    axes.legend(fontsize=8)
    _title(axes, f"largest error $2^{{{-result.error_bits:.1f}}}$ of the range")


def _places(result: Sort) -> np.ndarray:
    return result.every * np.arange(len(result.found))


def _sorted(result: Sort) -> str:
    shown = f", one of {result.every} shown" if result.every > 1 else ""
    return f"{result.count} values{shown}, comparator {result.comparator}, radix {result.radix}"


def _rounds(axes: Axes, result: Sort) -> None:
    errors = [max(r.error, SMALLEST) for r in result.rounds]
    axes.semilogy([r.round for r in result.rounds], errors, "o-", color=ENCRYPTED, markersize=4)
    axes.set_xlabel("round")
    axes.locator_params(axis="x", integer=True)
    axes.set_ylabel("largest deviation from the same circuit in the clear")
    what = f"{result.steps} rounds, bootstraps: {result.bootstraps}"
    _title(axes, what if result.found else f"{_sorted(result)}\n{what}")


def _network(path: Path, result: Network) -> None:
    """Outputs against those of float64; levels, times and errors along the plan."""
    # Here: crenel.nn is not needed for other records.
    from crenel.nn.pictures.charts import draw_all, panels_of

    with _figure(path, 1 + panels_of(result.layers), (8, 4), heading=_heading(result)) as axes:
        _outputs(axes[0], result)
        draw_all(axes[1:], result.layers)


def _outputs(axes: Axes, result: Network) -> None:
    ends = [min(result.expected), max(result.expected)]
    axes.plot(ends, ends, color=CLEAR, linewidth=1, zorder=0)
    axes.plot(result.expected, result.found, ".", color=ENCRYPTED, markersize=5)
    axes.set_xlabel("output of the network in float64")
    axes.set_ylabel("simulated" if result.simulated else "computed under encryption, decrypted here")
    shown = f", one output of {result.every} shown" if result.every > 1 else ""
    _title(
        axes, f"{result.network}, {result.steps} samples{shown}, same class {100 * result.agreement:.1f} %"
    )


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
    _title(axes, f"time by stage, {result.staged_s:.3g} s in all")


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
