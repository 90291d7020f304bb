"""Theodosian's Fig. 3 and Fig. 8b for our own launches. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crenel.account import Record
from crenel.analyze import Ceilings, Row, by_limbs, by_stage, by_work, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


def draw(records: Sequence[Record], ceilings: Ceilings, title: str, path: Path) -> None:
    """Four panels: roofline, shares by operation, shares by stage, shares by limb count."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(12, 9), layout="constrained")
    _roofline(axes[0][0], by_work(records, ceilings), total(records, ceilings), ceilings)
    _shares(axes[0][1], by_work(records, ceilings), "by operation (Theodosian, Fig. 3 right)")
    _shares(axes[1][0], by_stage(records, ceilings), "by stage")
    _limbs(axes[1][1], by_limbs(records, ceilings, exact=True))
    figure.suptitle(title)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _roofline(axes: Axes, rows: Sequence[Row], whole: Row, ceilings: Ceilings) -> None:
    """Products a byte of L2 traffic, against the products a second that the ceilings allow."""
    from numpy import geomspace, minimum

    x = geomspace(0.05, 8, 100)
    peak = ceilings.multiply_add
    axes.loglog(x, minimum(x * ceilings.l2, peak), label=f"L2, {ceilings.l2 / 1e12:.1f} TB/s")
    axes.loglog(x, minimum(x * ceilings.dram_read, peak), label=f"DRAM, {ceilings.dram_read / 1e12:.1f} TB/s")
    axes.axhline(ceilings.butterfly, linestyle=":", color="grey", label="butterflies alone")
    for i, row in enumerate((*rows, whole)):
        if row.multiply_adds and row.bytes:
            at = (row.multiply_adds / row.bytes, row.multiply_adds / row.bound)
            axes.plot(*at, "k*" if row is whole else f"C{i}o")
            offset = (-28, 6) if row is whole else (6, -10)
            axes.annotate(row.name, at, xytext=offset, textcoords="offset points", fontsize=8)
    axes.set_xlabel("core products a byte of L2 traffic")
    axes.set_ylabel("core products a second, at most")
    axes.set_title("roofline (Theodosian, Fig. 3 left), points at their bounds", fontsize=10)
    axes.legend(fontsize=8)


def _shares(axes: Axes, rows: Sequence[Row], title: str) -> None:
    measures = {
        "time bound": lambda row: row.bound,
        "L2 bytes": lambda row: row.bytes,
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
