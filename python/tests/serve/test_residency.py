"""The budget of bytes: reserved before it is taken, leased while in use, the oldest use first to go."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from crenel.errors import OutOfMemoryError
from crenel.serve.residency import Residency


def of(size: int, value: str = "v"):
    return lambda: (value, size)


def test_least_recently_used_goes_first():
    tier: Residency[str] = Residency(30)
    for name in "abc":
        with tier.lease(name, 10, of(10)):
            pass
    with tier.lease("a", 10, of(10)):  # used again
        pass
    with tier.lease("d", 10, of(10)):
        pass
    assert tier.names == {"a", "c", "d"}
    use = tier.use
    assert (use.nbytes, use.hits, use.misses, use.evictions) == (30, 1, 4, 1)


def test_in_use_is_never_dropped():
    tier: Residency[str] = Residency(20)
    order = []
    with tier.lease("a", 10, of(10)), tier.lease("b", 10, of(10)):

        def third() -> None:
            with tier.lease("c", 10, of(10)):
                order.append("c")

        waiting = threading.Thread(target=third)
        waiting.start()
        time.sleep(0.05)
        assert tier.names == {"a", "b"} and not order
        assert tier.shrink() == 0
        order.append("done")
    waiting.join(10)
    assert order == ["done", "c"] and "c" in tier.names


def test_room_is_there_before_anything_is_made():
    tier: Residency[str] = Residency(20)
    with tier.lease("a", 20, of(15)):
        pass
    seen = []

    def make():
        seen.append(tier.use.nbytes)
        return "b", 10

    with tier.lease("b", 10, make):
        pass
    assert seen == [10]  # a went first
    with pytest.raises(OutOfMemoryError) as caught, tier.lease("c", 21, of(1)):
        pass
    assert caught.value.fields["needed"] == 21


def test_what_fails_leaves_nothing():
    tier: Residency[str] = Residency(10)

    def fails():
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError), tier.lease("a", 10, fails):
            pass
    assert tier.use.nbytes == 0
    with tier.lease("a", 10, of(10)) as found:
        assert found == "v"


def test_a_drop_waits_for_the_last_user():
    tier: Residency[str] = Residency(10)
    with tier.lease("a", 10, of(10)):
        tier.drop("a")
        assert tier.names == set() and tier.use.nbytes == 10
    assert tier.use.nbytes == 0


def test_one_is_made_once_and_others_need_not_wait_for_it():
    tier: Residency[str] = Residency(100)
    made, go, inside = [], threading.Event(), threading.Event()

    def slow():
        made.append(1)
        inside.set()
        assert go.wait(10)
        return "slow", 10

    found = []

    def use():
        with tier.lease("slow", 10, slow) as value:
            found.append(value)

    threads = [threading.Thread(target=use) for _ in range(4)]
    [t.start() for t in threads]
    assert inside.wait(10)
    with tier.lease("other", 10, of(10, "other")) as value:  # while the slow one is being made
        assert value == "other"
    go.set()
    [t.join(10) for t in threads]
    assert found == ["slow"] * 4 and made == [1]


def test_the_budget_holds_under_many_threads():
    seed = int(np.random.default_rng().integers(2**32))
    print("seed", seed)
    sizes = np.random.default_rng(seed).integers(1, 30, 12).tolist()
    tier: Residency[str] = Residency(64)
    worst, failures = [0], []

    def work(k: int) -> None:
        rng = np.random.default_rng([seed, k])
        for n in rng.integers(0, 12, 60).tolist():
            with tier.lease(str(n), sizes[n], of(sizes[n], str(n))) as value:
                if value != str(n):
                    failures.append(n)
                worst[0] = max(worst[0], tier.use.nbytes)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not failures and worst[0] <= 64 and not any(t.is_alive() for t in threads)


def test_what_takes_more_than_was_thought_sends_others_away():
    tier: Residency[str] = Residency(30)
    for name in "ab":
        with tier.lease(name, 10, of(10)):
            pass
    with tier.lease("c", 10, of(15)):
        assert tier.names == {"b", "c"} and tier.use.nbytes == 25
