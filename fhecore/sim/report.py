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
from .interval import Errors, NoInterval

LABELS = {
    "hemult": "HEMult without rescaling", "rotate": "Rotate", "rescale": "Rescale",
    "hemultrescale": "HEMult and Rescale",
}  # fmt: skip
NOT, REFUSED = "not measured", "refused"
SCALED_BY = "hemult_47"  # whose ratio a bootstrapping's kernels are scaled by
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
    rows.append(["ours: LR, ResNet20, BERT-Tiny", *["[by composition](model.md)"] * 3])
    return table(head, rows)


def workloads_table(found: dict | None) -> str:
    """Workloads composed from their schedules, beside what was measured and the paper's ratios."""
    if found is None:
        return f"{NOT}\n"
    theirs = {"bootstrap": "Bootstrap", "lr": "LR", "resnet20": "ResNet20", "bert-tiny": "BERT-Tiny"}
    rows = []
    for w in found["workloads"]:
        base, after = (sum(c[k] for c in w["classes"].values()) for k in ("base", "with"))
        times, seen = [NOT] * 3, NOT
        if all("us" in c for c in w["classes"].values()):
            us, with_us = (sum(c[k] for c in w["classes"].values()) for k in ("us", "with_us"))
            times = [f"{us / 1e3:.1f}", f"{with_us / 1e3:.1f}", f"{us / with_us:.2f}"]
            if w["measured_us"]:
                seen = f"{w['measured_us'] / 1e3:.1f} (composed {100 * (us / w['measured_us'] - 1):+.1f} %)"
            elif w.get("elsewhere"):
                seen = beside_run(w["elsewhere"], us, found["params"])
        elif w["refused"]:
            times, seen = [REFUSED] * 3, w["refused"]
        name = theirs[w["name"]]
        printed = [f"{paper.ratio(pair[name]):.2f}" for pair in (paper.INSTRUCTIONS, paper.WORKLOADS_MS)]
        figures = [f"{base:,.0f}", f"{base / after:.2f}", printed[0], *times, printed[1], seen]
        rows.append([f"{w['title']}: {w['what']}", *figures])
    head = ["", "instructions", "with FHEC, times fewer", "paper", "ms", "ms with FHECore", "times", "paper"]
    return table([*head, "measured without, ms"], rows)


def beside_run(run: dict, us: float, sets: str) -> str:
    """A run on another card, by later kernels; how far off only with the composed set."""
    where = f"{run['device']}, {run['params']}, commit {run['commit']}"
    off = f"composed {100 * (us / run['us'] - 1):+.1f} %" if run["params"] == sets else "another set"
    return f"{run['us'] / 1e3:.1f} on an {where} ({off})"


def span(low: float, high: float, digits: int) -> str:
    return f"{low:.{digits}f} to {high:.{digits}f}"


def ratio_span(o: dict, errors: Errors | None) -> str:
    """The interval of a speed-up at II 16, of the measured time without the unit."""
    if errors is None or not o.get("measured_us"):
        return ""
    return span(*errors.speed_up(o["measured_us"]["graph_us"], o["with_us"]["16"]), 2)


def latency_row(o: dict, errors: Errors | None) -> list[str]:
    if o.get("refused"):
        return [f"ours: {label(o['name'])}", f"{REFUSED}: {o['refused']}", *[REFUSED] * 5, ""]
    own = [o["with_us"][str(i)] for i in (16, 32, 44)]
    speed = " / ".join(f"{o['base_us'] / x:.2f}" for x in own)
    seen = NOT
    if o.get("measured_us"):
        graph = o["measured_us"]["graph_us"]
        seen = f"{graph:.1f} (model {100 * (o['base_us'] / graph - 1):+.1f} %)"
    first = f"{own[0]:.1f}" + (f" ({span(*errors.time(own[0]), 1)})" if errors else "")
    return [f"ours: {label(o['name'])}", f"{o['base_us']:.1f}", first, *(f"{x:.1f}" for x in own[1:]),
            speed, ratio_span(o, errors), seen]  # fmt: skip


