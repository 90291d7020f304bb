"""Around the routes: headers of every answer, errors as problems, bodies within limits, waiting."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crenel.errors import (
    AuthenticationError,
    CrenelError,
    LimitError,
    NotFoundError,
    ParameterError,
)  # fmt: skip
from crenel.serve.auth import Tenant
from crenel.serve.errors import Problem
from crenel.serve.observe import log
from crenel.serve.schemas import PROTOCOL, TUS
from crenel.serve.service import Service
from crenel.serve.statements import FINAL, OPEN, QUEUED

PIECE = 1 << 20
GLANCE_S, ASK_S, FEW = 0.004, 1.0, 4
"""Between two looks whether anybody wrote to the database, and between two at what is waited for; where so
few wait, looks are four times as often."""
ISOLATED = (
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-embedder-policy", b"require-corp"),
)


def answer(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """A problem as it is sent."""
    found = {"Cache-Control": "no-store", **(headers or {})}
    if problem.retry:
        found["Retry-After"] = str(max(1, problem.retry_after))
    if problem.status == 401:
        found["WWW-Authenticate"] = "Bearer"
    return JSONResponse(problem.document(), problem.status, found, "application/problem+json")


class Refusal(Exception):
    """An error of the library with a status of its own."""

    def __init__(self, error: CrenelError, status: int, retry: bool | None = None) -> None:
        super().__init__(str(error))
        self.problem = Problem.of(error, status, retry)


def add_errors(app: FastAPI, service: Service) -> None:
    """Every error of a route becomes a problem."""

    def told(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
        service.metrics.problems.labels(problem.code).inc()
        return answer(problem, headers)

    @app.exception_handler(CrenelError)
    async def library(_request: Request, error: CrenelError) -> JSONResponse:
        return told(Problem.of(error))

    @app.exception_handler(Refusal)
    async def refusal(_request: Request, error: Refusal) -> JSONResponse:
        return told(error.problem, {"Connection": "close"} if error.problem.status in (408, 413) else None)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        places = sorted({".".join(str(part) for part in found["loc"]) for found in error.errors()})
        return told(
            Problem.of(ParameterError(f"missing or malformed: {', '.join(places)}", {"name": places[0]}))
        )

    @app.exception_handler(HTTPException)
    async def http(_request: Request, error: HTTPException) -> JSONResponse:
        kind = NotFoundError if error.status_code == 404 else ParameterError
        headers = dict(error.headers) if error.headers else None
        return told(Problem.of(kind(str(error.detail)), error.status_code), headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(_request: Request, _error: ClientDisconnect) -> JSONResponse:
        return told(Problem.of(ParameterError("the connection broke within the body"), 400))


class Edge:
    """Outermost: the protocol's headers, counts, a line of the log an answer, and mistakes as 500."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.monotonic(), 0
        page = scope["path"].startswith("/page")

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_headers(page)]
            await send(message)

        spoken = dict(scope["headers"]).get(b"crenel-protocol", str(PROTOCOL).encode())
        try:
            if spoken != str(PROTOCOL).encode():
                error = ParameterError("another version of the protocol", {"expected": PROTOCOL})
                await answer(Problem.of(error, 406))(scope, receive, sent)
            else:
                await self.app(scope, receive, sent)
        except Exception as mistake:  # of ours: named in the log, not shown
            name = uuid.uuid4().hex
            log("mistake", id=name, code=type(mistake).__name__, method=scope["method"], route=_route(scope))
            if status == 0:
                error500 = CrenelError("the service failed", {"id": name})
                await answer(Problem.of(error500))(scope, receive, sent)
        finally:
            waiting = scope.get("state", {}).get("waiting")
            if waiting is not None:
                self.service.waiting.leave(waiting)
            self._count(scope, status, time.monotonic() - start)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route, method = _route(scope), scope["method"]
        if method not in ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"):
            method = "other"
        self.service.metrics.requests.labels(method, route, str(status)).inc()
        self.service.metrics.seconds.labels(method, route).observe(seconds)
        tenant = scope.get("state", {}).get("tenant")
        log("request", method=method, route=route, status=status, seconds=seconds, tenant=tenant)


def _route(scope: Scope) -> str:
    """The template, never the path: names in it would make labels without end."""
    found = scope.get("route")
    return str(getattr(found, "path", "other"))


