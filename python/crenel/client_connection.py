"""What `crenel.client` asks of a service: requests that are tried again, keys, jobs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from crenel.arguments import text
from crenel.client_facts import JobFacts, KeyFacts, ProgramFacts, Protocol
from crenel.client_uploads import SENDING, Place, Upload, hash_of, telling
from crenel.errors import (
    CrenelError,
    KeysNeededError,
    NotFoundError,
    ParameterError,
    StateError,
    UnavailableError,
    UnsupportedError,
)  # fmt: skip
from crenel.progress_bar import Callback
from crenel.serve.errors import error_of
from crenel.workloads.files import opened

try:
    import httpx
except ImportError:
    raise UnsupportedError("crenel.client needs httpx: pip install 'crenel[client]'") from None

PROTOCOL = "1"
TRIES, LONGEST_PAUSE_S = 8, 5.0
C = TypeVar("C", bound="Connection")


def http(url: str, token: str, timeout: float) -> httpx.Client:
    """What speaks to a service as the tenant whose token it is; timeout : seconds of one request. Raises
    ParameterError for what is no URL of HTTP, and for what cannot be a token."""
    address, sent = _address(text("url", url)), _sendable(text("token", token))
    return httpx.Client(base_url=address, timeout=timeout, headers={"Authorization": f"Bearer {sent}"})


def _address(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL, ValueError):
        found = httpx.URL(url)
        if found.scheme in ("http", "https") and found.host and not re.search(r"\s", url):
            return found
    shown = ascii(re.sub(r"^(.*//)?.*@", r"\1", url, flags=re.DOTALL))[:80]  # without a user's password
    raise ParameterError(f"url is {shown}, expected http:// or https:// and a host", {"url": shown})


def _sendable(token: str) -> str:
    # It is a secret: no message shows any of it.
    if not re.fullmatch("[!-~]+", token):
        wrong = "holds other characters" if token else "is empty"
        raise ParameterError(f"token {wrong}, expected printable ASCII without spaces", {"name": "token"})
    return token


class Connection:
    """A service, as one tenant sees it: requests, keys and jobs.

    Every call raises AuthenticationError for a token that the service does not know, LimitError beyond the
    tenant's limits, UnavailableError where nobody answers: each after several tries where they may help.
    """

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._places: dict[Place, str] = {}  # of uploads that have not ended
        self.protocol: Protocol = self.request("GET", "/protocol").json()
        """Versions and limits."""

    def __enter__(self: C) -> C:
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
        with telling(progress) as told:
            key, size = self.sent(Path(path), program, replaces, told)
            if told and size:
                told(size, size, SENDING)
        return key

    def sent(self, path: Path, program: str, replaces: str | None, told: Callback | None) -> tuple[str, int]:
        """`upload`: the hash, and the bytes where some were sent, of which the last are not told of yet.
        Raises KeysNeededError, and what else `upload` does."""
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
                place = self._http.base_url.copy_with(userinfo=b"")  # a user's password is a secret
                error = UnavailableError(f"{place}: {type(broken).__name__}")
                again = not isinstance(broken, (httpx.LocalProtocolError, httpx.UnsupportedProtocol))
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
