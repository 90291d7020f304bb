"""Cheddar: what of its tables and figures the records hold."""

from __future__ import annotations

from crenel import ckks
from crenel.reproduce.builders import common, ladders
from crenel.reproduce.charts import Bars, Roofline, Stacks
from crenel.reproduce.outcome import COMPUTED, MEASURED, Work, builds
from crenel.reproduce.registry import Cell, number, peers

PAPER = "cheddar"
US_PER_MS = 1e3
BOOT_SETS = ("boot30", "boot35", "boot40", "boot45", "boot48dr", "boot50")
SCALES = (("boot48dr", "2^48 (DR)"), ("boot40", "2^40 (RR)"), ("boot35", "2^35 (RR)"), ("boot30", "2^30"))
OPERATIONS = ("hmult", "hrot", "hadd", "rescale")
# Stages of runs that are bootstraps.
BOOTSTRAPS = ("bootstrap", "refresh")
LEVELS_SHOWN = 9


def _levels(p: ckks.Params, count: int) -> list[tuple[Cell, ...]]:
    """Rows (level, terminal primes, main primes, log2 Q, log2 scale) from level 0."""
    rows: list[tuple[Cell, ...]] = []
    for level in range(count):
        main, terminal = p.levels[level]
        scale = None if level == 0 else round(float(p.log_q(level) - p.log_q(level - 1)), 2)
        rows.append((str(level), terminal, main, round(float(p.log_q(level)), 1), scale))
    return rows


@builds(PAPER, "table", 2)
def prime_system(work: Work) -> None:
    """The lowest levels of boot40."""
    p = common.preset(work, "boot40")
    columns = ("level", "terminal primes (25 bits)", "main primes (30 bits)", "log2 Q", "log2 of the step")
    work.table("ours: boot40", columns, _levels(p, LEVELS_SHOWN))


@builds(PAPER, "table", 3)
def reductions(work: Work) -> None:
    """Rates of products by several methods."""
    for file, data in work.results.of_kind("crenel-ceilings"):
        rows = [r for r in data["groups"]["arithmetic"] if "product" in r[0] or "butterfly" in r[0]]
        work.source(file, f"{data['device']}: {data['provenance']['measured_by']}")
        work.table(f"ours: {data['device']}", ("products", "a second", "note"), rows)


@builds(PAPER, "table", 4)
def gpus(work: Work) -> None:
    """What an H200 reached."""
    for file, data in work.results.of_kind("crenel-ceilings"):
        work.source(file, f"{data['device']}: {data['provenance']['measured_by']}")
        rows = [data["groups"]["arithmetic"][0], data["groups"]["memory"][0]]
        work.table(f"ours: {data['device']}, reached", ("ceiling", "figure", "note"), rows)


@builds(PAPER, "table", 5)
def workloads(work: Work) -> None:
    """Ours at two scales, and Cheddar's public code on an H200."""
    boots_seen = trained_seen = False
    all_nets: list[common.Network] = []
    names = [str(row[0]) for row in work.item.rows]
    times = [number(row[1]) for row in work.item.rows]
    own: list[str] = []
    table = peers()["bootstrap"]
    for library, scale, _, _, ms, *_ in table["rows"]:
        if library == "Cheddar" and scale in (35, 40):
            name = f"{library} (H200, scale 2^{scale}), measured here"
            work.other(name, ms, None, None)
            names.append(name)
            times.append(ms)
    for params, scale in (("boot40", 40), ("boot35", 35)):
        boots, trained = common.boots(work.results, params), common.helr(work.results, params)
        nets = common.network(work.results, "resnet20", params)
        all_nets += nets
        by_device = common.networks_by_device(nets)
        boots_seen, trained_seen = boots_seen or bool(boots), trained_seen or bool(trained)
        for device in dict.fromkeys([*boots, *trained, *by_device]):
            name = f"Crenel ({device}, scale 2^{scale})"
            boot = work.take(boots[device])["latency_us"] / US_PER_MS if device in boots else None
            iteration = None
            if device in trained:
                work.take(trained[device][0])
                iteration = trained[device][1] / US_PER_MS
            if boot is not None or iteration is not None:
                work.beside(name, boot, iteration, None)
            for each in by_device.get(device, []):
                work.take(each.run)
                work.beside(f"{name}, {each.polynomials}", None, None, each.seconds)
            if boot is not None:
                names.append(name)
                times.append(boot)
                own.append(name)
    common.remark_polynomials(work, all_nets)
    for seen, what, command in (
        (boots_seen, "bootstrapping", "boot:boot40"),
        (trained_seen, "HELR", "helr:boot40"),
        (bool(all_nets), "ResNet-20", "resnet20:boot40"),
    ):
        if not seen:
            work.lack(what, command)
    if own:
        work.chart(Bars("full-slot bootstrapping (Table 5)", "ms", names, {"": times}, own, log=True))


