"""Theodosian's Fig. 2 and 5 for our own launches, and Fig. 6 from counters. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crenel.analyze import Ceilings, Row
from crenel.counters import Counted
from crenel.plot_counters import floors, shares
from crenel.sweep import GROUPS, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIB = 1 << 20


def draw(
    points: Sequence[Point], ceilings: Ceilings, title: str, path: Path, counted: Sequence[Counted] = ()
) -> None:
    """Eight panels, or ten with counters."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = 5 if counted else 4
    figure, axes = pyplot.subplots(rows, 2, figsize=(13, 4.25 * rows), layout="constrained")
    batches = {b: [p for p in points if p.batch == b] for b in dict.fromkeys(p.batch for p in points)}
    for at, group in zip(axes[:2].flat, GROUPS, strict=True):
        _bandwidth(at, batches, group, ceilings)
    _busy(axes[2][0], batches[min(batches)], ceilings)
    _sizes(axes[2][1], batches, ceilings)
    _spilled(axes[3][0], batches)
    _kernels(axes[3][1], points)
    if counted:
        shares(axes[4][0], counted, ceilings)
        floors(axes[4][1], counted, ceilings)
    figure.suptitle(title)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _bandwidth(axes: Axes, batches: Mapping[int, Sequence[Point]], group: str, ceilings: Ceilings) -> None:
    axes.set_title(f"{group}: bandwidth that is reachable", fontsize=10)
    if not any(p.group(group) for points in batches.values() for p in points):
        axes.text(0.5, 0.5, "no such launch", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    for batch, points in batches.items():
        found = [(p.limbs, row) for p in points if (row := p.group(group)) and row.bound]
        x = [limbs for limbs, _ in found]
        axes.plot(x, [row.bytes / row.bound / 1e12 for _, row in found], "o-", label=f"batch {batch}")
    axes.axhline(ceilings.l2 / 1e12, linestyle=":", color="grey", label="L2")
    axes.axhline(ceilings.dram / 1e12, linestyle="--", color="grey", label="DRAM, both ways")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("limbs of the ciphertext")
    axes.set_ylabel("TB/s at L2, at the bound")
    axes.legend(fontsize=8)


def _busy(axes: Axes, points: Sequence[Point], ceilings: Ceilings) -> None:
    x = [p.limbs for p in points]
    measures: dict[str, Callable[[Row], float]] = {
        "L2": lambda row: row.l2_time,
        "DRAM": lambda row: row.dram_time,
        "multipliers": lambda row: row.arithmetic_time,
    }
    for name, measure in measures.items():
        axes.plot(x, [100 * measure(p.total) / p.total.bound for p in points], "o-", label=name)
    share = [100 * p.total.launches * ceilings.launch / p.total.bound for p in points]
    axes.plot(x, share, "x--", color="grey", label="launches of a graph, where not hidden")
    axes.set_ylim(0, max(105, 1.05 * max(share)))
    axes.set_xlabel("limbs of the ciphertext")
    axes.set_ylabel("% of the bound")
    axes.set_title(f"how far the bound keeps each busy, batch {points[0].batch}", fontsize=10)
    axes.legend(fontsize=8)


def _sizes(axes: Axes, batches: Mapping[int, Sequence[Point]], ceilings: Ceilings) -> None:
    for batch, points in batches.items():
        axes.plot([p.limbs for p in points], [p.largest / MIB for p in points], "o-", label=f"batch {batch}")
    for size, rate in (ceilings.l2_curve[0], ceilings.l2_curve[-1]) if ceilings.l2_curve else ():
        axes.axhline(size / MIB, linestyle=":", color="grey")
        axes.annotate(f"{size / MIB:.0f} MiB: {rate / 1e12:.1f} TB/s", (0.02, size / MIB), fontsize=8,
                      xycoords=("axes fraction", "data"), va="bottom")  # fmt: skip
    axes.set_yscale("log", base=2)
    axes.set_xlabel("limbs of the ciphertext")
    axes.set_ylabel("MiB")
    axes.set_title("largest working set of a launch, keys aside", fontsize=10)
    axes.legend(fontsize=8, loc="lower right")


def _spilled(axes: Axes, batches: Mapping[int, Sequence[Point]]) -> None:
    for batch, points in batches.items():
        spilled = [(p.total.dram_bytes - p.total.streamed_bytes) / batch / 1e6 for p in points]
        axes.plot([p.limbs for p in points], spilled, "o-", label=f"batch {batch}")
    axes.set_xlabel("limbs of the ciphertext")
    axes.set_ylabel("MB a ciphertext")
    axes.set_title("data that fell out of L2, read and written back", fontsize=10)
    axes.legend(fontsize=8)


def _kernels(axes: Axes, points: Sequence[Point]) -> None:
    """Of the most limbs: a bar a batch, kernels stacked, microseconds a ciphertext."""
    most = max(p.limbs for p in points)
    own = [p for p in points if p.limbs == most]
    names = [row.name for row in sorted(own[0].kernels, key=lambda row: -row.bound)][:9]
    bars = [f"batch {p.batch}" for p in own]
    left = [0.0] * len(own)
    for name in names:
        times = [sum(1e6 * row.bound / p.batch for row in p.kernels if row.name == name) for p in own]
        axes.barh(bars, times, left=left, label=name)
        left = [a + b for a, b in zip(left, times, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("us a ciphertext, bound")
    axes.set_title(f"kernels at {most} limbs", fontsize=10)
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4)
