"""Two small networks with squares and random weights, by which compilers for encrypted inference compare."""

from __future__ import annotations

import numpy as np

from crenel import nn
from crenel.nn.ops import Reals

PIXELS = 28  # rows and columns of an image


def mlp(seed: int, samples: int = 64) -> tuple[nn.Sequential, Reals]:
    """784-128-128-10 with squares, and images as vectors, (samples, 784) within [0, 1)."""
    rng = np.random.default_rng(seed)
    sizes = (PIXELS * PIXELS, 128, 128, 10)
    first, second, last = (_linear(rng, a, b) for a, b in zip(sizes, sizes[1:], strict=False))
    model = nn.Sequential(first, nn.Square(), second, nn.Square(), last)
    return model, rng.random((samples, sizes[0]))


def lenet(seed: int, samples: int = 64) -> tuple[nn.Sequential, Reals]:
    """Convolutions 5x5 of stride 2 to 32 and 64 channels, dense layers to 512 and 10, squares between; and
    images, (samples, 1, 28, 28) within [0, 1)."""
    rng = np.random.default_rng(seed)
    model = nn.Sequential(
        _conv(rng, 1, 32),
        nn.Square(),
        _conv(rng, 32, 64),
        nn.Square(),
        nn.Flatten(),
        _linear(rng, 64 * 7 * 7, 512),
        nn.Square(),
        _linear(rng, 512, 10),
    )
    return model, rng.random((samples, 1, PIXELS, PIXELS))


def _linear(rng: np.random.Generator, inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(_uniform(rng, inputs, (outputs, inputs)), _uniform(rng, inputs, (outputs,)))


def _conv(rng: np.random.Generator, inputs: int, outputs: int) -> nn.Conv2d:
    seen = inputs * 5 * 5
    return nn.Conv2d(
        _uniform(rng, seen, (outputs, inputs, 5, 5)), _uniform(rng, seen, (outputs,)), stride=2, padding=2
    )


def _uniform(rng: np.random.Generator, inputs: int, shape: tuple[int, ...]) -> Reals:
    """Within 1 / sqrt(inputs), as layers are initialised before training."""
    return np.asarray(rng.uniform(-1.0, 1.0, shape) / np.sqrt(inputs))
