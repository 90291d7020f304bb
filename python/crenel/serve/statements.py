"""Statements about jobs that are executed for every request, and the states that they speak of. Made once:
making a statement costs more than its execution."""

from __future__ import annotations

import sqlalchemy as sql

from crenel.serve.database import jobs, keys

QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
OPEN, FINAL = (QUEUED, RUNNING), (DONE, FAILED, CANCELLED)
CANDIDATES = 64  # of the queue, that a worker looks at

ONE = sql.select(jobs).where(jobs.c.id == sql.bindparam("job"), jobs.c.tenant == sql.bindparam("tenant"))
SAME = sql.select(jobs).where(
    jobs.c.tenant == sql.bindparam("tenant"), jobs.c.idempotency == sql.bindparam("key")
)
INSERT = sql.insert(jobs)
KEPT = sql.select(
    jobs.c.id, jobs.c.state, jobs.c.result_sha256, jobs.c.result_bytes, jobs.c.result_pack,
    jobs.c.result_offset,
)  # fmt: skip
"""Where results lie."""
ATTEMPTS = sql.select(jobs.c.id, jobs.c.state, jobs.c.attempts, jobs.c.result_pack)
BEFORE = sql.select(sql.func.count()).where(jobs.c.state == QUEUED, jobs.c.created < sql.bindparam("created"))
STATES = sql.select(jobs.c.id, jobs.c.state).where(jobs.c.id.in_(sql.bindparam("ids", expanding=True)))
ALL_OPEN = sql.select(sql.func.count()).where(jobs.c.state.in_(OPEN))
OPEN_OF = sql.select(sql.func.count(), sql.func.coalesce(sql.func.sum(jobs.c.input_bytes), 0)).where(
    jobs.c.tenant == sql.bindparam("tenant"), jobs.c.state.in_(OPEN)
)
ENDED_OF = sql.select(sql.func.count(), sql.func.coalesce(sql.func.sum(jobs.c.result_bytes), 0)).where(
    jobs.c.tenant == sql.bindparam("tenant"), jobs.c.state.in_(FINAL)
)
READ_OF = (
    KEPT.where(jobs.c.tenant == sql.bindparam("tenant"), jobs.c.state.in_(FINAL))
    .where(sql.or_(jobs.c.fetched.is_not(None), jobs.c.state != DONE))
    .order_by(jobs.c.finished)
)
_CANDIDATE = sql.select(
    jobs.c.id, jobs.c.tenant, jobs.c.program, jobs.c.key, jobs.c.state, jobs.c.attempts, jobs.c.created,
    jobs.c.changed, jobs.c.put_off, keys.c.expires.label("key_expires"), keys.c.state.label("key_state"),
    keys.c.used.label("key_used"),
).select_from(
    jobs.outerjoin(keys, (keys.c.tenant == jobs.c.tenant) & (keys.c.key == jobs.c.key))
)  # fmt: skip
WAITING = (
    _CANDIDATE.where(jobs.c.state == QUEUED)
    .where(sql.or_(jobs.c.lease.is_(None), jobs.c.lease < sql.bindparam("now")))
    .order_by(jobs.c.created).limit(CANDIDATES).with_for_update(of=jobs, skip_locked=True)
)  # fmt: skip
"""The lease of a job in the queue is the time before which nobody tries it again."""
LOST = (
    _CANDIDATE.where(jobs.c.state == RUNNING, jobs.c.lease < sql.bindparam("now"))
    .order_by(jobs.c.created).limit(CANDIDATES).with_for_update(of=jobs, skip_locked=True)
)  # fmt: skip
CLAIM = (
    sql.update(jobs)
    .where(jobs.c.id == sql.bindparam("job"))
    .values(
        state=RUNNING, worker=sql.bindparam("by"), lease=sql.bindparam("new_lease"),
        attempts=jobs.c.attempts + 1, changed=sql.bindparam("now"),
        started=sql.func.coalesce(jobs.c.started, sql.bindparam("now")),
    )
)  # fmt: skip
FINISH = (
    sql.update(jobs)
    .where(
        jobs.c.id == sql.bindparam("job"), jobs.c.state == RUNNING, jobs.c.worker == sql.bindparam("by"),
        jobs.c.attempts == sql.bindparam("attempt"),
    )
    .values(
        state=DONE, changed=sql.bindparam("now"), finished=sql.bindparam("now"), lease=None,
        expires=sql.bindparam("over"), result_bytes=sql.bindparam("size"),
        result_sha256=sql.bindparam("digest"), result_pack=sql.bindparam("pack"),
        result_offset=sql.bindparam("place"), seconds_keys=sql.bindparam("took_keys"),
        seconds_run=sql.bindparam("took_run"),
    )
)  # fmt: skip
FINISHED = sql.select(jobs.c.id).where(
    jobs.c.id.in_(sql.bindparam("ids", expanding=True)), jobs.c.state == DONE,
    jobs.c.worker == sql.bindparam("by"), jobs.c.finished == sql.bindparam("now"),
)  # fmt: skip
"""Those that FINISH just wrote: a number of rows is not told of each where there are several."""
