"""Tables and pictures of docs/guide/integers.md: what operations on encrypted integers take, and their noise.

    python tools/gen_integers.py            # writes them
    python tools/gen_integers.py --check    # says what is stale; exit code 1

All are counted on the circuits that run with lut4-128; the installed package has them. Predicted times are
those of crenel.tfhe.lookup_times. Where that set or those times change, run it again.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs/guide/integers.md"
PICTURES = ROOT / "docs/assets"
BEGIN, END = "<!-- computed {} -->\n", "<!-- /computed -->"

SET = "lut4-128"  # the default for integers: how much its sums may hold decides about some circuits
WIDTHS = (8, 16, 32, 64, 128, 256)
LABELS = {
    "add": "`a + b`, `a - b`",
    "abs": "`abs(a)`, signed",
    "mul": "`a * b`",
    "mul by 10": "`a * 10`",
    "div": "`a // b`",
    "divmod": "`divmod(a, b)`",
    "divmod, signed": "`divmod(a, b)`, signed",
    "add_overflow": "`add_overflow`",
    "mul_overflow": "`mul_overflow`",
    "less": "`a < b`, `<=`, `>`, `>=`",
    "equal": "`a == b`, `!=`",
    "max": "`min`, `max`",
    "min_max": "`min_max`: an exchange of `sort`",
    "select": "`select`",
    "bit_and": "`a & b`, `a \\| b`, `a ^ b`",
    "shift by 1": "`a << k`, public odd k",
    "shift": "`a >> b`, `a << b`, b of 8 bits",
    "rotate": "`rotate_left(a, b)`, b of 8 bits",
    "leading_zeros": "`leading_zeros`, `trailing_zeros`",
    "count_ones": "`count_ones`",
    "sum of 16": "`sum` of 16",
    "dot of 16": "`dot` of 16 and 16",
    "table of 256": "`take`, 256 entries",
}
# Operations of which the largest widths take minutes to count and hours to run.
LARGEST = {"div": 128, "divmod": 128, "divmod, signed": 128, "mul_overflow": 64, "dot of 16": 32, "mul": 128}
TIMED = ("add", "mul", "divmod", "less", "equal", "max", "bit_and", "shift", "leading_zeros")
DRAWN = [("add", "a + b"), ("less", "a < b"), ("mul", "a * b"), ("shift", "a >> b")]
COLOURS = {"lean": "#5b8fc7", "fast": "#c0392b"}


def cost(name: str, bits: int, form: str) -> tuple[int, int, list[int]]:
    """Bootstraps, rounds, bootstraps of each round."""
    from crenel import _crenel, tfhe

    signed = name.endswith(", signed") or name == "abs"
    norm2 = tfhe.preset(SET).max_norm2
    rotations, _, depth, rounds = _crenel.tfhe_integer_cost(
        name.removesuffix(", signed"), bits, signed, form, 1, 1, norm2
    )
    return rotations, depth, rounds


def table() -> str:
    """Rows of bootstraps / rounds: lean, and fast where that is another circuit."""
    rows = ["| operation |" + "".join(f" {w} bits |" for w in WIDTHS), "|---" * (1 + len(WIDTHS)) + "|"]
    for name, label in LABELS.items():
        cells = []
        for bits in WIDTHS:
            if bits > LARGEST.get(name, 256):
                cells.append("-")
                continue
            lean, fast = cost(name, bits, "lean"), cost(name, bits, "fast")
            text = [f"{count:,} / {depth}" for count, depth, _ in ((lean, fast) if fast != lean else (lean,))]
            cells.append("; ".join(text))
        rows.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def times() -> str:
    """What the GPU of lookups.json would take: an operation alone, and how many a second."""
    from crenel import tfhe
    from crenel.cli.bench_integers import predicted

    widths = [w for w in WIDTHS if w <= 64]
    rows = ["| operation |" + "".join(f" {w} bits |" for w in widths), "|---" * (1 + len(widths)) + "|"]
    norm2 = tfhe.preset(SET).max_norm2
    for name in TIMED:
        found = [predicted(name, bits, norm2) for bits in widths]
        cells = [f"{p.depth} / {1e-3 * p.latency_us:.1f} ms / {p.per_second:,.0f}" for p in found]
        rows.append(f"| {LABELS[name]} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def gpu() -> str:
    """Of whom the times are."""
    from crenel.cli.bench_integers import MANY
    from crenel.tfhe.lookup_times import measured

    found = measured()
    return (
        f"On one {found.device} by the look-ups of `{found.source}` ({found.params}): rounds and time of "
        f"an operation alone, and how many a second in arrays of {MANY:,}.\n"
    )


def steps() -> list[tuple[str, list[int]]]:
    """A transfer of 64-bit tokens: bootstraps of each round of its operations, and of one circuit of them."""
    from crenel import _crenel, tfhe
    from crenel.tfhe.lookup_times import measured

    def rounds(describe: Callable[..., list[Any]]) -> list[int]:
        circuit = _crenel.TfheIntegerCircuit()
        a, b, c = (circuit.integers(64, False) for _ in range(3))
        for value in describe(circuit, a, b, c):
            circuit.output(value)
        norm2 = tfhe.preset(SET).max_norm2
        return list(circuit.cost("automatic", 1, measured().processors, norm2, True)[3])

    def all_of(circuit: Any, payer: Any, payee: Any, amount: Any) -> list[Any]:
        enough = circuit.compare("greater_equal", payer, amount)
        moved = circuit.select(enough, amount, [0])
        return [circuit.sub(payer, moved), circuit.add(payee, moved), enough]

    return [
        ("payer >= amount", rounds(lambda o, a, b, c: [o.compare("greater_equal", a, c)])),
        ("select", rounds(lambda o, a, b, c: [o.select(o.bit(), c, [0])])),
        ("payer - moved", rounds(lambda o, a, b, c: [o.sub(a, c)])),
        ("payee + moved", rounds(lambda o, a, b, c: [o.add(b, c)])),
        ("one circuit", rounds(all_of)),
    ]


def transfer() -> str:
    """The same in words."""
    from crenel.tfhe.lookup_times import measured

    known = measured()
    *single, (_, whole) = steps()
    apart = [count for _, rounds in single for count in rounds]
    return (
        f"Of 64 bits that is {len(whole)} rounds of {', '.join(map(str, whole))} bootstraps; one after "
        f"the other the operations take {len(apart)}, of {', '.join(map(str, apart))}. On one {known.device} "
        f"their look-ups take {1e3 * known.circuit(whole):.1f} ms and {1e3 * known.circuit(apart):.1f} ms by "
        f"`{known.source}`; many at a time take the lean form either way.\n"
    )


def timeline() -> str:
    """Rounds of `steps` over the time that they take, one by one and as one circuit."""
    from crenel.tfhe.lookup_times import measured

    known = measured()
    *single, (label, whole) = steps()
    rows = [("one by one", single), (label, [(label, whole)])]
    total = 1e3 * sum(known.circuit(rounds) for _, rounds in single)
    width, left, top, height, gap = 760, 96, 58, 46, 34
    colours = dict(
        zip([n for n, _ in steps()], ("#5b8fc7", "#8d6bb0", "#c0392b", "#d98a3d", "#3f8f5f"), strict=True)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 70}" '
        f'height="{top + 2 * (height + gap) + 10}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<text x="12" y="22" font-size="15">A transfer of 64-bit tokens: bootstraps of each round</text>',
        f'<text x="12" y="40">time of their look-ups on one {escape(known.device)}</text>',
    ]
    for k, (name, operations) in enumerate(rows):
        y, at = top + k * (height + gap), 0.0
        parts.append(f'<text x="{left - 8}" y="{y + height / 2 + 4}" text-anchor="end">{name}</text>')
        for operation, rounds in operations:
            begin = left + width * at / total
            for count in rounds:
                x, long = left + width * at / total, 1e3 * known.seconds(count)
                wide = width * long / total
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{height}" '
                    f'fill="{colours[operation]}" fill-opacity="0.75" stroke="#ffffff"/>'
                )
                parts.append(
                    f'<text x="{x + wide / 2:.1f}" y="{y + height / 2 + 4}" text-anchor="middle" '
                    f'fill="#ffffff">{count}</text>'
                )
                at += long
            if len(operations) > 1:
                parts.append(
                    f'<text x="{begin:.1f}" y="{y + height + 14}" fill="{colours[operation]}">'
                    f"{escape(operation)}</text>"
                )
        x = left + width * at / total + 6
        parts.append(f'<text x="{x:.1f}" y="{y + height / 2 + 4}">{at:.1f} ms</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def noise() -> str:
    """What a look-up reads sums with, by their squared factors, against what a failure of 2^-128 allows."""
    from crenel import tfhe

    params = tfhe.preset(SET)
    steps = 2 * int(params.numbers["poly_size"])
    margin = steps / params.plain_modulus / 2
    most = margin**2 / (2 * math.log(2) * 129)  # 2 exp(-margin^2 / 2 v) = 2^-128
    known = [
        (1.0, "a block"),
        (17.0, "4 a + b"),
        (34.0, "pairs of a < b"),
        (params.max_norm2, "the set's most"),
    ]
    sums = sorted({norm2: text for norm2, text in known if norm2 <= params.max_norm2}.items())
    bars = []
    for norm2, text in sums:
        part = params.noise_parts(norm2)
        fails = 1 - margin**2 / (2 * sum(part.values()) * math.log(2))
        bars.append(((f"{norm2:g}: {text}", f"fails at 2^{fails:.0f}"), part))
    return _bars(
        f"Noise that a look-up of {SET} reads, by its sum",
        f"variance, in steps of which a turn has {steps:,}; messages lie {2 * margin:g} apart",
        bars,
        (most, f"{most:.1f}: 2^-128"),
    )


def _bars(
    title: str, below: str, bars: list[tuple[tuple[str, str], dict[str, float]]], line: tuple[float, str]
) -> str:
    """Bars of parts, and a line that none should cross."""
    highest = 1.15 * max(line[0], *(sum(part.values()) for _, part in bars))
    width, height, left, top, bar = 520, 220, 60, 60, 56
    colours = dict(zip(bars[0][1], ("#c0392b", "#5b8fc7", "#9aa7b0"), strict=True))

    def y(value: float) -> float:
        return top + height * (1 - value / highest)

    def text(x: float, at: float, label: str, middle: bool = False) -> str:
        anchor = ' text-anchor="middle"' if middle else ""
        return f'<text x="{x:.1f}" y="{at:.1f}"{anchor}>{escape(label)}</text>'

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 170}" height="{top + height + 62}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{left}" y="22" font-size="15">{escape(title)}</text>',
        text(left, 40, below),
        f'<path d="M{left},{top} V{top + height} H{left + width}" fill="none" stroke="#37474f"/>',
    ]
    for k, (labels, part) in enumerate(bars):
        x, total = left + 40 + k * width / len(bars), 0.0
        for name, value in part.items():
            lines.append(
                f'<rect x="{x:.1f}" y="{y(total + value):.1f}" width="{bar}" '
                f'height="{y(total) - y(total + value):.1f}" fill="{colours[name]}"/>'
            )
            total += value
        lines.append(text(x + bar / 2, y(total) + 15, f"{total:.1f}", middle=True))
        for row, label in enumerate(labels):
            lines.append(text(x + bar / 2, top + height + 18 + 16 * row, label, middle=True))
    at = y(line[0])
    lines.append(f'<path d="M{left},{at:.1f} h{width}" stroke="#1b1b1b" stroke-dasharray="6 4" fill="none"/>')
    lines.append(text(left + width + 6, at + 4, line[1]))
    for row, (name, colour) in enumerate(reversed(colours.items())):
        at = top + height - 60 + 20 * row
        lines.append(f'<rect x="{left + width + 8}" y="{at:.0f}" width="12" height="12" fill="{colour}"/>')
        lines.append(text(left + width + 26, at + 11, name))
    lines.append(text(left, top + height + 54, "squared factors of the sum"))
    return "\n".join([*lines, "</svg>"]) + "\n"


def picture(bits: int = 64) -> str:
    """Bootstraps of every round at one width, lean and fast, an operation a panel."""
    width, height, left, top, gap = 380, 170, 56, 52, 76
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * (width + gap) + 20}" '
        f'height="{2 * (height + gap) + 50}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{left}" y="22" font-size="15">Bootstraps of each round of {bits}-bit integers</text>',
    ]
    for k, (name, label) in enumerate(DRAWN):
        forms = {form: cost(name, bits, form) for form in ("lean", "fast")}
        x0, y0 = left + k % 2 * (width + gap), top + k // 2 * (height + gap) + 20
        most = max(max(rounds) for _, _, rounds in forms.values())
        longest = max(depth for _, depth, _ in forms.values())
        same = forms["lean"] == forms["fast"]
        parts.append(f'<text x="{x0}" y="{y0 - 8}" font-size="13">{escape(label)}</text>')
        parts.append(f'<path d="M{x0},{y0} V{y0 + height} H{x0 + width}" fill="none" stroke="#37474f"/>')
        parts.append(f'<text x="{x0 - 6}" y="{y0 + 10}" text-anchor="end">{most:,}</text>')
        parts.append(f'<text x="{x0 - 6}" y="{y0 + height}" text-anchor="end">0</text>')
        parts.append(
            f'<text x="{x0 + width}" y="{y0 + height + 16}" text-anchor="end">round {longest}</text>'
        )
        for i, (form, (count, depth, rounds)) in enumerate(forms.items()):
            if same and form == "fast":
                continue
            points = []
            for r, n in enumerate(rounds):
                y = y0 + height - height * n / most
                points += [
                    f"{x0 + width * r / longest:.1f},{y:.1f}",
                    f"{x0 + width * (r + 1) / longest:.1f},{y:.1f}",
                ]
            end = f"{x0 + width * depth / longest:.1f},{y0 + height}"
            line = " ".join([f"{x0},{y0 + height}", *points, end])
            parts.append(
                f'<polyline points="{line}" fill="{COLOURS[form]}" fill-opacity="0.18" '
                f'stroke="{COLOURS[form]}" stroke-width="1.5"/>'
            )
            text = f"{'lean and fast' if same else form}: {count:,} bootstraps, {depth} rounds"
            parts.append(
                f'<text x="{x0 + width}" y="{y0 - 22 + 15 * i}" text-anchor="end" '
                f'fill="{COLOURS[form]}">{text}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write, or say what is stale."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(arguments).check
    text = GUIDE.read_text(encoding="utf-8")
    for name, block in (("transfer", transfer()), ("costs", table()), ("times", gpu() + "\n" + times())):
        first = text.index(BEGIN.format(name)) + len(BEGIN.format(name))
        text = text[:first] + block + text[text.index(END, first) :]
    wanted = {
        GUIDE: text,
        PICTURES / "integers-rounds.svg": picture(),
        PICTURES / "integers-noise.svg": noise(),
        PICTURES / "integers-circuit.svg": timeline(),
    }
    stale = [p for p, t in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != t]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is stale: run python tools/gen_integers.py", file=sys.stderr)
        else:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
