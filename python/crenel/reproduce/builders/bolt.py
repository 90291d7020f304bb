"""BOLT-FHE: what of its tables and figures the records hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from crenel import tfhe
from crenel.reproduce.charts import Bars, Lines
from crenel.reproduce.outcome import COMPUTED, Work, builds
from crenel.reproduce.registry import Cell, number
from crenel.reproduce.results import Found, by_device, newest, short_device

PAPER = "bolt-fhe"
SETS = ("G1", "G2", "G3", "G4", "G5", "M1", "M2", "M3", "M4", "M5", "M6")
RAISING = SETS[5:]
PACKINGS = {"M1": 3, "M2": 2, "M3": 5, "M4": 4, "M5": 5, "M6": 2}  # of the paper's table 9
GATES = {"G4": "lut", "G5": "floor"}
BATCH = 16384
LEAST_STALL = 0.01
"""Share of all waiting under which a reason is one of the others."""
GB = 1e9
NORM_BITS = 128


def _preset(name: str) -> tfhe.Params:
    return tfhe.preset(name, allow_insecure=True)


def gates(work: Work, name: str, slots: int, mode: str = "transfers") -> dict[str, Found]:
    """The newest right run of a set's operation on each device: a whole batch, but on toy runs."""
    same = {"params": name, "slots": slots, "mode": mode, "operation": GATES.get(name, "nand")}
    found = work.results.rows("tfhe", **same)
    enough = [f for f in found if f.row["size"] >= BATCH or work.results.toy]
    return {device: last for device, own in by_device(enough).items() if (last := newest(own))}


def rotations(work: Work, name: str) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
    """Device -> (file, row) of blind rotations of a set under hardware counters, by batch.

    Of several records of a device the newest row of a batch counts.
    """
    dated = [
        (str(data["provenance"].get("date", "")), file, short_device(data["provenance"]), row)
        for file, data in work.results.of_kind("crenel-rotation-counters")
        for row in data["rows"]
        if row["set"] == name
    ]
    out: dict[str, dict[int, tuple[str, Mapping[str, Any]]]] = {}
    for _, file, device, row in sorted(dated, key=lambda each: each[:2]):
        out.setdefault(device, {})[row["batch"]] = file, row
    return {device: [own[batch] for batch in sorted(own)] for device, own in sorted(out.items())}


def take_counted(work: Work, file: str, device: str, row: Mapping[str, Any]) -> Mapping[str, float]:
    """Its counters, noted as a source."""
    of = work.results.documents[file]["provenance"]
    commit = f", commit {of['commit'][:10]}" if of.get("commit") else ""
    work.source(file, f"{device}, {row['set']}{commit}: `{of['command']}`")
    counters: Mapping[str, float] = row["counters"]
    return counters


@builds(PAPER, "table", 1)
def memory(work: Work) -> None:
    """Counters of one blind rotation of the largest batch."""
    devices: dict[str, dict[str, Cell]] = {}
    for device, batches in rotations(work, "G2").items():
        seen = take_counted(work, batches[-1][0], device, batches[-1][1])
        devices[f"Crenel, {device}"] = {
            "DRAM traffic, GB": (seen["dram_read_bytes"] + seen["dram_write_bytes"]) / GB,
            "DRAM, % of its peak": seen["dram_percent"],
            "L2 hits, %": seen["l2_hit_percent"],
            "L1 hits, %": seen.get("l1_hit_percent"),
            "L2, % of its peak": seen["l2_percent"],
            "L1, % of its peak": seen["l1_percent"],
        }
    if all(rows["L1 hits, %"] is None for rows in devices.values()):
        work.lack("the hit rate of L1" if devices else "", "ncu-rotation")
    if not devices:
        return
    names = [str(row[0]) for row in work.item.rows]
    body = [
        (name, row[3], *(own[name] for own in devices.values()))
        for name, row in zip(names, work.item.rows, strict=True)
    ]
    work.table("ours beside it", ("metric", "BOLT-FHE, RTX 4090", *devices), body)
    drawn = [
        (name, number(row[3]))
        for name, row in zip(names, work.item.rows, strict=True)
        if "%" in name and any(own[name] is not None for own in devices.values())
    ]
    series: dict[str, list[float | None]] = {"BOLT-FHE, RTX 4090": [value for _, value in drawn]}
    for device, own in devices.items():
        series[device] = [None if own[name] is None else number(own[name]) for name, _ in drawn]
    groups = [name for name, _ in drawn]
    work.chart(Bars("one blind rotation of 16,384, G2 (Table 1)", "%", groups, series, list(devices)))


