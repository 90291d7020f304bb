"""How times grow with slots, batches, limbs, keys and clients: curves of what the records hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from crenel.reproduce.builders import common
from crenel.reproduce.charts import Lines
from crenel.reproduce.outcome import Table
from crenel.reproduce.registry import Cell
from crenel.reproduce.results import Found, Results, by_device

Points = dict[str, list[tuple[float, float]]]
OPERATIONS = ("hmult", "hrot", "rescale", "hadd")
ORDER = (*OPERATIONS, "bootstrap")  # of curves of crenel bench growth
WIDE = 20  # times the least: beyond it a linear axis shows the largest alone


@dataclass(frozen=True)
class Curve:
    """One growth: a picture, its numbers, and the files that they are from."""

    name: str
    title: str
    chart: Lines
    table: Table
    sources: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Points that the records were to have and do not, with the reason."""


def _curve(
    name: str, title: str, chart: Lines, found: list[str], left_out: Iterable[str] = ()
) -> Curve | None:
    points = {k: sorted(v) for k, v in chart.series.items() if len(v) > 1}
    if not points:
        return None
    whole = Lines(chart.title, chart.x, chart.y, points, chart.logx, chart.logy, chart.zero)
    xs = sorted({x for own in points.values() for x, _ in own})
    rows: list[tuple[bool, tuple[Cell, ...]]] = []
    for series, own in points.items():
        by = dict(own)
        rows.append((True, (series, *(by.get(x) for x in xs))))
    columns = (f"{chart.y} \\ {chart.x}", *(f"{x:g}" for x in xs))
    files = tuple(dict.fromkeys(found))
    return Curve(name, title, whole, Table(columns, rows), files, tuple(left_out))


def _of_one_record(runs: Mapping[tuple[str, str], list[Found]], axis: str) -> dict[str, list[Found]]:
    """By series, the rows of the record with the widest range of the axis, the newest of those, so that all
    points of a curve were made in one way by one program. runs: (series, file) -> rows."""
    best: dict[str, tuple[tuple[float, str], list[Found]]] = {}
    for (series, _), own in runs.items():
        values = {float(f.row[axis]) for f in own}
        rank = max(values) / min(values), own[0].date
        if len(values) > 1 and (series not in best or rank > best[series][0]):
            best[series] = rank, own
    return {series: own for series, (_, own) in best.items()}


def _device(f: Found) -> str:
    """Of a row: a device of several parts, as cuda:0+1, is another than one card."""
    count = str(f.row.get("device") or f.provenance.get("device", "")).count("+") + 1
    return f"{count} parts, {f.device.rpartition('each: ')[2]}" if count > 1 else f.device


def _queued(rows: Iterable[Found]) -> list[Found]:
    """Of one device what was queued launch by launch; of several parts, for all of which the host queues, a
    replay where that was faster."""
    best: dict[tuple[object, ...], Found] = {}
    for f in rows:
        if f.row["graph"] and "parts, " not in _device(f):
            continue
        key = f.file, f.row["name"], f.row["limbs"]
        if key not in best or f.row["latency_us"] < best[key].row["latency_us"]:
            best[key] = f
    return list(best.values())


def slots(results: Results) -> Curve | None:
    """Bootstrapping by the slots of its message."""
    runs: dict[tuple[str, str], list[Found]] = {}
    for f in results.rows("boot", params="boot40", keys="hoisted", batch=1, graph=True):
        if "message" in f.row:
            first = "SlotToCoeff first, " if f.row.get("order") == "slot_to_coeff_first" else ""
            runs.setdefault((f"{f.row['message']}, {first}{_device(f)}", f.file), []).append(f)
    last = _of_one_record(runs, "slots")
    points = {
        series: [(f.row["slots"], f.row["latency_us"] / 1e3) for f in own] for series, own in last.items()
    }
    files = [f.file for own in last.values() for f in own]
    chart = Lines("bootstrapping by slots, boot40", "slots", "ms", points, logx=2)
    return _curve("slots", "Bootstrapping by slots", chart, files)


def slot_levels(results: Results) -> Curve | None:
    """What a slot and a level cost, by scale: a curve is of one card and day, whose programs are alike."""
    points: Points = {}
    named: dict[str, list[str]] = {}
    for params in ("boot30", "boot35", "boot40", "boot45", "boot48dr", "boot50"):
        for device, f in common.boots(results, params).items():
            series = f"{device}, {f.date[:10]}"
            points.setdefault(series, []).append((f.row["scale_bits"], f.row["slot_level_ns"]))
            named.setdefault(series, []).append(f.file)
    files = [file for series, own in named.items() if len(own) > 1 for file in own]
    chart = Lines(
        "bootstrapping: cost of a slot and level", "log2 of the scale", "ns a slot and level", points
    )
    return _curve("slot-levels", "Bootstrapping's cost of a slot and level by scale", chart, files)


