"""Worker processes: forked ones work on host devices, others take parameters and keys as bytes.

A child that hangs is what these tests are for: none is waited for without a limit.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import threading
import time

import numpy as np
import pytest
from tfhe_world import tfhe_world

import crenel
from crenel import ckks

SECONDS = 120  # a child that works needs less than one; machines of tests are shared
HOST_DEVICES = ["ref", "cpu"]

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(job, seconds: float = SECONDS):
    """job()'s result in a forked child, or the exception it raised; fails when there is neither in time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                result = job()
            except Exception as error:
                result = error
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(result, pipe)
        finally:
            os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + seconds
    found = b""
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = pipe.read(1 << 16)
            if not part:
                os.waitpid(child, 0)
                return pickle.loads(found)
            found += part
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail(f"the child was still busy after {seconds} s")


class Used:
    """A client and an evaluator that have worked: OpenMP's threads are there, caches are warm."""

    def __init__(self, device: str, name: str = "leveled-n14-s40") -> None:
        self.context = ckks.Context(ckks.preset(name), device=device)
        self.client = self.context.keygen()
        self.ev = self.context.evaluator(self.client.evaluation_keys(rotations=[1]))
        self.x = np.random.default_rng().uniform(-1, 1, self.context.params.slots)
        assert self.error(self.round_trip()) < 2**-15

    def round_trip(self) -> np.ndarray:
        a = self.ev(self.client.encrypt(self.x, level=2))
        return self.client.decrypt((a * a).rotate(1))

    def error(self, found) -> float:
        if isinstance(found, Exception):
            raise found
        return float(np.abs(found - np.roll(self.x * self.x, -1)).max())


@pytest.fixture(scope="module")
def used() -> Used:
    return Used("cpu")


USED: Used | None = None  # what forked workers of a pool inherit


def encrypt_inherited(values: np.ndarray) -> bytes:
    return USED.client.encrypt(values).to_bytes()


def encrypt_with(job: tuple) -> bytes:
    params, secret, values = job
    return ckks.Context(params, device="cpu").client_from_secret_key(secret).encrypt(values).to_bytes()


@pytest.mark.parametrize("device", HOST_DEVICES)
def test_a_child_computes(device, used):
    world = used if device == "cpu" else Used(device)
    assert world.error(in_child(world.round_trip)) < 2**-15
    assert world.error(world.round_trip()) < 2**-15  # the parent goes on


def test_a_pool_of_forked_workers_encrypts(used):
    global USED
    USED = used
    rows = np.random.default_rng().uniform(-1, 1, (6, used.context.params.slots))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        files = pool.map_async(encrypt_inherited, list(rows)).get(timeout=SECONDS)
    for row, file in zip(rows, files, strict=True):
        assert np.abs(used.client.decrypt(used.context.ciphertext_from_bytes(file)) - row).max() < 2**-15


def test_children_share_no_randomness(used):
    encrypt = lambda: used.client.encrypt(used.x).to_bytes()  # noqa: E731
    files = [in_child(encrypt), in_child(encrypt), encrypt(), in_child(lambda: in_child(encrypt))]
    assert len(set(files)) == len(files)
    for file in files:
        assert np.abs(used.client.decrypt(used.context.ciphertext_from_bytes(file)) - used.x).max() < 2**-15


def test_threads_of_a_child_compute(used):
    def job():
        found = [None, None]

        def run(i: int) -> None:
            found[i] = used.round_trip()

        threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    for found in in_child(job):
        assert used.error(found) < 2**-15


def test_a_child_makes_contexts_of_its_own(used):
    def fresh():
        world = Used("cpu", "leveled-n13-s30")
        return world.error(world.round_trip())

    found = in_child(fresh)
    assert isinstance(found, float) and found < 2**-8, found


@pytest.mark.parametrize("device", HOST_DEVICES)
def test_a_child_computes_on_bits(device):
    world = tfhe_world("toy-gadget", device)
    client, ev = world.client, world.ev
    x, y = np.random.default_rng().integers(0, 2, (2, 40)).astype(bool)

    def job():
        return client.decrypt(ev.nand(client.encrypt(x), client.encrypt(y)))

    np.testing.assert_array_equal(job(), ~(x & y))
    np.testing.assert_array_equal(in_child(job), ~(x & y))


def test_forks_while_other_threads_compute(used):
    """Each child works, or says that what it wants was being used. None waits."""
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            used.round_trip()

    threads = [threading.Thread(target=compute) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        found = [in_child(used.round_trip) for _ in range(12)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for result in found:
        if isinstance(result, crenel.StateError):
            assert result.fields["found"] == "a lock held across fork()" and "spawn" in str(result)
        else:
            assert used.error(result) < 2**-15
    assert used.error(in_child(used.round_trip)) < 2**-15  # once nothing computes, children work


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_started_workers_take_bytes(method, used):
    job = (used.context.params, used.client.export_secret_key(), used.x)
    with multiprocessing.get_context(method).Pool(1) as pool:
        file = pool.map_async(encrypt_with, [job]).get(timeout=SECONDS)[0]
    assert np.abs(used.client.decrypt(used.context.ciphertext_from_bytes(file)) - used.x).max() < 2**-15


def test_what_does_not_travel_says_what_does(used):
    bits = tfhe_world("toy-gadget", "cpu")
    context, client, keys = bits.context, bits.client, bits.keys
    things = [
        (used.client, "export_secret_key()"),
        (client, "export_secret_key()"),
        (used.context, "params"),
        (context, "params"),
        (used.context.device, "name"),
        (used.ev, "context"),
        (context.evaluator(keys), "context"),
        (keys, "to_bytes()"),
        (used.client.evaluation_keys(), "to_bytes()"),
        (used.client.public_key(), "to_bytes()"),
        (used.client.encrypt([1.0]), "to_bytes()"),
        (used.ev(used.client.encrypt([1.0])), "to_bytes()"),
        (used.context.encode([1.0]), "to_bytes()"),
        (client.encrypt(np.array([True])), "to_bytes()"),
        (ckks.ErrorModel(used.context.params), "params"),
        (ckks.ErrorModel(used.context.params).input(max_abs=1.0), "params"),
    ]
    for thing, instead in things:
        with pytest.raises(crenel.UnsupportedError) as caught:
            pickle.dumps(thing)
        assert isinstance(caught.value, TypeError) and caught.value.code == "UnsupportedError"
        assert instead in str(caught.value) and instead in caught.value.fields["instead"]
    with pytest.raises(crenel.UnsupportedError, match="export_secret_key"):
        pickle.dumps(used.client.encrypt)
    with (
        multiprocessing.get_context("fork").Pool(1) as pool,
        pytest.raises(crenel.UnsupportedError, match="export_secret_key"),
    ):
        pool.map_async(used.client.encrypt, [used.x]).get(timeout=SECONDS)
    same = pickle.loads(pickle.dumps(used.context.params.to_bytes))  # methods of what travels do
    assert same() == used.context.params.to_bytes()


def test_gpu_contexts_are_refused_in_children():
    """By the model of a GPU, which keeps the rules of one."""
    try:
        device = crenel.Device("cuda:dry")
    except crenel.DeviceError as error:
        pytest.skip(str(error))
    context = ckks.Context(ckks.preset("leveled-n13-s30"), device)
    client = context.keygen()
    client.encrypt([1.0])
    for job in (context.keygen, lambda: client.encrypt([1.0]), context.synchronize):
        error = in_child(job)
        assert isinstance(error, crenel.StateError), error
        assert error.fields["device"] == "cuda:dry" and "spawn" in str(error)
