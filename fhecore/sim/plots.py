"""Plots of the report: validation scatter, counts, latencies, breakdowns. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from . import paper  # noqa: E402
from .interval import Errors  # noqa: E402

LABELS = {"hemult": "HEMult", "rotate": "Rotate", "rescale": "Rescale"}


def _label(name: str) -> str:
    kind, limbs = name.rsplit("_", 1)
    return f"{LABELS[kind]} {limbs}"


def validation_figure(validation: dict, out: Path) -> None:
    figure, axes = plt.subplots(figsize=(5, 5))
    measured = [r["measured"] for r in validation["rows"]]
    axes.scatter(measured, [r["model"] for r in validation["rows"]], s=18)
    ends = [min(measured) / 1.5, max(measured) * 1.5]
    axes.plot(ends, ends, color="grey", linewidth=0.8)
    for factor in (0.7, 1.3):
        axes.plot(ends, [factor * e for e in ends], color="grey", linewidth=0.5, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="cycles measured", ylabel="cycles of the model")
    figure.savefig(out / "validation.png", dpi=150, bbox_inches="tight")
    plt.close(figure)


def _classes(operations: list[dict]) -> list[str]:
    return sorted({r["class"] for o in operations for r in o["rows"]})


def stacked(operations: list[dict], keys: tuple[str, str], title: str, path: Path) -> None:
    """Pairs of bars (without, with), normalised to without, split by class."""
    figure, axes = plt.subplots(figsize=(8, 4))
    colours = plt.get_cmap("tab10")
    for n, name in enumerate(_classes(operations)):
        for side, key in enumerate(keys):
            bottoms, heights, places = [], [], []
            for k, o in enumerate(operations):
                total = sum(r[keys[0]] for r in o["rows"])
                earlier = _classes(operations)[:n]
                bottoms.append(sum(r[key] for r in o["rows"] if r["class"] in earlier) / total)
                heights.append(sum(r[key] for r in o["rows"] if r["class"] == name) / total)
                places.append(k + 0.4 * side - 0.2)
            axes.bar(places, heights, 0.36, bottoms, color=colours(n), label=name if side == 0 else None)
    axes.set_xticks(range(len(operations)), [_label(o["name"]) for o in operations], rotation=20)
    axes.set_ylabel(title + ", without = 1 (left without, right with FHECore)")
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def intervals(operations: list[dict], errors: Errors | None, path: Path) -> None:
    """Speed-up against the initiation interval; bars are the intervals of interval.py."""
    figure, axes = plt.subplots(figsize=(6, 4))
    for o in operations:
        x = [16, 32, 44]
        y = [o["base_us"] / o["with_us"][str(i)] for i in x]
        bars = None
        if errors and o.get("measured_us"):
            ends = [errors.speed_up(o["measured_us"]["graph_us"], o["with_us"][str(i)]) for i in x]
            pairs = list(zip(y, ends, strict=True))
            # An operation's own error is one of them: its ratio is inside, or at an end but for rounding.
            bars = [[max(0, v - low) for v, (low, _) in pairs], [max(0, high - v) for v, (_, high) in pairs]]
        axes.errorbar(x, y, bars, marker="o", capsize=3, label=_label(o["name"]))
    for name, (a, b) in paper.PRIMITIVES_US.items():
        axes.axhline(a / b, linewidth=0.6, linestyle=":", color="grey")
        axes.text(44.5, a / b, f"paper {name}", fontsize=6)
    axes.set(xlabel="initiation interval, cycles", ylabel="speed-up")
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def all_figures(predictions: dict, validation: dict, errors: Errors | None, out: Path) -> None:
    operations, target = predictions["operations"], predictions["target"]
    validation_figure(validation, out)
    timed = [o for o in operations if not o.get("refused")]
    stacked(operations, ("base", "with"), "instructions", out / f"instructions-{target}.png")
    if not timed:
        return
    stacked(timed, ("base_us", "with_us_16"), "time", out / f"latency-{target}.png")
    intervals(timed, errors, out / f"intervals-{target}.png")
