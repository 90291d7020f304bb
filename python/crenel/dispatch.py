"""Inputs to whichever worker is free, answers in the order of the inputs; workers may be slow, or die.

It knows nothing of what workers are (`Crew`): `crenel.distributed` has them on Ray, tests in a simulated
clock.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from crenel.errors import ParameterError, UnavailableError

RETRIES = 4  # of an input whose worker died; more would run one that kills its worker for ever


class WorkerLostError(Exception):
    """A worker, or its machine, is gone. Never seen by callers of the library."""


class Crew(Protocol):
    """Workers, and calls to them that end some time. A worker makes its calls one after the other."""

    def start(self) -> Hashable:
        """A new worker, which nothing was asked of yet."""
        ...

    def begin(self, worker: Hashable) -> Hashable:
        """The call by which it makes itself ready."""
        ...

    def hold(self, data: bytes) -> object:
        """An input, where any worker can read it, until nobody refers to it."""
        ...

    def run(self, worker: Hashable, held: object) -> Hashable:
        """The call for one input."""
        ...

    def withdraw(self, call: Hashable) -> None:
        """Nobody needs a call that has not begun; one that has may go on."""
        ...

    def ended(self, calls: Collection[Hashable]) -> Iterable[Hashable]:
        """Waits for some of them, and returns those that ended; after a while perhaps none."""
        ...

    def answer(self, call: Hashable) -> bytes:
        """Of a call that ended. Raises WorkerLostError, or what the call raised."""
        ...

    def stop(self, worker: Hashable) -> None:
        """Nothing is asked of it any more."""
        ...


@dataclass(eq=False)
class _Worker:
    handle: Hashable
    begun: bool = False
    queue: list[int] = field(default_factory=list)
    """Numbers of the inputs that it has; it computes on the first."""


class Dispatch:
    """One iteration.

    workers : how many
    ahead : inputs that a worker has, the one that it computes on among them
    waiting : answers of each worker that may wait for an earlier one
    """

    def __init__(
        self, crew: Crew, inputs: Iterable[bytes], *, workers: int, ahead: int, waiting: int
    ) -> None:
        self._crew, self._inputs = crew, iter(inputs)
        self._ahead, self._most = ahead, workers * (ahead + waiting)
        self._calls: dict[Hashable, tuple[_Worker, int | None]] = {}  # None: it makes itself ready
        self._held: dict[int, object] = {}  # inputs that have no answer yet
        self._again: list[int] = []  # a heap: those that lost their worker
        self._died: Counter[int] = Counter()
        self._died_early = 0
        self._answers: dict[int, bytes | Exception] = {}
        self._next = 0  # whose answer the caller gets next
        self._read = 0
        self._exhausted = False
        self._workers: list[_Worker] = []
        for _ in range(workers):
            self._start()

    def answers(self) -> Iterator[bytes]:
        """In the order of the inputs; an error, of an input or of reading it, in its place.

        Raises UnavailableError for an input at which workers died, or where none can begin.
        """
        while True:
            self._feed()
            if self._next in self._answers:
                found = self._answers.pop(self._next)
                if isinstance(found, Exception):
                    raise found
                self._next += 1
                yield found
            elif self._held or not self._exhausted:
                self._wait()
            else:
                return

    def _start(self) -> None:
        worker = _Worker(self._crew.start())
        self._workers.append(worker)
        self._calls[self._crew.begin(worker.handle)] = worker, None

    def _feed(self) -> None:
        """Every worker has as many inputs as it may, those with the fewest first."""
        while True:
            free = [w for w in self._workers if w.begun and len(w.queue) < self._ahead]
            if not free:
                return
            worker = min(free, key=lambda w: len(w.queue))
            number = self._taken()
            if number is None and not worker.queue:
                number = self._moved()
            if number is None:
                return
            worker.queue.append(number)
            self._calls[self._crew.run(worker.handle, self._held[number])] = worker, number

    def _taken(self) -> int | None:
        """An input that no worker has; a new one only as far ahead of the caller as answers may wait."""
        if self._again:
            return heapq.heappop(self._again)
        if self._exhausted or self._read - self._next >= self._most:
            return None
        try:
            data = next(self._inputs)
            if not isinstance(data, (bytes, bytearray, memoryview)):
                kind = type(data).__name__
                raise ParameterError(f"input {self._read} is a {kind}, expected bytes", {"index": self._read})
            self._held[self._read] = self._crew.hold(bytes(data))
        except StopIteration:
            self._exhausted = True
            return None
        except Exception as error:
            self._end(self._read, error)
            return None
        self._read += 1
        return self._read - 1

    def _moved(self) -> int | None:
        """The first of what waits behind another's work."""
        behind = [w for w in self._workers if len(w.queue) > 1]
        if not behind:
            return None
        worker = min(behind, key=lambda w: w.queue[1])
        number = worker.queue.pop(1)
        call = next(c for c, owned in self._calls.items() if owned == (worker, number))
        del self._calls[call]
        self._crew.withdraw(call)
        return number

    def _wait(self) -> None:
        lost: list[_Worker] = []
        for call in self._crew.ended(list(self._calls)):
            worker, number = self._calls.pop(call)
            try:
                answer = self._crew.answer(call)
            except WorkerLostError:
                lost.append(worker)
                continue
            except Exception as error:
                if number is None:
                    raise
                self._end(number, error)
            else:
                if number is None:
                    worker.begun, self._died_early = True, 0
                else:
                    self._end(number, answer)
            if number is not None:
                worker.queue.remove(number)
        for worker in dict.fromkeys(lost):  # now their answers that came in time are read
            self._replace(worker)

    def _end(self, number: int, answer: bytes | Exception) -> None:
        self._held.pop(number, None)
        self._answers[number] = answer
        if isinstance(answer, Exception):
            self._exhausted = True  # nobody will ask for what comes behind

    def _replace(self, worker: _Worker) -> None:
        """Another worker in the place of one that died; what it computed on is charged with that."""
        self._workers.remove(worker)
        self._calls = {call: owned for call, owned in self._calls.items() if owned[0] is not worker}
        self._crew.stop(worker.handle)
        for place, number in enumerate(worker.queue):
            self._died[number] += place == 0
            if self._died[number] > RETRIES:
                self._end(number, _died(f"{RETRIES + 1} workers died at input {number}", {"index": number}))
            else:
                heapq.heappush(self._again, number)
        if not worker.begun:
            self._died_early += 1
            if self._died_early > RETRIES:
                raise _died(f"{RETRIES + 1} workers died before one could begin", {"attempts": RETRIES + 1})
        self._start()


def _died(what: str, fields: dict[str, int]) -> UnavailableError:
    return UnavailableError(f"{what}: the log of what runs them says why", dict(fields))
