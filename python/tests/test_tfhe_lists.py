"""Arrays stored in lists: what comes back, sizes, bits, noise, files, what is refused."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from loaders import edited
from tfhe_world import open_tfhe, quiet, tfhe_world, world_for_use

from crenel import tfhe

TOY = -90.0  # the toy's dimension leaves more noise of rounding than its promise allows
N = 256


class World:
    def __init__(self, device):
        self.context = open_tfhe(tfhe.preset("toy-lut4g4", allow_insecure=True), device)
        self.client = self.context.keygen()
        self.keys = self.client.evaluation_keys(lists=True)
        self.ev = self.context.evaluator(self.keys, max_p_fail_log2=TOY)


@cache
def made(device):
    return World(device)


@pytest.fixture
def world(device):
    return made(device)


def test_arrays_come_back(world, rng):
    client, ev = world.client, world.ev
    wide = rng.integers(-(2**15), 2**15, (2, 3), dtype=np.int16)
    small = rng.integers(0, 16, int(rng.integers(2, 40))).astype(np.uint8)
    bits = rng.integers(0, 2, (3, 1)).astype(bool)
    cases = ((wide, {}, "integer", 8), (small, {"bits": 4}, "message", 1), (bits, {}, "bit", 1))
    for values, options, kind, each in cases:
        a = client.encrypt(values, **options)
        stored = ev.compress(a, lists=True)
        assert (stored.shape, stored.dtype, stored.kind) == (a.shape, a.dtype, kind)
        assert stored.lists and not ev.compress(a).lists
        assert stored.blocks == values.size * each
        assert stored.nbytes == world.context.stored_bytes(stored.blocks, lists=True)
        again = client.context.compressed_from_bytes(stored.to_bytes())
        assert again.to_bytes() == stored.to_bytes() and again.lists
        for found in (ev.decompress(stored), ev.decompress(again)):
            assert found.kind == kind and type(found) is type(a)
            np.testing.assert_array_equal(client.decrypt(found), values)
    total = ev.add(ev.decompress(ev.compress(ev.add(client.encrypt(wide), 7), lists=True)), 5)
    np.testing.assert_array_equal(client.decrypt(total), wide + np.int16(12))


def test_more_than_one_list(rng):
    """N messages fill a list; the next has what is left. Each stands where it stood."""
    world = made("cpu")
    m = rng.integers(0, 16, N + 3).astype(np.uint8)
    stored = world.ev.compress(world.client.encrypt(m, bits=4), lists=True)
    assert stored.nbytes == world.context.stored_bytes(N, lists=True) + world.context.stored_bytes(
        3, lists=True
    )
    np.testing.assert_array_equal(world.client.decrypt(world.ev.decompress(stored)), m)


def test_sizes_of_the_set_for_use():
    """By the formula; far fewer bytes a message than each by itself, where there are many."""
    context = tfhe.Context(tfhe.preset("lut4-128"), device="cpu")
    for blocks in (1, 32, 2048, 2049, 10_000):
        lists, last = divmod(blocks, 2048)
        expected = 16 // 8 * (lists * 2 * 2048 + (2048 + last if last else 0))
        assert context.stored_bytes(blocks, lists=True) == expected
        assert context.stored_bytes(blocks) == 1298 * blocks
    assert context.stored_bytes(2048, lists=True) / 2048 == 4
    assert context.stored_bytes(1, lists=True) > context.stored_bytes(1)
    words, bits = 11 * 3 * 3 * 2048, 18  # of the largest of three primes
    assert context.key_wire_bytes(lists=True) - context.key_wire_bytes() == words * bits // 8 + 32
    assert context.key_bytes(lists=True) - context.key_bytes() == 2 * 4 * words


def test_the_set_for_use(rng):
    """Phases of stored messages against their places, by the model; they come back."""
    from safetensors.numpy import load

    world = world_for_use("lut4-128")
    client, ev = world.client, world.ev
    m = rng.integers(0, 16, 300).astype(np.uint8)
    a = client.encrypt(m, bits=4)
    words = load(ev.compress(a, lists=True).to_bytes())["words"].view("<u2").astype(np.int64)
    masks, bodies, modulus = words[:2048], words[2048:], 65535
    secret = (
        load(client.export_secret_key())["coefficients"].view(np.int8).reshape(-1)[-2048:].astype(np.int64)
    )
    errors = []
    for j, body in enumerate(bodies):
        at = j * (2048 // 512)
        turned = np.concatenate([masks[at::-1], -masks[:at:-1]])  # the coefficient of a s at this place
        off = (body + int(turned @ secret)) / modulus - m[j] / 32
        errors.append((off - round(off)) * modulus)
    found = float(np.mean(np.square(errors)))
    model = (1 + 2048 * 2 / 3) / 12  # rounding; packing is 2^-15 of it
    print(f"variance {found:.1f}, model {model:.1f}")
    assert 0.5 * model < found < 1.55 * model  # six times sqrt(2 / 300), and the secret's weight
    some = ev.compress(client.encrypt(m[:5], bits=4), lists=True)
    np.testing.assert_array_equal(client.decrypt(ev.decompress(some)), m[:5])


def test_steps_and_lists_go_together(world, rng):
    keys = world.context.evaluation_keys_from_bytes(world.keys.to_bytes())
    assert keys.has_lists and keys.nbytes == world.context.key_bytes(lists=True)
    other = open_tfhe(world.context.params, world.context.device.name, step=4)
    m = rng.integers(0, 16, 3).astype(np.uint8)
    a = world.client.encrypt(m, bits=4)
    ev = world.context.evaluator(keys, steps=(4,), step_table=[(9, 4)], max_p_fail_log2=TOY)
    with_steps = ev.decompress(ev.compress(a, lists=True))
    alone = other.evaluator(other.evaluation_keys_from_bytes(keys.to_bytes()), max_p_fail_log2=TOY)
    stored = alone.compress(other.ciphertext_from_bytes(a.to_bytes()), lists=True)
    assert stored.to_bytes() == ev.compress(a, lists=True).to_bytes()
    found = alone.decompress(stored)  # its claim of noise is that of its one step
    assert (tensor(found.to_bytes(), "rows") == tensor(with_steps.to_bytes(), "rows")).all()
    np.testing.assert_array_equal(world.client.decrypt(with_steps), m)


def test_what_cannot_be_stored_is_said(world, rng):
    client, ev = world.client, world.ev
    a = client.encrypt(rng.integers(0, 16, 3).astype(np.uint8), bits=4)
    plain = world.context.evaluator(world.client.evaluation_keys(), max_p_fail_log2=TOY)
    with pytest.raises(tfhe.KeyMissingError, match="lists=True"):
        plain.compress(a, lists=True)
    stored = ev.compress(a, lists=True)
    assert plain.decompress(stored).shape == a.shape  # that takes no key of its own
    strict = world.context.evaluator(world.keys, max_p_fail_log2=-1e6)
    for call in (lambda: strict.compress(a, lists=True), lambda: strict.decompress(stored)):
        with pytest.raises(tfhe.ParameterError, match="compression: a bootstrap"):
            call()
    with pytest.raises(tfhe.UnsupportedError, match="lut4-128"):
        tfhe.Context(tfhe.preset("bool128"), device="cpu").key_bytes(lists=True)
    classic = tfhe_world("toy-lut4", world.context.device.name)
    for call in (
        lambda: classic.client.evaluation_keys(lists=True),
        lambda: classic.context.key_wire_bytes(lists=True),
        lambda: classic.context.stored_bytes(3, lists=True),
    ):
        with pytest.raises(tfhe.UnsupportedError, match="groups"):
            call()
    with pytest.raises(tfhe.ParameterError, match="blocks is 0"):
        world.context.stored_bytes(0, lists=True)
    stranger = world.context.keygen()
    foreign = world.context.evaluator(stranger.evaluation_keys(lists=True), max_p_fail_log2=TOY)
    with pytest.raises(tfhe.StateError, match="secret key"):
        foreign.decompress(stored)


def test_damaged_files_are_refused(world, rng):
    client, ev = world.client, world.ev
    load = world.context.compressed_from_bytes
    data = ev.compress(client.encrypt(rng.integers(0, 256, 2).astype(np.uint8)), lists=True).to_bytes()
    for change, where in (
        ({"form": "switched"}, "words"),
        ({"form": "folded"}, "form"),
        ({"blocks": "4"}, "blocks"),
        ({"size": "3"}, "size"),
        ({"noise_variance": "-1"}, "noise_variance"),
    ):
        with pytest.raises(tfhe.SerializationError) as caught:
            load(edited(data, change, {}))
        assert where in str(caught.value.fields["where"]) or change == {"blocks": "4"}, change
    for bad in (data[:-1], data[: len(data) // 2], data + b"\0"):
        with pytest.raises(tfhe.SerializationError):
            load(bad)
    with pytest.raises(tfhe.SerializationError, match="max_bytes"):
        load(data, max_bytes=10)
    words = tensor(data, "words")
    words[0], words[1] = 0xFF, words[1] | 0x1F  # word 0 of 13 bits is the modulus itself
    with pytest.raises(tfhe.SerializationError, match="words below 8191"):
        load(edited(data, {}, {"words": words}))
    keys = world.keys.to_bytes()
    bodies = tensor(keys, "lists/packed")
    bodies.reshape(-1)[:4] = 0xFF
    with pytest.raises(tfhe.SerializationError, match="below its prime"):
        world.context.evaluation_keys_from_bytes(edited(keys, {}, {"lists/packed": bodies}))
    classic = tfhe_world("toy-gadget", world.context.device.name)
    with pytest.raises(tfhe.SerializationError):
        classic.context.evaluation_keys_from_bytes(keys)


def test_bits_behind_the_last_word_are_zero(world, rng):
    data = world.ev.compress(
        world.client.encrypt(rng.integers(0, 16, 3).astype(np.uint8), bits=4), lists=True
    )
    words = tensor(data.to_bytes(), "words")
    assert len(words) * 8 - (N + 3) * 13 == 1
    words[-1] |= 0x80
    with pytest.raises(tfhe.SerializationError, match="behind the last word of a list"):
        world.context.compressed_from_bytes(edited(data.to_bytes(), {}, {"words": words}))


def tensor(data, name):
    from safetensors.numpy import load

    return load(data)[name].copy()


def table():
    """Of docs/guide/tfhe.md: bytes a message, by how many are stored."""
    context = tfhe.Context(tfhe.preset("lut4-128"), device="cpu")
    lines = ["| Messages | each by itself, bytes | in lists, bytes | a message |", "|---|---|---|---|"]
    for count in (1, 2, 4, 32, 256, 2048, 20_480):
        alone, lists = context.stored_bytes(count), context.stored_bytes(count, lists=True)
        lines.append(f"| {count:,} | {alone:,} | {lists:,} | {lists / count:,.1f} |")
    more = context.key_wire_bytes(lists=True) - context.key_wire_bytes()
    lines += ["", f"The key for it is {more:,} bytes to send."]
    return "\n".join(lines) + "\n"


@pytest.mark.generated
def test_the_guide_s_table_is_up_to_date():
    """CRENEL_UPDATE_DOCS=1 writes it."""
    guide = Path(__file__).resolve().parents[2] / "docs/guide/tfhe.md"
    text = guide.read_text(encoding="utf-8")
    begin = text.index("<!-- computed lists -->\n") + len("<!-- computed lists -->\n")
    wanted = text[:begin] + table() + text[text.index("<!-- /computed -->", begin) :]
    if os.environ.get("CRENEL_UPDATE_DOCS"):
        guide.write_text(wanted, encoding="utf-8")
    assert guide.read_text(encoding="utf-8") == wanted, "run this test with CRENEL_UPDATE_DOCS=1"


def test_pools_store_on_the_first_device(rng):
    context = made("cpu").context
    pool = quiet(lambda: tfhe.DevicePool(context.params, ["cpu", "cpu"]))
    client = pool.context.keygen()
    ev = pool.evaluator(client.evaluation_keys(lists=True), max_p_fail_log2=TOY)
    m = rng.integers(0, 16, 5).astype(np.uint8)
    stored = ev.compress(client.encrypt(m, bits=4), lists=True)
    np.testing.assert_array_equal(client.decrypt(ev.decompress(stored)), m)
