"""Whole workloads from their schedules: counts and times by class, without and with the unit.

usage: workloads [--target h200] [--out FILE]

schedules.json states every launch; the archive has hardware counts and times of every launch of one
bootstrapping. A kernel's instructions and time are taken to be affine in its work, fitted to those launches;
with the unit they are multiplied by its ratio in HEMult at 47 or 23 limbs, whichever is nearer. What was
measured without the unit judges it: a workload that was run on the H200 and lies more than 15 % off its
measured time is refused.

On another target, where nothing was measured, a kernel's time without the unit is the H200's times the ratio
of the model's times for it there and on the H200; that of a kernel of no primitive is TYPICAL's, which only
moves data. That is the model's word twice over, and nothing can judge it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import archive, bootstrapping, compose, params, schedules, validate

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
NEAR = {47: 47 + 12, 23: 23 + 12}  # limbs of HEMult and of its key switches, special ones included
# Kernels that no bootstrapping launches, by one that moves its data in the same way; their work is bytes.
STANDS_IN = {"plain_sums": "linear_combination"}
TYPICAL = "tensor"  # moves data, in every HEMult
US_PER_S = 1e6


@dataclass(frozen=True)
class Affine:
    """base + rate * work, neither below 0."""

    base: float
    rate: float
    worst: float
    """Largest relative error on what it was fitted to."""

    def __call__(self, work: float) -> float:
        return self.base + self.rate * work


def fitted(points: Sequence[tuple[float, float]]) -> Affine:
    """The line with the least sum of squared relative errors; through 0 or flat where it would go below 0."""
    found = []
    w2 = [1 / (y * y) for _, y in points]
    s = sum(w2)
    sx, sy = (sum(w * p[k] for w, p in zip(w2, points, strict=True)) for k in (0, 1))
    sxx, sxy = (sum(w * p[0] * p[k] for w, p in zip(w2, points, strict=True)) for k in (0, 1))
    determinant = s * sxx - sx * sx
    candidates = [(0.0, sxy / sxx if sxx else 0.0), (sy / s, 0.0)]
    if determinant > 1e-9 * s * sxx:
        rate = (s * sxy - sx * sy) / determinant
        candidates.append(((sy - rate * sx) / s, rate))
    for base, rate in candidates:
        if min(base, rate) >= 0:
            errors = [abs((base + rate * x) / y - 1) for x, y in points]
            found.append((sum(e * e for e in errors), Affine(base, rate, max(errors))))
    return min(found, key=lambda each: each[0])[1]


@dataclass(frozen=True)
class Cost:
    """Of one kernel: instructions and microseconds by its work, and by its bytes."""

    instructions: Affine
    us: Affine
    instructions_by_bytes: Affine
    us_by_bytes: Affine


def costs(csv_text: str, records: Sequence[Mapping[str, int]]) -> dict[str, Cost]:
    """Of every kernel of the bootstrapping: launches and account go side by side.

    ComposeError where they are not the same sequence."""
    launches = bootstrapping.read_launches(csv_text)
    stated = [r for r in records if r["work"] != "copy"]
    names = [bootstrapping.FUNCTION.get(r["kernel"], r["kernel"]) for r in stated]
    if [entry["kernel"] for entry in launches] != names:
        raise bootstrapping.ComposeError("the account's launches are not those that were profiled")
    points: dict[str, list[tuple[float, float, float, float]]] = {}
    for entry, r in zip(launches, stated, strict=True):
        work = bootstrapping.work_of(entry["kernel"], r["limbs"] * r["polys"], r["multiply_adds"])
        moved = r["read_bytes"] + r["written_bytes"]
        seen = entry["smsp__inst_executed.sum"], entry["gpu__time_duration.sum"] / 1e3
        points.setdefault(entry["kernel"], []).append((work, moved, *seen))
    return {
        kernel: Cost(*(fitted([(p[x], p[y]) for p in own]) for x, y in ((0, 2), (0, 3), (1, 2), (1, 3))))
        for kernel, own in points.items()
    }


def slower_at(by_limbs: Mapping[int, Mapping[str, float]], kernel: str, limbs: int) -> float:
    """A kernel's time on the target over that on the H200, at HEMult's limbs that are nearest."""
    own = by_limbs[min(by_limbs, key=lambda each: abs(NEAR[each] - limbs))]
    return own.get(kernel, own[TYPICAL])


def slower(target: Mapping, h200: Mapping) -> dict[int, dict[str, float]]:
    """Of every kernel of an operation, by limbs: the model's times without the unit, the target's over the
    H200's."""
    sums: dict[int, dict[str, list[float]]] = {}
    for there, here in zip(target["operations"], h200["operations"], strict=True):
        own = sums.setdefault(int(there["name"].rpartition("_")[2]), {})
        for a, b in zip(there["rows"], here["rows"], strict=True):
            if (there["name"], a["kernel"]) != (here["name"], b["kernel"]):
                raise bootstrapping.ComposeError(f"{there['name']}: {a['kernel']} is not {b['kernel']}")
            both = own.setdefault(a["kernel"], [0.0, 0.0])
            both[0] += a["base_us"]
            both[1] += b["base_us"]
    out = {limbs: {k: a / b for k, (a, b) in own.items()} for limbs, own in sums.items()}
    for own in out.values():
        own["row_forward"] = own["row_divide"]
    return out


