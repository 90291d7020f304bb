"""Bootstrapping with the keys of several clients, and with keys that do not fit the device."""

from __future__ import annotations

from report.scheme import cell
from report.text import table

GIB = 1 << 30
TENANTS = """
Clients whose keys take turns, on one context with one bootstrapper: plan, plaintexts, workspace and recorded
graph exist once, and a replay binds the keys of its caller. The rows with one client stand before and after.
"""
MEMORY = """
What a further client takes of the device's memory by the driver's count, which moves in steps of 2 MiB,
against its keys; its ciphertexts lie in memory that the pool already had.
"""
STAGED = """
Keys in page-locked host memory, half of each beside the seed of the other half, brought to the device ahead
of use within a bound on their bytes there; eager, since a graph needs keys of one address. The first row of a
batch has all keys on the device.
"""


def of_tenants(row: dict) -> bool:
    return "tenants" in row


def of_staged_keys(row: dict) -> bool:
    return "resident_bytes" in row


def gibibytes(count: float) -> str:
    return f"{count / GIB:.2f} GiB"


def tenants_table(name: str, data: dict) -> str:
    rows = [r for r in data["results"] if of_tenants(r)]
    if not rows:
        return ""
    body = [[str(r["tenants"]), str(r["batch"]), cell(r), f"`{name}`"] for r in rows]
    text = TENANTS + "\n" + table(["clients", "batch", "latency", "source"], body)
    body = []
    for k, m in enumerate(data.get("memory_by_tenant", []), start=1):
        counts = [f"{m[what] / 2**20:,.1f} MiB" for what in ("key_bytes", "driver_bytes")]
        body.append([str(k), *counts, f"`{name}`"])
    header = ["client", "its keys", "memory taken", "source"]
    return text + MEMORY + "\n" + table(header, body)


def staged_table(name: str, data: dict) -> str:
    rows = [r for r in data["results"] if of_staged_keys(r)]
    if not rows:
        return ""
    body = []
    whole: dict[int, float] = {}
    for r in rows:
        if r["host_bytes"] == 0:
            whole[r["batch"]] = r["latency_us"]
        ratio = f"{r['latency_us'] / whole[r['batch']]:.2f}"
        one = f"{r['amortised_us'] / 1e3:.2f} ms"
        body.append([str(r["batch"]), gibibytes(r["resident_bytes"]), cell(r), one, ratio, f"`{name}`"])
    header = ["batch", "keys on the device", "latency", "for a ciphertext", "against all there", "source"]
    return STAGED + "\n" + table(header, body)


def key_tables(members: dict[str, dict]) -> str:
    text = ""
    for name, data in members.items():
        for part in (tenants_table(name, data), staged_table(name, data)):
            text += f"\n{part.strip()}\n" if part else ""
    return text
