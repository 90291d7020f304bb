"""Shapes of the blind rotation against throughput and registers (BOLT-FHE, tables 8, 10); its traffic."""

from __future__ import annotations

from report.text import duration, number, provenance_line, table

GIGA = 1e9
# BOLT-FHE, table 1: STD128Q3 (G2) on an RTX 4090.
PUBLISHED_BATCH = 16384
PUBLISHED = {
    "dram_gb": 11,
    "dram_percent": 0.6,
    "l2_hit_percent": 99.4,
    "l1_hit_percent": 14.9,
    "l1_percent": 50.9,
    "l2_percent": 22.6,
}


def tune_sections(files: dict[str, dict]) -> str:
    found = {n: d for n, d in files.items() if d["kind"] == "crenel-bench" and d.get("suite") == "tfhe-tune"}
    if not found:
        return ""
    header = [
        "set",
        "r",
        "shape",
        "IPT",
        "WPP",
        "threads",
        "rows a block",
        "registers",
        "local bytes a thread",
    ]
    header += ["rotations, / s", "one batch", "source"]
    rows = []
    for name, data in found.items():
        best: dict[int, float] = {}
        for s in data["shapes"]:
            best[s["slots"]] = max(best.get(s["slots"], 0.0), s["rotations_per_s"])
        for s in data["shapes"]:
            mark = "**" if s["rotations_per_s"] == best[s["slots"]] else ""
            rows.append(
                [
                    s["set"],
                    str(s["slots"]),
                    s["shape"],
                    *(f"{s[k]:g}" for k in ("items_per_thread", "warps_per_poly", "threads", "rows")),
                    *(f"{s[k]:g}" for k in ("registers", "local_bytes")),
                    f"{mark}{s['rotations_per_s']:,.0f}{mark}",
                    duration(1e6 * s["median_s"]),
                    f"`{name}`",
                ]
            )
    text = "\n## TFHE: shapes of the blind rotation\n\nRandom keys, batch of 16,384 messages on the device, "
    text += "without key switch. IPT: coefficients of a polynomial in a thread's registers; "
    text += "WPP: warps that cooperate on one; 32 WPP IPT = N. "
    text += "Bold: best for its set and r. All shapes of a set give the same bits.\n\n"
    text += table(header, rows)
    provenances = ({**d["provenance"], "command": "torus_tune"} for d in found.values())
    lines = dict.fromkeys(provenance_line(p) for p in provenances)
    return text + "".join(f"\n{line}" for line in lines)


def rotation_traffic_sections(files: dict[str, dict]) -> str:
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-rotation-counters":
            continue
        of = data["provenance"]
        for row in data["rows"]:
            if row["set"] == "G2" and row["batch"] == PUBLISHED_BATCH:
                text += (
                    f"\n## TFHE: memory traffic of one blind rotation of {row['batch']:,} ({row['set']})\n\n"
                )
                text += rotation_table(row["counters"])
                text += (
                    f"\n`{name}`; {of['device_description']}; commit {of['commit'][:10]}; `{of['command']}`\n"
                )
    return text


def rotation_table(counters: dict[str, float]) -> str:
    names = {
        "DRAM, of its peak": "dram_percent",
        "L2 hits": "l2_hit_percent",
        "L1 hits": "l1_hit_percent",
        "L2, of its peak": "l2_percent",
        "L1 and shared memory, of its peak": "l1_percent",
    }
    dram = counters["dram_read_bytes"] + counters["dram_write_bytes"]
    body = [["DRAM, GB", number(dram / GIGA), number(PUBLISHED["dram_gb"])]]
    body += [
        [title, f"{number(counters[key])} %", f"{PUBLISHED[key]} %"]
        for title, key in names.items()
        if key in counters
    ]
    return table(["ncu", "here", "BOLT-FHE, table 1 (RTX 4090)"], body)
