"""TFHE on several devices: the bits of one device for arrays of any size, and whole programs on shares."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from pool_world import pool_devices, require, seeded
from tfhe_world import quiet

import crenel
from crenel import tfhe

SQUARE = [v * v % 16 for v in range(16)]


class Pooled:
    def __init__(self, names: list[str], name: str, packing: int) -> None:
        params = tfhe.preset(name, allow_insecure=True)
        self.pool = quiet(lambda: tfhe.DevicePool(params, names, packing=packing))
        self.client = self.pool.context.keygen()
        keys = self.client.evaluation_keys()
        self.ev = self.pool.evaluator(keys, max_p_fail_log2=0)
        self.one = self.pool.context.evaluator(keys, max_p_fail_log2=0, circuits="lean")


@pytest.fixture(scope="module", params=pool_devices(), ids=",".join)
def names(request) -> list[str]:
    require(request.param)
    return request.param


@pytest.fixture(scope="module")
def lut(names) -> Pooled:
    return Pooled(names, "toy-lut4", 1)


@pytest.fixture(scope="module", params=[1, 4], ids="packing {}".format)
def gates(request, names) -> Pooled:
    return Pooled(names, "toy-gadget", request.param)


def same(found, expected) -> bool:
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    return words(found) == words(expected) and found.shape == expected.shape


def words(array) -> bytes:
    """The file of a copy: fresh parts, which an operation may pass on, are stored as their seeds."""
    return array.reshape(-1)[:].to_bytes()


@pytest.mark.parametrize("size", [1, 2, 3, 11, 64])
def test_gates_of_arrays(gates, size):
    rng = seeded()
    x, y, z = rng.integers(0, 2, (3, size)).astype(bool)
    a, b, c = (gates.client.encrypt(v) for v in (x, y, z))
    for name in ("and_", "nand", "xor", "or_", "xnor"):
        assert same(getattr(gates.ev, name)(a, b), getattr(gates.one, name)(a, b)), name
    assert same(gates.ev.mux(a, b, c), gates.one.mux(a, b, c))
    assert same(gates.ev.not_(a), gates.one.not_(a))
    assert same(gates.ev.refresh(a), gates.one.refresh(a))
    assert same((gates.ev(a) & b) ^ c, (gates.one(a) & b) ^ c)
    assert same(gates.ev.and_(a, True), gates.one.and_(a, True))


def test_tables_and_messages(lut):
    rng = seeded()
    m, n = (lut.client.encrypt(rng.integers(0, 16, (5, 3)), bits=4) for _ in range(2))
    which = rng.integers(0, 2, (5, 3))
    for call in (
        lambda ev: ev.lut(m, SQUARE),
        lambda ev: ev.lut(m, [SQUARE, list(range(16))], index=which),
        lambda ev: ev.one_hot(m),
        lambda ev: ev.histogram(m, 4),
        lambda ev: ev.less(m, n),
        lambda ev: ev.select(ev.equal(m, n), m, n),
        lambda ev: ev.add(m, 3),
        lambda ev: ev.sum(m, 0),
        lambda ev: ev.sub(m, n),
    ):
        assert same(call(lut.ev), call(lut.one))


def test_integers(lut):
    rng = seeded()
    a, b = (lut.client.encrypt(rng.integers(0, 256, 4).astype(np.uint8)) for _ in range(2))
    for call in (
        lambda ev: ev.add(a, b),
        lambda ev: ev.mul(a, 5),
        lambda ev: ev.divmod(a, b),
        lambda ev: ev.less(a, b),
        lambda ev: ev.amax(a),
        lambda ev: ev.shift_left(a, 3),
        lambda ev: ev.cast(a, "uint16"),
        lambda ev: ev.take(list(range(256)), a, dtype="uint8"),
        lambda ev: ev(a) + b,
        lambda ev: ev.random(3, "uint8", seed=b"s" * 32),
    ):
        assert same(call(lut.ev), call(lut.one))


def test_a_program_runs_on_every_share(lut):
    rng = seeded()
    a, b = (lut.client.encrypt(rng.integers(0, 256, (7, 2)).astype(np.uint8)) for _ in range(2))
    seen = []

    def program(ev, x, y):
        seen.append((ev, x.shape[0]))
        larger = ev.select(ev.less(x, y), y, x)
        return larger, [ev.equal(x, y), ev(x) & y]

    found, expected = lut.ev.split(program, a, b), program(lut.one, a, b)
    assert same(found, expected)
    assert (
        sorted(rows for ev, rows in seen if ev is not lut.one) == sorted([3, 2, 2][: len(lut.pool)])
        or len(lut.pool) != 3
    )
    assert type(found[1][1]) is tfhe.Integers  # bound to no device's evaluator
    same(lut.one.add(found[0], a), lut.one.add(expected[0], a))


def test_programs_on_packed_rows(gates):
    rng = seeded()
    x, y = rng.integers(0, 2, (2, 9, 2)).astype(bool)
    a, b = gates.client.encrypt(x), gates.client.encrypt(y)
    assert same(gates.ev.split(lambda ev, u, v: ev.nand(u, v), a, b), gates.one.nand(a, b))


def test_an_error_says_on_which_device(lut):
    a = lut.client.encrypt(np.arange(6, dtype=np.uint8))

    def program(ev, x):
        return ev.add(x, 1) if ev is lut.ev.evaluators[0] else ev.shift_left(x, -1)

    with pytest.raises(tfhe.ParameterError, match=lut.pool.devices[1].name) as caught:
        lut.ev.split(program, a)
    assert caught.value.fields["worker"] in range(1, len(lut.pool))
    other = quiet(
        lambda: tfhe.Context(tfhe.preset("toy-gadget", allow_insecure=True), device=lut.pool.devices[0])
    )
    foreign = other.keygen().encrypt(np.ones(3, bool))
    with pytest.raises(tfhe.StateError):
        lut.ev.refresh(foreign)
    with pytest.raises(tfhe.StateError):
        lut.pool.evaluator(other.keygen().evaluation_keys())
    assert same(lut.ev.add(a, 1), lut.one.add(a, 1))


def test_wrong_calls(lut):
    a = lut.client.encrypt(np.arange(4, dtype=np.uint8))
    with pytest.raises(tfhe.ParameterError, match="equal lengths"):
        lut.ev.split(lambda ev, x, y: x, a, a[:2])
    with pytest.raises(tfhe.ParameterError, match="at least one array"):
        lut.ev.split(lambda ev: a)
    with pytest.raises(TypeError, match="encrypted arrays with an axis"):
        lut.ev.split(lambda ev, x: x, a[0])
    with pytest.raises(TypeError, match="returns encrypted arrays"):
        lut.ev.split(lambda ev, x: 5, a)
    keys = lut.client.evaluation_keys()
    with pytest.raises(tfhe.ParameterError, match="'lean' or 'fast'"):
        lut.pool.evaluator(keys, circuits="automatic")
    with pytest.raises(tfhe.ParameterError):
        lut.pool.evaluator(keys, max_p_fail_log2=1.0)
    with pytest.raises(tfhe.ParameterError, match="no devices"):
        tfhe.DevicePool(lut.pool.params, [])
    with pytest.raises(crenel.UnsupportedError):
        lut.pool.__reduce__()


def test_threads_share_a_pool(gates):
    rng = seeded()
    bits = rng.integers(0, 2, (4, 13)).astype(bool)
    arrays = [gates.client.encrypt(row) for row in bits]
    found: list[object] = [None] * 4

    def work(i: int) -> None:
        found[i] = gates.ev.nand(arrays[i], arrays[3 - i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        assert same(found[i], gates.one.nand(arrays[i], arrays[3 - i]))


def test_progress_counts_elements(gates):
    a = gates.client.encrypt(np.ones(24, bool))
    seen: list[tuple[int, int, str]] = []
    with crenel.progress(lambda *now: seen.append(now)):
        found = gates.ev.nand(a, gates.ev.not_(a))
    assert seen[0] == (0, 24, "elements") and seen[-1] == (24, 24, "elements")
    assert gates.client.decrypt(found).shape == (24,)
    assert "keys: " in gates.ev.describe()


def test_keys_on_another_model_of_device_are_loaded_anew():
    """Whose bootstrapping keys lie in another order: results are the same bits."""
    params = tfhe.preset("toy-lut4", allow_insecure=True)
    pool = quiet(lambda: tfhe.DevicePool(params, ["cpu", "ref"]))
    client = pool.context.keygen()
    keys = client.evaluation_keys()
    ev, one = pool.evaluator(keys, max_p_fail_log2=0), pool.context.evaluator(keys, max_p_fail_log2=0)
    m = client.encrypt(seeded().integers(0, 16, 4), bits=4)
    assert same(ev.lut(m, SQUARE), one.lut(m, SQUARE))
