"""The bridge between CKKS and TFHE: values there and back, noise against the model, bits, refusals, files."""

from __future__ import annotations

import math
import pickle
from functools import cache

import numpy as np
import pytest
from conftest import device_names, open_context, toy
from tfhe_world import open_tfhe
from wire import assembled, parts, resealed

import crenel
from crenel import bridge, bridge_cost, ckks, tfhe
from crenel.tfhe import lookup_times

LOW, STEP = -1.0, 1 / 8  # a grid of 16 numbers
FAST = [name for name in device_names() if name != "ref"]  # ref takes part where bits are compared
pytestmark = pytest.mark.filterwarnings("ignore::crenel.InsecureParametersWarning")


class World:
    def __init__(self, name: str, slots: int) -> None:
        probe = open_context(toy("toy-boot40"), name)
        self.context = probe
        self.small = open_tfhe(tfhe.preset("toy-lut4g4", allow_insecure=True), probe.device)
        self.client, self.holder = self.context.keygen(), self.small.keygen()
        self.bridge = bridge.Bridge(self.context, self.small, slots)
        self.keys = bridge.make_keys(self.client, self.holder)
        self.server = self.client.evaluation_keys(**self.bridge.key_options())
        self.tables = self.holder.evaluation_keys()
        self.ev = self.context.evaluator(self.server)
        self.tev = self.small.evaluator(self.tables)
        self.across = self.bridge.crossing(self.ev, self.tev, self.keys)

    def encrypt(self, values: np.ndarray, level: int | None = None, **options) -> ckks.Ciphertext:
        level = self.bridge.level if level is None else level
        return self.client.encrypt(values, slots=self.bridge.slots, level=level, **options)


@cache
def made(name: str, slots: int) -> World:
    return World(name, slots)


@pytest.fixture(params=FAST)
def world(request) -> World:
    return made(request.param, 64)


@pytest.fixture
def fresh() -> np.random.Generator:
    """A seed of its own every time, which a failure prints."""
    seed = int(np.random.SeedSequence().entropy % 2**63)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.mark.parametrize("level", [None, 7, 16])
def test_messages_and_back(world, fresh, level):
    m = fresh.integers(0, 16, 64)
    inside = fresh.uniform(-0.3, 0.3, 64)  # of a step: the reading's deviation is a 25th of one
    crossed = world.across.to_messages(world.encrypt(LOW + STEP * (m + inside), level), low=LOW, step=STEP)
    assert (crossed.kind, crossed.shape, crossed.secret_key_id) == (
        "message",
        (64,),
        world.holder.secret_key_id,
    )
    np.testing.assert_array_equal(world.holder.decrypt(crossed), m)
    values = fresh.uniform(-1, 1, 16)
    back = world.across.to_slots(crossed, values)
    assert (back.level, back.slots, back.real) == (world.bridge.output_level, 64, True)
    assert back.bound == pytest.approx(np.abs(values).max())
    np.testing.assert_allclose(world.client.decrypt(back), values[m], atol=2**-9)
    # It computes on like any other.
    square = world.ev.multiply_rescale(back, back)
    np.testing.assert_allclose(world.client.decrypt(square), values[m] ** 2, atol=2**-7)


def test_tables_of_functions_and_of_tfhe(world, fresh):
    m = fresh.integers(0, 8, 64)
    a = world.encrypt(LOW + STEP * m)
    step = world.across.lut(a, lambda v: 3.0 if v < -0.5 else -2.0, low=LOW, step=STEP)
    # Two values are the largest and the smallest: no noise of TFHE is left, to first order.
    np.testing.assert_allclose(world.client.decrypt(step), np.where(m < 4, 3.0, -2.0), atol=2**-15)
    # Exact work in between: 2 m + 1, and a table of TFHE's own.
    crossed = world.across.to_messages(a, low=LOW, step=STEP)
    odd = world.tev.lut(crossed, lambda t: (t * t) % 8)
    back = world.across.to_slots(odd, np.arange(16))
    np.testing.assert_allclose(world.client.decrypt(back), m * m % 8, atol=2**-5)


