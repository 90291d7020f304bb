"""FHECore: synthesis, and the model's records of a GPU with the unit.

Ours without the unit are hardware counters, with it the predictions of fhecore/sim (fhecore/doc/model.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from crenel.reproduce.builders import common, traces
from crenel.reproduce.charts import Bars, Stacks
from crenel.reproduce.outcome import MEASURED, SIMULATED, Work, builds
from crenel.reproduce.registry import Cell, find, number

PAPER = "fhecore"
TARGETS = {"h200": "H200", "a100": "A100, unvalidated"}
KINDS = {
    "hemult": "HEMult without rescaling",
    "rotate": "Rotate",
    "rescale": "Rescale",
    "hemultrescale": "HEMult and Rescale",
}
PRIMITIVES = ("hemultrescale", "rotate", "rescale")  # the paper's HEMult rescales
INTERVAL = "16"
TILE = 16, 8, 16  # rows, columns and steps
ELEMENTS, UNITS = 128, 432
WARPS = 64  # of a multiprocessor
A100_MM2 = 826.0
UM2_PER_MM2 = 1e6
US_PER_MS = 1e3
WORKLOADS = {"lr": "LR", "resnet20": "ResNet-20", "bert-tiny": "BERT-Tiny"}
OF_ALL = ("HEMult", "Rotate", "Rescale")


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


def predicted(work: Work) -> dict[str, dict[str, Any]]:
    """Records of the targets, noted as sources."""
    out = {}
    for target in TARGETS:
        found = common.predictions(work.results, target)
        if found:
            out[target] = found[1]
            work.source(found[0], f"the model's predictions, target {TARGETS[target]}", SIMULATED)
    if "bootstrap" in out.get("h200", {}):
        traces.remark(work, out["h200"]["bootstrap"]["classes"])
    return out


def operations(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By name, with HEMult and Rescale as their sum; times only of those that the model may predict."""
    by_name = {o["name"]: o for o in data["operations"]}
    out = {}
    for name, o in by_name.items():
        out[name] = _summed([o])
    for name in by_name:
        kind, _, limbs = name.partition("_")
        if kind == "hemult" and f"rescale_{limbs}" in by_name:
            out[f"hemultrescale_{limbs}"] = _summed([by_name[name], by_name[f"rescale_{limbs}"]])
    return out


