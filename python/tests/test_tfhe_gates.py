"""Gates on encrypted arrays of bool, with sets for gates, packed ones, and sets for tables."""

import itertools

import numpy as np
import pytest
from tfhe_world import encrypted as fresh
from tfhe_world import tfhe_world

from crenel import tfhe

TWO = {
    "and_": np.logical_and,
    "or_": np.logical_or,
    "nand": lambda x, y: ~(x & y),
    "nor": lambda x, y: ~(x | y),
    "xor": np.logical_xor,
    "xnor": lambda x, y: x == y,
}


def encrypted(world, bits: np.ndarray) -> tfhe.Ciphertext:
    """With the noise of a bootstrap: the q of toy sets is small against that of fresh ciphertexts."""
    return world.ev.refresh(fresh(world, bits))


@pytest.fixture(params=[("toy-raising", 1), ("toy-raising", 3), ("toy-gadget", 1), ("toy-lut4", 1)], ids=str)
def world(request, device):
    return tfhe_world(request.param[0], device, request.param[1])


def truth_table(inputs: int, copies: int = 1) -> np.ndarray:
    rows = np.array(list(itertools.product([False, True], repeat=inputs) if inputs else []))
    return np.tile(rows, (copies, 1)).T


@pytest.mark.parametrize("name", TWO)
def test_gates_of_two_inputs(world, name):
    x, y = truth_table(2, 3)
    a, b = encrypted(world, x), encrypted(world, y)
    result = getattr(world.ev, name)(a, b)
    assert result.shape == x.shape and result.dtype == bool
    found = world.client.decrypt(result)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, TWO[name](x, y))


def test_not_majority_mux_refresh(world):
    x, y, z = truth_table(3, 2)
    a, b, c = (encrypted(world, v) for v in (x, y, z))
    ev, decrypt = world.ev, world.client.decrypt
    np.testing.assert_array_equal(decrypt(ev.not_(a)), ~x)
    np.testing.assert_array_equal(decrypt(ev.majority(a, b, c)), x.astype(int) + y + z >= 2)
    np.testing.assert_array_equal(decrypt(ev.mux(c, a, b)), np.where(z, x, y))
    np.testing.assert_array_equal(decrypt(ev.select(c, a, b)), np.where(z, x, y))
    np.testing.assert_array_equal(decrypt(ev.refresh(b)), y)


def test_results_are_inputs_again(world, rng):
    """A long chain of gates of random kinds."""
    x, y = rng.integers(0, 2, (2, 30)).astype(bool)
    a, b = encrypted(world, x), encrypted(world, y)
    for _ in range(10):
        name = rng.choice(list(TWO))
        c, z = getattr(world.ev, name)(a, b), TWO[name](x, y)
        np.testing.assert_array_equal(world.client.decrypt(c), z)
        a, b, x, y = b, world.ev.not_(c), y, ~z


@pytest.mark.parametrize(("name", "inputs"), [("and3", 3), ("or3", 3), ("and4", 4), ("or4", 4)])
def test_gates_of_three_and_four_inputs(device, name, inputs):
    world = tfhe_world("toy-gadget", device)
    bits = truth_table(inputs)
    arrays = [world.client.encrypt(b, fan_in=inputs) for b in bits]
    expected = bits.all(axis=0) if name.startswith("and") else bits.any(axis=0)
    np.testing.assert_array_equal(world.client.decrypt(getattr(world.ev, name)(*arrays)), expected)


def test_devices_agree_to_the_bit(device):
    """The keys of one device on another: the same inputs give the same bytes."""
    here, ref = tfhe_world("toy-raising", device), tfhe_world("toy-raising", "ref")
    keys = here.context.evaluation_keys_from_bytes(ref.keys.to_bytes())
    x, y = truth_table(2, 4)
    a, b = ref.client.encrypt(x), ref.client.encrypt(y)
    moved = [here.context.ciphertext_from_bytes(c.to_bytes()) for c in (a, b)]
    assert here.context.evaluator(keys).nand(*moved).to_bytes() == ref.ev.nand(a, b).to_bytes()


def test_packing_singles(device, rng):
    world = tfhe_world("toy-gadget", device, 3)
    x, y = rng.integers(0, 2, (2, 2, 6)).astype(bool)
    single = world.client.single()
    packed = world.ev.pack(single.encrypt(x))
    assert packed.shape == (2, 6)
    np.testing.assert_array_equal(world.client.decrypt(packed), x)
    result = world.ev.xor(packed, world.client.encrypt(y))
    np.testing.assert_array_equal(world.client.decrypt(result), x ^ y)
    keys = world.context.evaluator(world.client.evaluation_keys())
    with pytest.raises(tfhe.KeyMissingError):
        keys.pack(single.encrypt(x))


def test_same_array_twice_and_shapes(world):
    a = world.client.encrypt(np.ones(6, dtype=bool))
    with pytest.raises(tfhe.StateError):
        world.ev.nand(a, a)
    with pytest.raises(tfhe.StateError, match=r"\(6,\) and \(2, 3\)"):
        world.ev.nand(a, world.client.encrypt(np.ones((2, 3), dtype=bool)))
    with pytest.raises(TypeError, match="encrypted array"):
        world.ev.nand(np.ones(6, dtype=bool), np.ones(6, dtype=bool))
    with pytest.raises(TypeError, match="public bools"):
        world.ev.nand(a, np.ones(6))
