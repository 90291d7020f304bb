"""Whose objects are: ids of secret keys, files of secret keys, and what errors and warnings tell."""

import copy
import pickle
import traceback
import warnings

import numpy as np
import pytest
from conftest import toy
from tfhe_world import open_tfhe
from wire import assembled, parts, resealed

from crenel import ckks, tfhe


def mixed(call, found, expected):
    """The call is refused, with both ids in fields and message."""
    with pytest.raises(ckks.StateError) as caught:
        call()
    assert caught.value.fields["found"] == found and caught.value.fields["expected"] == expected
    assert found in str(caught.value) and expected in str(caught.value)


@pytest.fixture
def other(world):
    return world.context.keygen()


def test_what_a_client_makes_carries_its_id(world, other):
    me = world.client.secret_key_id
    assert len(me) == 32 and int(me, 16) and me != other.secret_key_id
    c = world.client.encrypt([0.5])
    made = [c, world.keys, world.client.public_key(), world.client.public_key().encrypt([0.5])]
    made += [world.ev.add(c, c), world.ev.rotate(c, 1), world.ev(c).ciphertext, c[0], c.clone()]
    made += [world.context.ciphertext_from_bytes(c.to_bytes())]
    made += [world.context.evaluation_keys_from_bytes(world.keys.to_bytes())]
    made += [world.context.client_from_secret_key(world.client.export_secret_key())]
    assert {thing.secret_key_id for thing in made} == {me}
    assert not hasattr(world.context.encode([0.5]), "secret_key_id")
    assert me.encode() in c.to_bytes()


def test_two_clients_do_not_mix(world, other):
    a, b = world.client.encrypt([0.5]), other.encrypt([0.5])
    me, them = world.client.secret_key_id, other.secret_key_id
    ev, bare = world.ev, world.context.evaluator()
    calls = [
        lambda: ev.add(a, b),
        lambda: ev(a) + b,
        lambda: ev(a) * ev(b),
        lambda: ev.rotate(b, 1),
        lambda: bare.add(a, b),
        lambda: ckks.concatenate([a, b]),
        lambda: world.client.decrypt(b),
        lambda: world.client.decrypt_to_plaintext(b),
        lambda: ckks.Graph(ev, lambda x: ev.add(x, x), a)(b),
    ]
    for call in calls:
        mixed(call, them, me)
    with pytest.raises(ckks.KeyMissingError):
        bare.rotate(b, 1)


def test_a_file_of_version_1_says_what_it_is(world):
    header, payload = parts(world.client.encrypt([0.5]).to_bytes())
    del header["__metadata__"]["secret_key_id"]
    header["__metadata__"]["format_version"] = "1"
    with pytest.raises(ckks.SerializationError, match="older library .* secret key"):
        world.context.ciphertext_from_bytes(assembled(header, payload))


@pytest.mark.parametrize("forged", ["none", "0" * 32, "", "A" * 32, "f" * 31])
def test_ids_that_are_none(world, forged):
    for blob, load in (
        (world.client.encrypt([0.5]).to_bytes(), world.context.ciphertext_from_bytes),
        (world.keys.to_bytes(), world.context.evaluation_keys_from_bytes),
        (world.client.export_secret_key(), world.context.client_from_secret_key),
    ):
        with pytest.raises(ckks.SerializationError) as caught:
            load(resealed(blob, "secret_key_id", forged))
        assert "secret_key_id" in caught.value.fields["where"]


def test_secret_key_files(world, rng):
    data = world.client.export_secret_key()
    header, payload = parts(data)
    assert header["__metadata__"]["kind"] == "secret_key"
    assert header["__metadata__"]["params_id"] == world.params.id
    assert set(payload) == {0, 1, 255} and len(payload) == world.params.ring_dim
    for bit in rng.integers(0, 8 * len(data), 300):
        bad = bytearray(data)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ckks.SerializationError) as caught:
            world.context.client_from_secret_key(bad)
        assert header["__metadata__"]["sha256:coefficients"] not in repr(caught.value.fields)
    with pytest.raises(ckks.SerializationError, match="bare coefficients"):
        world.context.client_from_secret_key(payload)
    for zero in (bytes(len(payload)), b"\1" * len(payload)):
        with pytest.raises(ckks.SerializationError, match="chance"):
            world.context.client_from_secret_key(assembled(header, zero))


def test_tfhe_ids_and_secret_key_files(device):
    context = open_tfhe(tfhe.preset("toy-gadget", allow_insecure=True), device)
    client, other = context.keygen(), context.keygen()
    keys = client.evaluation_keys()
    ev = context.evaluator(keys)
    x = np.array([True, False, True])
    a, b = client.encrypt(x), other.encrypt(x)
    me, them = client.secret_key_id, other.secret_key_id
    assert {t.secret_key_id for t in (a, keys, ev.not_(a), a[1:], client.single())} == {me} != {them}
    for call in (
        lambda: ev.not_(b),
        lambda: ev.and_(a, b),
        lambda: tfhe.concatenate([a, b]),
        lambda: client.decrypt(b),
    ):
        mixed(call, them, me)
    again = context.client_from_secret_key(client.export_secret_key())
    assert again.secret_key_id == me and again.decrypt(a).tolist() == x.tolist()
    header, payload = parts(client.export_secret_key())
    assert header["__metadata__"]["kind"] == "tfhe_secret_key"
    with pytest.raises(ckks.SerializationError, match="bare coefficients"):
        context.client_from_secret_key(payload)