@builds(PAPER, "table", 6)
def scales(work: Work) -> None:
    """Time and function of the workloads at four scales."""
    groups: list[str] = []
    theirs: list[float | None] = []
    ours: list[float | None] = []
    all_nets: list[common.Network] = []
    for k, (params, scale) in enumerate(SCALES):
        trained, sorted_ = common.helr(work.results, params), common.sorts(work.results, params)
        nets = common.network(work.results, "resnet20", params)
        all_nets += nets
        for device in dict.fromkeys([*trained, *(f.device for f, _, _ in sorted_)]):
            cells: list[Cell] = [None] * 6
            if device in trained:
                run, time, accuracy = trained[device]
                work.take(run)
                cells[:2] = [time / US_PER_MS, accuracy]
                if "toy" not in run.row:
                    groups.append(f"HELR, {scale}")
                    theirs.append(number(work.item.rows[k][1]))
                    ours.append(time / US_PER_MS)
            of_device = [each for each in sorted_ if each[0].device == device]
            for f, seconds, bits in of_device[:1]:
                work.take(f)
                cells[4:] = [seconds, bits]
            work.beside(f"{scale}, Crenel, {params}, {device}", *cells)
        for each in nets:
            work.take(each.run)
            if each.accuracy:
                work.take(each.accuracy)
            of = f"{scale}, Crenel, {params}, {each.run.device}, {each.polynomials}"
            work.beside(of, None, None, each.seconds, each.judged, None, None)
        if not trained:
            work.lack(f"HELR at {scale}", f"helr:{params}")
        if not sorted_:
            work.lack(f"Sort at {scale}", f"sort:{params}")
        if not nets:
            work.lack(f"ResNet-20 at {scale}", f"resnet20:{params}")
    common.remark_polynomials(work, all_nets)
    if all_nets:
        work.remark(
            "Accuracy of ResNet-20 is that of the most images that a run of the same set and polynomials"
            " took, whatever its batch; time is of one image."
        )
    _sorts(work)
    _variants(work)
    if ours:
        work.chart(
            Bars(
                "HELR, an iteration, by scale (Table 6)",
                "ms",
                groups,
                {"Cheddar, H100": theirs, "Crenel": ours},
                ["Crenel"],
            )
        )


def _variants(work: Work) -> None:
    work.table(
        "ours: ResNet-20, every variant measured",
        (
            "set",
            "device",
            "commit",
            "polynomials",
            "launches",
            "batch",
            "s",
            "s an image",
            "accuracy, %",
            "unencrypted, %",
            "images",
        ),
        [cells for params, _ in SCALES for cells in _networks(work, params)],
    )


def _sorts(work: Work) -> None:
    rows = [
        (
            params,
            f.device,
            f.row["variant"],
            f.row["radix"],
            f.row["comparator"],
            seconds,
            bits,
            f.row["bootstraps"],
        )
        for params, _ in SCALES
        for f, seconds, bits in common.sorts(work.results, params)
        if work.take(f)
    ]
    work.table(
        "ours: Sort of 2^14 numbers, every variant measured",
        ("set", "device", "variant", "ways", "comparator", "s", "bits", "bootstraps"), rows,
    )  # fmt: skip


def _networks(work: Work, params: str) -> list[tuple[Cell, ...]]:
    """ResNet-20 of a set: polynomials, batch, times, accuracy."""
    rows: list[tuple[Cell, ...]] = []
    for f in common.networks(work.results, "resnet20", params):
        row = work.take(f)
        right = [None if row.get(k) is None else 100 * row[k] for k in ("accuracy", "float_accuracy")]
        seconds = row["latency_us"] / 1e6
        how = row["activation"], "CUDA graph" if row.get("graph") else "eager", row["batch"]
        made = f"{str(f.provenance.get('commit', ''))[:10]}, {f.date[:10]}"
        rows.append((params, f.device, made, *how, seconds, seconds / row["batch"], *right, row["steps"]))
    return rows


