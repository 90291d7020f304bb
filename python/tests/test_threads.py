"""The GIL is released while computing, and shared objects may be used from several threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import open_context, toy
from tfhe_world import quiet

import crenel
from crenel import ckks, tfhe


def test_other_threads_run_while_one_computes():
    """During a long call, a thread that counts is not stopped."""
    params = ckks.preset("leveled-n14-s40")
    context = ckks.Context(params, device="ref")
    client = context.keygen()
    counts, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counts[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before, start = counts[0], time.perf_counter()
        client.evaluation_keys(rotations=range(1, 4))  # one call, a long time on ref
        ticks, seconds = counts[0] - before, time.perf_counter() - start
    finally:
        done.set()
        thread.join()
    assert ticks >= 5 and ticks > 20 * seconds


def test_shared_objects_from_many_threads(world, rng):
    xs = rng.uniform(-1, 1, (8, world.slots))

    def job(x):
        a = world.ev(world.client.encrypt(x))
        return world.client.decrypt((a * a + 1).rotate(1) * 0.5)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(job, list(xs) * 3))
    for x, result in zip(list(xs) * 3, results, strict=True):
        assert np.abs(result - np.roll(x * x + 1, -1) * 0.5).max() < 2**-18


def in_threads(job, count=8):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(job, range(count)))


def test_one_graph_from_many_threads(world, rng):
    """Each thread gets the results of its own inputs, whoever replays meanwhile."""
    ev, rounds = world.ev, 20 if world.context.device.name == "ref" else 200

    def f(a, b):
        return ev.add(ev.add(a, b), a)

    inputs = [[world.client.encrypt(x) for x in rng.uniform(-1, 1, (2, world.slots))] for _ in range(8)]
    expected = [f(*pair).to_bytes() for pair in inputs]
    graph = ckks.Graph(ev, f, *inputs[0])

    def job(t):
        results = [graph(*inputs[t]) for _ in range(rounds)]  # nothing in between: they meet often
        return sum(r.to_bytes() != expected[t] for r in results)

    assert in_threads(job) == [0] * 8


def test_one_graph_and_the_keys_of_many_clients(world, rng):
    x = rng.uniform(-1, 1, world.slots)

    def f(ev, a):
        return ev.rotate(ev.square(a), 1)

    clients = [world.context.keygen() for _ in range(4)]
    evs = [world.context.evaluator(c.evaluation_keys(rotations=[1])) for c in clients]
    inputs = [c.encrypt(x) for c in clients]
    expected = [f(ev, a).to_bytes() for ev, a in zip(evs, inputs, strict=True)]
    graph = ckks.Graph(evs[0], f, inputs[0], keys="argument")

    def job(t):
        k = t % 4
        return sum(graph(inputs[k], evaluator=evs[k]).to_bytes() != expected[k] for _ in range(4))

    assert in_threads(job) == [0] * 8


def test_graphs_are_recorded_while_others_compute(world, rng):
    xs = rng.uniform(-1, 1, (8, world.slots))
    inputs = [world.client.encrypt(x) for x in xs]
    ev = world.ev
    expected = [ev.rotate(ev.add(a, a), 1).to_bytes() for a in inputs]

    def job(t):
        a = inputs[t]
        if t % 2:
            return sum(ev.rotate(ev.add(a, a), 1).to_bytes() != expected[t] for _ in range(8))
        wrong = 0
        for _ in range(3):
            graph = ckks.Graph(ev, lambda c: ev.rotate(ev.add(c, c), 1), inputs[0])
            wrong += graph(a).to_bytes() != expected[t]
        return wrong

    assert in_threads(job) == [0] * 8


def test_a_graph_inside_a_graph_is_refused(world):
    a = world.client.encrypt([1.0])
    inner = ckks.Graph(world.ev, world.ev.negate, a)
    with pytest.raises(ckks.StateError, match="recording"):
        ckks.Graph(world.ev, inner, a)
    assert inner(a).to_bytes() == world.ev.negate(a).to_bytes()


def test_profiles_come_and_go_while_others_compute(device):
    """Accounts are attached, taken off and dropped; the second of two at a time is refused."""
    shared = open_context(toy(), device).device
    profiled = ckks.Context(toy(), shared)
    context = quiet(
        lambda: tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), shared)
    )  # its gates have stages
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    even = np.arange(16) % 2 == 0
    a, b = client.encrypt(even), client.encrypt(even)
    done = threading.Event()

    def profile(_):
        seen = 0
        while not done.is_set():
            try:
                with crenel.profile(profiled) as account:
                    time.sleep(0)
                seen += all(isinstance(r["stage"], str) for r in account.records())
            except crenel.StateError:
                pass
        return seen

    def compute(_):
        return sum((client.decrypt(ev.nand(a, b)) == even).sum() for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        profilers = [pool.submit(profile, t) for t in range(2)]
        wrong = [pool.submit(compute, t) for t in range(6)]
        try:
            assert sum(w.result() for w in wrong) == 0
        finally:
            done.set()
        assert sum(p.result() for p in profilers) > 0
