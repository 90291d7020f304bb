"""Pools of devices for tests: which devices, and fresh seeds."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

import crenel


def pool_devices() -> list[list[str]]:
    """Three times the CPU, every GPU, one alone twice, and the halves of one; CRENEL_DEVICES picks."""
    wanted = [name for name in os.environ.get("CRENEL_DEVICES", "").split(",") if name]
    gpus = [name for name in wanted if name.startswith("cuda")]
    if not wanted:
        gpus = [info.name for info in crenel.devices() if info.kind == "cuda"]
    first = gpus[0] if gpus else "cuda:0"
    return [["cpu"] * 3, gpus if len(gpus) > 1 else [first] * 2, [f"{first}/1of2", f"{first}/2of2"]]


def require(names: list[str]) -> None:
    """A skip with the reason where a device cannot be had."""
    for name in names:
        try:
            crenel.Device(name)
        except crenel.DeviceError as error:
            if any(name.startswith(r) for r in os.environ.get("CRENEL_REQUIRE", "").split(",") if r):
                raise
            pytest.skip(str(error))


def seeded() -> np.random.Generator:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)
