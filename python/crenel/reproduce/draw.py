"""SVG of charts. Needs matplotlib, which is imported where something is drawn."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crenel.errors import UnsupportedError
from crenel.reproduce.charts import Bars, Chart, Lines, Roofline, Stacks, digest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK = "data:"
"""Before the digest of what is plotted, in the file's metadata."""
OURS, OTHERS = "#c0392b", "#8c9bab"
# Of several series: ours warm, others cold; colours that differ in lightness too.
WARM = ("#c0392b", "#e59866", "#7b241c", "#f5b7b1")
COLD = ("#34495e", "#8c9bab", "#5dade2", "#aeb6bf", "#1a5276", "#85c1e9")
PARTS = (
    "#1a5276",
    "#c0392b",
    "#e0a030",
    "#5d8a3a",
    "#7d5ba6",
    "#58b0c4",
    "#8c6d5a",
    "#95a5a6",
    "#d98880",
    "#2e4053",
)
WIDE = 9  # bars from which on they lie
INCH_A_BAR = 0.28
LABELLED = 3  # series of bars that all have their figures over them


def svg(chart: Chart) -> str:
    """The picture, with the digest of its data in it.

    Raises
    ------
    UnsupportedError : matplotlib is not installed
    """
    try:
        import matplotlib
    except ImportError:
        raise UnsupportedError("pictures need matplotlib: pip install 'crenel[plot]'") from None
    settings = {
        "svg.fonttype": "none", "svg.hashsalt": "crenel", "font.family": "sans-serif", "font.size": 9,
        "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip
    with matplotlib.rc_context(settings):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=_size(chart), layout="constrained")
        axes = figure.add_subplot()
        _FORMS[type(chart)](axes, chart)
        axes.set_title(chart.title, fontsize=10, loc="left")
        handles, names = axes.get_legend_handles_labels()
        if len(names) > 1 or isinstance(chart, Roofline):
            below = isinstance(chart, Stacks)
            where = "outside lower center" if below else "outside right upper"
            figure.legend(handles, names, loc=where, ncols=3 if below else 1, fontsize=7, frameon=False)
        out = io.StringIO()
        canvas = FigureCanvasSVG(figure)
        meta = {"Date": None, "Creator": None, "Description": f"{MARK}{digest(chart)}"}
        canvas.print_svg(out, metadata=meta)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def drawn_from(text: str) -> str:
    """The digest that an SVG of `svg` carries; empty: none."""
    _, found, rest = text.partition(MARK)
    return rest[:24] if found else ""


def _lying(chart: Bars) -> bool:
    return len(chart.groups) >= WIDE and len(chart.series) == 1