@builds(PAPER, "table", 4)
def operators(work: Work) -> None:
    """The paper's formulas at the sets and packings of table 9, and the gadget sets unpacked."""
    rows = []
    curves: dict[str, list[tuple[float, float]]] = {}
    for name in SETS:
        numbers = _preset(name).numbers
        work.source(f"params/tfhe-{name.lower()}.toml", "the parameter set", COMPUTED)
        n, k, degree = (int(numbers[key]) for key in ("lwe_dim", "glwe_dim", "poly_size"))
        digits = int(numbers["digits"]) if numbers["path"] == "gadget" else 1
        r = PACKINGS.get(name, 1)
        rows.append(
            (name, r, digits, n * (k / r + 1) * (digits + 1), n * (k + r) ** 2 * digits * degree / r / 1e6)
        )
        if name in PACKINGS:
            curves[name] = [(x, (k + x) ** 2 / x / (k + 1) ** 2) for x in range(1, 9)]
    columns = ("set", "r", "digits", "transforms a message", "10^6 point-wise products a message")
    work.table("ours: the formulas at this library's sets", columns, rows)
    title = "point-wise products a message by packing, r = 1 is 1 (Table 4)"
    work.chart(Lines(title, "r", "times", curves))


@builds(PAPER, "table", 6)
def parameters(work: Work) -> None:
    """This library's files of the same sets."""
    rows: list[tuple[Cell, ...]] = []
    for name in SETS:
        p = _preset(name)
        v = p.numbers
        work.source(f"params/tfhe-{name.lower()}.toml", "the parameter set", COMPUTED)
        gadget = v["path"] == "gadget"
        base = f"2^{v['base_log']}" if gadget else None
        raised = None if gadget else v["log_raised_modulus"]
        rows.append(
            (name, v["path"], p.security_bits, v["lwe_dim"], 1 << int(v["log_lwe_modulus"]), v["poly_size"],
             v["glwe_dim"], base, v["log_modulus"], raised, f"2^{v['log_switch_modulus']}",
             f"2^{v['switch_base_log']}", f"2^{p.p_fail_log2:.1f}")
        )  # fmt: skip
    columns = ("set", "path", "security, bits", *work.item.columns[3:], "p_fail of a bootstrap")
    work.table("ours", columns, rows)


GATE_NORM2 = 2.0
"""Of a gate's two inputs."""


def total_noise(p: tfhe.Params) -> float:
    """Subgaussian parameter of one of a gate's inputs, in steps of the modulus that a gate reads at.

    sqrt(2 pi) times a standard deviation; the model's variances are of both inputs, in steps of a turn's 2 N.
    """
    v = p.numbers
    per_step = (1 << int(v["log_lwe_modulus"])) / (2 * int(v["poly_size"]))
    variance = sum(p.noise_parts(GATE_NORM2).values()) / GATE_NORM2
    return math.sqrt(2 * math.pi * variance) * per_step


@builds(PAPER, "table", 7)
def failures(work: Work) -> None:
    """The noise and the failure probability by this library's model, at the paper's sets and packings."""
    rows: list[tuple[Cell, ...]] = []
    curves: dict[str, list[tuple[float, float]]] = {name: [] for name in RAISING}
    theirs: dict[str, list[tuple[float, float]]] = {f"{name}, paper": [] for name in ("M1", "M6")}
    first: dict[str, float] = {}
    for row in work.item.rows:
        name, r = str(row[0]), int(number(row[1]))
        p = _preset(name).with_slots(r)
        bits = -p.p_fail_log2
        rows.append((name, r, total_noise(p), bits, bits - first.setdefault(name, bits)))
        curves[name].append((r, bits))
        if f"{name}, paper" in theirs:
            theirs[f"{name}, paper"].append((r, number(row[3])))
    for name in RAISING:
        work.source(f"params/tfhe-{name.lower()}.toml", "the parameter set, by the noise model", COMPUTED)
    work.table("ours", work.item.columns, rows)
    work.chart(Lines("failure bounds by packing (Table 7)", "r", "-log2 p_fail", curves | theirs, logx=2))


def shapes(work: Work, name: str) -> list[tuple[str, dict[str, Any]]]:
    """(device, shape) of every shape that was tuned for a set."""
    out = []
    for file, data in work.results.suite("tfhe-tune"):
        device = data["provenance"]["device_description"].partition(", compute")[0]
        own = [s for s in data["shapes"] if s["set"] == name]
        if own:
            batch = own[0]["batch"] * own[0]["slots"]
            work.source(file, f"{device}, {name}, batch {batch:,}: `{data['provenance']['command']}`")
            out += [(device, s) for s in own]
    return out


def tuned_rows(work: Work, name: str) -> list[tuple[Cell, ...]]:
    """Of a table: set, device, shape, r, warps a polynomial, items a thread, registers, local bytes, rate."""
    return [
        (name, device, s["shape"], s["slots"], s["warps_per_poly"], s["items_per_thread"], s["registers"],
         s["local_bytes"], round(s["rotations_per_s"]))
        for device, s in shapes(work, name)
    ]  # fmt: skip


