"""NAND gates of the STD128 family by Crenel and by OpenFHE's PyPI wheel, on one thread in one run.

    python bench/compare/openfhe_tfhe.py --build build/main [--sets STD128] [--out FILE]

Never two processes at once: Crenel, OpenFHE (GINX), then Crenel again. A gate is a bootstrap with key switch,
on fresh ciphertexts; OpenFHE does one after the other, Crenel is timed one by one and in a batch. The wheel's
interpreter: see openfhe.py. Fails when an output is wrong, and when Crenel's single gate is not faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# This folder's openfhe.py: a script's own folder comes first on the path.
from openfhe import ROOT, WHEEL, of_threads, openfhe_python

KIND = "crenel-tfhe-comparison"
ONE_THREAD = of_threads(1)


def run_crenel(program: Path, name: str, batch: int, quick: bool) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "crenel.json"
        command = [program, "--device", "cpu", "--set", name, "--operation", "nand", "--batch", str(batch)]
        command += ["--json", out] + (["--quick"] if quick else [])
        subprocess.run(command, check=True, env=ONE_THREAD, stdout=subprocess.DEVNULL)
        data = json.loads(out.read_text())
    rows = {row["mode"]: row for row in data["results"]}
    single, many = rows["latency"], rows["resident"]
    return {
        "set": name,
        "arithmetic": single["arithmetic"],
        "p_fail_log2": single["p_fail_log2"],
        "gate_s": single["latency_us"] / 1e6,
        "q1_s": single["q1_us"] / 1e6,
        "q3_s": single["q3_us"] / 1e6,
        "batch": many["size"],
        "batched_gate_s": many["latency_us"] / 1e6 / many["size"],
        "keys_s": data["keys"]["keys_s"],
        "wrong": int(single["failures"] + many["failures"]),
        "provenance": data["provenance"],
    }


def run_openfhe(python: Path, name: str, gates: int) -> dict:
    # -I: this folder is not on the path, where openfhe.py would hide the package.
    worker = Path(__file__).with_name("openfhe_tfhe_worker.py")
    request = json.dumps({"set": name, "gates": gates, "warm_up": 3})
    command = [python, "-I", worker, request]
    done = subprocess.run(command, check=True, env=ONE_THREAD, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def steady(*results: dict) -> bool:
    """Nobody else used the machine: Crenel's two runs agree, the quartiles of all are close."""
    first, last = results[0]["gate_s"], results[-1]["gate_s"]
    spreads = [(r["q3_s"] - r["q1_s"]) / r["gate_s"] for r in results]
    return max(first, last) < 1.15 * min(first, last) and all(s < 0.15 for s in spreads)


def compare(name: str, program: Path, python: Path, args: argparse.Namespace) -> dict:
    before = run_crenel(program, name, args.batch, args.quick)
    theirs = run_openfhe(python, name, args.gates)
    after = run_crenel(program, name, args.batch, args.quick)
    slower = max(before["gate_s"], after["gate_s"])
    batched = max(before["batched_gate_s"], after["batched_gate_s"])
    wrong = before["wrong"] + theirs["wrong"] + after["wrong"]
    print(
        f"{name:10} OpenFHE {1e3 * theirs['gate_s']:8.2f} ms; Crenel {1e3 * slower:8.2f} ms "
        f"({theirs['gate_s'] / slower:.2f} times faster), in a batch {1e3 * batched:8.2f} ms"
        f"{'  WRONG' if wrong else ''}",
        flush=True,
    )
    return {
        "set": name,
        "crenel": [before, after],
        "openfhe": theirs,
        "ratio": theirs["gate_s"] / slower,
        "batched_ratio": theirs["gate_s"] / batched,
        "wrong": wrong,
        "steady": steady(before, theirs, after),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "main")
    parser.add_argument("--python", help="a Python 3.10, or one that has openfhe")
    parser.add_argument("--sets", nargs="+", default=["STD128"], help="sets that both have")
    parser.add_argument("--gates", type=int, default=40, help="gates of OpenFHE's median")
    parser.add_argument("--batch", type=int, default=32, help="gates of Crenel's batch")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions of Crenel's")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "openfhe-tfhe-cpu.json")
    args = parser.parse_args()
    program = args.build / "bench" / "crenel_bench_tfhe"
    if not program.exists():
        sys.exit(f"{program} is missing: ./run bench builds it")
    python = openfhe_python(args.python)
    load = list(os.getloadavg())
    cases = [compare(name, program, python, args) for name in args.sets]
    words = ["--sets", *args.sets, "--gates", str(args.gates), "--batch", str(args.batch)]
    command = " ".join(["openfhe_tfhe.py", *words, *["--quick"] * args.quick])
    content = {
        "kind": KIND,
        "format": 1,
        "provenance": {**cases[0]["crenel"][0]["provenance"], "command": command},
        "wheel": WHEEL,
        "threads": 1,
        "cases": cases,
        "load_average": load,
    }
    for case in cases:
        for run in case["crenel"]:
            del run["provenance"]
        if not case["steady"]:
            print(f"{case['set']}: disturbed by other work: repeat on an idle machine")
    args.out.write_text(json.dumps(content, indent=2) + "\n")
    print(args.out.relative_to(ROOT) if args.out.is_relative_to(ROOT) else args.out)
    return 0 if all(case["wrong"] == 0 and case["ratio"] > 1 for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
