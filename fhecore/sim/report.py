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

LABELS = {
    "hemult": "HEMult without rescaling", "rotate": "Rotate", "rescale": "Rescale",
    "hemultrescale": "HEMult and Rescale",
}  # fmt: skip
NOT, REFUSED = "not measured", "refused"
PAPER_MEAN = ("hemultrescale", "rotate", "rescale")  # the paper's HEMult rescales


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(r) + " |" for r in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + "\n"


def label(name: str) -> str:
    kind, limbs = name.rsplit("_", 1)
    return f"{LABELS[kind]}, {limbs} limbs"


def sums(operation: dict) -> tuple[int, int]:
    return sum(r["base"] for r in operation["rows"]), sum(r["with"] for r in operation["rows"])


def limbs_of(operation: dict) -> str:
    return operation["name"].rsplit("_", 1)[1]


def with_rescaled(operations: list[dict]) -> list[dict]:
    """And, for every number of limbs, HEMult followed by Rescale: the sums of the two."""
    by_name, out = {o["name"]: o for o in operations}, list(operations)
    for limbs in dict.fromkeys(map(limbs_of, operations)):
        parts = [by_name.get(f"{kind}_{limbs}") for kind in ("hemult", "rescale")]
        if None in parts:
            continue
        whole = {"name": f"hemultrescale_{limbs}", "rows": [r for o in parts for r in o["rows"]]}
        whole["base_us"] = sum(o["base_us"] for o in parts)
        whole["with_us"] = {i: sum(o["with_us"][i] for o in parts) for i in parts[0]["with_us"]}
        whole["refused"] = next((o["refused"] for o in parts if o.get("refused")), None)
        if all(o.get("measured_us") for o in parts):
            whole["measured_us"] = {"graph_us": sum(o["measured_us"]["graph_us"] for o in parts)}
        out.append(whole)
    return out


def means(operations: list[dict], ratio) -> list[tuple[str, float]]:
    """(limbs, geometric mean of HEMult and Rescale, Rotate, Rescale), as the paper's; numbers of limbs are
    not mixed, and a mean lacks no member."""
    out = []
    for limbs in dict.fromkeys(map(limbs_of, operations)):
        own = [o for o in operations if o["name"] in {f"{kind}_{limbs}" for kind in PAPER_MEAN}]
        if len(own) == len(PAPER_MEAN):
            out.append((limbs, paper.geometric_mean([ratio(o) for o in own])))
    return out


def accepted(predictions: dict) -> list[dict]:
    """Operations that the model may predict the times of."""
    return [o for o in predictions["operations"] if not o.get("refused")]


def counts_table(predictions: dict | None) -> str:
    head, rows = ["warp instructions", "without", "with FHEC", "ratio"], []
    for name, pair in paper.INSTRUCTIONS.items():
        rows.append([f"paper: {name}", f"{pair[0]:,}", f"{pair[1]:,}", f"{paper.ratio(pair):.2f}"])
    if predictions is None:
        rows.append(["ours", NOT, NOT, NOT])
        return table(head, rows)
    operations = with_rescaled(predictions["operations"])
    for o in operations:
        base, after = sums(o)
        rows.append([f"ours: {label(o['name'])}", f"{base:,}", f"{after:,}", f"{base / after:.2f}"])
    for limbs, mean in means(operations, lambda o: paper.ratio(sums(o))):
        rows.append([f"ours: geometric mean, {limbs} limbs", "", "", f"{mean:.2f}"])
    if "bootstrap" in predictions:
        classes = predictions["bootstrap"]["classes"].values()
        base, after = (sum(c[k] for c in classes) for k in ("base", "with"))
        figures = [f"{base:,.0f}", f"{after:,.0f}", f"{base / after:.2f}"]
        rows.append(["ours: Bootstrap (by composition)", *figures])
    else:
        rows.append(["ours: Bootstrap", NOT, NOT, NOT])
    rows.append(["ours: LR, ResNet20, BERT-Tiny", NOT, NOT, NOT])
    return table(head, rows)


def latency_row(o: dict, band: str) -> list[str]:
    if o.get("refused"):
        return [f"ours: {label(o['name'])}", f"{REFUSED}: {o['refused']}", *[REFUSED] * 4, ""]
    own = [o["with_us"][str(i)] for i in (16, 32, 44)]
    speed = " / ".join(f"{o['base_us'] / x:.2f}" for x in own)
    seen = NOT
    if o.get("measured_us"):
        graph = o["measured_us"]["graph_us"]
        seen = f"{graph:.1f} (model {100 * (o['base_us'] / graph - 1):+.1f} %)"
    return [f"ours: {label(o['name'])}", f"{o['base_us']:.1f}{band}", *(f"{x:.1f}{band}" for x in own),
            speed, seen]  # fmt: skip


