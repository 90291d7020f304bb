#!/usr/bin/env python3
"""Write python/crenel/nn/costs.json: times of operations from bench/results.

    tools/gen_costs.py            write the file
    tools/gen_costs.py --check    fail where it is not what this program makes

Rows come as measured from the suites ckks and boot (medians; replayed graphs where there are any) and from
the tables of tools/measure_costs.py, bench/results/costs-*.json, whose rows go before others; what launches
cost on a machine from tools/fit_machine.py, bench/results/machine-*.json. What no suite
measures is derived from what they do, and its row says how (FORMULAS).
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS, FILE = ROOT / "bench/results", ROOT / "python/crenel/nn/costs.json"
NAMES = {
    "hadd": "add",
    "pmult": "plain_product",
    "hmult": "product",
    "hmult_rescale": "product_rescale",
    "hrot": "rotation",
    "conjugate": "conjugation",
    "rescale": "rescale",
}
# Of sums of measured times, by their names in the suite.
FORMULAS = {
    "hoisted_rotation": ("(rotate_sum_8 - hrot) / 7", {"rotate_sum_8": 1 / 7, "hrot": -1 / 7}),
    "adjust_level": ("pmult + rescale", {"pmult": 1.0, "rescale": 1.0}),
    "transform": (
        "hrot + rescale: a step that raises, multiplies and divides",
        {"hrot": 1.0, "rescale": 1.0},
    ),
    "giant_step": ("hrot: the same kernels but for half of a division", {"hrot": 1.0}),
}
# Of suites that do not time the rescale itself.
RESCALE = ("hmult_then_rescale - hmult", {"hmult_then_rescale": 1.0, "hmult": -1.0})
SOURCES = {  # device: suites of operations, of bootstraps, account of kernels
    "NVIDIA H200": (
        ["boot40-h200.json", "ckks-batches-h200.json"],
        [f"{name}-h200-boot.json" for name in ("boot30", "boot35", "boot40", "boot45", "boot48dr", "boot50")],
        "fitted/ncu-account-h200.json",
    ),
    "AMD EPYC, AVX-512, 2 threads": (["ckks-cpu-avx512.json"], [], None),
}

Json = dict[str, Any]
Row = list[Any]


def read(name: str) -> Json:
    """A file of bench/results."""
    found: Json = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def times(suite: Json) -> dict[tuple[int, int], dict[tuple[str, int, int], float]]:
    """Of each shape (log_n, alpha): microseconds by (name in the suite, limbs, batch)."""
    out: dict[tuple[int, int], dict[tuple[str, int, int], float]] = {}
    for row in sorted(suite["results"], key=lambda r: bool(r.get("graph"))):  # graphs last: they prevail
        if "limbs" in row and row.get("timing", "queued") == "queued" and row["correct"]:
            shape = out.setdefault((row["log_n"], row["alpha"]), {})
            shape[row["name"], row["limbs"], row["batch"]] = row["latency_us"]
    return out


def operation_rows(measured: dict[tuple[str, int, int], float], source: str) -> list[Row]:
    """Rows as `crenel.nn.cost.Row`, measured ones and those of FORMULAS."""
    rows: list[Row] = []
    measured = dict(measured)
    for limbs, batch in sorted({key[1:] for key in measured}):
        parts = [measured.get((name, limbs, batch)) for name in RESCALE[1]]
        if ("rescale", limbs, batch) not in measured and None not in parts:
            us = sum(f * measured[name, limbs, batch] for name, f in RESCALE[1].items())
            measured["rescale", limbs, batch] = us
            rows.append(["rescale", limbs, batch, round(us, 3), source, RESCALE[0]])
    timed = {(row[0], row[1], row[2]) for row in rows}
    for limbs, batch in sorted({key[1:] for key in measured}):
        for name, operation in NAMES.items():
            if (name, limbs, batch) in measured and (operation, limbs, batch) not in timed:
                rows.append([operation, limbs, batch, measured[name, limbs, batch], source, ""])
        for operation, (said, terms) in FORMULAS.items():
            if all((name, limbs, batch) in measured for name in terms):
                us = sum(factor * measured[name, limbs, batch] for name, factor in terms.items())
                rows.append([operation, limbs, batch, round(us, 3), source, said])
    return rows


def streamed_rows(account: Json, source: str, shape: tuple[int, int], limbs: list[int]) -> list[Row]:
    """Steps and diagonals of transforms, whose time is that of reading keys and plaintexts: their bytes at
    the rate at which the kernel of the inner sums reads memory."""
    row = next(r for r in account["rows"] if r["kernel"] == "hoisted_sums")
    rate, (log_n, alpha) = row["dram_bytes"] / row["us"], shape
    said = f"bytes over {rate / 1e6:.2f}e12 byte/s, the rate of hoisted_sums"
    out: list[Row] = []
    for count in limbs:
        plaintext = 4 * 2**log_n * (count + alpha)
        key = 2 * math.ceil(count / alpha) * plaintext
        out.append(["baby_step", count, 1, round(key / rate, 3), source, f"key's {said}"])
        out.append(["diagonal", count, 1, round(plaintext / rate, 3), source, f"plaintext's {said}"])
    return out


def boot_rows(suite: Json, source: str) -> list[Row]:
    """Rows as `crenel.nn.cost.BootRow`: replayed graphs with hoisted keys. The suite boot times complex
    messages."""
    return [
        [
            r["params_id"],
            r["slots"],
            r["input_level"],
            r["output_level"],
            r["batch"],
            r["latency_us"],
            source,
            "complex",
        ]
        for r in suite["results"]
        if r["name"] == "bootstrap" and r["keys"] == "hoisted" and r["graph"] and r["correct"]
    ]


def origin(name: str, document: Json) -> dict[str, str]:
    """Where a file comes from."""
    said = document["provenance"]
    kept = ("date", "commit", "command", "device", "device_description", "version")
    return {"file": f"bench/results/{name}"} | {key: str(said[key]) for key in kept if key in said}


def tables() -> list[Json]:
    """All tables, one for each device and shape."""
    out: list[Json] = []
    for device, (suites, boots, account) in SOURCES.items():
        files = {name: read(name) for name in [*suites, *boots, *([account] if account else [])]}
        for name in suites:
            for shape, measured in sorted(times(files[name]).items()):
                rows = operation_rows(measured, name)
                if account:
                    limbs = sorted({key[1] for key in measured})
                    rows += streamed_rows(files[account], account, shape, limbs)
                there = [t for t in out if (t["device"], t["log_n"], t["alpha"]) == (device, *shape)]
                if there:
                    add(there[0], rows, {name: origin(name, files[name])})
                    continue
                of_shape = [b for b in boots if times(files[b]).keys() <= {shape}]
                bootstraps = [row for b in of_shape for row in boot_rows(files[b], b)]
                used = {row[4] for row in rows} | {row[6] for row in bootstraps}
                out.append(
                    table(device, shape, rows, bootstraps, {n: origin(n, files[n]) for n in sorted(used)})
                )
    for path in sorted(RESULTS.glob("costs-*.json")):
        merge(out, read(path.name), path.name)
    return out


def table(device: str, shape: tuple[int, int], rows: list[Row], bootstraps: list[Row], sources: Json) -> Json:
    """As `CostModel.document`."""
    return {
        "kind": "crenel-costs",
        "format": 2,
        "device": device,
        "log_n": shape[0],
        "alpha": shape[1],
        "sources": sources,
        "rows": sorted(rows, key=lambda r: (r[0], r[2], r[1])),
        "bootstraps": bootstraps,
    }


def add(there: Json, rows: list[Row], sources: Json) -> None:
    """Rows of operations at limbs and batches that a table does not have."""
    known = {tuple(row[:3]) for row in there["rows"]}
    fresh = [row for row in rows if tuple(row[:3]) not in known]
    there["rows"] = sorted([*there["rows"], *fresh], key=lambda r: (r[0], r[2], r[1]))
    there["sources"].update(sources)


def merge(out: list[Json], measured: Json, name: str) -> None:
    """Put a table of `crenel.nn.measure` in: its operations go before all others of their batch."""
    shape = (measured["log_n"], measured["alpha"])
    rows = [[*row[:4], name, row[5]] for row in measured["rows"]]
    boots = [[*row[:6], name, row[7]] for row in measured["bootstraps"]]
    sources = {name: {"file": f"bench/results/{name}"} | next(iter(measured["sources"].values()), {})}
    for there in out:
        if measured["device"].startswith(there["device"]) and (there["log_n"], there["alpha"]) == shape:
            new = {(row[0], row[2]) for row in rows}
            kept = [row for row in there["rows"] if (row[0], row[2]) not in new]
            fresh = {(*row[:5], row[7]) for row in boots}
            kept_boots = [row for row in there["bootstraps"] if (*row[:5], row[7]) not in fresh]
            there.update(
                table(there["device"], shape, kept + rows, kept_boots + boots, there["sources"] | sources)
            )
            return
    out.append(table(measured["device"], shape, rows, boots, sources))


def machines() -> list[Json]:
    """What launches cost on each machine, from the results of tools/fit_machine.py."""
    found: list[Json] = [read(path.name)["machine"] for path in sorted(RESULTS.glob("machine-*.json"))]
    return found


def rendered() -> str:
    """The text of the file, one row a line."""
    lines = []
    for made in tables():
        head = {key: value for key, value in made.items() if key not in ("rows", "bootstraps")}
        parts = [json.dumps(head, indent=1)[:-2]]
        for name in ("rows", "bootstraps"):
            parts.append(f' "{name}": [\n' + ",\n".join(f"  {json.dumps(r)}" for r in made[name]) + "\n ]")
        lines.append(",\n".join(parts) + "\n}")
    known = ",\n".join(f"  {json.dumps(machine)}" for machine in machines())
    return '{"tables": [\n' + ",\n".join(lines) + '\n],\n"machines": [\n' + known + "\n]}\n"


def main() -> int:
    """Write or compare."""
    text = rendered()
    if "--check" in sys.argv[1:]:
        if FILE.read_text(encoding="utf-8") != text:
            print(f"{FILE.relative_to(ROOT)} is not what bench/results give: run tools/gen_costs.py")
            return 1
        return 0
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
