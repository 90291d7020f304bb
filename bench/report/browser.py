"""The client's half in a browser: seconds and bytes of each step of the digits page."""

from __future__ import annotations

from report.text import duration, provenance_line, table

SUITE = "browser"
MIB, KIB = 1 << 20, 1 << 10
STEPS = {
    "load_s": "load the module", "keygen_s": "make a secret key", "keys_s": "make the evaluation keys",
    "send_s": "send them, and the service checks them", "encrypt_s": "encrypt a digit",
    "classify_s": "send it, classify it, fetch the answer", "compute_s": "of this, computing",
    "decrypt_s": "decrypt the answer",
}  # fmt: skip


def browser_sections(files: dict[str, dict]) -> str:
    """A table a measurement; nothing where there is no file."""
    text = ""
    for name, data in files.items():
        if data["kind"] != "crenel-bench" or data.get("suite") != SUITE:
            continue
        for row in data["results"]:
            text += "\n## Keys, encryption and decryption in a browser\n\n"
            loads = ", ".join(f"{load[0]:.1f}" for load in row["loads"])
            threads = "1 thread" if row["threads"] == 1 else f"{row['threads']} threads"
            text += (
                f"The digits page (docs/guide/browser.md) by `bench/workload/browser.py`: {row['browser']}, "
                f"{row['params']}, {row['security_bits']:.0f} bits of security, {row['rotation_keys']} "
                f"rotations, {threads} of WebAssembly. Service and browser share the machine "
                f"with whatever else ran there: its load averages were {loads}. Medians of {row['runs']} "
                "runs. What the client computes (secret key, evaluation keys, encryption, decryption) takes "
                f"{duration(1e6 * row['client_s'])}. `{name}`\n\n"
            )
            body = [[step, duration(1e6 * row[key]), _bytes(row, key)] for key, step in STEPS.items()]
            text += table(["step", "time", "bytes"], body)
        text += "\n" + provenance_line(data["provenance"])
    return text


def _bytes(row: dict, key: str) -> str:
    size = row.get(key.replace("_s", "_bytes"))
    if not size:
        return ""
    return f"{size / MIB:.1f} MiB" if size >= MIB else f"{size / KIB:.0f} KiB"
