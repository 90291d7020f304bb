"""One function over many encrypted inputs, on all machines of a Ray cluster. Needs ``crenel[serve]``.

>>> from crenel import distributed, nn
>>> answers = distributed.map(distributed.program(program_file, key_file), inputs)

Actors and not Ray Data: inputs are a few large byte strings that are computed on for long, not many small
rows. Ray Data gave the same bytes when it was tried on files of ciphertexts, but begins later (it plans and
starts its own reading tasks), keeps order only by a setting of the process, holds rows in Arrow blocks whose
retry repeats all of them, and needs pyarrow and pandas. Here a worker that dies repeats its own inputs,
`ahead` bounds what is on its way, and answers come as they are ready.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crenel import nn
from crenel.errors import ParameterError, UnavailableError, UnsupportedError
from crenel.nn import archive

Run = Callable[[bytes], bytes]
RETRIES = 4  # of an input whose worker died; more would run one that kills its worker for ever
OBJECTS = 256 << 20  # of Ray's store on one machine: inputs and outputs on their way


@dataclass(frozen=True)
class Task:
    """What a worker makes once, on its device, and calls for every input. It travels: it holds bytes."""

    make: Callable[[str], Run]
    """``make(device)`` returns ``run(input) -> output``."""


@dataclass(frozen=True)
class _Bound:
    program: bytes
    keys: bytes
    allow_insecure: bool

    def __call__(self, device: str) -> Run:
        made = nn.Program.from_bytes(self.program, device, allow_insecure=self.allow_insecure).bind(self.keys)
        return lambda data: made.run(made.tensor_from_bytes(data)).to_bytes()


def program(
    program: str | os.PathLike[str] | bytes,
    keys: str | os.PathLike[str] | bytes,
    *,
    allow_insecure: bool = False,
) -> Task:
    """A program of `crenel.nn` with one client's evaluation keys.

    program, keys : their files, or bytes. Raises FileError where a file cannot be read.
    """
    read = [p if isinstance(p, bytes) else archive.read(Path(p)) for p in (program, keys)]
    return Task(_Bound(read[0], read[1], allow_insecure))


def map(
    task: Task, inputs: Iterable[bytes], *, device: str = "cpu", workers: int = 1, ahead: int = 2
) -> Iterator[bytes]:
    """The outputs, in the order of the inputs, as they come.

    Parameters
    ----------
    task : what every worker makes once
    inputs : encrypted tensors or ciphertexts as bytes; read as they are needed, never all at once
    device : "cpu" or "ref"; "cuda": each worker has one GPU, which Ray chooses
    workers : how many compute at a time
    ahead : inputs of each worker that wait at it

    A worker that dies is started again and its inputs with it: evaluation is bit-identical, so nobody sees it
    but by time. An input whose workers die again and again ends the iteration. On the cluster that
    RAY_ADDRESS names, else on a Ray of this machine, which ends with the iteration.

    Raises ParameterError at once, what `task.make` and its function raise, UnsupportedError without Ray,
    UnavailableError where workers die `RETRIES` times more of one input.
    """
    if device not in ("cpu", "ref", "cuda") or workers < 1 or ahead < 1:
        raise ParameterError(
            f"device {device}, {workers} workers, {ahead} ahead: expected cpu, ref or cuda, and at least 1",
            {"name": device},
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no network at run time
    try:
        import ray
    except ImportError as error:
        raise UnsupportedError(
            f"crenel.distributed needs Ray ({error}): pip install 'crenel[serve]'"
        ) from None
    return _mapped(ray, task, inputs, device, workers, ahead)


class _Actor:
    """A worker: what the task makes, on its device."""

    def __init__(self, task: Task, device: str) -> None:
        self._run = task.make("cuda:0" if device == "cuda" else device)

    def run(self, data: bytes) -> bytes:
        return self._run(data)


def _mapped(
    ray: Any, task: Task, inputs: Iterable[bytes], device: str, workers: int, ahead: int
) -> Iterator[bytes]:
    ours = not ray.is_initialized()
    if ours and "RAY_ADDRESS" in os.environ:
        ray.init()
    elif ours:
        ray.init(
            num_cpus=workers, include_dashboard=False, object_store_memory=OBJECTS, configure_logging=False
        )
    try:
        actor = {"num_cpus": 1, "num_gpus": int(device == "cuda")}
        kind = ray.remote(max_restarts=-1, max_task_retries=RETRIES, **actor)(_Actor)
        shared = ray.put(task)
        actors = [kind.remote(shared, device) for _ in range(workers)]
        waiting: list[Any] = []
        for number, data in enumerate(inputs):
            if len(waiting) >= ahead * workers:
                yield _answer(ray, waiting.pop(0))
            waiting.append(actors[number % workers].run.remote(data))
        while waiting:
            yield _answer(ray, waiting.pop(0))
    finally:
        if ours:
            ray.shutdown()


def _answer(ray: Any, reference: Any) -> bytes:
    try:
        return bytes(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayActorError:
        raise UnavailableError(
            f"workers died {RETRIES + 1} times at one input, or could not begin: Ray's log says why"
        ) from None
