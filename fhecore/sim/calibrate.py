"""Fits the parameters that params.toml marks with `fit`, each to its own microbenchmark, never to a kernel.

usage: calibrate.py MICRO.jsonl PROGRAM [--target h200] [--null-cycles N] [--out FILE]

MICRO.jsonl is what the program wrote on the GPU, PROGRAM the same compiled file (its SASS is the trace), or
the folder with collect.py's listings of it. Every parameter is found by bisection on the model's own
prediction; two rounds, since pipes overlap. The error of every microbenchmark is reported, also of those
that no parameter was fitted to. Exit status 1 when one is above 5 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from . import engine, micro, params

TOLERANCE = 0.05
STEPS, ROUNDS, REACH = 18, 2, 8.0


class CalibrationError(ValueError):
    """Measurements that are missing or were made on another GPU."""


def read(path: Path) -> tuple[dict, dict[str, dict], dict]:
    """(device record, measurement by name, record of the chains of empty kernels). CalibrationError when a
    microbenchmark is missing."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    device = next((r for r in rows if "device" in r), None)
    found = {r["name"]: r for r in rows if "name" in r}
    chain = next((r for r in rows if "chain" in r), None)
    missing = [b.name for b in micro.BENCHES if b.name not in found]
    if device is None or chain is None or missing:
        raise CalibrationError(f"{path}: no measurement of {missing or 'the device or the launch chain'}")
    for b in micro.BENCHES:
        if (found[b.name]["threads"], found[b.name]["rounds"]) != (b.threads, b.rounds):
            raise CalibrationError(f"{path}: {b.name} was measured with another launch than micro.py has")
    return device, found, chain


def bisect(predict: Callable[[float], float], goal: float, start: float, steps: int = STEPS) -> float:
    """Value of a parameter at which a monotone prediction meets the goal, within `REACH` times of the start;
    the nearest seen when it cannot. The prediction may rise or fall with it, in steps; of values that meet it
    equally well, within 0.3 %, the one nearest to the start."""
    low, high = start / REACH, start * REACH
    at_low, at_high = predict(low), predict(high)
    rising = at_high >= at_low
    seen = [(abs(at_low - goal), abs(low - start), low), (abs(at_high - goal), abs(high - start), high)]
    at_start = predict(start)
    seen.append((abs(at_start - goal), 0.0, start))
    for _ in range(steps):
        middle = (low * high) ** 0.5
        value = predict(middle)
        seen.append((abs(value - goal), abs(middle - start), middle))
        if (value < goal) == rising:
            low = middle
        else:
            high = middle
    return min(seen, key=lambda s: (max(s[0], 3e-3 * goal), s[1]))[2]


def fit(target: str, measured: dict[str, dict], functions: dict, usages: dict) -> dict:
    """Fitted parameters and the error of every microbenchmark (model / measured - 1)."""
    table = params.table(target)
    values = params.start(target)
    order = [(name, v["fit"]) for name, v in table.items() if v.get("fit") in micro.BY_NAME]
    program = engine.build()

    def predict(bench: str, name: str | None = None, value: float = 0.0) -> float:
        trial = {**values, **({name: value} if name else {})}
        return micro.predict(micro.BY_NAME[bench], functions, usages, params.of_engine(trial), program)

    for _ in range(ROUNDS):
        for name, bench in order:
            goal = float(measured[bench]["cycles"])
            values[name] = bisect(lambda x, n=name, b=bench: predict(b, n, x), goal, values[name])
    fitted_to = {bench: name for name, bench in order}
    errors = []
    for b in micro.BENCHES:
        model, hardware = predict(b.name), float(measured[b.name]["cycles"])
        errors.append(
            {"name": b.name, "fits": fitted_to.get(b.name), "model": model, "measured": hardware,
             "error": model / hardware - 1}
        )  # fmt: skip
    return {"fitted": {name: values[name] for name, _ in order}, "errors": errors}


def of_launches(null: float, model_null: float, chain: dict, clock_ghz: float) -> dict[str, float]:
    """kernel_cycles and launch_us, so that the model gives both measurements of the empty kernel back: its
    profile (`null` cycles) and its share of a chain replayed from a graph. The model's own start of a CTA is
    in neither twice. launch_us is below 0 where launches overlap more than they cost. CalibrationError when
    the model alone takes longer than the profile."""
    if null < model_null:
        raise CalibrationError(
            f"empty kernel: {null:.0f} cycles measured, the model alone takes {model_null:.0f}"
        )
    each = float(chain["overlapped_us_each"])  # as the library launches
    return {"kernel_cycles": null - model_null, "launch_us": each - null / (clock_ghz * 1e3)}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("program", type=Path)
    parser.add_argument("--target", default="h200")
    parser.add_argument(
        "--null-cycles", type=float, help="the profiler's cycles of a kernel that does nothing"
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    device, measured, chain = read(args.measured)
    functions, usages = micro.load(args.program)
    for b in micro.BENCHES:
        micro.check_sass(b, functions[micro.find(functions, b.symbol)])
    result = fit(args.target, measured, functions, usages)
    if args.null_cycles is not None:
        values = {**params.start(args.target), **result["fitted"]}
        model_null = micro.null_cycles(functions, usages, params.of_engine(values))
        result["fitted"] |= of_launches(args.null_cycles, model_null, chain, values["clock_ghz"])
        result["launches"] = {"null_cycles": args.null_cycles, "model_null": model_null, **chain}
    worst = max(abs(e["error"]) for e in result["errors"])
    result |= {"kind": "fhecore-calibration", "target": args.target, "device": device["device"],
               "tolerance": TOLERANCE, "worst": worst, "passed": worst <= TOLERANCE}  # fmt: skip
    for e in sorted(result["errors"], key=lambda e: -abs(e["error"])):
        print(
            f"{e['name']:<20}{e['measured']:>10.0f}{e['model']:>10.0f}{100 * e['error']:>8.1f} %"
            f"  {e['fits'] or ''}"
        )
    print(f"worst {100 * worst:.1f} %: {'within' if result['passed'] else 'ABOVE'} {100 * TOLERANCE:.0f} %")
    out = args.out or params.DATA / f"calibration-{args.target}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if result["passed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
