"""What the tests of crenel.nn share: seeds that are printed, random layers, networks of digits."""

from __future__ import annotations

import secrets
import warnings

import numpy as np
import pytest

from crenel import ckks, nn


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh randomness, printed with a failure."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def toy(name: str = "toy-leveled-n16-s40") -> ckks.Params:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        return ckks.preset(name, allow_insecure=True)


def weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Of unit gain."""
    return rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))


def quiet_compile(*args, **options) -> nn.Program:
    """Without the warnings of few samples and of agreement that no degree reaches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nn.CalibrationWarning)
        warnings.simplefilter("ignore", nn.AgreementWarning)
        return nn.compile(*args, **options)


def small_cnn(rng: np.random.Generator) -> nn.Module:
    """Every kind of step: strides, norms, pools, a residual branch, a concatenation, fits and a square."""
    return nn.Sequential(
        nn.Conv2d(weights(rng, 4, 1, 3, 3), weights(rng, 4), padding=1),
        nn.BatchNorm(weights(rng, 4), rng.uniform(0.5, 2.0, 4), weights(rng, 4) + 1, weights(rng, 4)),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Residual(nn.Sequential(nn.Conv2d(weights(rng, 4, 4, 3, 3), padding=1), nn.SiLU())),
        nn.Concat(
            nn.Conv2d(weights(rng, 3, 4, 1, 1), stride=2), nn.Conv2d(weights(rng, 5, 4, 2, 2), stride=2)
        ),
        nn.Square(),
        nn.Flatten(),
        nn.Linear(weights(rng, 10, 32), weights(rng, 10)),
    )


def residual(rng: np.random.Generator, blocks: int, act: type[nn.Module] = nn.SiLU) -> nn.Module:
    """Two convolutions and two activations a block."""

    def conv(inputs: int) -> nn.Conv2d:
        return nn.Conv2d(weights(rng, 3, inputs, 3, 3), weights(rng, 3), padding=1)

    def block() -> list[nn.Module]:
        return [nn.Residual(nn.Sequential(conv(3), act(), conv(3))), act()]

    layers = [layer for _ in range(blocks) for layer in block()]
    return nn.Sequential(conv(1), act(), *layers, nn.GlobalAvgPool(), nn.Linear(weights(rng, 4, 3)))


def same_bits(program: nn.Program, sample: np.ndarray) -> np.ndarray:
    """The result of one sample on `cpu`, whose bytes are those of `ref`."""
    spec = program.client
    client = spec.keygen("cpu")
    keys, sent = client.evaluation_keys(spec).to_bytes(), client.encrypt(sample, spec).to_bytes()
    results = []
    for device in ("ref", "cpu"):
        server = nn.Program.from_bytes(program.to_bytes(), device, allow_insecure=True).bind(keys)
        results.append(server.run(server.tensor_from_bytes(sent)).to_bytes())
    assert results[0] == results[1]
    return client.decrypt(client.tensor_from_bytes(results[0]), spec)
