"""Time of `import crenel` in fresh processes: median of many, as one row of the benchmark schema.

python bench/scheme/import_time.py --json bench/results/import-cpu.json [--runs 21]
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
PROBE = (
    "import time; t = time.perf_counter(); import crenel; print(time.perf_counter() - t, crenel.__version__)"
)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=21)
    options = parser.parse_args()
    seconds, versions = [], set()
    for _ in range(options.runs + 1):  # the first one warms the file cache
        done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
        time, version = done.stdout.split()
        seconds.append(float(time))
        versions.add(version)
    us = sorted(1e6 * s for s in seconds[1:])
    q1, median, q3 = statistics.quantiles(us, n=4)
    record = {
        "kind": "crenel-bench",
        "format": 1,
        "suite": "import",
        "provenance": {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": f"bench/scheme/import_time.py --runs {options.runs}",
            "version": versions.pop(),
            "commit": git("rev-parse", "HEAD"),
            "dirty": bool(git("status", "--porcelain", "--untracked-files=no")),
            "device": "cpu",
            "device_description": f"Python {platform.python_version()}",
        },
        "results": [
            {
                "name": "import",
                "latency_us": median,
                "q1_us": q1,
                "q3_us": q3,
                "min_us": us[0],
                "correct": True,
            }
        ],
    }
    options.json.write_text(json.dumps(record, indent=2) + "\n")
    print(f"import crenel: median {median / 1e3:.1f} ms, least {us[0] / 1e3:.1f} ms")


if __name__ == "__main__":
    main()
