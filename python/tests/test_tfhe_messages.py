"""Messages larger than a table: plain_modulus, floor, sign, decompose. What decryption tells of bits."""

import numpy as np
import pytest
from tfhe_world import encrypted, tfhe_world

from crenel import tfhe

# Sets whose noise leaves room for messages modulo 16, and the bits that a bootstrap reads of them.
LARGE = [
    ("toy-raising", 1, None),
    ("toy-raising", 3, None),
    ("toy-gadget2", 1, None),
    ("toy-gadget2", 1, "split"),
]


@pytest.fixture(params=LARGE, ids=str)
def world(request, device):
    name, packing, arithmetic = request.param
    return tfhe_world(name, device, packing, arithmetic)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_floor_sign_and_digits(world, rng, dtype):
    x = rng.permutation(np.arange(16, dtype=dtype)).reshape(2, 8)
    a = encrypted(world, x, plain_modulus=16)
    assert (a.plain_modulus, a.shape, a.dtype) == (16, x.shape, x.dtype)
    decrypt, ev = world.client.decrypt, world.ev
    np.testing.assert_array_equal(decrypt(a), x)
    again = world.context.ciphertext_from_bytes(a.to_bytes())
    for array in (a, again):
        for bits in (1, 2):
            floor = ev.floor(array, bits)
            assert floor.plain_modulus == 16
            found = decrypt(floor)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, x >> bits << bits)
    sign = ev.sign(again)
    assert sign.dtype == bool
    np.testing.assert_array_equal(decrypt(sign), x >= 8)
    np.testing.assert_array_equal(decrypt(ev.not_(sign)), x < 8)
    for bits in (1, 2):
        digits = ev.decompose(a, bits)
        assert len(digits) == 4 // bits
        for j, digit in enumerate(digits):
            np.testing.assert_array_equal(decrypt(digit), x >> (bits * j) & ((1 << bits) - 1))


def test_the_modulus_of_padded_sets_is_halved(device):
    world = tfhe_world("toy-lut4", device)
    x = np.arange(8, dtype=np.uint8)
    a = world.client.encrypt(x, plain_modulus=16)
    assert a.plain_modulus == 16
    np.testing.assert_array_equal(world.client.decrypt(world.ev.floor(a, 2)), x & 12)
    with pytest.raises(tfhe.ParameterError, match="0 to 7, element 7 is not"):
        world.client.encrypt(x + 1, plain_modulus=16)


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        ([1], {"plain_modulus": 0}, "even"),
        ([1], {"plain_modulus": -16}, "even"),
        ([1], {"plain_modulus": 15}, "even"),
        ([1], {"plain_modulus": 256}, r"2\^15, expected at most Q_KS = 2\^14"),
        ([1], {"plain_modulus": 130}, r"2\^15, expected at most Q_KS = 2\^14"),
        ([1], {"plain_modulus": 1 << 70}, "Q_KS"),
        ([16], {"plain_modulus": 16}, "0 to 15, element 0 is not"),
        ([-1], {"plain_modulus": 16}, "0 to 15, element 0 is not"),
        ([1.0], {"plain_modulus": 16}, "float64"),
        ([True], {"plain_modulus": 16}, "bool"),
        ([], {"plain_modulus": 16}, "at least one"),
        ([1], {"plain_modulus": 16, "bits": 4}, "bits=4"),
        ([1], {"plain_modulus": 16, "fan_in": 3}, "fan_in=3"),
        ([1], {"fan_in": 3}, "fan_in is of bits for gates, got fan_in=3 with values of int64"),
    ],
    ids=str,
)
def test_what_is_refused(device, values, options, match):
    client = tfhe_world("toy-gadget", device).client  # q = 2^9, Q_KS = 2^14
    with pytest.raises(tfhe.ParameterError, match=match):
        client.encrypt(np.array(values), **options)


def test_the_type_must_hold_every_message(device):
    client = tfhe_world("toy-gadget", device).client
    x = np.array([1, 100], dtype=np.int8)
    np.testing.assert_array_equal(client.decrypt(client.encrypt(x, plain_modulus=128)), x)
    with pytest.raises(tfhe.ParameterError, match="holds 15, got"):
        client.encrypt(np.array([True]), plain_modulus=16)
    with pytest.raises(TypeError):
        client.encrypt(x, plain_modulus=128.0)


def test_functions_that_the_set_cannot_compute(device):
    world = tfhe_world("toy-gadget", device)
    a = world.client.encrypt(np.array([1, 100]), plain_modulus=128)
    with pytest.raises(tfhe.UnsupportedError, match="noise"):
        world.ev.floor(a, 2)
    b = world.client.encrypt(np.array([1, 5]), plain_modulus=6)
    with pytest.raises(tfhe.ParameterError, match="power of two"):
        world.ev.sign(b)


def test_errors_show_no_decrypted_value(device):
    """Messages that are no bits under the type of bits: the error says so, and no more."""
    world = tfhe_world("toy-lut4", device)
    a = world.client.encrypt(np.array([13, 0], dtype=np.uint8), bits=4)
    bits = tfhe.Ciphertext(world.context, a._data, a.shape, np.dtype(bool))
    with pytest.raises(tfhe.StateError, match="values above 1") as caught:
        world.client.decrypt(bits)
    assert "13" not in str(caught.value) + str(caught.value.fields)
