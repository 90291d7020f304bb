"""NumPy's functions on encrypted arrays beside arithmetic: any, all, clip, elements moved; signed tables."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tfhe_world import tfhe_world

from crenel import tfhe
from crenel.errors import ParameterError, StateError


@pytest.fixture(scope="module")
def world():
    return tfhe_world("toy-lut4", "cpu")


@pytest.fixture(scope="module")
def gates():
    """A set without padding: bits by gates of two inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfhe.InsecureParametersWarning)
        context = tfhe.Context(tfhe.preset("toy-gadget", allow_insecure=True), device="cpu")
    client = context.keygen()
    return client, context.evaluator(client.evaluation_keys(), max_p_fail_log2=0)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), -1])
@pytest.mark.parametrize("function", [np.any, np.all])
def test_any_and_all(world, rng, function, axis):
    """Of 1 to 40 bits an element, mostly all equal, which is where they differ from any one bit."""
    for length in (1, 2, 15, 16, 17, 40):
        x = rng.random((length, 2, 3)) < (0.03 if function is np.any else 0.97)
        x[:, 0, 0] = function is np.all
        a = world.ev(world.client.encrypt(x))
        for keepdims in (False, True):
            found = function(a, axis=axis, keepdims=keepdims)
            assert isinstance(found, tfhe.BoundCiphertext)
            np.testing.assert_array_equal(
                world.client.decrypt(found), function(x, axis=axis, keepdims=keepdims)
            )
            if length > 2:
                break
    ufunc = np.logical_or if function is np.any else np.logical_and
    np.testing.assert_array_equal(world.client.decrypt(ufunc.reduce(a, axis=0)), ufunc.reduce(x, axis=0))
    np.testing.assert_array_equal(world.client.decrypt(getattr(a, function.__name__)(0)), function(x, axis=0))


def test_any_and_all_by_gates(gates, rng):
    client, ev = gates
    for length in (1, 2, 5):
        x = rng.random((length, 2)) < 0.5
        a = ev(client.encrypt(x))
        np.testing.assert_array_equal(client.decrypt(a.any(0)), x.any(0))
        np.testing.assert_array_equal(client.decrypt(np.all(a, axis=0)), x.all(0))


MOVES = {
    "transpose": lambda x: np.transpose(x, (1, 2, 0)),
    "T": lambda x: x.T,
    "ravel": lambda x: x.ravel(),
    "flip": lambda x: np.flip(x, 1),
    "roll": lambda x: np.roll(x, 2, axis=2),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "squeeze": lambda x: np.squeeze(x[:1]),
    "expand_dims": lambda x: np.expand_dims(x, 1),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 2, 3, 4)),
    "repeat": lambda x: np.repeat(x, 2, axis=0),
    "tile": lambda x: np.tile(x, (1, 2, 1)),
    "stack": lambda x: np.stack([x[0], x[1]], axis=-1),
    "take": lambda x: np.take(x, [2, 0], axis=1),
}


@pytest.mark.parametrize("name", MOVES)
def test_elements_moved(world, rng, name):
    x = rng.integers(0, 256, (2, 3, 4), dtype=np.uint8)
    for values in (x, x % 2 == 1):
        found = MOVES[name](world.ev(world.client.encrypt(values)))
        np.testing.assert_array_equal(world.client.decrypt(found), MOVES[name](values))
    assert isinstance(~found, tfhe.BoundCiphertext)


def test_clip_square_and_dot(world, rng):
    x, w = rng.integers(-128, 128, (3, 4), dtype=np.int8), rng.integers(-9, 9, 4, dtype=np.int8)
    a = world.ev(world.client.encrypt(x))
    for low, high in ((-5, 60), (None, 3), (3, None)):
        np.testing.assert_array_equal(world.client.decrypt(np.clip(a, low, high)), np.clip(x, low, high))
    np.testing.assert_array_equal(world.client.decrypt(np.square(a)), np.square(x))
    np.testing.assert_array_equal(world.client.decrypt(np.dot(a, w)), np.dot(x, w))