def limbs(results: Results) -> Curve | None:
    """Operations by limbs."""
    runs: dict[tuple[str, str], list[Found]] = {}
    rows = results.rows("ckks", params="boot40", batch=1, timing="queued", inputs="same")
    for name in OPERATIONS:
        for f in _queued(rows):
            if f.row["name"] == name:
                runs.setdefault((f"{name}, {_device(f)}", f.file), []).append(f)
    last = _of_one_record(runs, "limbs")
    points = {series: [(f.row["limbs"], f.row["latency_us"]) for f in own] for series, own in last.items()}
    files = [f.file for own in last.values() for f in own]
    chart = Lines("operations by limbs, boot40", "limbs", "us", points, logy=True)
    return _curve("limbs", "Operations by limbs", chart, files)


def batches(results: Results) -> Curve | None:
    """Throughput of HMult by batch."""
    points: Points = {}
    files = []
    for f in results.rows("ckks", params="boot40", name="hmult", graph=True, timing="queued", inputs="same"):
        if "batches" in f.file:
            points.setdefault(f"{f.row['limbs']} limbs, {f.device}", []).append(
                (f.row["batch"], 1e6 / f.row["amortised_us"])
            )
            files.append(f.file)
    chart = Lines("HMult a second by batch, boot40, CUDA graph", "batch", "a second", points, logx=2)
    return _curve("batches", "Throughput by batch", chart, files)


def tenants(results: Results) -> Curve | None:
    """Bootstrapping with as many clients' keys in turn."""
    points: Points = {}
    memory: Points = {}
    files = []
    for f in results.rows("boot", params="boot40"):
        if "tenants" in f.row:
            own = points.setdefault(f"time of one, {f.device}", [])
            own[:] = [p for p in own if p[0] != f.row["tenants"]] + [
                (f.row["tenants"], f.row["latency_us"] / 1e3)
            ]
            files.append(f.file)
    for file, data in results.suite("boot"):
        used = 0.0
        for k, tenant in enumerate(data.get("memory_by_tenant", ()), 1):
            used += tenant["key_bytes"] / 2**30
            memory.setdefault("GiB of keys", []).append((k, used))
            files.append(file)
    chart = Lines("clients whose keys take turns, boot40", "clients", "ms, GiB", points | memory)
    return _curve("tenants", "Bootstrapping and keys by clients", chart, files)


def staged(results: Results) -> Curve | None:
    """Bootstrapping where keys come from host memory."""
    points: Points = {}
    files = []
    for f in results.rows("boot", params="boot40", graph=False):
        if (
            not f.row.get("slot_level_ns")
            and "tenants" not in f.row
            and f.row.get("resident_bytes") is not None
        ):
            series = points.setdefault(f"batch {f.row['batch']}, {f.device}", [])
            series.append((f.row["resident_bytes"] / 2**30, f.row["amortised_us"] / 1e3))
            files.append(f.file)
    chart = Lines("bootstrapping by resident keys, boot40", "GiB of keys on the device", "ms each", points)
    return _curve("staged", "Bootstrapping with keys in host memory", chart, files)


def _grown(
    results: Results, axis: str, name: str, title: str, x: str, logx: int, unit: str = "us"
) -> Curve | None:
    """Operations over one axis of ``crenel bench growth``, the newest record of each device."""
    points: Points = {}
    files = []
    left_out: list[str] = []
    weak: set[int] = set()
    for device, own in by_device(results.rows("growth", axis=axis)).items():
        last = max(own, key=lambda f: f.date).file
        left_out += _left_out(last, results.documents[last], axis)
        where = device.removesuffix(" that executes nothing")
        if axis == "threads":  # each point has its own number
            where = re.sub(r", \d+ threads?$", "", where)
        for f in sorted(own, key=lambda f: ORDER.index(f.row["name"])):
            us = f.row["bound_us"] if f.row["latency_us"] is None else f.row["latency_us"]
            if f.file != last or us is None:
                continue
            at = 1 << f.row["x"] if axis == "log_n" else f.row["x"]
            points.setdefault(f"{f.row['name']}, {where}", []).append((at, us if unit == "us" else us / 1e3))
            files.append(f.file)
            if f.row["security_bits"] < 128:
                weak.add(f.row["log_n"])
    if weak and axis == "log_n":
        x += f" (below 128 bits of security: 2^{', 2^'.join(map(str, sorted(weak)))})"
    ys = [y for own in points.values() for _, y in own]
    wide = bool(ys) and max(ys) > WIDE * min(ys)  # as of a CPU beside a GPU
    chart = Lines(title, x, unit, points, logx=logx, logy=unit == "us" or wide)
    return _curve(name, title, chart, files, left_out)


