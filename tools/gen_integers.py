"""Table and picture of docs/guide/integers.md: bootstraps and rounds of operations on encrypted integers.

    python tools/gen_integers.py            # writes them
    python tools/gen_integers.py --check    # says what is stale; exit code 1

Both are counted on the circuits that run with lut4-128; the installed package has them. Where that set
changes, run it again.
"""

from __future__ import annotations

import argparse
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs/guide/integers.md"
PICTURE = ROOT / "docs/assets/integers-rounds.svg"
BEGIN, END = "<!-- computed costs -->\n", "<!-- /computed -->"

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
    first = text.index(BEGIN) + len(BEGIN)
    wanted = {GUIDE: text[:first] + table() + text[text.index(END, first) :], PICTURE: picture()}
    stale = [p for p, t in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != t]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is stale: run python tools/gen_integers.py", file=sys.stderr)
        else:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
