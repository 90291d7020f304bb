"""Theodosian: what of its tables and figures the records hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crenel.reproduce.builders import common, kernels, ladders
from crenel.reproduce.charts import Bars, Lines, Roofline, Stacks
from crenel.reproduce.outcome import COMPUTED, MEASURED, SIMULATED, Work, builds, made
from crenel.reproduce.registry import Cell, number
from crenel.reproduce.results import Found, newest, short_device

PAPER = "theodosian"
US_PER_MS = 1e3
MB = 1e6
FULL_LIMBS, HALF_LIMBS, FEW_LIMBS = 48, 24, 12  # of its key switches
SPARSE_WEIGHT = 32
SAME_SET = "boot35-h1024"  # the modulus, weights and scale of Table IV
DENSE = "ternary, P(+-1) = 1/4"  # N / 2 nonzero coefficients expected
# Kernels that multiply by keys: the second stage of a key switch. All else that it launches before its
# division is the first, whatever is fused there.
KEY_PRODUCTS = ("key_switch_rows", "key_multiply", "hoisted_sums", "shared_sums")
LIMB_RANGES = ((1, 10), (11, 20), (21, 30), (31, 40), (41, 60))


@builds(PAPER, "table", 1)
def parameters(work: Work) -> None:
    """Beside the paper's column stands boot40's."""
    p = common.preset(work, "boot40")
    weight = str(p.hamming_weight) if p.hamming_weight else DENSE
    log_n = p.ring_dim.bit_length() - 1
    values: tuple[Cell, ...] = (
        f"2^{log_n}",
        p.chain_limbs,
        p.dnum,
        p.log_pq,
        weight,
        SPARSE_WEIGHT,
        f"2^{p.log_scale}",
    )
    names = [r[0] for r in work.item.rows]
    rows: list[tuple[Cell, ...]] = [(n, v) for n, v in zip(names, values, strict=True)]
    rows.append(("security, bits", p.security_bits))
    work.table("ours: boot40", ("parameter", "ours"), rows)


@builds(PAPER, "table", 2)
def workloads(work: Work) -> None:
    """Bootstrapping, HELR and ResNet-20, on each device that was measured."""
    boots = common.boots(work.results, "boot40")
    trained = common.helr(work.results, "boot40")
    nets = common.network(work.results, "resnet20", "boot40")
    by_device = common.networks_by_device(nets)
    ours: dict[str, list[float | None]] = {}
    for device in dict.fromkeys([*boots, *trained, *by_device]):
        boot = float(work.take(boots[device])["latency_us"]) / US_PER_MS if device in boots else None
        iteration = None
        if device in trained:
            run, time, _ = trained[device]
            work.take(run)
            iteration = time / US_PER_MS
        ours[device] = [boot, iteration]
        if boot is not None or iteration is not None:
            work.beside(device, "Crenel", boot, iteration, None)
        for each in by_device.get(device, []):
            work.take(each.run)
            work.beside(device, f"Crenel, {each.polynomials}", None, None, each.seconds * US_PER_MS)
    common.remark_polynomials(work, nets)
    _alike(work, boots)
    for found, what, command in (
        (boots, "bootstrapping", "boot:boot40"),
        (trained, "HELR", "helr:boot40"),
        (nets, "ResNet-20", "resnet20:boot40"),
    ):
        if not found:
            work.lack(what, command)
    for at, what in ((0, "bootstrapping"), (1, "HELR, an iteration")):
        bars = [(f"{row[1]}, {row[0]}", row[2 + at]) for row in work.item.rows if row[2 + at] is not None]
        own = [(f"Crenel, {device}", values[at]) for device, values in ours.items() if values[at] is not None]
        if own:
            names = [name for name, _ in (*bars, *own)]
            values = [number(v) for _, v in (*bars, *own)]
            work.chart(Bars(f"{what} (Table II)", "ms", names, {"": values}, [n for n, _ in own], log=True))


# Rows of Table II whose GPU we have, too, by what the driver calls it.
SAME_GPU = {"H100 SXM": "NVIDIA H100 80GB HBM3", "H200 SXM": "NVIDIA H200"}


def _alike(work: Work, boots: Mapping[str, Found]) -> None:
    """Bootstrapping on the same GPUs."""
    rows = {str(row[0]): number(row[2]) for row in work.item.rows if row[1] == "Theodosian"}
    said = []
    for theirs, ours in SAME_GPU.items():
        if ours in boots:
            ms = number(boots[ours].row["latency_us"]) / US_PER_MS
            said.append(
                f"{theirs} {rows[theirs]:g} ms there, {ms:.3g} here ({rows[theirs] / ms:.2f} times as long)"
            )
    if said:
        work.remark(
            f"Like for like are bootstraps on the same GPUs, at scale 2^40, 128 bits and 13 levels left: "
            f"{'; '.join(said)}. The paper's H100 80GB has PCIe and slower memory; the driver calls the H100"
            f" SXM {SAME_GPU['H100 SXM']}."
        )


WORD_BYTES = 4


def footprints(limbs: int, alpha: int, ring_dim: int) -> tuple[int, int]:
    """Bytes that stages 1 and 3 of a key switch hold, as the paper's table counts: every digit raised to all
    limbs and the special ones; both quotients, and what is taken from each, at all limbs."""
    digits = -(-limbs // alpha)
    each = ring_dim * WORD_BYTES
    return digits * (limbs + alpha) * each, 4 * limbs * each


@builds(PAPER, "table", 3)
def key_switch_traffic(work: Work) -> None:
    """Bytes of the stages: held by arithmetic, moved as the launches state them."""
    found = common.traffic(work.results, "boot40", "bootstrap")
    if found is None:
        return
    common.take_traffic(work, found)
    ring_dim = common.preset(work, found[1]["params"]).ring_dim
    groups: list[str] = []
    theirs: list[float | None] = []
    own: list[float | None] = []
    for case in found[1]["key_switch"]:
        digits = case.get("digits", "-")  # unknown to old records
        stages = [b / MB for b in case["bytes"]]
        held = [b / MB for b in footprints(case["limbs"], case["alpha"], ring_dim)]
        work.beside(f"{case['limbs']}, {case['alpha']}, {digits} (ours)", *held, *stages)
        groups += [f"{case['paper']['limbs']} limbs, stage {k}" for k in (1, 2, 3)]
        theirs += case["paper"]["stages"]
        own += stages
    for file, data in work.results.of_kind("crenel-ncu-account"):
        off = [abs(v) for v in data["kernels"].values()]
        within = sum(v <= data["tolerance"] for v in off)
        what = f"hardware counters: {within} of {len(off)} kernels within {100 * data['tolerance']:.0f} %"
        work.source(file, made(what, data["provenance"]), MEASURED)
    work.chart(
        Bars(
            "bytes of a key switch (Table III)",
            "MB",
            groups,
            {"Theodosian": theirs, "Crenel": own},
            ["Crenel"],
        )
    )


@builds(PAPER, "table", 4)
def optimised_bootstrapping(work: Work) -> None:
    """boot35 and the set of the same modulus and weights: precision, levels and time. Of a set that nothing
    measured, the bound of its launches, which says that it is one."""
    groups = [str(row[0]) for row in work.item.rows]
    times = [number(row[7]) for row in work.item.rows]
    own = []
    for params in ("boot35", SAME_SET):
        boots = common.boots(work.results, params)
        if not boots and (stated := common.traffic(work.results, params, "bootstrap")):
            _simulated(work, params, stated)
        for device, found in boots.items():
            row, p = work.take(found), common.preset(work, params)
            precision = work.results.documents[found.file].get("precision", {}).get("mean_max_error_log2")
            name, ms = f"Crenel, {params}, {device}", number(row["latency_us"]) / US_PER_MS
            weight = p.hamming_weight or DENSE
            work.beside(
                name,
                row["log_pq"],
                precision,
                row["scale_bits"],
                weight,
                SPARSE_WEIGHT,
                row["output_level"],
                ms,
            )
            own.append(name)
            groups.append(name)
            times.append(ms)
    _errors_of_same_set(work)
    _launches(work, ("boot35", SAME_SET))
    if own:
        work.chart(Bars("bootstrapping at scale 2^35 (Table IV)", "ms", groups, {"": times}, own))


def _simulated(work: Work, params: str, stated: tuple[str, dict[str, Any]]) -> None:
    """A row of Table IV by the launches alone: the bound on the time, and levels and errors of any device's
    record of the set, which do not depend on the device."""
    common.take_traffic(work, stated, SIMULATED)
    p = common.preset(work, params)
    of: Mapping[str, Any] = {}
    precision: Mapping[str, Any] = {}
    for _, data, its in _errors_of(work, params):
        of, precision = its, data["precision"]
        break
    work.beside(
        f"Crenel, {params}, simulated: the bound of its launches at an H200's rates",
        p.log_pq,
        precision.get("mean_max_error_log2"),
        p.log_scale,
        p.hamming_weight or DENSE,
        SPARSE_WEIGHT,
        of.get("output_level"),
        stated[1]["total"]["bound"] * 1e3,
    )


def _launches(work: Work, sets: Sequence[str]) -> None:
    """What the launches of a bootstrapping state, set by set."""
    rows: list[tuple[Cell, ...]] = []
    for params in sets:
        found = common.traffic(work.results, params, "bootstrap")
        if found is None:
            continue
        common.take_traffic(work, found, SIMULATED)
        whole = found[1]["total"]
        gigabytes = whole["bytes"] / 1e9, whole["dram_bytes"] / 1e9
        rows.append((params, whole["launches"], *gigabytes, whole["bound"] * 1e3))
    columns = ("set", "launches", "GB at L2", "GB at the memory, by the model", "bound, ms")
    work.table("ours, simulated: launches of one bootstrapping at the rates of an H200", columns, rows)


def _errors_of(work: Work, params: str) -> Iterator[tuple[str, dict[str, Any], Mapping[str, Any]]]:
    """Records of errors of full-slot bootstrappings, those without times, too: (file, record, its set)."""
    for file, data in work.results.of_kind("crenel-bench"):
        of = data["results"][0] if data.get("results") else data.get("configuration", {})
        if of.get("params") == params and data.get("precision"):
            yield file, data, of


def _errors_of_same_set(work: Work) -> None:
    """Of records of errors alone, too: they do not depend on the device."""
    rows = []
    for file, data, of in _errors_of(work, SAME_SET):
        p, ratio = data["precision"], f"2^{of['message_ratio']}"
        if file not in work.out.sources:  # with its times
            work.source(file, f"{short_device(data['provenance'])}: errors of {SAME_SET}", MEASURED)
        levels, security = of["output_level"], of["security_bits"]
        rows.append((short_device(data["provenance"]), ratio, p["runs"], p["mean_max_error_log2"],
                     p["worst_error_log2"], levels, of["log_pq"], security))  # fmt: skip
    columns = (
        "",
        "message ratio",
        "bootstraps",
        "log2 of the largest error, mean",
        "worst",
        "levels left",
        "log PQ",
        "bits of security",
    )
    work.table(f"ours: errors of {SAME_SET}, uniform in [-1, 1]^2", columns, rows)


@builds(PAPER, "figure", 1)
def memories(work: Work) -> None:
    """Rates that an H200 reached."""
    for file, data in work.results.of_kind("crenel-ceilings"):
        work.source(file, f"{data['device']}: {data['provenance']['measured_by']}")
        l2, dram = data["l2_read_write_tb_per_s"], data["dram_read_write_tb_per_s"]
        rows = [*map(tuple, data["groups"]["memory"]), *map(tuple, data["groups"]["arithmetic"][:3])]
        work.table(f"ours: {data['device']}", ("ceiling", "figure", "note"), rows)
        work.table("ours", ("", "value"), [("L2 rate over DRAM rate, both directions", l2 / dram)])
        stated = {str(row[0]): number(row[1]) for row in work.item.rows}
        names = [k for k in stated if k.startswith("L2 rate of")]
        values = [stated[k] for k in names]
        ours = [f"{data['device']}, L2", f"{data['device']}, DRAM"]
        names = [n.removeprefix("L2 rate of the ").removesuffix(", TB/s") + ", L2" for n in names]
        work.chart(
            Bars(
                "memory rates, reading and writing (Fig. 1b)",
                "TB/s",
                [*names, *ours],
                {"": [*values, l2, dram]},
                ours,
            )
        )


@builds(PAPER, "figure", 2)
def utilisation(work: Work) -> None:
    """Traffic of transforms and conversions over their time, in units of the measured rate of L2."""
    rates = common.rate("l2") / 1e9
    series: dict[str, list[tuple[float, float]]] = {}
    rows = []
    for name, title in (("ntt", "NTT"), ("intt", "INTT"), ("base_convert", "base conversion")):
        for file, row in work.results.kernels(operation=name, graph=False):
            if not row.get("gb_per_s") or "H200" not in row["device"]:
                continue
            work.source(
                file, f"{row['device'].partition(', compute')[0]}: kernels alone, N = 2^{row['log_n']}"
            )
            series.setdefault(title, []).append((row["limbs"], 100 * row["gb_per_s"] / rates))
            rows.append((title, row["limbs"], row["us"], row["gb_per_s"], 100 * row["gb_per_s"] / rates))
    work.table("ours", ("kernel", "limbs", "us", "GB/s", "of L2's rate, %"), rows)
    if series:
        points = {k: sorted(v) for k, v in series.items()}
        work.chart(Lines("L2 by limbs (Fig. 2a)", "limbs", "% of L2's measured rate", points))
    if not kernels.by_limbs(work):
        work.lack(
            "utilisation of pipes and network by limb count, and core share of the instructions", "pipes"
        )


@builds(PAPER, "figure", 3)
def roofline(work: Work) -> None:
    """The roofline of one bootstrapping by kind of work, and shares."""
    found = common.traffic(work.results, "boot40", "bootstrap")
    if found is None:
        return
    common.take_traffic(work, found)
    data = found[1]
    rates = {name: float(rate["value"]) for name, rate in data["ceilings"].items()}
    boots = common.boots(work.results, "boot40")
    last = newest([f for f in boots.values() if "H200" in f.device])
    whole = data["total"]
    rows = [("bytes at L2, GB", whole["bytes"] / 1e9), ("bound by L2, ms", whole["l2_time"] * 1e3)]
    rows.append(("bound, the longest of three a launch, ms", whole["bound"] * 1e3))
    points = {
        r["name"]: (r["multiply_adds"] / r["bytes"], r["multiply_adds"] / r["bound"])
        for r in data["by_work"]
        if r["multiply_adds"]
    }
    if last is not None:
        seconds = float(work.take(last)["latency_us"]) / 1e6
        rows += [("measured, ms", seconds * 1e3), ("measured over the bound", seconds / whole["bound"])]
        points["bootstrapping, measured"] = (
            whole["multiply_adds"] / whole["bytes"],
            whole["multiply_adds"] / seconds,
        )
    points["bootstrapping, bound"] = (
        whole["multiply_adds"] / whole["bytes"],
        whole["multiply_adds"] / whole["bound"],
    )
    work.table("ours", ("boot40, NVIDIA H200", "value"), rows)
    work.chart(
        Roofline(
            "roofline (Fig. 3, left); kinds of work at their bounds",
            {"L2": rates["l2"], "DRAM": rates["dram_read"]},
            {"multiply-adds": rates["multiply_add"], "butterflies": rates["butterfly"]},
            points,
        )
    )
    names = {"time bound": "bound", "bytes at L2": "bytes", "core products": "multiply_adds"}
    parts = {r["name"]: [number(r[key]) for key in names.values()] for r in data["by_work"]}
    work.chart(Stacks("shares by operation (Fig. 3, right)", "%", list(names), parts, shares=True))


@builds(PAPER, "figure", 5)
def batches(work: Work) -> None:
    """Amortised time of a ciphertext by batch."""
    if not work_batches(work, [3, 5, 7, 9, 11], "hmult", "HMult + relinearise"):
        work.lack("operations on batches", "batches")
    if not kernels.by_polynomials(work):
        work.lack("counters of single kernels at other batch sizes", "pipes")


def work_batches(work: Work, limbs: list[int], name: str, title: str) -> bool:
    """A table and curves of amortised times, of each device's newest record in which a number of limbs has
    two sizes of a batch or more. False: there is none."""
    found = work.results.rows("ckks", name=name, params="boot40", graph=True, timing="queued", inputs="same")
    by_file: dict[str, dict[int, dict[int, Found]]] = {}
    for f in found:
        if f.row["limbs"] in limbs:
            by_file.setdefault(f.file, {}).setdefault(f.row["limbs"], {})[f.row["batch"]] = f
    several = {
        file: rows
        for file, own in by_file.items()
        if (rows := {count: sizes for count, sizes in sorted(own.items()) if len(sizes) > 1})
    }
    last: dict[str, tuple[str, str]] = {}
    for file, rows in several.items():
        one = next(f for sizes in rows.values() for f in sizes.values())
        last[one.device] = max(last.get(one.device, ("", "")), (one.date, file))
    for device, (_, file) in last.items():
        _batches_of(work, several[file], f"{title}, boot40, {device}, CUDA graph", title)
    return bool(last)


def _batches_of(work: Work, rows: Mapping[int, Mapping[int, Found]], what: str, title: str) -> None:
    """Of one record: limbs -> size of a batch -> row."""
    sizes = sorted({size for own in rows.values() for size in own})
    body: list[tuple[Cell, ...]] = []
    series: dict[str, list[tuple[float, float]]] = {}
    for count, own in rows.items():
        us = {size: float(work.take(own[size])["amortised_us"]) for size in sorted(own)}
        least, most = min(us), max(us)
        body.append((count, *(us.get(size) for size in sizes), us[least] / us[most]))
        series[f"{count} limbs"] = [(size, us[least] / each) for size, each in us.items()]
    columns = ("limbs", *(f"batch {size}, us each" for size in sizes), "the least batch over the greatest")
    work.table(f"ours: {what}", columns, body)
    work.chart(Lines(f"{title} of a batch: times faster a ciphertext", "batch", "times", series, logx=2))


@builds(PAPER, "figure", 6)
def stages(work: Work) -> None:
    """Of one HMult at the most limbs: how near each stage is to the rates of L2 and DRAM."""
    found = common.kernel_rows(work.results, "hmult")
    if found is None:
        return
    file, data, rows = found
    work.source(file, common.counted(data, "one HMult"))
    l2, dram = common.rate("l2"), common.rate("dram_read")
    body, groups = [], []
    shares: dict[str, list[float | None]] = {"L2": [], "DRAM": []}
    switch = [r for r in rows if r["stage"].endswith("key_switch")]
    divide = [r for r in rows if r["stage"].endswith("divide")]
    parts = {
        "1: decompose and raise": [r for r in switch if r["kernel"] not in KEY_PRODUCTS],
        "2: product with the key": [r for r in switch if r["kernel"] in KEY_PRODUCTS],
        "3: divide": divide,
    }
    for title, own in parts.items():
        us = sum(r["us"] for r in own)
        moved = sum(r["read"] + r["written"] for r in own)
        from_memory = sum(r["dram_bytes"] for r in own)
        values = [100 * moved / (us * 1e-6) / l2, 100 * from_memory / (us * 1e-6) / dram]
        body.append((title, us, moved / MB, from_memory / MB, *values))
        groups.append(title)
        shares["L2"].append(values[0])
        shares["DRAM"].append(values[1])
    work.table(
        "ours", ("stage", "us", "at L2, MB", "at DRAM, MB", "of L2's rate, %", "of DRAM's rate, %"), body
    )
    work.chart(
        Bars(
            "stages of key switching (Fig. 6, left)", "% of the measured rate", groups, shares, ["L2", "DRAM"]
        )
    )


@builds(PAPER, "figure", 7)
def key_switching(work: Work) -> None:
    """The ladder, key switches eager and as a graph, and a batch of them at few limbs."""
    if not ladders.take_rungs(work, "key_switch", "theodosian-7a", "Fig. 7a"):
        work.lack("the key switch step by step", "ablation")
    rows = []
    groups: list[str] = []
    series: dict[str, list[float | None]] = {"eager": [], "CUDA graph": []}
    for limbs in (FULL_LIMBS, HALF_LIMBS, FEW_LIMBS):
        own = {}
        for file, row in work.results.kernels(operation="key_switch", limbs=limbs):
            own[row["graph"]] = row["us"]
            work.source(
                file, f"{row['device'].partition(', compute')[0]}: kernels alone, N = 2^{row['log_n']}"
            )
        if own:
            rows.append((limbs, own.get(False), own.get(True)))
            groups.append(f"{limbs} limbs")
            series["eager"].append(own.get(False))
            series["CUDA graph"].append(own.get(True))
    work.table("ours: key switch", ("limbs", "eager, us", "CUDA graph, us"), rows)
    if groups:
        work.chart(Bars("key switching (Fig. 7a)", "us", groups, series, list(series)))
    if not work_batches(work, [11], "hrot", "HRot"):
        work.lack("rotations of batches", "batches")


@builds(PAPER, "figure", 8)
def bootstrapping(work: Work) -> None:
    """The ladder; eager, graph, minimal keys; and bytes by limb count."""
    if not ladders.take_rungs(work, "bootstrap", "theodosian-8a", "Fig. 8a"):
        work.lack("bootstrapping step by step", "ablation")
    ladders.take_rungs(work, "bootstrap", "without", "beside Fig. 8a")
    cases = [
        ("minimal keys, eager", False, "minimal"),
        ("minimal keys, CUDA graph", True, "minimal"),
        ("eager", False, "hoisted"),
        ("CUDA graph", True, "hoisted"),
    ]
    by: dict[str, list[tuple[str, float]]] = {}
    for title, graph, keys in cases:
        for device, found in common.boots(work.results, "boot40", graph=graph, keys=keys).items():
            ms = float(work.take(found)["latency_us"]) / US_PER_MS
            by.setdefault(device, []).append((title, ms))
    for device, own in by.items():
        work.table(f"ours: bootstrapping, boot40, {device}", ("", "ms"), own)
        names = [title for title, _ in own]
        work.chart(
            Bars(f"bootstrapping, {device} (Fig. 8a)", "ms", names, {"": [ms for _, ms in own]}, names)
        )
    stated = common.traffic(work.results, "boot40", "bootstrap")
    if stated is None:
        return
    common.take_traffic(work, stated)
    bars = {"bootstrapping": {int(r["name"]): float(r["bytes"]) for r in stated[1]["by_limbs"]}}
    for file, data in work.results.of_kind("fhecore-schedules"):
        what = f"launches of whole workloads, {data['params']}, stated by {data['device']}"
        work.source(file, what, COMPUTED)
        for workload in data["workloads"]:
            moves = bars.setdefault(workload["title"].replace("LR", "HELR"), {})
            for _, limbs, _, _, moved, count in workload["launches"]:
                moves[limbs] = moves.get(limbs, 0.0) + moved * count
    whole = [sum(v for k, v in each.items() if k) for each in bars.values()]
    parts = {
        f"{low} to {high}": [
            100 * sum(v for k, v in each.items() if low <= k <= high) / total
            for each, total in zip(bars.values(), whole, strict=True)
        ]
        for low, high in LIMB_RANGES
    }
    rows: list[tuple[Cell, ...]] = [
        (name, *(values[k] for values in parts.values())) for k, name in enumerate(bars)
    ]
    title = "ours: share of the bytes at L2 by limbs of a launch's output, special ones included, %"
    work.table(title, ("", *parts), rows)
    work.chart(
        Stacks("bytes by limbs, special ones included (Fig. 8b)", "% of the bytes at L2", list(bars), parts)
    )
