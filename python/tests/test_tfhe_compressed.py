"""Arrays in the form for storage: what comes back, their files, their noise, what is refused."""

import numpy as np
import pytest
from loaders import edited
from tfhe_world import open_tfhe, tfhe_world, world_for_use

from crenel import tfhe

TOY = -90.0  # the toy's dimension leaves more noise of rounding than its promise allows


@pytest.fixture
def world(device):
    return tfhe_world("toy-lut4g4", device)


def evaluator(world):
    return world.client.context.evaluator(world.keys, max_p_fail_log2=TOY)


def test_arrays_come_back(world, rng):
    client, ev = world.client, evaluator(world)
    wide = rng.integers(-(2**15), 2**15, (2, 3), dtype=np.int16)
    small = rng.integers(0, 16, 11).astype(np.uint8)
    bits = rng.integers(0, 2, (3, 1)).astype(bool)
    cases = ((wide, {}, "integer", 8), (small, {"bits": 4}, "message", 1), (bits, {}, "bit", 1))
    for values, options, kind, each in cases:
        a = client.encrypt(values, **options)
        stored = ev.compress(a)
        assert (stored.shape, stored.dtype, stored.kind) == (a.shape, a.dtype, kind)
        assert stored.blocks == values.size * each and stored.nbytes < a.nbytes / 20
        assert stored.secret_key_id == client.secret_key_id
        again = client.context.compressed_from_bytes(stored.to_bytes())
        assert again.to_bytes() == stored.to_bytes()
        for found in (ev.decompress(stored), ev.decompress(again)):
            assert found.kind == kind and type(found) is type(a)
            np.testing.assert_array_equal(client.decrypt(found), values)
    total = ev.add(ev.decompress(ev.compress(client.encrypt(wide))), 5)
    np.testing.assert_array_equal(client.decrypt(total), wide + np.int16(5))


def test_equal_on_ref_and_cpu(rng):
    """To the bit: the stored words, and what a rotation makes of them."""
    worlds = [tfhe_world("toy-lut4g4", name) for name in ("ref", "cpu")]
    client = worlds[0].client
    keys = client.evaluation_keys().to_bytes()
    a = client.encrypt(rng.integers(0, 16, 9).astype(np.uint8), bits=4).to_bytes()
    stored, back = [], []
    for world in worlds:
        context = world.client.context
        ev = context.evaluator(context.evaluation_keys_from_bytes(keys), max_p_fail_log2=TOY)
        stored.append(ev.compress(context.ciphertext_from_bytes(a)))
        back.append(ev.decompress(stored[-1]).to_bytes())
    assert stored[0].to_bytes() == stored[1].to_bytes() and back[0] == back[1]


def test_one_step_stores_for_another(device, rng):
    params = tfhe.preset("toy-lut4g4", allow_insecure=True)
    home = open_tfhe(params, device)
    client = home.keygen()
    m = rng.integers(0, 16, 5).astype(np.uint8)
    keys, a = client.evaluation_keys().to_bytes(), client.encrypt(m, bits=4).to_bytes()
    files = []
    for step in (1, 4):
        server = open_tfhe(params, device, step=step)
        ev = server.evaluator(server.evaluation_keys_from_bytes(keys), max_p_fail_log2=TOY)
        files.append(ev.compress(server.ciphertext_from_bytes(a)).to_bytes())
        found = ev.decompress(server.compressed_from_bytes(files[0]))
        np.testing.assert_array_equal(client.decrypt(home.ciphertext_from_bytes(found.to_bytes())), m)
    assert files[0] == files[1]


def words_of(stored, params):
    """The rows of a compressed array as its file has them (docs/reference/file-format.md)."""
    from safetensors.numpy import load

    rows = load(stored.to_bytes())["words"]
    bits = params.numbers["poly_size"].bit_length()  # log2 of 2N
    dim = params.numbers["lwe_dim"]
    flat = np.unpackbits(rows, axis=1, bitorder="little")[:, : (dim + 1) * bits]
    return flat.reshape(len(rows), dim + 1, bits) @ (1 << np.arange(bits)), bits


