"""Arrays as bytes: what is written is read, anything else is refused by a typed error."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from conftest import device_names

from crenel import ckks


@pytest.fixture(scope="session", params=[name for name in device_names() if name != "ref"])
def device(request) -> str:
    """Not ref: files are read and checked on the host, and what they become there takes it long."""
    return request.param


@pytest.fixture
def array(world, rng) -> ckks.Array:
    return ckks.encrypt(world.client, rng.uniform(-1, 1, (3, 5)), "columns")


def remade(data: bytes, **changes: object) -> bytes:
    """The file with other members in its header, and with the right checksum."""
    length = int.from_bytes(data[12:16], "little")
    head = {**json.loads(data[16 : 16 + length]), **changes}
    text = json.dumps({k: v for k, v in head.items() if v != "gone"}).encode()
    start = data[:12] + len(text).to_bytes(4, "little") + text
    return start + hashlib.sha256(start).digest() + data[16 + length + 32 :]


@pytest.mark.parametrize("packing", ["rows", "columns", "batch", "features"])
@pytest.mark.parametrize("shape", [(), (1,), (60,), (3, 5), (2100,)])
def test_round_trip(world, rng, packing, shape):
    if shape == (2100,) and packing == "features":  # each feature is a ciphertext: more than a row has slots
        shape = (130,)
    x = rng.uniform(-1, 1, shape)
    a = ckks.encrypt(world.client, x, packing)
    for given in (a, world.ev(a) + 1):
        data = given.to_bytes()
        back = ckks.Array.from_bytes(world.context, data)
        assert (back.shape, back.layout, back.packing) == (given.shape, given.layout, given.packing)
        assert back.describe() == given.describe() and back.to_bytes() == data
        assert np.array_equal(world.client.decrypt(back), world.client.decrypt(given))
    # Known padding stays known.
    assert world.ev(back).sum().level == world.top


def test_headers_that_lie(world, array):
    data = array.to_bytes()
    for changes in (
        {"shape": [5, 3]}, {"shape": [3]}, {"shape": [3, 5, 1]}, {"shape": [3, 0]}, {"shape": "3"},
        {"rows": 4}, {"rows": 5.0}, {"rows": True}, {"columns": -1}, {"width": 8}, {"width": 3},
        {"group": 16}, {"group": 2**60}, {"group": 3}, {"transposed": 1}, {"transposed": False}, {"pad": 1},
        {"pad": [0.0]},
        {"pad": [0, 0]}, {"pad": [float("nan"), 0.0]}, {"more": 1}, {"pad": "gone"},
    ):  # fmt: skip
        with pytest.raises(ckks.SerializationError, match="array"):
            ckks.Array.from_bytes(world.context, remade(data, **changes))
    assert ckks.Array.from_bytes(world.context, remade(data)).shape == (3, 5)


def test_damage_and_limits(world, array, rng):
    data = array.to_bytes()
    for given in (data, bytearray(data), memoryview(data)):
        assert ckks.Array.from_bytes(world.context, given).shape == (3, 5)
    with pytest.raises(ckks.SerializationError, match="at most 1000"):
        ckks.Array.from_bytes(world.context, data, max_bytes=1000)
    for cut in (0, 7, 15, 40, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(ckks.SerializationError):
            ckks.Array.from_bytes(world.context, data[:cut])
    start = 16 + int.from_bytes(data[12:16], "little") + 32
    for at in [*rng.integers(0, start, 40), *rng.integers(start, len(data), 40)]:
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(ckks.CrenelError):
            ckks.Array.from_bytes(world.context, damaged)
    with pytest.raises(ckks.SerializationError, match="CRENELAR"):
        ckks.Array.from_bytes(world.context, array.ciphertext.to_bytes())
    with pytest.raises(ckks.SerializationError):
        ckks.Array.from_bytes(world.context, data + b"x")
