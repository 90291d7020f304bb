"""The architecture as a drawing: layers of tools/check_layers.py, and which may include which."""

from __future__ import annotations

from html import escape

from check_layers import ALLOWED

WIDTH, HEIGHT, GAP = 128, 40, 26
MARGIN = 12


def direct(layer: str) -> set[str]:
    """What a layer may include that none of what it includes may include already."""
    below = ALLOWED[layer]
    return below - {deeper for each in below for deeper in ALLOWED[each]}


def ranks() -> dict[str, int]:
    """How far above the ground: one more than the highest of what is included."""
    found: dict[str, int] = {}
    for layer, below in ALLOWED.items():  # a layer comes after all that it includes: check_layers.check_table
        found[layer] = 1 + max((found[each] for each in below), default=-1)
    return found


def places() -> dict[str, tuple[float, float]]:
    """Upper left corner of every layer's box: a rank a row, the ground below."""
    rank = ranks()
    top = max(rank.values())
    rows = [[layer for layer in ALLOWED if rank[layer] == r] for r in range(top + 1)]
    broadest = max(len(row) for row in rows)
    whole = broadest * (WIDTH + GAP) - GAP
    found = {}
    for r, row in enumerate(rows):
        left = MARGIN + (whole - (len(row) * (WIDTH + GAP) - GAP)) / 2
        for i, layer in enumerate(row):
            found[layer] = (left + i * (WIDTH + GAP), MARGIN + (top - r) * (HEIGHT + 2 * GAP))
    return found


def picture() -> str:
    """An <svg> element; arrows go from a layer to those it builds on directly."""
    at = places()
    width = max(x for x, _ in at.values()) + WIDTH + MARGIN
    height = max(y for _, y in at.values()) + HEIGHT + MARGIN
    parts = []
    for layer, (x, y) in at.items():
        for below in sorted(direct(layer)):
            bx, by = at[below]
            ends = f"{x + WIDTH / 2:.0f},{y + HEIGHT:.0f}", f"{bx + WIDTH / 2:.0f},{by - 3:.0f}"
            bend = f"{x + WIDTH / 2:.0f},{y + HEIGHT + GAP:.0f} {bx + WIDTH / 2:.0f},{by - GAP:.0f}"
            parts.append(
                f'<path class="edge" d="M{ends[0]} C{bend} {ends[1]}" marker-end="url(#layer-arrow)"/>'
            )
    for layer, (x, y) in at.items():
        kind = layer.partition("/")[0]
        parts.append(
            f'<rect class="layer {escape(kind)}" x="{x:.0f}" y="{y:.0f}" rx="6" '
            f'width="{WIDTH}" height="{HEIGHT}"/>'
        )
        parts.append(f'<text x="{x + WIDTH / 2:.0f}" y="{y + HEIGHT / 2 + 5:.0f}">{escape(layer)}</text>')
    arrow = (
        '<defs><marker id="layer-arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" '
    )
    arrow += 'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker></defs>'
    words = "Layers of the library; an arrow leads from a layer to one that it builds on"
    return (
        f'<figure class="picture layers"><svg role="img" aria-label="{words}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg">{arrow}{"".join(parts)}</svg></figure>'
    )
