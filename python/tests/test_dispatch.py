"""Inputs go to whichever worker is free, answers come in order, whatever workers do: in a simulated clock."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter

import pytest

from crenel.dispatch import RETRIES, Dispatch, WorkerLostError
from crenel.errors import ParameterError, UnavailableError


class Simulated:
    """Workers of stated speeds; each call takes its input's work by its worker's speed. `dies(worker, data)`
    says whether the worker ends at this input."""

    def __init__(self, speeds, work=lambda data: 1.0, dies=lambda worker, data: False, begins=lambda w: True):
        self.speeds, self.work, self.dies, self.begins = speeds, work, dies, begins
        self.now, self.names, self.calls = 0.0, itertools.count(), itertools.count()
        self.free: dict[int, float] = {}  # when a worker has done all that it has
        self.dead: set[int] = set()
        self.events: list[tuple[float, int]] = []
        self.outcome: dict[int, object] = {}
        self.began: dict[int, float] = {}
        self.withdrawn: set[int] = set()
        self.ran: Counter[bytes] = Counter()
        self.stopped: list[int] = []

    def start(self):
        worker = next(self.names)
        self.free[worker] = self.now
        return worker

    def _call(self, worker, duration, outcome):
        call = next(self.calls)
        self.began[call] = self.free[worker]
        self.free[worker] += duration
        lost = worker in self.dead or isinstance(outcome, WorkerLostError)
        self.outcome[call] = WorkerLostError() if lost else outcome
        if lost:
            self.dead.add(worker)
        heapq.heappush(self.events, (self.free[worker], call))
        return call

    def begin(self, worker):
        return self._call(worker, 0.5, b"" if self.begins(worker) else WorkerLostError())

    def hold(self, data):
        return data

    def run(self, worker, held):
        self.ran[held] += 1
        outcome = WorkerLostError() if self.dies(worker, held) else answer(held)
        return self._call(worker, self.work(held) / self.speeds(worker), outcome)

    def withdraw(self, call):
        self.withdrawn.add(call)

    def ended(self, calls):
        found: list[int] = []
        while not found:
            when = self.events[0][0]
            while self.events and self.events[0][0] == when:
                found.append(heapq.heappop(self.events)[1])
            found = [call for call in found if call in calls]
            self.now = when
        return found

    def answer(self, call):
        found = self.outcome[call]
        if isinstance(found, Exception):
            raise found
        return found

    def stop(self, worker):
        self.stopped.append(worker)


def answer(data):
    return ValueError("no") if data == b"wrong" else b"of " + data


def numbered(count):
    return [b"%d" % k for k in range(count)]


def dispatched(crew, inputs, workers=4, ahead=2, waiting=16):
    return Dispatch(crew, inputs, workers=workers, ahead=ahead, waiting=waiting)


def test_order_and_completeness_with_workers_of_any_speed_that_die(rng):
    for _ in range(60):
        workers, ahead, waiting = (
            int(v) for v in (rng.integers(1, 6), rng.integers(1, 4), rng.integers(0, 9))
        )
        speeds = dict(enumerate(rng.lognormal(0, 1, 1000)))
        work = dict(zip(numbered(50), rng.exponential(1, 50), strict=True))
        deaths = Counter({data: int(rng.integers(0, 3)) for data in rng.choice(numbered(50), 10)})

        def dies(worker, data, deaths=deaths):
            deaths[data] -= 1
            return deaths[data] >= 0

        crew = Simulated(speeds.__getitem__, work.__getitem__, dies)
        found = list(dispatched(crew, numbered(50), workers, ahead, waiting).answers())
        assert found == [b"of " + data for data in numbered(50)]
        assert set(crew.stopped) <= crew.dead  # none that lives


def test_a_slow_worker_does_not_idle_the_others():
    """In turn, of four workers one slower by 20: 25 of 100 inputs at it, 500 units of time."""
    for waiting, most in ((16, 100), (25, 100 / 3.05 + 2 * 20 + 1)):  # two of its inputs at most end with it
        crew = Simulated(lambda worker: 0.05 if worker == 0 else 1.0)
        found = list(dispatched(crew, numbered(100), waiting=waiting).answers())
        assert found == [b"of " + data for data in numbered(100)]
        assert crew.now < most, crew.now
    # The first input is at the slow worker: behind it others go on until as many answers wait as may.
    crew = Simulated(lambda worker: 0.001 if worker == 0 else 1.0)
    read = []
    next(dispatched(crew, (read.append(d) or d for d in numbered(1000)), waiting=5).answers())
    assert len(read) == 4 * (2 + 5)


def test_what_waits_behind_a_long_input_is_moved():
    crew = Simulated(lambda worker: 1.0, lambda data: 100.0 if data == b"0" else 1.0)
    found = list(dispatched(crew, numbered(8), workers=2).answers())
    assert len(found) == 8 and crew.now <= 101.5 and len(crew.withdrawn) == 1
    assert crew.ran[b"0"] == 1


def test_inputs_are_read_as_workers_have_room():
    read = []
    answers = dispatched(
        Simulated(lambda worker: 1.0), (read.append(d) or d for d in numbered(1000)), workers=2, waiting=1
    ).answers()
    for number in range(50):
        assert next(answers) == b"of %d" % number
        assert len(read) <= number + 1 + 2 * (2 + 1)


def test_poison_ends_the_iteration_in_its_place_and_nothing_else():
    crew = Simulated(lambda worker: 1.0, dies=lambda worker, data: data == b"3")
    found = dispatched(crew, numbered(10)).answers()
    assert [next(found) for _ in range(3)] == [b"of 0", b"of 1", b"of 2"]
    with pytest.raises(UnavailableError, match="5 workers died at input 3") as error:
        next(found)
    assert error.value.fields == {"index": 3} and crew.ran[b"3"] == RETRIES + 1


def test_a_neighbour_of_poison_is_not_charged():
    """With one worker all others wait behind it, five times."""
    deaths = iter([True] * RETRIES)
    crew = Simulated(lambda worker: 1.0, dies=lambda worker, data: data == b"0" and next(deaths, False))
    assert len(list(dispatched(crew, numbered(6), workers=1, ahead=3).answers())) == 6


def test_errors_come_in_their_place():
    crew = Simulated(lambda worker: 1.0, lambda data: 9.0 if data == b"0" else 1.0)
    found = dispatched(crew, [b"0", b"1", b"wrong", b"3"]).answers()
    assert [next(found), next(found)] == [b"of 0", b"of 1"]
    with pytest.raises(ValueError, match="no"):
        next(found)
    found = dispatched(Simulated(lambda worker: 1.0), [b"0", "text"]).answers()
    assert next(found) == b"of 0"
    with pytest.raises(ParameterError, match="input 1 is a str"):
        next(found)

    def broken():
        yield b"0"
        raise OSError("disk")

    found = dispatched(Simulated(lambda worker: 1.0), broken()).answers()
    assert next(found) == b"of 0"
    with pytest.raises(OSError, match="disk"):
        next(found)


def test_workers_that_cannot_begin():
    crew = Simulated(lambda worker: 1.0, begins=lambda worker: worker >= 4)
    assert len(list(dispatched(crew, numbered(10), workers=1).answers())) == 10  # the fifth could
    with pytest.raises(UnavailableError, match="before one could begin"):
        list(dispatched(Simulated(lambda w: 1.0, begins=lambda w: False), numbered(3)).answers())
    assert list(dispatched(Simulated(lambda w: 1.0), []).answers()) == []
