"""Jobs: accepted only once they are durable, run under a lease, answered once.

A worker that dies leaves a lease that runs out, and the job begins again. Evaluation is bit-identical, so
that a second run writes the same bytes under the same name: at least once becomes exactly once.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError

from crenel.errors import (
    Cancelled,
    CrenelError,
    LimitError,
    NotFoundError,
    StateError,
    UnavailableError,
)  # fmt: skip
from crenel.serve.auth import Tenant
from crenel.serve.blobs import Blobs
from crenel.serve.database import Database, jobs
from crenel.serve.errors import Problem
from crenel.serve.keys import Keys, needed
from crenel.serve.programs import Programs
from crenel.serve.settings import Settings

QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
OPEN, FINAL = (QUEUED, RUNNING), (DONE, FAILED, CANCELLED)
CANDIDATES = 64  # of the queue, that a worker looks at
Row = Any


@dataclass(frozen=True)
class Submission:
    """What a client asks for; the body lies in a blob already."""

    program: str
    key: str
    idempotency: str
    blob: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Claimed:
    """A job that a worker runs until its lease ends."""

    id: str
    tenant: str
    program: str
    key: str
    attempt: int
    waited: float


def input_of(job: str) -> str:
    """The name of the blob that a job's body lies in."""
    return f"inputs/{job}"


def result_of(job: str, sha256: str) -> str:
    """The name of its result's: by content, so that two runs write one."""
    return f"results/{job}/{sha256}"


