"""The traffic account against Nsight Compute's counters, kernel by kernel.

    python bench/compare/ncu_account.py account.json ncu.csv [ncu.csv ...] [--json FILE]

account.json is what account_bench wrote, ncu.csv what `ncu --csv --print-units base` printed about the same
launches, in one run or in several with counters of their own (dev/kernels/ncu_account.sh makes all).
Counted are the sectors that the first-level caches asked L2 for, times 32 bytes: lts__t_bytes also counts
what one half of L2 fetches from the other, half as much again on an H200. Exit status 1 when fewer than five
kernels agree within 5 %.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from crenel.counters import TOLERANCE, differences, document
from crenel.errors import StateError
from crenel.ncu import merged, pair, read_launches, row_of

ENOUGH = 5


def print_table(rows: list[dict], off: dict[str, float]) -> None:
    print(f"{'kernel':<18}{'stage':<24}{'grid':<16}{'MB read':>9}{'counted':>9}{'written':>9}{'counted':>9}"
          f"{'diff %':>8}{'us':>8}{'lts/tex':>9}")  # fmt: skip
    for r in rows:
        counted = r["read"] + r["written"]
        print(f"{r['kernel']:<18}{r['stage']:<24}{r['grid']:<16}{r['model_read'] / 1e6:>9.2f}"
              f"{r['read'] / 1e6:>9.2f}{r['model_written'] / 1e6:>9.2f}{r['written'] / 1e6:>9.2f}"
              f"{100 * r['difference']:>8.2f}{r['us']:>8.1f}{r['lts_bytes'] / counted:>9.3f}")  # fmt: skip
    print("\nall launches of a kernel together:")
    for kernel, difference in off.items():
        note = "" if abs(difference) <= TOLERANCE else "   <-- off"
        print(f"  {kernel:<18}{100 * difference:>8.2f} %{note}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("account", type=Path, help="what account_bench --json wrote")
    parser.add_argument("ncu", type=Path, nargs="+", help="CSV of a run of the profiler")
    parser.add_argument("--json", type=Path, help="write the comparison there")
    args = parser.parse_args(argv)
    account = json.loads(args.account.read_text())
    runs = []
    for file in args.ncu:
        with file.open(newline="") as lines:
            runs.append(read_launches(lines))
    try:
        rows = [row_of(*both) for both in pair(account["records"], merged(runs))]
    except StateError as error:
        raise SystemExit(str(error)) from None
    off = differences(rows)
    agreeing = [k for k, d in off.items() if abs(d) <= TOLERANCE]
    print_table(rows, off)
    print(f"{len(agreeing)} of {len(off)} kernels within {100 * TOLERANCE:.0f} %")
    if args.json:
        command = shlex.join(["python", "bench/compare/ncu_account.py", *map(str, argv or sys.argv[1:])])
        record = document(rows, *(account[k] for k in ("params", "operation", "device")), command)
        args.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if len(agreeing) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
