"""One world a device: CRENEL_DEVICES=ref,cpu,cuda:0 picks, CRENEL_REQUIRE=cuda forbids skips."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

import crenel
from crenel import ckks
from crenel.cli import main

# Shells may start background commands with SIGINT ignored: tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

PRESET = "toy-leveled-n14-s40"  # N = 2^11, 6 levels
# What the command line says of a negative seed, in the words of newer and of older versions of its library.
NEGATIVE_SEED = r"(?s)--seed.*(greater than or equal to 0|x>=0)"
ROTATIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, -1, -3]


def device_names() -> list[str]:
    if wanted := os.environ.get("CRENEL_DEVICES"):
        return [name for name in wanted.split(",") if name]
    names = [d.name for d in crenel.devices() if d.kind != "cuda" or d.name == "cuda:0"]
    return names if "cuda:0" in names else [*names, "cuda:0"]


def toy(name: str = PRESET) -> ckks.Params:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        return ckks.preset(name, allow_insecure=True)


def open_context(params: ckks.Params, device: str) -> ckks.Context:
    """A context, or a skip with the reason; a failure where the device is required."""
    try:
        return ckks.Context(params, device=device)
    except ckks.DeviceError as error:
        required = [r for r in os.environ.get("CRENEL_REQUIRE", "").split(",") if r]
        if any(device.startswith(r) for r in required):
            raise
        pytest.skip(str(error) if device in str(error) else f"{device}: {error}")


@dataclass
class World:
    """A context with everything made from it."""

    context: ckks.Context
    client: ckks.Client = field(init=False)
    keys: ckks.EvaluationKeys = field(init=False)
    ev: ckks.Evaluator = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.context.keygen()
        self.keys = self.client.evaluation_keys(rotations=ROTATIONS, conjugate=True)
        self.ev = self.context.evaluator(self.keys)
        self.params = self.context.params
        self.slots = self.params.slots
        self.top = self.params.max_level

    def error(self, ciphertext, expected) -> float:
        return float(np.abs(self.client.decrypt(ciphertext) - expected).max())


class Boot(World):
    """A world whose keys serve the default options, hoisted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.keys = self.client.evaluation_keys(bootstrap=True)
        self.boot = self.context.bootstrapper(self.keys)

    def refreshed(self, boot: ckks.Bootstrapper, values: np.ndarray) -> tuple[ckks.Ciphertext, float]:
        """A bootstrap of `values`, and its largest error."""
        ciphertext = self.client.encrypt(values, level=boot.levels.input, slots=boot.options.slots)
        result = boot(ciphertext)
        assert (result.level, result.slots) == (boot.levels.output, boot.options.slots)
        return result, self.error(result, values)

    def made(self, **options) -> ckks.Bootstrapper:
        chosen = ckks.BootstrapOptions(**options)
        return self.context.bootstrapper(self.client.evaluation_keys(bootstrap=chosen), chosen)


@pytest.fixture(scope="session", params=device_names())
def device(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def world(device: str) -> World:
    return World(open_context(toy(), device))


@pytest.fixture(scope="session", params=[name for name in device_names() if name != "ref"])
def boot_world(request) -> Boot:
    """Not on ref, which takes seconds a bootstrap."""
    return Boot(open_context(toy("toy-boot40"), request.param))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def xy(world: World, rng) -> tuple[np.ndarray, np.ndarray]:
    x, y = rng.uniform(-1, 1, (2, world.slots))
    return x, y


@pytest.fixture
def invoke(capfd, monkeypatch):
    """``crenel workload ...`` in this process: its status, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        # As of a process of its own: a record has the command from there.
        monkeypatch.setattr(sys, "argv", ["crenel", "workload", *arguments])
        code = main(sys.argv[1:])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Chromium, for tests of the page."""
    from browser_pages import launched  # of a package that not all have

    with launched() as made:
        yield made
