"""Small networks on a CPU: seconds, error and memory of each, by parameter set."""

from __future__ import annotations

from math import log2

from report.text import duration, provenance_line, table

SUITE, PEER = "small-networks", "crenel-comparison-orion"
BESIDE = ["network", "run, Orion", "Crenel", "ratio", "largest error, Orion", "Crenel"]
BESIDE += ["compile, Orion", "Crenel", "keys, Orion", "Crenel", "peak memory, Orion", "Crenel", "source"]
MIB, GIB = 1 << 20, 1 << 30
HEADER = [
    "network",
    "parameters",
    "security, bits",
    "levels",
    "diagonals",
    "keys",
    "compile",
    "making keys",
    "encoding",
    "encrypt",
    "run",
    "all threads",
    "decrypt",
    "largest error",
    "rms, expected",
    "largest output",
    "peak memory",
    "source",
]

TIMES = ("compile", "keys", "encode", "encrypt", "run", "run_cpu", "decrypt")
NETWORKS = (
    "*mlp*: 784-128-128-10; *lenet*: convolutions 5x5 of stride 2 to 32 and 64 channels of a 28x28\n"
    "image, dense layers to 512 and 10; squares between, random weights. One sample a run. Times are\n"
    "medians; *all threads*: processor time of a run. Errors are against the network in float64, over all\n"
    "samples; *expected* is what `compile` said before. Peak memory is of client and server in one process."
)


def small_network_sections(files: dict[str, dict]) -> str:
    """A table; nothing where there is no file."""
    chosen = {n: d for n, d in files.items() if d["kind"] == "crenel-bench" and d.get("suite") == SUITE}
    if not chosen:
        return ""
    body = [_row(name, row) for name, data in chosen.items() for row in data["results"]]
    threads = sorted({str(row["threads"]) for data in chosen.values() for row in data["results"]})
    text = "\n## Small networks on a CPU\n\n"
    text += f"By `bench/workload/small_networks.py`, {' or '.join(threads)} threads. {NETWORKS}\n\n"
    text += table(HEADER, body)
    text += "\n" + "\n".join(provenance_line(d["provenance"]) for d in chosen.values())
    rows = {row["name"]: row for data in chosen.values() for row in data["results"]}
    peers = {n: d for n, d in files.items() if d["kind"] == PEER}
    return text + (_beside(peers, rows) if peers else "")


def _beside(peers: dict[str, dict], own: dict[str, dict]) -> str:
    """The same networks through Orion."""
    found = [(name, row) for name, data in peers.items() for row in data["results"] if row["name"] in own]
    versions = ", ".join(f"{k} {v}" for k, v in found[0][1]["versions"].items())
    text = (
        "\n### Beside Orion\n\nBy `bench/compare/orion.py`, with the same weights and samples; Orion's own "
    )
    text += f"parameters, its evaluator runs on one thread. {versions}.\n\n"
    text += table(BESIDE, [_pair(name, row, own[row["name"]]) for name, row in found])
    return text + "\n" + "\n".join(provenance_line(d["provenance"]) for d in peers.values())


def _pair(name: str, peer: dict, own: dict) -> list[str]:
    return [
        peer["name"],
        *(duration(1e6 * row["run_s"]) for row in (peer, own)),
        f"{peer['run_s'] / own['run_s']:.0f}",
        *(f"2^{log2(row['error']):.1f} of {row['samples']} samples" for row in (peer, own)),
        *(duration(1e6 * row["compile_s"]) for row in (peer, own)),
        *(duration(1e6 * row["keys_s"]) for row in (peer, own)),
        *(f"{row['peak_bytes'] / GIB:.2f} GiB" for row in (peer, own)),
        f"`{name}`",
    ]


def _row(name: str, row: dict) -> list[str]:
    def time(what: str) -> str:
        return duration(1e6 * row[what])

    return [
        row["name"],
        row["params"],
        f"{row['security_bits']:.0f}",
        str(row["levels"]),
        str(row["diagonals"]),
        f"{row['key_bytes'] / MIB:.0f} MiB",
        *(time(f"{what}_s") for what in TIMES),
        f"2^{log2(row['error']):.1f} of {row['samples']} samples",
        f"2^{log2(row['rms']):.1f}, 2^{log2(row['expected_rms']):.1f}",
        f"{row['largest_output']:.3f}",
        f"{row['peak_bytes'] / GIB:.2f} GiB",
        f"`{name}`",
    ]
