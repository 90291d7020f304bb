"""Matrices and diagonals on encrypted vectors, against NumPy."""

import numpy as np
import pytest
from conftest import World, open_context, toy

from crenel import ckks

TOLERANCE = 2**-15
SIZE = 16


@pytest.fixture
def z(world, rng) -> np.ndarray:
    return rng.uniform(-1, 1, SIZE) + 1j * rng.uniform(-1, 1, SIZE)


@pytest.fixture(scope="module")
def keys(world) -> ckks.EvaluationKeys:
    return world.client.evaluation_keys(rotations=range(1, SIZE), relinearisation=False)


def apply(world, transform, vector, keys=None) -> np.ndarray:
    keys = keys or world.client.evaluation_keys(rotations=transform.rotations, relinearisation=False)
    encrypted = world.client.encrypt(vector, transform.level, slots=transform.slots)
    result = transform(world.context.evaluator(keys), encrypted)
    assert (result.level, result.slots) == (transform.level - 1, transform.slots)
    assert result.scale == pytest.approx(world.params.scale(result.level), rel=1e-12)
    return world.client.decrypt(result)


@pytest.mark.parametrize("mode", ["hoisted", "minimal"])
@pytest.mark.parametrize("shape", [(SIZE, SIZE), (5, 11), (1, SIZE), (SIZE, 1)])
def test_dense_matrices(world, rng, z, mode, shape):
    rows, columns = shape
    matrix = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    transform = world.context.linear_transform(matrix, slots=SIZE, keys=mode)
    assert (transform.level, transform.slots, transform.keys) == (world.top, SIZE, mode)
    expected = np.zeros(SIZE, complex)
    expected[:rows] = matrix @ z[:columns]
    assert np.abs(apply(world, transform, z) - expected).max() < TOLERANCE


def test_the_keys_are_exactly_the_rotations(world, rng):
    matrix = rng.normal(size=(SIZE, SIZE))
    hoisted = world.context.linear_transform(matrix, slots=SIZE)
    minimal = world.context.linear_transform(matrix, slots=SIZE, keys="minimal")
    assert len(minimal.rotations) == 2 < len(hoisted.rotations)
    assert hoisted.baby_steps * hoisted.giant_steps == SIZE
    assert hoisted.plaintext_bytes > minimal.plaintext_bytes > 0  # minimal: without special primes
    for transform, mode in ((hoisted, "hoisted"), (minimal, "minimal")):
        assert transform.rotations == ckks.linear_transform_rotations(range(SIZE), SIZE, keys=mode)
    sixteen = world.context.linear_transform(matrix, slots=SIZE, baby_steps=SIZE)
    assert (sixteen.baby_steps, sixteen.giant_steps) == (SIZE, 1)
    assert sixteen.rotations == list(range(1, SIZE))


def test_diagonals_by_offset(world, rng, keys, z):
    diagonals = {0: rng.normal(size=SIZE), -3: rng.normal(size=SIZE), np.int64(5): [2.0, 1j]}
    padded = np.zeros(SIZE, complex)
    padded[:2] = [2.0, 1j]
    expected = diagonals[0] * z + diagonals[-3] * np.roll(z, 3) + padded * np.roll(z, -5)
    transform = world.context.linear_transform(diagonals, level=2, slots=SIZE)
    assert np.abs(apply(world, transform, z, keys) - expected).max() < TOLERANCE


def test_all_slots_and_a_batch(world, rng):
    n = world.slots
    diagonals = {0: rng.uniform(-1, 1, n), 1: rng.uniform(-1, 1, n), -1: rng.uniform(-1, 1, n)}
    transform = world.context.linear_transform(diagonals)
    assert transform.slots == n
    x = rng.uniform(-1, 1, (2, n))
    expected = [sum(d * np.roll(row, -k) for k, d in diagonals.items()) for row in x]
    assert np.abs(apply(world, transform, x) - expected).max() < TOLERANCE