@pytest.mark.parametrize("threshold", [0.0, -0.73, 0.31])
def test_comparisons(world, fresh, threshold):
    gap = 10 * world.bridge.resolution(2.0)
    assert gap < 0.06
    x = threshold + fresh.uniform(gap, 2.0, 64) * fresh.choice([-1, 1], 64)
    a = world.encrypt(x)
    found = world.client.decrypt(world.across.compare(a, threshold, bound=2.0))
    np.testing.assert_allclose(found, x >= threshold, atol=2**-15)
    found = world.client.decrypt(world.across.compare(a, threshold, bound=2.0, less=5.0, otherwise=-1.0))
    np.testing.assert_allclose(found, np.where(x < threshold, 5.0, -1.0), atol=2**-12)


def test_signs_and_the_larger_of_two(world, fresh):
    """Far from where noise decides, all is as in the clear; near to it, the result is one of both sides."""
    gap = 10 * world.bridge.resolution(2.0)
    level = world.context.params.normal_top_level
    x, y = fresh.uniform(-1, 1, (2, 64))
    y = np.where(np.abs(x - y) < gap, x + np.copysign(gap, y), y)
    a, b = world.encrypt(x, level, bound=2.0), world.encrypt(y, level, bound=2.0)
    decrypt, across = world.client.decrypt, world.across
    with pytest.raises(crenel.StateError, match="bound"):  # 4 by the bounds of both
        across.maximum(a, b, bound=2.0)
    a, b = world.encrypt(x, level), world.encrypt(y, level)
    np.testing.assert_allclose(decrypt(across.compare(a, b, bound=2.0)), x >= y, atol=2**-15)
    smaller = across.minimum(a, b, bound=2.0)
    assert smaller.bound == math.inf
    np.testing.assert_allclose(decrypt(smaller), np.minimum(x, y), atol=2**-13)
    # One of both is within the larger bound, so that results compare on.
    a, b = world.encrypt(x, level, bound=1.1), world.encrypt(y, level, bound=1.08)
    larger = across.maximum(a, b, bound=2.2)
    assert larger.bound == 1.1
    np.testing.assert_allclose(decrypt(larger), np.maximum(x, y), atol=2**-13)
    for other in (0.5, x, None):
        with pytest.raises(TypeError, match="Ciphertext"):
            across.maximum(a, other, bound=2.0)
    away = np.where(np.abs(x) < gap, np.copysign(gap, x), x)
    found = across.relu(world.encrypt(away, level, bound=1.5), bound=2.0)
    assert found.bound == 1.5
    np.testing.assert_allclose(decrypt(found), np.maximum(away, 0), atol=2**-13)
    signs = across.sign(world.encrypt(away), bound=2.0)
    np.testing.assert_allclose(decrypt(signs), np.sign(away), atol=2**-14)
    # At the threshold: whatever noise decides, the result is no further off than the slot from 0.
    near = fresh.uniform(-gap, gap, 64)
    off = decrypt(across.relu(world.encrypt(near, level), bound=2.0)) - np.maximum(near, 0)
    assert (np.abs(off) <= np.abs(near) + 2**-13).all()


def test_costs_are_said_beforehand(world, fresh):
    cost = world.bridge.describe(bound=2.0)
    assert (cost.key_bytes, cost.key_wire_bytes) == (world.keys.nbytes, world.keys.wire_bytes)
    assert (cost.ckks_key_bytes, cost.tfhe_key_bytes) == (world.server.nbytes, world.tables.nbytes)
    assert cost.resolution == world.bridge.resolution(2.0) and cost.step == 0.25
    assert cost.failure_log2 < -100
    assert (cost.failure_at(0.5), cost.wrong_side_log2(0.0)) == (0.0, -1.0)
    assert cost.failure_at(0.2) > cost.failure_log2
    assert cost.times is None and "time: not known" in str(cost)
    assert f"{world.bridge.messages} messages" in str(cost)
    for bad in ({"bound": 0.0}, {"bound": math.nan}, {"step": -1.0}):
        with pytest.raises(crenel.ParameterError):
            world.bridge.describe(**bad)
    facts = world.bridge.key_facts
    assert facts.log_middle < facts.log_last < world.context.params.log_pq
    with pytest.raises(crenel.UnsupportedError, match="not pickled"):
        pickle.dumps(facts)