@builds(PAPER, "table", 7)
def mechanisms(work: Work) -> None:
    """Operations of ours and of other libraries on an H200."""
    groups: dict[str, list[float | None]] = {}
    at: dict[str, list[Cell]] = {}
    for library, limbs, alpha, *times in peers()["operations"]["rows"]:
        work.other(f"{library}, H200, measured here", limbs, alpha, *times)
    for file, data in work.results.of_kind("crenel-peer"):
        work.source(file, f"{data['library']} on {data['provenance']['device_description']}")
        for row in data["rows"]:
            if row["limbs"] in (48, 24):
                cells = [row[name] for name in OPERATIONS]
                work.other(f"{data['library']}, H200, measured here", row["limbs"], data["alpha"], *cells)
                at[f"{data['library']}, H200, {row['limbs']} limbs"] = cells
    seen = False
    for limbs in (48, 24):
        found = {name: common.operation(work.results, name, limbs) for name in OPERATIONS}
        for device in dict.fromkeys(d for each in found.values() for d in each):
            seen = True
            mine: list[Cell] = [
                float(work.take(found[name][device])["latency_us"]) if device in found[name] else None
                for name in OPERATIONS
            ]
            first = next(found[name][device] for name in OPERATIONS if device in found[name])
            work.beside(f"Crenel, {device}", first.row["limbs"], first.row["alpha"], *mine)
            at[f"Crenel, {device}, {first.row['limbs']} limbs"] = mine
    if not seen:
        work.lack("operations of ours", "operations")
    groups = {
        name: [v if isinstance(v, (int, float)) else None for v in cells]
        for name, cells in at.items()
        if "H200" in name
    }
    if groups:
        own = [name for name in groups if name.startswith("Crenel")]
        titles = ["HMult", "HRot", "HAdd", "Rescale"]
        work.chart(Bars("mechanisms on an H200 (Table 7)", "us", titles, groups, own, log=True))


@builds(PAPER, "figure", 1)
def operation_counts(work: Work) -> None:
    """Products and bytes of three operations at level 11, double and rational rescaling."""
    rows = []
    groups: list[str] = []
    products: list[float | None] = []
    moved: list[float | None] = []
    for name in ("hrot", "hmult", "rescale"):
        for params, way in (("boot48dr", "32-DR"), ("boot40", "32-RR")):
            found = common.traffic(work.results, params, name, level=11)
            if found is None:
                continue
            common.take_traffic(work, found)
            total = found[1]["total"]
            rows.append(
                (
                    name,
                    way,
                    params,
                    total["launches"],
                    total["multiply_adds"] / 1e6,
                    total["bytes"] / 1e6,
                    total["streamed_bytes"] / 1e6,
                )
            )
            groups.append(f"{name}, {way}")
            products.append(total["multiply_adds"] / 1e6)
            moved.append(total["bytes"] / 1e6)
    columns = (
        "operation",
        "rescaling",
        "set",
        "launches",
        "10^6 products",
        "MB at L2",
        "MB of keys from DRAM",
    )
    work.table("ours, level 11 as in the paper", columns, rows)
    if rows:
        work.chart(Bars("core products by rescaling (Fig. 1)", "10^6", groups, {"": products}, groups))
        work.chart(Bars("bytes at L2 by rescaling (Fig. 1)", "MB", groups, {"": moved}, groups))


@builds(PAPER, "figure", 2)
def constructions(work: Work) -> None:
    """Primes in use, level by level."""
    for name, way in (("boot48dr", "double rescaling"), ("boot40", "rational rescaling")):
        p = common.preset(work, name)
        levels = range(p.normal_top_level + 1)
        parts = {
            "main primes, 30 bits": [float(p.levels[k][0]) for k in levels],
            "terminal primes, 25 bits": [float(p.levels[k][1]) for k in levels],
        }
        bars = [f"level {k}, log Q {float(p.log_q(k)):.0f}" for k in levels]
        work.chart(Stacks(f"{name}: {way} (Fig. 2)", "primes", bars, parts))
        columns = ("level", "terminal primes", "main primes", "log2 Q", "log2 of the step")
        work.table(f"ours: {name}, {way}", columns, _levels(p, LEVELS_SHOWN))


@builds(PAPER, "figure", 3)
def rotation(work: Work) -> None:
    """One HRot by kernel: times, and intensity where the account states products."""
    found = common.kernel_rows(work.results, "hrot")
    if found is None:
        return
    file, data, rows = found
    work.source(file, common.counted(data, "one HRot under counters"))
    times: dict[str, float] = {}
    for row in rows:
        times[row["kernel"]] = times.get(row["kernel"], 0.0) + row["us"]
    whole = sum(times.values())
    body = [(name, us, 100 * us / whole) for name, us in sorted(times.items(), key=lambda x: -x[1])]
    work.table("ours: HRot, boot40, the most limbs", ("kernel", "us", "%"), body)
    work.chart(Stacks("HRot by kernel (Fig. 3b)", "us", ["HRot"], {name: [us] for name, us, _ in body}))
    stated = common.traffic(work.results, "boot40", "hrot")
    if stated is not None:
        common.take_traffic(work, stated)
        points = {
            r["name"]: (r["multiply_adds"] / r["bytes"], r["multiply_adds"] / r["bound"])
            for r in stated[1]["by_work"]
            if r["multiply_adds"]
        }
        roofs = {"L2": common.rate("l2"), "DRAM": common.rate("dram_read")}
        peaks = {"multiply-adds": common.rate("multiply_add"), "butterflies": common.rate("butterfly")}
        work.chart(
            Roofline("HRot at level 11: kinds of work at their bounds (Fig. 3a)", roofs, peaks, points)
        )


