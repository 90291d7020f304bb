"""A client of a service (`crenel serve`): keys sent once, encrypted inputs sent, results decrypted here.

>>> from crenel import client
>>> digits = client.connect("http://127.0.0.1:8400", token).open("digits")
>>> scores = digits.run(images)

The secret key is made here and never sent. Needs ``crenel[client]``.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike

from crenel import nn
from crenel.client_facts import (
    Digest,
    JobFacts,
    KeyFacts,
    Limits,
    Problem,
    ProgramFacts,
    Protocol,
    Seconds,
)
from crenel.client_uploads import SENDING, Place, Upload, hash_of
from crenel.errors import (
    CrenelError,
    FileError,
    KeyMissingError,
    KeysNeededError,
    MissingFileError,
    NotFoundError,
    SerializationError,
    StateError,
    UnavailableError,
    UnsupportedError,
)  # fmt: skip
from crenel.nn.ops import Reals
from crenel.progress_bar import Bar, Callback
from crenel.serve.errors import error_of
from crenel.workloads.files import opened, refused

try:
    import httpx
except ImportError:
    raise UnsupportedError("crenel.client needs httpx: pip install 'crenel[client]'") from None

PROTOCOL = "1"
TRIES, LONGEST_PAUSE_S, LOOK_S = 8, 5.0, 1.0


def connect(url: str, token: str, *, timeout: float = 60.0) -> Service:
    """A service at a URL, as the tenant whose token it is.

    Parameters
    ----------
    url : as ``http://127.0.0.1:8400``, or https; what it connects to is the user's to trust
    token : of a tenant, as `crenel tenant add` prints it; it is checked by the first request that needs one
    timeout : seconds that one request may take

    Raises UnavailableError where nobody answers, UnsupportedError for a service of another version of the
    protocol.
    """
    service = Service(
        httpx.Client(base_url=url, timeout=timeout, headers={"Authorization": f"Bearer {token}"})
    )
    versions = service.protocol["protocol"]
    if int(PROTOCOL) not in versions:
        raise UnsupportedError(
            f"the service speaks versions {versions} of the protocol, this client {PROTOCOL}"
        )
    return service


class Service:
    """A service, as one tenant sees it. See `connect`.

    Every call raises AuthenticationError for a token that the service does not know, LimitError beyond the
    tenant's limits, UnavailableError where nobody answers: each after several tries where they may help.
    """

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._places: dict[Place, str] = {}  # of uploads that have not ended
        self.protocol: Protocol = self.request("GET", "/protocol").json()
        """Versions and limits."""

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes connections."""
        self._http.close()

    def programs(self) -> list[ProgramFacts]:
        """What it serves."""
        return list(self.request("GET", "/programs").json()["programs"])

    def keys(self) -> list[KeyFacts]:
        """The evaluation keys that it holds of this tenant."""
        return list(self.request("GET", "/keys").json()["keys"])

    def jobs(self) -> list[JobFacts]:
        """The newest jobs of this tenant, at most 100, the newest first."""
        return list(self.request("GET", "/jobs").json()["jobs"])

    def delete_keys(self, key: str) -> None:
        """Has it forget evaluation keys. Raises NotFoundError."""
        self.request("DELETE", f"/keys/{key}")

    def spec(self, name: str, *, allow_insecure: bool = False) -> nn.ClientSpec:
        """What a client must know of a program, by its name or fingerprint.

        allow_insecure : accept parameters of less than 128 bits of security

        Raises NotFoundError, SerializationError for insecure parameters and for a file that is another
        program's.
        """
        found = next((p for p in self.programs() if name in (p["name"], p["program"])), None)
        if found is None:
            raise NotFoundError(f"the service has no program {name!r}", {"name": name})
        data = self.request("GET", f"/programs/{found['program']}/client").content
        spec = nn.ClientSpec.from_bytes(data, allow_insecure=allow_insecure)
        if spec.program != found["program"]:
            raise SerializationError("the client file is another program's", {"found": spec.program})
        return spec

    def open(
        self,
        name: str,
        *,
        secret_key: str | os.PathLike[str] | None = None,
        device: str = "cpu",
        allow_insecure: bool = False,
        progress: bool | Callback = False,
    ) -> Session:
        """A program with this client's keys: made, sent and checked, or found again.

        Parameters
        ----------
        name : of the program, or its fingerprint
        secret_key : file of the secret key, read where it is there, else made and written (readable by its
            owner alone); None: a new key, which ends with the session. Evaluation keys are kept beside it
        device : where keys are made and numbers are encrypted
        allow_insecure : accept parameters of less than 128 bits of security
        progress : True for a bar, or a function f(done, total, what), of the upload

        Raises as `spec`, ServiceError, SerializationError where the service refuses the keys, FileError for
        files that cannot be read or written.
        """
        spec = self.spec(name, allow_insecure=allow_insecure)
        session = Session(self, spec, _client(spec, secret_key, device), _kept(spec, secret_key))
        session.send_keys(progress=progress)
        return session

    def upload(
        self,
        path: str | os.PathLike[str],
        program: str,
        *,
        replaces: str | None = None,
        progress: bool | Callback = False,
    ) -> str:
        """Sends a key file and waits until it is checked; goes on where a broken connection ended, or a call
        of this function that was stopped.

        Parameters
        ----------
        path : a file of `crenel.ckks.EvaluationKeys.save`
        program : fingerprint of the program that they are for
        replaces : hash of keys that the service forgets once these are checked
        progress : True for a bar, or a function f(done, total, what) of bytes, told of all once they are
            checked. What it raises stops the call

        Returns their hash. Raises FileError where the file cannot be read (MissingFileError for none),
        SerializationError, KeyMissingError for keys that the service refuses, KeysNeededError where they are
        deleted meanwhile, LimitError, StorageError, UnavailableError.
        """
        with _told(progress) as told:
            key, size = self._upload(Path(path), program, replaces, told)
            if told and size:
                told(size, size, SENDING)
        return key

    def _upload(
        self, path: Path, program: str, replaces: str | None, told: Callback | None
    ) -> tuple[str, int]:
        """`upload`: the hash, and the bytes where some were sent, of which the last are not told of yet."""
        sent = 0
        with opened(path) as file:
            key = hash_of(file)
            state = self._state(key)
            if state is None or state["state"] == "refused" or state["program"] != program:
                sent = os.fstat(file.fileno()).st_size
                what, most = (program, key, replaces), int(self.protocol["limits"]["chunk_bytes"])
                Upload(self.request, file, sent, what, most, self._places).send(told)
        while (state := self._state(key, wait=30)) is not None and state["state"] == "received":
            pass
        if state is None:
            raise KeysNeededError("the keys are gone before they were checked", {"key": key})
        if state["error"]:
            raise error_of(state["error"])
        return key, sent

    def _state(self, key: str, wait: int = 0) -> KeyFacts | None:
        try:
            found: KeyFacts = self.request("GET", f"/keys/{key}", params={"wait": wait}).json()
        except NotFoundError:
            return None
        return found

    def request(
        self,
        method: str,
        route: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str | int | float] | None = None,
        tries: int = TRIES,
    ) -> httpx.Response:
        """One request of the protocol (docs/reference/service.md), again after a pause where the service says
        that this may help, or does not answer.

        Parameters
        ----------
        method, route, content, headers, params : of HTTP; the route as of the service's address
        tries : in all; pauses begin at 0.1 seconds, or what the service says, and double, up to 5 seconds

        Every route of the protocol may be asked for again. Raises the library's error of the answer,
        UnavailableError where nobody answers.
        """
        pause, told = 0.1, dict(headers or {}) | {"Crenel-Protocol": PROTOCOL}
        for left in range(tries - 1, -1, -1):
            error: CrenelError
            try:
                answer = self._http.request(method, route, content=content, headers=told, params=params)
            except httpx.TransportError as broken:
                error, again = UnavailableError(f"{self._http.base_url}: {type(broken).__name__}"), True
            else:
                if answer.status_code < 400:
                    return answer
                error, again, pause = _problem(answer, pause)
            if not again or left == 0 or isinstance(error, StateError):  # what waits, its caller waits for
                raise error
            time.sleep(min(pause, LONGEST_PAUSE_S))
            pause *= 2
        raise AssertionError