def test_a_zero_lwe_secret_is_refused():
    """Where n is that of real sets: it is a fiftieth of all coefficients."""
    context = tfhe.Context(tfhe.preset("lut4-128"), device="cpu")
    n = context.params.numbers["lwe_dim"]
    header, payload = parts(context.keygen().export_secret_key())
    for value in (b"\0", b"\1"):
        with pytest.raises(ckks.SerializationError) as caught:
            context.client_from_secret_key(assembled(header, value * n + payload[n:]))
        assert caught.value.fields["where"] == "an LWE secret"
    degree = context.params.numbers["poly_size"]
    for first in range(n, len(payload), degree):
        bad = payload[:first] + bytes(degree) + payload[first + degree :]
        with pytest.raises(ckks.SerializationError) as caught:
            context.client_from_secret_key(assembled(header, bad))
        assert caught.value.fields["where"] == "a GLWE polynomial"


SENTINEL = 7919  # no other number in this file's errors
BIG = 7919.0 * 2.0**100


def test_errors_tell_no_values(world):
    warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
    ev, client, context = world.ev, world.client, world.context
    c = client.encrypt([0.5])
    nan = [SENTINEL, float("nan")]
    gates = tfhe.Context(tfhe.preset("toy-gadget", allow_insecure=True), device="ref").keygen()
    tables = tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), device="ref")
    holder = tables.keygen()
    integers = holder.encrypt(np.array([1], np.uint8))
    words = tables.evaluator(holder.evaluation_keys())
    as_messages = np.array([1, SENTINEL], np.uint16)
    calls = [
        lambda: client.encrypt([BIG]),
        lambda: client.encrypt(nan),
        lambda: client.encrypt([1j * BIG]),
        lambda: client.public_key().encrypt([BIG]),
        lambda: context.encode([BIG]),
        lambda: context.encode(nan),
        lambda: ev.add(c, BIG),
        lambda: ev(c) + BIG,
        lambda: ev(c) * BIG,
        lambda: ev(c) + np.full(4, BIG),
        lambda: ev(c) * np.full(4, BIG),
        lambda: ev.polynomial(c, [SENTINEL, float("inf")]),
        lambda: context.linear_transform({0: np.full(4, BIG)}),
        lambda: context.linear_transform({0: np.array(nan)}),
        lambda: gates.encrypt(as_messages, plain_modulus=4),
        lambda: gates.encrypt(-as_messages.astype(np.int32), plain_modulus=4),
        lambda: gates._client.encrypt(as_messages.astype(np.uint64), 4),
        lambda: gates.phase_errors(gates.encrypt(np.array([True, False])), as_messages),
        lambda: holder.encrypt(as_messages, bits=4),
        lambda: holder._client.encrypt_words(as_messages.astype(np.uint64), 8, False),
        lambda: holder._client.encrypt_words((-as_messages.astype(np.int64)).view(np.uint64), 8, True),
        lambda: holder.encrypt(as_messages, dtype="uint8"),
        lambda: holder.encrypt([SENTINEL, 2**300], dtype="uint128"),
        lambda: words.max(integers, SENTINEL),
        lambda: words.div(integers, SENTINEL),
        lambda: words.divmod(integers, np.array([SENTINEL])),
        lambda: words.take([SENTINEL], integers, dtype="uint8"),
        lambda: words.add(SENTINEL, [SENTINEL]),
        lambda: words.lut(holder.encrypt(np.array([1]), bits=4), lambda m: SENTINEL),
    ]
    for i, call in enumerate(calls):
        with pytest.raises((ckks.CrenelError, TypeError)) as caught:
            call()
        error = caught.value
        told = str(error) + repr(error) + str(getattr(error, "fields", "")) + repr(error.args)
        told += "".join(traceback.format_exception_only(error))
        for number in (SENTINEL, BIG):
            for text in (f"{number}", f"{number:g}", f"{number:.6e}", f"{number:.17g}"):
                assert text not in told, (i, told)
        assert f"{np.log2(BIG):.1f}" not in told, (i, told)


def test_unpickling_toys_warns():
    params = toy()
    data = pickle.dumps(params)
    with pytest.warns(ckks.InsecureParametersWarning):
        assert pickle.loads(data) == params
    with pytest.warns(ckks.InsecureParametersWarning):
        assert copy.deepcopy(params) == params
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        secure = ckks.preset("leveled-n14-s40")
        assert pickle.loads(pickle.dumps(secure)) == secure


@pytest.mark.parametrize("scale", [5e-324, 2.0**-1022, 1e-9, 0.999, 2.0**300, 1e308])
def test_scales_beyond_their_range(world, scale):
    for call in (world.client.encrypt, world.context.encode, world.client.public_key().encrypt):
        with pytest.raises(ckks.ParameterError) as caught:
            call([0.0], scale=scale)
        assert caught.value.fields["scale"]
    blob = world.client.encrypt([0.5]).to_bytes()
    mantissa, exponent = scale.hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".")
    with pytest.raises(ckks.SerializationError) as caught:
        world.context.ciphertext_from_bytes(resealed(blob, "scale", f"{mantissa}p{exponent}"))
    assert "scale" in caught.value.fields["where"]