@builds(PAPER, "figure", 7)
def levels_left(work: Work) -> None:
    """Bootstrapping over levels left by set; shares of bootstrapping in workloads."""
    groups: list[str] = []
    per_level: list[float | None] = []
    rows = []
    for params in BOOT_SETS:
        for device, found in common.boots(work.results, params).items():
            row = work.take(found)
            left = row["output_level"] - row["input_level"]
            ms = row["latency_us"] / US_PER_MS
            rows.append((params, device, f"2^{row['scale_bits']}", left, ms, ms / left))
            groups.append(f"{params}, {device}")
            per_level.append(ms / left)
        if not any(row[0] == params for row in rows):
            work.lack(f"bootstrapping of {params}", f"boot:{params}")
    work.table("ours: bootstrapping", ("set", "device", "scale", "levels left", "ms", "ms a level"), rows)
    if groups:
        work.chart(
            Bars("bootstrapping a level left (Fig. 7a)", "ms a level", groups, {"": per_level}, groups)
        )
    shares = []
    for title in ("HELR", "Sort", "ResNet-20"):
        name = title.replace("-", "").lower()
        for params, scale in SCALES:
            runs = work.results.rows("workload", name=name, params=params)
            if name == "resnet20":  # of one image, the polynomials of the fastest
                own = [f for f in common.networks(work.results, name, params) if not f.row["graph"]]
                runs = sorted(own, key=lambda f: (f.row["batch"], f.row["latency_us"]))[:1]
            found_share = common.share_of_stages(runs, BOOTSTRAPS)
            if found_share:
                row = work.take(found_share[0])
                what = f"{title}, {row['activation']}" if "activation" in row else title
                shares.append((what, params, scale, found_share[0].device, 100 * found_share[1]))
        if not any(str(row[0]).startswith(title) for row in shares):
            work.lack(f"bootstrapping's share of {title}", f"{name}:boot40")
    work.table("ours: bootstrapping's share", ("workload", "set", "scale", "device", "%"), shares)
    if shares:
        names = [f"{s[0]}, {s[2]}" for s in shares]
        parts = {"bootstrapping": [s[4] for s in shares], "the rest": [100 - s[4] for s in shares]}
        work.chart(Stacks("share of bootstrapping (Fig. 7b)", "%", names, parts))


@builds(PAPER, "table", 8)
def fusions(work: Work) -> None:
    """Which of the fusions are here, and by which switch they are turned off."""
    for file, data in work.results.of_kind("crenel-ablation"):
        rows = [(f["name"], f["what"], ", ".join(f["switches"]), f["note"]) for f in data["fusions"]]
        work.source(file, "what the library has switches for", COMPUTED)
        work.table("ours", ("fusion", "what it is", "switches here", "note"), rows)
        absent = data["operations"][0]["ladders"].get("cheddar", {}).get("absent", [])
        work.table("what else its rungs have", ("optimisation", "here"), [tuple(each) for each in absent])
        return


@builds(PAPER, "figure", 8)
def classes(work: Work) -> None:
    """The ladder, and measured time of a bootstrapping by class of kernel."""
    if not ladders.take_rungs(work, "bootstrap", "cheddar", "Fig. 8"):
        work.lack("bootstrapping step by step", "ablation")
    found = common.predictions(work.results, "h200")
    if found is None:
        return
    file, data = found
    own = {name: c["us"] / US_PER_MS for name, c in data["bootstrap"]["classes"].items() if "us" in c}
    if not own:
        return
    work.source(file, "NVIDIA H200: every launch of one bootstrapping of boot40 under the profiler", MEASURED)
    whole = sum(own.values())
    work.table(
        "ours: one bootstrapping", ("class", "ms", "%"), [(n, ms, 100 * ms / whole) for n, ms in own.items()]
    )
    work.chart(
        Stacks(
            "bootstrapping by class of kernel (Fig. 8)", "ms", ["boot40"], {n: [ms] for n, ms in own.items()}
        )
    )