def latency_table(predictions: dict | None, errors: Errors | None) -> str:
    head = ["us", "without", "II 16", "II 32", "II 44", "speed-up (16 / 32 / 44)", "interval at II 16"]
    head.append("measured without")
    rows = []
    for unit, figures in (("", paper.PRIMITIVES_US), (" (ms)", paper.WORKLOADS_MS)):
        rows += [
            [f"paper: {n}{unit}", str(a), str(b), "", "", f"{a / b:.2f}", "", ""]
            for n, (a, b) in figures.items()
        ]
        mean = paper.geometric_mean([paper.ratio(p) for p in figures.values()])
        rows.append(["paper: geometric mean", "", "", "", "", f"{mean:.2f}", "", ""])
    if predictions is None:
        return table(head, [*rows, ["ours", *[NOT] * 7]])
    operations = with_rescaled(predictions["operations"])
    rows += [latency_row(o, errors) for o in operations]
    allowed = [o for o in operations if not o.get("refused")]
    by_interval = [means(allowed, lambda o, i=i: o["base_us"] / o["with_us"][str(i)]) for i in (16, 32, 44)]
    for found in zip(*by_interval, strict=True):
        text = " / ".join(f"{mean:.2f}" for _, mean in found)
        limbs = found[0][0]
        own = span_of_mean(allowed, limbs, errors)
        rows.append([f"ours: geometric mean, {limbs} limbs", "", "", "", "", text, own, ""])
    classes = predictions.get("bootstrap", {}).get("classes", {}).values()
    if classes and all("us" in c for c in classes):
        base, after = (sum(c[k] for c in classes) / 1e3 for k in ("us", "with_us"))
        # `base` was measured and `after` scaled by HEMult's ratio, so that HEMult's own error is out of it.
        own = after * (1 + errors.by_name[SCALED_BY]) if errors and SCALED_BY in errors.by_name else None
        with_span = f"{after:.2f}" + (f" ({span(*errors.time(own), 2)})" if own else "")
        ratio = span(*errors.speed_up(base, own), 2) if own else ""
        rows.append(["ours: Bootstrap, kernels (ms)", f"{base:.2f}", with_span, "", "",
                     f"{base / after:.2f}", ratio, ""])  # fmt: skip
    else:
        rows.append(["ours: Bootstrap, kernels (ms)", NOT, *[""] * 6])
    return table(head, rows)


def span_of_mean(operations: list[dict], limbs: str, errors: Errors | None) -> str:
    """Of a geometric mean: all of its members at the same end, as errors of operations go together."""
    if errors is None or not all(o.get("measured_us") for o in operations if limbs_of(o) == limbs):
        return ""
    ends = []
    for k in (0, 1):
        found = means(
            operations, lambda o, k=k: errors.speed_up(o["measured_us"]["graph_us"], o["with_us"]["16"])[k]
        )
        ends.append(dict(found)[limbs])
    return span(*ends, 2)


def errors_section(predictions: dict | None, validation: dict | None) -> str:
    """Errors of whole operations without the unit, and what the intervals are."""
    if predictions is None or validation is None:
        return f"{NOT}\n"
    if predictions["target"] != "h200":
        return f"No interval: {NOT} on this GPU, and errors on the H200 say nothing of another one.\n"
    try:
        errors = Errors.of(predictions["operations"])
    except NoInterval as reason:
        return f"No interval: {reason}.\n"
    rows = [
        [label(o["name"]), f"{o['measured_us']['graph_us']:.1f}", f"{o['base_us']:.1f}",
         f"{100 * errors.by_name[o['name']]:+.1f} %"]
        for o in predictions["operations"] if o["name"] in errors.by_name
    ]  # fmt: skip
    count, (some, of) = len(errors.by_name), errors.chance
    low, high = (100 * (end - 1) for end in errors.time(1.0))
    inside, outside = len(errors.left_out()), count - len(errors.within(validation["mean"]))
    text = (
        f"\nWithout the unit the model errs by {100 * errors.least:+.1f} to {100 * errors.greatest:+.1f} %"
        f" over {count} operations. The interval of a predicted time takes it to err as much with the unit:"
        f" {low:+.1f} to {high:+.1f} % of the prediction. That of a speed-up is the measured time without the"
        f" unit over it. Leave one out: the measured times of {inside} of {count} operations lie in the"
        " interval of the others' errors (the two at the ends cannot). One more operation, if it is like"
        f" these, lies in the interval of all with a chance of {some} in {of}. That the model errs alike with"
        " the unit is an assumption, which nothing can test. The kernels' mean error"
        f" ({100 * validation['mean']:.1f} %) is no interval: {outside} of {count} operations lie outside.\n"
    )
    return table(["operation, us", "measured", "model", "error"], rows) + text


