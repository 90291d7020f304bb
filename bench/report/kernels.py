"""The kernel interface alone: time, traffic, and how much of the measured ceilings that is."""

from __future__ import annotations

from report.text import PEER_OPERATIONS, SERVER, number, table

EXPLICIT = ["ntt", "intt", "base_convert"]  # rows that stay, blank, when a complete run lacks them
PEER_KERNEL = {"hadd": "add", "pmult": "mul_plain"}  # where a kernel's name is not the operation's
ABOUT = """
Calls of the kernel interface on uniform random data: no scheme around them, results not decrypted (the
conformance tests compare them with `ref` bit by bit). Traffic is a model: the limbs that the algorithm reads
and writes, pass by pass; the last columns are that traffic over the time, in units of the measured
read+write ceilings. Above 100 % of DRAM, L2 served a part. Limbs are those of the window, for base_convert
those of the destination (from the special limbs).
"""


def ceilings_of(device: str, files: dict[str, dict]) -> dict | None:
    for data in files.values():
        if data["kind"] == "crenel-ceilings" and device.startswith(data["device"]):
            return data
    return None


def fraction(row: dict, ceilings: dict | None, memory: str) -> str:
    if ceilings is None:
        return ""
    return f"{row['gb_per_s'] / (1e3 * ceilings[f'{memory}_read_write_tb_per_s']):.0%}".replace("%", " %")


def mebibytes(row: dict) -> str:
    return number(row["bytes"] / 2**20)


def traffic(rows: list[dict], ceilings: dict | None) -> str:
    names = list(dict.fromkeys(r["operation"] for r in rows))
    if "add" in names:  # a complete run, not a choice of operations
        names = EXPLICIT + [n for n in names if n not in EXPLICIT]
    body = []
    for name in names:
        for limbs in sorted({r["limbs"] for r in rows}, reverse=True):
            found = [r for r in rows if (r["operation"], r["limbs"]) == (name, limbs)]
            cells = [""] * 5
            if found:
                row = found[-1]
                cells = [number(row["us"]), mebibytes(row), number(row["gb_per_s"])]
                cells += [fraction(row, ceilings, memory) for memory in ("l2", "dram")]
            body.append([name, str(limbs), *cells])
    return table(["kernel", "limbs", "us", "traffic, MiB", "GB/s", "of L2", "of DRAM"], body)


def beside_peer(rows: list[dict], peer: dict) -> str:
    """The peer's whole operation and our kernels of it, at exactly the same number of limbs."""
    body = []
    for theirs in peer["rows"]:
        for graph in (False, True):
            mine = [r for r in rows if (r["limbs"], r["graph"]) == (theirs["limbs"], graph)]
            times = {r["operation"]: r["us"] for r in mine if r["log_n"] == peer["log_n"]}
            cells = []
            for name in PEER_OPERATIONS:
                us = times.get(PEER_KERNEL.get(name, name))
                both = f"{number(theirs[name])} / {number(us)} ({us / theirs[name]:.2f})" if us else ""
                cells.append(both)
            if any(cells):
                body.append([f"{theirs['limbs']}{', graph' if graph else ''}", *cells])
    if not body:
        return ""
    text = f"\n{peer['library']}'s operations / Crenel's kernels of the same operation, us, and the kernels' "
    text += f"time in units of {peer['library']}'s (below 1: faster):\n\n"
    return text + table(["limbs", *(SERVER[n] for n in PEER_OPERATIONS)], body)


def kernel_sections(kernels: dict[str, list[dict]], files: dict[str, dict]) -> str:
    """One section a device and ring; eager and replayed runs each have their table."""
    text = ""
    sections = dict.fromkeys((r["device"], r["log_n"]) for rows in kernels.values() for r in rows)
    for device, log_n in sections:
        ceilings = ceilings_of(device, files)
        text += f"\n## Kernels on {device}, N = 2^{log_n}\n{ABOUT}"
        if ceilings:
            p, l2, dram = (
                ceilings["provenance"],
                *(ceilings[f"{m}_read_write_tb_per_s"] for m in ("l2", "dram")),
            )
            text += f"\nCeilings: L2 {l2} TB/s, DRAM {dram} TB/s; {p['method']}; {p['measured_by']}.\n"
        together = []
        for name, rows in kernels.items():
            here = [r for r in rows if (r["device"], r["log_n"]) == (device, log_n)]
            together += here
            for graph in sorted({r["graph"] for r in here}):
                how = "replayed from a CUDA graph" if graph else "eager"
                chosen = [r for r in here if r["graph"] == graph]
                text += f"\n`{name}`, {how}:\n\n" + traffic(chosen, ceilings)
        for peer in files.values():
            if peer["kind"] == "crenel-peer" and device.startswith(peer["provenance"]["device_description"]):
                text += beside_peer(together, peer)
    return text
