"""One function over many encrypted inputs, on all machines of a Ray cluster. Needs ``crenel[serve]``.

>>> from crenel import distributed
>>> task = distributed.program("digits.crn", "alice.keys")
>>> answers = distributed.map(task, inputs, workers=4)

Actors and not Ray Data: inputs are a few large byte strings that are computed on for long, not many small
rows. Ray Data gave the same bytes when it was tried on files of ciphertexts, but begins later (it plans and
starts its own reading tasks), keeps order only by a setting of the process, holds rows in Arrow blocks whose
retry repeats all of them, and needs pyarrow and pandas. Nor Ray's ActorPool: it reads all inputs at once, and
a worker that died stays in it. Here inputs go to whichever worker is free, those of a worker that dies to
others, and answers come in the order of the inputs (`crenel.dispatch`).
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import crenel
from crenel import arguments, joining, nn
from crenel.dispatch import Dispatch, WorkerLostError
from crenel.errors import (
    DeviceError,
    OutOfMemoryError,
    ParameterError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)  # fmt: skip
from crenel.nn import archive

Run = Callable[[bytes], bytes]
OBJECTS = 128 << 20  # bytes of Ray's store on one machine beside what is sent
START_S = 300.0  # until the first worker has a place
LOOK_S = 1.0


@dataclass(frozen=True)
class Task:
    """What a worker makes once, on its device, and calls for every input. It is pickled and sent."""

    make: Callable[[str], Run]
    """``make(device)`` returns ``run(input) -> output``, both bytes, the output a function of the input
    alone: an input whose worker dies is computed again."""


@dataclass(frozen=True)
class _Bound:
    program: bytes | str
    keys: bytes | str
    allow_insecure: bool

    def __call__(self, device: str) -> Run:
        read = nn.Program.load if isinstance(self.program, str) else nn.Program.from_bytes
        made = read(self.program, device, allow_insecure=self.allow_insecure).bind(self.keys)  # type: ignore[arg-type]
        return lambda data: made.run(made.tensor_from_bytes(data)).to_bytes()


def program(
    program: str | os.PathLike[str] | bytes,
    keys: str | os.PathLike[str] | bytes,
    *,
    on_nodes: bool = False,
    allow_insecure: bool = False,
) -> Task:
    """A program of `crenel.nn` with one client's evaluation keys, for `map`.

    Parameters
    ----------
    program, keys : files of `crenel.nn.Program.save` and `crenel.ckks.EvaluationKeys.save`, or their bytes
    on_nodes : files are read by each worker on its own machine, under the same path, and not sent: for keys
        of gigabytes on a file system that all machines share. Else they are read here, now, and sent once to
        every machine
    allow_insecure : accept parameters of less than 128 bits of security

    Raises FileError where a file cannot be read here; ParameterError for `on_nodes` with bytes.
    """
    if on_nodes and (isinstance(program, bytes) or isinstance(keys, bytes)):
        raise ParameterError("on_nodes: expected paths of program and keys, not bytes", {"name": "on_nodes"})
    if on_nodes:
        return Task(_Bound(os.path.abspath(program), os.path.abspath(keys), allow_insecure))
    read = [p if isinstance(p, bytes) else archive.read(Path(p)) for p in (program, keys)]
    return Task(_Bound(read[0], read[1], allow_insecure))


def map(
    task: Task,
    inputs: Iterable[bytes],
    *,
    device: str = "cpu",
    workers: int = 1,
    ahead: int = 2,
    waiting: int = 16,
) -> Iterator[bytes]:
    """The outputs, in the order of the inputs, as they come.

    Parameters
    ----------
    task : what every worker makes once
    inputs : encrypted tensors or ciphertexts as bytes; read as they are needed, never all at once
    device : "cpu" or "ref"; "cuda": each worker has one GPU, which Ray chooses
    workers : how many compute at a time; on the CPU each has one core
    ahead : inputs that a worker has, with the one that it computes on. More hide how long they travel; a
        worker without any takes what waits at another
    waiting : outputs of each worker that may wait for one of an earlier input, which a slow worker has. They
        lie in this process

    A worker that dies is replaced, and its inputs go to others: evaluation is bit-identical, so nobody sees
    it but by time. On the cluster that RAY_ADDRESS names, or the one that this process has joined; else on a
    Ray of this machine, which ends with the iteration, and whose store holds the task and the inputs on their
    way (what does not fit goes to files in Ray's folder).

    Raises ParameterError, TypeError and UnsupportedError (without Ray) at once. In the iteration, each in the
    place of its input: what `inputs` and the task's function raise, ParameterError where either is no bytes,
    UnavailableError where a worker died at it five times, StorageError where Ray's store and disk are full.
    Before it: what `task.make` raises, ParameterError where it gives no function; DeviceError where this
    machine has too few GPUs; OutOfMemoryError where it has no memory for what is sent; UnavailableError where
    for 300 seconds no worker found a place on a cluster, none answers at RAY_ADDRESS, or five died before one
    began; ParameterError for a RAY_ADDRESS that is no address.
    """
    arguments.instance(task, Task, "task")
    if arguments.text("device", device) not in ("cpu", "ref", "cuda"):
        raise ParameterError(f"device {device}, expected cpu, ref or cuda", {"name": device})
    workers, ahead = arguments.positive("workers", workers), arguments.positive("ahead", ahead)
    waiting = arguments.natural("waiting", waiting)
    if not isinstance(inputs, Iterable):
        arguments.wrong("inputs", "several", inputs)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no network at run time
    try:
        import ray
    except ImportError as error:
        raise UnsupportedError(
            f"crenel.distributed needs Ray ({error}): pip install 'crenel[serve]'"
        ) from None
    return _mapped(ray, task, inputs, device, workers, ahead, waiting)


def _mapped(
    ray: Any, task: Task, inputs: Iterable[bytes], device: str, workers: int, ahead: int, waiting: int
) -> Iterator[bytes]:
    source = iter(inputs)
    try:
        first = next(source)
    except StopIteration:
        return
    # What is no bytes is refused by `Dispatch`, with its place.
    size = memoryview(first).nbytes if isinstance(first, (bytes, bytearray, memoryview)) else 0
    # As an array: a worker reads it where Ray's store has it, without a copy.
    sent = np.frombuffer(ray.cloudpickle.dumps(task), dtype=np.uint8)
    ours = not ray.is_initialized()
    if ours:
        _init(ray, workers, sent.nbytes + 2 * (ahead * workers + 1) * size)
    crew = None
    try:
        crew = _Crew(ray, sent, device, workers)
        del sent
        dispatch = Dispatch(crew, chain([first], source), workers=workers, ahead=ahead, waiting=waiting)
        yield from dispatch.answers()
    finally:
        if crew is not None:
            crew.close()
        if ours:
            ray.shutdown()


def _init(ray: Any, workers: int, sent: int) -> None:
    """Joins the cluster, or starts Ray here with a store for so many bytes."""
    if joining.named():
        joining.join(ray)
        return
    store = OBJECTS + sent + sent // 8
    available = crenel.Device("cpu").available_bytes
    if store > available:
        raise OutOfMemoryError(
            f"what is sent needs {store} bytes of this machine's memory, which has {available}: "
            "distributed.program(..., on_nodes=True) sends paths",
            {"needed": store, "available": available, "device": "host", "limit": "memory"},
        )
    ray.init(num_cpus=workers, include_dashboard=False, object_store_memory=store, configure_logging=False)


class _Actor:
    """A worker: what the task makes, on its device."""

    def __init__(self, sent: np.ndarray[Any, np.dtype[np.uint8]], device: str) -> None:
        self._sent, self._device = sent, device
        self._run: Run | None = None

    def placed(self) -> None:
        """It has a place."""

    def begin(self) -> bytes:
        """Makes what it calls."""
        task: Task = pickle.loads(self._sent.data)
        made = task.make(self._device)
        if not callable(made):
            raise ParameterError(
                f"task.make gave {type(made).__name__}, expected a function of bytes", {"name": "make"}
            )
        self._run = made
        return b""

    def run(self, data: bytes) -> bytes:
        assert self._run is not None
        found = self._run(data)
        if not isinstance(found, (bytes, bytearray, memoryview)):  # bytes(5) would be five zeros
            raise ParameterError(
                f"the task's function gave {type(found).__name__}, expected bytes", {"name": "make"}
            )
        return bytes(found)


class _Crew:
    """`crenel.dispatch.Crew` of Ray's actors."""

    def __init__(
        self, ray: Any, sent: np.ndarray[Any, np.dtype[np.uint8]], device: str, workers: int
    ) -> None:
        self._ray = ray
        self._device = "cuda:0" if device == "cuda" else device  # Ray shows a worker its own GPU alone
        self._needs = {"CPU": 1, "GPU": int(device == "cuda")}
        found = int(ray.cluster_resources().get("GPU", 0))
        if device == "cuda" and found < workers and len(ray.nodes()) == 1:
            raise DeviceError(
                f"{workers} workers need a GPU each, Ray has {found}", {"needed": workers, "available": found}
            )
        self._kind = ray.remote(num_cpus=1, num_gpus=self._needs["GPU"], max_restarts=0)(_Actor)
        self._sent = self.hold(sent)
        self._actors: dict[Any, Any] = {}  # and what says that it has a place
        self._placed = False
        self._since = time.monotonic()

    def start(self) -> Any:
        actor = self._kind.remote(self._sent, self._device)
        self._actors[actor] = actor.placed.remote()
        return actor

    def begin(self, worker: Any) -> Any:
        return worker.begin.remote()

    def hold(self, data: Any) -> Any:
        try:
            return self._ray.put(data)
        except (self._ray.exceptions.ObjectStoreFullError, self._ray.exceptions.OutOfDiskError) as error:
            size = len(data)
            raise StorageError(
                f"Ray's store has no room for {size} bytes ({type(error).__name__})", {"needed": size}
            ) from None

    def run(self, worker: Any, held: Any) -> Any:
        return worker.run.remote(held)

    def withdraw(self, call: Any) -> None:
        self._ray.cancel(call, recursive=False)

    def ended(self, calls: Collection[Any]) -> list[Any]:
        waited = list(calls)
        some, _ = self._ray.wait(waited, timeout=LOOK_S)
        if not some:
            self._look()
            return []
        found: list[Any] = self._ray.wait(waited, num_returns=len(waited), timeout=0)[0]
        return found

    def answer(self, call: Any) -> bytes:
        try:
            found: bytes = self._ray.get(call)
            return found
        except self._ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from None
        except self._ray.exceptions.RayError as error:  # an actor, a node, an object is gone
            raise WorkerLostError(str(error)) from None

    def stop(self, worker: Any) -> None:
        if self._actors.pop(worker, None) is not None:
            self._ray.kill(worker)

    def close(self) -> None:
        """Ends all."""
        for worker in list(self._actors):
            self.stop(worker)

    def _look(self) -> None:
        """Has any worker found a place?"""
        if not self._placed:
            self._placed = bool(self._ray.wait(list(self._actors.values()), timeout=0)[0])
        if not self._placed and time.monotonic() - self._since > START_S:
            raise UnavailableError(
                f"no worker found a place in {START_S:g} s: each needs {self._needs}, the cluster has free "
                f"{self._ray.available_resources()}",
                {"retry_after": START_S},
            )


__all__ = ["Task", "map", "program"]
