"""Write python/crenel/tfhe/lookups.json: seconds of batches of look-ups on a GPU, from bench/results.

    python tools/gen_lookups.py                      # from the files that are in use
    python tools/gen_lookups.py --files A.json,B.json   # from others: of kind crenel-lookups, or what
                                                        # torus_tune measured of look-ups of a set for tables
    python tools/gen_lookups.py --check              # exit code 1 where it is stale

Of every batch the fastest step that was measured. A batch takes no longer than a larger one, since it can be
filled up to that; so it is written.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS, FILE = ROOT / "bench/results", ROOT / "python/crenel/tfhe/lookups.json"
sys.path.insert(0, str(ROOT / "bench"))
from report.sets import under_present_names  # noqa: E402

PROCESSORS = {"H100": 132, "H200": 132}  # multiprocessors of the SXM modules

FIRST = ["tfhe-groups-h100.json"]


def rows(name: str) -> tuple[str, str, list[tuple[int, float]]]:
    """Device, set, and (look-ups, seconds) of one file of bench/results."""
    record = under_present_names(json.loads((RESULTS / name).read_text(encoding="utf-8")))
    device = record["provenance"]["device_description"].split(",")[0]
    if record.get("kind") == "crenel-lookups":
        if not all(row["right"] for row in record["results"]):
            raise SystemExit(f"{name}: a batch was wrong")
        return device, record["params"], [(row["batch"], row["seconds"]) for row in record["results"]]
    found = [row for row in record.get("look_ups", []) if "lut" in row["set"]]
    if not found:
        raise SystemExit(f"{name} has no look-ups of tables, expected kind 'crenel-lookups' or 'look_ups'")
    return device, found[0]["set"], [(row["batch"], row["look_up_s"]) for row in found]


def table(names: list[str]) -> str:
    """The text of lookups.json."""
    read = [rows(name) for name in names]
    device, params, _ = read[0]
    if any((d, p) != (device, params) for d, p, _ in read):
        raise SystemExit(f"{', '.join(names)}: of several devices or sets, expected one")
    processors = next((n for key, n in PROCESSORS.items() if key in device), None)
    if processors is None:
        raise SystemExit(f"how many multiprocessors has {device}? Add it to PROCESSORS")
    best: dict[int, float] = {}
    for _, _, batches in read:
        for batch, seconds in batches:
            best[batch] = min(seconds, best.get(batch, seconds))
    monotonic, least = [], float("inf")
    for count in sorted(best, reverse=True):
        least = min(least, best[count])
        monotonic.append([count, least])
    found = {
        "device": device,
        "processors": processors,
        "params": params,
        "source": ", ".join(f"bench/results/{name}" for name in names),
        "batches": monotonic[::-1],
    }
    return json.dumps(found, indent=1) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write, or say what is stale."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", default="", help="of bench/results, by commas; default: those in use")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    names = [name for name in options.files.split(",") if name]
    if not names and FILE.exists():
        source = json.loads(FILE.read_text(encoding="utf-8"))["source"]
        names = [Path(path).name for path in source.split(", ")]
    wanted = table(names or FIRST)
    if FILE.exists() and FILE.read_text(encoding="utf-8") == wanted:
        return 0
    if options.check:
        print(f"{FILE.relative_to(ROOT)} is stale: run python tools/gen_lookups.py", file=sys.stderr)
        return 1
    FILE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
