"""CKKS on several devices: the bits of one device, whatever the batch, and how calls end."""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter

import numpy as np
import pytest
from conftest import toy
from pool_world import pool_devices, require, seeded
from test_fork import in_child

import crenel
from crenel import _crenel, ckks
from crenel.devices import Workers, shares
from crenel.errors import Cancelled


class Pooled:
    """A pool with keys, and the same keys on one device."""

    def __init__(self, names: list[str]) -> None:
        self.pool = ckks.DevicePool(toy("toy-boot40"), names)
        self.client = self.pool.context.keygen()
        self.keys = self.client.evaluation_keys(rotations=[1, 2], bootstrap=True)
        self.ev = self.pool.evaluator(self.keys)
        self.one = self.pool.context.evaluator(self.keys)
        self.boot = self.ev.bootstrapper()
        self.one_boot = self.pool.context.bootstrapper(self.keys)

    def encrypt(self, rng, count: int, level: int | None = None) -> list[ckks.Ciphertext]:
        rows = rng.uniform(-1, 1, (count, self.pool.params.slots))
        return [self.client.encrypt(row, level=level) for row in rows]


@pytest.fixture(scope="module", params=pool_devices(), ids=",".join)
def pooled(request) -> Pooled:
    require(request.param)
    return Pooled(request.param)


def files(ciphertexts) -> list[bytes]:
    return [c.to_bytes() for c in ciphertexts]