def ratio_at(
    by_limbs: Mapping[int, Mapping[str, Mapping[str, float]]], kernel: str, limbs: int
) -> Mapping[str, float]:
    """Of HEMult with as many limbs as are nearest; 1 for what the unit does not change."""
    nearest = min(by_limbs, key=lambda own: abs(NEAR[own] - limbs))
    return by_limbs[nearest].get(kernel, bootstrapping.SAME)


def composed(
    workload: Mapping, cost: Mapping[str, Cost], by_limbs: Mapping, there: Mapping | None = None
) -> dict:
    """Sums by class; and the share of time of kernels that others stand in for. `there`: of `slower`."""
    classes: dict[str, dict[str, float]] = {}
    stood_in = 0.0
    for name, limbs, polys, multiply_adds, moved, count in workload["launches"]:
        kernel = bootstrapping.FUNCTION.get(name, name)
        known = STANDS_IN.get(kernel, kernel)
        if known not in cost:
            raise bootstrapping.ComposeError(
                f"{workload['name']}: no cost of {kernel} from the bootstrapping"
            )
        own, by_bytes = cost[known], known != kernel
        work = moved if by_bytes else bootstrapping.work_of(kernel, limbs * polys, multiply_adds)
        instructions = count * (own.instructions_by_bytes if by_bytes else own.instructions)(work)
        us = count * (own.us_by_bytes if by_bytes else own.us)(work)
        us *= 1.0 if there is None else slower_at(there, kernel, limbs)
        ratio = ratio_at(by_limbs, kernel, limbs)
        zero = {"launches": 0, "base": 0.0, "with": 0.0, "us": 0.0, "with_us": 0.0}
        sums = classes.setdefault(bootstrapping.class_of(kernel), zero)
        sums["launches"] += count
        sums["base"] += instructions
        sums["with"] += instructions * ratio["instructions"]
        sums["us"] += us
        sums["with_us"] += us * ratio["us"]
        stood_in += us if by_bytes else 0.0
    return {"classes": classes, "stands_in": stood_in / sum(c["us"] for c in classes.values())}