class Jobs:
    """Jobs of tenants, and the queue that they make together."""

    def __init__(
        self, database: Database, blobs: Blobs, settings: Settings, programs: Programs, stored: Keys
    ) -> None:
        self._database, self._blobs, self._settings = database, blobs, settings
        self._programs, self._keys = programs, stored

    # ---- what tenants do -------------------------------------------------------------------------------

    def precheck(self, tenant: Tenant, program: str, key: str, idempotency: str) -> None:
        """Before a body is read. Raises NotFoundError, KeysNeededError, StateError, LimitError,
        UnavailableError, StorageError; a job that is there already may be asked for again."""
        self._programs.get(program)
        with self._database.reading() as connection:
            if connection.execute(self._same(tenant, idempotency)).one_or_none() is not None:
                return
            self._within(connection, tenant)
        self._keys.usable(tenant, key, program)
        self._blobs.room(self._settings.input_bytes)

    def submit(self, tenant: Tenant, asked: Submission) -> tuple[Row, bool]:
        """The job, and whether it is new; when this returns, body and job survive any crash.

        Raises StateError where the idempotency key stands for another request; else as `precheck`.
        """
        job, now = uuid.uuid4().hex, time.time()
        row = {
            "id": job, "tenant": tenant.id, "program": asked.program, "key": asked.key,
            "idempotency": asked.idempotency, "state": QUEUED, "input_bytes": asked.size,
            "input_sha256": asked.sha256, "attempts": 0, "created": now, "changed": now,
        }  # fmt: skip
        try:
            self._blobs.move(asked.blob, input_of(job))
            with self._database.writing() as connection:
                there = connection.execute(self._same(tenant, asked.idempotency)).one_or_none()
                if there is None:
                    self._within(connection, tenant)
                    connection.execute(sql.insert(jobs).values(**row))
        except IntegrityError:  # another process was faster with the same idempotency key
            self._blobs.delete(input_of(job))
            with self._database.reading() as connection:
                there = connection.execute(self._same(tenant, asked.idempotency)).one()
        except CrenelError:
            self._blobs.delete(input_of(job))
            raise
        if there is None:
            return self.get(tenant, job), True
        self._blobs.delete(input_of(job))
        if (there.program, there.key, there.input_sha256) != (asked.program, asked.key, asked.sha256):
            raise StateError("this idempotency key stands for another request", {"job": there.id})
        return there, False

    def get(self, tenant: Tenant, job: str) -> Row:
        """Raises NotFoundError."""
        with self._database.reading() as connection:
            return self._found(connection, tenant, job)

    def all(self, tenant: Tenant, state: str | None = None, most: int = 100) -> list[Row]:
        """The newest of the tenant."""
        wanted = (
            sql.select(jobs).where(jobs.c.tenant == tenant.id).order_by(jobs.c.created.desc()).limit(most)
        )
        if state is not None:
            wanted = wanted.where(jobs.c.state == state)
        with self._database.reading() as connection:
            return list(connection.execute(wanted))

    def position(self, row: Row) -> int | None:
        """Jobs before it in the queue; None where it does not wait."""
        if row.state != QUEUED:
            return None
        before = (jobs.c.state == QUEUED) & (jobs.c.created < row.created)
        with self._database.reading() as connection:
            return int(connection.scalar(sql.select(sql.func.count()).where(before)) or 0)

    def result(self, tenant: Tenant, job: str) -> tuple[Row, Iterator[bytes]]:
        """The job and its result's bytes. Raises StateError before it is done, NotFoundError."""
        row = self.get(tenant, job)
        if row.state != DONE:
            raise StateError(f"the job is {row.state}: it has no result", {"state": row.state})
        name = result_of(job, row.result_sha256)
        if not self._blobs.exists(name):
            raise NotFoundError("the result is not in the storage any more")
        return row, self._blobs.pieces(name)

    def cancel(self, tenant: Tenant, job: str) -> Row:
        """Ends what waits or runs; the worker notices at its next step. Raises NotFoundError."""
        now = time.time()
        values = {
            "state": CANCELLED, "changed": now, "finished": now, "expires": now + self._settings.result_ttl,
            "lease": None, "error": Problem.of(Cancelled("the job was cancelled")).to_json(),
        }  # fmt: skip
        with self._database.writing() as connection:
            self._found(connection, tenant, job)
            mine = (jobs.c.id == job) & (jobs.c.tenant == tenant.id) & jobs.c.state.in_(OPEN)
            ended = connection.execute(sql.update(jobs).where(mine).values(**values)).rowcount
        if ended:
            self._blobs.delete(input_of(job))
        return self.get(tenant, job)

    def delete(self, tenant: Tenant, job: str) -> None:
        """Cancels, and forgets. Raises NotFoundError."""
        with self._database.writing() as connection:
            self._found(connection, tenant, job)
            connection.execute(sql.delete(jobs).where(jobs.c.id == job, jobs.c.tenant == tenant.id))
        self._forget([job])

    # ---- what workers do -------------------------------------------------------------------------------

    def claim(self, worker: str, resident: set[str], elsewhere: set[str]) -> Claimed | None:
        """A job for this worker until its lease ends; None: there is none for it now.

        resident : keys that it has ready; elsewhere : keys that other workers have: their jobs wait a little
        for them
        """
        now = time.time()
        free = sql.or_(jobs.c.state == QUEUED, (jobs.c.state == RUNNING) & (jobs.c.lease < now))
        wanted = sql.select(jobs).where(free).order_by(jobs.c.created).limit(CANDIDATES)
        with self._database.reading() as connection:
            found = list(connection.execute(wanted))
        row = self._chosen(found, resident, elsewhere, now)
        if row is None:
            return None
        same = (jobs.c.id == row.id) & (jobs.c.state == row.state) & (jobs.c.attempts == row.attempts)
        mine = same & (jobs.c.lease.is_(None) if row.lease is None else jobs.c.lease == row.lease)
        if row.attempts >= self._settings.attempts:
            self._end(
                mine,
                row.id,
                UnavailableError("workers died while they ran this job", {"attempts": row.attempts}),
            )
            return None
        values = {
            "state": RUNNING, "worker": worker, "lease": now + self._settings.lease_seconds,
            "attempts": row.attempts + 1, "changed": now, "started": row.started or now,
        }  # fmt: skip
        with self._database.writing() as connection:
            if connection.execute(sql.update(jobs).where(mine).values(**values)).rowcount != 1:
                return None
        return Claimed(row.id, row.tenant, row.program, row.key, row.attempts + 1, now - row.created)

    def _chosen(self, found: list[Row], resident: set[str], elsewhere: set[str], now: float) -> Row | None:
        """The oldest whose keys are here; then the oldest that no other worker should take."""
        patience = self._settings.steal_seconds
        if found and now - found[0].created > 10 * patience:
            return found[0]  # however many come whose keys are here, none waits for ever
        for row in found:
            if row.key in resident:
                return row
        for row in found:
            if row.key not in elsewhere or now - row.changed > patience:
                return row
        return None

    def extend(self, claimed: Claimed, worker: str) -> bool:
        """The worker still runs it; False: the job is not its own any more."""
        values = {"lease": time.time() + self._settings.lease_seconds}
        with self._database.writing() as connection:
            return (
                connection.execute(sql.update(jobs).where(_mine(claimed, worker)).values(**values)).rowcount
                == 1
            )

    def input(self, claimed: Claimed) -> bytes:
        """The body. Raises NotFoundError where the job was deleted."""
        return self._blobs.read(input_of(claimed.id))

    def done(self, claimed: Claimed, worker: str, result: bytes, keys: float, run: float) -> bool:
        """Writes the result; False: the job is not the worker's any more, and nothing changed.

        keys, run : seconds that it took to prepare the keys and to compute
        """
        sha256, now = hashlib.sha256(result).hexdigest(), time.time()
        self._blobs.write(result_of(claimed.id, sha256), [result])
        values = {
            "state": DONE, "changed": now, "finished": now, "expires": now + self._settings.result_ttl,
            "lease": None, "result_bytes": len(result), "result_sha256": sha256,
            "seconds_keys": keys, "seconds_run": run,
        }  # fmt: skip
        with self._database.writing() as connection:
            ended = connection.execute(
                sql.update(jobs).where(_mine(claimed, worker)).values(**values)
            ).rowcount
        if ended:
            self._blobs.delete(input_of(claimed.id))
        elif not self._there(claimed.id):
            self._forget([claimed.id])
        return bool(ended)

    def failed(self, claimed: Claimed, worker: str, error: CrenelError) -> None:
        """The job ends with an error of the library."""
        self._end(_mine(claimed, worker), claimed.id, error)

    def release(self, claimed: Claimed, worker: str) -> None:
        """Gives the job back: it waits again, at its old place; the attempt counts."""
        values = {"state": QUEUED, "lease": None, "worker": None, "changed": time.time()}
        with self._database.writing() as connection:
            connection.execute(sql.update(jobs).where(_mine(claimed, worker)).values(**values))

    def without_keys(self, claimed: Claimed, worker: str) -> None:
        """The job ends because its keys are gone."""
        self.failed(claimed, worker, needed(claimed.key))

    # ---- housekeeping ----------------------------------------------------------------------------------

    def expire(self) -> int:
        """Deletes finished jobs whose time is over, with their results; returns how many."""
        wanted = sql.select(jobs.c.id).where(jobs.c.expires < time.time())
        with self._database.writing() as connection:
            found = [str(j) for j in connection.scalars(wanted)]
            connection.execute(sql.delete(jobs).where(jobs.c.id.in_(found)))
        self._forget(found)
        return len(found)

    def counts(self) -> dict[str, int]:
        """Jobs by state."""
        wanted = sql.select(jobs.c.state, sql.func.count()).group_by(jobs.c.state)
        with self._database.reading() as connection:
            return {str(state): int(count) for state, count in connection.execute(wanted)}

    def changed_since(self, start: float) -> dict[str, str]:
        """Jobs that changed from then on, and their states: what long polls wake by."""
        wanted = sql.select(jobs.c.id, jobs.c.state).where(jobs.c.changed >= start)
        with self._database.reading() as connection:
            return {str(job): str(state) for job, state in connection.execute(wanted)}

    def _end(self, which: sql.ColumnElement[bool], job: str, error: CrenelError) -> None:
        now = time.time()
        values = {
            "state": FAILED, "changed": now, "finished": now, "expires": now + self._settings.result_ttl,
            "lease": None,
            "error": Problem.of(error, 422 if isinstance(error, StateError) else None).to_json(),
        }  # fmt: skip
        with self._database.writing() as connection:
            ended = connection.execute(sql.update(jobs).where(which).values(**values)).rowcount
        if ended:
            self._blobs.delete(input_of(job))

    def _forget(self, found: list[str]) -> None:
        for job in found:
            self._blobs.delete(input_of(job))
            self._blobs.delete(f"results/{job}")

    def _there(self, job: str) -> bool:
        with self._database.reading() as connection:
            return connection.scalar(sql.select(jobs.c.id).where(jobs.c.id == job)) is not None

    def _same(self, tenant: Tenant, idempotency: str) -> sql.Select[Any]:
        return sql.select(jobs).where(jobs.c.tenant == tenant.id, jobs.c.idempotency == idempotency)

    def _found(self, connection: sql.Connection, tenant: Tenant, job: str) -> Row:
        wanted = sql.select(jobs).where(jobs.c.id == job, jobs.c.tenant == tenant.id)
        row = connection.execute(wanted).one_or_none()
        if row is None:
            raise NotFoundError("no such job")
        return row

    def _within(self, connection: sql.Connection, tenant: Tenant) -> None:
        """Raises LimitError and UnavailableError where one more job is too many."""
        settings, open_ = self._settings, jobs.c.state.in_(OPEN)
        count = sql.select(sql.func.count()).where(open_)
        if int(connection.scalar(count.where(jobs.c.tenant == tenant.id)) or 0) >= settings.jobs:
            raise LimitError(f"{settings.jobs} jobs wait or run", {"limit": settings.jobs, "retry_after": 2})
        if int(connection.scalar(count) or 0) >= settings.queue:
            raise UnavailableError("the queue is full", {"retry_after": 5})


def _mine(claimed: Claimed, worker: str) -> sql.ColumnElement[bool]:
    return (
        (jobs.c.id == claimed.id)
        & (jobs.c.state == RUNNING)
        & (jobs.c.worker == worker)
        & (jobs.c.attempts == claimed.attempt)
    )
