"""Several devices for one call: who computes which share, how far it is, and how it ends.

What `ckks.DevicePool` and `tfhe.DevicePool` have in common; ciphertexts and keys are theirs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from crenel import _crenel
from crenel._crenel import Device
from crenel.arguments import items, wrong
from crenel.errors import Cancelled, CrenelError, DeviceError, ParameterError
from crenel.pickling import refuse
from crenel.progress_bar import Bar, Callback

T = TypeVar("T")
C = TypeVar("C", covariant=True)
P = TypeVar("P", covariant=True)
LOOKS_S = 0.05  # between two looks of the calling thread at those that compute
Progress = bool | Callback | None


def opened(devices: Sequence[str | Device] | None) -> tuple[Device, ...]:
    """The devices of a pool; None: every GPU of this host.

    A name given twice is two devices of their own, which share a processor. Raises ParameterError for none
    and for an object given twice, DeviceError where one cannot be had.
    """
    if devices is None:
        found = [info.name for info in _crenel.devices() if info.kind == "cuda"]
        if not found:
            raise DeviceError(
                f"no GPU for a pool: {_crenel.cuda_unavailable_reason()}; name devices, such as ['cpu']",
                {"device": "cuda"},
            )
        devices = found
    if isinstance(devices, (str, Device)):
        raise ParameterError(
            f"devices is {devices!r}, expected a list of names, such as ['cuda:0', 'cuda:1']",
            {"devices": str(devices)},
        )
    made: list[Device] = []
    for device in items("devices", devices):
        if any(device is other for other in made):
            raise ParameterError(
                f"{device!r} is in the pool already: name it a second time for a second stream of work",
                {"device": device.name if isinstance(device, Device) else str(device)},
            )
        if not isinstance(device, (str, Device)):
            wrong("devices", "names and crenel.Device objects", device)
        made.append(device if isinstance(device, Device) else Device(device))
    if not made:
        raise ParameterError("a pool of no devices, expected at least one", {"devices": 0})
    return tuple(made)


def shares(count: int, parts: int, unit: int = 1) -> list[range]:
    """`count` things in order as `parts` ranges of equal size, one more for the first of them where they do
    not come out even. Each begins with a multiple of `unit`; the last ones may be empty."""
    units = -(-count // unit)
    ranges, first = [], 0
    for part in range(parts):
        end = first + units // parts + (part < units % parts)
        ranges.append(range(min(first * unit, count), min(end * unit, count)))
        first = end
    return ranges


@dataclass(frozen=True)
class Each(Generic[C]):
    """One object for each device of a pool; an argument that every call gets its device's of."""

    values: tuple[C, ...]


@dataclass(frozen=True)
class Replication:
    """How keys came to the devices of a pool: `seconds` for copies of `nbytes` in all, by the `roads` to
    each device but the first ('peer': from GPU to GPU; 'host'; 'within' one memory)."""

    nbytes: int
    seconds: float
    roads: tuple[str, ...]


def replicated(
    keys: T, nbytes: int, devices: Sequence[Device], copy: Callable[[int], T], wait: Callable[[], None]
) -> tuple[list[T], Replication]:
    """Keys on each of the devices, the first of which has them, and how they came there: by `copy`, which
    takes the number of a device, until `wait` returns."""
    began = time.perf_counter()
    copies = [keys, *(copy(number) for number in range(1, len(devices)))]
    wait()
    took = time.perf_counter() - began
    roads = tuple(_crenel.road_between(devices[0], device) for device in devices[1:])
    return copies, Replication(nbytes * len(roads), took if roads else 0.0, roads)


class _Call:
    """What the threads of one call share."""

    def __init__(self, sizes: Sequence[int], reported: bool) -> None:
        self.reported = reported
        self.token = _crenel.CancelToken()
        self.ended = threading.Semaphore(0)
        self.first: tuple[int, BaseException] | None = None
        self.done = [0.0] * len(sizes)  # of each share, in things
        self.lock = threading.Lock()

    def failed(self, worker: int, error: BaseException) -> None:
        with self.lock:
            if self.first is None:
                self.first = (worker, error)
        self.token.cancel()

    def progress(self) -> int:
        return int(sum(self.done) + 1e-6)


class Step:
    """A worker's view of the call that it is part of: says what is done, and where it may stop."""

    def __init__(self, call: _Call, worker: int) -> None:
        self._call, self._worker = call, worker
        self._before = 0

    def finished(self, things: int) -> None:
        """So many more things of the share are done. Raises Cancelled where the call was stopped."""
        self._before += things
        self._call.done[self._worker] = self._before
        _crenel.point()

    @contextmanager
    def counting(self, things: int) -> Iterator[None]:
        """The operations inside do so many things, and tell how far they are where somebody is told."""
        if not self._call.reported:  # who is told makes operations work in pieces
            yield
            self.finished(things)
            return

        def told(done: int, total: int, _: str) -> None:
            now = self._before + things * done / max(total, 1)
            self._call.done[self._worker] = max(self._call.done[self._worker], now)

        before = _crenel.set_progress(told)
        try:
            yield
        finally:
            _crenel.set_progress(before)
        self.finished(things)


