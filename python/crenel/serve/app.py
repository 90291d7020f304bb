"""The routes: each parses, asks one service, and answers. docs/reference/service.md says what they mean."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import RedirectResponse, StreamingResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

import crenel
from crenel.errors import LimitError, NotFoundError, ParameterError, SerializationError, StateError
from crenel.serve import edge
from crenel.serve.auth import Tenant
from crenel.serve.blobs import Reserved
from crenel.serve.edge import PIECE, Refusal, Waiter, add_errors, bearer, body, final, until
from crenel.serve.errors import error_of
from crenel.serve.jobs import Submission
from crenel.serve.results import SMALL
from crenel.serve.schemas import (
    IDEMPOTENCY,
    PROTOCOL,
    TUS,
    Alive,
    Guest,
    Hash,
    Id,
    JobList,
    JobModel,
    KeyList,
    KeyModel,
    Limits,
    ProgramFull,
    ProgramList,
    Protocol,
    Ready,
    utc,
)
from crenel.serve.service import Service
from crenel.serve.statements import QUEUED
from crenel.serve.uploads import EXTENSIONS, Chunk, Upload, checksum_of, metadata_of

OCTETS = "application/octet-stream"
CHUNK = "application/offset+octet-stream"
EXPOSED = [
    "Location", "ETag", "Retry-After", "Content-Digest", "Upload-Offset", "Upload-Length", "Upload-Expires",
    "Upload-Metadata", "Tus-Version", "Tus-Resumable", "Tus-Extension", "Tus-Max-Size",
    "Tus-Checksum-Algorithm", "Crenel-Protocol", "Crenel-Key",
]  # fmt: skip
PROBLEM = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "A refusal", **PROBLEM}, "5XX": {"description": "A failure", **PROBLEM},
    422: {"description": "A body that cannot be used", **PROBLEM},
}  # fmt: skip
BINARY = {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}


def create(service: Service) -> FastAPI:
    """The application of a service."""
    app = FastAPI(
        title="Crenel", version=str(PROTOCOL), summary="Programs on encrypted numbers.", responses=ERRORS,
        docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.service, app.state.waiter = service, Waiter(service)
    add_errors(app, service)
    for add in (_add_open, _add_programs, _add_uploads, _add_keys, _add_jobs, _add_results):
        add(app, service)
    if service.settings.page:
        folder = Path(service.settings.page)
        if not folder.is_dir():
            raise ParameterError(f"the setting page names {folder}, which is no folder", {"name": "page"})
        app.mount("/page", StaticFiles(directory=folder, html=True), name="page")
    if service.settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(service.settings.origins), expose_headers=EXPOSED,
            allow_methods=["GET", "HEAD", "POST", "PATCH", "DELETE"], allow_headers=["*"], max_age=600,
        )  # fmt: skip
    app.add_middleware(edge.Edge, service=service)
    return app


async def _tenant(request: Request) -> Tenant:
    return await bearer(request.app.state.service, request)


_scheme = HTTPBearer(auto_error=False, description="A token of the service")
Who = Annotated[Tenant, Depends(_tenant)]
SECURED = [Depends(_scheme)]
Wait = Annotated[float, Query(ge=0, le=3600, allow_inf_nan=False, description="Seconds to wait")]


def _add_open(app: FastAPI, service: Service) -> None:
    settings = service.settings

    @app.get("/protocol")
    def protocol() -> Protocol:
        """Versions and limits."""
        limits = Limits(**{name: getattr(settings, name) for name in Limits.model_fields})
        return Protocol(
            protocol=[PROTOCOL],
            library=crenel.__version__,
            tus=TUS,
            limits=limits,
            guests=settings.guests > 0,
        )

    @app.get("/healthz")
    def healthz() -> Alive:
        """Does the process answer?"""
        return Alive(status="ok")

    @app.get("/readyz", responses={503: {"model": Ready}})
    def readyz(response: Response) -> Ready:
        """Will jobs be run?"""
        checks = service.checks()
        ready = set(checks.values()) == {"ok"}
        response.status_code = 200 if ready else 503
        return Ready(ready=ready, checks=checks)

    @app.get("/metrics", response_class=Response)
    def metrics(request: Request, authorization: Annotated[str, Header()] = "") -> Response:
        """Prometheus' text, for the bearer of the metrics' own token."""
        if not settings.metrics_token:
            raise NotFoundError("this service shows no metrics")
        expected = f"Bearer {settings.metrics_token}"
        if not hmac.compare_digest(authorization.encode(), expected.encode()):
            edge.refused(service, request)
            raise crenel.AuthenticationError("the metrics' own token is needed")
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.post("/guests", status_code=201)
    def guests(request: Request) -> Guest:
        """A tenant for some hours, where strangers are let in."""
        address = edge.peer(request)
        service.refusals.check(address)
        service.refusals.take(address)
        token, tenant, expires = service.auth.guest()
        return Guest(token=token, tenant=tenant, expires=utc(expires) or "")

    @app.get("/", include_in_schema=False)
    def root() -> RedirectResponse:
        """To the page."""
        if not settings.page:
            raise NotFoundError("this service has no page")
        return RedirectResponse("/page/")


def _add_programs(app: FastAPI, service: Service) -> None:
    @app.get("/programs", dependencies=SECURED)
    def programs(tenant: Who) -> ProgramList:
        """What is served."""
        return ProgramList.model_validate(
            {"programs": [service.described(p.program) for p in service.programs]}
        )

    @app.get("/programs/{program}", dependencies=SECURED)
    def program(tenant: Who, program: Hash) -> ProgramFull:
        """A program, with all that a client needs."""
        return ProgramFull.model_validate(service.described(program))

    @app.get(
        "/programs/{program}/client", dependencies=SECURED, response_class=Response, responses={200: BINARY}
    )
    def client(tenant: Who, program: Hash) -> Response:
        """Its client file."""
        data = service.programs.get(program).client_file
        return Response(data, media_type=OCTETS, headers={"ETag": f'"{hashlib.sha256(data).hexdigest()}"'})


def _stands(upload: Upload) -> dict[str, str]:
    """Headers that say where an upload stands."""
    found = {
        "Tus-Resumable": TUS, "Upload-Offset": str(upload.offset), "Upload-Length": str(upload.length),
        "Upload-Expires": utc(upload.expires) or "", "Cache-Control": "no-store",
    }  # fmt: skip
    return found | ({"Crenel-Key": upload.sha256} if upload.finished else {})


def _add_uploads(app: FastAPI, service: Service) -> None:
    uploads, settings = service.uploads, service.settings
    tus = [*SECURED, Depends(edge.tus_version)]

    @app.options("/keys/uploads", status_code=204)
    def offers() -> Response:
        """What of tus there is."""
        found = {
            "Tus-Resumable": TUS, "Tus-Version": TUS, "Tus-Extension": EXTENSIONS,
            "Tus-Max-Size": str(settings.key_bytes), "Tus-Checksum-Algorithm": "sha256",
        }  # fmt: skip
        return Response(status_code=204, headers=found)

    @app.post("/keys/uploads", status_code=201, dependencies=tus, response_class=Response)
    def create(
        tenant: Who,
        upload_length: Annotated[int, Header(ge=0, lt=2**63)],
        upload_metadata: Annotated[str, Header(max_length=4096)],
    ) -> Response:
        """A new upload."""
        try:
            made = uploads.create(tenant, upload_length, metadata_of(upload_metadata))
        except LimitError as error:
            raise Refusal(
                error, 429 if "retry_after" in error.fields else 413, "retry_after" in error.fields
            ) from None
        headers = _stands(made) | {"Location": f"/keys/uploads/{made.id}"}
        return Response(status_code=201, headers=headers)

    @app.head("/keys/uploads/{upload}", dependencies=tus, response_class=Response)
    def stands(tenant: Who, upload: Id) -> Response:
        """Where an upload stands."""
        return Response(headers=_stands(uploads.finish(tenant, upload)))

    @app.patch("/keys/uploads/{upload}", status_code=204, dependencies=tus, response_class=Response)
    async def append(
        tenant: Who,
        upload: Id,
        request: Request,
        upload_offset: Annotated[int, Header(ge=0, lt=2**63)],
        upload_checksum: Annotated[str | None, Header(max_length=100)] = None,
    ) -> Response:
        """The next chunk."""
        if request.headers.get("content-type") != CHUNK:
            raise Refusal(ParameterError(f"Content-Type must be {CHUNK}"), 415)
        found = await run_in_threadpool(uploads.expect, tenant, upload, upload_offset)
        chunk = Chunk(found, checksum_of(upload_checksum))
        done = await _received(service, tenant, chunk, request)
        return Response(status_code=204, headers=_stands(done))

    @app.delete("/keys/uploads/{upload}", status_code=204, dependencies=tus)
    def terminate(tenant: Who, upload: Id) -> Response:
        """Gives an upload up."""
        uploads.delete(tenant, upload)
        return Response(status_code=204, headers={"Tus-Resumable": TUS})


async def _received(service: Service, tenant: Tenant, chunk: Chunk, request: Request) -> Upload:
    """Takes a chunk's body. Where the sender goes away, what came stays, unless it has a checksum."""
    blob = service.uploads.blob_of(chunk.upload)
    most = min(service.settings.chunk_bytes, chunk.upload.length - chunk.upload.offset)
    with service.blobs.reserved(min(most, _length(request) or most)) as room:
        size, broken = await _written(service, chunk, request, most, blob, room)
    service.metrics.received.labels("/keys/uploads/{upload}").inc(size)
    done = await run_in_threadpool(service.uploads.append, tenant, chunk.upload, blob, size)
    if broken is not None:
        raise broken
    return done