def test_what_numpy_would_refuse_too(world):
    a = world.ev(world.client.encrypt(np.arange(6, dtype=np.uint8).reshape(2, 3)))
    bits = a > 2
    with pytest.raises(ParameterError, match="axis 2 is out of bounds"):
        np.flip(a, 2)
    with pytest.raises(ParameterError, match="broadcast"):
        np.broadcast_to(a, (2, 4))
    with pytest.raises(ParameterError, match="axis 2"):
        np.any(bits, axis=2)
    with pytest.raises(StateError, match="expected equal ones"):
        np.stack([a, a[0]])
    with pytest.raises(TypeError, match="neither"):
        np.clip(a)
    with pytest.raises(TypeError, match="bits"):
        world.ev.any(a)
    with pytest.raises(TypeError, match=r"np\.dot of shapes"):
        np.dot(a, np.ones((3, 2), dtype=np.uint8))
    with pytest.raises(ParameterError, match="out of bounds"):
        np.take(a, [6])


def test_signed_tables(world):
    """A table of 32 values, the upper ones for -16..-1, which sums of messages modulo 16 never are."""
    ev, client = world.ev, world.client
    a = client.encrypt(np.arange(16), bits=4)
    positive = [int(0 < m < 16) for m in range(32)]  # f(m) + f(m - 16) = 1, so f(-16) = 1 - f(0)
    positive[16] = 1
    np.testing.assert_array_equal(client.decrypt(ev.lut(a, positive)), np.arange(16) > 0)
    positive[16] = 0
    with pytest.raises(ParameterError, match="the entries of 0 and -16 add up to 0, expected .* one sum, 1"):
        ev.lut(a, positive)
    with pytest.raises(ParameterError, match="expected 16, or 32 of a signed table"):
        ev.lut(a, positive[:-1])


def test_masked_places_are_refused(world):
    """They were encrypted and computed with as what stands under the mask."""
    ev, client = world.ev, world.client
    values = np.uint8([1, 2, 3])
    clear, masked = (np.ma.array(values, mask=[0, middle, 0]) for middle in (0, 1))
    a, messages = ev(client.encrypt(clear)), ev(client.encrypt(clear, bits=2))
    bits = ev(client.encrypt(clear > 1))
    np.testing.assert_array_equal(client.decrypt(a + clear), values + values)
    for f in (
        lambda: client.encrypt(masked), lambda: client.encrypt(masked, dtype="uint8"),
        lambda: client.encrypt(masked, bits=4), lambda: client.encrypt(masked, plain_modulus=8),
        lambda: client.encrypt(masked > 1), lambda: client.encrypt([1, np.ma.masked], dtype="uint8"),
        lambda: client.encrypt([masked, masked], dtype="uint8"), lambda: client.encrypt(np.ma.masked),
        lambda: a + masked, lambda: np.add(masked, a), lambda: ev.mul(messages, masked),
        lambda: a + [1, np.ma.masked, 2], lambda: messages == masked, lambda: ev.select(bits, a, masked),
        lambda: bits & (masked > 1), lambda: ev.dot(a, masked), lambda: ev.take(masked, a),
        lambda: ev.lut(messages, np.ma.array([0, 1, 2, 3], mask=[1, 0, 0, 0])), lambda: a[masked - 1],
        lambda: client.phase_errors(messages, masked),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match="has masked places, expected numbers in all of them"):
            f()


def test_encrypted_arrays_where_public_ones_are_expected(world):
    """Outputs and arguments that NumPy hands to an encrypted array's own protocol."""
    e = world.ev(world.client.encrypt(np.uint8([1, 2, 3])))
    x = np.uint8([1, 2, 3])
    for f in (
        lambda: np.add(x, x, out=e), lambda: np.add.reduce(x, out=e), lambda: np.add.accumulate(x, out=e),
        lambda: np.divmod(x, x, out=(e, None)), lambda: np.sum(x, out=e),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"^np\.\w+: encrypted arrays take no out$"):
            f()
    with pytest.raises(TypeError, match=r"^np\.tile: expected an encrypted array first, got int$"):
        np.tile(10, e)
    for f in (lambda: np.tile(e, e), lambda: np.take(e, e), lambda: np.repeat(e, repeats=e)):
        with pytest.raises(TypeError, match=r"^np\.\w+: expected a public argument, got an encrypted array$"):
            f()
    with pytest.raises(ParameterError, match=r"^np\.take: "):
        np.take(e, 2**63)


@pytest.mark.parametrize("index", [2**63, -(2**63) - 1, 2**70, np.uint64(2**63)])
def test_indices_beyond_64_bits(world, index):
    e = world.client.encrypt(np.uint8([1, 2, 3]))
    for array in (e, world.ev(e)):
        for key in (index, (index,)):
            with pytest.raises(IndexError, match="beyond 64 bits"):
                array[key]
