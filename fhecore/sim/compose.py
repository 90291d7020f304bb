"""Whole operations with and without the unit, from profiled kernels: counts, and the model's times.

usage: compose.py FOLDER [--target h200] [--out FILE]      FOLDER: collect.py's files, unpacked

An operation is its sequence of launches. With the unit, the launches named in PLAN run the kernels of
kernels/ instead (profiled as stubs, rewritten by rewrite.py); the others stay. HEMult is without its
rescaling, an operation of its own. The bootstrapping is
composed by kernel class: every launch of the real run is counted, and a class that the unit changes is
scaled by its ratio in HEMult at 47 limbs. Nothing is predicted before validate.require lets it; an operation
that the model misses by more than 15 % on the H200 is refused. What was measured on the H200 is no
other target's figure: there, bootstrapping and sweep have instruction counts only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path

from . import bootstrapping, engine, params, profiles, rewrite, trace, validate

# Of an operation's launches in order: (the library's kernel, the case of unit.cu that takes its place).
_UP = (("row_inverse", "up_rows"), ("column_inverse", "up_columns"), ("base_convert", "up_convert"),
       ("column_forward", "raised_columns"), ("key_switch_rows", "key_rows"))  # fmt: skip
_DOWN = (("row_inverse", "down_rows"), ("column_inverse", "down_columns"), ("base_convert", "down_convert"),
         ("column_forward", "kept_columns"), ("row_divide", "divide_add"))  # fmt: skip
_RESCALE = (("row_inverse", "rescale_rows"), ("column_inverse", "rescale_columns"),
            ("base_convert", "rescale_convert"), ("column_forward", "rescaled_columns"),
            ("row_divide", "divide"))  # fmt: skip
PLAN = {
    "hemult": (("tensor", None), *_UP, *_DOWN),
    "rotate": (*_UP, *_DOWN, ("automorphism_eval", None)),
    "rescale": _RESCALE,
}
INTERVALS = (16, 32, 44, 48)
# What a speed-up is shown to depend on: changes of parameters, on both sides.
VARIANTS = {
    "constants of any tile at any time (the paper's assumption)": {"fhec_banks": 0},
    "result after 44 cycles (the paper's; the RTL takes 64)": {"fhec_extra_latency": 0},
    "round robin instead of greedy scheduling": {"scheduler": 1},
    "DRAM bandwidth -25 %": {"dram_bytes_per_cycle": 0.75, "dram_write_bytes_per_cycle": 0.75},
    "DRAM bandwidth +25 %": {"dram_bytes_per_cycle": 1.25, "dram_write_bytes_per_cycle": 1.25},
    "L2 bandwidth -25 %": {"l2_bytes_per_cycle": 0.75, "l2_write_bytes_per_cycle": 0.75},
    "L2 bandwidth +25 %": {"l2_bytes_per_cycle": 1.25, "l2_write_bytes_per_cycle": 1.25},
    "no launch cost": {"launch_us": 0.0},
    "launch cost of a stream": {"launch_us": 3.0},
}
OPERATION = 0.15  # largest error of a whole operation without the unit, on the GPU that was measured
SCALED = (
    "dram_bytes_per_cycle", "dram_write_bytes_per_cycle", "l2_bytes_per_cycle", "l2_write_bytes_per_cycle"
)  # fmt: skip


class Times:
    """The model's results for launches, each simulated once a set of parameters."""

    def __init__(self, program: Path | None = None) -> None:
        self.program = program or engine.build()
        # The launch is kept with its trace, so that its id stays its own.
        self.traces: dict[tuple[int, bool, int], tuple[profiles.Profiled, str]] = {}
        self.known: dict[tuple, dict] = {}

    def cycles(self, launch: profiles.Profiled, values: dict[str, float], fhec: bool) -> float:
        return self.result(launch, values, fhec)["cycles"] + values["kernel_cycles"]

    def text(self, launch: profiles.Profiled, fhec: bool, sms: int) -> str:
        """The trace, whose making and checking takes a hundred times longer than its simulation."""
        key = (id(launch), fhec, sms)
        if key not in self.traces:
            walk = launch.walk()
            walk.check()
            lines = rewrite.rewrite(launch.function, walk.launch).lines if fhec else None
            self.traces[key] = launch, trace.text(walk, sms, lines)
        return self.traces[key][1]

    def result(self, launch: profiles.Profiled, values: dict[str, float], fhec: bool) -> dict:
        own = params.of_engine(values)
        key = (id(launch), fhec, tuple(sorted(own.items())))
        if key not in self.known:
            text = self.text(launch, fhec, int(values["sms"]))
            self.known[key] = engine.run(text, own, self.program)
        return self.known[key]


