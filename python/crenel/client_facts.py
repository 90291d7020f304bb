"""What a service says as JSON, for `crenel.client`: the members are those of docs/reference/service.md."""

from __future__ import annotations

from typing import TypedDict


class Digest(TypedDict):
    """Size and hash of what was sent."""

    bytes: int
    sha256: str


class Problem(TypedDict):
    """An error as the service says it: `crenel.errors`' class ``code`` with its ``fields``."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    fields: dict[str, str | int | float | bool | list[int]]
    retry: bool


class Limits(TypedDict):
    """What the service takes of a tenant: bytes, numbers of jobs and requests, and a wait in seconds."""

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


class Protocol(TypedDict):
    """Versions of the protocol, the library and tus, and limits."""

    protocol: list[int]
    library: str
    tus: str
    limits: Limits
    guests: bool


class ProgramFacts(TypedDict):
    """A program of a service: fingerprints, names, parameters, shapes of one sample, sizes in bytes."""

    program: str
    name: str
    kind: str
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
    client_sha256: str


class KeyFacts(TypedDict):
    """Evaluation keys at a service; times are UTC, ISO 8601; state is received, ready or refused.

    `error` is why they were refused, `waits` why they could not be checked yet, which is tried again.
    """

    key: str
    program: str
    bytes: int
    created: str
    used: str
    expires: str
    state: str
    error: Problem | None
    waits: Problem | None


class Seconds(TypedDict):
    """Where a job's seconds went: waiting, reading keys, running; None: not yet."""

    wait: float | None
    keys: float | None
    run: float | None


class JobFacts(TypedDict):
    """A job as the service sees it; times are UTC, ISO 8601; state is queued, running, done, failed or
    cancelled; position: jobs before it in the queue."""

    job: str
    program: str
    key: str
    state: str
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
