"""Devices of several parts through the Python front: the bits of one device, shares of memory, refusals."""

from __future__ import annotations

from pathlib import Path

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


def test_keys_in_host_memory_come_to_the_parts(tmp_path: Path) -> None:
    """From a file that is larger than what the parts may hold of it, in turns."""
    home = ckks.Context(_params(), device="cpu")
    client = home.keygen()
    keys = client.evaluation_keys(rotations=range(1, 6))
    keys.save(tmp_path / "keys")
    encrypted = client.encrypt(np.random.default_rng().uniform(-1, 1, 4096))
    context = ckks.Context(_params(), device="cpu+cpu+cpu")
    half = keys.nbytes // 2
    staged = context.load_evaluation_keys(tmp_path / "keys", staged_bytes=half)
    assert 0 < staged.nbytes <= half and staged.host_bytes == keys.nbytes // 2
    one, several = home.evaluator(keys), context.evaluator(staged)
    there = context.ciphertext_from_bytes(encrypted.to_bytes())
    for step in (1, 5, 2, 4, 3, 1, 5):
        assert several.rotate(there, step).to_bytes() == one.rotate(encrypted, step).to_bytes()
    with pytest.raises(errors.ParameterError, match="largest keys"):
        context.load_evaluation_keys(tmp_path / "keys", staged_bytes=keys.nbytes // 6)


def test_refusals_are_typed() -> None:
    for name in ("cpu+", "cpu+ref", "cpu+auto", "cpu+1"):
        with pytest.raises(errors.DeviceError, match="cpu"):
            crenel.Device(name)
    with pytest.raises(errors.UnsupportedError, match="TFHE"):
        tfhe.Context(tfhe.preset("bool128"), device="cpu+cpu")
