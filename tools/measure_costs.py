#!/usr/bin/env python3
"""Measure what operations cost on a device, into a table of costs that tools/gen_costs.py takes in.

    tools/measure_costs.py boot35 --device cuda --boots 32768,16384,8192 --to bench/results/costs-h200.json

Every normal level by default: nothing is interpolated then, and no stand-in is needed. It measures the
package that it imports; names of toy sets need --insecure.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from crenel import ckks
from crenel.nn.measure import measure


def numbers(text: str) -> list[int]:
    """Integers with commas between."""
    return [int(part) for part in text.split(",") if part]


def main(argv: list[str]) -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("params", help="name of a parameter set")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--insecure", action="store_true", help="allow toy sets")
    parser.add_argument("--levels", type=numbers, help="default: all normal ones")
    parser.add_argument("--batches", type=numbers, default=[1], help="ciphertexts in one object")
    parser.add_argument("--boots", type=numbers, default=[], help="slots of bootstraps, of real vectors")
    parser.add_argument("--seconds", type=float, default=0.05, help="of each operation at each level")
    parser.add_argument("--to", type=Path, required=True)
    asked = parser.parse_args(argv)
    params = ckks.preset(asked.params, allow_insecure=asked.insecure)
    costs = measure(
        ckks.Context(params, device=asked.device),
        levels=range(params.normal_top_level + 1) if asked.levels is None else asked.levels,
        batches=asked.batches,
        seconds=asked.seconds,
        slots=asked.boots,
    )
    text = json.dumps(costs.document(), indent=1)
    asked.to.write_text(text + "\n", encoding="utf-8")
    print(f"{len(costs.rows)} times of operations, {len(costs.bootstraps)} of bootstraps: {asked.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