def test_failures_are_the_described_ones(fresh):
    """Slots two and three deviations from the threshold, where failures can be counted: 512 of each."""
    world = made("cpu", 1024)
    cost = world.bridge.describe(bound=2.0)
    distance = cost.resolution * np.repeat([2.0, 3.0], 512)
    found = world.client.decrypt(world.across.compare(world.encrypt(distance), 0.0, bound=2.0))
    wrong = (found < 0.5).reshape(2, 512).sum(axis=1)
    # Normal: 2.28 % and 0.135 % are expected, 11.6 and 0.7. A deviation that is off by a quarter either way
    # makes of the first 0.6 to 5.5 %, three to 28; with nine deviations of those counts about it.
    assert wrong[0] <= 28 + 9 * 5.2
    assert wrong[1] <= 4.2 + 9 * 2.1
    bounds = [2 ** cost.wrong_side_log2(d) for d in (distance[0], distance[-1])]
    assert bounds[0] > 0.0228 and bounds[1] > 0.00135


def test_times_of_what_was_counted():
    """Between the numbers of slots that were counted, linear; look-ups as measured."""
    small, large, between = (bridge_cost.times("boot40", "lut4-128", n) for n in (1024, 8192, 4096))
    assert small and large and between
    assert small.ms == small.there_ms + small.lookups_ms + small.back_ms
    assert small.packing_ms < between.packing_ms < large.packing_ms < large.back_ms
    assert small.lookups_ms == pytest.approx(1e3 * lookup_times.measured().seconds(1024))
    least = bridge_cost.times("boot40", "lut4-128", 1)
    assert least and least.there_ms == bridge_cost.times("boot40", "lut4-128", 64).there_ms
    assert bridge_cost.times("boot35", "lut4-128", 64) is None
    cost = bridge_cost.Cost(
        **dict.fromkeys(("slots", "messages", "level", "output_level"), 16),
        **dict.fromkeys(("key_bytes", "key_wire_bytes", "ckks_key_bytes", "tfhe_key_bytes"), 2**20),
        **dict.fromkeys(("bound", "step", "resolution", "read", "written"), 0.01),
        ckks_params="boot40",
        tfhe_params="lut4-128",
        times=small,
    )
    assert f"{small.ms:.1f} ms predicted" in str(cost) and small.device in str(cost)


@pytest.mark.parametrize("slots", [1, 2, 1024])
def test_numbers_of_slots(fresh, slots):
    world = made("cpu", slots)
    m = fresh.integers(0, 16, slots)
    values = fresh.permutation(16) / 8.0
    back = world.across.lut(world.encrypt(LOW + STEP * m), values, low=LOW, step=STEP)
    np.testing.assert_allclose(np.atleast_1d(world.client.decrypt(back)), values[m], atol=2**-8)


def test_noise_is_the_model_s(fresh):
    """1,024 phases each. Deviations of a ratio from 1: 2.2 % for the sample, 3 % for the errors of one key
    and the weights of its secrets; what is allowed is more than seven times that."""
    world = made("cpu", 1024)
    noise = world.bridge.noise(STEP)
    m = fresh.integers(0, 16, 1024)
    crossed = world.across.to_messages(world.encrypt(LOW + STEP * m), low=LOW, step=STEP)
    q = 2.0 ** world.small.params.numbers["log_lwe_modulus"]
    phases = world.holder._client.phase_errors(crossed._data, m.astype(np.uint64)) / q
    assert math.sqrt(crossed.noise_variance) / q == pytest.approx(noise.extracted)
    assert 0.75 < np.sqrt(np.mean(phases**2)) / noise.extracted < 1.3
    values = np.sin(2 * np.pi * np.linspace(-0.25, 0.25, 16))
    errors = world.client.decrypt(world.across.to_slots(crossed, values)) - values[m]
    slope = (
        2 * np.pi * np.sqrt(1 - np.clip(values[m], -1, 1) ** 2) * math.hypot(noise.looked_up, noise.packed)
    )
    steep = slope > slope.max() / 4  # elsewhere other errors count
    assert steep.sum() > 300
    assert 0.7 < np.sqrt(np.mean((errors[steep] / slope[steep]) ** 2)) < 1.35
    assert np.abs(errors[(m == 0) | (m == 15)]).max() < 2**-16