def lack_packings(work: Work) -> None:
    """Says which packings up to the paper's best no record has."""
    for name, most in PACKINGS.items():
        tried = {s["slots"] for _, s in shapes(work, name)}
        open_ones = [str(r) for r in range(1, most + 1) if r not in tried]
        if open_ones:
            work.lack(f"{name} at r = {', '.join(open_ones)}", f"tune:{name}")


TUNED = (
    "set",
    "device",
    "shape",
    "r",
    "warps a polynomial",
    "items a thread",
    "registers",
    "local bytes",
    "rotations a second",
)


@builds(PAPER, "table", 8)
def organisation(work: Work) -> None:
    """The best packing of every shape."""
    rows: list[tuple[Cell, ...]] = []
    for name in RAISING:
        best: dict[tuple[Cell, ...], tuple[Cell, ...]] = {}
        for row in tuned_rows(work, name):
            key = row[1], row[4], row[5]
            if key not in best or number(row[8]) > number(best[key][8]):
                best[key] = row
        rows += best.values()
    work.table("ours: the best of each (warps a polynomial, items a thread)", TUNED, rows)
    lack_packings(work)


@builds(PAPER, "table", 10)
def registers(work: Work) -> None:
    """Registers and local memory of M1's shapes."""
    work.table("ours: M1", TUNED, tuned_rows(work, "M1"))


@builds(PAPER, "figure", 5)
def tuning(work: Work) -> None:
    """The best rate of every (warps, items) at each packing, one picture a set and device."""
    for name in RAISING:
        by_shape: dict[str, dict[str, dict[int, float]]] = {}
        for device, s in shapes(work, name):
            shape = f"{s['warps_per_poly']:g} warps, {s['items_per_thread']} items"
            own = by_shape.setdefault(device, {}).setdefault(shape, {})
            own[s["slots"]] = max(s["rotations_per_s"], own.get(s["slots"], 0.0))
        for device, best in by_shape.items():
            packings = sorted({r for own in best.values() for r in own})
            series = {f"r = {r}": [own.get(r) for own in best.values()] for r in packings}
            title = f"{name}: rotations a second by shape, {device} (Fig. 5)"
            ours = list(series) if len(series) > 1 else list(best)
            work.chart(Bars(title, "a second", list(best), series, ours))
    lack_packings(work)


@builds(PAPER, "table", 9)
def baselines(work: Work) -> None:
    """Ours at the paper's packings, over the same CPU times."""
    groups: list[str] = []
    theirs: list[float | None] = []
    own: list[float | None] = []
    for row in work.item.rows:
        name, cpu_ms = str(row[0]), number(row[4])
        found = gates(work, name, PACKINGS[name])
        if not found:
            work.lack(f"{name} at r = {PACKINGS[name]}", f"tfhe:{name}:{PACKINGS[name]}")
        for device, f in found.items():
            r = work.take(f)
            rate = number(r["operations_per_s"])
            label = f"{name}, Crenel, {device}, batch {r['size']:,}"
            work.beside(label, r["slots"], r["p_fail_log2"], rate, cpu_ms, rate * cpu_ms / 1e3)
            groups.append(name)
            theirs.append(number(row[3]))
            own.append(rate)
    if groups:
        series = {"BOLT-FHE, RTX 4090": theirs, "Crenel": own}
        work.chart(Bars("gates a second with transfers (Table 9)", "a second", groups, series, ["Crenel"]))
    for file, data in work.results.of_kind("crenel-tfhe-comparison"):
        work.source(file, f"{data['provenance']['device_description']}: {data['wheel']}")
        rows = [
            (c["set"], 1e3 * c["openfhe"]["gate_s"], 1e3 * max(o["gate_s"] for o in c["crenel"]), c["ratio"])
            for c in data["cases"]
        ]
        work.table(
            f"ours, on one thread of a CPU, beside {data['wheel'].replace('==', ' ')}",
            ("set", "OpenFHE, ms a gate", "Crenel, ms a gate", "times"), rows,
        )  # fmt: skip


def against(work: Work, name: str, slots: int, theirs: list[Cell]) -> list[tuple[Cell, ...]]:
    """Rows (set, device, security, p_fail, with transfers, resident, theirs, times)."""
    rows: list[tuple[Cell, ...]] = []
    resident = gates(work, name, slots, "resident")
    found = gates(work, name, slots)
    if not found:
        work.lack(f"{name} at r = {slots}", f"tfhe:{name}:{slots}")
    for device, f in found.items():
        r = work.take(f)
        rate = number(r["operations_per_s"])
        alone = float(resident[device].row["operations_per_s"]) if device in resident else None
        best = max((number(v) for v in theirs if isinstance(v, (int, float))), default=None)
        rows.append(
            (f"{name}, r = {slots}", device, f"{r['size']:,}", r["security_bits"],
             f"2^{r['p_fail_log2']:.0f}", rate, alone, best, rate / best if best else None)
        )  # fmt: skip
    return rows


