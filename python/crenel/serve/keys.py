"""Key files that tenants sent: stored once by content, checked, for a time, deleted, asked for again."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sql

from crenel.errors import CrenelError, KeysNeededError, NotFoundError, StateError
from crenel.serve.auth import Tenant
from crenel.serve.blobs import Blobs
from crenel.serve.database import AT_ONCE, Database, keys
from crenel.serve.errors import Problem
from crenel.serve.patience import pause
from crenel.serve.results import FORGOTTEN_S
from crenel.serve.settings import Settings

RECEIVED, READY, REFUSED = "received", "ready", "refused"
ONE = sql.select(keys).where(keys.c.tenant == sql.bindparam("tenant"), keys.c.key == sql.bindparam("key"))
UNCHECKED = (
    sql.select(keys)
    .where(keys.c.state == RECEIVED, sql.or_(keys.c.lease.is_(None), keys.c.lease < sql.bindparam("now")))
    .order_by(keys.c.created).limit(1)
)  # fmt: skip


@dataclass(frozen=True)
class ToCheck:
    """A key file that a worker is to check: it has no tenant's name, only what marks the row."""

    tenant: str
    key: str
    program: str
    attempt: int = 1


def blob_of(key: str) -> str:
    """The name of a key file's blob."""
    return f"keys/{key}"


