"""What the tests of kept files share: the files of each version in tests/compat, and what stands in them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

COMPAT = Path(__file__).resolve().parents[2] / "tests" / "compat"
VERSIONS = sorted(folder.name for folder in COMPAT.iterdir() if (folder / "values.json").is_file())
CLOSE = 2**-9  # fifty times the largest error seen; what is wrong is off by its whole size


class Kept:
    """Files of one version, and what stands in each."""

    def __init__(self, version: str) -> None:
        self.folder = COMPAT / version
        self.values = json.loads((self.folder / "values.json").read_text(encoding="utf-8"))

    def data(self, name: str) -> bytes:
        return (self.folder / f"{name}.safetensors").read_bytes()

    def value(self, name: str, what: str):
        return self.values["files"][f"{name}.safetensors"][what]

    def slots(self, name: str, what: str = "slots") -> np.ndarray:
        return np.array(self.value(name, what)) @ [1, 1j]


@pytest.fixture(scope="module", params=VERSIONS)
def kept(request):
    return Kept(request.param)


def same(found, expected) -> None:
    found = np.asarray(found)[: len(expected)]
    assert np.abs(found - np.asarray(expected)).max() < CLOSE
