"""TFHE: bootstraps a second against what others publish, latency, keys, failures; OpenFHE on one thread."""

from __future__ import annotations

from report.text import duration, number, provenance_line, table

MIB = 1 << 20
BATCH = 16384
NORM_BITS = 128.0  # of security, and of -log2 of the failure probability of a bootstrap
# Figures to reach, a second on one NVIDIA H200, batch 16,384, with host transfers. `published` is
# BOLT-FHE's on an RTX 4090, at its best r; ours at that r, and at a better one where there is.
TARGETS = [
    {"params": "M3", "slots": 5, "published": 40166, "floor": 80000, "aim": 200000},
    {"params": "M1", "slots": 1, "published": 23442, "floor": 60000, "aim": 120000},
    {"params": "M1", "slots": 3, "published": 31301, "floor": 60000, "aim": 120000},
    {"params": "M4", "slots": 4, "published": 23140, "floor": 46280, "aim": 115700},
    {"params": "M5", "slots": 5, "published": 8748, "floor": 17496, "aim": 43740},
    {"params": "M6", "slots": 2, "published": 6299, "floor": 12598, "aim": 31495},
    {"params": "M6", "slots": 1, "published": 6299, "floor": 12598, "aim": 31495},
    {"params": "M2", "slots": 2, "published": 5726, "floor": 11452, "aim": 28630},
    {"params": "M2", "slots": 1, "published": 5726, "floor": 11452, "aim": 28630},
    {"params": "G1", "slots": 1, "published": 11423, "floor": 25000, "aim": 60000},
    {"params": "G3", "slots": 1, "published": 11238, "floor": 25000, "aim": 60000},
    {"params": "G2", "slots": 1, "published": 9489, "floor": 20000, "aim": 45000},
    {"params": "G4", "slots": 1, "published": 2660, "floor": 5000, "aim": 10000, "operation": "lut"},
    {"params": "G5", "slots": 1, "published": 2457, "floor": 5000, "aim": 10000, "operation": "floor"},
    {"params": "bool128-classic", "slots": 1, "published": None, "floor": 80000, "aim": 200000},
    {"params": "bool128-classic", "slots": 5, "published": None, "floor": 80000, "aim": 200000},
    {"params": "bool128-packed", "slots": 5, "published": None, "floor": 240000, "aim": 300000},
]
ABOUT = """
One call works on a whole batch through the public interface. Resident: inputs and outputs stay on the device.
With transfers: every call also copies its inputs from host memory and its outputs back. Single: one row of
ciphertexts, as many messages as share a mask (r). Every timed result was decrypted; failures: wrong messages.
`p_fail` is stated for one bootstrap before anything runs.
"""


def is_tfhe(data: dict) -> bool:
    return data["kind"] == "crenel-bench" and data.get("suite") == "tfhe"


def rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def mark(row: dict) -> str:
    return "" if row["correct"] else " **wrong**"


def within_norm(row: dict) -> bool:
    return row["security_bits"] >= NORM_BITS and row["p_fail_log2"] <= -NORM_BITS


def safety(row: dict) -> list[str]:
    return [f"{row['security_bits']:.1f}", f"2^{row['p_fail_log2']:.0f}"]


def measured(files: dict[str, dict], target: dict, mode: str) -> tuple[str, dict] | None:
    """The best right row on an H200 with at least the target's batch."""
    operation = target.get("operation", "nand")
    found = [
        (name, row)
        for name, data in files.items()
        if is_tfhe(data) and data["provenance"]["device_description"].startswith("NVIDIA H200")
        for row in data["results"]
        if (row["params"], row["slots"], row["mode"]) == (target["params"], target["slots"], mode)
        and row["operation"] == operation
        and row["size"] >= BATCH
        and row["correct"]
    ]
    return max(found, key=lambda f: f[1]["operations_per_s"], default=None)


