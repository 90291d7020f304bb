"""tests/gpu_receipt.json: proof that the CUDA tests passed on a GPU, for exactly these sources."""

from __future__ import annotations

import datetime
import json
import os

from runner import cuda
from runner.counts import Counts
from runner.shell import ROOT, capture, tree_hash

RECEIPT = ROOT / "tests" / "gpu_receipt.json"
CUDA_SOURCES = [
    "include",
    "src/math",
    "src/random",
    "src/rns",
    "src/ring",
    "src/device",
    "src/backends/cuda",
    "fhecore/model",
    "tests/conformance",
]


def sources_hash() -> str:
    return tree_hash([path for path in CUDA_SOURCES if (ROOT / path).exists()])


def staleness() -> str:
    """Why the receipt does not cover the sources and tests here; empty when it does."""
    if not RECEIPT.exists():
        return "tests/gpu_receipt.json is missing: the CUDA tests have not been recorded as passed."
    record = json.loads(RECEIPT.read_text())
    if record.get("sources_sha256") != sources_hash():
        return "tests/gpu_receipt.json is stale: CUDA-relevant sources changed since the tests ran on a GPU."
    if missing := record.get("missing"):  # entered by hand from the log of a run that did not finish
        return f"tests/gpu_receipt.json covers a part of the suite. Not run on a GPU: {missing}."
    return ""


def write(total: Counts) -> str:
    gpu = cuda.gpus()[0]
    record = {
        "sources_sha256": sources_hash(),
        "tests_passed": total.passed,
        "tests_skipped": total.skipped,
        "gpu": gpu["name"],
        "driver": gpu["driver"],
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": os.environ.get("CRENEL_COMMIT") or capture(["git", "rev-parse", "HEAD"]) or "unknown",
    }
    RECEIPT.write_text(json.dumps(record, indent=2) + "\n")
    return str(RECEIPT.relative_to(ROOT))