def _size(chart: Chart) -> tuple[float, float]:
    if isinstance(chart, Bars):
        if _lying(chart):
            return 7.0, 0.9 + INCH_A_BAR * len(chart.groups)
        legend = 1.4 if len(chart.series) > 1 else 0.0
        return min(11.0, max(5.0, 0.9 * len(chart.groups) + 1.2)) + legend, 3.4
    if isinstance(chart, Stacks):
        legend = -(-len(chart.parts) // 3)
        return 7.5, 1.1 + 0.32 * len(chart.bars) + 0.22 * legend
    return 7.2, 3.6


def _bars(axes: Axes, chart: Bars) -> None:
    if _lying(chart):
        ((_, values),) = chart.series.items()
        places = list(range(len(chart.groups)))[::-1]
        colours = [OURS if g in chart.ours else OTHERS for g in chart.groups]
        shown = [v or 0.0 for v in values]
        axes.barh(places, shown, color=colours)
        axes.set_yticks(places, [_wrapped(g, 60) for g in chart.groups])
        for place, value in zip(places, values, strict=True):
            if value is not None:
                axes.annotate(
                    _short(value),
                    (value, place),
                    xytext=(3, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=7,
                )
        axes.set_xlabel(chart.unit)
        axes.margins(x=0.12)
        if chart.log:
            axes.set_xscale("log")
        return
    count = len(chart.series)
    width = 0.8 / count
    warm = [n for n in chart.series if n in chart.ours]
    cold = [n for n in chart.series if n not in chart.ours]
    for k, (name, values) in enumerate(chart.series.items()):
        places_ = [i - 0.4 + width * (k + 0.5) for i in range(len(chart.groups))]
        if count == 1:
            colour: Any = [OURS if g in chart.ours else OTHERS for g in chart.groups]
        else:
            colour = WARM[warm.index(name) % 4] if name in warm else COLD[cold.index(name) % 6]
        drawn = axes.bar(
            places_, [v if v is not None else 0.0 for v in values], width * 0.94, color=colour, label=name
        )
        quiet = count > LABELLED and (name not in chart.ours or len(warm) > 2)  # they would lie on each other
        labels = ["" if v is None or quiet else _short(v) for v in values]
        axes.bar_label(drawn, labels, fontsize=6.5, padding=1)
    axes.set_xticks(range(len(chart.groups)), [_wrapped(g, 16) for g in chart.groups])
    if len(chart.groups) > 4 or max(map(len, chart.groups)) > 22:
        axes.tick_params(axis="x", labelrotation=25 if len(chart.groups) > 4 else 0, labelsize=8)
    axes.set_ylabel(chart.unit)
    if chart.log:
        axes.set_yscale("log")
    axes.margins(y=0.14)


def _stacks(axes: Axes, chart: Stacks) -> None:
    totals = [sum(values[i] for values in chart.parts.values()) for i in range(len(chart.bars))]
    left = [0.0] * len(chart.bars)
    places = list(range(len(chart.bars)))[::-1]
    for k, (name, values) in enumerate(chart.parts.items()):
        scale = [100 / t if chart.shares and t else 1.0 for t in totals]
        shown = [v * s for v, s in zip(values, scale, strict=True)]
        axes.barh(
            places, shown, left=left, color=PARTS[k % len(PARTS)], label=name.replace("_", " "), height=0.72
        )
        left = [a + b for a, b in zip(left, shown, strict=True)]
    axes.set_yticks(places, chart.bars)
    axes.set_xlabel("%" if chart.shares else chart.unit)


def _lines(axes: Axes, chart: Lines) -> None:
    for k, (name, points) in enumerate(chart.series.items()):
        style = "--" if name.endswith("paper") else "-"
        axes.plot(
            *zip(*points, strict=True),
            style,
            marker="o",
            markersize=3.5,
            color=PARTS[k % len(PARTS)],
            label=name,
        )
    axes.set(xlabel=chart.x, ylabel=chart.y)
    if chart.logx:
        axes.set_xscale("log", base=chart.logx)
    if chart.logx == 2 or not chart.logx:
        ticks = sorted({x for points in chart.series.values() for x, _ in points})
        if len(ticks) <= 10:
            axes.set_xticks(ticks, [_tick(t) for t in ticks])
            axes.minorticks_off()
    if chart.logy:
        axes.set_yscale("log")
    elif chart.zero:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)


def _roofline(axes: Axes, chart: Roofline) -> None:
    xs = [x for x, _ in chart.points.values()]
    low, high = min(xs) / 4, max(8.0, max(xs) * 4)
    ratio = (high / low) ** (1 / 100)
    x = [low * ratio**k for k in range(101)]
    peak = max(chart.peaks.values())
    for k, (name, rate) in enumerate(chart.roofs.items()):
        axes.loglog(
            x, [min(v * rate, peak) for v in x], color=COLD[k], label=f"{name}, {rate / 1e12:.1f} TB/s"
        )
    for name, rate in chart.peaks.items():
        if rate < peak:
            axes.axhline(rate, linestyle=":", color="grey", label=f"{name}, {rate / 1e12:.1f} T/s")
    for k, (name, (at, value)) in enumerate(chart.points.items()):
        whole = name.startswith("bootstrapping")
        shape = "*" if whole and "measured" in name else "P" if whole else "o"
        colour = OURS if whole else PARTS[k % len(PARTS)]
        axes.plot(at, value, shape, color=colour, markersize=9 if whole else 6, label=name.replace("_", " "))
    axes.set(xlabel="core products a byte at L2", ylabel="core products a second")


def _tick(value: float) -> str:
    """Large powers of two as such."""
    whole = int(value)
    return (
        f"2^{whole.bit_length() - 1}"
        if value == whole >= 1024 and whole & (whole - 1) == 0
        else f"{value:.3g}"
    )


def _short(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _wrapped(text: str, width: int) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width)) or text


_FORMS: dict[type, Callable[[Axes, Any], None]] = {
    Bars: _bars, Stacks: _stacks, Lines: _lines, Roofline: _roofline,
}  # fmt: skip