AGAINST = (
    "set",
    "device",
    "batch",
    "security, bits",
    "p_fail",
    "with transfers, a second",
    "resident, a second",
    "the paper's best",
    "times",
)


@builds(PAPER, "table", 11)
def velofhe(work: Work) -> None:
    """The sets of VeloFHE."""
    cases = [("G1", 1), ("G2", 1), ("M1", 1), ("M1", 3), ("M2", 1), ("M2", 2)]
    _against_all(work, cases, "Table 11")


@builds(PAPER, "table", 12)
def functions(work: Work) -> None:
    """Gates, arbitrary functions, floor."""
    _against_all(work, [("G3", 1), ("G4", 1), ("G5", 1)], "Table 12")


def _against_all(work: Work, cases: list[tuple[str, int]], label: str) -> None:
    rows: list[tuple[Cell, ...]] = []
    groups: list[str] = []
    printed: dict[str, list[float | None]] = {name: [] for name in work.item.columns[1:]}
    own: list[float | None] = []
    for (name, slots), row in zip(cases, work.item.rows, strict=True):
        added = against(work, name, slots, list(row[1:]))
        rows += added
        for new in added:
            groups.append(str(new[0]))
            own.append(number(new[5]))
            for column, value in zip(work.item.columns[1:], row[1:], strict=True):
                printed[column].append(float(value) if isinstance(value, (int, float)) else None)
    work.table("ours", AGAINST, rows)
    if groups:
        series = printed | {"Crenel": own}
        title = f"operations a second with transfers ({label})"
        work.chart(Bars(title, "a second", groups, series, ["Crenel"], log=True))


# Figure -> what it plots: (title, counter).
COUNTED = {
    6: (
        ("busy multiprocessors, % of their peak", "sm_percent"),
        ("occupancy, %", "occupancy_percent"),
        ("L1, % of its peak", "l1_percent"),
    ),
    7: (("L2 hits, %", "l2_hit_percent"), ("DRAM, % of its peak", "dram_percent")),
}


@builds(PAPER, "figure", 6, 7)
def by_batch(work: Work) -> None:
    """Every batch that was counted."""
    wanted = COUNTED[work.item.number]
    found = rotations(work, "G2")
    lacking = {title for title, _ in wanted}
    for device, own in found.items():
        seen = [(row["batch"], take_counted(work, file, device, row)) for file, row in own]
        body = [(f"{batch:,}", *(c.get(key) for _, key in wanted)) for batch, c in seen]
        work.table(f"ours: {device}", ("batch", *(title for title, _ in wanted)), body)
        curves = {title: [(b, c[key]) for b, c in seen if key in c] for title, key in wanted}
        curves = {title: points for title, points in curves.items() if len(points) > 1}
        lacking -= set(curves)
        if curves:
            work.chart(Lines(f"G2 by batch, {device} ({work.item.label})", "batch", "%", curves, logx=2))
    if lacking:
        work.lack(f"other batches: {', '.join(sorted(lacking))}" if found else "", "ncu-rotation")


@builds(PAPER, "figure", 8)
def stalls(work: Work) -> None:
    """Cycles that a warp waits for each instruction, by reason, the longest first."""
    found = {
        device: with_stalls[-1]
        for device, own in rotations(work, "M3").items()
        if (with_stalls := [each for each in own if each[1].get("stalls")])
    }
    for device, (file, row) in found.items():
        take_counted(work, file, device, row)
        reasons = sorted(row["stalls"].items(), key=lambda each: -each[1])
        whole = sum(value for _, value in reasons)
        shown = [(name.replace("_", " "), value) for name, value in reasons if value >= LEAST_STALL * whole]
        rest = whole - sum(value for _, value in shown)
        rows = [(name, value, 100 * value / whole) for name, value in (*shown, ("others", rest))]
        title = f"{device}, M3, r = {row['slots']}, batch {row['batch']:,}"
        work.table(f"ours: {title}", ("reason", "cycles an instruction", "%"), rows)
        groups = [name for name, _ in shown]
        values: dict[str, list[float | None]] = {device: [value for _, value in shown]}
        work.chart(Bars(f"why warps wait (Fig. 8): {title}", "cycles an instruction", groups, values, groups))
    if not found:
        work.lack("stall reasons of the blind rotation", "stalls")
