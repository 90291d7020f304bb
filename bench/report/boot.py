"""Bootstrapping: latency against what others reach, precision, memory; and OpenFHE on the same processor."""

from __future__ import annotations

from report.keys import key_tables, of_staged_keys, of_tenants
from report.scheme import cell
from report.text import duration, number, provenance_line, table

MIB = 1 << 20
GIB = 1 << 30
# Milliseconds for one ciphertext of all slots; both with 13 levels left at scale 2^40.
TARGETS = [
    {
        "device": "NVIDIA H200",
        "params": "boot40",
        "graph": False,
        "at_most_ms": 21.3,
        "source": "Cheddar, measured by this project on an H200",
    },
    {
        "device": "NVIDIA H200",
        "params": "boot40",
        "graph": True,
        "at_most_ms": 16.1,
        "source": "Theodosian's own figure for an H200, its table II",
    },
]
ABOUT = """
A bootstrap through the public interface, all stages, on slots uniform in [-1, 1]^2, or real where
said. Eager, or replayed from a CUDA graph; brackets hold the distance of the quartiles. The time for a slot
and a level is the latency of one ciphertext over its slots and the levels that the result has more than the
input.
"""


def boot_files(files: dict[str, dict]) -> dict[str, dict]:
    return {n: d for n, d in files.items() if d["kind"] == "crenel-bench" and d.get("suite") == "boot"}


def power(log2: float | None) -> str:
    return "" if log2 is None else f"2^{log2:.1f}"


def mebibytes(count: float | None) -> str:
    return "" if count is None else f"{count / MIB:,.0f} MiB"


def seconds(value: float | None) -> str:
    return "" if value is None else duration(1e6 * value)


def nanoseconds(value: float) -> str:
    return f"{number(value)} ns"


def real(row: dict) -> bool:
    """Of a bootstrap for real messages? Rows from before there was one do not say."""
    return row.get("message") == "real"


def facts_of(data: dict) -> dict:
    """What all rows of a record have in common; one of errors alone has no rows."""
    return data["results"][0] if data["results"] else data["configuration"]


def options(row: dict) -> str:
    """What the message ratio is of; who measured before there was a choice gave it."""
    ratio = f"ratio 2^{row['message_ratio']}"
    if not row.get("ratio_chosen"):
        return f"{ratio}, given"
    values = row["values"].replace("_", "-")
    return f"values {values}{' (default)' if values == 'unknown' else ''}: {ratio}"


def target_of(device: str, row: dict) -> dict | None:
    whole = 2 * row["slots"] == 1 << row["log_n"] and not real(row)
    if not whole or row["batch"] != 1 or row["keys"] != "hoisted" or "device" in row:
        return None
    same = (row["params"], row["graph"])
    found = [t for t in TARGETS if (t["params"], t["graph"]) == same and device.startswith(t["device"])]
    return found[0] if found else None


def latency(name: str, device: str, row: dict) -> list[str]:
    levels = row["output_level"] - row["input_level"]
    share = 1e3 * row["amortised_us"] / row["slots"] / levels
    target = target_of(device, row)
    met = ""
    if target:
        reached = row["correct"] and row["latency_us"] <= 1e3 * target["at_most_ms"]
        met = "yes" if reached else "**no**"
    return [
        f"{row['slots']:,}{', real' if real(row) else ''}, {row['keys']} keys"
        + (f", on {row['device']}" if "device" in row else ""),
        f"{row['input_level']} to {row['output_level']}",
        str(row["batch"]),
        "graph" if row["graph"] else "eager",
        cell(row),
        nanoseconds(share),
        f"<= {target['at_most_ms']} ms" if target else "",
        met,
        f"`{name}`",
    ]


def precision(name: str, data: dict) -> list[list[str]]:
    """The statistics of many bootstraps; then every kind of message that was measured."""
    body = []
    first = facts_of(data)
    of = f"{options(first)}; levels {first['input_level']} to {first['output_level']}"
    p = data.get("precision")
    if p:
        errors = [p["mean_max_error_log2"], p["worst_error_log2"], p["rms_error_log2"]]
        model = [p["expected_max_log2"], p["expected_rms_log2"], p["log2_failure_probability"]]
        cells = [power(v) for v in errors + model]
        body.append(["uniform in [-1, 1]^2", of, str(p["runs"]), *cells, str(p["failures"]), f"`{name}`"])
    for kind, p in data.get("precision_by_message", {}).items():
        cells = [power(p["mean_max_error_log2"]), power(p["worst_error_log2"]), ""]
        cells += [power(p["expected_max_log2"]), "", "", ""]
        body.append([kind.replace("_", " "), of, str(p["runs"]), *cells, f"`{name}`"])
    return body


def energy(name: str, data: dict) -> list[list[str]]:
    e = data.get("energy")
    if not e:
        return []
    joules = "" if e["joules"] is None else f"{number(e['joules_per_bootstrap'])} J"
    watts = "" if e["mean_watts"] is None else f"{number(e['mean_watts'])} W"
    of = f"{e['bootstraps']:,} in {seconds(e['seconds'])}"
    return [[joules, watts, of, str(e["samples"]), e["note"], f"`{name}`"]]


def memory(name: str, data: dict) -> list[list[str]]:
    m, setup = data.get("memory"), data.get("setup", {})
    if not m:
        return []
    sizes = ("key_bytes", "plaintext_bytes", "workspace_bytes_stated", "workspace_bytes_peak")
    cells = [mebibytes(m.get(key)) for key in ("driver_bytes", *sizes)]
    cells += [seconds(setup.get(key)) for key in ("context_s", "keys_s", "setup_s")]
    return [[str(m["keys"]), *cells, f"`{name}`"]]