def _problem(answer: httpx.Response, pause: float) -> tuple[CrenelError, bool, float]:
    """The error of an answer, whether to try again, and after how many seconds."""
    try:
        found = answer.json()
        error = error_of(found)
    except (ValueError, AttributeError):  # HEAD has no body; a proxy answers otherwise
        kind = NotFoundError if answer.status_code == 404 else UnavailableError
        return (
            kind(f"the service answered {answer.status_code}"),
            answer.status_code in (429, 502, 503, 504),
            pause,
        )
    stated = answer.headers.get("Retry-After", "")
    return error, bool(found.get("retry")), float(stated) if stated.isdigit() else pause


class Session:
    """A program and a client's keys at a service. See `Service.open`.

    Parameters
    ----------
    service, spec, client : where, for which program, and whose secret key
    file : where evaluation keys are kept, or None
    """

    def __init__(
        self, service: Service, spec: nn.ClientSpec, client: nn.Client, file: Path | None = None
    ) -> None:
        self.service, self.spec, self.client = service, spec, client
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
        with _told(progress) as told:
            if not path.exists():
                self.client.evaluation_keys(self.spec).save(path)
            try:
                self.key, size = self.service._upload(path, self.spec.program, replaces, told)
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
        found = np.asarray(samples, dtype=np.float64)
        single, batch = found.shape == self.spec.input.shape, self.spec.batch
        rows = found[None] if single else found
        parts = [rows[k : k + batch] for k in range(0, len(rows), batch)] or [rows]
        end = None if timeout is None else time.monotonic() + timeout
        with _told(progress) as sink:
            told = _Samples(sink, len(rows))
            started: list[Job] = []
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

    def submit(self, samples: ArrayLike) -> Job:
        """Encrypts up to `spec.batch` samples and sends them; returns at once. A service that forgot the keys
        gets them again.

        samples : of shape (samples, *`spec.input.shape`), or one without the axis in front

        Raises as `crenel.nn.Client.encrypt`; LimitError, StorageError, UnavailableError where the service
        takes no more, after 8 tries; SerializationError, KeyMissingError where it refuses the keys.
        """
        data = self.client.encrypt(samples, self.spec).to_bytes()
        headers = {
            "Crenel-Program": self.spec.program, "Content-Type": "application/octet-stream",
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


def _left(end: float | None) -> float | None:
    """Seconds until then."""
    return None if end is None else end - time.monotonic()


def _give_up(jobs: list[Job]) -> None:
    """Cancels what nobody waits for any more. One try each: what led here goes on to the caller."""
    for job in jobs:
        with suppress(CrenelError):
            job.session.service.request("POST", f"/jobs/{job.id}/cancel", tries=1)


@contextmanager
def _told(progress: bool | Callback) -> Iterator[Callback | None]:
    """Whom the block tells how far it is; a bar ends with it."""
    if not (isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be a bool or a function, got {type(progress).__name__}")
    if progress is not True:
        yield progress or None
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.close()


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
class Job:
    """What was submitted. See `Session.submit`."""

    session: Session
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

    def result(self, timeout: float | None = None) -> Reals:
        """The result, decrypted: (samples, *output shape), of a single sample without the axis in front.

        timeout : seconds. Raises as `encrypted`, and StateError for a result under another key.
        """
        client = self.session.client
        return client.decrypt(client.tensor_from_bytes(self.encrypted(timeout)), self.session.spec)

    def cancel(self) -> JobFacts:
        """Ends it where it has not ended; what the service says of it then. Raises NotFoundError."""
        found: JobFacts = self.session.service.request("POST", f"/jobs/{self.id}/cancel").json()
        return found

    def delete(self) -> None:
        """Has the service forget input and result. Raises NotFoundError."""
        self.session.service.request("DELETE", f"/jobs/{self.id}")


def _client(spec: nn.ClientSpec, secret_key: str | os.PathLike[str] | None, device: str) -> nn.Client:
    if secret_key is None:
        return spec.keygen(device)
    path = Path(secret_key)
    try:
        with opened(path) as file:
            return spec.client_from_secret_key(file.read(), device)
    except MissingFileError:
        made = spec.keygen(device)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise refused("write", path, error) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(made.export_secret_key())
    return made


def _kept(spec: nn.ClientSpec, secret_key: str | os.PathLike[str] | None) -> Path | None:
    """Where evaluation keys of a kept secret key are kept, for this program."""
    return None if secret_key is None else Path(f"{os.fspath(secret_key)}.{spec.program[:16]}.keys")


__all__ = [
    "Digest",
    "Job",
    "JobFacts",
    "KeyFacts",
    "Limits",
    "Problem",
    "ProgramFacts",
    "Protocol",
    "Seconds",
    "Service",
    "Session",
    "connect",
]
