"""Counters of one blind rotation, from what ncu printed, as a result file.

    python bench/compare/ncu_rotation.py --set G2 --batch 16384 --device NAME --command "ncu ..." \\
        ncu.txt out.json

ncu.txt: `ncu --metrics dram__bytes_read.sum,... -k regex:blind_rotate -c 1 torus_tune --set G2`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

UNITS = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "%": 1.0}
COUNTERS = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "l2_percent": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_percent": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
}
# BOLT-FHE, table 1: STD128Q3 (G2), batch 16,384, RTX 4090.
PUBLISHED = {
    "dram_gb": 11,
    "dram_percent": 0.6,
    "l2_hit_percent": 99.4,
    "l1_percent": 50.9,
    "l2_percent": 22.6,
}


def counter(text: str, name: str) -> float:
    found = re.search(rf"^\s*{re.escape(name)}\s+(\S+)\s+([\d.,]+)\s*$", text, re.MULTILINE)
    if found is None:
        sys.exit(f"no counter {name} in the profiler's output")
    return float(found[2].replace(",", "")) * UNITS[found[1]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ("set", "device", "command"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("output_of_ncu", type=Path)
    parser.add_argument("json", type=Path)
    args = parser.parse_args()
    text = args.output_of_ncu.read_text()
    result = {
        "kind": "crenel-rotation-counters",
        "format": 1,
        "set": args.set,
        "batch": args.batch,
        "device": args.device,
        "command": args.command,
        "counters": {key: counter(text, name) for key, name in COUNTERS.items()},
        "published": PUBLISHED,
    }
    args.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