def measured_us(name: str, sets: str, results: Path = RESULTS) -> float | None:
    """The median time of the whole on an H200, where a record of the same size has it."""
    sizes = {
        "lr": {
            "name": "helr", "batch": schedules.ROWS, "features": schedules.FEATURES,
            "steps": schedules.ITERATIONS,
        },
        "resnet20": {
            "name": "network", "network": "resnet20", "batch": 1, "simulated": False,
            "activation": f"relu {schedules.DEGREE} x 19",
        },
    }  # fmt: skip
    found = []
    for path in sorted(results.glob("workload-*.json")):
        document = json.loads(path.read_text())
        if "H200" not in document["provenance"].get("device_description", ""):
            continue
        for row in document["results"]:
            same = sizes.get(name, {"name": None}) | {"params": sets, "graph": False, "correct": True}
            if all(row.get(k) == v for k, v in same.items()) and not (name == "lr" and row["stages_timed"]):
                found.append(row["latency_us"] if name == "resnet20" else US_PER_S * row["total_s"])
    return sorted(found)[len(found) // 2] if found else None


def elsewhere(name: str, sets: str, results: Path = RESULTS) -> dict | None:
    """The newest eager run of one input of a network on another card than the H200: with the composed set,
    or where there is none, with another. It judges nothing: card, kernels and weights are others."""
    wanted = {"name": "network", "network": name, "batch": 1, "graph": False, "correct": True}
    if name == "resnet20":
        wanted["activation"] = f"relu {schedules.DEGREE} x 19"
    found = []
    for path in sorted(results.glob("workload-*.json")):
        document = json.loads(path.read_text())
        of = document["provenance"]
        device = of.get("device_description", "").partition(", compute")[0]
        if "NVIDIA" not in device or "H200" in device:
            continue
        for row in document["results"]:
            if all(row.get(k) == v for k, v in wanted.items()) and not row.get("simulated"):
                own = {"us": row["latency_us"], "device": device, "params": row["params"]}
                found.append((row["params"] == sets, of["date"], own | {"commit": of["commit"][:10]}))
    return max(found, key=lambda each: each[:2])[2] if found else None


def ratios(predictions: Mapping) -> dict[int, dict[str, dict[str, float]]]:
    """By limbs of HEMult, of every kernel that the unit changes; the plain row pass as the dividing one."""
    out = {}
    for operation in predictions["operations"]:
        kind, limbs = operation["name"].rsplit("_", 1)
        if kind == "hemult":
            own = compose.ratios_of(operation)
            own["row_forward"] = own["row_divide"]
            out[int(limbs)] = own
    return out


def _predictions(target: str, fingerprint: str, data: Path) -> dict:
    found = json.loads((data / f"predictions-{target}.json").read_text())
    if found["fingerprint"] != fingerprint:
        raise bootstrapping.ComposeError(f"predictions-{target}.json is of another model: compose again")
    return found


def bootstrap_there(text: str, predictions: Mapping, there: Mapping) -> dict:
    """The profiled bootstrapping on a target that it was not run on. Its launches do not say their limbs: all
    are taken as at those of HEMult that `compose` takes."""
    at = max(there)
    found = bootstrapping.bootstrap(
        text, ratios(predictions)[at], lambda kernel: slower_at({at: there[at]}, kernel, at)
    )
    what = "the profiled one, kernel by kernel"
    return {"name": "bootstrap", "title": "Bootstrap", "what": what, "classes": found["classes"],
            "stands_in": 0.0, "measured_us": None, "refused": None}  # fmt: skip


def _judged(row: dict, stated: Mapping, results: Path) -> None:
    """Beside its measured time, where there is one; no times where that is far off."""
    row["measured_us"] = measured_us(row["name"], stated["params"], results)
    row["elsewhere"] = elsewhere(row["name"], stated["params"], results)
    model = sum(c["us"] for c in row["classes"].values())
    error = None if row["measured_us"] is None else model / row["measured_us"] - 1
    if error is not None and abs(error) > compose.OPERATION:
        row["refused"] = f"{100 * error:+.1f} % off"
        row["classes"] = {
            name: {k: v for k, v in c.items() if k not in ("us", "with_us")}
            for name, c in row["classes"].items()
        }


def workloads(target: str, data: Path = params.DATA, results: Path = RESULTS) -> dict:
    """The record. NotValidated before the model is; ComposeError where schedules and costs do not fit."""
    validation = validate.require("h200", data)
    predictions = _predictions(target, validation["fingerprint"], data)
    stated = json.loads((data / schedules.FILE.name).read_text())
    with tempfile.TemporaryDirectory(prefix="fhecore-") as work:
        folder = archive.unpack(data / archive.COMMITTED.name, Path(work))
        with gzip.open(folder / "bootstrap.csv.gz", "rt") as file:
            text = file.read()
        cost = costs(text, json.loads((folder / "bootstrap.account.json").read_text())["records"])
    there = None
    out = []
    if target != "h200":
        there = slower(predictions, _predictions("h200", validation["fingerprint"], data))
        out.append(bootstrap_there(text, predictions, there))
    for workload in stated["workloads"]:
        row = {k: workload[k] for k in ("name", "title", "what")} | composed(
            workload, cost, ratios(predictions), there
        )
        row |= {"measured_us": None, "elsewhere": None, "refused": None}
        # What is refused on the H200 is so everywhere: the other's times are made of these.
        on_h200 = row if there is None else dict(row) | composed(workload, cost, ratios(predictions))
        _judged(on_h200, stated, results)
        if there is not None and on_h200["refused"]:
            row["refused"] = f"on the H200 {on_h200['refused']}"
            row["classes"] = on_h200["classes"]
        out.append(row)
    return {
        "kind": "fhecore-workloads", "target": target, "params": stated["params"], "workloads": out,
        "fingerprint": validation["fingerprint"],
        "fits": {k: {"instructions": c.instructions.worst, "us": c.us.worst} for k, c in cost.items()},
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fhecore.sim workloads", description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    try:
        found = workloads(args.target)
    except (validate.NotValidated, bootstrapping.ComposeError) as error:
        print(error, file=sys.stderr)
        return 1
    out = args.out or params.DATA / f"workloads-{args.target}.json"
    out.write_text(json.dumps(found, indent=1) + "\n")
    for w in found["workloads"]:
        base, after = (sum(c[k] for c in w["classes"].values()) for k in ("base", "with"))
        line = f"{w['name']:<12}{base:>20,.0f} instructions{base / after:>6.2f} times fewer with FHECore"
        if all("us" in c for c in w["classes"].values()):
            us, with_us = (sum(c[k] for c in w["classes"].values()) for k in ("us", "with_us"))
            line += f"{us / 1e3:>10.1f} ms{us / with_us:>6.2f} times faster"
        print(line + (f", measured {w['measured_us'] / 1e3:.1f} ms" if w["measured_us"] else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
