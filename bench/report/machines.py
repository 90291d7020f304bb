"""Networks' times as launches say beside measured ones, by machine."""

from __future__ import annotations

import json
from pathlib import Path

from report.text import table

RESULTS = Path(__file__).resolve().parents[1] / "results"

NETWORKS = [
    "network",
    "parameters",
    "activation",
    "batch",
    "run",
    "measured, ms",
    "by launches, ms",
    "ratio",
    "record",
]
OPERATIONS = ["operation", "limbs, or slots", "measured, us", "by launches, us", "ratio"]


def machine_sections(files: dict[str, dict]) -> str:
    """Tables of every machine; nothing where there is none."""
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-machine" or data["format"] < 2:
            continue
        machine = data["machine"]
        text += f"\n## What launches say, {machine['device']}\n\n"
        times = [f"{machine[key]:.3g}" for key in ("empty_us", "kernel_us", "launch_us")]
        rates = [f"{machine[key] / 1e6:.3g} TB/s" for key in ("cached", "beyond")]
        mib = machine["cache"] >> 20
        text += (
            "`nn.duration` counts launches by a dry run. On the device an element-wise kernel takes\n"
            f"{times[0]} us and any other {times[1]} us besides its bytes, at {rates[0]}, or\n"
            f"{rates[1]} where a launch moves more than the {mib} MiB of the second-level cache;\n"
            f"the host takes {times[2]} us a launch, which recordings do not have. By\n"
            "`tools/fit_machine.py` from the operations below, and from no network.\n"
            f"`{name}`\n\n"
        )
        text += table(NETWORKS, [_network(run, files) for run in data["networks"]])
        text += "\n" + table(OPERATIONS, [_operation(row) for row in data["operations"]])
    return text


def _network(run: dict, files: dict[str, dict]) -> list[str]:
    # Of the day that it was compared on, kept aside where there is a newer record since.
    record = files.get(run["record"]) or json.loads((RESULTS / run["record"]).read_text(encoding="utf-8"))
    row = record["results"][0]
    return [
        row["network"],
        row["params"],
        row["activation"],
        str(row["batch"]),
        "recorded" if run["recorded"] else "eager",
        f"{run['us'] / 1e3:.1f}",
        f"{run['model_us'] / 1e3:.1f}",
        f"{run['model_us'] / run['us']:.3f}",
        f"`{run['record']}`",
    ]


def _operation(row: dict) -> list[str]:
    return [
        row["name"],
        str(row.get("limbs", row.get("slots"))),
        f"{row['us']:.1f}",
        f"{row['model_us']:.1f}",
        f"{row['model_us'] / row['us']:.3f}",
    ]
