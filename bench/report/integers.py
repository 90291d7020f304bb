"""Operations and programs on encrypted integers: circuits, times, and what look-ups alone predict."""

from report.text import provenance_line, table


def integer_sections(files: dict[str, dict]) -> str:
    """One section a file of `crenel bench integers`, and one for all of `crenel workload` on integers."""
    text = ""
    for name, data in files.items():
        if data["kind"] == "crenel-bench" and data.get("suite") == "integers":
            text += _operations(name, data)
    programs = [
        (name, data)
        for name, data in files.items()
        if data["kind"] == "crenel-bench" and data.get("suite") == "integer-workload"
    ]
    return text + (_programs(programs) if programs else "")


def _operations(name: str, data: dict) -> str:
    by, rows = data["predicted_by"], data["results"]
    sizes = sorted({r["size"] for r in rows})
    text = f"\n## Encrypted integers, {data['params']} on {data['provenance']['device_description']}\n\n"
    text += f"`{name}`, arrays of {', '.join(map(str, sizes))}. Look-ups are of one integer. Predicted: the "
    text += f"circuits that a {by['device']} is given, by the batches of `{by['source']}` ({by['params']}), "
    text += f"one round after the other; a second: in arrays of {data['predicted_rate_of']:,}. "
    text += "Every measured result was decrypted and compared.\n\n"
    header = ["operation", "type", "look-ups / rounds", "median ms", "ms each", "a second"]
    header += ["predicted: look-ups / rounds", "ms", "a second"]
    steps = sorted({step for r in rows for step in r["gpu"].get("by_step", {})})
    header += [f"by steps of {step} alone, ms" for step in steps]
    text += table(header, [_row(r) + _by_step(r, steps) for r in rows])
    return text + "\n" + provenance_line(data["provenance"])


def _row(r: dict) -> list[str]:
    gpu = r["gpu"]
    measured = ["", "", ""]
    if r["latency_us"] is not None:
        each = r["amortised_us"]
        measured = [f"{1e-3 * r['latency_us']:,.2f}", f"{1e-3 * each:,.2f}", f"{1e6 / each:,.1f}"]
        if not r["correct"]:
            measured[0] += " WRONG"
    return [
        *(r["name"], r["type"], f"{r['bootstraps']:,} / {r['depth']}"),
        *measured,
        *(f"{gpu['bootstraps']:,} / {gpu['depth']}", f"{1e-3 * gpu['latency_us']:,.1f}"),
        f"{gpu['per_second']:,.0f}",
    ]


def _by_step(r: dict, steps: list[str]) -> list[str]:
    times = r["gpu"].get("by_step", {})
    return [f"{1e-3 * times[step]:,.1f}" if step in times else "" for step in steps]


def _programs(files: list[tuple[str, dict]]) -> str:
    text = "\n## Programs on encrypted integers\n\n`crenel workload transfer`, `search`, `filter`: the "
    text += "server's time, results decrypted and compared with the clear. The first call composes circuits "
    text += "and makes tables; warm: the median of the calls after it, each on inputs of its own, with their "
    text += "quartiles and number. Blank: a record of the first call alone.\n\n"
    rows = []
    for name, data in files:
        for r in data["results"]:
            rows.append(
                [
                    *(r["what"] + ("" if r["correct"] else ": WRONG"), r["params"]),
                    *(data["provenance"]["device_description"], f"{r['bootstraps']:,}"),
                    *(f"{1e3 * r['seconds']:,.1f}", _warm(r), f"{1e-3 * r['sent_bytes']:,.0f}", f"`{name}`"),
                ]
            )
    header = ["what", "set", "on", "bootstraps", "first call, ms", "warm, ms", "kB sent", "file"]
    return text + table(header, rows)


def _warm(r: dict) -> str:
    if not r.get("warm_calls"):
        return ""
    median, low, high = (1e3 * r[f"warm_{name}seconds"] for name in ("", "q1_", "q3_"))
    return f"{median:,.1f} ({low:,.1f} to {high:,.1f}; {r['warm_calls']:,})"
