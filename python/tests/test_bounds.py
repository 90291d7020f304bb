"""How large values may be: bounds that were stated, their refusals, and the mode that finds overflow."""

import math

import numpy as np
import pytest
from wire import assembled, parts, resealed

from crenel import ckks


def test_max_value(world):
    p = world.params
    for level in range(p.max_level + 1):
        expected = 2 ** (p.log_q(level) - 1 - math.log2(p.scale(level))) * (1 - 2**-10)
        assert p.max_value(level) == pytest.approx(expected, rel=1e-9)
    assert p.max_value(1, scale=2 * p.scale(1)) == pytest.approx(p.max_value(1) / 2)
    for level, scale in ((p.max_level + 1, None), (-1, None), (0, 0.5), (0, math.nan)):
        with pytest.raises(ckks.ParameterError):
            p.max_value(level, scale)
    assert "max value" in p.explain()


def test_bounds_are_stated_and_carried(world, rng):
    x = rng.uniform(-1, 1, world.slots)
    c = world.client.encrypt(x, bound=1.0)
    assert c.bound == 1.0 and "bound 1" in repr(c)
    ev = world.ev
    assert ev.multiply_rescale(c, ev.multiply_integer(c, 3)).bound == 3.0
    assert (ev(c) * ev(c) + 2.5).ciphertext.bound == 3.5
    assert world.client.public_key().encrypt(x, bound=2.0).bound == 2.0
    encoded = world.context.encode(x, bound=4.0)
    assert encoded.bound == 4.0 and world.client.encrypt(encoded).bound == 4.0
    assert world.client.encrypt(x).bound == math.inf
    measured = world.context.encode(x)
    assert measured.bound == pytest.approx(np.abs(x).max(), rel=1e-12)
    assert world.client.encrypt(measured).bound == math.inf
    other = c.with_bound(0.5)
    assert (other.bound, c.bound, c.with_bound(None).bound) == (0.5, 1.0, math.inf)
    assert np.array_equal(world.client.decrypt(other), world.client.decrypt(c))


def test_values_beyond_their_bound_are_named_by_place(world, rng):
    x = rng.uniform(-1, 1, (2, world.slots))
    x[1, 5] = -1.75
    for encrypt in (world.client.encrypt, world.client.public_key().encrypt, world.context.encode):
        with pytest.raises(ckks.ParameterError) as e:
            encrypt(x, bound=1.0)
        assert (e.value.fields["row"], e.value.fields["index"]) == (1, 5)
        assert "1.75" not in str(e.value)
    for bad in (0.0, -1.0, math.nan, -math.inf):
        with pytest.raises(ckks.ParameterError):
            world.client.encrypt(x, bound=bad)
        with pytest.raises(ckks.ParameterError):
            world.client.encrypt(x).with_bound(bad)
    with pytest.raises(ckks.ParameterError) as e:
        world.client.encrypt(x, level=0, bound=2 * world.params.max_value(0))
    assert float(e.value.fields["max_value"]) == pytest.approx(world.params.max_value(0))


def test_overflow_is_refused_with_a_bound_and_named_in_test_mode(world, rng):
    ev, most = world.ev, world.params.max_value(0)
    value = rng.uniform(0.5, 0.9)
    k = int(1.2 * most / value)
    x = np.full(world.slots, value)
    stated = world.client.encrypt(x, level=0, bound=0.9)
    with pytest.raises(ckks.StateError) as e:
        ev.multiply_integer(stated, k)
    assert e.value.fields["operation"] == "multiply_integer"
    assert e.value.fields["level"] == 0
    assert float(e.value.fields["bound"]) == pytest.approx(0.9 * k)
    assert float(e.value.fields["max_value"]) == pytest.approx(most)
    assert np.abs(world.client.decrypt(stated) - value).max() < 1e-4

    silent = world.client.encrypt(x, level=0)
    assert world.client.decrypt(ev.multiply_integer(silent, k))[0] < 0
    checked = ev.checked(world.client)
    assert isinstance(checked, ckks.Evaluator)
    with pytest.raises(ckks.StateError) as e:
        checked.add(checked.multiply_integer(checked.add(silent, silent), k // 2), 1.0)
    assert e.value.fields["operation"] == "multiply_integer"
    assert e.value.fields["level"] == 0
    assert float(e.value.fields["factor"]) == pytest.approx(1.2, rel=0.02)
    y = rng.uniform(-1, 1, world.slots)
    fresh = world.client.encrypt(y)
    good = (checked(fresh) * fresh - 0.5).rotate(1)
    assert np.abs(world.client.decrypt(good) - np.roll(y * y - 0.5, -1)).max() < 2**-15
    with pytest.raises(ckks.StateError):
        ev.checked(world.context.keygen())


def test_graphs_take_smaller_bounds(world):
    graph = ckks.Graph(world.ev, lambda c: world.ev.add(c, c), world.client.encrypt([0.5], bound=2.0))
    assert graph(world.client.encrypt([0.25], bound=1.0)).bound == 4.0
    for bound in (3.0, None):
        with pytest.raises(ckks.StateError, match="bound"):
            graph(world.client.encrypt([0.25], bound=bound))


def test_files_carry_bounds_and_refuse_forged_ones(world, rng):
    bound = rng.uniform(1, 9)
    load = world.context.ciphertext_from_bytes
    file = world.client.encrypt([0.5], level=1, bound=bound).to_bytes()
    assert load(file).bound == bound
    header, payload = parts(file)
    del header["__metadata__"]["bound"]
    assert load(assembled(header, payload)).bound == math.inf
    assert load(resealed(file, "bound", "0x1p+3")).bound == 8.0
    for forged in ("nan", "inf", "-0x1p+0", "0x0p+0", "0", "1.0", ""):
        with pytest.raises(ckks.SerializationError, match="bound"):
            load(resealed(file, "bound", forged))
