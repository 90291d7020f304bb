"""The hardware unit FHECore: area and clock beside the paper's, cycles measured on the RTL."""

from __future__ import annotations

import json
from pathlib import Path

from report.text import provenance_line, table

# The paper's figures (FHECore, Tables IX, X, IV): um2, GHz, mm2, from the package's data of it.
PAPER = Path(__file__).resolve().parents[2] / "python" / "crenel" / "reproduce" / "papers" / "fhecore.json"
TABLES = {i["number"]: i["rows"] for i in json.loads(PAPER.read_text())["items"] if i["kind"] == "table"}
(_, PAPER_PE_GHZ, _), _, (_, PAPER_PE_AREA, PAPER_GRID_AREA), _ = TABLES[9]
PAPER_GRID_GHZ = TABLES[9][0][2]
A100_DIE, PAPER_DIE = TABLES[10][1][2], TABLES[10][2][2]
A100_BOOST_GHZ = 1.41
_AREA = TABLES[4][2]
PAPER_OTHER_GRIDS = (("TC PE", *_AREA[3:5]), ("enhanced TC PE", *_AREA[1:3]))
ELEMENTS, UNITS = 128, 432

CYCLES = {
    "array_latency": "array: first step to last result",
    "command_to_first_beat": "unit: command to first result beat",
    "command_to_last_beat": "unit: command to last result beat",
    "interval_x2_1_sets": "two tiles, one set of constants",
    "interval_x2_2_sets": "two tiles, two sets in turn",
    "interval_x2_shared_set": "two tiles, all warps with the same set",
    "interval_x2_3_sets": "two tiles, three sets in turn",
    "interval_x2_setc_each_tile": "two tiles, FHEC.SETC of a new set before each",
}


# What else was synthesised, by a netlist that its record has.
OTHERS = {"tensor_pe": "a tensor core's element, synthesis", "lazy_pe": "other arrays, synthesis"}


def fhecore_sections(files: dict[str, dict]) -> str:
    text = ""
    for name, data in files.items():
        if data["kind"] == "crenel-fhecore-synthesis":
            text += _synthesis(name, data)
    return text + _verification([d for d in files.values() if d["kind"] == "crenel-fhecore-verification"])


def _synthesis(name: str, data: dict) -> str:
    by = {r["design"]: r for r in data["results"]}
    what = next((w for design, w in OTHERS.items() if design in by), "synthesis")
    text = f"\n## FHECore: {what}\n\n{data['conditions']}. `{name}`\n\n"
    header = ["netlist", "area, um2", "flip-flops", "least period, ps", "GHz", "slowest path"]
    rows = []
    for r in data["results"]:
        path = f"`{r['critical_start']}` to `{r['critical_end']}`"
        figures = [f"{r['area']:,.1f}", f"{r['flops']:,}", f"{r['period']:.1f}", f"{r['frequency_ghz']:.2f}"]
        rows.append([f"`{r['design']}`, {r['note']}", *figures, path])
    text += table(header, rows)
    if "modmul_pe_cs" in by and "array_periphery" in by:
        text += "\n" + _beside_paper(by["modmul_pe_cs"], by["array_periphery"], by.get("wrapper_periphery"))
    versions = ", ".join(f"{tool} {version}" for tool, version in data["tools"].items())
    library = f"{data['liberty']['file']}, sha256 {data['liberty']['sha256'][:16]}"
    return text + f"\n{versions}; {library}. {provenance_line(data['provenance'])}"


def _beside_paper(element: dict, around: dict, wrapper: dict | None) -> str:
    grid = ELEMENTS * element["area"] + around["area"]
    clock = min(element["frequency_ghz"], around["frequency_ghz"])
    units, paper_sum = UNITS * grid / 1e6, ELEMENTS * PAPER_PE_AREA
    rows = [
        ["element, um2", f"{element['area']:,.1f}", f"{PAPER_PE_AREA:,.1f}"],
        ["element, GHz", f"{element['frequency_ghz']:.2f}", f"{PAPER_PE_GHZ:.2f}"],
        ["16 x 8 array, um2", f"{grid:,.1f}", f"{PAPER_GRID_AREA:,.1f}"],
        ["16 x 8 array, GHz", f"{clock:.2f}", f"{PAPER_GRID_GHZ:.2f}"],
        [f"{UNITS} arrays, mm2", f"{units:.2f}", f"{PAPER_DIE - A100_DIE:.2f}"],
        ["A100 die with them, mm2", f"{A100_DIE + units:.2f}", f"{PAPER_DIE:.2f}"],
        ["die overhead of the arrays", f"{units / A100_DIE:+.1%}", f"{PAPER_DIE / A100_DIE - 1:+.1%}"],
    ]
    if wrapper:
        unit = grid + wrapper["area"]
        rows.append(["unit: array and wrapper, um2", f"{unit:,.1f}", ""])
        rows.append(["unit, GHz", f"{min(clock, wrapper['frequency_ghz']):.2f}", ""])
        rows.append(["die overhead of the units", f"{UNITS * unit / 1e6 / A100_DIE:+.1%}", ""])
    text = table(["", "ours", "paper (Tables IX, X)"], rows)
    parts = {"element": element, "array's periphery": around} | ({"wrapper": wrapper} if wrapper else {})
    verdicts = [
        f"{name} {'met' if r['frequency_ghz'] >= A100_BOOST_GHZ else '**not met**'}"
        for name, r in parts.items()
    ]
    text += f"\nNeeded: the boost clock of the A100, {A100_BOOST_GHZ} GHz: {', '.join(verdicts)}. "
    text += f"Our array is {ELEMENTS} elements and what is around them, not one flat netlist. "
    text += f"The paper's table does not close: {ELEMENTS} of its elements are {paper_sum:,.0f} um2, "
    text += f"{paper_sum / PAPER_GRID_AREA:.1f} times its grid, which leaves "
    text += f"{PAPER_GRID_AREA / ELEMENTS:.0f} um2 an element"
    for what, one, whole in PAPER_OTHER_GRIDS:
        text += f"; {what} (Table IV) {ELEMENTS * one:,.0f} against {whole:,.0f} um2"
    return text + ".\n"


def _verification(found: list[dict]) -> str:
    if not found:
        return ""
    text = "\n## FHECore: cycles of the RTL\n\nMeasured by the Verilator bench of the wrapper and asserted "
    text += (
        "there exactly; with / without an operand C. Every tile of the run is compared with two models.\n\n"
    )
    header = ["clock edges", *(f"{d['config']}" for d in found)]
    rows = []
    for key, what in CYCLES.items():
        values = [
            " / ".join(str(d["figures"].get(f"{key}{c}", "")) for c in ("_with_c", "_without_c"))
            for d in found
        ]
        rows.append([what, *values])
    rows.append(["tiles compared", *(f"{d['tiles_random'] + d['tiles_directed']:,}" for d in found)])
    hit = [f"{sum(n > 0 for n in d['coverage'].values())} of {len(d['coverage'])}" for d in found]
    rows.append(["coverage bins hit", *hit])
    text += table(header, rows)
    lines = [f"{d['simulator']}, {d['elements']} elements, seed {d['seed']}. " for d in found]
    lines = [line + provenance_line(d["provenance"]) for line, d in zip(lines, found, strict=True)]
    return text + "".join(f"\n{line}" for line in lines)