async def _written(
    service: Service, chunk: Chunk, request: Request, most: int, blob: str, room: Reserved
) -> tuple[int, Exception | None]:
    """Bytes of a chunk that were kept, and what ended it before its end."""
    broken: Exception | None = None
    writer = await run_in_threadpool(service.blobs.writer, blob)
    try:
        try:
            async for piece in body(request, most, service.settings.body_seconds):
                chunk.seen(piece)
                await run_in_threadpool(writer.write, piece)
                room.used(len(piece))
        except (ClientDisconnect, Refusal) as error:
            if chunk.checksum is not None or isinstance(error, Refusal) and error.problem.status == 413:
                raise
            broken = error
        else:
            chunk.check()
        return await run_in_threadpool(writer.commit), broken
    except SerializationError as error:
        await run_in_threadpool(writer.abort)
        raise Refusal(error, 460, retry=True) from None
    except BaseException:
        writer.abort()
        raise


def _add_keys(app: FastAPI, service: Service) -> None:
    keys = service.keys

    @app.get("/keys", dependencies=SECURED)
    def all_keys(tenant: Who) -> KeyList:
        """Those that the service still holds."""
        return KeyList(keys=[KeyModel.of(row) for row in keys.all(tenant)])

    @app.get("/keys/{key}", dependencies=SECURED)
    async def key(tenant: Who, key: Hash, wait: Wait = 0) -> KeyModel:
        """One of them, at the latest after `wait` seconds once it is checked."""
        seconds = min(wait, service.settings.wait_seconds)
        row = await until(
            lambda: keys.get(tenant, key), lambda r: r.state != "received",
            lambda left: asyncio.sleep(min(left, 0.2)), seconds,
        )  # fmt: skip
        return KeyModel.of(row)

    @app.delete("/keys/{key}", status_code=204, dependencies=SECURED)
    def delete_key(tenant: Who, key: Hash) -> Response:
        """Forgets one."""
        keys.delete(tenant, key)
        return Response(status_code=204)