def target_line(target: dict, end_to_end: tuple | None, resident: tuple | None) -> list[str]:
    value = end_to_end[1]["operations_per_s"] if end_to_end else None
    met = ["" if value is None else "yes" if value >= target[k] else "**no**" for k in ("floor", "aim")]
    published = target["published"]
    return [
        f"{target['params']}, r = {target['slots']}, {target.get('operation', 'nand')}",
        *(safety(end_to_end[1]) if end_to_end else ["", ""]),
        rate(published),
        rate(value),
        rate(resident[1]["operations_per_s"]) if resident else "",
        f"{value / published:.1f} times" if value and published else "",
        f"{rate(target['floor'])}: {met[0]}" if met[0] else rate(target["floor"]),
        f"{rate(target['aim'])}: {met[1]}" if met[1] else rate(target["aim"]),
        end_to_end[1]["arithmetic"] if end_to_end else "",
        f"`{end_to_end[0]}`" if end_to_end else "",
    ]


def target_tables(files: dict[str, dict]) -> str:
    """Sets within today's norm first: what others publish is below it and stands apart."""
    lines: dict[bool, list[list[str]]] = {True: [], False: []}
    for target in TARGETS:
        found = [measured(files, target, mode) for mode in ("transfers", "resident")]
        lines[bool(found[0]) and within_norm(found[0][1])].append(target_line(target, *found))
    header = ["", "security, bits", "p_fail", "published", "with transfers", "resident", "against published"]
    header += ["floor", "aim", "arithmetic", "source"]
    text = "\n## TFHE: sets that others published figures of\n\n"
    text += "Operations a second on one NVIDIA H200, batch 16,384 or more, host transfers included. "
    text += "Sets of 128 bits whose bootstraps fail less often than 2^-128:\n\n"
    text += table(header, lines[True])
    text += "\nSets that BOLT-FHE published figures of, on an RTX 4090; below that norm, and not for use:\n\n"
    return text + table(header, lines[False])


def line(name: str, data: dict) -> list[str]:
    """All modes of one file."""
    rows = {row["mode"]: row for row in data["results"]}
    first = data["results"][0]
    keys, verified = data.get("keys", {}), data.get("verified")
    single = rows.get("latency")
    per_second = [rows[m]["operations_per_s"] if m in rows else None for m in ("transfers", "resident")]
    failures = (
        f"{sum(int(r['failures']) for r in rows.values())} of {sum(r['size'] for r in rows.values()):,}"
    )
    checked = noise = ""
    if verified:
        checked = f"{int(verified['failures'])} of {int(verified['operations']):,}"
        noise = f"{number(verified['phase_std'])}, model {number(verified['phase_std_model'])}"
    sizes = [f"{keys[k] / MIB:,.0f} MiB" if k in keys else "" for k in ("device_bytes", "wire_bytes")]
    return [
        f"{first['params']}, r = {first['slots']}",
        first["arithmetic"],
        first["operation"],
        f"{max(r['size'] for r in rows.values()):,}",
        *map(rate, per_second),
        duration(single["latency_us"]) if single else "",
        *safety(first),
        failures + "".join({mark(r) for r in rows.values()}),
        checked,
        noise,
        *sizes,
        duration(1e6 * keys["keys_s"]) if "keys_s" in keys else "",
        f"`{name}`",
    ]


def tfhe_sections(files: dict[str, dict]) -> str:
    """One section a device; nothing where nothing was measured."""
    groups: dict[str, dict[str, dict]] = {}
    for name, data in files.items():
        if is_tfhe(data):
            groups.setdefault(data["provenance"]["device_description"], {})[name] = data
    text = ""
    if any(d.startswith("NVIDIA H200") for d in groups):
        text += target_tables(files)
    for device, members in groups.items():
        text += f"\n## TFHE on {device}\n{ABOUT}\n"
        header = ["set", "arithmetic", "operation", "batch", "with transfers, / s", "resident, / s", "single"]
        header += ["security, bits", "p_fail", "failures", "failures of the long check", "noise at rest, std"]
        header += ["keys, device", "keys, sent", "keys, time", "source"]
        first = sorted(members.items(), key=lambda m: not within_norm(m[1]["results"][0]))
        text += table(header, [line(name, data) for name, data in first])
        for line_ in dict.fromkeys(provenance_line(data["provenance"]) for data in members.values()):
            text += "\n" + line_
    return text


