"""Write python/crenel/tfhe/lookups.json: seconds of batches of look-ups on a GPU, from bench/results.

    python tools/gen_lookups.py                                  # from tfhe-groups-h100.json
    python tools/gen_lookups.py --file tfhe-lookups-h100.json    # from another file of kind crenel-lookups
    python tools/gen_lookups.py --check                          # exit code 1 where it is stale

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
PROCESSORS = {"H100": 132, "H200": 132}  # multiprocessors of the SXM modules


def table(name: str) -> str:
    """The text of lookups.json from one file of bench/results."""
    record = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    if record.get("kind") != "crenel-lookups":
        raise SystemExit(f"{name} is of kind {record.get('kind')!r}, expected 'crenel-lookups'")
    device = record["provenance"]["device_description"]
    processors = next((n for key, n in PROCESSORS.items() if key in device), None)
    if processors is None:
        raise SystemExit(f"{name}: how many multiprocessors has {device}? Add it to PROCESSORS")
    best: dict[int, float] = {}
    for row in record["results"]:
        if not row["right"]:
            raise SystemExit(f"{name}: a batch of {row['batch']} was wrong")
        best[row["batch"]] = min(row["seconds"], best.get(row["batch"], row["seconds"]))
    batches, least = [], float("inf")
    for count in sorted(best, reverse=True):
        least = min(least, best[count])
        batches.append([count, least])
    found = {
        "device": device,
        "processors": processors,
        "params": record["params"],
        "source": f"bench/results/{name}",
        "commit": record["provenance"]["commit"],
        "batches": batches[::-1],
    }
    return json.dumps(found, indent=1) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write, or say what is stale."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", default="", help="of bench/results; default: the one that is in use")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    name = options.file
    if not name:
        name = "tfhe-groups-h100.json"
        if FILE.exists():
            name = Path(json.loads(FILE.read_text(encoding="utf-8"))["source"]).name
    wanted = table(name)
    if FILE.exists() and FILE.read_text(encoding="utf-8") == wanted:
        return 0
    if options.check:
        print(f"{FILE.relative_to(ROOT)} is stale: run python tools/gen_lookups.py", file=sys.stderr)
        return 1
    FILE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
