"""Devices of several parts through the Python front: the bits of one device, shares of memory, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import crenel
from crenel import ckks, errors, tfhe


def _params() -> ckks.Params:
    return ckks.Params(log_n=13, scale_bits=30, depth=2)


def test_a_device_of_parts_says_what_it_is() -> None:
    device = crenel.Device("cpu+cpu+cpu")
    assert (device.name, device.kind) == ("cpu+cpu+cpu", "split")
    assert [part.kind for part in device.parts] == ["cpu"] * 3
    assert crenel.Device("cpu").parts == []
    assert device.available_bytes > 0


@pytest.mark.parametrize("name", ["cpu+cpu", "cpu+cpu+cpu"])
def test_programs_have_the_bits_of_one_device(name: str) -> None:
    home = ckks.Context(_params(), device="cpu")
    client = home.keygen()
    keys = client.evaluation_keys(rotations=[1])
    values = np.random.default_rng().uniform(-1, 1, 4096)
    encrypted = client.encrypt(values)
    device = crenel.Device(name)
    context = ckks.Context(_params(), device=device)
    before = [part.pools().in_use for part in device.parts]
    there = context.evaluator(context.evaluation_keys_from_bytes(keys.to_bytes()))
    shares = [part.pools().in_use - was for part, was in zip(device.parts, before, strict=True)]
    assert max(shares) < 0.8 * sum(shares)

    def run(ev: ckks.Evaluator, a: ckks.Ciphertext) -> ckks.Ciphertext:
        return ev.rotate(ev.multiply_rescale(a, a), 1)

    expected = run(home.evaluator(keys), encrypted).to_bytes()
    found = run(there, context.ciphertext_from_bytes(encrypted.to_bytes())).to_bytes()
    assert found == expected


def test_refusals_are_typed() -> None:
    for name in ("cpu+", "cpu+ref", "cpu+auto", "cpu+1"):
        with pytest.raises(errors.DeviceError, match="cpu"):
            crenel.Device(name)
    with pytest.raises(errors.UnsupportedError, match="TFHE"):
        tfhe.Context(tfhe.preset("bool128"), device="cpu+cpu")