@pytest.mark.parametrize("name", ["lut4-128", "bool128"])
def test_the_noise_is_the_formulas(name, rng):
    """Phases of stored messages against their places, at 2N, over one key's switch."""
    from safetensors.numpy import load

    world = world_for_use(name)
    context, client, ev, n = world.context, world.client, world.ev, world.context.params.numbers
    m = rng.integers(0, 2, 300).astype(bool)
    stored = ev.compress(client.encrypt(m))
    rows, bits = words_of(stored, context.params)
    secret = load(client.export_secret_key())["coefficients"].view(np.int8).reshape(-1)[: n["lwe_dim"]]
    phases = (rows[:, -1] - rows[:, :-1] @ secret.astype(np.int64)) % (1 << bits)
    places = m * ((1 << bits) // (32 if context.params.padded else 4))
    errors = (phases - places + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    extracted, kept = n["glwe_dim"] * n["poly_size"], n["switch_base_log"] * n["switch_digits"]
    steps = 2.0 ** (bits - n["log_switch_modulus"])
    switch = 10.5 * extracted * n["switch_digits"] * (4 ** n["switch_base_log"] + 2) / 12 * steps**2
    cut_off = 4.0 ** (bits - kept) * extracted * 2 / 3 / 12 if kept < n["log_lwe_modulus"] else 0.0
    model = (1 + n["lwe_dim"] / 4) / 12 + switch + cut_off
    found = float(np.mean(errors.astype(float) ** 2))
    print(f"{name}: variance {found:.2f}, model {model:.2f}")
    # six deviations of 300 squares, and the mean error that this key's switch has
    assert 0.5 * model < found < 1.5 * model + 9 * switch / 3
    assert abs(errors).max() < (1 << bits) / (64 if context.params.padded else 8)


def test_what_cannot_be_stored_is_said(world, rng):
    client, ev = world.client, evaluator(world)
    a = client.encrypt(rng.integers(0, 16, 3).astype(np.uint8), bits=4)
    strict = client.context.evaluator(world.keys)
    with pytest.raises(tfhe.ParameterError, match="compression: a bootstrap"):
        strict.compress(a)
    stored = ev.compress(a)
    with pytest.raises(tfhe.ParameterError, match="decompression: a bootstrap"):
        strict.decompress(stored)
    with pytest.raises(TypeError, match="compressed array"):
        ev.decompress(a)
    with pytest.raises(TypeError, match="encrypted array"):
        ev.compress(np.arange(3))
    classic = tfhe_world("toy-lut4", client.context.device.name)
    with pytest.raises(tfhe.UnsupportedError, match="groups"):
        classic.ev.compress(classic.client.encrypt(np.array([True])))
    other = open_tfhe(client.context.params, client.context.device.name)
    stranger = other.keygen()
    foreign = other.evaluator(stranger.evaluation_keys(), max_p_fail_log2=TOY)
    with pytest.raises(tfhe.StateError, match="secret key"):
        foreign.decompress(stored)
    with pytest.raises(tfhe.StateError):
        ev.compress(stranger.encrypt(np.array([True])))


def test_damaged_files_are_refused(world, rng):
    client, ev = world.client, evaluator(world)
    load = client.context.compressed_from_bytes
    data = ev.compress(client.encrypt(rng.integers(0, 256, 2).astype(np.uint8))).to_bytes()
    for change, where in (
        ({"form": "folded"}, "form"),
        ({"plain_modulus": "4"}, "plain_modulus"),
        ({"bits": "7"}, "bits"),
        ({"bits": "0", "signed": "true"}, "signed"),
        ({"blocks": "7"}, "blocks"),
        ({"size": "3"}, "size"),
        ({"noise_variance": "-1"}, "noise_variance"),
        ({"kind": "tfhe_ciphertext"}, "kind"),
        ({"params_id": "0" * 32}, "params_id"),
    ):
        with pytest.raises(tfhe.SerializationError) as caught:
            load(edited(data, change, {}))
        assert where in str(caught.value.fields["where"]), change
    for bad in (data[:-1], data[: len(data) // 2], b"", data + b"\0"):
        with pytest.raises(tfhe.SerializationError):
            load(bad)
    with pytest.raises(tfhe.SerializationError, match="max_bytes"):
        load(data, max_bytes=10)
    # a claim of noise is believed, and read with
    loud = load(edited(data, {"noise_variance": "0x1p+60"}, {}))
    with pytest.raises(tfhe.ParameterError, match="decompression"):
        ev.decompress(loud)