SIDES = (
    ("h200", "ours, H200: validated on it"),
    ("a100", "ours, A100: public figures and the H200's fitted pipes; unvalidated, no interval"),
)


def beside_table(data: Path) -> str:
    """The paper's A100 beside both of our targets: speed-ups at II 16."""
    ratios = [paper.ratio(paper.PRIMITIVES_US[n]) for n in ("HEMult", "Rotate", "Rescale")]
    head = ["speed-up by FHECore", *(LABELS[kind] for kind in PAPER_MEAN), "geometric mean", "interval of it"]
    mean = paper.geometric_mean(ratios)
    rows = [["paper, A100: Accel-Sim", *(f"{r:.2f}" for r in ratios), f"{mean:.2f}", ""]]
    for target, what in SIDES:
        predictions, _, reason = load(target, data)
        if predictions is None:
            rows.append([f"{what}: {reason}", *[NOT] * 5])
            continue
        operations = [o for o in with_rescaled(predictions["operations"]) if not o.get("refused")]
        errors = errors_of(predictions)
        by_name = {o["name"]: o["base_us"] / o["with_us"]["16"] for o in operations}
        for limbs, mean in means(operations, lambda o: o["base_us"] / o["with_us"]["16"]):
            own = [f"{by_name[f'{kind}_{limbs}']:.2f}" for kind in PAPER_MEAN]
            ends = span_of_mean(operations, limbs, errors)
            rows.append([f"{what}, {limbs} limbs", *own, f"{mean:.2f}", ends])
    return table(head, rows)


def errors_of(predictions: dict) -> Errors | None:
    """Those of the operations; None for a target that was not measured, or where too few were."""
    if predictions["target"] != "h200":
        return None
    try:
        return Errors.of(predictions["operations"])
    except NoInterval:
        return None


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
    """Composed from the real run's costs: factors into and out of the slots, the library's most are 5 and
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


def markdown(
    target: str, predictions: dict | None, validation: dict | None, reason: str, data: Path = params.DATA
) -> str:
    parts = [
        f"# FHECore on {params.note(target)}\n",
        "Of a trace-driven model of one multiprocessor. Figures of FHECore are this model's predictions,"
        " printed only"
        " while its validation on an H200 holds: no Accel-Sim, no A100 was run. 32-bit RNS on both sides. An"
        " operation that the model misses by more than 15 % on the H200 is refused. The paper's HEMult"
        " rescales: compare HEMult and Rescale, which the geometric means take.\n",
        "## Beside the paper\n", beside_table(data),
        "## Validation, on the H200\n", validation_section(validation, reason),
        f"**No prediction is printed:** {reason}\n" if validation and reason else "",
        "## Errors of operations, and intervals\n", errors_section(predictions, validation),
        "## Dynamic instructions (table VI)\n", counts_table(predictions),
        "## Latency (tables VII and VIII)\n",
        latency_table(predictions, errors_of(predictions) if predictions else None),
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


def load(target: str, data: Path) -> tuple[dict | None, dict | None, str]:
    """(predictions, validation, ""), or None and the reason why there are none that may be printed."""
    try:
        validation = validate.require("h200", data)
    except validate.NotValidated as error:
        return None, None, str(error)
    path = data / f"predictions-{target}.json"
    if not path.exists():
        return None, validation, f"no {path.name}"
    predictions = json.loads(path.read_text())
    if predictions.get("fingerprint") != validation["fingerprint"]:
        return None, validation, f"{path.name} is of another model or calibration: compose again"
    return predictions, validation, ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="h200")
    parser.add_argument("--data", type=Path, default=params.DATA)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    predictions, validation, reason = load(args.target, args.data)
    text = markdown(args.target, predictions, validation, reason, args.data)
    if args.out is None:
        print(text)
    else:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"report-{args.target}.md").write_text(text)
        if predictions is not None:
            from . import plots

            plots.all_figures(predictions, validation, errors_of(predictions), args.out)
    return 0 if predictions is not None else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
