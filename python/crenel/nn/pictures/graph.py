"""The plan as a picture: a box a step, in the order of the plan, and the values between them. SVG, as text.

Boxes stand in rows by the longest way from the input; rows go on in the next column where one is full. What
is read later than in the next row goes round the boxes on their right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape

from crenel.nn.plan import Evaluate, Plan, Refresh, Step, Sum, Transform
from crenel.nn.program import Program

WIDTH, HEIGHT, PITCH = 216, 34, 52  # of a box; from one row to the next
GUTTER, MARGIN, ROWS = 92, 16, 20  # between columns; around all; rows of a column
MOST_LETTERS = 36  # that a box holds
COLOURS = {
    "input": "#eceff1",
    "linear": "#dbe9f6",
    "polynomial": "#e3f1dc",
    "square": "#e3f1dc",
    "sum": "#f3ecd8",
    "bootstrap": "#f7d6d0",
}
OTHER = "#e8e0f0"
KINDS = {
    "Transform": "linear",
    "Evaluate": "polynomial",
    "Quadratic": "square",
    "Sum": "sum",
    "Refresh": "bootstrap",
}


def kind_of(step: Step) -> str:
    """What a step is called in pictures and records; its class says it where nothing else is used."""
    name = type(step).__name__
    return KINDS.get(name, name.lower())


def _ranks(plan: Plan) -> dict[int, int]:
    """Of each value, the longest way from the input."""
    found = {0: 0}
    for step in plan.steps:
        found[step.out] = 1 + max(found[k] for k in step.inputs)
    return found


def _texts(plan: Plan, number: int, step: Step | None) -> tuple[str, str]:
    """The two lines of a box."""
    value = plan.values[number]
    where = f"{value.layout.ciphertexts} x {value.layout.slots} slots"
    if step is None:
        return "input", f"level {value.level}, {where}"
    what = kind_of(step)
    if isinstance(step, Transform):
        what = " + ".join("*".join(op.name for op in chain) or "identity" for chain in step.chains)
    elif isinstance(step, Evaluate):
        what = f"{step.series.function} {','.join(str(len(f) - 1) for f in step.series.factors)}"
    left = f"level {step.level} to {value.level}"
    if isinstance(step, (Refresh, Sum)):
        left = f"{'to ' if isinstance(step, Refresh) else ''}level {value.level}"
    return _short(f"{value.origin}: {what}", MOST_LETTERS), f"{left}, {where}"


def _short(text: str, most: int) -> str:
    """Cut, and without what no XML may have: names come from files."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= most else text[: most - 2] + ".."


def graph(program: Program, rows: int = ROWS) -> str:
    """The plan of a program as an SVG document.

    rows : boxes of a column
    """
    plan = program.plan
    steps: dict[int, Step | None] = {0: None} | {step.out: step for step in plan.steps}
    ranks = _ranks(plan)
    lanes: dict[int, list[int]] = defaultdict(list)
    for number in steps:
        lanes[ranks[number]].append(number)
    columns = 1 + max(ranks.values()) // rows
    widest = [
        max(len(lanes[r]) for r in range(c * rows, (c + 1) * rows) if r in lanes) for c in range(columns)
    ]
    starts = [MARGIN + sum(w * (WIDTH + 12) + GUTTER for w in widest[:c]) for c in range(columns)]
    places = {
        number: (starts[rank // rows] + at * (WIDTH + 12), MARGIN + (rank % rows) * PITCH)
        for rank, numbers in lanes.items()
        for at, number in enumerate(numbers)
    }
    ends = [starts[c] + widest[c] * (WIDTH + 12) - 12 for c in range(columns)]
    lines = []
    for step in plan.steps:
        for source in dict.fromkeys(step.inputs):
            column = ranks[source] // rows, ranks[step.out] // rows
            lines.append(_edge(places[source], places[step.out], column, ends))
    boxes = [
        _box(places[number], kind_of(step) if step else "input", *_texts(plan, number, step))
        for number, step in steps.items()
    ]
    width = ends[-1] + GUTTER // 2
    height = 2 * MARGIN + (min(rows, 1 + max(ranks.values())) - 1) * PITCH + HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif">\n'
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#607d8b"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n'
        f'<g fill="none" stroke="#607d8b" stroke-width="1.2" marker-end="url(#a)">\n'
        + "\n".join(lines)
        + "\n</g>\n"
        + "\n".join(boxes)
        + "\n</svg>\n"
    )


def _edge(
    source: tuple[float, float], target: tuple[float, float], column: tuple[int, int], ends: Sequence[float]
) -> str:
    """The path of a value between two boxes."""
    (x0, y0), (x1, y1) = source, target
    below = x0 + WIDTH / 2, y0 + HEIGHT
    above = x1 + WIDTH / 2, y1
    if column[0] == column[1] and y1 - y0 <= PITCH:
        return f'<path d="M{below[0]} {below[1]} L{above[0]} {above[1]}"/>'
    right = ends[column[0]]
    side = x0 + WIDTH, y0 + HEIGHT / 2
    if column[0] == column[1]:
        out = min(right + 12 + (y1 - y0) / 12, right + GUTTER * 0.45)
        end = x1 + WIDTH, y1 + HEIGHT / 2
        return f'<path d="M{side[0]} {side[1]} C{out} {side[1]} {out} {end[1]} {end[0]} {end[1]}"/>'
    # To a later column: down the gutter before it, into the box's left side.
    middle, end = ends[column[1] - 1] + GUTTER * 0.6, (x1, y1 + HEIGHT / 2)
    return f'<path d="M{side[0]} {side[1]} C{middle} {side[1]} {middle} {end[1]} {end[0]} {end[1]}"/>'


def _box(place: tuple[float, float], kind: str, title: str, text: str) -> str:
    x, y = place
    line = "#b03a2e" if kind == "bootstrap" else "#90a4ae"
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{COLOURS.get(kind, OTHER)}" '
        f'stroke="{line}"/>'
        f'<text x="{x + 8}" y="{y + 14}" font-size="11.5">{escape(title)}</text>'
        f'<text x="{x + 8}" y="{y + 27}" font-size="9.5" fill="#546e7a">{escape(text)}</text>'
    )
