"""Panels of what a GPU's counters say of kernels: Theodosian's Fig. 6. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crenel.analyze import Ceilings
from crenel.counters import Counted, utilisation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def shares(axes: Axes, counted: Sequence[Counted], ceilings: Ceilings) -> None:
    """How much of L2's and of the memory's rate each kernel used."""
    names = [each.kernel for each in counted]
    used = [utilisation(each, ceilings) for each in counted]
    places = range(len(names))
    axes.barh([k - 0.2 for k in places], [100 * l2 for l2, _ in used], 0.4, label="L2")
    axes.barh([k + 0.2 for k in places], [100 * memory for _, memory in used], 0.4, label="DRAM")
    axes.set_yticks(list(places), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the measured rate")
    axes.set_title("by hardware counters", fontsize=10)
    axes.legend(fontsize=8)


def floors(axes: Axes, counted: Sequence[Counted], ceilings: Ceilings) -> None:
    """Time of each kernel against what its counted bytes take at the ceilings."""
    least = [1e6 * max(each.l2_bytes / ceilings.l2, each.dram_bytes / ceilings.dram) for each in counted]
    for each, floor in zip(counted, least, strict=True):
        axes.loglog(floor, each.us, "o")
        axes.annotate(each.kernel, (floor, each.us), xytext=(4, 4), textcoords="offset points", fontsize=7)
    ends = [min(least), max(each.us for each in counted)]
    axes.plot(ends, ends, linestyle=":", color="grey", label="no faster than its bytes allow")
    axes.set_xlabel("us for the counted bytes at the ceilings")
    axes.set_ylabel("us measured")
    axes.set_title("how near to its bytes each kernel is", fontsize=10)
    axes.legend(fontsize=8)
