"""Programs of several operations on encrypted integers as one circuit, against the operations, and errors."""

from __future__ import annotations

import os

import numpy as np
import pytest
from tfhe_world import quiet, tfhe_world

from crenel import tfhe
from crenel.errors import ParameterError, StateError, UnsupportedError
from crenel.workloads.integers.transfer import transfer

DEVICES = ["ref", "cpu"]


@pytest.fixture
def fresh() -> np.random.Generator:
    seed = int(os.environ.get("CRENEL_SEED", "0")) or int.from_bytes(os.urandom(8), "little")
    print(f"CRENEL_SEED={seed}")
    return np.random.default_rng(seed)


def mixed(ev, a, b, flag):
    """Operators, NumPy's functions, gates, types, tables and public numbers."""
    low = np.minimum(a, b)
    wide = a.astype("uint16") * 5
    chosen = np.where((a < b) & ~flag, a - 3, b ^ 1)
    shifted = (a << 1) | (b >> ev.cast(a % 4, "uint8"))
    return low, [wide, chosen, shifted], ev.take([7, 1, 250], a % 3), ev.to_integers(flag | (a == b))


def flat(found):
    return [x for part in found for x in flat(part)] if isinstance(found, (list, tuple)) else [found]


@pytest.mark.parametrize("device", DEVICES)
def test_a_program_is_its_operations(device, fresh):
    world = tfhe_world("toy-lut4", device)
    x, y = fresh.integers(0, 256, (2, 3)).astype(np.uint8)
    y[0] = x[0]
    a, b, flag = (world.client.encrypt(v) for v in (x, y, fresh.integers(0, 2, 3).astype(bool)))
    ev = world.ev
    found, alone = ev.circuit(mixed, a, b, flag), mixed(ev, ev(a), ev(b), ev(flag))
    assert isinstance(found, tuple) and isinstance(found[1], list)
    for one, other in zip(flat(found), flat(alone), strict=True):
        assert (one.kind, one.dtype, one.shape) == (other.kind, other.dtype, other.shape)
        np.testing.assert_array_equal(world.client.decrypt(one), world.client.decrypt(other))
    assert type(found[0]) is tfhe.Integers  # without an evaluator, as methods give them


@pytest.mark.parametrize("form", ["lean", "fast", "automatic"])
def test_broadcast_arrays_of_the_program_and_of_the_outside(form, fresh):
    world = tfhe_world("toy-lut4", "cpu")
    ev = world.context.evaluator(world.keys, max_p_fail_log2=0, circuits=form)
    x, y = fresh.integers(-8, 8, (2, 1)).astype(np.int8), fresh.integers(-8, 8, 3).astype(np.int8)
    known = fresh.integers(0, 2, (2, 3)).astype(bool)
    a, b, outside = world.client.encrypt(x), world.client.encrypt(y), world.client.encrypt(x + y)
    total, most = ev.circuit(
        lambda ev, a, b: (
            ev.sum(a + outside) if a.size == 1 else a + outside - b,
            ev.select(known & (a > b), a, b),
        ),
        a,
        b,
    )
    np.testing.assert_array_equal(world.client.decrypt(total), 2 * x + np.zeros_like(y))
    np.testing.assert_array_equal(
        world.client.decrypt(most), np.where(known & (x > y), x, y + np.zeros_like(x))
    )
    same = ev.circuit(
        lambda ev, a: ev.circuit(lambda inner, x: x + x, a)[...].reshape(-1), a
    )  # one in another
    np.testing.assert_array_equal(world.client.decrypt(same), (2 * x).ravel())


def test_rounds_of_a_transfer():
    """Fewer than its operations one by one have; what runs is what is said."""
    world = tfhe_world("toy-lut4", "cpu")
    ev = world.context.evaluator(world.keys, max_p_fail_log2=0, circuits="fast")
    one, other = (world.client.encrypt([v], dtype="uint8") for v in (9, 200))
    rounds = ev.circuit_rounds(lambda ev, a, b: (a >= b, b - ev.select(a >= b, a, 0)), one, other)
    apart = [
        ev.circuit_rounds(f, one, other)
        for f in (lambda ev, a, b: a >= b, lambda ev, a, b: ev.select(a > b, a, 0), lambda ev, a, b: a - b)
    ]
    assert len(rounds) < sum(map(len, apart)) and sum(rounds) < sum(map(sum, apart))


