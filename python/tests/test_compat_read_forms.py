"""Files in the forms that kinds of files took since their first (tests/compat/forms.py) are read and hold
what they held, keys compute and are written again as they were. What is kept at all: test_compat_forms.py.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from compat_world import kept, same  # noqa: F401

from crenel import ckks, nn, tfhe

pytestmark = pytest.mark.filterwarnings("ignore::crenel.InsecureParametersWarning")


def test_keys_of_some_levels(kept):  # noqa: F811
    """Of some levels, aligned ones and short ones, and none: as they were, and they compute."""
    params = ckks.Params.from_bytes(kept.data("levels-params"), allow_insecure=True)
    assert params.highest_aligned(4) == kept.value("levels-params", "aligned")
    context = ckks.Context(params, device="cpu")
    client = context.client_from_secret_key(kept.data("levels-secret_key"))
    for name in ("evaluation_keys", "short_keys", "no_keys"):
        read_as_written(context, kept.data(f"levels-{name}"))
    keys = context.evaluation_keys_from_bytes(kept.data("levels-evaluation_keys"))
    assert keys.aligned_rotations == kept.value("levels-evaluation_keys", "rotations")
    short = context.evaluation_keys_from_bytes(kept.data("levels-short_keys"))
    x, product = (np.array(kept.value(f"levels-{name}", "rows")) for name in ("rows", "product"))
    a = context.ciphertext_from_bytes(kept.data("levels-rows"))
    ev = context.evaluator(keys)
    same(client.decrypt(ev.rotate(a, 1)), np.roll(x, -1, axis=1))
    same(client.decrypt(ev.conjugate(a)), x)
    same(client.decrypt(context.evaluator(short).rotate(a, 2)), np.roll(x, -2, axis=1))
    three = context.ciphertext_from_bytes(kept.data("levels-product"))
    for found in (three, ev.relinearise(three)):
        same(client.decrypt(found), product)


def read_as_written(context, data: bytes) -> None:
    """What is read and written again has the same metadata and tensors, but for the writer's version."""
    written = context.evaluation_keys_from_bytes(data).to_bytes()
    (before, payload), (after, again) = (
        (json.loads(d[8 : 8 + n]), d[8 + n :])
        for d in (data, written)
        for n in [int.from_bytes(d[:8], "little")]
    )
    for head in (before, after):
        for name in ("library_version", "header_sha256"):
            del head["__metadata__"][name]
    assert (before, payload) == (after, again)


def test_keys_of_a_bootstrap(kept):  # noqa: F811
    """To the sparse secret and back, turned ones too."""
    params = ckks.Params.from_bytes(kept.data("raised-params"), allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    data = kept.data("raised-evaluation_keys")
    assert b"encapsulation/turned/" in data and context.evaluation_keys_from_bytes(data).has_encapsulation
    read_as_written(context, data)


def test_a_sparse_secret(kept):  # noqa: F811
    params = ckks.Params.from_bytes(kept.data("sparse-params"), allow_insecure=True)
    context = ckks.Context(params, device="cpu")
    client = context.client_from_secret_key(kept.data("sparse-secret_key"))
    found = context.ciphertext_from_bytes(kept.data("sparse-ciphertext"))
    same(client.decrypt(found), kept.slots("sparse-ciphertext"))


def test_tfhe_a_bit_a_step(kept):  # noqa: F811
    """Packed keys, that of packing too; arrays that were computed, and known ones."""
    params = tfhe.Params.from_bytes(kept.data("packed-params"), allow_insecure=True)
    context = tfhe.Context(params, device="cpu")
    client = context.client_from_secret_key(kept.data("packed-secret_key"))
    keys = context.evaluation_keys_from_bytes(kept.data("packed-evaluation_keys"))
    ev = context.evaluator(keys)
    for name in ("messages", "known"):
        found = context.ciphertext_from_bytes(kept.data(f"packed-{name}"))
        messages = np.array(kept.value(f"packed-{name}", "messages"))
        assert (client.decrypt(found) == messages).all()
        assert (client.decrypt(ev.lut(found, lambda t: (t + 1) % 16)) == (messages + 1) % 16).all()
    integers = context.integers_from_bytes(kept.data("packed-integers"))
    expected = np.array(kept.value("packed-integers", "integers"))
    assert (client.decrypt(integers) == expected).all()
    assert (client.decrypt(ev.add(integers, 1)) == expected + 1).all()
    assert keys.has_packing


def test_tfhe_by_differences(kept):  # noqa: F811
    params = tfhe.Params.from_bytes(kept.data("gates-params"), allow_insecure=True)
    assert params.numbers["differences"] and params.name == kept.value("gates-params", "name")
    context = tfhe.Context(params, device="cpu", packing=params.slots)
    client = context.client_from_secret_key(kept.data("gates-secret_key"))
    ev = context.evaluator(context.evaluation_keys_from_bytes(kept.data("gates-evaluation_keys")))
    bits = context.ciphertext_from_bytes(kept.data("gates-bits"))
    expected = np.array(kept.value("gates-bits", "bits"))
    ones = client.encrypt(np.ones(5, bool))
    assert (client.decrypt(ev.nand(bits, ones)) == ~expected).all()
    for name in ("toy-gadget", "toy-raising-binary", "STD128"):
        assert tfhe.Params.from_bytes(kept.data(f"gates-{name}"), allow_insecure=True).name == name


def test_tfhe_with_groups_of_another_size(kept):  # noqa: F811
    params = tfhe.Params.from_bytes(kept.data("groups-params"), allow_insecure=True)
    assert params.numbers["key_group"] == kept.value("groups-params", "key_group")
    context = tfhe.Context(params, device="cpu")
    client = context.client_from_secret_key(kept.data("groups-secret_key"))
    keys = context.evaluation_keys_from_bytes(kept.data("groups-evaluation_keys"))
    ev = context.evaluator(keys, max_p_fail_log2=-90)
    found = ev.decompress(context.compressed_from_bytes(kept.data("groups-integers")))
    assert (client.decrypt(found) == kept.value("groups-integers", "integers")).all()
    assert ev.compress(found, lists=True).lists


@pytest.mark.parametrize("name", ["images", "tokens", "norms", "filled"])
def test_programs_of_every_step(kept, name):  # noqa: F811
    """They are read, mean what they meant, and keep their fingerprint in a file of today."""
    program = nn.Program.from_bytes(kept.data(f"networks-{name}"), device="cpu", allow_insecure=True)
    inputs, outputs = (np.array(kept.value(f"networks-{name}", what)) for what in ("inputs", "outputs"))
    np.testing.assert_allclose(program.simulate(inputs, noise=False), outputs, atol=1e-9)
    again = nn.Program.from_bytes(program.to_bytes(), device="cpu", allow_insecure=True)
    assert again.fingerprint == program.fingerprint
