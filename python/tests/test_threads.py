"""The GIL is released while computing, and shared objects may be used from several threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from crenel import ckks


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
