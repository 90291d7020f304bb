"""The first page's figures: read from bench/results, each with the variant and security it was taken at."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
sys.path.insert(0, str(ROOT / "bench"))
from report.text import duration, table  # noqa: E402

Row = dict[str, Any]
HEADER = ["what", "reaches", "variant", "security", "on", "error or failures"]


def rows(file: str, /, **same: object) -> tuple[Row, list[Row]]:
    """Provenance of a file, and its rows that have these values; there has to be one."""
    data = json.loads((RESULTS / file).read_text(encoding="utf-8"))
    found = [r for r in data["results"] if all(r.get(k) == v for k, v in same.items())]
    if not found:
        raise ValueError(f"bench/results/{file} has no row of {same}")
    return data["provenance"], found


def security(row: Row) -> str:
    return f"{row['security_bits']:.0f} bits"


def device(provenance: Row) -> str:
    """NVIDIA H200, or the processor with its threads."""
    return provenance["device_description"].split(", compute")[0]


def median(found: list[Row], what: str) -> float:
    values = sorted(r[what] for r in found)
    return values[len(values) // 2]


def _operation(name: str, provenance: Row, row: Row, variant: str) -> list[str]:
    """A row of CKKS: its time, what of, and its largest error."""
    error = f"2^{row['error_log2']:.1f}"
    return [name, duration(row["latency_us"]), variant, security(row), device(provenance), error]


def bootstrap() -> list[str]:
    name = "boot40-h200-boot.json"
    provenance, (row, *_) = rows(name, graph=True, batch=1)
    levels = row["output_level"] - row["input_level"]
    variant = f"{row['params']}: N = 2^{row['log_n']}, {row['slots']:,} complex slots, "
    variant += f"scale 2^{row['scale_bits']}, {levels} levels regained, {row['keys']} keys, replayed graph"
    return _operation("CKKS bootstrap", provenance, row, variant)


def product() -> list[str]:
    name = "boot40-h200.json"
    provenance, found = rows(name, name="hmult_rescale", batch=1, timing="each", inputs="rotating")
    row = max(found, key=lambda r: r["limbs"])
    variant = f"{row['params']}, {row['limbs']} limbs, relinearised and rescaled, inputs not in cache"
    return _operation("CKKS product", provenance, row, variant)


def gates() -> list[str]:
    name = "tfhe-bool128-h200.json"
    provenance, (row, *_) = rows(name, operation="nand", mode="transfers")
    variant = f"{row['params']}, {row['size']:,} gates in a call, `{row['arithmetic']}` transforms, "
    variant += "host copies included"
    fails = f"{row['failures']} wrong; 2^{row['p_fail_log2']:.0f} a gate stated"
    rate = f"{row['operations_per_s']:,.0f} gates a second"
    return ["TFHE NAND, bootstrapped", rate, variant, security(row), device(provenance), fails]


def training() -> list[str]:
    name = "workload-boot35-h200.json"
    provenance, found = rows(name, name="helr", stages_timed=False, graph=False)
    row = found[0]
    variant = f"{row['params']}, `{row['variant']}`, {row['batch']:,} rows of {row['features']} features, "
    variant += "bootstraps included"
    cells = [
        f"{duration(median(found, 'latency_us'))} an iteration",
        variant,
        security(row),
        device(provenance),
    ]
    within = (
        "within the stated bound" if all(r["error"] <= r["bound"] for r in found) else "**beyond the bound**"
    )
    return ["Logistic regression, trained on encrypted rows", *cells, within]


def sorting() -> list[str]:
    name = "workload-boot40-h200-sort.json"
    provenance, found = rows(name, name="sort", variant="crenel", stages_timed=False, graph=False)
    found = [r for r in found if r["count"] == max(r["count"] for r in found)]
    row = found[0]
    found = [r for r in found if (r["comparator"], r["radix"]) == (row["comparator"], row["radix"])]
    variant = f"{row['params']}, `{row['variant']}`, {row['radix']}-way, comparator {row['comparator']}"
    cells = [duration(1e6 * median(found, "total_s")), variant, security(row), device(provenance)]
    error = f"2^-{min(r['error_bits'] for r in found):.1f} of the range"
    return [f"Sorting {row['count']:,} encrypted numbers", *cells, error]


def resnet() -> list[str]:
    name = "workload-boot35-h100-resnet20-fit63-32.json"
    provenance, (row, *_) = rows(name, name="network")
    variant = f"{row['params']}, batches of {row['batch']}, ReLU by polynomials of degree 63"
    cells = [
        f"{duration(row['latency_us'] / row['batch'])} an image",
        variant,
        security(row),
        device(provenance),
    ]
    same = f"{100 * row['agreement']:.1f} % of {row['steps']} images have the class of float64"
    return ["ResNet-20 on encrypted images", *cells, same]


def network() -> list[str]:
    name = "small-networks-cpu.json"
    provenance, (row, *_) = rows(name, name="lenet")
    variant = f"{row['params']}, {row['threads']} threads, one image"
    cells = [duration(1e6 * row["run_s"]), variant, security(row), device(provenance)]
    return ["LeNet on an encrypted image", *cells, f"{row['error']:.1e} of a score"]


def reached() -> str:
    """The table, in Markdown."""
    found = (bootstrap(), product(), gates(), training(), sorting(), resnet(), network())
    return table(HEADER, list(found))
