#!/usr/bin/env python3
"""What launches cost on a machine, from measured operations: bench/results/machine-NAME.json.

    tools/fit_machine.py --name h100 --launches launches-h100.json --cache-mib 50 --empty-us 0.5
        --operations boot40-h100-operations.json --bootstraps boot40-h100-boot.json PROGRAM=RECORD ..

Operations and bootstraps are those of bench/results that were replayed as recordings: dry runs count their
launches, and by least squares of logarithms come the device's time of a kernel and its rates of bytes.
Bootstraps weigh as much as all operations together, and each of these the same: a bootstrap is a chain of
many, as programs are, and an operation that is repeated finds its keys in the cache. The host's time of a
launch is that of an earlier file of this tool (`--launches`), and the time of an empty kernel in a recording
a probe's.

No network is fitted to. PROGRAM is the compiled program of a network's record; a dry run counts the launches
of each step, and what the model makes of them is kept beside what was measured. A program that was compiled
again may differ from the record's in the last bits of its weights: layers, levels and rotations are compared.
Needs scipy and "cuda:dry".
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from crenel import ckks, nn
from crenel.nn.accounted import launched
from crenel.nn.launches import counted
from crenel.nn.machine import Machine, kind_of
from crenel.nn.sizes import limbs_at
from crenel.workloads.networks import layers

RESULTS = Path(__file__).resolve().parents[1] / "bench/results"
START = (4.0, 3.4e6, 3.0e6)  # microseconds of a kernel, bytes a microsecond in the cache and beyond
Json = dict[str, Any]
Kinds = list[list[int]]  # element-wise, bytes, how many


def kinds(launches: Iterable[Any]) -> Kinds:
    """Launches, alike ones counted."""
    return [[int(e), moved, n] for (e, moved), n in sorted(Counter(map(kind_of, launches)).items())]


def us_of(found: Kinds, machine: Machine, recorded: bool) -> float:
    """Microseconds by the model."""
    least = 0.0 if recorded else machine.launch_us
    return sum(n * max(least, machine.device_us(bool(e), moved)) for e, moved, n in found)


def operations(files: list[Path]) -> list[Json]:
    """Recorded operations and bootstraps of suites, with their launches."""
    found: list[Json] = []
    for file in files:
        for row in json.loads(file.read_text())["results"]:
            if row.get("graph") and row["correct"]:
                made = one(row)
                found.append({"record": file.name, "name": row["name"], "us": row["latency_us"]} | made)
    return found


def one(row: Json) -> Json:
    """Limbs or slots of a row, and its launches."""
    params = ckks.preset(row["params"])
    context = ckks.Context(params, "cuda:dry")
    client = context.keygen()
    if row["name"] == "bootstrap":
        options = ckks.BootstrapOptions(slots=row["slots"], message=row["message"])
        keys = client.evaluation_keys(bootstrap=[options])
        boot = context.bootstrapper(keys, options)
        x = client.encrypt(np.zeros(row["slots"]), level=boot.levels.input, slots=row["slots"])
        return {"slots": row["slots"], "launches": kinds(launched(context, lambda: boot(x)))}
    level = next(k for k in range(params.max_level + 1) if limbs_at(params, k) == row["limbs"])
    ev = context.evaluator(client.evaluation_keys(rotations=[1], bootstrap=[ckks.BootstrapOptions()]))
    a, b = (client.encrypt(np.zeros(params.slots), level=level) for _ in range(2))
    product = ev.multiply(a, b)
    calls: dict[str, Callable[[], object]] = {
        "hadd": lambda: ev.add(a, b),
        "hmult": lambda: ev.multiply(a, b),
        "hmult_rescale": lambda: ev.multiply_rescale(a, b),
        "hmult_then_rescale": lambda: ev.rescale(ev.multiply(a, b)),
        "hrot": lambda: ev.rotate(a, 1),
        "rescale": lambda: ev.rescale(product),
    }
    return {"limbs": row["limbs"], "launches": kinds(launched(context, calls[row["name"]]))}


def fitted(rows: list[Json], known: Json) -> Machine:
    """The machine whose times come nearest to those of operations."""
    names = Counter(row["name"] for row in rows)

    def weight(name: str) -> float:
        return (1.0 if name == "bootstrap" else 1.0 / max(len(names) - 1, 1)) / names[name]

    def machine(logs: np.ndarray) -> Machine:
        kernel, cached, beyond = (float(v) for v in np.exp(logs))
        return Machine(kernel_us=kernel, cached=cached, beyond=beyond, **known)

    def loss(logs: np.ndarray) -> float:
        made = machine(logs)
        errors = (np.log(us_of(row["launches"], made, True) / row["us"]) for row in rows)
        return float(sum(e**2 * weight(row["name"]) for e, row in zip(errors, rows, strict=True)))

    options = {"maxiter": 4000, "xatol": 1e-5, "fatol": 1e-10}
    return machine(minimize(loss, np.log(START), method="Nelder-Mead", options=options).x)


def network(program: Path, record: Path, machine: Machine) -> Json:
    """What the model says of a network's run, and what was measured."""
    found = nn.Program.load(program)
    measured = json.loads(record.read_text())["results"][0]
    mine = [(x.kind, x.level, x.slots, x.ciphertexts) for x in layers.of_plan(found.plan).values()]
    theirs = [(x["kind"], x["level"], x["slots"], x["ciphertexts"]) for x in measured["layers"]]
    same = (mine, len(found.demand.rotations), found.batch) == (
        theirs, measured["rotations"], measured["batch"]
    )  # fmt: skip
    if not same:
        raise SystemExit(f"{record} is of another program than {program}")
    total: Counter[tuple[bool, bool, int]] = Counter()
    for boot, launches in counted(found):
        for launch in launches:
            total[(boot, *kind_of(launch))] += 1
    rows = [[int(boot), int(e), moved, n] for (boot, e, moved), n in sorted(total.items())]
    us = sum(us_of([row[1:]], machine, bool(row[0]) or measured["graph"]) for row in rows)
    return {
        "record": record.name, "us": measured["latency_us"], "recorded": measured["graph"],
        "model_us": round(us, 1), "same_weights": measured["program"] == found.fingerprint, "launches": rows,
    }  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True, help="in the file's name")
    parser.add_argument("--launches", required=True, help="an earlier file, for the host's time of a launch")
    parser.add_argument("--cache-mib", type=float, required=True, help="of the second-level cache")
    parser.add_argument("--empty-us", type=float, required=True, help="of an empty kernel in a recording")
    parser.add_argument("--operations", action="append", default=[], help="of the suite ckks")
    parser.add_argument("--bootstraps", action="append", default=[], help="of the suite boot")
    parser.add_argument("networks", nargs="*", help="PROGRAM=RECORD")
    return parser.parse_args()


