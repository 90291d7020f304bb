#!/usr/bin/env python3
"""What launches cost on a machine, from measured runs of networks: bench/results/machine-NAME.json.

    tools/fit_machine.py --name h100 --replay-us 0.5 PROGRAM=RECORD .. [--held-out PROGRAM=RECORD]

PROGRAM is the compiled program of a network's record, by its fingerprint. A dry run counts the launches of
each step; of them and of the measured times of layers and runs come the time of a launch and the rates of
bytes (crenel.nn.launches), by least squares of logarithms. Bootstraps that took more than half as long again
as the quickest made their recording anew: the excess is taken off the run. Needs scipy.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from crenel import nn
from crenel.nn.launches import counted
from crenel.nn.machine import Machine, device_bytes

RESULTS = Path(__file__).resolve().parents[1] / "bench/results"
WAITED_US = 20.0  # for the device, after each layer that is timed
START = (5.5, 3.0e6, 3.0e6)  # microseconds of a launch, bytes a microsecond
Json = dict[str, Any]


def read(program: Path, record: Path) -> Json:
    """A run: its times, and of each step its launches, alike ones counted."""
    found = nn.Program.load(program)
    measured = json.loads(record.read_text())["results"][0]
    if measured["program"] != found.fingerprint or measured["batch"] != found.batch:
        raise SystemExit(f"{record} is of another program than {program}")
    layers = measured["layers"][1:]
    boots = [layer["seconds"] for layer in layers if layer["kind"] == "bootstrap"]
    least = min(boots, default=0.0)
    lost = 0.0 if measured["batch"] > 1 else sum(s - least for s in boots if s > 1.5 * least)
    steps = [
        {
            "kind": layer["kind"],
            "us": 1e6 * layer["seconds"],
            "launches": [[*key, n] for key, n in sorted(Counter(map(device_bytes, records)).items())],
        }
        for layer, (_, records) in zip(layers, counted(found), strict=True)
    ]
    return {
        "record": record.name,
        "us": measured["latency_us"] - 1e6 * lost,
        "lost_us": 1e6 * lost,
        "steps": steps,
    }


def of_run(run: Json, machine: Machine) -> dict[str, float]:
    """Microseconds by kind of step."""
    found: dict[str, float] = {}
    for step in run["steps"]:
        least = machine.replay_us if step["kind"] == "bootstrap" else machine.launch_us
        us = sum(n * max(least, machine.of_bytes(moved, streamed)) for moved, streamed, n in step["launches"])
        found[step["kind"]] = found.get(step["kind"], 0.0) + us
    return found


def fitted(runs: list[Json], name: str, replay_us: float) -> Machine:
    """The machine whose times are nearest to the runs' and to those of their kinds of steps."""

    def machine(logs: np.ndarray) -> Machine:
        launch, cached, streamed = map(float, np.exp(logs))
        return Machine(name, launch, replay_us, cached, streamed)

    def loss(logs: np.ndarray) -> float:
        total = 0.0
        for run in runs:
            model = of_run(run, machine(logs))
            total += 4 * np.log(sum(model.values()) / run["us"]) ** 2
            for kind, us in model.items():
                timed = [s["us"] - WAITED_US for s in run["steps"] if s["kind"] == kind]
                if kind == "bootstrap":  # without those that made a recording
                    timed = [min(timed)] * len(timed)
                total += sum(timed) / run["us"] * np.log(us / sum(timed)) ** 2
        return float(total)

    options = {"maxiter": 2000, "xatol": 1e-4, "fatol": 1e-8}
    return machine(minimize(loss, np.log(START), method="Nelder-Mead", options=options).x)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True, help="in the file's name")
    parser.add_argument("--replay-us", type=float, required=True, help="of a launch in a recording")
    parser.add_argument("--held-out", action="append", default=[], help="a run that is only compared")
    parser.add_argument("runs", nargs="+", help="PROGRAM=RECORD")
    return parser.parse_args()


def main() -> None:
    options = parse()
    pairs = [tuple(map(Path, given.split("=", 1))) for given in (*options.runs, *options.held_out)]
    said = json.loads(pairs[0][1].read_text())["provenance"]
    device = said["device_description"].split(",")[0]
    runs = [read(*pair) for pair in pairs]
    machine = fitted(runs[: len(options.runs)], device, options.replay_us)
    file = RESULTS / f"machine-{options.name}.json"
    machine = replace(machine, source=file.name)
    for k, run in enumerate(runs):
        model = sum(of_run(run, machine).values())
        run |= {"model_us": round(model, 1), "fitted": k < len(options.runs)}
        print(f"{run['record']}: {run['us']:.0f} us, by the model {model:.0f}, {model / run['us']:.3f}")
        steps = Counter()
        for step in run.pop("steps"):
            for moved, streamed, n in step["launches"]:
                steps[step["kind"] == "bootstrap", moved, streamed] += n
        run["launches"] = [
            [int(boot), moved, streamed, n] for (boot, moved, streamed), n in sorted(steps.items())
        ]
    kept = {
        key: said[key]
        for key in ("commit", "device_description", "host_processor", "driver_and_clocks")
        if key in said
    }
    document = {
        "kind": "crenel-machine", "format": 1,
        "provenance": kept | {"command": "tools/fit_machine.py " + " ".join(sys.argv[1:])},
        "machine": vars(machine),
        "columns": ["bootstrap", "moved_bytes", "streamed_bytes", "launches"],
        "runs": runs,
    }  # fmt: skip
    text = json.dumps(document, indent=1)
    # A row a line: there are thousands.
    text = re.sub(r"\[\s+(\d+),\s+(\d+),\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2, \3, \4]", text)
    file.write_text(text + "\n")
    print(machine)


if __name__ == "__main__":
    main()