def latency_table(predictions: dict | None, error: float | None) -> str:
    head = ["us", "without", "II 16", "II 32", "II 44", "speed-up (16 / 32 / 44)", "measured without"]
    rows = []
    for unit, figures in (("", paper.PRIMITIVES_US), (" (ms)", paper.WORKLOADS_MS)):
        rows += [
            [f"paper: {n}{unit}", str(a), str(b), "", "", f"{a / b:.2f}", ""] for n, (a, b) in figures.items()
        ]
        mean = paper.geometric_mean([paper.ratio(p) for p in figures.values()])
        rows.append(["paper: geometric mean", "", "", "", "", f"{mean:.2f}", ""])
    if predictions is None:
        return table(head, [*rows, ["ours", *[NOT] * 6]])
    band = "" if error is None else f" ± {100 * error:.0f} %"
    operations = with_rescaled(predictions["operations"])
    rows += [latency_row(o, band) for o in operations]
    allowed = [o for o in operations if not o.get("refused")]
    by_interval = [means(allowed, lambda o, i=i: o["base_us"] / o["with_us"][str(i)]) for i in (16, 32, 44)]
    for found in zip(*by_interval, strict=True):
        text = " / ".join(f"{mean:.2f}" for _, mean in found)
        rows.append([f"ours: geometric mean, {found[0][0]} limbs", "", "", "", "", text, ""])
    classes = predictions.get("bootstrap", {}).get("classes", {}).values()
    if classes and all("us" in c for c in classes):
        base, after = (sum(c[k] for c in classes) / 1e3 for k in ("us", "with_us"))
        rows.append(["ours: Bootstrap, kernels (ms)", f"{base:.2f}", f"{after:.2f}{band}", "", "",
                     f"{base / after:.2f}", ""])  # fmt: skip
    else:
        rows.append(["ours: Bootstrap, kernels (ms)", NOT, "", "", "", "", ""])
    return table(head, rows)


def variants_table(predictions: dict | None) -> str:
    if predictions is None or not accepted(predictions):
        return NOT + "\n"
    head = ["changed", *(label(o["name"]) for o in accepted(predictions))]
    rows = []
    for text in accepted(predictions)[0]["variants"]:
        pairs = [o["variants"][text] for o in accepted(predictions)]
        rows.append([text, *(f"{a / b:.2f}" for a, b in pairs)])
    noise = "Small differences are the order of warps, which any change upsets ([how much](model.md))."
    return f"Speed-up at II 16, one thing changed on both sides. {noise}\n\n" + table(head, rows)


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
    # Counts are no predictions of times: those of refused operations stand.
    for o in predictions["operations"] if keys[0] == "base" else accepted(predictions):
        for side, key in zip(("without", "with"), keys, strict=True):
            found = shares(o["rows"], key)
            text = ", ".join(f"{c} {100 * s:.0f} %" for c, s in sorted(found.items(), key=lambda x: -x[1]))
            rows.append([label(o["name"]), side, text])
    return table(["operation", "FHECore", what], rows)


def occupancy_table(predictions: dict | None) -> str:
    if predictions is None:
        return NOT + "\n"
    rows = []
    for o in accepted(predictions):
        for side in ("base", "with"):
            key = "base_us" if side == "base" else "with_us_16"
            total = sum(r[key] for r in o["rows"])
            ipc, warps = (sum(r[f"{side}_{f}"] * r[key] for r in o["rows"]) / total for f in ("ipc", "warps"))
            which = "without" if side == "base" else "with"
            rows.append([label(o["name"]), which, f"{ipc:.2f}", f"{100 * warps / 64:.0f} %"])
    return table(["operation", "FHECore", "IPC of a multiprocessor", "warps of 64"], rows)


def sweep_table(predictions: dict | None) -> str:
    """Composed from the real run's costs: factors into and out of the slots, the library's most are 4 and
    3."""
    if predictions is None or "sweep" not in predictions:
        return NOT + "\n"
    head = ["factors (in, out)", "levels left", "instructions without", "with"]
    head += ["ms without", "with", "ms a level, with"]
    rows = []
    for r in predictions["sweep"]:
        times = [NOT] * 3
        if "us" in r:
            ms = [r["us"] / 1e3, r["with_us"] / 1e3]
            times = [f"{ms[0]:.2f}", f"{ms[1]:.2f}", f"{ms[1] / max(1, r['levels_left']):.3f}"]
        rows.append(
            [f"{r['coeff_to_slot']}, {r['slot_to_coeff']}", str(r["levels_left"]), f"{r['base']:,.0f}",
             f"{r['with']:,.0f}", *times]
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
        f"{validation['kernels']} kernels that no parameter was fitted to: mean error"
        f" {100 * validation['mean']:.1f} %, worst"
        f" {100 * validation['worst']:.1f} %, correlation {validation['pearson']:.3f}.\n\n"
    )
    return text + table(["case", "kernel", "cycles measured", "model", "error"], rows)


def markdown(target: str, predictions: dict | None, validation: dict | None, reason: str) -> str:
    # The error on the H200 is no band of another GPU's figures.
    error = validation["mean"] if validation and target == "h200" else None
    parts = [
        f"# FHECore on {params.note(target)}\n",
        "Of a trace-driven model of one multiprocessor. Figures of FHECore are this model's predictions,"
        " printed only"
        " while its validation on an H200 holds: no Accel-Sim, no A100 was run. 32-bit RNS on both sides. An"
        " operation that the model misses by more than 15 % on the H200 is refused. The paper's HEMult"
        " rescales: compare HEMult and Rescale, which the geometric means take.\n",
        "## Validation\n", validation_section(validation, reason),
        f"**No prediction is printed:** {reason}\n" if validation and reason else "",
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
        f"Paper: best at {paper.FFT_ITERATIONS_BEST}.\n",
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
            if predictions.get("fingerprint") != validation["fingerprint"]:
                predictions, reason = None, f"{path.name} is of another model or calibration: compose again"
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
