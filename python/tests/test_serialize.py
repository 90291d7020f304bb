"""Bytes: round trips, the safetensors package, refusal of what is broken."""

import json
import warnings

import numpy as np
import pytest
from conftest import toy
from needed import needs

from crenel import ckks

safetensors = needs("test", "safetensors.numpy")


def header_of(blob: bytes) -> dict:
    return json.loads(blob[8 : 8 + int.from_bytes(blob[:8], "little")])


@pytest.fixture(scope="module")
def blobs(world) -> dict[str, bytes]:
    """One file of each kind."""
    fresh = world.client.encrypt(np.arange(4) / 4)
    keys = world.client.evaluation_keys(rotations=[1, -3], conjugate=True)
    return {
        "params": world.params.to_bytes(),
        "fresh": fresh.to_bytes(),
        "ciphertext": world.ev.multiply(fresh, fresh).to_bytes(),
        "lazy": world.ev.multiply_lazy(fresh, fresh).to_bytes(),
        "plaintext": world.context.encode([1, 2, 3]).to_bytes(),
        "keys": keys.to_bytes(),
        "public": world.client.public_key().to_bytes(),
    }


def load(world, name: str, blob: bytes):
    context = world.context
    loaders = {
        "params": lambda b: ckks.Params.from_bytes(b, allow_insecure=True),
        "fresh": context.ciphertext_from_bytes,
        "ciphertext": context.ciphertext_from_bytes,
        "lazy": context.ciphertext_from_bytes,
        "plaintext": context.plaintext_from_bytes,
        "keys": context.evaluation_keys_from_bytes,
        "public": context.public_key_from_bytes,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        return loaders[name](blob)


NAMES = ["params", "fresh", "ciphertext", "lazy", "plaintext", "keys", "public"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_what_is_loaded_saves_the_same_bytes(world, blobs, name, kind):
    blob = blobs[name]
    assert load(world, name, kind(blob)).to_bytes() == blob


def test_loaded_objects_work(world, xy):
    x, y = xy
    context = world.context
    a, b = (context.ciphertext_from_bytes(world.client.encrypt(v).to_bytes()) for v in xy)
    keys = context.evaluation_keys_from_bytes(world.keys.to_bytes())
    assert keys.rotations == world.keys.rotations and keys.conjugate and keys.relinearisation
    ev = context.evaluator(keys)
    e = (ev(a) * ev(b)).rotate(1) + ev(a).conjugate()
    assert world.error(e, np.roll(x * y, -1) + x) < 2**-18
    again = context.ciphertext_from_bytes(e.to_bytes())
    assert (again.level, again.scale, again.slots, again.real) == (e.level, e.scale, e.slots, e.real)
    public = context.public_key_from_bytes(world.client.public_key().to_bytes())
    assert world.error(public.encrypt(x), x) < 2**-18
    assert world.params == load(world, "params", world.params.to_bytes())


def test_another_process_would_see_the_same(world, xy):
    """A context made from bytes only computes for the client, on another device too."""
    params = load(world, "params", world.params.to_bytes())
    server = ckks.Context(params, device="ref")
    ev = server.evaluator(server.evaluation_keys_from_bytes(world.keys.to_bytes()))
    a = server.ciphertext_from_bytes(world.client.encrypt(xy[0]).to_bytes())
    reply = ev(a).square().to_bytes()
    assert world.error(world.context.ciphertext_from_bytes(reply), xy[0] ** 2) < 2**-18


def test_uniform_halves_travel_as_seeds(world, blobs):
    sizes = {name: len(blob) for name, blob in blobs.items()}
    full = world.client.encrypt([1.0]).nbytes
    assert sizes["fresh"] < 0.6 * full < full < sizes["ciphertext"]
    assert abs(len(world.keys.to_bytes()) / world.keys.wire_bytes - 1) < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_the_safetensors_package_reads_our_files(blobs, name):
    blob = blobs[name]
    tensors = safetensors.load(blob)
    metadata = header_of(blob)["__metadata__"]
    assert tensors and {"kind", "format_version"} <= set(metadata)
    for array in tensors.values():
        assert array.dtype in (np.uint8, np.uint32, np.uint64)


def test_metadata_carries_level_scale_and_parameters(world):
    blob = world.client.encrypt([0.5], level=3).to_bytes()
    metadata = header_of(blob)["__metadata__"]
    text = json.dumps(metadata)
    assert metadata["params_id"] == world.params.id
    assert metadata["level"] == "3" and "scale" in text


def test_truncated_and_oversized(world, blobs):
    for name, blob in blobs.items():
        for bad in (b"", blob[:7], blob[:40], blob[:-1], blob[: len(blob) // 2], blob + b"\0"):
            with pytest.raises(ckks.SerializationError) as caught:
                load(world, name, bad)
            assert {"where", "found", "expected"} <= set(caught.value.fields), name


def test_bit_flips(world, blobs, rng):
    for name, blob in blobs.items():
        positions = {0, 8, 9, len(blob) - 1, *rng.integers(0, len(blob), 40).tolist()}
        for position in positions:
            bad = bytearray(blob)
            bad[position] ^= 1 << int(rng.integers(8))
            with pytest.raises(ckks.SerializationError):
                load(world, name, bad)


def test_wrong_kind(world, blobs):
    for name, blob in blobs.items():
        other = "keys" if name != "keys" else "fresh"
        with pytest.raises(ckks.SerializationError):
            load(world, other, blob)


def test_future_version(world, blobs):
    blob = blobs["fresh"]
    bad = blob.replace(b'"format_version":"2"', b'"format_version":"9"')
    assert bad != blob
    with pytest.raises(ckks.SerializationError, match="newer"):
        load(world, "fresh", bad)


def test_insecure_parameters_in_bytes_need_permission():
    blob = toy().to_bytes()
    with pytest.raises((ckks.ParameterError, ckks.SerializationError)):
        ckks.Params.from_bytes(blob)
    with pytest.warns(ckks.InsecureParametersWarning):
        ckks.Params.from_bytes(blob, allow_insecure=True)
