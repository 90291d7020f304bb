"""Encryption, decryption, keys: types, shapes, sizes."""

import numpy as np
import pytest
from wire import resealed

from crenel import ckks

TOLERANCE = 2**-20


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, int, np.float32, float])
def test_real_types_decrypt_to_float64(world, rng, dtype):
    x = rng.integers(0, 2, world.slots).astype(dtype)
    result = world.client.decrypt(world.client.encrypt(x))
    assert result.dtype == np.float64 and result.shape == (world.slots,)
    assert np.abs(result - x.astype(float)).max() < TOLERANCE


@pytest.mark.parametrize("dtype", [np.complex64, complex])
def test_complex_types_decrypt_to_complex128(world, rng, dtype):
    z = (rng.normal(size=world.slots) + 1j * rng.normal(size=world.slots)).astype(dtype)
    c = world.client.encrypt(z)
    result = world.client.decrypt(c)
    assert not c.real and result.dtype == np.complex128
    assert np.abs(result - z).max() < TOLERANCE


@pytest.mark.parametrize("make", [list, tuple, lambda v: np.repeat(v, 2)[::2], lambda v: v[::-1]])
def test_sequences_and_strided_arrays(world, make):
    x = make(np.arange(8) / 8)
    assert np.abs(world.client.decrypt(world.client.encrypt(x))[:8] - np.asarray(x)).max() < TOLERANCE


def test_short_vectors_are_padded_with_zeros(world):
    result = world.client.decrypt(world.client.encrypt([1.0, 2.0]))
    assert np.abs(result - np.pad([1.0, 2.0], (0, world.slots - 2))).max() < TOLERANCE


def test_read_only_memory_is_accepted_and_inputs_stay_untouched(world, rng):
    x = rng.normal(size=world.slots)
    kept = x.copy()
    x.flags.writeable = False
    world.client.encrypt(x)
    assert np.array_equal(x, kept)


def test_results_own_their_memory(world):
    result = world.client.decrypt(world.client.encrypt([1.0]))
    result[0] = 5.0
    assert result.flags.writeable and result[0] == 5.0


@pytest.mark.parametrize("slots", [1, 2, 64])
def test_sparse_slots(world, rng, slots):
    z = rng.normal(size=slots) + 1j * rng.normal(size=slots)
    c = world.client.encrypt(z, slots=slots)
    assert c.slots == slots
    result = world.client.decrypt(c)
    assert result.shape == (slots,) and np.abs(result - z).max() < TOLERANCE


def test_level_and_scale(world):
    c = world.client.encrypt([0.5], level=2, scale=2.0**35)
    assert (c.level, c.scale) == (2, 2.0**35)
    assert abs(world.client.decrypt(c)[0] - 0.5) < 2**-15
    c = world.client.encrypt([0.5])
    assert (c.level, c.scale) == (world.params.normal_top_level, world.params.scale(c.level))
    assert c.params_id == world.params.id and c.components == 2 and c.batch == 1
    assert c.nbytes == 2 * sum(world.params.levels[c.level]) * world.params.ring_dim * 4


def test_a_matrix_is_a_batch(world, rng):
    x = rng.uniform(-1, 1, (3, world.slots))
    c = world.client.encrypt(x)
    assert c.batch == 3
    assert world.error(c, x) < TOLERANCE
    assert world.error(world.ev.multiply_rescale(c, c), x**2) < TOLERANCE
    assert world.error(world.ev.rotate(c, 1), np.roll(x, -1, axis=1)) < TOLERANCE


def test_encoding_without_encryption(world, rng):
    z = rng.normal(size=world.slots) * 1j
    plaintext = world.context.encode(z)
    assert np.abs(world.context.decode(plaintext) - z).max() < 2**-25
    assert world.error(world.client.encrypt(plaintext), z) < TOLERANCE
    real = world.context.decode(world.context.encode([1, 2]))
    assert real.dtype == np.float64


def test_decrypt_to_plaintext(world):
    plaintext = world.client.decrypt_to_plaintext(world.client.encrypt([0.25]))
    assert abs(world.context.decode(plaintext)[0] - 0.25) < TOLERANCE


def test_encryption_is_randomised(world):
    a, b = (world.client.encrypt([1.0]).to_bytes() for _ in range(2))
    assert a != b


def test_public_key(world, rng):
    x = rng.normal(size=world.slots)
    key = world.client.public_key()
    assert world.error(key.encrypt(x), x) < 2**-18
    assert world.error(key.encrypt(world.context.encode(x)), x) < 2**-18
    assert key.encrypt([1.0], level=1, slots=4).slots == 4


def test_evaluation_keys_hold_what_was_asked_for(world):
    keys = world.client.evaluation_keys(rotations=[3, -2, 3, 0])
    assert keys.rotations == [-2, 3] and keys.relinearisation and not keys.conjugate
    assert 0 < keys.wire_bytes < 0.6 * keys.nbytes
    none = world.client.evaluation_keys(relinearisation=False)
    assert none.rotations == [] and none.nbytes == 0


def test_secret_key_round_trip(world):
    secret = world.client.export_secret_key()
    again = world.context.client_from_secret_key(secret)
    assert abs(again.decrypt(world.client.encrypt([0.5]))[0] - 0.5) < TOLERANCE
    for bad in (secret[:-1], b"\x05" + secret[1:]):
        with pytest.raises(ckks.SerializationError):
            world.context.client_from_secret_key(bad)


def test_the_secret_is_never_shown(world):
    assert repr(world.client) == "<ckks.Client>"
    with pytest.raises(TypeError):
        __import__("pickle").dumps(world.client)


def test_wrong_key_decrypts_to_noise(world):
    """Under a forged name, that is: under its own it is refused."""
    other = world.context.keygen()
    theirs = world.client.encrypt([0.5])
    with pytest.raises(ckks.StateError) as caught:
        other.decrypt(theirs)
    assert caught.value.fields == {"found": theirs.secret_key_id, "expected": other.secret_key_id}
    forged = world.context.ciphertext_from_bytes(
        resealed(theirs.to_bytes(), "secret_key_id", other.secret_key_id)
    )
    assert np.abs(other.decrypt(forged)).max() > 1.0
