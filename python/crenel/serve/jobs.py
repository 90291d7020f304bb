"""Jobs: accepted only once they are durable, run under a lease, answered once.

A worker that dies leaves a lease that runs out, and the job begins again. Evaluation is bit-identical, so
that a second run writes the same bytes under the same name: at least once becomes exactly once.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from crenel.serve.database import AT_ONCE, Database, jobs
from crenel.serve.errors import Problem
from crenel.serve.keys import REFUSED, Keys, needed
from crenel.serve.patience import pause
from crenel.serve.programs import Programs
from crenel.serve.results import Results, Stored, input_of
from crenel.serve.settings import Settings
from crenel.serve.statements import (
    ALL_OPEN,
    BEFORE,
    CANCELLED,
    CLAIM,
    DONE,
    ENDED_OF,
    FAILED,
    FINISH,
    FINISHED,
    INSERT,
    KEPT,
    LOST,
    ONE,
    OPEN,
    OPEN_OF,
    QUEUED,
    READ_OF,
    RUNNING,
    SAME,
    STATES,
    WAITING,
)

GROUP_S = 0.1  # of computing: jobs that are taken, and whose results are committed, together
LONG_GROUP_S = 0.25  # the same where so many wait that the last of them waits three times as long anyway
TOUCH_S = 60.0  # between two notes that keys are in use
Row = Any


@dataclass(frozen=True)
class Submission:
    """What a client asks for. A body that is large lies in a blob already."""

    program: str
    key: str
    idempotency: str
    body: bytes | None
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
    keys: bool = True
    """Are its keys still the tenant's?"""
    last: bool = False
    """May it not begin again where this attempt fails?"""


@dataclass(frozen=True)
class Answered:
    """What a worker computed for a job."""

    job: Claimed
    result: bytes
    keys: float
    """Seconds that preparing the keys took."""
    run: float
    """Seconds of computing."""

    @cached_property
    def sha256(self) -> str:
        """Of the result."""
        return hashlib.sha256(self.result).hexdigest()