def counts(launch: profiles.Profiled, fhec: bool) -> dict[str, int]:
    """Warp instructions; with the unit, the marks rewritten."""
    total = sum(launch.executed)
    if not fhec:
        return {"instructions": total, "fhec": 0}
    walk = launch.walk()
    marks = rewrite.rewrite(launch.function, walk.launch)
    units = rewrite.executed(walk, marks.fhec)
    return {"instructions": total - units, "fhec": units}


def steps(name: str, launches: list[profiles.Profiled], unit: dict[str, profiles.Profiled]) -> list[tuple]:
    """[(library's launch, unit's launch or None)] of an operation like hemult_47."""
    kind, limbs = name.rsplit("_", 1)
    plan = PLAN[kind]
    found = [launch.name for launch in launches]
    if found != [kernel for kernel, _ in plan]:
        raise bootstrapping.ComposeError(
            f"{name}: launches {found}, planned {[kernel for kernel, _ in plan]}"
        )
    return [
        (launch, profiles.in_place_of(launch, unit[f"{case}_{limbs}"]) if case else None)
        for launch, (_, case) in zip(launches, plan, strict=True)
    ]


def total_us(sequence: list[tuple], values: dict[str, float], times: Times, fhec: bool) -> float:
    cycles = sum(
        times.cycles(new if fhec and new else old, values, bool(fhec and new)) for old, new in sequence
    )
    return cycles / (values["clock_ghz"] * 1e3) + len(sequence) * values["launch_us"]


def varied(values: dict[str, float], change: dict[str, float]) -> dict[str, float]:
    return {**values, **{k: values[k] * v if k in SCALED else v for k, v in change.items()}}


def operation(name: str, sequence: list[tuple], values: dict[str, float], times: Times) -> dict:
    rows = []
    for old, new in sequence:
        base, after = counts(old, False), counts(new, True) if new else counts(old, False)
        row = {"kernel": old.name, "class": bootstrapping.class_of(old.name), "base": base["instructions"],
               "with": after["instructions"], "fhec": after["fhec"]}  # fmt: skip
        row["base_us"] = times.cycles(old, {**values, "fhec_interval": 16}, False) / (
            values["clock_ghz"] * 1e3
        )
        for side, launch, fhec in (("base", old, False), ("with", new or old, bool(new))):
            result = times.result(launch, {**values, "fhec_interval": 16}, fhec)
            row[f"{side}_ipc"] = result["issued"] / max(1, result["cycles"])  # of the busiest multiprocessor
            row[f"{side}_warps"] = result["warps_active"]
        for interval in INTERVALS:
            trial = {**values, "fhec_interval": interval}
            row[f"with_us_{interval}"] = times.cycles(new or old, trial, bool(new)) / (
                values["clock_ghz"] * 1e3
            )
        wanted = key_rows_fhec(name) if new and new.name == "key_rows" else after["fhec"]
        if after["fhec"] != wanted:
            raise bootstrapping.ComposeError(f"{name}: key_rows has {after['fhec']} FHEC, expected {wanted}")
        rows.append(row)
    variants = {}
    for text, change in VARIANTS.items():
        trial = varied({**values, "fhec_interval": 16}, change)
        variants[text] = [total_us(sequence, trial, times, False), total_us(sequence, trial, times, True)]
    return {
        "name": name, "rows": rows, "launches": len(rows), "variants": variants,
        "base_us": total_us(sequence, values, times, False),
        "with_us": {str(i): total_us(sequence, {**values, "fhec_interval": i}, times,
        True) for i in INTERVALS},
    }  # fmt: skip


def key_rows_fhec(name: str) -> int:
    """FHEC of the row pass with key product: half a transform for every digit and limb (12 special ones, too)
    that the digit does not have already."""
    limbs = int(name.rsplit("_", 1)[1])
    return rewrite.ntt_fhec(16) // 2 * (-(-limbs // 12) * (limbs + 12) - limbs)