def openfhe_tfhe_sections(files: dict[str, dict]) -> str:
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-tfhe-comparison":
            continue
        text += f"\n## NAND by {data['wheel'].replace('==', ' ')} on the same processor\n\n"
        text += (
            "One thread, one process after the other, Crenel first and last: the slower of its runs. A gate "
        )
        text += "with its key switch (GINX), on fresh ciphertexts; brackets: distance of the quartiles.\n\n"
        body = []
        for case in data["cases"]:
            other = case["openfhe"]
            slower = max(case["crenel"], key=lambda r: r["gate_s"])
            spreads = [f"[{number(100 * (r['q3_s'] - r['q1_s']) / r['gate_s'])} %]" for r in (other, slower)]
            batched = max(r["batched_gate_s"] for r in case["crenel"])
            body.append(
                [
                    case["set"],
                    f"n = {other['n']}, N = {other['N']}, Q = {other['Q']}",
                    f"{duration(1e6 * other['gate_s'])} {spreads[0]}",
                    f"{duration(1e6 * slower['gate_s'])} {spreads[1]}",
                    f"{duration(1e6 * batched)} (batch {slower['batch']})",
                    f"{case['ratio']:.2f}, {case['batched_ratio']:.2f}",
                    f"{duration(1e6 * other['keys_s'])}, {duration(1e6 * slower['keys_s'])}",
                    str(case["wrong"]),
                    "" if case["steady"] else "disturbed by other work",
                ]
            )
        header = ["set", "OpenFHE's", "OpenFHE", "Crenel", "Crenel in a batch", "times faster", "keys"]
        text += table([*header, "wrong", ""], body) + f"\n`{name}`\n\n" + provenance_line(data["provenance"])
    return text


def openfhe_tables_sections(files: dict[str, dict]) -> str:
    """A look-up and a sum beside OpenFHE's nearest."""
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-tables-comparison":
            continue
        p = data["provenance"]
        text += f"\n## Look-ups and sums by {data['wheel'].replace('==', ' ')} on the same processor\n\n"
        text += (
            f"{data['threads']} threads, one process after the other, Crenel first and last: the slower of "
        )
        text += f"its runs. Crenel: `{p['set']}`, 4-bit messages with a padding bit, failures 2^"
        text += (
            f"{p['p_fail_log2']:.0f}. OpenFHE: STD128, a functional bootstrap, and a ripple adder of gates; "
        )
        text += "brackets: distance of the quartiles.\n\n"
        body = []
        for case in data["cases"]:
            other = case["openfhe"]
            slower = max(case["crenel"], key=lambda r: r["seconds"])
            spread = f"[{number(100 * (other['q3_s'] - other['q1_s']) / other['seconds'])} %]"
            how = f"{other['gates']} gates" if "gates" in other else f"{other['plaintexts']} messages"
            own = f"{slower['bootstraps']} look-ups" if "bootstraps" in slower else "one look-up"
            body.append(
                [
                    case["what"],
                    f"{how}, n = {other['n']}, N = {other['N']}",
                    f"{duration(1e6 * other['seconds'])} {spread}",
                    own,
                    duration(1e6 * slower["seconds"]),
                    f"{case['ratio']:.1f}",
                    str(case["wrong"]),
                    "" if case["steady"] else "disturbed by other work",
                ]
            )
        header = ["", "OpenFHE's", "OpenFHE", "Crenel's", "Crenel", "times faster", "wrong", ""]
        text += table(header, body) + f"\n`{name}`\n\n" + provenance_line(p)
    return text
