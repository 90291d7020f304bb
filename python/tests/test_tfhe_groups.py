"""Sets with groups of secret bits: tables, gates and integers on them, and the choice of a step."""

import warnings

import numpy as np
import pytest
from tfhe_world import open_tfhe, quiet, tfhe_world
from wire import assembled, parts

from crenel import tfhe
from crenel.explain_tfhe import tfhe_facts


@pytest.fixture
def world(device):
    return tfhe_world("toy-lut4g4", device)


def check(world, result, expected):
    found = world.client.decrypt(result)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_integers(world, rng, dtype):
    info = np.iinfo(dtype)
    x, y = rng.integers(info.min, info.max, (2, 5), dtype=dtype, endpoint=True)
    a, b = world.client.encrypt(x), world.client.encrypt(y)
    ev = world.ev
    check(world, ev.add(a, b), x + y)
    check(world, ev.sub(a, b), x - y)
    check(world, ev.mul(a, b), x * y)
    check(world, ev.less(a, b), x < y)
    check(world, ev.max(a, b), np.maximum(x, y))
    check(world, ev.shift_left(a, 3), x << dtype(3))
    check(world, ev.select(ev.equal(a, b), a, b), y)


def test_messages_and_bits(world, rng):
    m = rng.integers(0, 16, 12).astype(np.uint8)
    a = world.client.encrypt(m, bits=4)
    check(world, world.ev.lut(a, lambda t: (5 * t + 3) % 16), (5 * m + 3) % 16)
    x, y = rng.integers(0, 2, (2, 12)).astype(bool)
    c, d = world.client.encrypt(x), world.client.encrypt(y)
    check(world, world.ev.nand(c, d), ~(x & y))
    check(world, world.ev.mux(c, d, world.ev.not_(d)), np.where(x, y, ~y))
    hot = world.client.decrypt(world.ev.one_hot(a))
    np.testing.assert_array_equal(hot, m[:, None] == np.arange(16))


def test_one_clients_keys_serve_every_step(device, rng):
    params = tfhe.preset("toy-lut4g4", allow_insecure=True)
    home = open_tfhe(params, device)
    client = home.keygen()
    x = rng.integers(0, 256, 3).astype(np.uint8)
    a, keys = client.encrypt(x).to_bytes(), client.evaluation_keys().to_bytes()
    for step in (1, 2, 4):
        server = open_tfhe(params, device, step=step)
        assert server.params.numbers["step"] == step and server.params == params
        ev = server.evaluator(server.evaluation_keys_from_bytes(keys), max_p_fail_log2=0)
        result = ev.add(server.integers_from_bytes(a), 77)
        returned = home.integers_from_bytes(result.to_bytes())  # each context has a device of its own
        np.testing.assert_array_equal(client.decrypt(returned), x + np.uint8(77))


def test_keys_of_other_groups_are_a_request_of_their_own(device, rng):
    """One secret, keys for groups of 2 beside those of 4: sizes said before, and who mixes them is told."""
    params = tfhe.preset("toy-lut4g4", allow_insecure=True)
    assert params.with_key_group(2) == params and params.with_key_group(4).numbers == params.numbers
    home = open_tfhe(params, device)
    client = home.keygen()
    secret, m = client.export_secret_key(), rng.integers(0, 16, 4).astype(np.uint8)
    a = client.encrypt(m, bits=4).to_bytes()
    small = open_tfhe(params, device, key_group=2)
    assert (small.params.numbers["key_group"], small.params.numbers["step"]) == (2, 2)
    holder = small.client_from_secret_key(secret)
    said, taken = small.key_wire_bytes(), small.key_bytes()
    keys = holder.evaluation_keys()
    assert (keys.wire_bytes, keys.nbytes) == (said, taken) and said < home.key_wire_bytes()
    for step in (1, 2):
        server = open_tfhe(params, device, key_group=2, step=step)
        ev = server.evaluator(server.evaluation_keys_from_bytes(keys.to_bytes()), max_p_fail_log2=0)
        found = ev.lut(server.ciphertext_from_bytes(a), lambda t: 15 - t)
        np.testing.assert_array_equal(client.decrypt(home.ciphertext_from_bytes(found.to_bytes())), 15 - m)
    shared = tfhe.Context(params, device=small.device)  # or keys are refused for their device first
    with pytest.raises(tfhe.StateError, match="groups of 2"):
        shared.evaluator(keys)
    with pytest.raises(tfhe.SerializationError, match="bootstrap"):
        home.evaluation_keys_from_bytes(keys.to_bytes())
    for bad, says in ((0, "key_group is 0, expected 1"), (3, "divisor of n = 16"), (7, "divisor of n = 16")):
        with pytest.raises(tfhe.ParameterError, match=says):
            tfhe.Context(params, device=device, key_group=bad)
    with pytest.raises(tfhe.ParameterError, match="divisor of 2"):
        tfhe.Context(params, device=device, key_group=2, step=4)
    with pytest.raises(tfhe.UnsupportedError, match="groups"):
        tfhe.preset("toy-lut4", allow_insecure=True).with_key_group(2)


