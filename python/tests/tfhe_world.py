"""Contexts of the small TFHE sets with everything made from them, one a device and set."""

from __future__ import annotations

import os
import warnings
from functools import cache

import pytest

from crenel import tfhe


class TfheWorld:
    def __init__(self, context: tfhe.Context, packing_key: bool = False) -> None:
        self.context = context
        self.client = context.keygen()
        self.keys = self.client.evaluation_keys(packing=packing_key)
        self.ev = context.evaluator(self.keys, max_p_fail_log2=0)  # toys fail


def quiet(make):
    """Toy sets warn, as they should."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfhe.InsecureParametersWarning)
        return make()


def open_tfhe(params: tfhe.Params, device: str, **options) -> tfhe.Context:
    """A context, or a skip with the reason; a failure where the device is required."""
    try:
        return quiet(lambda: tfhe.Context(params, device=device, **options))
    except tfhe.DeviceError as error:
        required = [r for r in os.environ.get("CRENEL_REQUIRE", "").split(",") if r]
        if any(device.startswith(r) for r in required):
            raise
        pytest.skip(str(error) if device in str(error) else f"{device}: {error}")


def encrypted(world: TfheWorld, values, **options) -> tfhe.Ciphertext:
    """Encryptions that every bootstrap reads. Fresh errors reach 21, the q of toy-raising bears only
    q / 8 = 16 of them: once in 2^22 messages one is beyond, and its array is encrypted again."""
    while True:
        array = world.client.encrypt(values, **options)
        if abs(world.client.phase_errors(array, values)).max() < 16:
            return array


@cache
def world_for_use(name: str) -> TfheWorld:
    """A set for use on the CPU, whose keys take seconds to make; with the key of lists where it has them."""
    context = tfhe.Context(tfhe.preset(name), device="cpu")
    world = TfheWorld.__new__(TfheWorld)
    world.context, world.client = context, context.keygen()
    world.keys = world.client.evaluation_keys(lists=context.params.numbers["glwe_dim"] == 1)
    world.ev = context.evaluator(world.keys)
    return world


@cache
def tfhe_world(name: str, device: str, packing: int = 1, arithmetic: str | None = None) -> TfheWorld:
    context = open_tfhe(
        tfhe.preset(name, allow_insecure=True), device, packing=packing, arithmetic=arithmetic
    )
    return TfheWorld(context, packing_key=packing > 1)
