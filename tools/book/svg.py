"""SVG that goes into a page: its text is text, its black follows the page's own colour, in the dark too."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

INK = "#010203"  # stands for the colour of the page's text
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#eeca3b")
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "crenel",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.framealpha": 0.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.transparent": True,
}


def drawn(draw: Callable[[Any], None], width: float, height: float, alternative: str) -> str:
    """An <svg> element of what `draw` does with matplotlib's axes; `alternative` says it in words."""
    import matplotlib
    from cycler import cycler

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return inline(out.getvalue(), alternative)


def inline(document: str, alternative: str) -> str:
    """The <svg> element of a file, in one line, without what only files need; names stay its own."""
    element = document[document.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = element.replace(INK, "currentColor").replace("\n", " ")
    # Elements of several pictures on one page have names of their own: DejaVu's are those of this text.
    mark = f"p{abs(hash_of(alternative)) % 10**8:08d}"
    element = re.sub(r'\bid="', f'id="{mark}-', element)
    element = re.sub(r'"#', f'"#{mark}-', element).replace("url(#", f"url(#{mark}-")
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"| height="[^"]*pt"', lambda m: m[1] or "", element, count=2)
    words = alternative.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    element = element.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1)
    return f'<figure class="picture">{element.strip()}</figure>'


def hash_of(text: str) -> int:
    """The same in every process, unlike hash()."""
    value = 0
    for byte in text.encode():
        value = (value * 131 + byte) % (1 << 61)
    return value
