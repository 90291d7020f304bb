"""Tables of the page that sets Crenel beside others: measured by this project, or published by themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import log2
from typing import Any

from book import beside
from book.beside import PUBLISHED
from book.reach import RESULTS, Row, device, rows
from report.scheme import versus_peer
from report.text import duration, number, table

FIRST = "coeff_to_slot_first"  # the order that others have, and all levels that a set leaves
PLAIN = "--plain-keys"  # a run without keys for aligned levels, to tell what they bring


def data(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def published(kind: str) -> list[Row]:
    return json.loads(PUBLISHED.read_text(encoding="utf-8"))[kind]


def factor(theirs: float, ours: float) -> str:
    """Their time over ours; where others are faster it stands out."""
    value = theirs / ours
    return number(value) if value >= 1 else f"**{number(value)}**"


def power(value: float | None) -> str:
    return "" if value is None else f"2^{value:.1f}"


def own_bootstraps() -> Iterator[tuple[str, Row, Row, Row]]:
    """File, provenance, row and precision of the newest bootstrap of one ciphertext of all slots.

    Of each card, set and kind of keys: those of other commits are other programs.
    """
    last: dict[tuple[str, str, str], tuple[str, Row, Row, Row]] = {}
    for file in sorted(RESULTS.glob("boot[0-9]*-h[12]00-boot*.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        of = found["provenance"]
        if PLAIN in of["command"]:
            continue
        for row in found["results"]:
            whole = 2 * row["slots"] == 1 << row["log_n"] and row["batch"] == 1
            whole = whole and row.get("order", FIRST) == FIRST
            if whole and row.get("message") != "real" and not row["graph"] and "security_bits" in row:
                key = device(of), row["params"], row["keys"]
                if key not in last or of["date"] > last[key][1]["date"]:
                    last[key] = file.name, of, row, found.get("precision") or {}
    yield from last.values()


def gpu_bootstraps() -> str:
    """Everybody's bootstrap on one card, sorted by time."""
    header = ["library", "on", "scale", "words", "log PQ", "levels left", "bootstrap", "a slot and level"]
    header += ["error: mean of the largest, worst", "security", "source", "measured"]
    lines = []
    for name, provenance, row, precision in own_bootstraps():
        ms = row["latency_us"] / 1e3
        levels = row["output_level"] - row["input_level"]
        errors = [power(precision.get(k)) for k in ("mean_max_error_log2", "worst_error_log2")]
        if precision.get("runs"):
            errors[1] += f" ({precision['runs']:,} run{'s' * (precision['runs'] > 1)})"
        cells = [
            f"**Crenel**, {row['params']}, {row['keys']} keys",
            device(provenance),
            f"2^{row['scale_bits']}",
            "32-bit",
        ]
        cells += [number(row["log_pq"]), str(levels), duration(1e3 * ms), per_slot(ms, levels)]
        bits = f"{row['security_bits']:.0f} bits"
        lines.append((ms, [*cells, ", ".join(errors), bits, f"`{name}`", beside.made(provenance)]))
    card = data("peers-bootstraps-h200.json")["provenance"]["device_description"]
    for row in data("peers-bootstraps-h200.json")["rows"]:
        ms, levels = row["bootstrap_ms"], row["levels_left"]
        errors = [power(row[k]) for k in ("mean_error_log2", "worst_error_log2") if row[k] is not None]
        cells = [
            row["library"],
            card,
            f"2^{row['scale_bits']}",
            row["words"],
            number(row["log_pq"]) if row["log_pq"] else "",
        ]
        cells += [
            str(levels),
            duration(1e3 * ms),
            per_slot(ms, levels),
            ", ".join(errors),
            "its own statement",
        ]
        lines.append((ms, [*cells, "`peers-bootstraps-h200.json`", ""]))
    for row in published("ckks"):
        cells = [
            f"{row['system']}, its own figure",
            row["device"],
            "2^40",
            "",
            "",
            "13",
            duration(1e3 * row["ms"]),
        ]
        lines.append(
            (row["ms"], [*cells, per_slot(row["ms"], 13), "", "", f"[{row['key']}], {row['where']}", ""])
        )
    method = data("peers-bootstraps-h200.json")["provenance"]["method"]
    return f"{table(header, [line for _, line in sorted(lines, key=lambda e: e[0])])}\nOthers: {method}.\n"


