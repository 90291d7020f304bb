"""What TFHE refuses: sets below the norm without the flag, and operations that would fail too often."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from tfhe_world import open_tfhe, quiet

from crenel import tfhe


def test_toys_need_the_flag():
    toys = [name for name in tfhe.preset_names() if name.startswith("toy-")]
    assert toys
    for name in toys:
        with pytest.raises(tfhe.ParameterError, match="allow_insecure") as refused:
            tfhe.preset(name)
        assert refused.value.fields["name"] == name
        toy = tfhe.preset(name, allow_insecure=True)
        assert toy.security_bits == 0 and toy.warning
        with pytest.raises(tfhe.SerializationError, match="allow_insecure"):
            tfhe.Params.from_bytes(toy.to_bytes())
        assert tfhe.Params.from_bytes(toy.to_bytes(), allow_insecure=True) == toy


def test_published_sets_warn_and_travel():
    for name in ("M3", "STD128_3", "bool128", "lut4-128", "bool128-classic", "lut4-128-classic"):
        params = tfhe.preset(name)
        assert tfhe.Params.from_bytes(params.to_bytes()) == params
        assert params.warning == tfhe.Params.from_bytes(params.to_bytes()).warning
        assert bool(params.warning) != name.startswith(("bool128", "lut4-128"))


def test_a_context_of_pickled_toys_warns():
    toy = pickle.loads(pickle.dumps(tfhe.preset("toy-gadget", allow_insecure=True)))
    with pytest.warns(tfhe.InsecureParametersWarning, match="toy-gadget"):
        tfhe.Context(toy, device="cpu")


@pytest.fixture(scope="module")
def small():
    """toy-gadget: fresh inputs have 2^-140 for gates of two inputs, which leaves less for more."""
    context = open_tfhe(tfhe.preset("toy-gadget", allow_insecure=True), "cpu")
    client = context.keygen()
    return client, client.evaluation_keys()


def test_operations_beyond_the_promise_are_refused(small):
    client, keys = small
    ev = client.context.evaluator(keys)
    assert ev.max_p_fail_log2 == max(client.context.params.p_fail_log2, -128)
    bits = np.array([True, False, True])
    for name, fan_in in (("majority", 2), ("and3", 3), ("or3", 3), ("and4", 4), ("or4", 4)):
        count = {"majority": 3}.get(name, fan_in)
        inputs = [client.encrypt(bits, fan_in=fan_in) for _ in range(count)]
        found = ev.p_fail_log2(name)
        assert found > ev.max_p_fail_log2, name
        with pytest.raises(tfhe.ParameterError, match=name) as refused:
            getattr(ev, name)(*inputs)
        fields = refused.value.fields
        assert fields["operation"] == name
        assert fields["p_fail_log2"] == pytest.approx(found, rel=1e-4)
        assert fields["max_p_fail_log2"] == ev.max_p_fail_log2
        lenient = client.context.evaluator(keys, max_p_fail_log2=found)
        assert (client.decrypt(getattr(lenient, name)(*inputs)) == bits).all()
    assert ev.p_fail_log2("nand") <= ev.max_p_fail_log2
    with pytest.raises(tfhe.ParameterError):
        ev.p_fail_log2("nandy")


def test_bounds_are_logarithms_of_probabilities(small):
    client, keys = small
    for bad in (0.1, math.nan, math.inf):
        with pytest.raises(tfhe.ParameterError, match="max_p_fail_log2"):
            client.context.evaluator(keys, max_p_fail_log2=bad)


def test_arrays_carry_their_noise(small):
    client, keys = small
    ev = client.context.evaluator(keys)
    bits = np.array([True, False])
    a, b = client.encrypt(bits), client.encrypt(bits)
    assert a.noise_variance == b.noise_variance == 10.5
    result = ev.nand(a, b)
    assert 0 < result.noise_variance < 10.5
    again = client.context.ciphertext_from_bytes(result.to_bytes())
    assert again.noise_variance == result.noise_variance
    assert ev.not_(a).noise_variance == 10.5
    assert client.p_fail_log2(a) < -128
    # x and a piece of x are not two
    with pytest.raises(tfhe.ParameterError, match="nand"):
        strict = client.context.evaluator(keys, max_p_fail_log2=ev.p_fail_log2("nand"))
        strict.nand(a, tfhe.concatenate([a[:1], a[1:]]))


def test_every_integer_operation_keeps_the_promise():
    context = quiet(lambda: tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), device="cpu"))
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    x, y = np.array([3, 250], dtype=np.uint8), np.array([7, 99], dtype=np.uint8)
    a, b = client.encrypt(x), client.encrypt(y)
    for name in ("add", "sub", "mul", "min", "max", "bit_and", "bit_or", "bit_xor", "less", "equal"):
        getattr(ev, name)(a, b)
        getattr(ev, name)(a, a)
    chosen = ev.select(ev.less(a, b), ev.add(a, b), ev.shift_left(a, 1))
    wanted = np.where(x < y, x + y, x << np.uint8(1))
    assert (client.decrypt(chosen) == wanted).all()
