#!/usr/bin/env python3
"""Renews the records of bench/results that "cuda:dry" made: launches and bytes of today's code.

    tools/gen_dry.py [--check] [--all] [FILE ...]

A record names its command; that is run again, and the file is written where anything but its provenance and
the seed of its values differs. --check writes nothing and fails where something would be. Without --all only
the quick ones: accounts of traffic and ablations. FILE: names in bench/results.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
DEVICE = "cuda:dry"
QUICK = ("crenel-traffic", "crenel-ablation")
SUITES = ("levels", "growth")  # of minutes
OF_THE_RUN = ("provenance", "seed")

Json = dict[str, Any]


def records(every: bool = False) -> dict[str, Json]:
    """The documents by name."""
    found = {}
    for path in sorted(RESULTS.glob("*.json")):
        document: Json = json.loads(path.read_text(encoding="utf-8"))
        if document.get("kind") not in QUICK and not (every and document.get("suite") in SUITES):
            continue
        if document.get("provenance", {}).get("device", document.get("device")) == DEVICE:
            found[path.name] = document
    return found


def words_of(name: str, document: Json) -> list[str]:
    """Arguments of the command that makes it, with bench/results/NAME as its file."""
    program, *words = shlex.split(document["provenance"]["command"])
    if program != "crenel" or words.count("--json") != 1:
        raise SystemExit(f"{name}: command {program}, expected one of crenel with --json")
    words[words.index("--json") + 1] = f"bench/results/{name}"
    return words


def made(words: list[str]) -> Json:
    """The document that a command writes now."""
    from crenel.cli import main

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        at = words.index("--json") + 1
        printed, before = io.StringIO(), sys.argv
        sys.argv = ["crenel", *words]  # what its provenance has as the command
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                status = main([*words[:at], str(file), *words[at + 1 :]])
        finally:
            sys.argv = before
        if status != 0 or not file.is_file():
            raise SystemExit(f"crenel {shlex.join(words)}: status {status}\n{printed.getvalue()[-2000:]}")
        document: Json = json.loads(file.read_text(encoding="utf-8"))
        return document


def differences(old: Any, new: Any, at: str = "") -> list[str]:
    """Where two documents differ, beyond what is of the run alone and the last digits of sums of times."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in {**old, **new} if at or name not in OF_THE_RUN]
        missing = [f"{at}/{name}: only in one" for name in names if name not in old or name not in new]
        both = [name for name in names if name in old and name in new]
        return missing + [line for name in both for line in differences(old[name], new[name], f"{at}/{name}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for k, (a, b) in pairs for line in differences(a, b, f"{at}/{k}")]
    if isinstance(old, float) and isinstance(new, float) and math.isclose(old, new, rel_tol=1e-9):
        return []
    return [] if old == new else [f"{at}: {str(old)[:60]}, now {str(new)[:60]}"]


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where a record is not of today's code")
    parser.add_argument("--all", action="store_true", help="those that take minutes, too")
    parser.add_argument("files", nargs="*", help="names in bench/results; all without")
    args = parser.parse_args()
    found = records(args.all or bool(args.files))
    if unknown := sorted(set(args.files) - found.keys()):
        raise SystemExit(f"{', '.join(unknown)}: expected some of {', '.join(found)}")
    try:
        import crenel

        crenel.Device(DEVICE)
    except crenel.DeviceError as error:
        print(f"records of {DEVICE}: not compared, {error}")
        return 0
    stale = 0
    for name in args.files or found:
        new = made(words_of(name, found[name]))
        off = differences(found[name], new)
        if not off:
            continue
        stale += 1
        if args.check:
            print(f"{name} is not of today's code ({off[0]}; {len(off)} differences): run tools/gen_dry.py")
        else:
            (RESULTS / name).write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
            print(f"wrote {name}")
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