def per_slot(ms: float, levels: int) -> str:
    return f"{number(1e6 * ms / 32768 / levels)} ns"


def gpu_operations() -> str:
    """Cheddar beside Crenel, operation by operation."""
    own = data("boot40-h200.json")
    text = versus_peer(own["results"], data("peers-cheddar-h200.json")).strip()
    return f"{text}\n\nCrenel: `boot40-h200.json`, {beside.made(own['provenance'])}.\n"


def processors() -> str:
    """OpenFHE and Orion on the same processor, one after the other."""
    header = ["what", "other", "its time", "Crenel", "factor", "parameters alike?", "source"]
    body = [*openfhe_operations(), *openfhe_bootstraps(), *openfhe_gates(), *openfhe_tables(), *orion()]
    return table(header, body)


def openfhe_operations() -> list[list[str]]:
    found = data("openfhe-cpu.json")
    body = []
    for case in found["cases"]:
        ours = case["crenel"]
        own = min(ours["operations"][n]["us"] for n in ("hmult_rescale", "hmult_then_rescale"))
        theirs = {k: v for k, v in case["openfhe"].items() if "multiply_rescale" in v}
        best = min(theirs.values(), key=lambda v: v["multiply_rescale"]["us"])
        alike = f"log PQ {best['log_pq']} and {ours['log_pq']:.0f}, depth {best['depth']} and {ours['depth']}"
        times = (best["multiply_rescale"]["us"], own)
        what = f"CKKS product with rescale, N = 2^{case['log_n']}, {found['threads']} threads"
        body.append(compared(what, found["wheel"], *times, f"{alike}, both 128 bits", "openfhe-cpu.json"))
    return body


def openfhe_bootstraps() -> list[list[str]]:
    found = data("openfhe-boot-cpu.json")
    best = min(found["openfhe"], key=lambda r: r["bootstrap_s"])
    own = max(found["crenel"], key=lambda r: r["bootstrap_s"])
    alike = f"log PQ {best['log_pq']} and {own['log_pq']:.0f}, levels left {best['levels_left']} and "
    worst = [power(row["worst_error_log2"]) for row in (best, own)]
    alike += f"{own['levels_left']}, worst error {' and '.join(worst)}"
    what = f"CKKS bootstrap, N = 2^{own['log_n']}, {found['threads']} threads"
    times = (1e6 * best["bootstrap_s"], 1e6 * own["bootstrap_s"])
    return [compared(what, found["wheel"], *times, alike, "openfhe-boot-cpu.json")]


def openfhe_gates() -> list[list[str]]:
    found = data("openfhe-tfhe-cpu.json")
    body = []
    for case in found["cases"]:
        own = max(case["crenel"], key=lambda r: r["gate_s"])
        alike = f"the same set; Crenel: `{own['arithmetic']}`, one gate a call"
        what = f"TFHE NAND, {case['set']}, {found['threads']} thread"
        times = (1e6 * case["openfhe"]["gate_s"], 1e6 * own["gate_s"])
        body.append(compared(what, found["wheel"], *times, alike, "openfhe-tfhe-cpu.json"))
    return body


def openfhe_tables() -> list[list[str]]:
    """A look-up of four bits and a sum of two bytes, which in OpenFHE is an adder of gates."""
    found = data("openfhe-tables-cpu.json")
    own_set, likelihood = found["provenance"]["set"], found["provenance"]["p_fail_log2"]
    names = {"look-up": "TFHE look-up of 4 bits", "u8 sum": "sum of two 8-bit integers"}
    body = []
    for case in found["cases"]:
        theirs = case["openfhe"]
        own = max(case["crenel"], key=lambda r: r["seconds"])
        work = f"{theirs['gates']} gates" if "gates" in theirs else theirs["operation"]
        dimensions = f"n = {theirs['n']}, N = {theirs['N']}"
        alike = f"{work} of {theirs['set']}, {dimensions}; Crenel: `{own_set}`, failures {power(likelihood)}"
        what = f"{names[case['what']]}, {found['threads']} threads"
        times = (1e6 * theirs["seconds"], 1e6 * own["seconds"])
        body.append(compared(what, found["wheel"], *times, alike, "openfhe-tables-cpu.json"))
    return body