def _summed(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = [row for part in parts for row in part["rows"]]
    timed = not any(part.get("refused") for part in parts)
    return {
        "rows": rows,
        "base": sum(r["base"] for r in rows),
        "with": sum(r["with"] for r in rows),
        "base_us": sum(p["base_us"] for p in parts) if timed else None,
        "with_us": sum(p["with_us"][INTERVAL] for p in parts) if timed else None,
        "measured_us": sum(p["measured_us"]["graph_us"] for p in parts)
        if all(p.get("measured_us") for p in parts)
        else None,
    }


def limbs_of(data: Mapping[str, Any]) -> list[str]:
    """Numbers of limbs, the most first."""
    return list(dict.fromkeys(o["name"].rpartition("_")[2] for o in data["operations"]))


def workload_records(work: Work, targets: Sequence[str] = ("h200",)) -> list[tuple[str, dict[str, Any]]]:
    """Composed workloads of these targets, noted as sources."""
    found = [r for r in work.results.of_kind("fhecore-workloads") if r[1]["target"] in targets]
    for file, data in found:
        work.source(
            file, f"workloads composed from their schedules, target {TARGETS[data['target']]}", SIMULATED
        )
    return found


@builds(PAPER, "table", 5)
def parameters(work: Work) -> None:
    """The sets that stand for the paper's."""
    rows: list[tuple[Cell, ...]] = []
    for workload, name in (
        ("Bootstrap, Rotate, HEMult, Rescale", "boot40"),
        ("LR, ResNet20, BERT-Tiny", "boot35"),
    ):
        p = common.preset(work, name)
        boot = next(iter(common.boots(work.results, name).values()), None)
        left = work.take(boot)["output_level"] if boot else None
        rows.append(
            (
                f"{workload} (ours: {name})",
                round(p.security_bits),
                p.log_n,
                p.log_pq,
                p.chain_limbs,
                left,
                p.dnum,
            )
        )
    columns = ("benchmark", "security", "log N", "log QP", "limbs", "levels left", "dnum")
    work.table("ours", columns, rows)


@builds(PAPER, "table", 6)
def instructions(work: Work) -> None:
    """Warp instructions of operations, a bootstrapping and workloads."""
    data = predicted(work).get("h200")
    rows: list[tuple[Cell, ...]] = []
    pairs: dict[str, float] = {}
    printed = {str(r[0]): number(r[1]) / number(r[2]) for r in work.item.rows}
    if data:
        work.out.kinds.add(MEASURED)
        for name, o in operations(data).items():
            kind, _, limbs = name.partition("_")
            rows.append((f"{KINDS[kind]}, {limbs} limbs", o["base"], o["with"], o["base"] / o["with"]))
            pairs[name] = o["base"] / o["with"]
        for limbs in limbs_of(data):
            mean = geometric_mean([pairs[f"{kind}_{limbs}"] for kind in PRIMITIVES])
            rows.append((f"geometric mean, {limbs} limbs", None, None, mean))
        if "bootstrap" in data:
            base, after = (sum(c[k] for c in data["bootstrap"]["classes"].values()) for k in ("base", "with"))
            rows.append(("Bootstrap, boot40", round(base), round(after), base / after))
            pairs["bootstrap"] = base / after
    for _, record in workload_records(work):
        for w in record["workloads"]:
            base, after = (sum(c[k] for c in w["classes"].values()) for k in ("base", "with"))
            rows.append((f"{w['title']}, by composition", round(base), round(after), base / after))
            pairs[w["name"]] = base / after
    work.table("ours", work.item.columns[:1] + ("without", "with FHEC", "ratio"), rows)
    own = [printed[n] for n in OF_ALL], [printed[n] for n in ("Bootstrap", "LR", "ResNet20", "BERT-Tiny")]
    work.table(
        "of the paper's rows",
        ("geometric mean", "ratio"),
        [("primitives", geometric_mean(own[0])), ("workloads", geometric_mean(own[1]))],
    )
    if pairs:
        limbs = limbs_of(data)[0] if data else ""
        keys = {"Bootstrap": "bootstrap", "LR": "lr", "ResNet20": "resnet20", "BERT-Tiny": "bert-tiny"}
        for title, kind in zip(OF_ALL, PRIMITIVES, strict=True):
            keys[title] = f"{kind}_{limbs}"
        series: dict[str, list[float | None]] = {"paper": list(printed.values())}
        series["ours"] = [pairs.get(keys[n]) for n in printed]
        work.chart(
            Bars("instructions without over with FHEC (Table VI)", "times", list(printed), series, ["ours"])
        )


@builds(PAPER, "table", 7)
def primitives(work: Work) -> None:
    """Both targets beside the libraries."""
    groups: dict[str, list[float | None]] = {}
    own = []
    for target, data in predicted(work).items():
        found = operations(data)
        for limbs in limbs_of(data):
            parts = {kind: found[f"{kind}_{limbs}"] for kind in PRIMITIVES}
            order = ("rescale", "rotate", "hemultrescale")
            where = f"{TARGETS[target]}, {limbs} limbs"
            if all(parts[k]["measured_us"] for k in order):
                work.beside(f"Crenel, {where}, measured", *(parts[k]["measured_us"] for k in order))
                work.out.kinds.add(MEASURED)
            if all(parts[k]["base_us"] for k in order):
                work.beside(f"Crenel, {where}, model without the unit", *(parts[k]["base_us"] for k in order))
                work.beside(f"Crenel, {where}, model with the unit", *(parts[k]["with_us"] for k in order))
                ups = [parts[k]["base_us"] / parts[k]["with_us"] for k in order]
                groups[f"Crenel, {where}"] = [*ups, geometric_mean(ups)]
                own.append(f"Crenel, {where}")
    if groups:
        last, first = work.item.rows[-1], work.item.rows[-2]
        paper = [number(a) / number(b) for a, b in zip(first[1:], last[1:], strict=True)]
        series: dict[str, list[float | None]] = {"paper, A100": [*paper, geometric_mean(paper)]}
        series |= groups
        names = ["Rescale", "Rotate", "HEMult", "geometric mean"]
        rows = [(name, *values) for name, values in series.items()]
        work.table("speed-up by the unit, II 16", ("", *names), rows)
        work.chart(Bars("speed-up by FHECore (Table VII)", "times", names, series, own))


@builds(PAPER, "table", 8)
def workload_times(work: Work) -> None:
    """A bootstrapping measured and scaled, workloads composed; GME's row of another paper."""
    data = predicted(work).get("h200")
    records = {record["target"]: record for _, record in workload_records(work, tuple(TARGETS))}
    ups: dict[str, list[float | None]] = {}
    for target, title in TARGETS.items():
        by = {w["name"]: w["classes"] for w in records.get(target, {"workloads": []})["workloads"]}
        if target == "h200" and data:
            by["bootstrap"] = data.get("bootstrap", {}).get("classes", {})
        times = {
            key: [traces.sums(by.get(n, {}), key) for n in ("bootstrap", *WORKLOADS)]
            for key in ("us", "with_us")
        }
        if not any(times["us"]):
            continue
        ratios = [a / b if a and b else None for a, b in zip(times["us"], times["with_us"], strict=True)]
        work.beside(f"{title} (ours, kernels)", *times["us"])
        work.beside(f"{title} with FHECore (ours, kernels)", *times["with_us"])
        work.beside(f"speed-up, {title} (ours)", *ratios)
        ups[f"Crenel, {title}"] = ratios
        work.out.kinds.add(MEASURED)  # the bootstrapping without the unit
    if ups:
        printed: dict[str, list[float | None]] = {"paper, A100": [number(v) for v in work.item.rows[2][1:]]}
        names = ["Bootstrap", "LR", "ResNet20", "BERT-Tiny"]
        title = "speed-up of workloads by FHECore (Table VIII)"
        work.chart(Bars(title, "times", names, printed | ups, list(ups)))
    traces.check(work, records.get("h200", {"workloads": [], "params": ""}))
    # GME [Cheddar, Table 5]: another way to change a GPU, whose workloads are not the paper's.
    work.table(
        "GME, as Cheddar's Table 5 prints it (another library's circuits on a modified MI100)",
        ("", "bootstrapping, ms", "HELR, ms an iteration", "ResNet-20, s"), _gme(),
    )  # fmt: skip


def _gme() -> list[tuple[Cell, ...]]:
    rows = {str(r[0]): r for r in find("cheddar", "table", 5).rows}
    base, after = rows["GME-base (MI100)"], rows["GME (modified MI100)"]
    ratio = tuple(number(a) / number(b) for a, b in zip(base[1:], after[1:], strict=True))
    return [base, after, ("speed-up", *ratio)]


def synthesis(work: Work, design: str) -> dict[str, dict[str, Any]] | None:
    """Netlists by name, of the record that has this one; noted as a source."""
    for file, data in work.results.of_kind("crenel-fhecore-synthesis"):
        found = {r["design"]: r for r in data["results"]}
        if design in found:
            work.source(file, f"{data['conditions']}: `{data['provenance']['command']}`", SIMULATED)
            return found
    return None


def latencies(work: Work) -> tuple[Cell, Cell]:
    """Cycles of the modular element and of the array, by the verification of the paper's unit: a tile's last
    element is there after its steps, the skew of rows and columns, and the element's own cycles."""
    for file, data in work.results.of_kind("crenel-fhecore-verification"):
        if data["config"] == "paper":
            work.source(file, f"{data['simulator']}: `{data['provenance']['command']}`", SIMULATED)
            array = int(data["figures"]["array_latency_with_c"])
            rows, cols, steps = TILE
            return array - (steps + rows - 1 + cols - 1), array
    return None, None


@builds(PAPER, "table", 4)
def enhanced(work: Work) -> None:
    """An element with a unit for each format, without and with the modular one beside it."""
    found = synthesis(work, "tensor_pe_fhe")
    if not found:
        return
    both = [found["tensor_pe_fhe"], found["tensor_pe"]]
    areas = [r["area"] for r in both]
    mm2 = [UNITS * ELEMENTS * area / UM2_PER_MM2 for area in areas]
    added = mm2[0] - mm2[1]

    def row(what: str, elements: Sequence[Cell], grids: Sequence[Cell]) -> tuple[Cell, ...]:
        return (what, elements[0], grids[0], elements[1], grids[1])

    clocks = [r["frequency_ghz"] for r in both]
    none: tuple[Cell, ...] = (None, None)
    element, _ = latencies(work)
    rows = [
        row("frequency, GHz", clocks, clocks),
        row("latency, cycles", (element, None), none),
        row("area, um2", areas, [ELEMENTS * area for area in areas]),
        row("area of all, mm2", none, mm2),
        row("die, mm2", none, (A100_MM2 + added, A100_MM2)),
        row("die overhead, %", none, (100 * added / A100_MM2, None)),
    ]
    work.table("ours", work.item.columns, rows)
    theirs = [number(work.item.rows[2][at]) for at in (3, 1)]
    names = ["tensor core's element", "with the modular one"]
    series: dict[str, list[float | None]] = {"paper": [*theirs], "ours": [*areas[::-1]]}
    work.chart(Bars("area of an element after synthesis (Table IV)", "um2", names, series, ["ours"]))


@builds(PAPER, "table", 9)
def rtl(work: Work) -> None:
    """Element and array."""
    found = synthesis(work, "modmul_pe_cs")
    if not found:
        return
    element, around = found["modmul_pe_cs"], found["array_periphery"]
    grid = ELEMENTS * element["area"] + around["area"]
    clock = min(element["frequency_ghz"], around["frequency_ghz"])
    of_element, latency = latencies(work)
    rows = [
        ("frequency, GHz", element["frequency_ghz"], clock),
        ("latency, cycles", of_element, latency),
        ("area, um2", element["area"], grid),
        (f"area of {UNITS}, mm2", None, UNITS * grid / UM2_PER_MM2),
    ]
    work.table("ours", work.item.columns, rows)
    theirs = [number(v) for v in work.item.rows[2][1:]]
    names = ["element", "16x8 array"]
    series = {"paper": theirs, "ours": [element["area"], grid]}
    work.chart(Bars("area after synthesis (Table IX)", "um2", names, series, ["ours"], log=True))


@builds(PAPER, "table", 10)
def area(work: Work) -> None:
    """The A100 with our arrays, and with whole units."""
    found = synthesis(work, "modmul_pe_cs")
    if not found:
        return
    grid = ELEMENTS * found["modmul_pe_cs"]["area"] + found["array_periphery"]["area"]
    sizes = {"arrays": grid}
    if "wrapper_periphery" in found:
        sizes["units: arrays, operands, results, control"] = grid + found["wrapper_periphery"]["area"]
    rows = []
    bars, values = [str(c) for c in work.item.columns[1:]], [number(v) for v in work.item.rows[3][1:]]
    for what, each in sizes.items():
        mm2 = UNITS * each / UM2_PER_MM2
        rows.append((f"{UNITS} {what}", A100_MM2, A100_MM2 + mm2, 100 * mm2 / A100_MM2))
        bars.append(f"ours: {what}")
        values.append(100 * mm2 / A100_MM2)
    work.table("ours: A100", ("", "baseline die, mm2", "die with them, mm2", "overhead, %"), rows)
    work.chart(Bars("die overhead (Table X)", "%", bars, {"": values}, bars[2:]))


def shares(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float]:
    """Sums by class of kernel."""
    out: dict[str, float] = {}
    for row in rows:
        out[row["class"]] = out.get(row["class"], 0.0) + row[key]
    return out


@builds(PAPER, "figure", 1)
def decomposition(work: Work) -> None:
    """Times by class of a bootstrapping and of composed workloads, without the unit."""
    bars: dict[str, dict[str, float]] = {}
    data = predicted(work).get("h200")
    if data and "bootstrap" in data:
        own = {n: c["us"] for n, c in data["bootstrap"]["classes"].items() if "us" in c}
        if own:
            bars["Bootstrap, measured"] = own
            work.out.kinds.add(MEASURED)
    for _, record in workload_records(work):
        for w in record["workloads"]:
            if all("us" in c for c in w["classes"].values()):
                bars[w["title"]] = {n: c["us"] for n, c in w["classes"].items()}
    _stacks(work, bars, "time by kernel on an H200, without the unit (Fig. 1)", "%", shares_=True)


def _stacks(
    work: Work, bars: Mapping[str, Mapping[str, float]], title: str, unit: str, *, shares_: bool
) -> None:
    """A table of shares and the picture."""
    if not bars:
        return
    names = list(dict.fromkeys(n for own in bars.values() for n in own))
    rows: list[tuple[Cell, ...]] = [
        (bar, *(common.percent(own.get(n, 0.0), sum(own.values())) for n in names))
        for bar, own in bars.items()
    ]
    work.table("ours: shares, %", ("", *names), rows)
    parts = {n: [own.get(n, 0.0) for own in bars.values()] for n in names}
    work.chart(Stacks(title, unit, list(bars), parts, shares=shares_))


@builds(PAPER, "figure", 7)
def occupancy(work: Work) -> None:
    """IPC of a multiprocessor and warps, weighted by the time of each kernel."""
    rows: list[tuple[Cell, ...]] = []
    for target, data in predicted(work).items():
        groups: list[str] = []
        ipc: dict[str, list[float | None]] = {"without": [], "with FHECore": []}
        busy: dict[str, list[float | None]] = {label: [] for label in ipc}
        for o in data["operations"]:
            if o.get("refused"):
                continue
            kind, _, limbs = o["name"].partition("_")
            groups.append(f"{KINDS[kind]}, {limbs}")
            for side, key, label in (("base", "base_us", "without"), ("with", "with_us_16", "with FHECore")):
                total = sum(r[key] for r in o["rows"])
                per_cycle, warps = (
                    sum(r[f"{side}_{f}"] * r[key] for r in o["rows"]) / total for f in ("ipc", "warps")
                )
                rows.append(
                    (TARGETS[target], f"{KINDS[kind]}, {limbs} limbs", label, per_cycle, 100 * warps / WARPS)
                )
                ipc[label].append(per_cycle)
                busy[label].append(100 * warps / WARPS)
        for what, unit, values in (("instructions a cycle", "IPC", ipc), ("warps of 64", "%", busy)):
            work.chart(Bars(f"{what}, {TARGETS[target]} (Fig. 7)", unit, groups, values, list(values)))
    work.table("ours", ("target", "operation", "unit", "IPC of a multiprocessor", "warps of 64, %"), rows)


@builds(PAPER, "figure", 8)
def iterations(work: Work) -> None:
    """Instructions and times by the factors of the transforms."""
    data = predicted(work).get("h200")
    if not data or "sweep" not in data:
        return
    sweep = data["sweep"]
    rows = [
        (f"{r['coeff_to_slot']} and {r['slot_to_coeff']}", r["levels_left"], round(r["base"]),
         round(r["with"]), r["us"] / US_PER_MS, r["with_us"] / US_PER_MS,
         r["with_us"] / US_PER_MS / r["levels_left"])
        for r in sweep
    ]  # fmt: skip
    work.table(
        "ours: by composition, not run",
        (
            "factors into and out of the slots",
            "levels left",
            "instructions",
            "with FHEC",
            "ms",
            "ms with FHECore",
            "ms a level with",
        ),
        rows,
    )
    first = sweep[0]
    names = [str(r[0]) for r in rows]
    series = {
        "instructions": [r["base"] / first["base"] for r in sweep],
        "instructions, FHECore": [r["with"] / first["base"] for r in sweep],
        "time": [r["us"] / first["us"] for r in sweep],
        "time, FHECore": [r["with_us"] / first["us"] for r in sweep],
    }
    work.chart(
        Bars(
            "bootstrapping by FFT factors, the first without the unit is 1 (Fig. 8)",
            "",
            names,
            series,
            list(series),
        )
    )


def _both_sides(work: Work, keys: tuple[str, str], sums: tuple[str, str], title: str, unit: str) -> None:
    """Stacked bars of primitives, bootstrapping and workloads, without and with the unit, the former 1."""
    data = predicted(work).get("h200")
    bars: dict[str, dict[str, float]] = {}
    if data:
        for o in data["operations"]:
            kind, _, limbs = o["name"].partition("_")
            if limbs != limbs_of(data)[0] or (o.get("refused") and keys[0] != "base"):
                continue
            whole = sum(r[keys[0]] for r in o["rows"])
            for side, key in zip(("", " + FHECore"), keys, strict=True):
                bars[f"{KINDS[kind]}{side}"] = {n: v / whole for n, v in shares(o["rows"], key).items()}
        _add_classes(bars, "Bootstrap", data.get("bootstrap", {}).get("classes", {}), sums)
    for _, record in workload_records(work):
        for w in record["workloads"]:
            _add_classes(bars, w["title"], w["classes"], sums)
    if bars:
        names = list(dict.fromkeys(n for own in bars.values() for n in own))
        rows = [(bar, *(own.get(n, 0.0) for n in names), sum(own.values())) for bar, own in bars.items()]
        work.table("ours, without the unit = 1", ("", *names, "sum"), rows)
        work.chart(
            Stacks(title, unit, list(bars), {n: [own.get(n, 0.0) for own in bars.values()] for n in names})
        )


def _add_classes(
    bars: dict[str, dict[str, float]], name: str, classes: Mapping[str, Any], keys: tuple[str, str]
) -> None:
    if not classes or any(keys[0] not in c for c in classes.values()):
        return
    whole = sum(c[keys[0]] for c in classes.values())
    for side, key in zip(("", " + FHECore"), keys, strict=True):
        bars[f"{name}{side}"] = {n: c[key] / whole for n, c in classes.items()}


@builds(PAPER, "figure", 9)
def latency(work: Work) -> None:
    """Times by class."""
    _both_sides(
        work,
        ("base_us", "with_us_16"),
        ("us", "with_us"),
        "latency by kernel on an H200 (Fig. 9)",
        "without = 1",
    )


@builds(PAPER, "figure", 10)
def counts(work: Work) -> None:
    """Instructions by class."""
    _both_sides(work, ("base", "with"), ("base", "with"), "instructions by kernel (Fig. 10)", "without = 1")
