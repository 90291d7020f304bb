"""The plans of some networks as text: a pass that changes shows as a difference that a reviewer reads.

``CRENEL_UPDATE_DOCS=1`` writes them anew.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from nn_world import quiet_compile, residual, small_cnn, toy

from crenel import nn

FOLDER = Path(__file__).with_name("plans")
SEED = 20  # of weights and samples, which decide the bounds in the texts


def dense(rng: np.random.Generator) -> nn.Module:
    return nn.Sequential(
        nn.Linear(rng.standard_normal((32, 64)) / 8), nn.ReLU(), nn.Linear(rng.standard_normal((10, 32)) / 6)
    )


def depthwise(rng: np.random.Generator) -> nn.Module:
    """A convolution of each channel, one across channels, and a dilated one."""
    return nn.Sequential(
        nn.Conv2d(rng.standard_normal((6, 1, 3, 3)) / 3, groups=3, padding=1),
        nn.Conv2d(rng.standard_normal((8, 6, 1, 1)) / 3),
        nn.SiLU(),
        nn.Conv2d(rng.standard_normal((4, 8, 3, 3)) / 9, stride=(2, 1), padding=2, dilation=2),
        nn.Square(),
        nn.GlobalAvgPool(),
    )


NETWORKS = {
    "dense": (dense, (64,), "toy-leveled-n16-s40"),
    "cnn": (small_cnn, (1, 8, 8), "toy-leveled-n16-s40"),
    "depthwise": (depthwise, (3, 8, 8), "toy-leveled-n15-s40"),
    "residual": (lambda rng: residual(rng, 3), (1, 4, 4), "toy-boot35"),
    "residual-minimax": (lambda rng: residual(rng, 1, nn.ReLU), (1, 4, 4), "toy-boot35"),
}


@pytest.mark.generated
@pytest.mark.parametrize("name", list(NETWORKS))
def test_plan(name):
    make, shape, params = NETWORKS[name]
    rng = np.random.default_rng(SEED)
    model = make(rng)
    samples = rng.standard_normal((50, *shape))
    options = {"activation": "minimax"} if name.endswith("minimax") else {"degree": 31}
    found = quiet_compile(model, samples, params=toy(params), device="cpu", **options).explain() + "\n"
    file = FOLDER / f"{name}.txt"
    if os.environ.get("CRENEL_UPDATE_DOCS"):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
        return
    assert found == file.read_text(encoding="utf-8"), "look at the difference; CRENEL_UPDATE_DOCS=1 writes it"