def boot_sections(files: dict[str, dict]) -> str:
    """One section for each set of parameters and device; nothing where nothing was measured."""
    groups: dict[tuple[str, str], dict[str, dict]] = {}
    for name, data in boot_files(files).items():
        key = facts_of(data)["params"], data["provenance"]["device_description"]
        groups.setdefault(key, {})[name] = data
    text = ""
    for (params, device), members in groups.items():
        rows = [(n, r) for n, d in members.items() for r in d["results"]]
        first = facts_of(next(iter(members.values())))
        text += f"\n## Bootstrapping: {params} on {device}\n\n"
        security = f", {first['security_bits']:.0f} bits of security" if "security_bits" in first else ""
        text += f"N = 2^{first['log_n']}, log PQ {first['log_pq']:.2f}{security}.{ABOUT}\n"
        header = ["slots", "levels", "batch", "launch", "latency", "for a slot and level"]
        header += ["target", "met", "source"]
        plain = [(n, r) for n, r in rows if not of_tenants(r) and not of_staged_keys(r)]
        if plain:
            text += table(header, [latency(n, device, r) for n, r in plain])
        used = {t["source"]: t for t in (target_of(device, r) for _, r in plain) if t}
        for source, t in used.items():
            text += f"\nTarget {t['at_most_ms']} ms: {source}.\n"
        text += key_tables(members)
        body = [line for n, d in members.items() for line in precision(n, d)]
        if body:
            header = ["message", "options", "bootstraps", "largest error, mean", "worst", "rms"]
            header += ["expected largest", "expected rms", "failure probability", "failures", "source"]
            text += (
                "\nErrors of a slot; expected: what the library states before it runs. The message ratio\n"
            )
            text += (
                "decides which messages come out well: one given suits some, the default all within 1.\n\n"
            )
            text += table(header, body)
        body = [line for n, d in members.items() for line in energy(n, d)]
        if body:
            header = ["energy of a bootstrap", "mean power", "bootstraps", "samples", "how", "source"]
            text += "\nEnergy, of bootstraps queued one behind the other.\n\n" + table(header, body)
        body = [line for n, d in members.items() for line in memory(n, d)]
        if body:
            header = ["number of keys", "all, by the driver", "of it: keys", "plaintexts"]
            header += ["workspace, stated", "workspace, measured"]
            header += ["context, time", "keys, time", "plaintexts, time", "source"]
            text += "\nMemory on the device, and the time to get ready once. The driver counts what nobody "
            text += "else can have: its own context, the graph and idle blocks of the pool included.\n\n"
            text += table(header, body)
        for data in members.values():
            text += "\n" + provenance_line(data["provenance"])
    return text


def compared(title: str, r: dict) -> list[str]:
    spread = number(100 * (r["q3_s"] - r["q1_s"]) / r["bootstrap_s"])
    share = 1e9 * r["bootstrap_s"] / (1 << (r["log_n"] - 1)) / r["levels_left"]
    return [
        title,
        number(r["log_pq"]),
        str(r["levels_left"]),
        f"{seconds(r['keys_s'])}, {r['key_count']} keys",
        seconds(r["setup_s"]),
        f"{seconds(r['bootstrap_s'])} [{spread} %]",
        nanoseconds(share),
        f"{power(r['worst_error_log2'])}, {power(r['rms_error_log2'])}",
        f"{r['peak_rss_bytes'] / GIB:.1f} GiB",
    ]


def configuration(r: dict) -> str:
    text = f"OpenFHE, {r['name']}: {r['technique']}, scale 2^{r['scale_bits']}, first modulus "
    text += f"2^{r['first_bits']}, correction factor {r['correction']}, level budget "
    return text + f"{tuple(r['level_budget'])}, {r['digits']} digits"


def met(value: bool) -> str:
    return "met" if value else "**not met**"


def openfhe_boot_sections(files: dict[str, dict]) -> str:
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-boot-comparison":
            continue
        first, (before, after) = data["openfhe"][0], data["crenel"]
        text += f"\n## Bootstrapping by {data['wheel'].replace('==', ' ')} on the same processor\n\n"
        text += f"N = 2^{first['log_n']}, all slots, uniform in [-1, 1]^2, {data['threads']} threads, one "
        text += "process after the other, Crenel first and last. Both switch to an ephemeral sparse secret "
        text += f"({first['secret']}) and stay within 128-bit security (OpenFHE checks it: "
        text += f"{first['security']}). Levels left: not counted are those that SlotsToCoeffs needs where it "
        text += "comes first; OpenFHE's next bootstrap needs one of them. Brackets: distance of the "
        text += "quartiles.\n\n"
        header = ["", "log PQ", "levels left", "making keys", "set-up", "bootstrap", "for a slot and level"]
        header += ["error: worst, rms", "peak memory"]
        body = [compared(f"Crenel, {before['params']}", before)]
        body += [compared(configuration(r), r) for r in data["openfhe"]]
        body.append(compared(f"Crenel, {after['params']}, again", after))
        text += table(header, body)
        limit = data["memory_limit_bytes"] / GIB
        text += (
            f"\nOpenFHE's fastest ({data['fastest']}) takes {data['ratio']:.2f} times as long as Crenel's "
        )
        text += f"slower run. Target: Crenel in less time ({met(data['faster'])}), its peak memory under "
        text += f"{limit:.0f} GiB ({met(data['within_memory'])}). Every output deviates by less than "
        text += (
            f"2^{data['bound_log2']:g}.{'' if data['steady'] else ' Disturbed by other work.'} `{name}`\n\n"
        )
        text += provenance_line(data["provenance"])
    return text