def refusal(base_us: float, measured: dict | None) -> str | None:
    """Why an operation is not predicted; None when the model without the unit is near enough."""
    if not measured:
        return "not measured"
    error = base_us / measured["graph_us"] - 1
    return None if abs(error) <= OPERATION else f"the model without the unit is {100 * error:+.1f} % off"


def ratios_of(result: dict, interval: int = 16) -> dict[str, dict[str, float]]:
    """With / without of every kernel that the unit changes, from one composed operation."""
    out: dict[str, dict[str, float]] = {}
    for row in result["rows"]:
        if row["fhec"]:
            sums = out.setdefault(row["kernel"], dict.fromkeys(("base", "with", "b", "w"), 0.0))
            sums["base"] += row["base"]
            sums["with"] += row["with"]
            sums["b"] += row["base_us"]
            sums["w"] += row[f"with_us_{interval}"]
    return {k: {"instructions": s["with"] / s["base"], "us": s["w"] / s["b"]} for k, s in out.items()}


def held_out_launches(folder: Path) -> dict[tuple[str, str], profiles.Profiled]:
    """Held-out launches by (case, kernel)."""
    return {(case, launch.name): launch for case, launch in validate.load(folder, "kernels")}


def plain_rows(held_out: dict, rows: profiles.Profiled, values: dict, times: Times) -> dict[str, float]:
    """Ratio of the row pass that nothing is fused with: no operation of PLAN has it, a bootstrapping does.
    Both at 24 limbs of two polynomials."""
    old = held_out["ntt_16", "row_forward"]
    new = profiles.in_place_of(old, rows)
    trial = {**values, "fhec_interval": 16}
    return {
        "instructions": counts(new, True)["instructions"] / counts(old, False)["instructions"],
        "us": times.cycles(new, trial, True) / times.cycles(old, trial, False),
    }


def compose(folder: Path, target: str, data: Path = params.DATA) -> dict:
    validation = validate.require("h200", data)
    values = params.load(target, data)
    times = Times()
    by_case: dict[str, list[profiles.Profiled]] = {}
    for case, launch in validate.load(folder, "operations"):
        by_case.setdefault(case, []).append(launch)
    unit = dict(validate.load(folder, "unit"))
    measured = json.loads((folder / "times.json").read_text())["times"]
    on_h200 = params.load("h200", data)
    operations = []
    for name, launches in by_case.items():
        sequence = steps(name, launches, unit)
        result = operation(name, sequence, values, times)
        result["refused"] = refusal(total_us(sequence, on_h200, times, False), measured.get(name))
        if target == "h200":
            result["measured_us"] = measured.get(name)
        operations.append(result)
    out = {
        "kind": "fhecore-predictions",
        "target": target,
        "operations": operations,
        "mean_error": validation["mean"],
        "fingerprint": validation["fingerprint"],
    }
    whole = folder / "bootstrap.csv.gz"
    if whole.exists():
        like = next(o for o in operations if o["name"] == "hemult_47")
        with gzip.open(whole, "rt") as file:
            text = file.read()
        ratios = ratios_of(like)
        ratios["row_forward"] = plain_rows(held_out_launches(folder), unit["ntt_rows"], values, times)
        out["bootstrap"] = bootstrapping.bootstrap(text, ratios)
        account, stated = folder / "bootstrap.account.json", params.DATA / "fft-sweep-boot40.json"
        if account.exists() and stated.exists():
            unit_costs = bootstrapping.costs(text, json.loads(account.read_text())["records"])
            out["sweep"] = bootstrapping.sweep(json.loads(stated.read_text()), unit_costs, ratios)
        if target != "h200" or like["refused"]:  # measured on the H200, scaled by HEMult's times
            out = bootstrapping.without_times(out)
    return out


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    try:
        result = compose(args.folder, args.target)
    except validate.NotValidated as error:
        print(error, file=sys.stderr)
        return 1
    out = args.out or params.DATA / f"predictions-{args.target}.json"
    out.write_text(json.dumps(result, indent=1) + "\n")
    for o in result["operations"]:
        if o["refused"]:
            print(f"{o['name']:<14}refused: {o['refused']}")
            continue
        print(f"{o['name']:<14}{o['base_us']:>9.1f} us{o['with_us']['16']:>9.1f} us with FHECore at II 16")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
