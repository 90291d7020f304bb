"""From collect.py's tar to data and reports: unpack, calibrate, validate, compose, report; stops where one
fails.

usage: ingest.py fhecore-sim.tar.gz [--work DIR] [--out DIR]
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from pathlib import Path

from . import calibrate, compose, params, profiles, report, validate


def null_cycles(text: str) -> float | None:
    """Least cycles of the launches that do nothing, from the profiler's CSV; None when there is no such
    line."""
    rows = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    found = [float(r["Metric Value"].replace(",", "")) for r in rows if r["Metric Name"] in profiles.CYCLES]
    return min(found, default=None)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tar", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/fhecore-ingest"))
    parser.add_argument("--out", type=Path, default=Path("build/fhecore/report"))
    args = parser.parse_args(arguments)
    folder = profiles.unpack(args.tar, args.work)
    null = null_cycles((folder / "null.csv").read_text()) if (folder / "null.csv").exists() else None
    if null is None:
        print("not measured: no profile of the empty kernel", file=sys.stderr)
        return 1
    code = calibrate.main([str(folder / "micro.jsonl"), str(folder), "--null-cycles", str(null)])
    if code:
        return code
    code = validate.main([str(folder)])
    if code:
        return code
    for target in ("h200", "a100"):
        code = compose.main([str(folder), "--target", target])
        if code:
            return code
        report.main(["--target", target, "--out", str(args.out)])
    digest = hashlib.sha256(args.tar.read_bytes()).hexdigest()
    facts = json.loads((folder / "facts.json").read_text())
    (params.DATA / "session.json").write_text(json.dumps({"sha256": digest, **facts}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