class Workers:
    """A thread a device for the time of each call: none outlives it, so that none is lost by a fork."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = tuple(devices)

    def first(self, count: int) -> Workers:
        """Those of the first devices."""
        if not 1 <= count <= len(self.devices):
            raise ParameterError(
                f"the first {count} devices of {len(self.devices)}, expected 1 to {len(self.devices)}",
                {"count": count, "devices": len(self.devices)},
            )
        return Workers(self.devices[:count])

    def name(self, worker: int) -> str:
        """Of a device, as errors have it: 'cuda:1', and with its place where a name is there twice."""
        name = self.devices[worker].name
        if sum(device.name == name for device in self.devices) == 1:
            return name
        return f"{name} (device {worker} of the pool)"

    def run(
        self,
        work: Callable[[int, Step], T],
        sizes: Sequence[int],
        what: str,
        progress: Progress = None,
    ) -> list[T | None]:
        """``work(worker, step)`` of each device that has a share, at a time; None for the others.

        Raises the error of the device that failed first, with it in the message and in the fields `device`
        and `worker`; the others are stopped before. What handlers of signals and `progress` raise stops all.
        """
        sink, bar = _sink(progress)
        call = _Call(sizes, sink is not None)
        results: list[T | None] = [None] * len(sizes)

        def run_one(worker: int) -> None:
            try:
                with _crenel.stoppable(call.token):
                    results[worker] = work(worker, Step(call, worker))
            except BaseException as error:
                call.failed(worker, error)
            finally:
                call.ended.release()

        threads = [
            threading.Thread(target=run_one, args=(worker,), name=f"crenel {self.name(worker)}", daemon=True)
            for worker, size in enumerate(sizes)
            if size
        ]
        try:
            _attend(threads, call, sink, sum(sizes), what)
        finally:
            call.token.cancel()  # of use where something was raised here
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            if bar is not None:
                bar.close()
        if call.first is not None:
            worker, error = call.first
            raise self._named(error, worker)
        return results

    def _named(self, error: BaseException, worker: int) -> BaseException:
        if not isinstance(error, CrenelError):
            note = getattr(error, "add_note", None)  # from Python 3.11 on
            if note is not None:
                note(f"on {self.name(worker)}")
            return error
        fields = {**error.fields, "device": self.devices[worker].name, "worker": worker}
        named = type(error)(f"on {self.name(worker)}: {error}", fields)
        named.__cause__ = error
        return named


def _sink(progress: Progress) -> tuple[Callback | None, Bar | None]:
    """Who is told: the argument, or whom the operations of this thread tell."""
    if progress is None:
        sink = _crenel.set_progress(None)
        _crenel.set_progress(sink)
        return sink, None
    if progress is True:
        bar = Bar()
        return bar, bar
    if progress is not False and not callable(progress):
        raise TypeError("progress must be a bool or a function f(done, total, what)")
    return progress or None, None


def _attend(
    threads: Sequence[threading.Thread], call: _Call, sink: Callback | None, total: int, what: str
) -> None:
    """Starts them, and waits for all: here Ctrl-C comes, tokens are looked at and progress is told."""
    told = 0
    if sink is not None:
        sink(0, total, what)
    for thread in threads:
        thread.start()
    left = len(threads)
    while left:
        if call.ended.acquire(timeout=LOOKS_S):
            left -= 1
        try:
            _crenel.point()
        except Cancelled:
            if call.first is None:
                raise
        now = call.progress()
        if sink is not None and told < now < total:
            sink(now, total, what)
            told = now
    if sink is not None and call.first is None:
        sink(total, total, what)


def describe(devices: Sequence[Device], replication: Replication | None = None) -> str:
    """The devices of a pool in words, and how bytes come to each."""
    words = {
        "peer": "from memory to memory",
        "host": "through host memory: it cannot reach the first one's",
        "within": "within one memory",
    }
    lines = [f"{len(devices)} devices, a thread each" if len(devices) > 1 else "1 device"]
    for number, device in enumerate(devices):
        way = "holds what goes in and comes out"
        if number:
            way = f"copies from {devices[0].name}: {words[_crenel.road_between(devices[0], device)]}"
        lines.append(f"  {device.name}: {device.description}; {way}")
    if replication is not None and replication.roads and not devices[0].name.startswith("cuda:dry"):
        rate = replication.nbytes / max(replication.seconds, 1e-9)
        lines.append(
            f"keys: {replication.nbytes / 1e9:.3f} GB copied in {replication.seconds:.3f} s, "
            f"{rate / 1e9:.1f} GB/s"
        )
    return "\n".join(lines)


class OfDevice(Protocol[P]):
    """What a pool asks of a scheme's context."""

    @property
    def params(self) -> P: ...
    def synchronize(self) -> None: ...


X = TypeVar("X", bound=OfDevice[Any])
D = TypeVar("D", bound="Pool[Any, Any]")


class Pool(Generic[P, X]):
    """A context on each of several devices; the base of both schemes' `DevicePool`. Immutable."""

    __slots__ = ("_contexts", "_workers")

    def __init__(self, workers: Workers, contexts: Sequence[X]) -> None:
        self._workers = workers
        self._contexts = tuple(contexts)

    @property
    def params(self) -> P:
        """The parameters, as the contexts have them."""
        params: P = self.context.params
        return params

    @property
    def context(self) -> X:
        """Of the first device: where clients, inputs and results live."""
        return self._contexts[0]

    @property
    def contexts(self) -> tuple[X, ...]:
        """Of every device, in order."""
        return self._contexts

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices, in order."""
        return self._workers.devices

    def __len__(self) -> int:
        return len(self._contexts)

    def _first(self: D, count: int) -> D:
        """The same on the first `count` devices alone."""
        pool = object.__new__(type(self))
        Pool.__init__(pool, self._workers.first(count), self._contexts[:count])
        return pool

    def synchronize(self) -> None:
        """Wait until every device has done what was queued on it."""
        for context in self._contexts:
            context.synchronize()

    def describe(self) -> str:
        """The devices in words, and how bytes come to each."""
        return describe(self.devices)

    def _names(self) -> str:
        return ", ".join(device.name for device in self.devices)

    def __reduce__(self) -> NoReturn:
        refuse(self, "send its params and the names of its devices")