def test_groups_of_six():
    """Sizes of the set for use; steps that `approx` errs too much for are refused."""
    params = tfhe.preset("lut4-128")
    six = params.with_key_group(6)
    assert six == params and (six.numbers["key_group"], six.numbers["step"]) == (6, 2)
    assert tfhe.Params.from_bytes(six.with_step(3).to_bytes()).numbers == six.with_step(3).numbers
    for step in (2, 3):
        assert six.with_step(step).p_fail_log2 <= -128
    with pytest.raises(tfhe.UnsupportedError, match="steps of 6: arithmetic is approx"):
        six.with_step(6)
    with pytest.raises(tfhe.ParameterError, match="allow_insecure"):
        six.with_step(1)  # 64 errors of keys add up in each of its keys
    context = tfhe.Context(six, device="cpu")
    assert context.key_wire_bytes() > 2 * tfhe.Context(params, device="cpu").key_wire_bytes()
    thirds = tfhe.Context(six.with_step(3), device="cpu")
    assert thirds.key_bytes() > context.key_bytes() and thirds.key_wire_bytes() == context.key_wire_bytes()
    three = tfhe.Context(params.with_key_group(3), device="cpu")
    assert three.key_wire_bytes() < context.key_wire_bytes() / 2
    with pytest.raises(tfhe.ParameterError, match="divisor of n = 664"):
        tfhe.preset("bool128").with_key_group(6)


@pytest.mark.parametrize("packing", [2, 5])
def test_several_messages_a_mask(device, rng, packing):
    """Gates, selections, storage and files of rows that are not full; one client's keys for all steps."""
    params = tfhe.preset("toy-packed", allow_insecure=True)
    home = open_tfhe(params, device, packing=packing)
    client = home.keygen()
    assert home.params.slots == packing and home.params.numbers["differences"] is True
    assert "by differences" in dict(tfhe_facts(home.params))["groups"]
    x, y = rng.integers(0, 2, (2, 11)).astype(bool)
    keys = client.evaluation_keys()
    assert (keys.nbytes, keys.wire_bytes) == (home.key_bytes(), home.key_wire_bytes())
    a, b, file = client.encrypt(x).to_bytes(), client.encrypt(y).to_bytes(), keys.to_bytes()
    for step in (1, 2):
        server = open_tfhe(params, device, packing=packing, step=step)
        ev = server.evaluator(server.evaluation_keys_from_bytes(file), max_p_fail_log2=0)
        c, d = server.ciphertext_from_bytes(a), server.ciphertext_from_bytes(b)
        stored = ev.compress(ev.xor(c, d))
        assert stored.nbytes < c.nbytes / 4
        results = {"nand": ev.nand(c, d), "mux": ev.mux(c, d, ev.not_(d)), "xor": ev.decompress(stored)}
        expected = {"nand": ~(x & y), "mux": np.where(x, y, ~y), "xor": x ^ y}
        for name, result in results.items():
            found = client.decrypt(home.ciphertext_from_bytes(result.to_bytes()))
            np.testing.assert_array_equal(found, expected[name], err_msg=name)


