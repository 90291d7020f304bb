"""Ladders of an ablation, and what each optimisation alone is worth. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALONE = ("without", "numbers")


def draw(document: Mapping[str, Any], path: Path) -> None:
    """A column an operation: its ladders, then the price of each switch."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    operations = document["operations"]
    ladders = max(len(each["ladders"]) for each in operations)
    heights = [4.0] * ladders + [6.0]
    figure, axes = pyplot.subplots(
        ladders + 1, len(operations), figsize=(6.4 * len(operations), sum(heights)), squeeze=False,
        layout="constrained", height_ratios=heights,
    )  # fmt: skip
    dry = document["provenance"]["device"].startswith("cuda:dry")
    measure = "ms, bound of the launches" if dry else "ms"
    for column, operation in enumerate(operations):
        names = list(operation["ladders"])
        what = operation["title"]
        for line in range(ladders):
            at = axes[line][column]
            if line >= len(names):
                at.set_axis_off()
                continue
            rows = [row for row in operation["rows"] if row["ladder"] == names[line]]
            _ladder(at, rows, f"{what}\n{operation['ladders'][names[line]]['title']}", measure)
        _prices(axes[ladders][column], operation["rows"], what)
    figure.suptitle(f"{document['params']} on {document['provenance']['device_description']}")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _us(row: Mapping[str, Any]) -> float:
    measured = row["latency_us"]
    return float(row["paced_us"] if measured is None else measured)


def _ladder(axes: Axes, rows: Sequence[Mapping[str, Any]], title: str, measure: str) -> None:
    names, times = [row["rung"] for row in rows], [_us(row) / 1e3 for row in rows]
    bars = axes.barh(names, times, color="C0")
    for k, bar in enumerate(bars):
        gain = "" if k == 0 else f"  ({times[k - 1] / times[k]:.2f}x)"
        axes.annotate(f" {times[k]:.3g}{gain}", (bar.get_width(), bar.get_y() + bar.get_height() / 2),
                      va="center", fontsize=8)  # fmt: skip
    axes.set_xlim(0, 1.3 * max(times))
    axes.invert_yaxis()
    axes.set_xlabel(measure)
    axes.set_title(title, fontsize=10)


def _prices(axes: Axes, rows: Sequence[Mapping[str, Any]], what: str) -> None:
    whole, *own = [row for row in rows if row["ladder"] in ALONE]
    slower = sorted(((100 * (_us(row) / _us(whole) - 1), row["rung"]) for row in own), reverse=True)
    axes.barh([name for _, name in slower], [price for price, _ in slower], color="C1")
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel("% more time without it")
    axes.set_title(f"{what}\neach off alone", fontsize=10)
