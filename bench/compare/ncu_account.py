"""The traffic account against Nsight Compute's counters, kernel by kernel.

    python bench/compare/ncu_account.py account.json ncu.csv [--json FILE]

account.json is what account_bench wrote, ncu.csv what `ncu --csv --print-units base` printed about the same
launches (dev/kernels/ncu_account.sh makes both). Counted are the sectors that the first-level caches asked
L2 for, times 32 bytes: lts__t_bytes also counts what one half of L2 fetches from the other, half as much
again on an H200. Exit status 1 when fewer than five kernels agree within 5 %.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from crenel.errors import StateError
from crenel.ncu import pair, read_launches, row_of
from crenel.records import made

TOLERANCE = 0.05
ENOUGH = 5


def summary(rows: list[dict]) -> dict[str, float]:
    """Difference of the sums over all launches of a kernel."""
    kernels = dict.fromkeys(r["kernel"] for r in rows)
    differences = {}
    for kernel in kernels:
        mine = [r for r in rows if r["kernel"] == kernel]
        model = sum(r["model_read"] + r["model_written"] for r in mine)
        differences[kernel] = model / sum(r["read"] + r["written"] for r in mine) - 1
    return differences


def print_table(rows: list[dict], differences: dict[str, float]) -> None:
    print(f"{'kernel':<18}{'stage':<24}{'grid':<16}{'MB read':>9}{'counted':>9}{'written':>9}{'counted':>9}"
          f"{'diff %':>8}{'us':>8}{'lts/tex':>9}")  # fmt: skip
    for r in rows:
        counted = r["read"] + r["written"]
        print(f"{r['kernel']:<18}{r['stage']:<24}{r['grid']:<16}{r['model_read'] / 1e6:>9.2f}"
              f"{r['read'] / 1e6:>9.2f}{r['model_written'] / 1e6:>9.2f}{r['written'] / 1e6:>9.2f}"
              f"{100 * r['difference']:>8.2f}{r['us']:>8.1f}{r['lts_bytes'] / counted:>9.3f}")  # fmt: skip
    print("\nall launches of a kernel together:")
    for kernel, difference in differences.items():
        note = "" if abs(difference) <= TOLERANCE else "   <-- off"
        print(f"  {kernel:<18}{100 * difference:>8.2f} %{note}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("account", type=Path, help="what account_bench --json wrote")
    parser.add_argument("ncu", type=Path, help="CSV of the profiler")
    parser.add_argument("--json", type=Path, help="write the comparison there")
    args = parser.parse_args(argv)
    account = json.loads(args.account.read_text())
    with args.ncu.open(newline="") as lines:
        launches = read_launches(lines)
    try:
        rows = [row_of(*both) for both in pair(account["records"], launches)]
    except StateError as error:
        raise SystemExit(str(error)) from None
    differences = summary(rows)
    agreeing = [k for k, d in differences.items() if abs(d) <= TOLERANCE]
    print_table(rows, differences)
    print(f"{len(agreeing)} of {len(differences)} kernels within {100 * TOLERANCE:.0f} %")
    if args.json:
        words = [str(args.account), str(args.ncu), "--json", str(args.json)]
        facts = made(shlex.join(["python", "bench/compare/ncu_account.py", *words]))
        facts |= {k: account[k] for k in ("version", "params", "operation", "device")}
        args.json.write_text(json.dumps({
            "kind": "crenel-ncu-account", "format": 1, "provenance": facts, "tolerance": TOLERANCE,
            "kernels": differences, "rows": rows}, indent=1) + "\n")  # fmt: skip
    return 0 if len(agreeing) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
