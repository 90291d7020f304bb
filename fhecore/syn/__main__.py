"""Synthesis of the unit's blocks on ASAP7: python -m fhecore.syn [DESIGN ...] [options]

Maps with yosys and ABC, sizes, times with OpenSTA; prints figures beside the paper's; --out writes JSON.
Exit status: 0; 1 when a tool failed or --check found a figure out of tolerance; 77 when a tool or the cell
library is missing.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from fhecore.syn import flow, report, tools
from fhecore.syn.designs import designs


def main(arguments: list[str]) -> int:
    names = list(designs())
    parser = argparse.ArgumentParser(prog="fhecore.syn", description=__doc__.splitlines()[0])
    parser.add_argument("design", nargs="*", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--liberty", help="ASAP7 RVT TT cell library, gzip or plain (env CRENEL_ASAP7_LIB)")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--work", type=Path, default=tools.WORK, help="folder of netlists, scripts and logs")
    parser.add_argument("--width", type=int, default=32, help="word bits, 6..32")
    parser.add_argument("--check", action="store_true", help="compare with fhecore/syn/tolerances.toml")
    options = parser.parse_args(arguments)
    if not 6 <= options.width <= 32:
        parser.error(f"--width {options.width}: expected 6..32")
    table = designs(options.width)
    unknown = sorted(set(options.design) - set(table))
    if unknown:
        parser.error(f"no design {unknown} at {options.width} bits: expected some of {list(table)}")
    folder = options.work / f"w{options.width}"
    results = []
    try:
        found = tools.find("synthesis", options.liberty)
        for name in options.design or table:
            print(f"{name}: {table[name].note} ...", file=sys.stderr, flush=True)
            results.append(flow.synthesise(table[name], folder, found))
    except tools.Skipped as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return tools.SKIPPED
    except tools.FlowError as reason:
        print(f"failed: {reason}", file=sys.stderr)
        return 1
    print(report.tables(results))
    if options.out:
        command = shlex.join(["python", "-m", "fhecore.syn", *arguments])
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(flow.record(results, found, command), indent=1) + "\n")
    if options.check:
        wrong = report.check(results, tools.HERE / "tolerances.toml")
        print("\n".join(["", *wrong] if wrong else ["", "all figures within tolerance"]))
        return 1 if wrong else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