def _add_jobs(app: FastAPI, service: Service) -> None:
    jobs = service.jobs

    def shown(row: Any) -> JobModel:
        return JobModel.of(row, jobs.position(row) if row.state == QUEUED else None)

    def accepted(tenant: Tenant, asked: Submission) -> Response:
        with service.blobs.reserved(asked.size if asked.body is not None else 0):
            row, new = jobs.submit(tenant, asked)
        return _model(shown(row), 202 if new else 200, {"Location": f"/jobs/{row.id}"})

    @app.post(
        "/jobs", status_code=202, response_model=JobModel, dependencies=SECURED,
        responses={200: {"model": JobModel}}, openapi_extra={"requestBody": {"required": True, **BINARY}},
    )  # fmt: skip
    async def submit(
        tenant: Who,
        request: Request,
        crenel_program: Annotated[Hash, Header()],
        crenel_key: Annotated[Hash, Header()],
        idempotency_key: Annotated[str, Header(pattern=IDEMPOTENCY)],
        content_digest: Annotated[str | None, Header(max_length=200)] = None,
    ) -> Response:
        """A new job, or the one that this idempotency key stands for."""
        if request.headers.get("content-type") != OCTETS:
            raise Refusal(ParameterError(f"Content-Type must be {OCTETS}"), 415)
        names = crenel_program, crenel_key, idempotency_key
        if int(_length(request) or PIECE + 1) > PIECE:
            await run_in_threadpool(jobs.precheck, tenant, *names)
            found = await _large_body(service, request, content_digest)
        else:
            found = await _small_body(service, request, content_digest)
        data, blob, size, sha256 = found
        asked = Submission(*names, data, blob, size, sha256)
        return await run_in_threadpool(accepted, tenant, asked)

    _add_job_views(app, service, shown)