@pytest.mark.parametrize("name", [n for n in device_names() if n != "cpu"])
def test_every_device_has_the_same_bits(fresh, name):
    """Of one client's keys, through files; ref is the specification."""
    home = made("cpu", 2)
    context = open_context(toy("toy-boot40"), name)
    small = open_tfhe(tfhe.preset("toy-lut4g4", allow_insecure=True), context.device)
    other = bridge.Bridge(context, small, 2).crossing(
        context.evaluator(context.evaluation_keys_from_bytes(home.server.to_bytes())),
        small.evaluator(small.evaluation_keys_from_bytes(home.tables.to_bytes())),
        bridge.keys_from_bytes(context, small, home.keys.to_bytes()),
    )
    data = home.encrypt(fresh.uniform(-1, 1, 2)).to_bytes()
    results = []
    for across, place in ((home.across, home.context), (other, context)):
        a = place.ciphertext_from_bytes(data)
        crossed = across.to_messages(a, low=LOW, step=STEP)
        results.append((crossed.to_bytes(), across.to_slots(crossed, np.arange(16) ** 2).to_bytes()))
    assert results[0] == results[1]


def test_files(world):
    data = world.keys.to_bytes()
    assert len(data) < world.keys.wire_bytes + 16384  # of 13 keys, with a checksum each
    keys = bridge.keys_from_bytes(world.context, world.small, data)
    assert keys.to_bytes() == data
    assert (keys.ckks_secret_key_id, keys.tfhe_secret_key_id) == (
        world.client.secret_key_id,
        world.holder.secret_key_id,
    )
    a = world.encrypt(np.full(64, 0.5))
    first = world.across.to_messages(a, low=LOW, step=STEP)
    again = world.bridge.crossing(world.ev, world.tev, keys).to_messages(a, low=LOW, step=STEP)
    assert first.to_bytes() == again.to_bytes()
    for at in (len(data) // 3, len(data) - 1, 12):
        damaged = bytearray(data)
        damaged[at] ^= 1
        with pytest.raises(crenel.SerializationError):
            bridge.keys_from_bytes(world.context, world.small, bytes(damaged))
    with pytest.raises(crenel.SerializationError):
        bridge.keys_from_bytes(world.context, world.small, world.tables.to_bytes())
    other = ckks.Context(toy("toy-boot35"), device=world.context.device)
    with pytest.raises(crenel.SerializationError, match="params"):
        bridge.keys_from_bytes(other, world.small, data)
    with pytest.raises(crenel.StateError):
        bridge.Bridge(other, world.small, 64).crossing(world.ev, world.tev, world.keys).to_messages(
            a, low=LOW, step=STEP
        )


def test_files_that_someone_edited(world, fresh):
    """With checksums that are right, every field, shape and residue is looked at."""
    data = world.keys.to_bytes()

    def load(changed: bytes) -> bridge.Keys:
        return bridge.keys_from_bytes(world.context, world.small, changed)

    other = world.small.params.id[::-1]
    edits = {"tfhe_params_id": other, "tfhe_secret_key_id": "none", "secret_key_id": "none", "kind": "params"}
    for key, value in edits.items():
        with pytest.raises(crenel.SerializationError):
            load(resealed(data, key, value))
    for name in ("down/b", "middle/up/b", "middle/merge/2/b", "last/up/b", "last/merge/11/b"):
        header, payload = parts(data)
        words = bytearray(payload)
        begin, end = header[name]["data_offsets"]
        at = begin + 4 * int(fresh.integers((end - begin) // 4))
        words[at : at + 4] = b"\xff" * 4  # no residue of any prime
        with pytest.raises(crenel.SerializationError, match=name):
            load(assembled(header, bytes(words)))
    for name in ("down/b", "down/seed", "middle/up/b", "last/merge/11/seed"):
        header, payload = parts(data)
        header[name]["shape"] = [1, *header[name]["shape"]]
        with pytest.raises(crenel.SerializationError, match=name):
            load(assembled(header, payload))
    with pytest.raises(crenel.SerializationError, match="make_keys"):  # as files were before
        header, payload = parts(data)
        header["up/b"] = header.pop("last/up/b")
        load(assembled(header, payload))
    with pytest.raises(crenel.SerializationError, match="unknown"):
        header, payload = parts(data)
        header["__metadata__"]["unknown"] = "1"
        load(assembled(header, payload))
    with pytest.raises(crenel.SerializationError):
        bridge.keys_from_bytes(world.context, world.small, data, max_bytes=len(data) // 2)
    # Keys of another client that are named as this one's give nonsense, not a crash: the name is no proof.
    swapped = load(resealed(data, "tfhe_secret_key_id", "ab" * 16))
    assert swapped.tfhe_secret_key_id == "ab" * 16


def test_sets_that_do_not_fit(world):
    device = world.context.device
    with pytest.raises(crenel.UnsupportedError, match="groups"):
        bridge.Bridge(
            world.context,
            open_tfhe(tfhe.preset("toy-lut4", allow_insecure=True), device),
        )
    with pytest.raises(crenel.UnsupportedError, match="security"):  # 53 bits at level 0, 50 of keys
        bridge.Bridge(ckks.Context(toy("toy-boot45"), device=device), world.small)
    with pytest.raises((crenel.UnsupportedError, crenel.ParameterError)):  # no levels for a bootstrap
        bridge.Bridge(ckks.Context(toy(), device=device), world.small)
    with pytest.raises(crenel.ParameterError, match="slots"):
        bridge.Bridge(world.context, world.small, 48)
    with pytest.raises(TypeError, match="Context"):
        bridge.Bridge(world.small, world.context)
    with pytest.raises(TypeError, match="Client"):
        bridge.make_keys(world.holder, world.client)


def test_grids_and_tables_that_are_none(world):
    a = world.encrypt(np.zeros(64))
    for low, step in ((0.0, 0.0), (0.0, -1.0), (0.0, math.inf), (0.0, 2.0**-410), (0.0, 2.0**410)):
        with pytest.raises(crenel.ParameterError, match="in steps of .* more than 2.-410") as caught:
            world.across.to_messages(a, low=low, step=step)
        assert caught.value.fields["step"] == step
    for low in (math.nan, math.inf):
        with pytest.raises(crenel.ParameterError, match="grid from (nan|inf), expected a finite number"):
            world.across.to_messages(a, low=low, step=1.0)
    for values in ([0.0] * 16, range(15), [math.nan] * 16, [0.0] * 15 + [1e300], np.zeros((4, 4)), "abc"):
        with pytest.raises(crenel.ParameterError, match="value"):
            world.across.lut(a, values, low=LOW, step=STEP)
    with pytest.raises(crenel.ParameterError, match="a threshold of nan, expected a finite number"):
        world.across.compare(a, math.nan, bound=1.0)
    for bound in (0.0, -1.0, math.inf, math.nan, 2.0**-400, 2.0**400):
        with pytest.raises(crenel.ParameterError, match="a bound of .* less than 2.400") as caught:
            world.across.compare(a, 0.0, bound=bound)
        assert math.isnan(bound) or caught.value.fields["bound"] == bound
        with pytest.raises(crenel.ParameterError, match="a bound of"):
            world.bridge.resolution(bound)
    assert 0 < world.bridge.resolution(2.0**-399) < world.bridge.resolution(2.0**399) < math.inf
    with pytest.raises(crenel.ParameterError, match="between the smallest"):
        world.across.compare(a, 0.0, bound=1.0, less=0.5, otherwise=0.5)


def test_steps_below_the_noise_are_refused(world):
    """By the model, for what any table would read; the noise grows as steps shrink."""
    a = world.encrypt(np.zeros(64))
    allowed = world.tev.max_p_fail_log2
    assert -200 < allowed < 0
    readable, step = 0, STEP
    for _ in range(60):
        step /= 2
        try:
            world.across.to_messages(a, low=-8 * step, step=step)
        except crenel.ParameterError as error:
            assert error.fields["step"] == step and error.fields["p_fail_log2"] > allowed
            assert "take larger steps" in str(error)
            break
        readable += 1
    assert readable < 59  # the first that is refused; smaller ones are, too
    for smaller in (step / 8, step * 2.0**-100, 1e-290):
        with pytest.raises(crenel.ParameterError, match="grid"):
            world.across.to_messages(a, low=0.0, step=smaller)
    anything = world.small.evaluator(world.tables, max_p_fail_log2=0)
    across = world.bridge.crossing(world.ev, anything, world.keys)
    assert across.to_messages(a, low=-8 * step, step=step).shape == (64,)


def test_ciphertexts_that_do_not_fit(world, fresh):
    low = world.encrypt(np.zeros(64), world.bridge.level - 1)
    with pytest.raises(crenel.StateError, match=f"level {world.bridge.level}"):
        world.across.to_messages(low, low=LOW, step=STEP)
    few = world.client.encrypt(np.zeros(32), slots=32, level=world.bridge.level)
    with pytest.raises(crenel.StateError, match="32 slots, expected 64"):
        world.across.to_messages(few, low=LOW, step=STEP)
    wide = world.encrypt(np.zeros(64), bound=1.5)
    with pytest.raises(crenel.StateError, match="bound"):
        world.across.to_messages(wide, low=LOW, step=STEP)
    with pytest.raises(crenel.StateError, match="bound"):
        world.across.compare(wide, 0.0, bound=1.0)
    a = world.encrypt(np.zeros(64), bound=0.9)
    crossed = world.across.to_messages(a, low=LOW, step=STEP)
    with pytest.raises(crenel.StateError, match="expected 64"):
        world.across.to_slots(crossed[:32], range(16))
    noisy = world.tev.lut(crossed, lambda t: t)
    with pytest.raises(crenel.StateError):  # bits of gates are messages modulo another p
        world.across.to_slots(world.holder.encrypt(np.zeros(64, np.uint8), plain_modulus=16), range(16))
    # Nothing is harmed.
    np.testing.assert_array_equal(world.holder.decrypt(noisy), np.full(64, 8))


def test_keys_of_others(world):
    a = world.encrypt(np.zeros(64))
    crossed = world.across.to_messages(a, low=LOW, step=STEP)
    client, holder = world.context.keygen(), world.small.keygen()
    for keys in (bridge.make_keys(client, world.holder), bridge.make_keys(world.client, holder)):
        across = world.bridge.crossing(world.ev, world.tev, keys)
        with pytest.raises(crenel.StateError, match="bridge keys"):
            across.lut(a, range(16), low=LOW, step=STEP)
        with pytest.raises(crenel.StateError, match="bridge keys"):
            across.compare(a, 0.0, bound=1.0)
        with pytest.raises(crenel.StateError, match="bridge keys"):
            across.to_slots(crossed, range(16))
    none = world.context.evaluator(world.client.evaluation_keys())
    with pytest.raises(crenel.KeyMissingError, match="bootstrap"):
        world.bridge.crossing(none, world.tev, world.keys).to_messages(a, low=LOW, step=STEP)
    with pytest.raises(TypeError, match="Evaluator"):
        world.bridge.crossing(world.tev, world.ev, world.keys)
    assert "secret" not in repr(world.keys)
    for thing in (world.bridge, world.across, world.keys, world.bridge.noise(STEP)):
        with pytest.raises(crenel.UnsupportedError, match="not pickled"):
            pickle.dumps(thing)


def test_objects_of_another_device(world, fresh):
    """Of another kind of device, and of an object of its own of the same."""
    values = fresh.uniform(-0.9, 0.9, 64)
    elsewhere = open_tfhe(world.small.params, "ref")
    other = elsewhere.client_from_secret_key(world.holder.export_secret_key())
    tables = elsewhere.evaluator(other.evaluation_keys())
    crossing = world.bridge.crossing(world.ev, tables, world.keys)
    with pytest.raises(crenel.CrenelError, match="evaluator of messages"):
        crossing.compare(world.encrypt(values), 0.0, bound=1.0)
    alone = open_tfhe(world.small.params, world.context.device.name)
    with pytest.raises(crenel.StateError, match="share one crenel.Device"):
        bridge.Bridge(world.context, alone, 64)


def test_tables_of_what_is_no_real_number(world, fresh):
    numbers = world.encrypt(fresh.uniform(-0.9, 0.9, 64))
    for table in ("0123456789012345", dict.fromkeys(range(16), 0), np.arange(16) * 1j, [10**400] * 16):
        with pytest.raises(crenel.ParameterError, match="values of a table"):
            world.across.lut(numbers, table, low=LOW, step=STEP)


def test_numbers_that_are_none(world, fresh):
    numbers = world.encrypt(fresh.uniform(-0.9, 0.9, 64))
    with pytest.raises(crenel.ParameterError, match="threshold is too large"):
        world.across.compare(numbers, 10**400, bound=1.0)
    with pytest.raises(TypeError, match="bound: expected a real number, got str"):
        world.across.compare(numbers, 0.0, bound="1")
    with pytest.raises(TypeError, match="low: expected a real number, got str"):
        world.across.lut(numbers, lambda x: x, low="x", step=STEP)
