"""Theodosian's Fig. 3 and Fig. 8b for our own launches. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crenel.account import Record
from crenel.analyze import Ceilings, Row, by_kernel, by_limbs, by_stage, by_work, total
from crenel.counters import Counted
from crenel.plot_counters import floors, shares

SHOWN = 0.002  # of the bound: kernels below are no points of a roofline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


def draw(
    records: Sequence[Record], ceilings: Ceilings, title: str, path: Path, counted: Sequence[Counted] = ()
) -> None:
    """Six panels: rooflines by operation and by kernel, shares by operation and by stage, time by limb count,
    what reaches the memory by kernel; with counters two more."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = 4 if counted else 3
    figure, axes = pyplot.subplots(lines, 2, figsize=(13, 4.7 * lines), layout="constrained")
    whole, kernels = total(records, ceilings), by_kernel(records, ceilings)
    _roofline(axes[0][0], by_work(records, ceilings), whole, ceilings)
    _roofline(axes[0][1], kernels, whole, ceilings, "by kernel")
    _shares(axes[1][0], by_work(records, ceilings), "by operation (Theodosian, Fig. 3 right)")
    _shares(axes[1][1], by_stage(records, ceilings), "by stage")
    _limbs(axes[2][0], by_limbs(records, ceilings, exact=True))
    _memory(axes[2][1], kernels)
    if counted:
        shares(axes[3][0], counted, ceilings)
        floors(axes[3][1], counted, ceilings)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _roofline(
    axes: Axes, rows: Sequence[Row], whole: Row, ceilings: Ceilings, by: str = "by operation"
) -> None:
    """Products a byte of L2 traffic, against the products a second that the ceilings allow."""
    from numpy import geomspace, minimum

    x = geomspace(0.05, 8, 100)
    peak = ceilings.multiply_add
    axes.loglog(x, minimum(x * ceilings.l2, peak), label=f"L2, {ceilings.l2 / 1e12:.1f} TB/s")
    axes.loglog(x, minimum(x * ceilings.dram_read, peak), label=f"DRAM, {ceilings.dram_read / 1e12:.1f} TB/s")
    axes.axhline(ceilings.butterfly, linestyle=":", color="grey", label="butterflies alone")
    shown = [row for row in rows if row.multiply_adds and row.bytes and row.bound > SHOWN * whole.bound]
    named = by == "by operation"  # kernels lie too close for names beside them
    for i, row in enumerate((*shown, whole)):
        at = (row.multiply_adds / row.bytes, row.multiply_adds / row.bound)
        style = "k*" if row is whole else f"C{i % 10}{'o' if i < 10 else 's'}"
        axes.plot(*at, style, label=None if named else row.name)
        if named:
            offset = (-28, 6) if row is whole else (6, -10)
            axes.annotate(row.name, at, xytext=offset, textcoords="offset points", fontsize=8)
    axes.set_xlabel("core products a byte of L2 traffic")
    axes.set_ylabel("core products a second, at most")
    axes.set_title(f"roofline {by} (Theodosian, Fig. 3 left), points at their bounds", fontsize=10)
    axes.legend(fontsize=8 if named else 7, ncols=1 if named else 2)


def _shares(axes: Axes, rows: Sequence[Row], title: str) -> None:
    measures = {
        "time bound": lambda row: row.bound,
        "L2 bytes": lambda row: row.bytes,
        "DRAM bytes": lambda row: row.dram_bytes,
        "core products": lambda row: row.multiply_adds,
        "keys, plaintexts": lambda row: row.streamed_bytes,
    }
    left = dict.fromkeys(measures, 0.0)
    for row in rows:
        shares = []
        for measure in measures.values():
            whole = sum(measure(r) for r in rows)
            shares.append(100 * measure(row) / whole if whole else 0.0)
        axes.barh(list(measures), shares, left=list(left.values()), label=row.name)
        left = {name: left[name] + share for name, share in zip(measures, shares, strict=True)}
    axes.invert_yaxis()
    axes.set_xlabel("%")
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4)


def _limbs(axes: Axes, rows: Sequence[Row]) -> None:
    whole = sum(row.bound for row in rows) or 1.0
    axes.bar([int(row.name) for row in rows], [100 * row.bound / whole for row in rows])
    axes.set_xlabel("limbs of the output (special ones included)")
    axes.set_ylabel("% of the time bound")
    axes.set_title("by limb count (Theodosian, Fig. 8b)", fontsize=10)


def _memory(axes: Axes, rows: Sequence[Row]) -> None:
    """Bytes of the memory during the launches of each kernel, by why they are there."""
    rows = sorted(rows, key=lambda row: -row.dram_bytes)[:12]
    parts = {
        "keys, plaintexts": [row.streamed_bytes / 1e9 for row in rows],
        "other data read": [(row.dram_read_bytes - row.streamed_bytes) / 1e9 for row in rows],
        "written back": [row.dram_written_bytes / 1e9 for row in rows],
    }
    left = [0.0] * len(rows)
    for name, values in parts.items():
        axes.barh([row.name for row in rows], values, left=left, label=name)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("GB of the memory, by the model of the cache")
    axes.set_title("what reaches the memory, by kernel", fontsize=10)
    axes.legend(fontsize=8)
