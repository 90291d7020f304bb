"""Encrypted integers against NumPy, with the small set for tables."""

import numpy as np
import pytest
from tfhe_world import tfhe_world

from crenel import tfhe

TYPES = [np.uint8, np.int8, np.uint16, np.int32, np.uint64, np.int64]


@pytest.fixture
def world(device):
    return tfhe_world("toy-lut4", device)


def numbers(rng, dtype, count=6) -> np.ndarray:
    """Random values among those where carries and signs break."""
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.max, 0, 1, info.max // 2, info.max - 1], dtype=dtype)
    return np.where(
        rng.integers(0, 2, count),
        rng.permutation(np.resize(edges, count)),
        rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True),
    ).astype(dtype)


def check(world, result, expected):
    found = world.client.decrypt(result)
    assert found.dtype == expected.dtype and result.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_encryption_and_files(world, rng, dtype):
    x = numbers(rng, dtype).reshape(2, 3)
    a = world.client.encrypt(x)
    assert isinstance(a, tfhe.Integers)
    assert (a.shape, a.bits, a.signed) == (x.shape, 8 * x.itemsize, x.dtype.kind == "i")
    check(world, a, x)
    again = world.context.integers_from_bytes(a.to_bytes())
    assert repr(again) == repr(a)
    check(world, again, x)
    check(world, a[1], x[1])
    check(world, tfhe.concatenate([a, a[:1]]), np.concatenate([x, x[:1]]))
    with pytest.raises(tfhe.SerializationError):
        world.context.ciphertext_from_bytes(a.to_bytes())
    with pytest.raises(tfhe.SerializationError):
        world.context.integers_from_bytes(a.to_bytes()[:-1])


@pytest.mark.parametrize("dtype", TYPES[:4])
def test_arithmetic(world, rng, dtype):
    x, y = numbers(rng, dtype), numbers(rng, dtype)
    a, b = world.client.encrypt(x), world.client.encrypt(y)
    ev = world.ev
    check(world, ev.add(a, b), x + y)
    check(world, ev.sub(a, b), x - y)
    check(world, ev.neg(a), (0 - x).astype(dtype))
    check(world, ev.min(a, b), np.minimum(x, y))
    check(world, ev.max(a, b), np.maximum(x, y))
    check(world, ev.bit_and(a, b), x & y)
    check(world, ev.bit_or(a, b), x | y)
    check(world, ev.bit_xor(a, b), x ^ y)
    check(world, ev.bit_not(a), ~x)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16])
def test_products(world, rng, dtype):
    x, y = numbers(rng, dtype), numbers(rng, dtype)
    check(world, world.ev.mul(world.client.encrypt(x), world.client.encrypt(y)), x * y)
    check(world, world.ev.mul(world.client.encrypt(x), 5), x * dtype(5))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_comparisons(world, rng, dtype):
    x, y = numbers(rng, dtype, 8), numbers(rng, dtype, 8)
    y[:3] = x[:3]
    a, b = world.client.encrypt(x), world.client.encrypt(y)
    scalar = int(y[4])
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        call, expected = getattr(world.ev, name), getattr(np, name)
        check(world, call(a, b), expected(x, y))
        check(world, call(a, scalar), expected(x, y[4]))
        check(world, call(scalar, a), expected(y[4], x))
    condition = world.ev.less(a, b)
    check(world, world.ev.select(condition, a, b), np.where(x < y, x, y))
    check(world, world.ev.select(condition, a, scalar), np.where(x < y, x, y[4]))
    check(world, world.ev.and_(condition, world.ev.greater(b, scalar)), (x < y) & (y > y[4]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16])
def test_scalars_and_shifts(world, rng, dtype):
    x = numbers(rng, dtype)
    a, ev = world.client.encrypt(x), world.ev
    info = np.iinfo(dtype)
    for value in (0, 1, 3, info.max, info.min):
        scalar = dtype(value)
        check(world, ev.add(a, value), x + scalar)
        check(world, ev.add(value, a), x + scalar)
        check(world, ev.sub(a, value), x - scalar)
    check(world, ev.sub(3, a), dtype(3) - x)
    check(world, ev.max(a, 3), np.maximum(x, dtype(3)))
    check(world, ev.bit_and(a, 0x55), x & dtype(0x55))
    for count in (0, 1, 2, 3, 8 * x.itemsize - 1):
        check(world, ev.shift_left(a, count), (x << dtype(count)).astype(dtype))
        check(world, ev.shift_right(a, count), x >> dtype(count))
    for count in (-1, 8 * x.itemsize):
        with pytest.raises(tfhe.ParameterError):
            ev.shift_left(a, count)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64])
def test_negative_scalars(world, dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, -2, -1, 0, 1, info.max], dtype=dtype)
    a, ev = world.client.encrypt(x), world.ev
    condition = world.client.encrypt(x % 2 == 0)
    for value in (-1, -2, info.min):
        scalar = dtype(value)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
            call, expected = getattr(ev, name), getattr(np, name)
            check(world, call(a, value), expected(x, scalar))
            check(world, call(value, a), expected(scalar, x))
        check(world, ev.sub(value, a), scalar - x)
        for name, expected in (("min", np.minimum), ("max", np.maximum)):
            check(world, getattr(ev, name)(a, value), expected(x, scalar))
            check(world, getattr(ev, name)(value, a), expected(scalar, x))
        for name, expected in (
            ("bit_and", np.bitwise_and),
            ("bit_or", np.bitwise_or),
            ("bit_xor", np.bitwise_xor),
        ):
            check(world, getattr(ev, name)(a, value), expected(x, scalar))
        check(world, ev.select(condition, value, a), np.where(x % 2 == 0, scalar, x))
        check(world, ev.select(condition, a, value), np.where(x % 2 == 0, x, scalar))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64, np.int64])
def test_scalars_out_of_range(world, dtype):
    info = np.iinfo(dtype)
    a = world.client.encrypt(np.array([1, 0], dtype=dtype))
    for value in (int(info.min) - 1, int(info.max) + 1, 1 << 64, -(1 << 64)):
        for name in ("less", "equal", "max", "bit_xor"):
            with pytest.raises(tfhe.ParameterError, match=np.dtype(dtype).name) as caught:
                getattr(world.ev, name)(a, value)
            assert caught.value.fields["expected"] == f"{info.min}..{info.max}"
            assert str(value) not in str(caught.value).replace(f"{info.min} to {info.max}", "")
        for call in (lambda v: world.ev.sub(v, a), lambda v: world.ev.select(world.ev.equal(a, a), v, a)):
            with pytest.raises(tfhe.ParameterError, match=np.dtype(dtype).name):
                call(value)


def test_what_does_not_fit(world):
    a = world.client.encrypt(np.array([1, 2], dtype=np.uint8))
    with pytest.raises(tfhe.StateError, match="uint8 and int8"):
        world.ev.add(a, world.client.encrypt(np.array([1, 2], dtype=np.int8)))
    with pytest.raises(tfhe.StateError, match="shapes"):
        world.ev.add(a, world.client.encrypt(np.array([1, 2, 3], dtype=np.uint8)))
    for value in (256, -1):
        with pytest.raises(tfhe.ParameterError, match="uint8"):
            world.ev.less(a, value)
    for wrong in (1.5, "1", None, world.client.encrypt(np.array([1, 2]), bits=4)):
        with pytest.raises(TypeError):
            world.ev.add(a, wrong)
    with pytest.raises(TypeError):
        world.ev.lut(a, list(range(16)))
    with pytest.raises(TypeError):
        world.ev.nand(a, a)
    with pytest.raises(TypeError):
        world.ev.neg(3)
