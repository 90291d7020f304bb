"""From measurements to data and reports: unpack, calibrate, validate, compose, report; stops where one fails.

usage: ingest.py [TAR] [--work DIR] [--out DIR]      TAR: collect.py's, default the archive that is committed
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
import tempfile
from pathlib import Path

from . import archive, calibrate, compose, params, profiles, report, validate


def null_cycles(text: str) -> float | None:
    """Least cycles of the launches that do nothing, from the profiler's CSV; None when there is no such
    line."""
    rows = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    found = [float(r["Metric Value"].replace(",", "")) for r in rows if r["Metric Name"] in profiles.CYCLES]
    return min(found, default=None)


def wrong_products(text: str) -> int | None:
    """Values that `unit --check` found different from sums on the host; None where it did not finish."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return next((int(r["wrong"]) for r in rows if "wrong" in r), None)


def ingest(tar: Path, work: Path, out: Path) -> int:
    """Exit status of the first step that fails; 0."""
    folder = archive.unpack(tar, work)
    check = folder / "unit-check.json"
    wrong = wrong_products(check.read_text()) if check.exists() else None
    if wrong != 0:
        why = "did not run" if wrong is None else f"{wrong} values are wrong"
        print(f"the check of the tensor-core transform: {why}", file=sys.stderr)
        return 1
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
        report.main(["--target", target, "--out", str(out)])
    facts = json.loads((folder / "facts.json").read_text())
    found = session(hashlib.sha256(tar.read_bytes()).hexdigest(), facts, params.DATA / "session.json")
    (params.DATA / "session.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0


def session(digest: str, facts: dict, before: Path) -> dict:
    """What was run where. A collection that wrote no commit keeps the one that its archive came with."""
    out = {"kind": "fhecore-session", "sha256": digest}
    old = json.loads(before.read_text()) if before.exists() else {}
    if "commit" not in facts.get("facts", {}) and old.get("sha256") == digest and "archived" in old:
        out["archived"] = old["archived"]
    return out | facts


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tar", type=Path, nargs="?", default=archive.COMMITTED)
    parser.add_argument("--work", type=Path, help="unpack here, and keep it; default: a temporary folder")
    parser.add_argument("--out", type=Path, default=Path("build/fhecore/report"))
    args = parser.parse_args(arguments)
    if not args.tar.exists():
        print(f"{args.tar}: no such file; `python -m fhecore.sim` says how to collect it", file=sys.stderr)
        return 1
    if args.work:
        return ingest(args.tar, args.work, args.out)
    with tempfile.TemporaryDirectory(prefix="fhecore-") as folder:
        return ingest(args.tar, Path(folder), args.out)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