def main() -> None:
    options = parse()
    files = [RESULTS / name for name in (*options.operations, *options.bootstraps)]
    said = json.loads(files[0].read_text())["provenance"]
    file = RESULTS / f"machine-{options.name}.json"
    rows = operations(files)
    host = json.loads((RESULTS / options.launches).read_text())["machine"]["launch_us"]
    known = {
        "device": said["device_description"].split(",")[0], "launch_us": host, "empty_us": options.empty_us,
        "cache": int(options.cache_mib * 2**20), "source": file.name,
    }  # fmt: skip
    machine = fitted(rows, known)
    for row in rows:
        row["model_us"] = round(us_of(row["launches"], machine, True), 3)
        print(f"{row['name']} {row.get('limbs', '')}: {row['us']:.1f} us, by the model {row['model_us']:.1f}")
    runs = []
    for given in options.networks:
        program, record = map(Path, given.split("=", 1))
        runs.append(network(program, record, machine))
        ratio = runs[-1]["model_us"] / runs[-1]["us"]
        print(f"{record.name}: {runs[-1]['us']:.0f} us, by the model {runs[-1]['model_us']:.0f}, {ratio:.3f}")
    names = ("commit", "device_description", "host_processor", "driver_and_clocks")
    kept = {key: said[key] for key in names if key in said}
    arguments = [arg for arg in sys.argv[1:] if "=" not in arg]
    command = (
        f"tools/fit_machine.py {' '.join(arguments)} PROGRAM={' PROGRAM='.join(r['record'] for r in runs)}"
    )
    document = {
        "kind": "crenel-machine", "format": 2,
        "provenance": kept | {"command": command, "launches": options.launches},
        "machine": vars(machine),
        "columns": {"operations": ["elementwise", "bytes", "launches"],
                    "networks": ["bootstrap", "elementwise", "bytes", "launches"]},
        "operations": rows, "networks": runs,
    }  # fmt: skip
    text = json.dumps(document, indent=1)
    # A row a line: there are thousands.
    text = re.sub(r"\[\s+(\d+),\s+(\d+),\s+(\d+)(?:,\s+(\d+))?\s+\]", _line, text)
    file.write_text(text + "\n")
    print(machine)


def _line(found: re.Match[str]) -> str:
    return f"[{', '.join(part for part in found.groups() if part is not None)}]"


if __name__ == "__main__":
    main()