def test_shares_are_equal_in_order_and_whole():
    rng = seeded()
    for _ in range(300):
        count, parts, unit = int(rng.integers(0, 40)), int(rng.integers(1, 9)), int(rng.integers(1, 5))
        found = shares(count, parts, unit)
        assert len(found) == parts
        assert [i for part in found for i in part] == list(range(count))
        assert all(part.start % unit == 0 for part in found if part)
        units = [-(-len(part) // unit) for part in found]
        assert max(units) - min(units) <= 1 and units == sorted(units, reverse=True)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_bootstraps_of_a_list_are_those_of_one_device(pooled, count):
    a = pooled.encrypt(seeded(), count, level=pooled.boot.levels.input)
    expected = files(pooled.one_boot(a))
    assert files(pooled.boot(a)) == expected
    assert files(pooled.boot(a, together=3)) == expected
    assert files(pooled.boot(tuple(a))) == expected


def test_bootstraps_of_a_batch_are_those_of_one_device(pooled):
    rng = seeded()
    for count in (1, 5):
        batch = ckks.concatenate(pooled.encrypt(rng, count, level=pooled.boot.levels.input))
        assert pooled.boot(batch).to_bytes() == pooled.one_boot(batch).to_bytes()


def test_ciphertexts_that_share_a_bootstrap_stay_on_one_device(pooled):
    slots = pooled.pool.params.slots // 4
    options = ckks.BootstrapOptions(slots=slots, pack=2, message="pair")
    keys = pooled.client.evaluation_keys(bootstrap=options)
    boot = pooled.pool.evaluator(keys).bootstrapper(options)
    one = pooled.pool.context.bootstrapper(keys, options)
    rng = seeded()
    for count in (3, 9):
        rows = rng.uniform(-1, 1, (count, slots))
        a = [pooled.client.encrypt(row, level=boot.levels.input, slots=slots) for row in rows]
        assert files(boot(a)) == files(one(a))


def test_programs_get_the_evaluator_and_the_ciphertexts_of_their_device(pooled):
    rng, devices = seeded(), Counter()
    x, y = pooled.encrypt(rng, 7), pooled.encrypt(rng, 7)

    def program(ev, a, b):
        devices[next(i for i, e in enumerate(pooled.ev.evaluators) if e is ev)] += 1
        return {"product": ev.rescale(ev.multiply(a, b)), "pair": (ev.rotate(a, 1), [7])}

    found = pooled.ev.map(program, x, y)
    count = len(pooled.pool)
    assert devices == Counter({i: len(part) for i, part in enumerate(shares(7, count))})
    one = pooled.one
    for a, b, result in zip(x, y, found, strict=True):
        assert result["product"].to_bytes() == one.rescale(one.multiply(a, b)).to_bytes()
        assert result["pair"][0].to_bytes() == one.rotate(a, 1).to_bytes() and result["pair"][1] == [7]
    # Results lie on the first device: its evaluator takes them.
    one.add(found[-1]["product"], found[0]["product"])


def test_operands_and_arrays_are_spread_too(pooled):
    rng = seeded()
    rows = rng.uniform(-1, 1, (4, 8))
    arrays = [ckks.encrypt(pooled.client, row) for row in rows]
    found = pooled.ev.map(lambda ev, a: ev(a) * 2.0 + 1.0, [pooled.one(a) for a in arrays])
    expected = [(pooled.one(a) * 2.0 + 1.0).ciphertext.to_bytes() for a in arrays]
    assert [a.ciphertext.to_bytes() for a in found] == expected
    assert all(isinstance(a, ckks.Array) and a.shape == (8,) for a in found)
    operands = [pooled.one(c) for c in pooled.encrypt(rng, 4)]
    found = pooled.ev.map(lambda ev, a: ev(a) * ev(a), operands)
    assert files(found) == [(a * a).ciphertext.to_bytes() for a in operands]


def test_what_every_device_needs_is_made_once_for_each(pooled):
    rng = seeded()
    x, (b,) = pooled.encrypt(rng, 5), pooled.encrypt(rng, 1)
    made = []

    def make(ev):
        made.append(ev)
        return ev.context.encode(np.full(pooled.pool.params.slots, 0.5))

    half, everywhere = pooled.ev.prepare(make), pooled.ev.broadcast(b)
    assert len(made) == len(pooled.pool) == len(half.values)
    found = pooled.ev.map(
        lambda ev, a, h, c: ev.add(ev.multiply(a, h), ev.multiply(c, h)), x, half, everywhere
    )
    plain = half.values[0]
    one = pooled.one
    expected = [one.add(one.multiply(a, plain), one.multiply(b, plain)).to_bytes() for a in x]
    assert files(found) == expected


def test_the_first_devices_alone(pooled):
    a = pooled.encrypt(seeded(), 3, level=pooled.boot.levels.input)
    expected = files(pooled.one_boot(a))
    assert files(pooled.boot.first(1)(a)) == files(pooled.boot.first(2)(a)) == expected
    for count in (0, len(pooled.pool) + 1):
        with pytest.raises(ckks.ParameterError, match="devices") as caught:
            pooled.ev.first(count)
        assert caught.value.fields["count"] == count


def test_an_error_says_on_which_device_and_harms_nothing(pooled):
    x, last = pooled.encrypt(seeded(), 5), len(pooled.pool) - 1
    lacking = next(i for i in range(3, 999) if i not in pooled.keys.rotations)

    def program(ev, a):
        return ev.rotate(a, lacking) if ev is pooled.ev.evaluators[last] else ev.rotate(a, 1)

    with pytest.raises(ckks.KeyMissingError, match=pooled.pool.devices[last].name) as caught:
        pooled.ev.map(program, x)
    assert caught.value.fields["worker"] == last and caught.value.fields["rotations"] == [lacking]
    assert caught.value.fields["device"] == pooled.pool.devices[last].name
    assert isinstance(caught.value.__cause__, ckks.KeyMissingError)

    class Own(Exception):
        pass

    def other(ev, a):
        if ev is pooled.ev.evaluators[1]:
            raise Own("mine")
        return a

    with pytest.raises(Own, match="mine") as own:
        pooled.ev.map(other, x)
    if hasattr(own.value, "add_note"):
        assert pooled.pool.devices[1].name in own.value.__notes__[0]
    assert files(pooled.ev.map(lambda ev, a: ev.rotate(a, 1), x)) == [
        pooled.one.rotate(a, 1).to_bytes() for a in x
    ]


def test_a_device_that_fails_stops_the_others(pooled):
    """The others would compute for ever."""
    x = pooled.encrypt(seeded(), len(pooled.pool))

    def program(ev, a):
        if ev is pooled.ev.evaluators[0]:
            raise crenel.DeviceError("made to fail", {"status": "lost"})
        while True:
            ev.multiply(a, a)

    before = threading.active_count()
    with pytest.raises(crenel.DeviceError, match="made to fail") as caught:
        pooled.ev.map(program, x)
    assert caught.value.fields == {"status": "lost", "device": pooled.pool.devices[0].name, "worker": 0}
    assert threading.active_count() == before


def endless(ev, a):
    while True:
        ev.multiply(a, a)


def test_what_progress_raises_stops_all(pooled):
    a = pooled.encrypt(seeded(), 6, level=pooled.boot.levels.input)
    seen = []

    def told(done, total, what):
        seen.append((done, total, what))
        assert threading.current_thread() is threading.main_thread()
        if done:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        pooled.boot(a, progress=told)
    assert seen[0] == (0, 6, "bootstraps")
    seen.clear()
    with crenel.progress(lambda *now: seen.append(now)):
        pooled.boot(a)
    assert seen[0] == (0, 6, "bootstraps") and seen[-1] == (6, 6, "bootstraps")
    assert [now[0] for now in seen] == sorted({now[0] for now in seen})


def test_ctrl_c_and_tokens_stop_all(pooled):
    x = pooled.encrypt(seeded(), len(pooled.pool))
    before = threading.active_count()
    main = threading.main_thread().ident
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.3, lambda: _interrupt(main)).start()
        pooled.ev.map(endless, x)
    token = _crenel.CancelToken()
    with _crenel.stoppable(token), pytest.raises(Cancelled):
        threading.Timer(0.3, token.cancel).start()
        pooled.ev.map(endless, x)
    deadline = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < deadline:  # the timers' own
        time.sleep(0.01)
    assert threading.active_count() == before


def _interrupt(thread: int | None) -> None:
    import signal

    assert thread is not None
    signal.pthread_kill(thread, signal.SIGINT)


def test_threads_share_a_pool(pooled):
    rng = seeded()
    inputs = [pooled.encrypt(rng, 3, level=pooled.boot.levels.input) for _ in range(3)]
    found: list[list[bytes]] = [[] for _ in inputs]

    def work(i: int) -> None:
        found[i] = files(pooled.boot(inputs[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [files(pooled.one_boot(a)) for a in inputs]


def test_an_empty_batch_gives_nothing(pooled):
    assert pooled.ev.map(lambda ev, a: a, []) == []


def test_wrong_calls(pooled):
    x = pooled.encrypt(seeded(), 2)
    with pytest.raises(ckks.ParameterError, match="equal lengths"):
        pooled.ev.map(lambda ev, a, b: a, x, x[:1])
    with pytest.raises(ckks.ParameterError, match="at least one batch"):
        pooled.ev.map(lambda ev: None)
    for call in (lambda: pooled.boot([]), lambda: pooled.boot(x, together=0)):
        with pytest.raises(ckks.ParameterError, match="at least one"):
            call()
    with pytest.raises(TypeError, match="a list"):
        pooled.boot(x[0].to_bytes())
    with pytest.raises(ckks.StateError, match="no keys"):
        pooled.pool.evaluator().bootstrapper()
    other = ckks.Context(toy(), device=pooled.pool.devices[0])
    with pytest.raises(ckks.StateError, match="parameters"):
        pooled.pool.evaluator(other.keygen().evaluation_keys())
    with pytest.raises(ckks.StateError, match="staged"):
        pooled.pool.evaluator(pooled.keys.staged(pooled.keys.nbytes))
    with pytest.raises(TypeError, match="progress"):
        pooled.boot(x, progress="yes")  # type: ignore[arg-type]


def test_wrong_devices():
    params = toy()
    device = crenel.Device("cpu")
    for devices, message in (
        ([], "no devices"),
        ("cpu", "a list of names"),
        ([device, "cpu", device], "in the pool already"),
    ):
        with pytest.raises(ckks.ParameterError, match=message):
            ckks.DevicePool(params, devices)
    for devices in (["cpu", "abacus"], ["cuda:dry:-1"], ["cuda:dry:x"], ["cuda:dry:5000"]):
        with pytest.raises(ckks.DeviceError, match="expected"):
            ckks.DevicePool(params, devices)
    if crenel.cuda_unavailable_reason():
        with pytest.raises(ckks.DeviceError, match="no GPU"):
            ckks.DevicePool(params)


def test_a_pool_says_what_it_is(pooled):
    text = pooled.ev.describe()
    for number, device in enumerate(pooled.pool.devices):
        assert f"  {device.name}: {device.description}" in text.splitlines()[number + 1]
    assert "keys: " in text and len(pooled.ev.replication.roads) == len(pooled.pool) - 1
    assert pooled.ev.replication.nbytes == pooled.keys.nbytes * (len(pooled.pool) - 1)
    assert set(pooled.ev.replication.roads) <= {"within", "peer", "host"}
    with pytest.raises(crenel.UnsupportedError):
        pooled.pool.__reduce__()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_the_pool_of_its_parent(pooled):
    if pooled.pool.devices[0].kind == "cuda":
        pytest.skip("what lies in the memory of another processor does not survive a fork")
    a = pooled.encrypt(seeded(), 4, level=pooled.boot.levels.input)
    expected = files(pooled.boot(a))
    assert in_child(lambda: files(pooled.boot(a))) == expected
    assert files(pooled.boot(a)) == expected


# ---- models of GPUs: what is copied, stated by those that copy nothing


@pytest.fixture(scope="module")
def dry() -> ckks.DevicePool:
    require(["cuda:dry"])
    return ckks.DevicePool(toy("toy-boot40"), [f"cuda:dry:{i}" for i in range(4)])


def copies(account: crenel.Account) -> list[int]:
    return [r["written_bytes"] for r in account.records() if r["kernel"] == "copy_peer"]


def test_keys_and_ciphertexts_cross_links_once(dry):
    client = dry.context.keygen()
    keys = client.evaluation_keys(bootstrap=True)
    accounts = [crenel.Account() for _ in dry.contexts]
    for account, context in zip(accounts, dry.contexts, strict=True):
        account.attach(context)
    ev = dry.evaluator(keys)
    assert ev.replication.roads == ("peer",) * 3
    assert [sum(copies(account)) for account in accounts] == [0, *[keys.nbytes] * 3]
    boot = ev.bootstrapper()
    for account in accounts:
        account.clear()
    a = [client.encrypt([0.5], level=boot.levels.input) for _ in range(7)]
    results = boot(a)
    size = a[0].nbytes
    assert [copies(account) for account in accounts[1:]] == [[size] * 2, [size] * 2, [size]]
    assert copies(accounts[0]) == [results[0].nbytes] * 5
    for account in accounts:
        account.detach()


def test_keys_that_do_not_fit_name_the_device(dry):
    names = [device.name for device in dry.devices]
    assert names == [f"cuda:dry:{i}" for i in range(4)]
    pool = ckks.DevicePool(ckks.preset("boot40"), [dry.devices[0], dry.devices[2]])
    keys = pool.context.keygen().evaluation_keys(bootstrap=True)
    taken = []
    with pytest.raises(crenel.OutOfMemoryError) as caught:
        while True:
            taken.append(pool.evaluator(keys))
            assert len(taken) < 40
    assert caught.value.fields["device"] == "cuda:dry:2"
    assert caught.value.fields["needed"] == keys.nbytes > caught.value.fields["available"]
    taken.clear()
    pool.evaluator(keys)  # there is room again


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_model_does_not_survive_a_fork_either(dry):
    client = dry.context.keygen()
    ev = dry.evaluator(client.evaluation_keys())
    x = [client.encrypt([0.5]) for _ in range(4)]
    found = in_child(lambda: ev.map(lambda ev, a: ev.multiply(a, a), x))
    assert isinstance(found, crenel.StateError) and "cuda:dry:" in found.fields["device"]


def test_a_model_and_a_device_are_no_pool(dry):
    with pytest.raises(crenel.UnsupportedError, match="cuda:dry:0 computes nothing"):
        pool = ckks.DevicePool(toy(), ["cuda:dry:0", "cpu"])
        client = pool.context.keygen()
        pool.evaluator(client.evaluation_keys())


def test_workers_without_work_are_not_started():
    workers = Workers([crenel.Device("cpu"), crenel.Device("cpu")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = workers.run(lambda worker, step: threading.current_thread().name, [0, 2], "tests")
    assert found == [None, "crenel cpu (device 1 of the pool)"]
