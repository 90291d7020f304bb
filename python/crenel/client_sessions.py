"""Sessions of `crenel.client`: a program or a function with a client's keys, and its jobs."""

from __future__ import annotations

import base64
import hashlib
import shutil
import tempfile
import threading
import time
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crenel import nn
from crenel.client_connection import Connection
from crenel.client_facts import JobFacts
from crenel.client_functions import FunctionSpec
from crenel.client_uploads import SENDING, telling
from crenel.errors import (
    CrenelError,
    FileError,
    KeyMissingError,
    KeysNeededError,
    SerializationError,
    StateError,
    UnavailableError,
)  # fmt: skip
from crenel.nn.client import rows_of
from crenel.nn.ops import Reals
from crenel.progress_bar import Callback
from crenel.serve.forms import Clear, Given, Holder

LOOK_S = 1.0
R = TypeVar("R")


class KeyHolder(ABC, Generic[R]):
    """A client's keys for a program at a service, and jobs under them: what sessions of all kinds have.

    service, program : where, and the program's fingerprint
    file : where evaluation keys are kept, or None
    """

    def __init__(self, service: Connection, program: str, file: Path | None = None) -> None:
        self.service, self.program = service, program
        self.key = ""
        """Hash of the evaluation keys that the service holds."""
        self._file = file
        self._folder: Path | None = None  # of keys that have no file and were not sent yet
        self._sending = threading.RLock()  # one set of keys at a time: others would share its file

    def send_keys(self, *, progress: bool | Callback = False) -> str:
        """Makes the evaluation keys where no file has them, and sends them where the service has not. Where
        that was stopped before, it goes on. Returns their hash. Raises as `Service.upload`."""
        with self._sending:
            return self._send(self._file or self._unsent("first"), None, progress)

    def rotate_keys(self, *, progress: bool | Callback = False) -> str:
        """New evaluation keys of the same secret key in the place of the old ones, which serve until the new
        ones are there. Where that was stopped before, it goes on. Returns their hash. Raises as
        `Service.upload`."""
        with self._sending:
            return self._send(self._unsent("next"), self.key or None, progress)

    def _unsent(self, name: str) -> Path:
        """Where such keys are until they are sent, or the session ends."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp())
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / name

    def _send(self, path: Path, replaces: str | None, progress: bool | Callback) -> str:
        with telling(progress) as told:
            if not path.exists():
                self._save_keys(path)
            try:
                self.key, size = self.service.sent(path, self.program, replaces, told)
            except FileError:  # not the keys' fault
                raise
            except (SerializationError, KeyMissingError):  # refused, as they would be again
                if path != self._file:
                    path.unlink()
                raise
            if self._file is None:
                path.unlink()
            elif path != self._file:
                shutil.move(path, self._file)
            if told and size:
                told(size, size, SENDING)
        return self.key

    def _submitted(self, data: bytes) -> Job[R]:
        """A body as a job; keys that the service forgot are sent again."""
        headers = {
            "Crenel-Program": self.program, "Content-Type": "application/octet-stream",
            "Idempotency-Key": uuid.uuid4().hex,
            "Content-Digest": f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:",
        }  # fmt: skip
        for last in (False, True):
            try:
                made = self.service.request(
                    "POST", "/jobs", content=data, headers=headers | {"Crenel-Key": self.key}
                )
                return Job(self, str(made.json()["job"]))
            except KeysNeededError:
                if last:
                    raise
                self.send_keys()
        raise AssertionError

    @abstractmethod
    def _save_keys(self, path: Path) -> None:
        """Makes the evaluation keys, into a file."""

    @abstractmethod
    def decrypted(self, data: bytes) -> R:
        """A result as it travels, in the clear. Raises SerializationError, StateError."""


class Session(KeyHolder["Reals"]):
    """A program of `crenel.nn` and a client's keys at a service. See `Service.open`.

    Parameters
    ----------
    service, spec, client : where, for which program, and whose secret key
    file : where evaluation keys are kept, or None
    """

    def __init__(
        self, service: Connection, spec: nn.ClientSpec, client: nn.Client, file: Path | None = None
    ) -> None:
        super().__init__(service, spec.program, file)
        self.spec, self.client = spec, client

    def run(
        self, samples: ArrayLike, *, timeout: float | None = None, progress: bool | Callback = False
    ) -> Reals:
        """Encrypts samples, has them computed on, and decrypts: as many as there are, `spec.batch` a job.

        Parameters
        ----------
        samples : of shape (samples, *`spec.input.shape`), or one without the axis in front
        timeout : seconds in all; None: as long as it takes
        progress : True for a bar, or a function f(done, total, what), told of every sample twice, when it is
            sent and when its result is here, and every second of the state of the job that is waited for

        Returns the results, (samples, *output shape), of one sample without the axis in front. Raises as
        `submit`, the job's error, UnavailableError after the timeout. By whatever it ends before its end, by
        what `progress` raises too, jobs that it submitted and that still wait or run are cancelled.
        """
        rows, single = rows_of(samples, self.spec)
        parts = [rows[k : k + self.spec.batch] for k in range(0, len(rows), self.spec.batch)]
        end = None if timeout is None else time.monotonic() + timeout
        with telling(progress) as sink:
            told = _Samples(sink, len(rows))
            started: list[Job[Reals]] = []
            results: list[Reals] = []
            try:
                for part in parts:
                    started.append(self.submit(part[0] if single else part))
                    told.count(len(part), "sent")
                for number, (job, part) in enumerate(zip(started, parts, strict=True), 1):
                    name = f"job {number} of {len(parts)}"
                    if sink is not None:
                        for state in job.states(_left(end), every=LOOK_S):
                            told.say(f"{name} {_standing(state)}")
                    results.append(job.result(_left(end)))
                    told.count(len(part), f"{name} is here")
            except BaseException:
                _give_up(started[len(results) :])
                raise
        return results[0] if single else np.concatenate(results)

    def submit(self, samples: ArrayLike) -> Job[Reals]:
        """Encrypts up to `spec.batch` samples and sends them; returns at once. A service that forgot the keys
        gets them again.

        samples : of shape (samples, *`spec.input.shape`), or one without the axis in front

        Raises as `crenel.nn.Client.encrypt`; LimitError, StorageError, UnavailableError where the service
        takes no more, after 8 tries; SerializationError, KeyMissingError where it refuses the keys.
        """
        return self._submitted(self.client.encrypt(samples, self.spec).to_bytes())

    def _save_keys(self, path: Path) -> None:
        self.client.evaluation_keys(self.spec).save(path)

    def decrypted(self, data: bytes) -> Reals:
        """A result as it travels, in the clear. Raises SerializationError, and StateError for one under
        another key."""
        return self.client.decrypt(self.client.tensor_from_bytes(data), self.spec)


class FunctionSession(KeyHolder[Clear]):
    """A function of a service and a client's keys at it. See `Service.open`.

    Parameters
    ----------
    service, spec, client : where, for which function, and whose secret key: of `crenel.ckks` or `crenel.tfhe`
    file : where evaluation keys are kept, or None
    """

    def __init__(
        self, service: Connection, spec: FunctionSpec, client: Holder, file: Path | None = None
    ) -> None:
        super().__init__(service, spec.program, file)
        self.spec, self.client = spec, client

    def run(self, *inputs: Given, timeout: float | None = None) -> Clear:
        """`submit`, and its result: decrypted numbers, or a tuple where the function gives several.

        timeout : seconds in all; None: as long as it takes. Raises as `submit` and `Job.result`; by whatever
        it ends before its end, the job is cancelled.
        """
        job = self.submit(*inputs)
        try:
            return job.result(timeout)
        except BaseException:
            _give_up([job])
            raise

    def submit(self, *inputs: Given) -> Job[Clear]:
        """Encrypts the function's inputs and sends them; returns at once. A service that forgot the keys gets
        them again.

        inputs : as many as `spec.inputs`: numbers, or what `client` encrypted

        Raises ParameterError for another number of inputs and for numbers that are none of these; StateError
        for ciphertexts of another level, shape, type or secret key; LimitError, StorageError,
        UnavailableError where the service takes no more, after 8 tries; SerializationError, KeyMissingError
        where it refuses the keys.
        """
        return self._submitted(self.spec.encrypt(self.client, *inputs))

    def _save_keys(self, path: Path) -> None:
        self.spec.save_keys(self.client, path)

    def decrypted(self, data: bytes) -> Clear:
        """A result as it travels, in the clear. Raises SerializationError, and StateError for one under
        another key."""
        return self.spec.decrypt(self.client, data)


def _left(end: float | None) -> float | None:
    """Seconds until then."""
    return None if end is None else end - time.monotonic()


def _give_up(jobs: Sequence[Job[R]]) -> None:
    """Cancels what nobody waits for any more. One try each: what led here goes on to the caller."""
    for job in jobs:
        with suppress(CrenelError):
            job.session.service.request("POST", f"/jobs/{job.id}/cancel", tries=1)


class _Samples:
    """Tells of samples on their way: each counts when it is sent, and when its result is here."""

    def __init__(self, sink: Callback | None, samples: int) -> None:
        self._sink, self._done, self._total = sink, 0, 2 * samples
        self.say("encrypting and sending")

    def count(self, samples: int, what: str) -> None:
        self._done += samples
        self.say(what)

    def say(self, what: str) -> None:
        if self._sink is not None:
            self._sink(self._done, self._total, what)


def _standing(state: JobFacts) -> str:
    """Of a job, in a word or three."""
    before = state["position"]
    return state["state"] if before is None else f"{state['state']} behind {before}"


@dataclass(frozen=True)
class Job(Generic[R]):
    """What was submitted. See `Session.submit`, `FunctionSession.submit`."""

    session: KeyHolder[R]
    """Whose it is."""
    id: str
    """32 hexadecimal digits, by which the service knows it."""

    def state(self, wait: float = 0) -> JobFacts:
        """What the service says of it: once it has ended, at the latest after `wait` seconds. Raises
        NotFoundError for a job that was deleted or whose time is over."""
        found: JobFacts = self.session.service.request(
            "GET", f"/jobs/{self.id}", params={"wait": wait}
        ).json()
        return found

    def states(self, timeout: float | None = None, *, every: float = 20.0) -> Iterator[JobFacts]:
        """What the service says, at least so often until the job has ended; the last is how it ended.

        timeout, every : seconds. Raises UnavailableError after the timeout.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = every if end is None else min(every, end - time.monotonic())
            found = self.state(max(0.0, left))
            yield found
            if found["state"] in ("done", "failed", "cancelled"):
                return
            if end is not None and time.monotonic() >= end:
                raise UnavailableError(f"the job is still {found['state']}", {"state": found["state"]})

    def encrypted(self, timeout: float | None = None) -> bytes:
        """The result as it travels, once it is there. Raises the job's error, SerializationError for bytes
        that are not those of the hash, UnavailableError after so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 20.0 if end is None else max(0.0, min(20.0, end - time.monotonic()))
            try:
                answer = self.session.service.request("GET", f"/jobs/{self.id}/result", params={"wait": left})
                break
            except StateError as error:
                state = error.fields.get("state")
                if state not in ("queued", "running"):
                    raise
                if end is not None and time.monotonic() >= end:
                    raise UnavailableError(f"the job is still {state}", {"state": state}) from None
        digest = base64.b64encode(hashlib.sha256(answer.content).digest()).decode()
        if answer.headers.get("Content-Digest") != f"sha-256=:{digest}:":
            raise SerializationError("the result's SHA-256 is another one than the service says")
        return answer.content

    def result(self, timeout: float | None = None) -> R:
        """The result, decrypted: of a program of `crenel.nn` (samples, *output shape), of a single sample
        without the axis in front; of a function what it gives, of several a tuple.

        timeout : seconds. Raises as `encrypted`, and StateError for a result under another key.
        """
        return self.session.decrypted(self.encrypted(timeout))

    def cancel(self) -> JobFacts:
        """Ends it where it has not ended; what the service says of it then. Raises NotFoundError."""
        found: JobFacts = self.session.service.request("POST", f"/jobs/{self.id}/cancel").json()
        return found

    def delete(self) -> None:
        """Has the service forget input and result. Raises NotFoundError."""
        self.session.service.request("DELETE", f"/jobs/{self.id}")