def _add_job_views(app: FastAPI, service: Service, shown: Callable[[Any], JobModel]) -> None:
    jobs, settings = service.jobs, service.settings

    @app.get("/jobs", dependencies=SECURED)
    def all_jobs(
        tenant: Who,
        state: Annotated[str | None, Query(pattern="^(queued|running|done|failed|cancelled)$")] = None,
    ) -> JobList:
        """The newest ones."""
        return JobList(jobs=[JobModel.of(row) for row in jobs.all(tenant, state)])

    @app.get("/jobs/{job}", response_model=JobModel, dependencies=SECURED)
    async def job(tenant: Who, job: Id, wait: Wait = 0) -> Response:
        """One of them, at the latest after `wait` seconds once it has ended."""
        waiter: Waiter = app.state.waiter

        def look() -> tuple[Any, JobModel]:
            row = jobs.get(tenant, job)
            return row, shown(row)

        _, found = await until(
            look, lambda seen: final(seen[0]), lambda left: waiter.changed(job, left),
            min(wait, settings.wait_seconds),
        )  # fmt: skip
        return _model(found)

    @app.post("/jobs/{job}/cancel", dependencies=SECURED)
    def cancel(tenant: Who, job: Id) -> JobModel:
        """Ends it."""
        return shown(jobs.cancel(tenant, job))

    @app.delete("/jobs/{job}", status_code=204, dependencies=SECURED)
    def delete(tenant: Who, job: Id) -> Response:
        """Ends and forgets it."""
        jobs.delete(tenant, job)
        return Response(status_code=204)


