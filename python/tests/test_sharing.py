"""One device for many: contexts that share it, bootstrappers without keys, keys in host memory."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import Boot, open_context, toy

import crenel
from crenel import ckks, tfhe

TOLERANCE = 2**-11  # of 64 slots


@pytest.fixture(scope="module")
def world(boot_world) -> Boot:
    return boot_world


@pytest.fixture(scope="module")
def tenants(world) -> list[tuple[ckks.Client, ckks.Evaluator]]:
    """Two clients of one context, with few keys: 64 slots, two a transform."""
    clients = [world.context.keygen() for _ in range(2)]
    options = ckks.BootstrapOptions(slots=64, keys="minimal")
    return [(c, world.context.evaluator(c.evaluation_keys(bootstrap=options))) for c in clients]


def spent(client: ckks.Client, values: np.ndarray) -> ckks.Ciphertext:
    return client.encrypt(values, level=0, slots=64)


# -- devices -----------------------------------------------------------------------------------------


def test_contexts_share_a_device(device):
    open_context(toy(), device)  # a skip where there is none
    shared = crenel.Device(device)
    first, second = (ckks.Context(toy(), shared) for _ in range(2))
    assert first.device is second.device is shared
    client = first.keygen()
    ev = second.evaluator(client.evaluation_keys(rotations=[1]))
    result = ev.rotate(client.encrypt([1.0, 2.0]), 1)  # objects of both work together
    assert abs(client.decrypt(result)[0] - 2.0) < 2**-18
    other = ckks.Context(toy("toy-boot40"), device=shared)
    assert other.keygen().encrypt([1.0]).slots == other.params.slots
    assert tfhe.Context(tfhe.preset("bool128"), shared).device is shared
    apart = ckks.Context(toy(), device)
    if shared.kind == "cuda":
        with pytest.raises(ckks.StateError):
            apart.evaluator().add(client.encrypt([1.0]), 1.0)
    else:
        assert apart.device is not shared


def test_what_a_device_says(device):
    open_context(toy(), device)
    d = crenel.Device(device)
    info = crenel.device_info(device)
    assert (d.name, d.kind, d.description, d.memory_bytes) == (
        info.name,
        info.kind,
        info.description,
        info.memory_bytes,
    )
    assert d.info.name == d.name and d.name in repr(d)
    use = d.memory()
    assert (0 < use.used <= use.total) if d.kind == "cuda" else (use.used, use.total) == (0, 0)
    with pytest.raises(crenel.DeviceError):
        crenel.Device("tpu")
    for wrong in (3, None, d.info):
        with pytest.raises(TypeError):
            ckks.Context(toy(), wrong)


def test_memory_of_a_device(device):
    open_context(toy(), device)
    d = crenel.Device(device)
    context = ckks.Context(toy(), d)
    client = context.keygen()
    kept = client.encrypt([1.0])
    for batch in (1, 2, 4):
        client.encrypt(np.ones((batch, 4)))
    use = d.pools()
    assert use.in_use == context.bytes_in_use and use.idle > 0 and use.graphs == 0
    assert use.held == use.in_use + use.idle and "idle" in repr(use)
    d.trim()
    assert d.pools().idle == 0 and d.pools().in_use == use.in_use
    graph = ckks.Graph(context.evaluator(), context.evaluator().negate, kept)
    assert d.pools().graphs > 0 or d.kind != "cuda"
    assert abs(client.decrypt(graph(kept))[0] + 1.0) < 2**-18
    d.set_idle_limit(0)
    client.encrypt(np.ones((4, 4)))
    assert d.pools().idle == 0
    d.set_idle_limit(None)
    client.encrypt(np.ones((4, 4)))
    assert d.pools().idle > 0
    with pytest.raises(crenel.ParameterError, match="bytes"):
        d.set_idle_limit(-1)


# -- bootstrappers without keys ----------------------------------------------------------------------


def test_one_bootstrapper_for_every_client(world, tenants, rng):
    boot = world.context.bootstrapper(slots=64, keys="minimal")
    for client, ev in tenants:
        z = rng.uniform(-1, 1, (2, 64))
        batch = spent(client, z)
        result = boot(batch, evaluator=ev)
        assert (result.batch, result.level) == (2, boot.levels.output)
        assert np.abs(client.decrypt(result) - z).max() < TOLERANCE
        assert boot.eager(ev(batch), ev).to_bytes() == result.to_bytes()
        own = world.context.bootstrapper(ev.keys, boot.options)
        assert own(batch).to_bytes() == result.to_bytes()
    with pytest.raises(ckks.StateError, match="evaluator"):
        boot(spent(tenants[0][0], z))
    with pytest.raises(ckks.KeyMissingError):
        boot(batch, evaluator=world.context.evaluator())
    assert boot.report().key_count == 0 and not boot.report().keys_decided


def test_clients_call_from_threads(world, tenants, rng):
    boot = world.context.bootstrapper(slots=64, keys="minimal")
    z = rng.uniform(-1, 1, 64)

    def job(k: int) -> float:
        client, ev = tenants[k % 2]
        return np.abs(client.decrypt(boot(spent(client, z), evaluator=ev)) - z).max()

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(job, range(8))) < TOLERANCE


def test_keys_given_at_the_call_come_first(world, tenants, rng):
    (_, first), (client, second) = tenants
    boot = world.context.bootstrapper(first.keys, slots=64)
    assert boot.report().keys == "minimal" and boot.report().keys_decided
    z = rng.uniform(-1, 1, 64)
    assert np.abs(client.decrypt(boot(spent(client, z), evaluator=second)) - z).max() < TOLERANCE
    with pytest.raises(TypeError):
        boot(spent(client, z), evaluator=second.keys)


def test_a_pair_with_an_evaluator(world, rng):
    options = ckks.BootstrapOptions(slots=64, keys="minimal", message="pair")
    ev = world.context.evaluator(world.client.evaluation_keys(bootstrap=options))
    x, y = rng.uniform(-1, 1, (2, 64))
    u, v = world.context.bootstrapper(options=options).pair(
        spent(world.client, x), spent(world.client, y), evaluator=ev
    )
    assert world.error(u, x) < TOLERANCE and world.error(v, y) < TOLERANCE


# -- staged keys -------------------------------------------------------------------------------------


def test_staged_keys_give_the_same_bits(world, tenants, rng, tmp_path):
    client, ev = tenants[0]
    keys = ev.keys
    budget = keys.nbytes // 2
    path = tmp_path / "keys.safetensors"
    keys.save(path)
    boot = world.context.bootstrapper(slots=64, keys="minimal")
    ciphertext = spent(client, rng.uniform(-1, 1, 64))
    expected = boot(ciphertext, evaluator=ev).to_bytes()
    for staged in (keys.staged(budget), world.context.load_evaluation_keys(path, staged_bytes=budget)):
        assert staged.rotations == keys.rotations and staged.count == keys.count
        assert staged.nbytes <= budget and staged.host_bytes > 0 == keys.host_bytes
        assert "host memory" in repr(staged)
        assert boot(ciphertext, evaluator=world.context.evaluator(staged)).to_bytes() == expected
        with pytest.raises(ckks.UnsupportedError):
            staged.to_bytes()
    with pytest.raises(ckks.StateError):
        staged.staged(budget)
    for few in (1, -1):
        with pytest.raises(ckks.ParameterError):
            keys.staged(few)
    with pytest.raises(ckks.StateError, match="staged"):
        ckks.Graph(world.context.evaluator(staged), lambda c: c, ciphertext)