def _headers(page: bool) -> list[tuple[bytes, bytes]]:
    found = [
        (b"crenel-protocol", str(PROTOCOL).encode()),
        (b"cross-origin-resource-policy", b"cross-origin"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return [*found, *ISOLATED] if page else found


def peer(request: Request) -> str:
    """The address that the connection comes from."""
    return request.client.host if request.client else "unknown"


def tus_version(request: Request) -> None:
    """Raises Refusal for requests of another version of tus."""
    if request.headers.get("tus-resumable") != TUS:
        raise Refusal(ParameterError(f"Tus-Resumable must be {TUS}", {"expected": TUS}), 412)


def refused(service: Service, request: Request) -> None:
    """Counts a wrong token of an address. Raises LimitError where there were too many."""
    address = peer(request)
    service.refusals.check(address)
    with contextlib.suppress(LimitError):
        service.refusals.take(address)


async def bearer(service: Service, request: Request) -> Tenant:
    """The tenant of a request, within its rate and its number. Raises AuthenticationError, LimitError.

    A good token is never refused for its address: behind a proxy all tenants may have one address, and
    wrong tokens of a stranger would lock all of them out.
    """
    given = request.headers.get("authorization")
    tenant = service.auth.known(given)
    if tenant is None:
        try:
            tenant = await run_in_threadpool(service.auth.tenant, given)
        except AuthenticationError:
            refused(service, request)
            raise
    request.state.tenant = tenant.id
    service.requests.take(tenant.id)
    service.waiting.enter(tenant.id)
    request.state.waiting = tenant.id  # until `Edge` has sent the answer
    return tenant


async def body(request: Request, limit: int, seconds: float) -> AsyncIterator[bytes]:
    """Pieces of a body of about a mebibyte.

    limit : bytes; seconds : longest pause. Raises Refusal (413, 408) and ClientDisconnect, after what came
    before was given out.
    """
    stated = request.headers.get("content-length")
    too_large = Refusal(
        LimitError(f"the body has more than {limit} bytes", {"limit": limit}), 413, retry=False
    )
    if stated is not None and (not stated.isdigit() or int(stated) > limit):
        raise too_large
    pending, size = bytearray(), 0
    stream = request.stream().__aiter__()
    error: Exception | None = None
    while error is None:
        try:
            piece = await asyncio.wait_for(stream.__anext__(), seconds)
        except StopAsyncIteration:
            break
        except asyncio.TimeoutError:
            error = Refusal(LimitError("the body stopped", {"limit": seconds}), 408, retry=True)
            break
        except ClientDisconnect as gone:
            error = gone
            break
        size += len(piece)
        if size > limit:
            raise too_large
        pending += piece
        if len(pending) >= PIECE:
            yield bytes(pending)
            pending.clear()
    if pending:
        yield bytes(pending)
    if error is not None:
        raise error


class Waiter:
    """Requests that wait for jobs: one look at the database for all of them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._events: dict[str, dict[asyncio.Event, bool]] = {}
        self._known: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None

    async def changed(self, job: str, seconds: float, ended: bool = True) -> None:
        """Until the job ended, or changed at all where not `ended`; at most so long. It may have before."""
        event = asyncio.Event()
        self._events.setdefault(job, {})[event] = ended
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(event.wait(), seconds)
        finally:
            self._events[job].pop(event, None)
            if not self._events[job]:
                del self._events[job]

    async def _look(self) -> None:
        """While anybody waits: at once where the database says that something was written, now and then
        where it does not."""
        database, settings = self._service.database, self._service.settings
        seen: int | None = None
        asked = 0.0
        while self._events:
            version, start = database.version(), time.monotonic()
            pause = settings.watch_seconds
            if version is not None:  # where few wait, a look costs little, and what they wait for is short
                pause = min(pause, GLANCE_S if len(self._events) > FEW else GLANCE_S / 4)
            if version is None or version != seen or start - asked > ASK_S:
                seen, asked = version, start
                with contextlib.suppress(CrenelError):
                    self._tell(await run_in_threadpool(self._service.jobs.states, list(self._events)))
                pause = max(
                    pause, 4 * (time.monotonic() - start)
                )  # at most a fifth of the time is spent here
            await asyncio.sleep(pause)
        self._known = {}

    def _tell(self, found: dict[str, str]) -> None:
        for job, events in self._events.items():
            state = found.get(job, "gone")
            if self._known.get(job, QUEUED) != state:
                for event, ended in events.items():
                    if not ended or state not in OPEN:
                        event.set()
            self._known[job] = state
        self._known = {job: state for job, state in self._known.items() if job in self._events}


async def until(
    look: Callable[[], Any],
    ready: Callable[[Any], bool],
    wait: Callable[[float], Awaitable[None]],
    seconds: float,
) -> Any:
    """What `look` finds once it is `ready`, or after so many seconds; `wait` sleeps in between."""
    end = time.monotonic() + seconds
    while True:
        found = await run_in_threadpool(look)
        left = end - time.monotonic()
        if ready(found) or left <= 0:
            return found
        await wait(min(left, 2.0))  # a change that came between look and wait is found then


def final(row: Any) -> bool:
    """Has the job ended?"""
    return row.state in FINAL
