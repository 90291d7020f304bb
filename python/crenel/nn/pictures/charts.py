"""Charts along a plan: levels, time and errors of the values in the order in which they are made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from crenel.errors import UnsupportedError
from crenel.nn.pictures.graph import kind_of
from crenel.nn.program import Program
from crenel.nn.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

Target: TypeAlias = "str | os.PathLike[str] | Axes"
MOST_NAMES = 40  # that an axis shows; of more, every so many
LEAST = 1e-16  # on a logarithmic axis
STRONG = {
    "input": "#90a4ae",
    "linear": "#5b8fc7",
    "polynomial": "#6aa84f",
    "square": "#6aa84f",
    "sum": "#c9a227",
    "bootstrap": "#c0392b",
}
OTHER = "#8e6bb0"


class Drawn(Protocol):
    """What charts read of a value."""

    @property
    def origin(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def level(self) -> int: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def expected(self) -> float | None: ...
    @property
    def measured(self) -> float | None: ...


def levels(program: Program, target: Target) -> None:
    """The level of every value along the plan, bootstraps marked.

    target : a file .png, .pdf or .svg, or axes of matplotlib. Raises UnsupportedError without matplotlib,
        ValueError of matplotlib for another ending.
    """
    plan = program.plan
    kinds = ["input", *(kind_of(step) for step in plan.steps)]
    numbers = [0, *(step.out for step in plan.steps)]
    with _axes(target, (10, 3.6)) as axes:
        draw_levels(
            axes, kinds, [plan.values[k].level for k in numbers], [plan.values[k].origin for k in numbers]
        )


def errors(report: Report, target: Target) -> None:
    """Expected and measured errors of a report. `target` and what is raised: as of `levels`."""
    rows = report.rows
    with _axes(target, (10, 3.6)) as axes:
        draw_errors(axes, [r.expected for r in rows], [r.measured for r in rows], [r.origin for r in rows])


@contextmanager
def _axes(target: Target, inches: tuple[float, float]) -> Iterator[Axes]:
    """The axes, or those of a new figure, which is written when the context ends without an error."""
    if not isinstance(target, (str, os.PathLike)):
        yield target
        return
    try:
        from matplotlib import figure as figures
    except ImportError:
        raise UnsupportedError("charts need matplotlib: pip install 'crenel[plot]'") from None
    figure = figures.Figure(
        figsize=inches, layout="constrained"
    )  # not pyplot's: a notebook keeps its backend
    yield figure.subplots()
    figure.savefig(target, dpi=150)


def draw_levels(axes: Axes, kinds: Sequence[str], found: Sequence[int], origins: Sequence[str]) -> None:
    """Bars of the levels that are left, in the colours of the steps that left them."""
    for kind in dict.fromkeys(kinds):
        at = [k for k, other in enumerate(kinds) if other == kind]
        axes.bar(at, [found[k] + 0.15 for k in at], width=0.8, color=STRONG.get(kind, OTHER), label=kind)
    axes.set_ylabel("level")
    axes.locator_params(axis="y", integer=True)
    count = sum(kind == "bootstrap" for kind in kinds)
    axes.set_title(f"levels along the plan, bootstraps: {count}", fontsize=10)
    axes.set_ylim(0, 1.25 * max(found) + 1)
    axes.legend(fontsize=8, ncols=6, loc="upper center", frameon=False)
    _names(axes, origins)


def draw_times(axes: Axes, kinds: Sequence[str], seconds: Sequence[float], origins: Sequence[str]) -> None:
    """Bars of the milliseconds of each step."""
    for kind in dict.fromkeys(kinds):
        at = [k for k, other in enumerate(kinds) if other == kind]
        total = 1e3 * sum(seconds[k] for k in at)
        axes.bar(
            at,
            [1e3 * seconds[k] for k in at],
            color=STRONG.get(kind, OTHER),
            label=f"{kind}, {total:,.1f} ms",
        )
    axes.set_ylabel("ms")
    axes.set_title(f"time by layer, {1e3 * sum(seconds):,.1f} ms in all", fontsize=10)
    axes.legend(fontsize=8)
    _names(axes, origins)


def draw_errors(
    axes: Axes, expected: Sequence[float], measured: Sequence[float], origins: Sequence[str]
) -> None:
    """Points on a logarithmic axis, in units of each value's bound."""
    axes.semilogy([max(e, LEAST) for e in expected], "-", color="0.55", label="expected by the model")
    axes.semilogy([max(e, LEAST) for e in measured], "o", color="tab:red", markersize=4, label="measured")
    axes.set_ylabel("rms error, of the bound")
    axes.set_title("error of every value", fontsize=10)
    axes.legend(fontsize=8)
    _names(axes, origins)


def draw_all(panels: Sequence[Axes], drawn: Sequence[Drawn]) -> None:
    """Levels, times and errors, as far as values have them: as many panels as `panels_of` says."""
    places = iter(panels)
    draw_levels(next(places), [d.kind for d in drawn], [d.level for d in drawn], [d.origin for d in drawn])
    timed = [(d, d.seconds) for d in drawn if d.seconds is not None]
    if timed:
        draw_times(
            next(places), [d.kind for d, _ in timed], [s for _, s in timed], [d.origin for d, _ in timed]
        )
    known = [(d, d.expected, d.measured) for d in drawn if d.expected is not None and d.measured is not None]
    if known:
        draw_errors(
            next(places), [e for _, e, _ in known], [m for _, _, m in known], [d.origin for d, _, _ in known]
        )


def panels_of(drawn: Sequence[Drawn]) -> int:
    """Panels that `draw_all` fills."""
    return 1 + any(d.seconds is not None for d in drawn) + any(d.measured is not None for d in drawn)


def _names(axes: Axes, origins: Sequence[str]) -> None:
    every = -(-len(origins) // MOST_NAMES)
    names = list(origins[::every])
    axes.set_xticks(range(0, len(origins), every), names, rotation=90, fontsize=7, parse_math=False)
    axes.set_xlim(-0.8, len(origins) - 0.2)
