"""Write python/crenel/tfhe/lookups.json: seconds of batches of look-ups on a GPU, from bench/results;
and src/tfhe/step_times.h, by which an evaluator with keys of several steps chooses one.

    python tools/gen_lookups.py                      # from the files that are in use
    python tools/gen_lookups.py --files A.json,B.json   # from others: of kind crenel-lookups, or what
                                                        # torus_tune measured of look-ups of a set for tables
    python tools/gen_lookups.py --files A.json --pages  # and the pages that are predicted from them
    python tools/gen_lookups.py --check              # exit code 1 where it is stale

Of every batch the fastest step that was measured, and under "steps" each by itself. A batch takes no longer
than a larger one, since it can be filled up to that; so it is written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS, FILE = ROOT / "bench/results", ROOT / "python/crenel/tfhe/lookups.json"
HEADER = ROOT / "src/tfhe/step_times.h"
sys.path.insert(0, str(ROOT / "bench"))
from report.sets import under_present_names  # noqa: E402

PROCESSORS = {"H100": 132, "H200": 132}  # multiprocessors of the SXM modules

FIRST = ["tfhe-groups-h100.json"]


Rows = list[tuple[int, int, float]]


def rows(name: str) -> tuple[str, str, Rows]:
    """Device, set, and (step, look-ups, seconds) of one file of bench/results."""
    record = under_present_names(json.loads((RESULTS / name).read_text(encoding="utf-8")))
    device = record["provenance"]["device_description"].split(",")[0]
    if record.get("kind") == "crenel-lookups":
        if not all(row["right"] for row in record["results"]):
            raise SystemExit(f"{name}: a batch was wrong")
        found = [(row["step"], row["batch"], row["seconds"]) for row in record["results"]]
        return device, record["params"], found
    timed = [row for row in record.get("look_ups", []) if "lut" in row["set"]]
    if not timed:
        raise SystemExit(f"{name} has no look-ups of tables, expected kind 'crenel-lookups' or 'look_ups'")
    return device, timed[0]["set"], [(row["step"], row["batch"], row["look_up_s"]) for row in timed]


def monotonic(times: dict[int, float]) -> list[list[float]]:
    """(look-ups, seconds), ascending, none above a later one."""
    found, least = [], float("inf")
    for count in sorted(times, reverse=True):
        least = min(least, times[count])
        found.append([count, least])
    return found[::-1]


def table(names: list[str]) -> tuple[str, str]:
    """The texts of lookups.json and of step_times.h."""
    read = [rows(name) for name in names]
    device, params, _ = read[0]
    if any((d, p) != (device, params) for d, p, _ in read):
        raise SystemExit(f"{', '.join(names)}: of several devices or sets, expected one")
    processors = next((n for key, n in PROCESSORS.items() if key in device), None)
    if processors is None:
        raise SystemExit(f"how many multiprocessors has {device}? Add it to PROCESSORS")
    by_step: dict[int, dict[int, float]] = {}
    for _, _, batches in read:
        for step, batch, seconds in batches:
            times = by_step.setdefault(step, {})
            times[batch] = min(seconds, times.get(batch, seconds))
    every = sorted({batch for times in by_step.values() for batch in times})
    best = {batch: min(times[batch] for times in by_step.values() if batch in times) for batch in every}
    source = ", ".join(f"bench/results/{name}" for name in names)
    found = {
        "device": device,
        "processors": processors,
        "params": params,
        "source": source,
        "batches": monotonic(best),
        "steps": {str(step): monotonic(by_step[step]) for step in sorted(by_step)},
    }
    common = [batch for batch in every if all(batch in times for times in by_step.values())]
    lines = [
        f"    {{{step}, {batch}, {monotonic(by_step[step])[at(by_step[step], batch)][1]!r}}},"
        for step in sorted(by_step)
        for batch in common
    ]
    header = f"""// Written by tools/gen_lookups.py: seconds of a batch of look-ups of {params}, key switches
// included, by the step of its rotations.
// {source}
#pragma once

#include "crenel/core/types.h"

namespace crenel::tfhe {{

struct StepTime {{
  u32 step, rotations;
  double seconds;
}};
/// The set's ring degree and accumulator polynomials, and the multiprocessors of the GPU.
inline constexpr u32 kStepTimesRingDim = 2048, kStepTimesPolys = 2, kStepTimesProcessors = {processors};
// clang-format off
inline constexpr StepTime kStepTimes[] = {{
{chr(10).join(lines)}
}};
// clang-format on

}}  // namespace crenel::tfhe
"""
    return json.dumps(found, indent=1) + "\n", header


def at(times: dict[int, float], batch: int) -> int:
    """Position of a batch in ascending order."""
    return sorted(times).index(batch)


def main(arguments: list[str] | None = None) -> int:
    """Write, or say what is stale."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", default="", help="of bench/results, by commas; default: those in use")
    parser.add_argument(
        "--pages", action="store_true", help="write the pages that are predicted from it, too"
    )
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    names = [name for name in options.files.split(",") if name]
    if not names and FILE.exists():
        source = json.loads(FILE.read_text(encoding="utf-8"))["source"]
        names = [Path(path).name for path in source.split(", ")]
    stale = 0
    for file, wanted in zip((FILE, HEADER), table(names or FIRST), strict=True):
        if file.exists() and file.read_text(encoding="utf-8") == wanted:
            continue
        stale += 1
        if options.check:
            print(f"{file.relative_to(ROOT)} is stale: run python tools/gen_lookups.py", file=sys.stderr)
        else:
            file.write_text(wanted, encoding="utf-8")
    if options.pages and not options.check:  # a process of its own, which reads what was written
        return subprocess.run([sys.executable, str(ROOT / "tools/gen_integers.py")], check=False).returncode
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
