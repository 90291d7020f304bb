"""A profiler report (.ncu-rep) to a small JSON: launches with their counters, and counters by instruction.

usage: ncu_export.py REPORT.ncu-rep OUT.json.gz

Uses the module ncu_report that comes with Nsight Compute (its extras/python folder is searched for).
Format: {"launches": [{"function": mangled, "grid", "block", "metrics": {name: value}, "opcodes": {opcode:
count}, "by_pc": {name: [[offset, value], ...]}}]}. Offsets are bytes from the function's start.
"""

from __future__ import annotations

import glob
import gzip
import json
import re
import sys
from pathlib import Path

# Counters by instruction: executed counts and what memory instructions move, under the names of any version.
BY_PC = re.compile(r"^(sass__|smsp__sass_)?(thread_)?inst_executed$|^memory_l[12]_")
EXECUTED = ("inst_executed", "sass__inst_executed", "smsp__sass_inst_executed")
KEEP = ("smsp__", "sm__", "gpc__", "gpu__", "l1tex__", "lts__", "dram__", "launch__", "smsp__", "sass__")
FOLDERS = (
    "/opt/nvidia/nsight-compute/*/extras/python", "/usr/local/cuda*/nsight-compute*/extras/python",
    "/usr/lib/nsight-compute*/extras/python", "/usr/local/NVIDIA-Nsight-Compute*/extras/python",
)  # fmt: skip


class ExportError(RuntimeError):
    """The report cannot be read, or has no launch; the message says why."""


def module():
    """ncu_report. ExportError when it is not installed."""
    for pattern in FOLDERS:
        for folder in sorted(glob.glob(pattern), reverse=True):
            sys.path.append(folder)
    try:
        import ncu_report
    except ImportError as error:
        raise ExportError(f"ncu_report is not importable ({error}); searched {', '.join(FOLDERS)}") from error
    return ncu_report


def instances(metric, text: bool) -> list[tuple[object, float]]:
    """(correlation id, value) of every instance; empty where there are none. Ids are addresses, or opcodes
    (`text`)."""
    count = metric.num_instances()
    if not count or not metric.has_correlation_ids():
        return []
    ids = metric.correlation_ids()
    read = ids.as_string if text else ids.as_uint64
    return [(read(k), metric.as_double(k)) for k in range(count)]


def launch(action, report) -> dict:
    base = getattr(getattr(report, "IAction", None), "NameBase_MANGLED", 2)
    entry: dict = {"function": action.name(base), "metrics": {}, "opcodes": {}, "by_pc": {}}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if BY_PC.match(name):
            found = instances(metric, text=False)
            if found:
                entry["by_pc"]["inst_executed" if name in EXECUTED else name] = found
        elif name == "sass__inst_executed_per_opcode":
            entry["opcodes"] |= dict(instances(metric, text=True))
        elif name.startswith(KEEP):
            try:
                entry["metrics"][name] = metric.as_double()
            except Exception:
                continue
    addresses = [k for k, _ in entry["by_pc"].get("inst_executed", [])]
    if addresses:
        start = min(addresses)  # a function's first instruction is always executed
        entry["by_pc"] = {n: [[int(k - start), v] for k, v in rows] for n, rows in entry["by_pc"].items()}
    for axis in ("grid", "block"):
        sizes = [entry["metrics"].get(f"launch__{axis}_dim_{d}") for d in "xyz"]
        entry[axis] = [int(s) for s in sizes] if all(s is not None for s in sizes) else None
    return entry


def export(path: Path) -> dict:
    report = module()
    context = report.load_report(str(path))
    launches = []
    for r in range(context.num_ranges()):
        actions = context.range_by_idx(r)
        launches += [launch(actions.action_by_idx(a), report) for a in range(actions.num_actions())]
    if not launches:
        raise ExportError(f"{path}: no launch was profiled")
    return {"kind": "fhecore-profile", "launches": launches}


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__.splitlines()[2], file=sys.stderr)
        return 2
    try:
        data = export(Path(arguments[0]))
    except ExportError as error:
        print(error, file=sys.stderr)
        return 1
    with gzip.open(arguments[1], "wt") as out:
        json.dump(data, out)
    counted = sum(bool(entry["by_pc"].get("inst_executed")) for entry in data["launches"])
    print(f"{len(data['launches'])} launches, {counted} with counts by instruction")
    return 0 if counted == len(data["launches"]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
