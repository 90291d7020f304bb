"""The paper's figures ([FHECore], tables VI to VIII, figures 1 and 8), to stand beside ours: read from the
package's data of it, which `crenel reproduce` shows too."""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "python" / "crenel" / "reproduce" / "papers" / "fhecore.json"
_ITEMS = {(i["kind"], i["number"]): i for i in json.loads(FILE.read_text(encoding="utf-8"))["items"]}


def _rows(kind: str, number: int) -> dict[str, list]:
    """Rows of an item by their first cell."""
    return {row[0]: row[1:] for row in _ITEMS[kind, number]["rows"]}


INSTRUCTIONS = {name: (row[0], row[1]) for name, row in _rows("table", 6).items()}  # A100, A100 with FHEC
_LATENCY = _rows("table", 7)
PRIMITIVES_US = {
    name: (_LATENCY["FIDESlib, A100"][k], _LATENCY["FIDESlib, A100 with FHECore"][k])
    for k, name in enumerate(("Rescale", "Rotate", "HEMult"))
}
_TIMES = _rows("table", 8)
WORKLOADS_MS = {
    name: (_TIMES["A100 (paper)"][k], _TIMES["A100 with FHECore (paper)"][k])
    for k, name in enumerate(("Bootstrap", "LR", "ResNet20", "BERT-Tiny"))
}
SHARE = {name.removesuffix(", %"): row[0] / 100 for name, row in _rows("figure", 1).items()}
FFT_ITERATIONS_BEST = _rows("figure", 8)["best number of iterations"][0]


def ratio(pair: tuple[float, float]) -> float:
    """Without over with."""
    return pair[0] / pair[1]


def geometric_mean(values: list[float]) -> float:
    product = 1.0
    for v in values:
        product *= v
    return product ** (1 / len(values))