def _model(found: JobModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A job as it is sent; it is checked already."""
    return Response(found.model_dump_json(), status, headers, "application/json")


def _length(request: Request) -> int | None:
    """What a body says of its length; None where it says nothing that `edge.body` would take."""
    stated = request.headers.get("content-length", "")
    return int(stated) if stated.isdigit() else None


Body = tuple[bytes | None, str, int, str]
"""Bytes or the name of their blob, size, hash."""


async def _small_body(service: Service, request: Request, content_digest: str | None) -> Body:
    """In memory. Raises Refusal, SerializationError."""
    settings = service.settings
    data = b"".join([piece async for piece in body(request, settings.input_bytes, settings.body_seconds)])
    digest = hashlib.sha256(data)
    _same_digest(digest.digest(), content_digest)
    service.metrics.received.labels("/jobs").inc(len(data))
    return data, "", len(data), digest.hexdigest()


async def _large_body(service: Service, request: Request, content_digest: str | None) -> Body:
    """In a blob. Raises Refusal, SerializationError, StorageError."""
    settings, digest = service.settings, hashlib.sha256()
    blob = f"incoming/{uuid.uuid4().hex}"
    most = min(_length(request) or settings.input_bytes, settings.input_bytes)
    with service.blobs.reserved(most) as room:
        writer = await run_in_threadpool(service.blobs.writer, blob)
        try:
            async for piece in body(request, settings.input_bytes, settings.body_seconds):
                digest.update(piece)
                await run_in_threadpool(writer.write, piece)
                room.used(len(piece))
            _same_digest(digest.digest(), content_digest)
            size = await run_in_threadpool(writer.commit)
        except BaseException:
            writer.abort()
            raise
    service.metrics.received.labels("/jobs").inc(size)
    return None, blob, size, digest.hexdigest()


def _same_digest(digest: bytes, stated: str | None) -> None:
    if stated is not None and stated != f"sha-256=:{base64.b64encode(digest).decode()}:":
        raise SerializationError("the body's digest is another one than Content-Digest says")


def _add_results(app: FastAPI, service: Service) -> None:
    jobs = service.jobs

    @app.get("/jobs/{job}/events", dependencies=SECURED, response_class=StreamingResponse)
    async def events(tenant: Who, job: Id) -> StreamingResponse:
        """Its changes as server-sent events, until it has ended."""
        row = await run_in_threadpool(jobs.get, tenant, job)
        return StreamingResponse(_told(app, tenant, row), media_type="text/event-stream")

    @app.get("/jobs/{job}/result", dependencies=SECURED, response_class=Response, responses={200: BINARY})
    async def result(tenant: Who, job: Id, wait: Wait = 0) -> Response:
        """The encrypted result, at the latest after `wait` seconds once it is there."""
        waiter: Waiter = app.state.waiter
        found: Response | Refusal = await until(
            lambda: _result(service, tenant, job),
            lambda seen: isinstance(seen, Response) or not _waits(seen),
            lambda left: waiter.changed(job, left), min(wait, service.settings.wait_seconds),
        )  # fmt: skip
        if isinstance(found, Refusal):
            raise found
        return found


def _result(service: Service, tenant: Tenant, job: str) -> Response | Refusal:
    """The answer with a job's result, or why there is none. Raises NotFoundError."""
    row = service.jobs.get(tenant, job)
    try:
        pieces = service.jobs.result(row)
    except StateError as error:
        return _not_done(row, error)
    digest = base64.b64encode(bytes.fromhex(row.result_sha256)).decode()
    headers = {
        "ETag": f'"{row.result_sha256}"', "Content-Length": str(row.result_bytes),
        "Content-Digest": f"sha-256=:{digest}:", "Cache-Control": "no-store",
    }  # fmt: skip
    sent = BackgroundTask(_sent, service, job)
    if row.result_bytes <= SMALL:
        return Response(next(pieces), 200, headers, OCTETS, sent)
    return StreamingResponse(pieces, 200, headers, OCTETS, sent)


async def _sent(service: Service, job: str) -> None:
    service.fetched(job)


def _waits(refusal: Refusal) -> bool:
    return refusal.problem.code == "StateError" and refusal.problem.retry


def _not_done(row: Any, error: StateError) -> Refusal:
    """What a job without a result answers: its own error, or that it is not done yet."""
    if not row.error:
        return Refusal(error, 409, retry=True)
    found = json.loads(row.error)
    return Refusal(error_of(found), int(found["status"]), bool(found["retry"]))


async def _told(app: FastAPI, tenant: Tenant, row: Any) -> AsyncIterator[str]:
    """Events of a job. A comment now and then keeps the connection."""
    service, waiter = app.state.service, app.state.waiter
    state, spoken = "", time.monotonic()
    while True:
        if row.state != state:
            position = await run_in_threadpool(service.jobs.position, row)
            yield f"event: job\ndata: {JobModel.of(row, position).model_dump_json()}\n\n"
            state, spoken = row.state, time.monotonic()
        if final(row):
            return
        if time.monotonic() - spoken > 15:
            yield ": waiting\n\n"
            spoken = time.monotonic()
        await waiter.changed(row.id, 2.0, ended=False)
        try:
            row = await run_in_threadpool(service.jobs.get, tenant, row.id)
        except NotFoundError:
            return
