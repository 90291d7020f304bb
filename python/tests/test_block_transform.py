"""Matrices of blocks on several encrypted vectors, against NumPy."""

import numpy as np
import pytest
from conftest import device_names

from crenel import ckks

TOLERANCE = 2**-14
SIZE = 16


@pytest.fixture(scope="session", params=[name for name in device_names() if name != "ref"])
def device(request) -> str:
    """Not ref: what is above kernels is the same there, and takes ten times as long."""
    return request.param


@pytest.fixture
def blocks(rng) -> list[list]:
    def matrix() -> np.ndarray:
        return rng.normal(size=(SIZE, SIZE))

    return [[matrix(), None], [matrix(), {0: rng.normal(size=SIZE), -3: [1.0, 2j]}], [None, matrix()]]


def dense(block) -> np.ndarray:
    if block is None:
        return np.zeros((SIZE, SIZE))
    if isinstance(block, np.ndarray):
        return block
    out = np.zeros((SIZE, SIZE), complex)
    for offset, values in block.items():
        for i, v in enumerate(values):
            out[i, (i + offset) % SIZE] += v
    return out


def inputs_of(world, rng, transform, batch=1):
    x = rng.uniform(-1, 1, (transform.inputs, batch, SIZE))
    return x, [world.client.encrypt(v, transform.level, slots=SIZE) for v in x]


@pytest.mark.parametrize("keys", ["hoisted", "minimal"])
@pytest.mark.parametrize("batch", [1, 3])
def test_outputs_are_the_products(world, rng, blocks, keys, batch):
    transform = ckks.BlockTransform(world.context, blocks, level=3, slots=SIZE, keys=keys)
    assert (transform.inputs, transform.outputs, transform.level) == (2, 3, 3)
    ev = world.context.evaluator(world.client.evaluation_keys(rotations=transform.rotations))
    x, encrypted = inputs_of(world, rng, transform, batch)
    outputs = transform(ev, encrypted)
    assert [(c.level, c.slots) for c in outputs] == [(2, SIZE)] * 3
    for output, row in zip(outputs, blocks, strict=True):
        expected = sum(x[i] @ dense(block).T for i, block in enumerate(row))
        assert np.abs(world.client.decrypt(output) - np.squeeze(expected)).max() < TOLERANCE
    # Operands do as well, and the bound holds.
    again = transform(ev, [ev(c) for c in encrypted])
    assert again[0].to_bytes() == outputs[0].to_bytes()
    model = ckks.ErrorModel(world.params)
    bounds = transform(model, [model.input(max_abs=2.0, level=3, slots=SIZE)] * 2)
    for output, row, bound in zip(outputs, blocks, bounds, strict=True):
        expected = sum(x[i] @ dense(block).T for i, block in enumerate(row))
        assert np.abs(world.client.decrypt(output) - np.squeeze(expected)).max() < bound.max < 0.01


def test_needs_and_rotations(world, blocks):
    transform = ckks.BlockTransform(world.context, blocks, level=3, slots=SIZE)
    offsets = range(SIZE)
    assert transform.rotations == ckks.linear_transform_rotations(offsets, SIZE, inputs=2, outputs=3)

    def program(a, b):
        first, second, third = transform(a.evaluator, [a, b])
        return first + second + third

    x = world.client.encrypt(np.ones(SIZE), 3, slots=SIZE)
    needs = ckks.needs(program, world.params, x, x)
    halves = {k if 2 * k <= SIZE else k - SIZE for k in transform.rotations}
    assert set(needs.rotations) == halves
    assert needs.depth == 1
    with pytest.raises(ckks.StateError, match="inputs"):
        ckks.needs(lambda a: transform(a.evaluator, [a])[0], world.params, x)


def test_blocks_and_inputs_that_cannot_be(world, rng, blocks):
    def make(given):
        return ckks.BlockTransform(world.context, given, slots=SIZE)

    one = np.eye(SIZE)
    for bad, field in [
        ([], "outputs"),
        ([[]], "outputs"),
        ([[one, one], [one]], "output"),
        ([[one], [None]], "output"),
        ([[{}]], "count"),
        ([[one, {}]], "input"),
        ([[np.zeros(3)]], "shape"),
        ([[np.full((2, 2), np.nan)]], "offset"),
    ]:
        with pytest.raises(ckks.ParameterError) as caught:
            make(bad)
        assert field in caught.value.fields, caught.value
    transform = ckks.BlockTransform(world.context, blocks, level=3, slots=SIZE)
    _, encrypted = inputs_of(world, rng, transform)
    with pytest.raises(ckks.KeyMissingError) as missing:
        transform(world.context.evaluator(), encrypted)
    assert missing.value.fields["rotations"] == transform.rotations
    with pytest.raises(ckks.StateError) as caught:
        transform(world.ev, encrypted[:1])
    assert caught.value.fields["inputs"] == 1 and caught.value.fields["expected"] == 2
    with pytest.raises(ckks.StateError) as caught:
        transform(world.ev, [encrypted[0], world.client.encrypt([1.0], 2, slots=SIZE)])
    assert caught.value.fields["level"] == 2
    batch = world.client.encrypt(rng.uniform(-1, 1, (transform.inputs, SIZE)), transform.level, slots=SIZE)
    with pytest.raises(TypeError, match="got a ciphertext"):  # not its rows
        transform(world.ev, batch)
    with pytest.raises(TypeError):
        transform(world.ev, [1, 2])


def test_a_transpose_has_few_rotations():
    d = 128
    for slots in (2**14, 2**15):
        steps = ckks.linear_transform_rotations([(d - 1) * j % slots for j in range(1 - d, d)], slots)
        assert len(steps) < 50, slots  # 254 by steps of powers of two


def test_repr(world):
    transform = ckks.BlockTransform(world.context, [[np.eye(4), np.eye(4)]], 2, 4)
    assert "2 inputs and 1 outputs of 4 slots, level 2 -> 1" in repr(transform)