def test_tables_of_several_messages_a_mask(device, rng):
    context = open_tfhe(tfhe.preset("toy-lut4g4", allow_insecure=True), device, packing=3)
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys(), max_p_fail_log2=0)
    m = rng.integers(0, 16, 7).astype(np.uint8)
    result = ev.lut(client.encrypt(m, bits=4), lambda t: (3 * t + 1) % 16)
    np.testing.assert_array_equal(client.decrypt(result), (3 * m + 1) % 16)
    with pytest.raises(tfhe.ParameterError, match="1 slot"):
        client.encrypt(np.arange(3, dtype=np.uint8))  # integers


def test_what_they_lack_is_said(device):
    params = tfhe.preset("toy-lut4g4", allow_insecure=True)
    open_tfhe(params, device)
    with pytest.raises(tfhe.UnsupportedError, match="doubles"):
        tfhe.Context(params, device=device, arithmetic="exact")
    with pytest.raises(tfhe.ParameterError, match="divisor of 4"):
        tfhe.Context(params, device=device, step=3)
    with pytest.raises(tfhe.UnsupportedError, match="groups"):
        tfhe.Context(tfhe.preset("bool128-classic"), device=device, step=2)
    world = tfhe_world("toy-lut4g4", device)
    with pytest.raises(tfhe.UnsupportedError, match="keys for pack"):
        world.client.evaluation_keys(packing=True)


def test_parameters_travel():
    params = quiet(lambda: tfhe.preset("lut4-128")).with_step(4)
    again = tfhe.Params.from_bytes(params.to_bytes())
    assert again == params and again.numbers == params.numbers
    assert not params.below_norm and params.security_bits >= 128
    assert "4 secret bits" in dict(tfhe_facts(params))["groups"]


def test_sets_for_use(rng):
    """One addition of eight bits and a gate on the sets themselves."""
    context = tfhe.Context(tfhe.preset("lut4-128"), device="cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    x, y = rng.integers(0, 256, (2, 2)).astype(np.uint8)
    total = ev.add(client.encrypt(x), client.encrypt(y))
    np.testing.assert_array_equal(client.decrypt(total), x + y)
    squares = ev.lut(client.encrypt(x % 16, bits=4), lambda t: t * t % 16)
    np.testing.assert_array_equal(client.decrypt(squares), x % 16 * (x % 16) % 16)
    assert client.p_fail_log2(squares) < -128

    gates = tfhe.Context(tfhe.preset("bool128"), device="cpu")
    holder = gates.keygen()
    a, b = rng.integers(0, 2, (2, 16)).astype(bool)
    server = gates.evaluator(holder.evaluation_keys())
    found = holder.decrypt(server.xor(holder.encrypt(a), holder.encrypt(b)))
    np.testing.assert_array_equal(found, a ^ b)


def test_files_of_a_renamed_set_stay_with_it(rng):
    """The classic sets had the names bool128 and lut4-128 once: same ids, and whoever mixes them is told."""
    for name in ("bool128", "lut4-128"):
        old, new = tfhe.preset(f"{name}-classic"), tfhe.preset(name)
        assert old.former_name == name and old != new and not old.numbers["group"]
        header, payload = parts(old.to_bytes())
        header["__metadata__"]["name"] = name  # as it was written before the sets had other names
        with pytest.warns(UserWarning, match=f"{name}-classic"):
            found = tfhe.Params.from_bytes(assembled(header, payload))
        assert found == old and found.name == old.name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert tfhe.Params.from_bytes(old.to_bytes()) == old
            assert tfhe.Params.from_bytes(new.to_bytes()) == new
    home = tfhe.Context(tfhe.preset("bool128-classic"), device="cpu")
    client = home.keygen()
    bits = rng.integers(0, 2, 3).astype(bool)
    a, key = client.encrypt(bits).to_bytes(), client.export_secret_key()
    server = tfhe.Context(tfhe.preset("bool128"), device="cpu")
    for load, data in ((server.ciphertext_from_bytes, a), (server.client_from_secret_key, key)):
        with pytest.raises(tfhe.SerializationError, match="of the set 'bool128-classic'"):
            load(data)
    again = home.client_from_secret_key(key)
    np.testing.assert_array_equal(again.decrypt(home.ciphertext_from_bytes(a)), bits)
