"""A look-up of 4-bit messages and a sum of 8-bit integers, by Crenel and by OpenFHE's PyPI wheel, in one run.

    python bench/compare/openfhe_tables.py --build build/main [--threads 2] [--out FILE]

Never two processes at once: Crenel, OpenFHE (GINX), then Crenel again; the slower of Crenel's runs counts.
OpenFHE's nearest: its functional bootstrap (EvalFunc) with the smallest modulus whose plaintext space holds
the messages, and a ripple adder of its gates, 34 of STD128. Crenel: `lut4-128`, which pads messages by a
bit, one look-up and one sum at a time through the public interface. Both at 128 bits, on fresh ciphertexts,
every result decrypted. The wheel's interpreter: see openfhe.py. Fails when a result is wrong or Crenel is
not faster.
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

KIND = "crenel-tables-comparison"
SET = "lut4-128"


def measured(seconds: float, q1: float, q3: float, wrong: int) -> dict:
    return {"seconds": seconds, "q1_s": q1, "q3_s": q3, "wrong": wrong}


def run_crenel(build: Path, environment: dict[str, str], quick: bool) -> tuple[dict[str, dict], dict]:
    """what -> row; the provenance."""
    with tempfile.TemporaryDirectory() as folder:
        table, sums = Path(folder) / "table.json", Path(folder) / "sums.json"
        program = build / "bench" / "crenel_bench_tfhe"
        command = [program, "--device", "cpu", "--set", SET, "--operation", "lut", "--batch", "32"]
        command += ["--json", table, *["--quick"] * quick]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        command = [sys.executable, "-m", "crenel", "bench", "integers", "--device", "cpu", "--set", SET]
        command += ["--types", "uint8", "--operations", "add", "--repeats", "5" if quick else "20"]
        subprocess.run([*command, "--json", sums], check=True, env=environment, stdout=subprocess.DEVNULL)
        looked, added = json.loads(table.read_text()), json.loads(sums.read_text())
    single = next(row for row in looked["results"] if row["mode"] == "latency")
    many = next(row for row in looked["results"] if row["mode"] == "resident")
    [total] = added["results"]
    us = 1e-6
    rows = {
        "look-up": measured(
            *(us * single[k] for k in ("latency_us", "q1_us", "q3_us")), int(single["failures"])
        )
        | {"batch": many["size"], "batched_s": us * many["latency_us"] / many["size"]},
        "u8 sum": measured(
            us * total["latency_us"], us * total["min_us"], us * total["latency_us"], not total["correct"]
        )
        | {"bootstraps": total["bootstraps"], "rounds": total["depth"]},
    }
    return rows, looked["provenance"] | {"set": SET, "p_fail_log2": single["p_fail_log2"]}


def run_openfhe(python: Path, what: str, count: int, environment: dict[str, str]) -> dict:
    # -I: this folder is not on the path, where openfhe.py would hide the package.
    worker = Path(__file__).with_name("openfhe_tables_worker.py")
    request = json.dumps({"what": what, "count": count})
    command = [python, "-I", worker, request]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def case(what: str, before: dict, theirs: dict, after: dict) -> dict:
    slower = max(before["seconds"], after["seconds"])
    ratio = theirs["seconds"] / slower
    wrong = before["wrong"] + theirs["wrong"] + after["wrong"]
    print(
        f"{what:10} OpenFHE {1e3 * theirs['seconds']:8.1f} ms; Crenel {1e3 * slower:8.1f} ms "
        f"({ratio:.1f} times faster){'  WRONG' if wrong else ''}",
        flush=True,
    )
    steady = slower < 1.15 * min(before["seconds"], after["seconds"])
    return {
        "what": what,
        "crenel": [before, after],
        "openfhe": theirs,
        "ratio": ratio,
        "wrong": wrong,
        "steady": steady,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "main")
    parser.add_argument("--python", help="a Python 3.10, or one that has openfhe")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--count", type=int, default=10, help="operations of OpenFHE's median")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions of Crenel's")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "openfhe-tables-cpu.json")
    args = parser.parse_args()
    if not (args.build / "bench" / "crenel_bench_tfhe").exists():
        sys.exit(f"{args.build / 'bench' / 'crenel_bench_tfhe'} is missing: ./run bench builds it")
    python = openfhe_python(args.python)
    environment = of_threads(args.threads)
    load = list(os.getloadavg())
    before, provenance = run_crenel(args.build, environment, args.quick)
    theirs = {what: run_openfhe(python, what, args.count, environment) for what in before}
    after, _ = run_crenel(args.build, environment, args.quick)
    cases = [case(what, before[what], theirs[what], after[what]) for what in before]
    words = ["--threads", str(args.threads), "--count", str(args.count), *["--quick"] * args.quick]
    content = {
        "kind": KIND,
        "format": 1,
        "provenance": {**provenance, "command": " ".join(["openfhe_tables.py", *words])},
        "wheel": WHEEL,
        "threads": args.threads,
        "cases": cases,
        "load_average": load,
    }
    args.out.write_text(json.dumps(content, indent=2) + "\n")
    print(args.out.relative_to(ROOT) if args.out.is_relative_to(ROOT) else args.out)
    return 0 if all(c["wrong"] == 0 and c["ratio"] > 1 for c in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
