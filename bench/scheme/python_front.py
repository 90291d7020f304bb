"""What Python costs: `import crenel`, and single calls on the smallest toy sets, in the benchmark schema.

python bench/scheme/python_front.py --json bench/results/python-front-cpu.json [--runs 21]

Each run is a process of its own and states one figure for each name; rows are the median of the runs. On
sets so small a call is mostly its way from Python to the kernels and back: converting arguments, checks, an
object for the result, and the start of a parallel region.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CALLS = 2000


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def measure() -> dict[str, float | str]:
    """Seconds of the import and of single calls in this process, and the version."""
    import time

    begin = time.perf_counter()
    import crenel

    found: dict[str, float | str] = {"import": time.perf_counter() - begin, "version": crenel.__version__}
    import warnings

    from crenel import ckks, tfhe

    warnings.simplefilter("ignore")
    params = ckks.Params(log_n=10, scale_bits=30, depth=2, allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys(rotations=[1]))
    a, b = client.encrypt([0.5]), client.encrypt([0.25])
    x, y = ev(a), ev(b)
    gates = tfhe.Context(tfhe.preset("toy-gadget", allow_insecure=True), device="cpu")
    holder = gates.keygen()
    bit_ev, bit = gates.evaluator(holder.evaluation_keys()), holder.encrypt([True])
    calls = {
        "ckks_level": lambda: a.level,
        "ckks_add": lambda: ev.add(a, b),
        "ckks_operand_add": lambda: x + y,
        "ckks_operand_times_2": lambda: x * 2,
        "ckks_rotate": lambda: ev.rotate(a, 1),
        "ckks_encrypt": lambda: client.encrypt([0.5]),
        "tfhe_not": lambda: bit_ev.not_(bit),
    }
    for name, call in calls.items():
        for _ in range(CALLS // 10):
            call()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        found[name] = (time.perf_counter() - begin) / CALLS
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--once", action="store_true", help="print the figures of one process, as JSON")
    options = parser.parse_args()
    if options.once:
        print(json.dumps(measure()))
        return
    runs = []
    for _ in range(options.runs + 1):  # the first one warms the file cache
        command = [sys.executable, __file__, "--once"]
        runs.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    runs = runs[1:]
    version = runs[0].pop("version")
    results = []
    for name in [n for n in runs[0] if n != "version"]:
        us = sorted(1e6 * run[name] for run in runs)
        q1, median, q3 = statistics.quantiles(us, n=4)
        results.append(
            {
                "name": name,
                "latency_us": median,
                "q1_us": q1,
                "q3_us": q3,
                "min_us": us[0],
                "batch": 1,
                "correct": True,
            }
        )
        print(f"{name}: median {median:.2f} us, least {us[0]:.2f} us")
    if options.json is None:
        return
    record = {
        "kind": "crenel-bench",
        "format": 1,
        "suite": "python",
        "provenance": {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": f"bench/scheme/python_front.py --runs {options.runs}",
            "version": version,
            "commit": git("rev-parse", "HEAD"),
            "dirty": bool(git("status", "--porcelain", "--untracked-files=no")),
            "device": "cpu",
            "device_description": f"Python {platform.python_version()}",
        },
        "results": results,
    }
    options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
