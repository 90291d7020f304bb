"""What is asked and answered as JSON: these models are the OpenAPI document."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

PROTOCOL = 1
TUS = "1.0.0"
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Id = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
IDEMPOTENCY = "^[A-Za-z0-9._~-]{1,128}$"


def utc(seconds: float | None) -> str | None:
    """A time as the protocol writes it."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")


class Problem(BaseModel):
    """An error (RFC 9457) with the library's class and fields."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    fields: dict[str, str | int | float | bool | list[int]]
    retry: bool


class Limits(BaseModel):
    """What the service takes."""

    chunk_bytes: int
    key_bytes: int
    input_bytes: int
    jobs: int
    job_bytes: int
    finished_jobs: int
    result_bytes: int
    stored_key_bytes: int
    waiting: int
    wait_seconds: float


class Protocol(BaseModel):
    """Versions and limits."""

    protocol: list[int]
    library: str
    tus: str
    limits: Limits
    guests: bool


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Ready(BaseModel):
    """Whether jobs will be run."""

    ready: bool
    checks: dict[str, str]


class Guest(BaseModel):
    """A tenant for some hours."""

    token: str
    tenant: str
    expires: str


class ProgramModel(BaseModel):
    """A program that is served."""

    program: Hash
    name: str
    kind: Literal["nn", "function"]
    params: str
    params_name: str
    security_bits: float
    insecure: bool
    batch: int
    input_shape: list[int]
    input_bound: float | None
    output_shape: list[int]
    key_bytes: int
    client_bytes: int
    client_sha256: Hash


class Packing(BaseModel):
    """Where elements of a sample lie, and how many samples share a ciphertext."""

    ciphertexts: int
    slots: int
    images: int
    positions: list[int]


class Packings(BaseModel):
    """Of what is sent, and of what comes back."""

    input: Packing
    output: Packing


class ProgramFull(ProgramModel):
    """A program with all that a client needs."""

    client: dict[str, Any]
    packing: Packings | None


class ProgramList(BaseModel):
    """All of them."""

    programs: list[ProgramModel]


class KeyModel(BaseModel):
    """Evaluation keys that the service holds."""

    key: Hash
    program: Hash
    bytes: int
    created: str
    used: str
    expires: str
    state: Literal["received", "ready", "refused"]
    error: Problem | None
    waits: Problem | None

    @classmethod
    def of(cls, row: Any) -> KeyModel:
        """Of a row of the database."""
        found = json.loads(row.error) if row.error else None
        received = row.state == "received"
        return cls(
            key=row.key, program=row.program, bytes=row.bytes, created=utc(row.created) or "",
            used=utc(row.used) or "", expires=utc(row.expires) or "", state=row.state,
            error=None if received else found, waits=found if received else None,
        )  # fmt: skip


class KeyList(BaseModel):
    """Those of a tenant."""

    keys: list[KeyModel]


class Digest(BaseModel):
    """Size and hash of bytes."""

    bytes: int
    sha256: Hash


class Seconds(BaseModel):
    """Where a job's time went."""

    wait: float | None
    keys: float | None
    run: float | None


class JobModel(BaseModel):
    """A job."""

    job: Id
    program: Hash
    key: Hash
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    created: str
    started: str | None
    finished: str | None
    expires: str | None
    input: Digest
    result: Digest | None
    error: Problem | None
    attempts: int
    position: int | None
    seconds: Seconds

    @classmethod
    def of(cls, row: Any, position: int | None = None) -> JobModel:
        """Of a row of the database, and its place in the queue."""
        done = row.result_sha256 is not None
        return cls(
            job=row.id, program=row.program, key=row.key, state=row.state, created=utc(row.created) or "",
            started=utc(row.started), finished=utc(row.finished), expires=utc(row.expires),
            input=Digest(bytes=row.input_bytes, sha256=row.input_sha256),
            result=Digest(bytes=row.result_bytes, sha256=row.result_sha256) if done else None,
            error=json.loads(row.error) if row.error else None, attempts=row.attempts, position=position,
            seconds=Seconds(
                wait=None if row.started is None else row.started - row.created,
                keys=row.seconds_keys, run=row.seconds_run,
            ),
        )  # fmt: skip


class JobList(BaseModel):
    """Those of a tenant, the newest first."""

    jobs: list[JobModel]
