"""Counters of single kernels, from what a program said of its launches and ncu of the same, as a record.

    python bench/compare/ncu_counters.py NAME.json NAME.csv --json bench/results/NAME.json

Both files are of dev/kernels/counters.sh. Launches of `kernels_bench --once` become a record of operations
by limbs and polynomials, those of `torus_tune --once` one of blind rotations by batch. Counts are added over
the kernels of an operation; shares are means by time. What ncu did not count is not in the record.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from crenel.ncu import FUNCTION, Launch, read_launches

TIME = "gpu__time_duration.sum"
COUNTS = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "network_read_bytes": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "network_write_bytes": "l1tex__m_l1tex2xbar_write_bytes.sum",
    "instructions": "sm__inst_executed.sum",
    "alu_instructions": "sm__inst_executed_pipe_alu.sum",
    "multiply_instructions": "sm__inst_executed_pipe_fmaheavy.sum",
}
SHARES = {
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_percent": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "l1_percent": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_hit_percent": "l1tex__t_sector_hit_rate.pct",
    "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "alu_percent": "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
    "multiply_percent": "sm__inst_executed_pipe_fmaheavy.avg.pct_of_peak_sustained_active",
    "network_read_percent": "l1tex__m_xbar2l1tex_read_bytes.sum.pct_of_peak_sustained_elapsed",
    "network_write_percent": "l1tex__m_l1tex2xbar_write_bytes.sum.pct_of_peak_sustained_elapsed",
}
STALL = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio")
ROTATION = "blind_rotate"


def counters(launches: list[Launch]) -> dict[str, float]:
    """Of the launches of one operation together; what one of them lacks is left out."""
    times = [launch.metrics.get(TIME, 0.0) for launch in launches]
    whole = sum(times)
    out = {"us": whole / 1e3}
    for key, metric in COUNTS.items():
        if all(metric in launch.metrics for launch in launches):
            out[key] = sum(launch.metrics[metric] for launch in launches)
    for key, metric in SHARES.items():
        if whole and all(metric in launch.metrics for launch in launches):
            out[key] = sum(t * each.metrics[metric] for t, each in zip(times, launches, strict=True)) / whole
    return out


def stalls(launch: Launch) -> dict[str, float]:
    """Warps that wait, by reason, for each cycle in which one is issued."""
    begin, end = STALL
    return {
        metric.removeprefix(begin).removesuffix(end): value
        for metric, value in launch.metrics.items()
        if metric.startswith(begin) and metric.endswith(end)
    }


def pair(records: list[dict], launches: list[Launch]) -> list[tuple[dict, Launch]]:
    """Records with the launches that they state. Preparations (no stage) may be hidden from the profiler.

    Raises
    ------
    SystemExit : others than those that were stated, or in another order
    """
    seen = {launch.function for launch in launches}
    stated = [(FUNCTION.get(r["kernel"], r["kernel"]), r) for r in records if r["work"] != "copy"]
    stated = [(name, r) for name, r in stated if r["stage"] or name in seen]
    for at, ((name, _), launch) in enumerate(zip(stated, launches, strict=False)):
        if name != launch.function:
            raise SystemExit(f"launch {at}: the program says {name}, the profiler {launch.function}")
    if len(stated) != len(launches):
        raise SystemExit(f"the program says {len(stated)} launches, the profiler {len(launches)}")
    return [(r, launch) for (_, r), launch in zip(stated, launches, strict=True)]


def operations(records: list[dict], launches: list[Launch]) -> list[dict]:
    """A row for each operation, number of limbs and of polynomials, in their order."""
    groups: dict[tuple[str, int, int], list[tuple[dict, Launch]]] = {}
    for record, launch in pair(records, launches):
        if record["stage"]:
            key = record["stage"].split("/")[0], record["limbs"], record["polys"]
            groups.setdefault(key, []).append((record, launch))
    return [
        {
            "operation": name, "limbs": limbs, "polys": polys,
            "kernels": [launch.function for _, launch in own],
            "stated": {
                key: sum(record[key] for record, _ in own)
                for key in ("read_bytes", "written_bytes", "multiply_adds")
            },
            "counters": counters([launch for _, launch in own]),
        }
        for (name, limbs, polys), own in groups.items()
    ]  # fmt: skip


def rotations(shapes: list[dict], launches: list[Launch]) -> list[dict]:
    """A row for each batch and packing.

    Raises
    ------
    SystemExit : not one rotation a shape
    """
    own = [launch for launch in launches if launch.function == ROTATION]
    if len(own) != len(shapes):
        raise SystemExit(f"the program says {len(shapes)} rotations, the profiler {len(own)}")
    return [
        {
            "set": shape["set"], "slots": shape["slots"], "batch": shape["batch"] * shape["slots"],
            "shape": shape["shape"], "rows": shape["rows"], "threads": shape["threads"],
            "counters": counters([launch]), "stalls": stalls(launch),
        }
        for shape, launch in zip(shapes, own, strict=True)
    ]  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("said", type=Path, help="what the program wrote with --json")
    parser.add_argument("ncu", type=Path, help="CSV of the profiler")
    parser.add_argument("--json", type=Path, required=True, help="the record")
    args = parser.parse_args(argv)
    said = json.loads(args.said.read_text())
    with args.ncu.open(newline="") as lines:
        launches = read_launches(lines)
    if not launches:
        raise SystemExit(f"{args.ncu} holds no launch")
    if "records" in said:
        kind, rows = "crenel-kernel-counters", operations(said["records"], launches)
    else:
        kind, rows = "crenel-rotation-counters", rotations(said["shapes"], launches)
    record = {"kind": kind, "format": 2, "provenance": said["provenance"], "rows": rows}
    args.json.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{args.json}: {len(rows)} rows of {len(launches)} launches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
