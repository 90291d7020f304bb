"""The first page's figures: read from bench/results, each with the variant and security it was taken at."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
sys.path.insert(0, str(ROOT / "bench"))
from report.sets import under_present_names  # noqa: E402
from report.text import duration, table  # noqa: E402

Row = dict[str, Any]
HEADER = ["what", "reaches", "variant", "security", "on", "error or failures"]


def rows(file: str, /, **same: object) -> tuple[Row, list[Row]]:
    """Provenance of a file, and its rows that have these values; there has to be one."""
    data = under_present_names(json.loads((RESULTS / file).read_text(encoding="utf-8")))
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
    provenance, found = rows("boot40-h100-boot.json", batch=1, keys="hoisted")
    row = min(found, key=lambda r: r["latency_us"])
    levels = row["output_level"] - row["input_level"]
    variant = f"{row['params']}: N = 2^{row['log_n']}, {row['slots']:,} complex slots, "
    variant += f"scale 2^{row['scale_bits']}, {levels} levels regained, {row['keys']} keys"
    return _operation("CKKS bootstrap", provenance, row, variant)


def product() -> list[str]:
    provenance, found = rows("boot40-h100-operations.json", name="hmult_rescale", batch=1)
    row = max(found, key=lambda r: r["limbs"])
    variant = f"{row['params']}, {row['limbs']} limbs, relinearised and rescaled, the same inputs each time"
    return _operation("CKKS product", provenance, row, variant)


def _rotations(name: str, what: str, many: str, one: str) -> list[str]:
    """A row of TFHE: operations a second where many are queued, the time of one, and failures."""
    provenance, (row, *_) = rows(many, mode="resident")
    _, (alone, *_) = rows(one, mode="latency")
    reaches = f"{row['operations_per_s']:,.0f} {what} a second; one in {duration(alone['latency_us'])}"
    steps = f"{row['step']} and {alone['step']}" if row["step"] != alone["step"] else row["step"]
    variant = (
        f"{row['params']}, {row['size']:,} in a call, steps of {steps} secret bits, `{row['arithmetic']}` "
    )
    variant += "transforms"
    likely = max(row["p_fail_log2"], alone["p_fail_log2"])
    fails = f"{row['failures'] + alone['failures']} wrong; 2^{likely:.0f} each stated"
    return [name, reaches, variant, security(row), device(provenance), fails]


def gates() -> list[str]:
    many, one = "tfhe-bool128-step2-h100.json", "tfhe-bool128-step4-1-h100.json"
    return _rotations("TFHE NAND, bootstrapped", "gates", many, one)


def packed_gates() -> list[str]:
    many, one = "tfhe-bool128-packed-r5-63360-h100.json", "tfhe-bool128-packed-r5-h100.json"
    return _rotations("The same, five bits a ciphertext", "gates", many, one)


def look_ups() -> list[str]:
    many, one = "tfhe-lut4-128-step4-8192-h100.json", "tfhe-lut4-128-step4-66-h100.json"
    return _rotations("Any function of 4 encrypted bits", "look-ups", many, one)


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
    provenance, (row, *_) = rows("workload-boot35-h100-b1-resnet20-fit63.json", name="network")
    _, (all_images, *_) = rows("workload-boot40-h100-b8-resnet20-fit63.json", name="network")
    variant = f"{row['params']}, one image, ReLU by polynomials of degree 63"
    cells = [duration(row["latency_us"]), variant, security(row), device(provenance)]
    same = f"{100 * all_images['agreement']:.1f} % of {all_images['steps']} images have the class of float64"
    return ["ResNet-20 on encrypted images", *cells, f"{same} ({all_images['params']})"]


def encoder() -> list[str]:
    provenance, (row, *_) = rows("workload-boot40-h100-b1-bert-tiny-fit.json", name="network")
    variant = f"{row['params']}, 128 tokens of 128 numbers, softmax and layer norm by polynomials"
    cells = [duration(row["latency_us"]), variant, security(row), device(provenance)]
    return [
        "BERT-Tiny on encrypted embeddings",
        *cells,
        f"cosine with float64's {row['cosine']:.4f} or more",
    ]


def network() -> list[str]:
    name = "small-networks-cpu.json"
    provenance, (row, *_) = rows(name, name="lenet")
    variant = f"{row['params']}, {row['threads']} threads, one image"
    cells = [duration(1e6 * row["run_s"]), variant, security(row), device(provenance)]
    return ["LeNet on an encrypted image", *cells, f"{row['error']:.1e} of a score"]


def reached() -> str:
    """The table, in Markdown."""
    found = [
        bootstrap(),
        product(),
        gates(),
        packed_gates(),
        look_ups(),
        training(),
        sorting(),
        resnet(),
        encoder(),
        network(),
    ]
    return table(HEADER, found)
