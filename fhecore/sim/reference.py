"""The reference question: with the paper's instruction counts, does the model give the paper's speed-ups?

usage: reference [--out FILE]

HEMult with Rescale and Rotate at 47 limbs execute nearly as many warp instructions as the paper's, without
the unit and with it. So their traces stand for its baseline, on the target `a100`, with one property of the
machine changed at a time until the baseline is as slow as the paper's: arithmetic that takes longer (64-bit
words: wide products, carries), fewer warps, slower memory. data/reference-a100.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from . import archive, bootstrapping, compose, paper, params, validate

TARGET, LIMBS = "a100", 47
FILE = params.DATA / f"reference-{TARGET}.json"
ARITHMETIC = ("alu_interval", "fma_interval", "fmawide_interval", "wide_alu_cycles")
# Of each variant: what is multiplied, by what. Warps are set, not multiplied.
VARIANTS: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    "arithmetic slower": (ARITHMETIC, (2, 3, 4)),
    "memory slower": (compose.SCALED, (2, 3, 4)),
    "fewer warps": (("max_warps",), (2, 4)),
}
PAPER = {"hemultrescale": "HEMult", "rotate": "Rotate", "rescale": "Rescale"}


def ipc(instructions: float, us: float, values: Mapping[str, float]) -> float:
    """Warp instructions a cycle of a multiprocessor."""
    return instructions / (us * values["clock_ghz"] * 1e3 * values["sms"])


def changed(values: Mapping[str, float], names: tuple[str, ...], factor: float) -> dict[str, float]:
    """Intervals grow, rates and warps shrink."""
    grow = names == ARITHMETIC
    return {**values, **{k: values[k] * factor if grow else values[k] / factor for k in names}}


def times(
    sequences: Mapping[str, list[tuple]], values: dict[str, float], known: compose.Times
) -> dict[str, list[float]]:
    """[without, with the unit] of each of `PAPER`, us at II 16."""
    own = {
        kind: [
            compose.total_us(steps, {**values, "fhec_interval": 16}, known, unit) for unit in (False, True)
        ]
        for kind, steps in sequences.items()
    }
    whole = [a + b for a, b in zip(own["hemult"], own["rescale"], strict=True)]
    return {"hemultrescale": whole, "rotate": own["rotate"], "rescale": own["rescale"]}


def reference(data: Path = params.DATA) -> dict:
    """The record. NotValidated before the model is."""
    validation = validate.require("h200", data)
    values = params.load(TARGET, data)
    known = compose.Times()
    with tempfile.TemporaryDirectory(prefix="fhecore-") as work:
        folder = archive.unpack(data / archive.COMMITTED.name, Path(work))
        by_case: dict[str, list] = {}
        for case, launch in validate.load(folder, "operations"):
            by_case.setdefault(case, []).append(launch)
        unit = dict(validate.load(folder, "unit"))
    names = {kind: f"{kind}_{LIMBS}" for kind in ("hemult", "rotate", "rescale")}
    sequences = {kind: compose.steps(name, by_case[name], unit) for kind, name in names.items()}
    rows = [{"changed": "nothing", "factor": 1, "us": times(sequences, values, known)}]
    for what, (parameters, factors) in VARIANTS.items():
        for factor in factors:
            own = times(sequences, changed(values, parameters, factor), known)
            rows.append({"changed": what, "factor": factor, "us": own})
            print(f"{what}, {factor}: {own['hemultrescale'][0]:.0f} us", flush=True)
    counts = {
        kind: [
            sum(
                compose.counts(new if fhec and new else old, bool(fhec and new))["instructions"]
                for old, new in steps
            )
            for fhec in (False, True)
        ]
        for kind, steps in sequences.items()
    }
    counts["hemultrescale"] = [a + b for a, b in zip(counts["hemult"], counts["rescale"], strict=True)]
    return {
        "kind": "fhecore-reference", "target": TARGET, "limbs": LIMBS, "rows": rows,
        "counts": {kind: counts[kind] for kind in PAPER}, "sms": values["sms"],
        "clock_ghz": values["clock_ghz"],
        "fingerprint": validation["fingerprint"],
    }  # fmt: skip


def matched(rows: list[dict], changed_: str) -> tuple[float, dict[str, float]] | None:
    """(factor, speed-ups) where the model's HEMult and Rescale takes the paper's time, by interpolation
    between the factors; None where no factor reaches it."""
    wanted = paper.PRIMITIVES_US["HEMult"][0]
    own = [r for r in rows if r["changed"] in ("nothing", changed_)]
    for low, high in zip(own, own[1:], strict=False):
        a, b = (r["us"]["hemultrescale"][0] for r in (low, high))
        if a <= wanted <= b:
            t = (wanted - a) / (b - a)
            mix = {
                kind: [x + t * (y - x) for x, y in zip(low["us"][kind], high["us"][kind], strict=True)]
                for kind in PAPER
            }
            factor = low["factor"] + t * (high["factor"] - low["factor"])
            return factor, {kind: base / after for kind, (base, after) in mix.items()}
    return None


def table(found: dict) -> str:
    """Markdown: the paper, then every variant, and each kind of variant where it reaches the paper's time."""
    from .report import table as rendered

    head = [
        "",
        *(f"{name}, us without / with" for name in PAPER.values()),
        *(f"{n}, times" for n in PAPER.values()),
    ]
    head.append("geometric mean")

    def row(title: str, pairs: list, ups: list[float]) -> list[str]:
        shown = [f"{a:,.0f} / {b:,.0f}" if b else "" for a, b in pairs]
        return [title, *shown, *(f"{u:.2f}" for u in ups), f"{paper.geometric_mean(ups):.2f}"]

    own = [paper.PRIMITIVES_US[name] for name in PAPER.values()]
    rows = [row("paper, FIDESlib, A100", own, [paper.ratio(p) for p in own])]
    for r in found["rows"]:
        pairs = [r["us"][kind] for kind in PAPER]
        title = "model, A100" if r["factor"] == 1 else f"model, {r['changed']} by {r['factor']:g}"
        rows.append(row(title, pairs, [a / b for a, b in pairs]))
    for changed_ in VARIANTS:
        at = matched(found["rows"], changed_)
        if at:
            title = f"model, {changed_} until HEMult takes the paper's time: by {at[0]:.1f}"
            rows.append(row(title, [(0, 0)] * 3, list(at[1].values())))
    return rendered(head, rows)


def counts_table(found: dict) -> str:
    """Markdown: instructions and instructions a cycle, theirs and ours."""
    from .report import table as rendered

    first = found["rows"][0]["us"]
    rows = []
    for kind, name in PAPER.items():
        for title, count, us in (
            (f"paper: {name}", paper.INSTRUCTIONS[name], paper.PRIMITIVES_US[name]),
            (
                f"model: {'HEMult and Rescale' if kind == 'hemultrescale' else name}",
                found["counts"][kind],
                first[kind],
            ),
        ):
            cells = [f"{c:,.0f}" for c in count] + [
                f"{ipc(c, t, found):.2f}" for c, t in zip(count, us, strict=True)
            ]
            rows.append([title, *cells])
    head = ["", "instructions", "with FHEC", "IPC of a multiprocessor", "IPC with FHEC"]
    return rendered(head, rows)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fhecore.sim reference", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FILE)
    args = parser.parse_args(arguments)
    try:
        found = reference()
    except (validate.NotValidated, bootstrapping.ComposeError) as error:
        print(error, file=sys.stderr)
        return 1
    args.out.write_text(json.dumps(found, indent=1) + "\n")
    print(counts_table(found) + "\n" + table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