def test_the_evaluator_takes_transforms_and_matrices(world, rng, keys, z):
    matrix = rng.normal(size=(SIZE, SIZE))
    ev = world.context.evaluator(keys)
    c = world.client.encrypt(z, level=3, slots=SIZE)
    transform = world.context.linear_transform(matrix, 3, SIZE)
    for result in (
        ev.linear_transform(transform, c),
        ev.linear_transform(matrix, ev(c)),
        ev.linear_transform(matrix.tolist(), c),
        transform(ev, ev(c)),
    ):
        assert world.error(result, matrix @ z) < TOLERANCE
    with pytest.raises(ckks.StateError, match="level"):
        ev.linear_transform(transform, world.client.encrypt(z, level=2, slots=SIZE))


def test_a_scale_of_the_callers_own(world, z):
    transform = world.context.linear_transform(np.eye(SIZE), slots=SIZE, scale=2.0**30)
    ev = world.context.evaluator()
    result = transform(ev, world.client.encrypt(z, slots=SIZE))
    ratio = world.params.rescale_ratio(world.top)
    assert result.scale == pytest.approx(world.params.scale(world.top) * 2.0**30 / ratio, rel=1e-12)


def test_matrices_that_cannot_be(world):
    make = world.context.linear_transform
    for bad, field in [
        (lambda: make(np.zeros(4)), "shape"),
        (lambda: make(np.zeros((2, 2, 2))), "shape"),
        (lambda: make(np.zeros((0, 4))), "shape"),
        (lambda: make(np.zeros((17, 4)), slots=16), "rows"),
        (lambda: make(np.zeros((4, 17)), slots=16), "columns"),
        (lambda: make([["a", "b"]]), "dtype"),
        (lambda: make([[1, np.nan]]), "offset"),
        (lambda: make({0: [1, np.inf]}), "offset"),
        (lambda: make({}), "count"),
        (lambda: make({16: [1]}, slots=16), "offset"),
        (lambda: make({-16: [1]}, slots=16), "offset"),
        (lambda: make({2**70: [1]}), "offset"),
        (lambda: make({1: [1], -15: [1]}, slots=16), "offset"),
        (lambda: make({0: np.zeros(17)}, slots=16), "values"),
        (lambda: make({0: np.zeros((2, 2))}, slots=16), "values"),
        (lambda: make(np.eye(2), slots=3), "slots"),
        (lambda: make(np.eye(2), slots=2 * world.slots), "slots"),
        (lambda: make(np.eye(2), level=0), "level"),
        (lambda: make(np.eye(2), level=world.top + 1), "level"),
        (lambda: make(np.eye(2), level=-1), "level"),
        (lambda: make(np.eye(2), baby_steps=3), "baby_steps"),
        (lambda: make(np.eye(2), baby_steps=-1), "baby_steps"),
        (lambda: make(np.eye(2), keys="few"), "keys"),
        (lambda: make(np.eye(2), scale=0.0), "scale"),
        (lambda: ckks.linear_transform_rotations([0, 16], 16), "offset"),
    ]:
        with pytest.raises(ckks.ParameterError) as caught:
            bad()
        assert field in caught.value.fields, caught.value
    with pytest.raises(TypeError):
        make({"one": [1]})
    with pytest.raises(TypeError):
        make({1.5: [1]})


def test_vectors_and_keys_that_do_not_fit(world, rng, keys, device):
    transform = world.context.linear_transform(rng.normal(size=(SIZE, SIZE)), 2, SIZE)
    ev, encrypt = world.context.evaluator(keys), world.client.encrypt
    for bad in (encrypt([1.0], 3, slots=SIZE), encrypt([1.0], 2, slots=8), encrypt([1.0], 2)):
        with pytest.raises(ckks.StateError) as caught:
            transform(ev, bad)
        assert {"level", "slots"} & set(caught.value.fields)
    good = encrypt([1.0], 2, slots=SIZE)
    with pytest.raises(ckks.KeyMissingError) as missing:
        transform(world.context.evaluator(), good)
    assert missing.value.fields["rotations"] == transform.rotations
    other = World(open_context(toy("toy-leveled-n13-s40"), device))
    with pytest.raises(ckks.StateError, match=world.params.id):
        transform(other.ev, good)
    with pytest.raises(ckks.StateError, match=other.params.id):
        transform(ev, other.client.encrypt([1.0], 1, slots=SIZE))
    with pytest.raises(TypeError):
        transform(ev, "text")


def test_repr(world):
    transform = world.context.linear_transform(np.eye(4), 2, 4)
    assert "4 slots, level 2 -> 1" in repr(transform)