def orion() -> list[list[str]]:
    body = []
    for network in ("mlp", "lenet"):
        name = f"orion-{network}-cpu.json"
        _, (theirs, *_) = rows(name, name=network)
        _, (own, *_) = rows("small-networks-cpu.json", name=network)
        alike = f"the same weights and images; Crenel {own['params']} at {own['security_bits']:.0f} bits, "
        alike += (
            f"Orion's own parameters; errors 2^{log2(theirs['error']):.1f} and 2^{log2(own['error']):.1f}"
        )
        times = (1e6 * theirs["run_s"], 1e6 * own["run_s"])
        version = theirs["versions"]["orion-v2-compiler"]
        what = f"{network.upper() if network == 'mlp' else 'LeNet'}, one image, {own['threads']} threads"
        body.append(compared(what, f"Orion {version}", *times, alike, name))
    return body


def compared(what: str, other: str, theirs_us: float, ours_us: float, alike: str, source: str) -> list[str]:
    times = [duration(theirs_us), duration(ours_us), factor(theirs_us, ours_us)]
    return [what, other.replace("==", " "), *times, alike, f"`{source}`"]


def gpu_gates() -> str:
    """BOLT-FHE's published rates beside Crenel's at the same sets: different cards."""
    header = ["set", "operation", "published, a second", "on", "Crenel, a second", "on", "security", "source"]
    body = []
    for theirs in published("tfhe_gates"):
        own = own_gates(theirs)
        cells = [f"{theirs['set']}, r = {theirs['slots']}", theirs["operation"], f"{theirs['per_second']:,}"]
        cells.append(f"{theirs['device']} [{theirs['key']}]")
        if own is None:
            body.append([*cells, "", "", "", "not measured"])
            continue
        name, provenance, row = own
        device = provenance["device_description"].split(",")[0]
        safety = f"{row['security_bits']:.0f} bits, 2^{row['p_fail_log2']:.0f} a bootstrap"
        body.append([*cells, f"{row['operations_per_s']:,.0f}", device, safety, f"`{name}`"])
    return table(header, body)


def own_gates(theirs: Row) -> tuple[str, Row, Row] | None:
    """The row of the same set and operation with host transfers, as the published figure has them."""
    for file in sorted(RESULTS.glob("tfhe-*-h200.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        for row in found.get("results") or []:
            same = (row.get("params"), row.get("slots"), row.get("operation"), row.get("mode"))
            if same == (theirs["set"], theirs["slots"], theirs["operation"], "transfers") and row["correct"]:
                return file.name, found["provenance"], row
    return None


def gpu_latency() -> str:
    """One bootstrap by itself."""
    header = ["library", "what", "on", "latency", "failure", "source"]
    body = [
        [r["system"], r["what"], r["device"], duration(1e3 * r["ms"]), f"2^{r['p_fail_log2']}", r["source"]]
        for r in published("tfhe_latency")
    ]
    ours = ("lut4-128-failures-h200", "lut4-128-step4-66-h100", "bool128-step4-1-h100")
    for name in (f"tfhe-{each}.json" for each in ours):
        provenance, (row, *_) = rows(name, mode="latency")
        cells = [f"**Crenel**, {row['params']}", f"`{row['operation']}`, {row['security_bits']:.0f} bits"]
        cells += [provenance["device_description"].split(",")[0], duration(row["latency_us"])]
        body.append([*cells, f"2^{row['p_fail_log2']:.0f}", f"`{name}`"])
    return table(header, body)