def _left_out(file: str, document: Mapping[str, Any], axis: str) -> list[str]:
    """Points of an axis that a record says it lacks: those of one reason in one sentence."""
    places: dict[tuple[str, str], list[str]] = {}
    for each in document.get("left_out", ()):
        if each["axis"] == axis:
            at = f"2^{each['x']}" if axis == "log_n" else f"{each['x']:,}"
            places.setdefault((each["name"], each["why"]), []).append(at)
    by_reason: dict[tuple[str, str], list[str]] = {}
    for (name, why), xs in places.items():
        by_reason.setdefault((", ".join(xs), why), []).extend([name] if name else [])
    what = {"log_n": "N ="}.get(axis, axis)
    return [
        f"`{file}`: {what} {xs}{' of ' * bool(names)}{' and '.join(names)} ({why})"
        for (xs, why), names in by_reason.items()
    ]


def rings(results: Results) -> Curve | None:
    """Operations of one chain of primes by the ring degree."""
    return _grown(results, "log_n", "rings", "Operations on one chain of primes by ring degree", "N", 2)


def ring_limbs(results: Results) -> Curve | None:
    """Operations of one ring by limbs, replayed."""
    return _grown(results, "limbs", "ring-limbs", "Operations on one ring by limbs", "limbs", 0)


def together(results: Results) -> Curve | None:
    """Operations by the ciphertexts of a call."""
    return _grown(results, "batch", "together", "Operations by the ciphertexts of one call", "ciphertexts", 2)


def few_slots(results: Results) -> Curve | None:
    """Bootstraps made for few slots, from the full ring's down."""
    return _grown(results, "slots", "few-slots", "Bootstrapping made for so many slots", "slots", 2, "ms")


def threads(results: Results) -> Curve | None:
    """Operations by the threads of a CPU."""
    return _grown(results, "threads", "threads", "Operations by threads of a CPU", "threads", 2)


def gpus(results: Results) -> Curve | None:
    """What several devices bring, by their number: of work that each does by itself, and of one bootstrap
    that they divide."""
    points: Points = {}
    files = []
    runs: dict[tuple[str, str], list[Found]] = {}
    for f in results.rows("pool"):
        if "/" in str(results.documents[f.file].get("devices")):  # parts of one GPU
            continue
        if "times_one_device" in f.row and (f.row["together"] or f.row["name"] != "bootstrap"):
            some = f", {f.row['together']} together" if f.row["together"] else ""
            runs.setdefault((f"{f.row['name']}{some}, {f.device}", f.file), []).append(f)
    for series, own in _of_one_record(runs, "devices").items():
        points[series] = [(f.row["devices"], f.row["times_one_device"]) for f in own]
        files += [f.file for f in own]
    for device, of_parts in _divided(results).items():
        gains = [(parts, gain) for parts, (gain, _) in sorted(of_parts.items())]
        points[f"one bootstrap divided, {device}"] = [(1, 1.0), *gains]
        files += [file for _, file in of_parts.values()]
    title = "Several devices: each its own work, and one bootstrap divided among them"
    return _curve("gpus", title, Lines("several devices", "devices", "times one device", points), files)


def _divided(results: Results) -> dict[str, dict[int, tuple[float, str]]]:
    """Card -> parts -> (times faster than one card in the same run, file): of the records of the same number
    of parts, which differ in how these exchange limbs, that of the fastest."""
    runs: dict[tuple[str, str], dict[str, float]] = {}
    for f in results.rows("boot", params="boot40", keys="hoisted", batch=1, graph=True):
        if f.file in results.documents and "beside" in results.documents[f.file]:
            runs.setdefault((f.device, f.file), {})[str(f.row.get("device", ""))] = float(f.row["latency_us"])
    best: dict[tuple[str, int], tuple[float, float, str]] = {}
    for (device, file), own in runs.items():
        alone = own.pop("", None)
        for name, us in own.items():
            key = device, name.count("+") + 1
            if alone is not None and (key not in best or us < best[key][0]):
                best[key] = us, alone / us, file
    found: dict[str, dict[int, tuple[float, str]]] = {}
    for (device, parts), (_, gain, file) in best.items():
        found.setdefault(device, {})[parts] = gain, file
    return found


CURVES: tuple[Callable[[Results], Curve | None], ...] = (
    slots,
    slot_levels,
    limbs,
    batches,
    tenants,
    staged,
    rings,
    ring_limbs,
    together,
    few_slots,
    threads,
    gpus,
)


def curves(results: Results) -> list[Curve]:
    """All that the records hold at least two points of."""
    return [found for make in CURVES if (found := make(results)) is not None]
