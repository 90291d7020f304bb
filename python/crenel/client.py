"""A client of a service (`crenel serve`): keys sent once, encrypted inputs sent, results decrypted here.

>>> from crenel import client
>>> digits = client.connect("http://127.0.0.1:8400", token).open("digits")
>>> scores = digits.run(images)

`open` makes a session of a program of `crenel.nn`, or of a function (`function`).

The secret key is made here and never sent. Needs ``crenel[client]``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar, cast

from crenel import nn
from crenel.client_connection import PROTOCOL, Connection, http
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
from crenel.client_functions import FunctionSpec, H, Makes
from crenel.client_sessions import FunctionSession, Job, Session
from crenel.errors import (
    MissingFileError,
    NotFoundError,
    SerializationError,
    UnsupportedError,
)  # fmt: skip
from crenel.progress_bar import Callback
from crenel.workloads.files import opened, refused

S = TypeVar("S", nn.ClientSpec, FunctionSpec)


def connect(url: str, token: str, *, timeout: float = 60.0) -> Service:
    """A service at a URL, as the tenant whose token it is.

    Parameters
    ----------
    url : as ``http://127.0.0.1:8400``, or https; what it connects to is the user's to trust
    token : of a tenant, as `crenel tenant add` prints it; it is checked by the first request that needs one
    timeout : seconds that one request may take

    Raises ParameterError for what is no such URL, and for a token that is empty or holds other than printable
    ASCII, or spaces; UnavailableError where nobody answers, UnsupportedError for a service of another version
    of the protocol.
    """
    service = Service(http(url, token, timeout))
    versions = service.protocol["protocol"]
    if int(PROTOCOL) not in versions:
        raise UnsupportedError(
            f"the service speaks versions {versions} of the protocol, this client {PROTOCOL}"
        )
    return service


class Service(Connection):
    """A service, as one tenant sees it. See `connect`.

    Every call raises AuthenticationError for a token that the service does not know, LimitError beyond the
    tenant's limits, UnavailableError where nobody answers: each after several tries where they may help.
    """

    def spec(self, name: str, *, allow_insecure: bool = False) -> nn.ClientSpec:
        """What a client must know of a program of `crenel.nn`, by its name or fingerprint.

        allow_insecure : accept parameters of less than 128 bits of security

        Raises NotFoundError, SerializationError for insecure parameters and for a file that is another
        program's, StateError for a function (`function`).
        """
        return self._spec(self._facts(name), nn.ClientSpec, allow_insecure)

    def _facts(self, name: str) -> ProgramFacts:
        found = next((p for p in self.programs() if name in (p["name"], p["program"])), None)
        if found is None:
            raise NotFoundError(f"the service has no program {name!r}", {"name": name})
        return found

    def _spec(self, found: ProgramFacts, kind: type[S], allow_insecure: bool) -> S:
        data = self.request("GET", f"/programs/{found['program']}/client").content
        spec = kind.from_bytes(data, allow_insecure=allow_insecure)
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
        """A program with this client's keys: made, sent and checked, or found again. Of a function it is what
        `function` returns, which also has its type.

        Parameters
        ----------
        name : of the program, or its fingerprint
        secret_key : file of the secret key, read where it is there, else made and written (readable by its
            owner alone); None: a new key, which ends with the session. Evaluation keys are kept beside it
        device : where keys are made and numbers are encrypted
        allow_insecure : accept parameters of less than 128 bits of security
        progress : True for a bar, or a function f(done, total, what), of the upload

        Raises NotFoundError, SerializationError for insecure parameters and where the service refuses the
        keys, ServiceError, FileError for files that cannot be read or written, UnsupportedError for a kind of
        programs that this version does not know.
        """
        found = self._facts(name)
        if found["kind"] == "function":
            function = self._function(found, secret_key, device, allow_insecure, progress)
            return cast(Session, function)  # what it is: the name does not tell a type checker
        if found["kind"] != "nn":
            raise UnsupportedError(
                f"{name!r} is a program of the kind {found['kind']!r}, this client knows nn and function",
                {"kind": found["kind"]},
            )
        spec = self._spec(found, nn.ClientSpec, allow_insecure)
        session = Session(self, spec, _client(spec, secret_key, device), _kept(spec, secret_key))
        session.send_keys(progress=progress)
        return session

    def function(
        self,
        name: str,
        *,
        secret_key: str | os.PathLike[str] | None = None,
        device: str = "cpu",
        allow_insecure: bool = False,
        progress: bool | Callback = False,
    ) -> FunctionSession:
        """A function (`crenel.serve.Function`, `crenel.serve.IntegerFunction`) with this client's keys: those
        that it needs, made, sent and checked, or found again.

        Takes and raises what `open` does, and StateError for a program of `crenel.nn`.
        """
        return self._function(self._facts(name), secret_key, device, allow_insecure, progress)

    def _function(
        self,
        found: ProgramFacts,
        secret_key: str | os.PathLike[str] | None,
        device: str,
        allow_insecure: bool,
        progress: bool | Callback,
    ) -> FunctionSession:
        spec = self._spec(found, FunctionSpec, allow_insecure)
        file = _kept(spec, secret_key)
        session = FunctionSession(self, spec, _client(spec, secret_key, device), file)
        session.send_keys(progress=progress)
        return session


def _client(spec: Makes[H], secret_key: str | os.PathLike[str] | None, device: str) -> H:
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


def _kept(spec: nn.ClientSpec | FunctionSpec, secret_key: str | os.PathLike[str] | None) -> Path | None:
    """Where evaluation keys of a kept secret key are kept, for this program."""
    return None if secret_key is None else Path(f"{os.fspath(secret_key)}.{spec.program[:16]}.keys")


__all__ = [
    "Digest",
    "FunctionSession",
    "FunctionSpec",
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
