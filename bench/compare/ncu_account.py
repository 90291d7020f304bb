"""The traffic account against Nsight Compute's counters, kernel by kernel.

    python bench/compare/ncu_account.py account.json ncu.csv [--json FILE]

account.json is what account_bench wrote, ncu.csv what `ncu --csv --print-units base` printed about the same
launches (dev/kernels/ncu_account.sh makes both). Counted are the sectors that the first-level caches asked
L2 for, times 32 bytes: lts__t_bytes also counts what one half of L2 fetches from the other, half as much
again on an H200. Exit status 1 when fewer than five kernels agree within 5 %.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

TOLERANCE = 0.05
ENOUGH = 5
SECTOR = 32
# Where a record is named after the operation and not after its __global__ function.
FUNCTION = {
    **dict.fromkeys(("add", "sub", "mul", "mul_add"), "binary"),
    **dict.fromkeys(("neg", "mul_scalar", "mul_add_scalar", "add_scalar"), "scalar"),
    **dict.fromkeys(("sample_ternary", "sample_error"), "sample_small"),
    **dict.fromkeys(("automorphism", "automorphism_add"), "automorphism_eval"),
}
# Counters of (read, written) and the bytes of one count, the best first.
COUNTERS = (
    ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum", SECTOR),
    ("l1tex__m_xbar2l1tex_read_bytes.sum", "l1tex__m_l1tex2xbar_write_bytes.sum", 1),
)


@dataclass
class Launch:
    """What the profiler printed about one launch."""

    function: str
    grid: str
    metrics: dict[str, float] = field(default_factory=dict)

    def moved(self) -> tuple[float, float]:
        """Bytes read and written."""
        for read, written, unit in COUNTERS:
            if read in self.metrics and written in self.metrics:
                return unit * self.metrics[read], unit * self.metrics[written]
        raise SystemExit(f"{self.function}: none of the counters {[c[0] for c in COUNTERS]} was measured")


def read_launches(lines: Iterable[str]) -> list[Launch]:
    """Of the profiler's CSV, in order; other lines of its output are passed over."""
    table = [line for line in lines if line.startswith('"')]
    launches: dict[str, Launch] = {}
    for row in csv.DictReader(table):
        name = row["Kernel Name"].split("(")[0].split("<")[0].split("::")[-1].split(" ")[-1]
        launch = launches.setdefault(row["ID"], Launch(name, row["Grid Size"]))
        value = row["Metric Value"].replace(",", "")
        if value and value != "n/a":
            launch.metrics[row["Metric Name"]] = float(value)
    return list(launches.values())


def pair(records: list[dict], launches: list[Launch]) -> list[tuple[dict, Launch]]:
    """Records and launches must be the same kernels in the same order."""
    kernels = [r for r in records if r["work"] != "copy"]
    wanted = [FUNCTION.get(r["kernel"], r["kernel"]) for r in kernels]
    found = [launch.function for launch in launches]
    if wanted != found:
        shorter = min(len(wanted), len(found))
        at = next((i for i in range(shorter) if wanted[i] != found[i]), shorter)
        raise SystemExit(
            f"launch {at}: the account says {wanted[at : at + 3]}, the profiler {found[at : at + 3]}"
            f" ({len(wanted)} and {len(found)} launches)"
        )
    return list(zip(kernels, launches, strict=True))


def row_of(record: dict, launch: Launch) -> dict:
    read, written = launch.moved()
    model = record["read_bytes"] + record["written_bytes"]
    return {
        "kernel": record["kernel"], "stage": record["stage"], "grid": launch.grid,
        "limbs": record["limbs"], "polys": record["polys"],
        "model_read": record["read_bytes"], "model_written": record["written_bytes"],
        "read": round(read), "written": round(written), "difference": model / (read + written) - 1,
        "us": launch.metrics.get("gpu__time_duration.sum", 0.0) / 1e3,
        "dram_bytes": round(sum(launch.metrics.get(f"dram__bytes_{d}.sum", 0.0) for d in ("read", "write"))),
        "lts_bytes": round(launch.metrics.get("lts__t_bytes.sum", 0.0)),
    }  # fmt: skip


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
    rows = [row_of(*both) for both in pair(account["records"], launches)]
    differences = summary(rows)
    agreeing = [k for k, d in differences.items() if abs(d) <= TOLERANCE]
    print_table(rows, differences)
    print(f"{len(agreeing)} of {len(differences)} kernels within {100 * TOLERANCE:.0f} %")
    if args.json:
        facts = {k: account[k] for k in ("version", "params", "operation", "device")}
        args.json.write_text(json.dumps({
            "kind": "crenel-ncu-account", "format": 1, "provenance": facts, "tolerance": TOLERANCE,
            "kernels": differences, "rows": rows}, indent=1) + "\n")  # fmt: skip
    return 0 if len(agreeing) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