def test_several_devices(fresh):
    world = tfhe_world("toy-lut4", "cpu")
    pool = quiet(lambda: tfhe.DevicePool(world.context.params, ["cpu", "cpu"]))
    client = pool.context.keygen()
    ev = pool.evaluator(client.evaluation_keys(), max_p_fail_log2=0)
    x, y, z = fresh.integers(0, 16, (3, 3)).astype(np.uint8)
    found = transfer(ev, *(client.encrypt(v, dtype="uint4") for v in (x, y, z)))
    moved = np.where(x >= z, z, 0)
    np.testing.assert_array_equal(client.decrypt(found[0]), x - moved)
    np.testing.assert_array_equal(client.decrypt(found[1]), (y + moved) % 16)
    np.testing.assert_array_equal(client.decrypt(found[2]), x >= z)


def test_values_of_a_circuit_that_has_ended():
    """Kept by a program: refused in the next one, whose memory may be the same."""
    world = tfhe_world("toy-lut4", "cpu")
    a = world.client.encrypt([1, 2], dtype="uint4")
    kept = []

    def keep(ev, x):
        y = x + 1 + x
        kept.append(y + y)
        return y

    for _ in range(8):
        world.ev.circuit_rounds(keep, a)
        for call in (world.ev.circuit, world.ev.circuit_rounds):
            with pytest.raises(StateError, match="not computed yet, expected one that is there"):
                call(lambda ev, x: x + 1, kept[-1])
        with pytest.raises(StateError, match="another circuit"):
            world.ev.circuit_rounds(lambda ev, x: x + kept[-1], a)
        with pytest.raises(StateError, match="another circuit"):
            world.ev.circuit_rounds(lambda ev, x: kept[-1], a)


def test_refusals():
    world = tfhe_world("toy-lut4", "cpu")
    ev, client = world.ev, world.client
    a, b = client.encrypt([1, 2], dtype="uint4"), client.encrypt([1, 2, 3], dtype="uint4")
    message, bits = client.encrypt([1, 2], bits=4), client.encrypt([True, False])
    with pytest.raises(ParameterError, match="no arrays"):
        ev.circuit(lambda ev: a)
    with pytest.raises(StateError, match="broadcast"):
        ev.circuit(lambda ev, a, b: a + b, a, b)
    with pytest.raises(TypeError, match="circuit: found encrypted messages"):
        ev.circuit(lambda ev, m: m, message)
    with pytest.raises(StateError, match="another evaluator"):
        ev.circuit(lambda _, a: ev.add(a, a), a)
    with pytest.raises(StateError, match="call circuit of the evaluator that the program was given"):
        ev.circuit(lambda _, a: ev.circuit(lambda inner, x: x + x, a), a)
    with pytest.raises(TypeError, match="returns encrypted arrays.*int"):
        ev.circuit(lambda ev, a: (a + 1, 3), a)
    with pytest.raises(TypeError, match="returns encrypted arrays"):
        ev.circuit(lambda ev, a: None, a)
    for program in (
        lambda ev, a: a[:1] + 1,
        lambda ev, a: a.sum(),
        lambda ev, a: ev.sort(a),
        lambda ev, a: ev.any(a > 1),
        lambda ev, a: ev.refresh(a > 1),
        lambda ev, a: ev.random(2, "uint4"),
        lambda ev, a: ev.circuit_rounds(lambda inner, x: x + 1, a),
        lambda ev, a: a + np.zeros((2, 2), dtype=np.uint8),
    ):
        with pytest.raises(UnsupportedError, match="^circuit: .*before the circuit or after it"):
            ev.circuit(program, a)
    with pytest.raises(UnsupportedError, match="messages"):
        ev.circuit(lambda ev, x: ev.add(ev.to_messages(x), 1), bits)
    with pytest.raises(StateError, match="not computed yet"):
        ev.circuit(lambda ev, a: a.to_bytes(), a)
    with pytest.raises(StateError, match="one type"):
        ev.circuit(lambda ev, a: a + ev.cast(a, "uint8"), a)
    with pytest.raises(ParameterError, match="scalar"):
        ev.circuit(lambda ev, a: a < 16, a)
    with pytest.raises(TypeError, match="the truth"):
        ev.circuit(lambda ev, a: a if a > 1 else a + 1, a)
    with pytest.raises(ZeroDivisionError):  # what is not the library's comes as it is
        ev.circuit(lambda ev, a: a + 1 // 0, a)
    assert client.decrypt(ev.circuit(lambda ev, a: a + 1, a)).tolist() == [2, 3]
