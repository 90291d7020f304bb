"""What a request costs, from what was measured: the newest record of each program, and with prices the cost.

python bench/service/capacity.py --price 2.50 --core-price 0.04      # of a GPU's hour, of a CPU core's hour
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
EXAMPLE = 2.0, 0.04
"""Prices of an hour of a GPU and of a CPU core in the page's table: of no vendor, and of no currency."""
NETWORKS = {"dense": "dense 64-32-10", "lenet": "LeNet-5's shape", "resnet20": "ResNet-20"}


@dataclass(frozen=True)
class Cost:
    """Of one request."""

    program: str
    device: str
    gpu: bool
    samples: int
    device_ms: float
    server_ms: float | None
    wire: str
    keys: str
    file: str

    def hourly(self) -> str:
        """Requests an hour."""
        per = f"{3.6e6 / self.device_ms:,.0f} " + ("a GPU" if self.gpu else "a worker's core")
        return per if self.server_ms is None else f"{per}, {3.6e6 / self.server_ms:,.0f} a server's"

    def money(self, price: float, core_price: float) -> float:
        """In the prices' currency; the server's part only where it was measured.

        price, core_price : of an hour of a GPU, and of a CPU core
        """
        server = 0.0 if self.server_ms is None else self.server_ms * core_price
        return (self.device_ms * (price if self.gpu else core_price) + server) / 3.6e6


def costs(folder: Path = RESULTS) -> list[Cost]:
    """The newest record of each program, batch and device."""
    newest: dict[tuple[Any, ...], tuple[str, Cost]] = {}
    for key, date, cost in [*_served(folder), *_computed(folder)]:
        if key not in newest or date > newest[key][0]:
            newest[key] = date, cost
    found = [cost for _, cost in newest.values()]
    return sorted(found, key=lambda c: (c.gpu, c.program, c.device, c.samples, c.file))


def _served(folder: Path) -> Iterator[tuple[tuple[Any, ...], str, Cost]]:
    """Through the service, with CPU seconds of both sides."""
    for file in sorted(folder.glob("service-throughput-*.json")):
        document = json.loads(file.read_text())
        given, found = document["settings"], document["results"]
        cpu, program = found["cpu_ms_a_request"], f"dense 64-32-10, {given['params']}"
        cost = Cost(
            program, "one CPU core", False, given["batch"], cpu["worker"], cpu["server"],
            f"{size(found['input_bytes'])}, {size(found['result_bytes'])}",
            f"{size(found['key_file_bytes'])}, {size(found['key_bytes_on_device'])}", file.name,
        )  # fmt: skip
        yield (program, cost.device, cost.samples), document["date"], cost


def _computed(folder: Path) -> Iterator[tuple[tuple[Any, ...], str, Cost]]:
    """Networks on GPUs without a service."""
    for file in sorted(folder.glob("workload-*.json")):
        document = json.loads(file.read_text())
        provenance = document["provenance"]
        if not provenance["device"].startswith("cuda"):
            continue
        for row in document["results"]:
            if row["name"] != "network":
                continue
            kind = (f", {row['activation']}" if row.get("activation") else "") + (
                ", recorded" if row.get("graph") else ""
            )
            program = f"{NETWORKS.get(row['network'], row['network'])}, {row['params']}{kind}"
            device = provenance["device_description"].split(",")[0]
            requests = -(-row.get("steps", 1) // row["batch"])  # whose inputs `wire_bytes` are together
            wire, held = row.get("wire_bytes", 0) / requests, row.get("memory", {}).get("keys")
            cost = Cost(
                program, device, True, row["batch"], row["latency_us"] / 1000, None,
                f"{size(wire)}, not stated" if wire else "not stated",
                f"not stated, {size(held)}" if held else "not stated", file.name,
            )  # fmt: skip
            yield (program, device, cost.samples), provenance["date"], cost


def size(nbytes: float) -> str:
    """In the unit that leaves at most four digits."""
    power = min(3, int(math.log2(max(1, nbytes)) // 10))
    return f"{nbytes / 2 ** (10 * power):.3g} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"


def table(price: float | None = None, core_price: float | None = None) -> str:
    """In Markdown; with prices a column of what a million requests cost."""
    head = [
        "Program", "Measured on", "Samples a request", "Device's time a request", "Server's CPU",
        "Requests an hour", "In, out", "Keys: file, device", "File",
    ]  # fmt: skip
    rows = [head]
    for c in costs():
        server = "not measured" if c.server_ms is None else f"{c.server_ms:.1f} ms"
        rows.append([
            c.program, c.device, str(c.samples), f"{c.device_ms:.3g} ms" if c.device_ms < 1000
            else f"{c.device_ms:.0f} ms", server, c.hourly(), c.wire, c.keys, f"`{c.file}`",
        ])  # fmt: skip
    if price is not None or core_price is not None:
        head.append("A million requests")
        for row, c in zip(rows[1:], costs(), strict=True):
            known = price is not None if c.gpu else core_price is not None
            row.append(
                f"{1e6 * c.money(price or 0.0, core_price or 0.0):,.2f}" if known else "no price given"
            )
    rows.insert(1, ["---"] * len(head))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def page() -> str:
    """The table of the guide, with the example's prices and the formula that they are in."""
    price, core = EXAMPLE
    return table(price, core) + (
        f"\nA million requests = 10^6 / 3,600,000 * (device's ms * {price:g} of a GPU's hour, or {core:g} of "
        f"a core's + server's ms * {core:g} of a core's hour), for a device that is always busy: "
        f"divide by the share of the time that it is. The prices {price:g} and {core:g} are an example.\n"
    )


def _price(text: str) -> float:
    found = float(text)
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"a price of {text}, expected a number of at least 0")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--price", type=_price, help="of an hour of a GPU")
    parser.add_argument("--core-price", type=_price, help="of an hour of a CPU core")
    chosen = parser.parse_args()
    print(table(chosen.price, chosen.core_price), end="")
