"""Several devices: rates against one of them, copies of keys, memory."""

from report.text import provenance_line, table


def pool_sections(files: dict[str, dict]) -> str:
    """One section a file of `crenel bench pool`."""
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-bench" or data.get("suite") != "pool":
            continue
        text += (
            f"\n## Several devices: {', '.join(data['devices'])}\n\n`{name}`. Inputs and results lie on the "
        )
        text += 'first device; a call ends when they do. Rows without "together" are the library\'s loop '
        text += "without a pool.\n\n"
        rates = [r for r in data["results"] if "rate" in r]
        header = ["what", "set", "devices", "together", "a second", "times one device", "same bits"]
        text += table(header, [_rate(r) for r in rates])
        copies = [r for r in data["results"] if r.get("copies")]
        if copies:
            text += "\nKeys, copied from the first device to the others:\n\n"
            header = ["set", "GB", "roads", "ms", "GB/s", "ms, the first time", "GB held by each device"]
            text += table(header, [_copy(r) for r in copies])
        text += "\n" + provenance_line(data["provenance"])
    return text


def _rate(r: dict) -> list[str]:
    return [
        *(r["name"], r["params"], r.get("device") or str(r["devices"]), str(r["together"] or "")),
        *(f"{r['rate']:,.1f}", f"{r['times_one_device']:.3f}", "yes" if r["same_bits"] else "no"),
    ]


def _copy(r: dict) -> list[str]:
    held = ", ".join(f"{m['held'] / 1e9:.1f}" for m in r["memory"])
    return [
        *(r["params"], f"{r['bytes'] / 1e9:.2f}", ", ".join(r["roads"]), f"{1e3 * r['seconds']:.1f}"),
        *(f"{r['gb_per_s']:.0f}", f"{1e3 * r['first_seconds']:.0f}", held),
    ]
