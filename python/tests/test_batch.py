"""Batches: matrices in, matrices out; one vector, some, and joined again."""

import numpy as np
import pytest

from crenel import ckks

TOLERANCE = 2**-18


@pytest.fixture
def rows(world, rng) -> np.ndarray:
    return rng.uniform(-1, 1, (4, world.slots))


@pytest.fixture
def batch(world, rows) -> ckks.Ciphertext:
    return world.client.encrypt(rows)


def test_shapes_in_are_shapes_out(world, rng):
    encrypt, decrypt = world.client.encrypt, world.client.decrypt
    for shape in [(world.slots,), (2, world.slots), (5, world.slots)]:
        x = rng.uniform(-1, 1, shape)
        for c in (encrypt(x), encrypt(world.context.encode(x)), world.client.public_key().encrypt(x)):
            found = decrypt(c)
            assert found.shape == shape and found.dtype == np.float64
            assert np.abs(found - x).max() < TOLERANCE
            assert len(c) == c.batch == (shape[0] if len(shape) == 2 else 1)
    z = rng.normal(size=(3, 8)) + 1j * rng.normal(size=(3, 8))
    found = decrypt(encrypt(z, slots=8))
    assert found.shape == (3, 8) and found.dtype == np.complex128 and np.abs(found - z).max() < TOLERANCE
    assert decrypt(encrypt([[1.0, 2.0]])).shape == (world.slots,)  # one row is a vector
    assert decrypt(encrypt(np.ones((2, 3)))).shape == (2, world.slots)  # padded with zeros
    for shape in [(), (2, 2, 2), (0, 4)]:
        with pytest.raises(ckks.ParameterError):
            encrypt(np.zeros(shape))


def test_vectors_and_ranges(world, rows, batch):
    for key in (0, 3, -1, -4, np.int64(2)):
        one = batch[key]
        assert (one.batch, one.level, one.scale) == (1, batch.level, batch.scale)
        assert world.error(one, rows[key]) < TOLERANCE
    for key in (slice(1, 3), slice(None), slice(-2, None), slice(2, 100), slice(0, 4, 1)):
        assert batch[key].batch == len(rows[key])
        assert world.error(batch[key], rows[key]) < TOLERANCE
    assert batch[:].to_bytes() == ckks.concatenate(list(batch)).to_bytes()
    assert [c.batch for c in batch] == [1] * 4


def test_ranges_that_cannot_be(batch):
    for index in (4, -5):
        with pytest.raises(IndexError, match="batch of 4"):
            batch[index]
    for key in (slice(0, 4, 2), slice(None, None, -1), slice(3, 1), slice(9, 12)):
        with pytest.raises(ckks.ParameterError) as caught:
            batch[key]
        assert caught.value.fields["batch"] == 4
    for key in (1.0, "0", None, (0, 1)):
        with pytest.raises(TypeError):
            batch[key]


def test_concatenate(world, rows, batch):
    parts = [batch[2:], world.client.encrypt(rows[0]), world.ev(batch[1])]
    joined = ckks.concatenate(parts)
    assert joined.batch == 4 and "batch of 4" in repr(joined)
    assert world.error(joined, rows[[2, 3, 0, 1]]) < TOLERANCE
    mixed = ckks.concatenate([batch, world.client.encrypt([1j])])
    assert not mixed.real and mixed[:4].batch == 4
    with pytest.raises(ckks.ParameterError):
        ckks.concatenate([])
    for other in (world.client.encrypt(rows[0], level=2), world.client.encrypt([1.0], slots=8)):
        with pytest.raises(ckks.StateError) as caught:
            ckks.concatenate([batch, other])
        assert caught.value.fields["part"] == 1
    for wrong in ([batch, 3], [None], 3):
        with pytest.raises(TypeError):
            ckks.concatenate(wrong)


def test_operations_take_batches(world, rows, batch):
    result = (world.ev(batch) * rows + 1).rotate(1)  # a row for a row
    assert world.error(result, np.roll(rows * rows + 1, -1, axis=1)) < TOLERANCE
    assert world.error(world.ev(batch) - rows[0], rows - rows[0]) < TOLERANCE  # one row for all
    eager = world.ev.rotate(world.ev.multiply_rescale(batch, batch), 1)
    for i in range(4):
        one = world.ev.rotate(world.ev.multiply_rescale(batch[i], batch[i]), 1)
        assert eager[i].to_bytes() == one.to_bytes()


def test_a_ciphertext_is_no_array(batch):
    for use in (lambda: np.asarray(batch), lambda: np.ones(4) + batch, lambda: batch * np.ones(4)):
        with pytest.raises(TypeError):
            use()