class Jobs:
    """Jobs of tenants, and the queue that they make together."""

    def __init__(
        self, database: Database, blobs: Blobs, settings: Settings, programs: Programs, stored: Keys
    ) -> None:
        self._database, self._blobs, self._settings = database, blobs, settings
        self._programs, self._keys = programs, stored
        self.results = Results(database, blobs)
        self._asked = 0.0
        """When jobs of dead workers were last asked for."""

    # ---- what tenants do -------------------------------------------------------------------------------

    def precheck(self, tenant: Tenant, program: str, key: str, idempotency: str) -> None:
        """Before a large body is read. Raises NotFoundError, KeysNeededError, StateError, LimitError,
        UnavailableError; a job that is there already may be asked for again."""
        self._programs.get(program)
        with self._database.reading() as connection:
            if connection.execute(SAME, {"tenant": tenant.id, "key": idempotency}).one_or_none() is None:
                self._within(connection, tenant, 0)
                self._keys.usable_in(connection, tenant, key, program)

    def submit(self, tenant: Tenant, asked: Submission) -> tuple[Row, bool]:
        """The job, and whether it is new; when this returns, body and job survive any crash.

        Raises StateError where the idempotency key stands for another request; else as `precheck`.
        """
        self.precheck(tenant, asked.program, asked.key, asked.idempotency)
        job, now = uuid.uuid4().hex, time.time()
        row = {
            "id": job, "tenant": tenant.id, "program": asked.program, "key": asked.key,
            "idempotency": asked.idempotency, "state": QUEUED, "input_bytes": asked.size,
            "input_sha256": asked.sha256, "attempts": 0, "put_off": 0, "created": now, "changed": now,
        }  # fmt: skip
        try:
            if asked.body is None:
                self._blobs.move(asked.blob, input_of(job))
            else:
                self._blobs.put({input_of(job): asked.body})
            there, dropped = self._entered(tenant, asked, row)
        except IntegrityError:  # another process was faster with the same idempotency key
            self._blobs.delete(input_of(job))
            with self._database.reading() as connection:
                there = connection.execute(SAME, {"tenant": tenant.id, "key": asked.idempotency}).one()
            return self._compared(there, asked), False
        except CrenelError:
            self._blobs.delete(input_of(job))
            raise
        self._forget(dropped)
        if there.id == job:
            return there, True
        self._blobs.delete(input_of(job))
        return self._compared(there, asked), False

    def _entered(
        self, tenant: Tenant, asked: Submission, row: dict[str, Any]
    ) -> tuple[Row, dict[str, Stored | None]]:
        """The row that stands for the request, and finished jobs that made room for it."""
        with self._database.writing() as connection:
            there = connection.execute(SAME, {"tenant": tenant.id, "key": asked.idempotency}).one_or_none()
            if there is not None:
                return there, {}
            self._within(connection, tenant, asked.size)
            dropped = self._make_room(connection, tenant)
            connection.execute(INSERT, row)
            return connection.execute(ONE, {"job": row["id"], "tenant": tenant.id}).one(), dropped

    @staticmethod
    def _compared(there: Row, asked: Submission) -> Row:
        """Raises StateError where what is there was another request."""
        if (there.program, there.key, there.input_sha256) != (asked.program, asked.key, asked.sha256):
            raise StateError("this idempotency key stands for another request", {"job": there.id})
        return there

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
        with self._database.reading() as connection:
            return int(connection.scalar(BEFORE, {"created": row.created}) or 0)

    def result(self, row: Row) -> Iterator[bytes]:
        """The bytes of a job's result. Raises StateError before it is done, NotFoundError."""
        if row.state != DONE:
            raise StateError(f"the job is {row.state}: it has no result", {"state": row.state})
        stored = Stored.of(row)
        assert stored is not None
        return self.results.read(stored)

    def fetched(self, found: Sequence[str]) -> None:
        """Their results were read to the end: where room is needed they go first."""
        with self._database.writing(lasting=False) as connection:
            unmarked = jobs.c.id.in_(found) & jobs.c.fetched.is_(None)
            connection.execute(sql.update(jobs).where(unmarked).values(fetched=time.time()))

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
            row = self._found(connection, tenant, job)
            connection.execute(sql.delete(jobs).where(jobs.c.id == job, jobs.c.tenant == tenant.id))
        self._forget({job: Stored.of(row)})

    # ---- what workers do -------------------------------------------------------------------------------

    def claim(
        self,
        worker: str,
        resident: set[str],
        elsewhere: set[str],
        cost: Callable[[str], float] | None = None,
        others: int = 0,
    ) -> list[Claimed]:
        """Jobs for this worker until their lease ends: one, or several that are short.

        resident : keys that it has ready; elsewhere : keys that other workers have: their jobs wait a little
        for them
        cost : seconds that a job of a program will take; jobs of together `GROUP_S` are taken at once, or
        of a third of what waits, `LONG_GROUP_S` at most
        others : workers that want their part of what waits
        """
        now, ttl = time.time(), self._settings.key_ttl
        # A machine that forgets who took a job has lost the worker, too: the job waits again.
        with self._database.writing(lasting=False) as connection:
            found = self._free(connection, now)
            some = self._chosen(found, resident, elsewhere, now)
            if cost is not None:
                most = -(-len(found) // (others + 1))
                some = _together(some, found, resident, cost, most)
            ended = [row for row in some if _begun(row) >= self._settings.attempts]
            taken = [row for row in some if _begun(row) < self._settings.attempts]
            if taken:
                values = {"by": worker, "new_lease": now + self._settings.lease_seconds, "now": now}
                connection.execute(CLAIM, [values | {"job": row.id} for row in taken])
                self._keys.touch(
                    connection, [(row.tenant, row.key) for row in taken if _stale(row, now, ttl)]
                )
        for row in ended:
            same = (jobs.c.id == row.id) & (jobs.c.state == row.state) & (jobs.c.attempts == row.attempts)
            text = "workers died while they ran this job"
            self._end(same, row.id, UnavailableError(text, {"attempts": row.attempts}))
        return [
            Claimed(
                row.id, row.tenant, row.program, row.key, row.attempts + 1, now - row.created,
                row.key_expires is not None and row.key_expires > now and row.key_state != REFUSED,
                _begun(row) + 1 >= self._settings.attempts,
            )
            for row in taken
        ]  # fmt: skip

    def _free(self, connection: sql.Connection, now: float) -> list[Row]:
        """What waits, oldest first; and, where nothing does or it was not asked for long, what a dead worker
        had."""
        found = list(connection.execute(WAITING, {"now": now}))
        if not found or now - self._asked > self._settings.lease_seconds / 8:
            self._asked = now
            lost = list(connection.execute(LOST, {"now": now}))
            found = sorted([*lost, *found], key=lambda row: float(row.created))
        return found

    def _chosen(self, found: list[Row], resident: set[str], elsewhere: set[str], now: float) -> list[Row]:
        """The oldest whose keys are here; else the oldest that no other worker should take."""
        patience = self._settings.steal_seconds
        if found and now - found[0].created > 10 * patience:
            return [found[0]]  # however many come whose keys are here, none waits for ever
        for row in found:
            if row.key in resident:
                return [row]
        for row in found:
            if row.key not in elsewhere or now - row.changed > patience:
                return [row]
        return []

    def extend(self, claimed: Claimed, worker: str) -> bool:
        """The worker still runs it; False: the job is not its own any more."""
        values = {"lease": time.time() + self._settings.lease_seconds}
        with self._database.writing(lasting=False) as connection:
            return (
                connection.execute(sql.update(jobs).where(_mine(claimed, worker)).values(**values)).rowcount
                == 1
            )

    def input(self, claimed: Claimed) -> bytes:
        """The body. Raises NotFoundError where the job was deleted."""
        return self._blobs.read(input_of(claimed.id))

    def done(self, worker: str, found: Sequence[Answered]) -> list[bool]:
        """Writes results, all in one transaction; False: the job is not the worker's any more, and nothing
        of it changed. Raises ServiceError, and nothing changed at all."""
        stored = self.results.write(worker, [(a.job.id, a.result, a.sha256) for a in found])
        now = time.time()
        fixed = {"now": now, "over": now + self._settings.result_ttl, "by": worker}
        values = [
            fixed | {
                "job": a.job.id, "attempt": a.job.attempt, "size": s.size, "digest": s.sha256,
                "pack": s.pack, "place": s.offset, "took_keys": a.keys, "took_run": a.run,
            }
            for a, s in zip(found, stored, strict=True)
        ]  # fmt: skip
        asked = {"by": worker, "now": now, "ids": [a.job.id for a in found]}
        try:
            with self._database.writing() as connection:
                connection.execute(FINISH, values)
                ended = {str(job) for job in connection.scalars(FINISHED, asked)}
        except BaseException:
            self.results.doubt(stored, {a.job.id: a.job.attempt for a in found})
            raise
        ours = [a.job.id in ended for a in found]
        self._blobs.delete_files(input_of(job) for job in ended)
        for s, mine in zip(stored, ours, strict=True):
            if not mine:
                self.results.late(s)
        return ours

    def failed(self, claimed: Claimed, worker: str, error: CrenelError) -> None:
        """The job ends with an error of the library."""
        self._end(_mine(claimed, worker), claimed.id, error)

    def release(self, claimed: Claimed, worker: str, counts: bool = True) -> None:
        """Gives the job back: it waits again, at its old place.

        counts : the attempt is one of those after which it ends; without, the worker stopped by itself
        """
        values: dict[str, Any] = {"state": QUEUED, "lease": None, "worker": None, "changed": time.time()}
        if not counts:
            values["put_off"] = sql.func.coalesce(jobs.c.put_off, 0) + 1
        with self._database.writing() as connection:
            connection.execute(sql.update(jobs).where(_mine(claimed, worker)).values(**values))

    def put_off(self, claimed: Claimed, worker: str, error: CrenelError) -> None:
        """Gives the job back because storage or database failed: it is tried again after a pause that grows,
        and the attempt does not count. Where that goes on for longer than results are kept, it ends with the
        error."""
        if claimed.attempt > self._settings.attempts and claimed.waited > self._settings.result_ttl:
            self.failed(claimed, worker, error)
            return
        now = time.time()
        values = {
            "state": QUEUED, "lease": now + pause(claimed.attempt), "worker": None, "changed": now,
            "put_off": sql.func.coalesce(jobs.c.put_off, 0) + 1,
        }  # fmt: skip
        with self._database.writing() as connection:
            connection.execute(sql.update(jobs).where(_mine(claimed, worker)).values(**values))

    def without_keys(self, claimed: Claimed, worker: str) -> None:
        """The job ends because its keys are gone."""
        self.failed(claimed, worker, needed(claimed.key))

    # ---- housekeeping ----------------------------------------------------------------------------------

    def expire(self) -> int:
        """Deletes finished jobs whose time is over, with their results; returns how many."""
        wanted = KEPT.where(jobs.c.expires < time.time())
        with self._database.writing() as connection:
            found = {str(row.id): Stored.of(row) for row in connection.execute(wanted)}
            _removed(connection, list(found))
        self._forget(found)
        return len(found)

    def counts(self) -> dict[str, int]:
        """Jobs by state."""
        wanted = sql.select(jobs.c.state, sql.func.count()).group_by(jobs.c.state)
        with self._database.reading() as connection:
            return {str(state): int(count) for state, count in connection.execute(wanted)}

    def states(self, found: Sequence[str]) -> dict[str, str]:
        """Of jobs, what state they are in: what long polls wake by."""
        states: dict[str, str] = {}
        with self._database.reading() as connection:
            for start in range(0, len(found), AT_ONCE):
                rows = connection.execute(STATES, {"ids": found[start : start + AT_ONCE]})
                states |= {str(job): str(state) for job, state in rows}
        return states

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

    def _forget(self, found: Mapping[str, Stored | None]) -> None:
        """Deletes bodies and results of jobs whose rows are gone."""
        self._blobs.delete_files(input_of(job) for job in found)
        self.results.forget(stored for stored in found.values() if stored is not None)

    def _found(self, connection: sql.Connection, tenant: Tenant, job: str) -> Row:
        row = connection.execute(ONE, {"job": job, "tenant": tenant.id}).one_or_none()
        if row is None:
            raise NotFoundError("no such job")
        return row

    def _within(self, connection: sql.Connection, tenant: Tenant, size: int) -> None:
        """Raises LimitError and UnavailableError where one more job, of so many bytes, is too many."""
        settings = self._settings
        count, held = connection.execute(OPEN_OF, {"tenant": tenant.id}).one()
        if count >= settings.jobs:
            raise LimitError(f"{settings.jobs} jobs wait or run", {"limit": settings.jobs, "retry_after": 2})
        if held + size > settings.job_bytes and count:
            raise LimitError(
                f"the inputs of jobs that wait or run have {held} bytes, and {size} more are too many",
                {"limit": settings.job_bytes, "retry_after": 2},
            )
        if int(connection.scalar(ALL_OPEN) or 0) >= settings.queue:
            raise UnavailableError("the queue is full", {"retry_after": 5})

    def _make_room(self, connection: sql.Connection, tenant: Tenant) -> dict[str, Stored | None]:
        """Drops the tenant's oldest jobs whose results were fetched, or that have none, where more ended than
        are kept. Raises LimitError where that is not enough: an answer that nobody has read stays."""
        settings = self._settings
        count, held = connection.execute(ENDED_OF, {"tenant": tenant.id}).one()
        if count < settings.finished_jobs and held < settings.result_bytes:
            return {}
        wanted = max(1, count - settings.finished_jobs + 1 + settings.finished_jobs // 10)
        dropped: dict[str, Stored | None] = {}
        for row in connection.execute(READ_OF, {"tenant": tenant.id}):
            if len(dropped) >= wanted and held < settings.result_bytes:
                break
            dropped[str(row.id)] = Stored.of(row)
            count, held = count - 1, held - (row.result_bytes or 0)
        if count >= settings.finished_jobs or held >= settings.result_bytes:
            raise LimitError(
                f"{count} finished jobs with {held} bytes of results are kept: fetch them, or delete some",
                {"limit": settings.finished_jobs, "held": held, "retry_after": 10},
            )
        _removed(connection, list(dropped))
        return dropped


def _removed(connection: sql.Connection, found: list[str]) -> None:
    """Rows of jobs are gone."""
    for start in range(0, len(found), AT_ONCE):
        connection.execute(sql.delete(jobs).where(jobs.c.id.in_(found[start : start + AT_ONCE])))


def _together(
    first: list[Row], found: list[Row], resident: set[str], cost: Callable[[str], float], most: int
) -> list[Row]:
    """Jobs beside the first whose keys are here too, while all of them are short. One that was begun before
    may be what its worker died of, and is taken alone."""
    if not first or first[0].attempts or first[0].key not in resident:
        return first
    others = [row for row in found if row.id != first[0].id and row.key in resident and not row.attempts]
    own = cost(first[0].program)
    all_of_it = own + sum(cost(row.program) for row in others)
    some, left = list(first), min(max(GROUP_S, all_of_it / 3), LONG_GROUP_S) - own
    for row in others:
        if len(some) >= most or left <= 0:
            break
        left -= cost(row.program)
        if left > 0:
            some.append(row)
    return some


def _begun(row: Row) -> int:
    """How often it was begun and may itself have been the trouble."""
    return int(row.attempts) - int(row.put_off or 0)


def _stale(row: Row, now: float, ttl: float) -> bool:
    """Is it long since the use of its keys was noted?"""
    return row.key_used is not None and now - row.key_used > min(TOUCH_S, ttl / 100)


def _mine(claimed: Claimed, worker: str) -> sql.ColumnElement[bool]:
    return (
        (jobs.c.id == claimed.id)
        & (jobs.c.state == RUNNING)
        & (jobs.c.worker == worker)
        & (jobs.c.attempts == claimed.attempt)
    )