class Keys:
    """Key files of tenants."""

    def __init__(self, database: Database, blobs: Blobs, settings: Settings) -> None:
        self._database, self._blobs, self._settings = database, blobs, settings
        self._seen: dict[str, float] = {}
        """Files that no tenant has, and when `sweep` first saw each."""

    def add(
        self, tenant: Tenant, program: str, key: str, size: int, blob: str, replaces: str | None = None
    ) -> None:
        """A file that was uploaded as `blob`, whose hash is `key`, becomes the tenant's; the blob moves.

        Sending a file again starts it anew: its time, and the check that it failed.
        """
        self._blobs.move(blob, blob_of(key))
        now = time.time()
        row = {
            "tenant": tenant.id, "key": key, "program": program, "bytes": size, "state": RECEIVED,
            "error": None, "replaces": None if replaces == key else replaces, "created": now, "used": now,
            "expires": now + self._settings.key_ttl, "changed": now, "worker": None, "lease": None,
            "attempts": 0, "put_off": 0,
        }  # fmt: skip
        with self._database.writing() as connection:
            connection.execute(sql.delete(keys).where(_is(tenant, key)))
            connection.execute(sql.insert(keys).values(**row))

    def all(self, tenant: Tenant) -> list[sql.Row[tuple[object, ...]]]:
        """The tenant's, newest first."""
        wanted = sql.select(keys).where(keys.c.tenant == tenant.id, keys.c.expires > time.time())
        with self._database.reading() as connection:
            return list(connection.execute(wanted.order_by(keys.c.created.desc())))

    def get(self, tenant: Tenant, key: str) -> sql.Row[tuple[object, ...]]:
        """Raises NotFoundError."""
        with self._database.reading() as connection:
            return self._got(connection, tenant, key)

    def _got(self, connection: sql.Connection, tenant: Tenant, key: str) -> sql.Row[tuple[object, ...]]:
        row = connection.execute(ONE, {"tenant": tenant.id, "key": key}).one_or_none()
        if row is None or row.expires < time.time():
            raise NotFoundError("no such keys")
        return row

    def usable_in(self, connection: sql.Connection, tenant: Tenant, key: str, program: str) -> None:
        """Raises KeysNeededError where the keys are not there (any more) or were refused, StateError where
        they are another program's."""
        try:
            row = self._got(connection, tenant, key)
        except NotFoundError:
            raise needed(key) from None
        if row.state == REFUSED:
            raise KeysNeededError("these keys were refused: make and send others", {"key": key})
        if row.program != program:
            raise StateError(
                f"keys for program {row.program[:16]}, not {program[:16]}",
                {"found": row.program, "expected": program},
            )

    def delete(self, tenant: Tenant, key: str) -> None:
        """Raises NotFoundError."""
        with self._database.writing() as connection:
            if connection.execute(sql.delete(keys).where(_is(tenant, key))).rowcount == 0:
                raise NotFoundError("no such keys")
        self._sweep([key])

    # ---- what workers do: they hold no token, and find keys only by what a job or a row names ----------

    def to_check(self, worker: str, lease: float) -> ToCheck | None:
        """The oldest file that is not checked, for this worker until its lease ends; None: there is none."""
        now = time.time()
        with self._database.reading() as connection:  # mostly there is none, which costs no writer's lock
            if connection.execute(UNCHECKED, {"now": now}).one_or_none() is None:
                return None
        with self._database.writing() as connection:
            row = connection.execute(UNCHECKED.with_for_update(skip_locked=True), {"now": now}).one_or_none()
            if row is None:
                return None
            taken = {"worker": worker, "lease": now + lease, "attempts": row.attempts + 1}
            connection.execute(sql.update(keys).where(_row(row.tenant, row.key)).values(**taken))
        found = ToCheck(row.tenant, row.key, row.program, row.attempts + 1)
        if row.attempts - (row.put_off or 0) >= self._settings.attempts:
            self.checked(found, StateError("checking these keys ended workers"))
            return None
        return found

    def extend(self, found: ToCheck, worker: str, lease: float) -> None:
        """The worker still checks."""
        mine = _row(found.tenant, found.key) & (keys.c.worker == worker)
        with self._database.writing() as connection:
            connection.execute(sql.update(keys).where(mine).values(lease=time.time() + lease))

    def put_off(self, found: ToCheck, worker: str, error: CrenelError, counts: bool = False) -> None:
        """They could not be checked: they wait, with the error for who asks, and are tried again after a
        pause that grows.

        counts : the attempt is one of those after which they are refused; without, the error says nothing of
            them
        """
        now, mine = time.time(), _row(found.tenant, found.key) & (keys.c.worker == worker)
        values = {
            "worker": None, "lease": now + pause(found.attempt), "changed": now,
            "error": Problem.of(error, retry=True).to_json(),
            "put_off": sql.func.coalesce(keys.c.put_off, 0) + (0 if counts else 1),
        }  # fmt: skip
        with self._database.writing() as connection:
            connection.execute(sql.update(keys).where(mine).values(**values))

    def checked(self, found: ToCheck, error: CrenelError | None) -> None:
        """The outcome of a check, which says nothing of a file that was sent again for another program since.
        Keys that are ready end those that they replace."""
        state = READY if error is None else REFUSED
        text = None if error is None else Problem.of(error, 422, retry=False).to_json()
        row, now = _row(found.tenant, found.key) & (keys.c.program == found.program), time.time()
        gone: list[str] = []
        with self._database.writing() as connection:
            replaced = connection.scalar(sql.select(keys.c.replaces).where(row))
            values = {"state": state, "error": text, "changed": now, "lease": None, "worker": None}
            connection.execute(sql.update(keys).where(row).values(**values))
            if error is None and replaced is not None:
                connection.execute(sql.delete(keys).where(_row(found.tenant, str(replaced))))
                gone.append(str(replaced))
        self._sweep(gone)

    def held(self, found: Collection[str]) -> set[tuple[str, str]]:
        """Of these keys, those that some tenant has and whose time is not over, each with its program."""
        names, there = list(found), set()
        wanted = sql.select(keys.c.program, keys.c.key).where(keys.c.expires > time.time()).distinct()
        with self._database.reading() as connection:
            for start in range(0, len(names), AT_ONCE):
                some = wanted.where(keys.c.key.in_(names[start : start + AT_ONCE]))
                there |= {(str(row.program), str(row.key)) for row in connection.execute(some)}
        return there

    def touch(self, connection: sql.Connection, found: Collection[tuple[str, str]]) -> None:
        """Jobs use these keys of tenants: their time begins anew."""
        now = time.time()
        for tenant, key in set(found):
            values = {"used": now, "expires": now + self._settings.key_ttl}
            connection.execute(sql.update(keys).where(_row(tenant, key)).values(**values))

    def lost(self, tenant: str, key: str) -> None:
        """The file is not in the storage any more: the tenant must send it again."""
        with self._database.writing() as connection:
            connection.execute(sql.delete(keys).where(_row(tenant, key)))

    def expire(self) -> int:
        """Deletes those whose time is over; returns how many."""
        over = keys.c.expires < time.time()
        with self._database.writing() as connection:
            found = [str(k) for k in connection.scalars(sql.select(keys.c.key).where(over))]
            connection.execute(sql.delete(keys).where(over))
        self._sweep(found)
        return len(found)

    def sweep(self) -> int:
        """Deletes files that no tenant had an hour ago either: the storage refused when their keys ended, or
        something died between a file and its row. Returns how many."""
        now, names = time.monotonic(), self._blobs.names("keys")
        held = {blob_of(key) for _, key in self.held([name.partition("/")[2] for name in names])}
        self._seen = {name: self._seen.get(name, now) for name in names if name not in held}
        gone = [name for name, since in self._seen.items() if now - since > FORGOTTEN_S]
        self._blobs.delete_files(gone)
        return len(gone)

    def _sweep(self, found: list[str]) -> None:
        """Deletes the files that no tenant has any more."""
        with self._database.reading() as connection:
            held = set(connection.scalars(sql.select(keys.c.key).where(keys.c.key.in_(found))))
        for key in set(found) - held:
            self._blobs.delete(blob_of(key))


def needed(key: str) -> KeysNeededError:
    """What a job says whose keys are gone."""
    return KeysNeededError(f"the service does not hold the keys {key[:16]}: send them again", {"key": key})


def _is(tenant: Tenant, key: str) -> sql.ColumnElement[bool]:
    return _row(tenant.id, key)


def _row(tenant: str, key: str) -> sql.ColumnElement[bool]:
    return (keys.c.tenant == tenant) & (keys.c.key == key)
