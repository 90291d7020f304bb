"""Shapes of the blind rotation against throughput and registers (BOLT-FHE, tables 8, 10); its traffic."""

from __future__ import annotations

from report.text import duration, number, provenance_line, table

GIGA = 1e9


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
        c, published = data["counters"], data["published"]
        dram = c["dram_read_bytes"] + c["dram_write_bytes"]
        text += f"\n## TFHE: memory traffic of one blind rotation of {data['batch']:,} ({data['set']})\n\n"
        body = [
            ["DRAM, GB", number(dram / GIGA), number(published["dram_gb"])],
            ["DRAM, of its peak", f"{number(c['dram_percent'])} %", f"{published['dram_percent']} %"],
            ["L2 hits", f"{number(c['l2_hit_percent'])} %", f"{published['l2_hit_percent']} %"],
            ["L2, of its peak", f"{number(c['l2_percent'])} %", f"{published['l2_percent']} %"],
            [
                "L1 and shared memory, of its peak",
                f"{number(c['l1_percent'])} %",
                f"{published['l1_percent']} %",
            ],
        ]
        text += table(["ncu", "here", "BOLT-FHE, table 1 (RTX 4090)"], body)
        text += f"\n`{name}`; {data['device']}; `{data['command']}`\n"
    return text
