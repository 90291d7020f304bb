"""Hardware-counter profiles: time and measured traffic of each kernel, against the measured ceilings."""

from __future__ import annotations

from report.kernels import ceilings_of
from report.text import number, table

MIB = 1 << 20


def _row(row: dict, ceilings: dict) -> list[str]:
    cells = [f"`{row['kernel']}`", row["grid"], number(row["us"])]
    for memory in ("l2", "dram"):
        moved = row[f"{memory}_bytes"]
        share = moved / (1e6 * row["us"]) / ceilings[f"{memory}_read_write_tb_per_s"]
        cells += [number(moved / MIB), f"{100 * share:.0f} %"]
    return cells


def profile_sections(files: dict[str, dict]) -> str:
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-profile":
            continue
        p = data["provenance"]
        ceilings = ceilings_of(p["device"], files)
        header = ["kernel", "grid", "us", "L2, MiB", "of L2's rate", "DRAM, MiB", "of DRAM's rate"]
        text += f"\n## {data['title']}: hardware counters\n\n"
        text += f"{p['device']}, N = 2^{p['log_n']}, alpha {p['alpha']}; {p['version']}. `{name}`\n"
        text += f"`{p['command']}`\n\n" + table(header, [_row(r, ceilings) for r in data["rows"]])
    return text
