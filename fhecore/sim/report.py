"""The evaluation as markdown and plots: tables VI to VIII and figures 1, 7 to 10, the paper's figures
beside ours.

usage: report.py [--target h200] [--data DIR] [--out DIR]

Everything about FHECore comes from predictions-<target>.json and is printed only when validate.require lets
it; until then the report says what is not measured and prints the paper's figures alone (exit status 3).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import paper, params, validate

LABELS = {"hemult": "HEMult", "rotate": "Rotate", "rescale": "Rescale"}
NOT = "not measured"
OPERATION = 0.15  # whole operations: error of the model without the unit


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(r) + " |" for r in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + "\n"


def label(name: str) -> str:
    kind, limbs = name.rsplit("_", 1)
    return f"{LABELS[kind]}, {limbs} limbs"


def sums(operation: dict) -> tuple[int, int]:
    return sum(r["base"] for r in operation["rows"]), sum(r["with"] for r in operation["rows"])


def counts_table(predictions: dict | None) -> str:
    rows = []
    for name, pair in paper.INSTRUCTIONS.items():
        rows.append([f"paper: {name}", f"{pair[0]:,}", f"{pair[1]:,}", f"{paper.ratio(pair):.2f}"])
    if predictions is None:
        rows.append(["ours", NOT, NOT, NOT])
        return table(["warp instructions", "without", "with FHEC", "ratio"], rows)
    ratios = []
    for o in predictions["operations"]:
        base, after = sums(o)
        ratios.append(base / after)
        rows.append([f"ours: {label(o['name'])}", f"{base:,}", f"{after:,}", f"{base / after:.2f}"])
    rows.append(["ours: geometric mean", "", "", f"{paper.geometric_mean(ratios):.2f}"])
    if "bootstrap" in predictions:
        classes = predictions["bootstrap"]["classes"].values()
        base, after = (sum(c[k] for c in classes) for k in ("base", "with"))
        rows.append(
            ["ours: Bootstrap (by composition)", f"{base:,.0f}", f"{after:,.0f}", f"{base / after:.2f}"]
        )
    else:
        rows.append(["ours: Bootstrap", NOT, NOT, NOT])
    rows.append(["ours: LR, ResNet20, BERT-Tiny", NOT, NOT, NOT])
    return table(["warp instructions", "without", "with FHEC", "ratio"], rows)


def latency_table(predictions: dict | None, error: float | None) -> str:
    head = ["us", "without", "II 16", "II 32", "II 44", "speed-up (16 / 32 / 44)", "measured without"]
    rows = [
        [f"paper: {n}", str(a), str(b), "", "", f"{a / b:.2f}", ""]
        for n, (a, b) in paper.PRIMITIVES_US.items()
    ]
    rows += [
        [f"paper: {n} (ms)", str(a), str(b), "", "", f"{a / b:.2f}", ""]
        for n, (a, b) in paper.WORKLOADS_MS.items()
    ]
    if predictions is None:
        return table(head, [*rows, ["ours", *[NOT] * 6]])
    band = f" ± {100 * error:.0f} %"
    for o in predictions["operations"]:
        own = [o["with_us"][str(i)] for i in (16, 32, 44)]
        speed = " / ".join(f"{o['base_us'] / x:.2f}" for x in own)
        seen = NOT
        if o.get("measured_us"):
            graph = o["measured_us"]["graph_us"]
            error_here = o["base_us"] / graph - 1
            outside = "" if abs(error_here) <= OPERATION else ", OUTSIDE 15 %"
            seen = f"{graph:.1f} (model {100 * error_here:+.1f} %{outside})"
        rows.append(
            [
                f"ours: {label(o['name'])}",
                f"{o['base_us']:.1f}{band}",
                *(f"{x:.1f}{band}" for x in own),
                speed,
                seen,
            ]
        )
    if "bootstrap" in predictions:
        classes = predictions["bootstrap"]["classes"].values()
        base, after = (sum(c[k] for c in classes) / 1e3 for k in ("us", "with_us"))
        rows.append(
            [
                "ours: Bootstrap, kernels (ms)",
                f"{base:.2f}",
                f"{after:.2f}{band}",
                "",
                "",
                f"{base / after:.2f}",
                "",
            ]
        )
    return table(head, rows)


def variants_table(predictions: dict | None) -> str:
    if predictions is None:
        return NOT + "\n"
    head = ["changed", *(label(o["name"]) for o in predictions["operations"])]
    rows = []
    for text in predictions["operations"][0]["variants"]:
        pairs = [o["variants"][text] for o in predictions["operations"]]
        rows.append([text, *(f"{a / b:.2f}" for a, b in pairs)])
    return "Speed-up at II 16, one thing changed on both sides:\n\n" + table(head, rows)


def shares(rows: list[dict], key: str) -> dict[str, float]:
    total = sum(r[key] for r in rows)
    out: dict[str, float] = {}
    for r in rows:
        out[r["class"]] = out.get(r["class"], 0.0) + r[key] / total
    return out


def shares_table(predictions: dict | None, keys: tuple[str, str], what: str) -> str:
    if predictions is None:
        return NOT + "\n"
    rows = []
    for o in predictions["operations"]:
        for side, key in zip(("without", "with"), keys, strict=True):
            found = shares(o["rows"], key)
            text = ", ".join(f"{c} {100 * s:.0f} %" for c, s in sorted(found.items(), key=lambda x: -x[1]))
            rows.append([label(o["name"]), side, text])
    return table(["operation", "FHECore", what], rows)


def occupancy_table(predictions: dict | None) -> str:
    if predictions is None:
        return NOT + "\n"
    rows = []
    for o in predictions["operations"]:
        for side in ("base", "with"):
            key = "base_us" if side == "base" else "with_us_16"
            total = sum(r[key] for r in o["rows"])
            ipc, warps = (sum(r[f"{side}_{f}"] * r[key] for r in o["rows"]) / total for f in ("ipc", "warps"))
            rows.append(
                [
                    label(o["name"]),
                    "without" if side == "base" else "with",
                    f"{ipc:.2f}",
                    f"{100 * warps / 64:.0f} %",
                ]
            )
    return table(["operation", "FHECore", "IPC of a multiprocessor", "warps of 64"], rows)


def sweep_table(predictions: dict | None) -> str:
    """Composed from the real run's costs: factors into and out of the slots, the library's most are 4 and
    3."""
    if predictions is None or "sweep" not in predictions:
        return NOT + "\n"
    head = [
        "factors (in, out)",
        "levels left",
        "instructions without",
        "with",
        "ms without",
        "with",
        "ms a level, with",
    ]
    rows = []
    for r in predictions["sweep"]:
        ms = [r["us"] / 1e3, r["with_us"] / 1e3]
        rows.append(
            [f"{r['coeff_to_slot']}, {r['slot_to_coeff']}", str(r["levels_left"]), f"{r['base']:,.0f}",
             f"{r['with']:,.0f}", f"{ms[0]:.2f}", f"{ms[1]:.2f}", f"{ms[1] / max(1, r['levels_left']):.3f}"]
        )  # fmt: skip
    return "By composition, not run:\n\n" + table(head, rows)


def validation_section(validation: dict | None, reason: str) -> str:
    if validation is None:
        return f"**{NOT}: no prediction is printed.** {reason}\n"
    rows = [
        [r["case"], r["kernel"], f"{r['measured']:.0f}", f"{r['model']:.0f}", f"{100 * r['error']:+.1f} %"]
        for r in validation["rows"]
    ]
    text = (
        f"{validation['kernels']} kernels that nothing was fitted to: mean error"
        f" {100 * validation['mean']:.1f} %, worst"
        f" {100 * validation['worst']:.1f} %, correlation {validation['pearson']:.3f}.\n\n"
    )
    return text + table(["case", "kernel", "cycles measured", "model", "error"], rows)


def markdown(target: str, predictions: dict | None, validation: dict | None, reason: str) -> str:
    error = validation["mean"] if validation else None
    parts = [
        f"# FHECore on {params.note(target)}\n",
        "Of a trace-driven model of one multiprocessor. Figures of FHECore are this model's predictions,"
        " printed only"
        " while its validation on an H200 holds: no Accel-Sim, no A100 was run. 32-bit RNS on both sides.\n",
        "## Validation\n", validation_section(validation, reason),
        "## Dynamic instructions (table VI)\n", counts_table(predictions),
        "## Latency (tables VII and VIII)\n", latency_table(predictions, error),
        "## Sensitivity\n", variants_table(predictions),
        "## Time by class (figures 1 and 9)\n", shares_table(predictions, ("base_us", "with_us_16"),
        "share of time"),
        "Paper, figure 1: " + ", ".join(f"{k} {100 * v:.1f} %" for k, v in paper.SHARE.items()) + ".\n",
        "## Instructions by class (figure 10)\n", shares_table(predictions, ("base", "with"),
        "share of instructions"),
        "## Occupancy and IPC (figure 7)\n", occupancy_table(predictions),
        "## FFT iterations (figure 8)\n",
        sweep_table(predictions),
        "Paper: best at"
        f" {paper.FFT_ITERATIONS_BEST}.\n",
    ]  # fmt: skip
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="h200")
    parser.add_argument("--data", type=Path, default=params.DATA)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    validation = predictions = None
    reason = ""
    try:
        validation = validate.require("h200", args.data)
        path = args.data / f"predictions-{args.target}.json"
        if path.exists():
            predictions = json.loads(path.read_text())
        else:
            reason = f"no {path.name}"
    except validate.NotValidated as error:
        reason = str(error)
    text = markdown(args.target, predictions, validation, reason)
    if args.out is None:
        print(text)
    else:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"report-{args.target}.md").write_text(text)
        if predictions is not None:
            from . import plots

            plots.all_figures(predictions, validation, args.out)
    return 0 if predictions is not None else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
