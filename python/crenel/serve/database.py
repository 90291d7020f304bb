"""Tables and their numbered migrations; SQLite by default, any database of SQLAlchemy by its URL."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.event import listen
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from crenel.errors import StateError, StorageError, UnavailableError
from crenel.serve.blobs import private

TABLES = MetaData()
ID, HASH = String(32), String(64)
AT_ONCE = 500  # databases bound what one statement may name

schema_version = Table("schema_version", TABLES, Column("number", Integer, primary_key=True))
tenants = Table(
    "tenants", TABLES,
    Column("id", ID, primary_key=True), Column("name", String(64), unique=True, nullable=False),
    Column("created", Float, nullable=False), Column("expires", Float),
)  # fmt: skip
tokens = Table(
    "tokens", TABLES,
    Column("hash", HASH, primary_key=True), Column("tenant", ID, nullable=False, index=True),
    Column("created", Float, nullable=False), Column("expires", Float),
)  # fmt: skip
uploads = Table(
    "uploads", TABLES,
    Column("id", ID, primary_key=True), Column("tenant", ID, nullable=False, index=True),
    Column("program", HASH, nullable=False), Column("sha256", HASH, nullable=False),
    Column("replaces", HASH), Column("length", BigInteger, nullable=False),
    Column("offset", BigInteger, nullable=False), Column("finished", Integer, nullable=False),
    Column("created", Float, nullable=False), Column("expires", Float, nullable=False),
)  # fmt: skip
parts = Table(
    "parts", TABLES,
    Column("upload", ID, primary_key=True), Column("offset", BigInteger, primary_key=True),
    Column("blob", String(160), nullable=False), Column("length", BigInteger, nullable=False),
)  # fmt: skip
keys = Table(
    "keys", TABLES,
    Column("tenant", ID, primary_key=True), Column("key", HASH, primary_key=True),
    Column("program", HASH, nullable=False), Column("bytes", BigInteger, nullable=False),
    Column("state", String(16), nullable=False, index=True), Column("error", Text), Column("replaces", HASH),
    Column("created", Float, nullable=False), Column("used", Float, nullable=False),
    Column("expires", Float, nullable=False, index=True), Column("changed", Float, nullable=False),
    Column("worker", ID), Column("lease", Float), Column("attempts", Integer, nullable=False),
    Column("put_off", Integer),
)  # fmt: skip
jobs = Table(
    "jobs", TABLES,
    Column("id", ID, primary_key=True), Column("tenant", ID, nullable=False),
    Column("program", HASH, nullable=False), Column("key", HASH, nullable=False),
    Column("idempotency", String(128), nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("input_bytes", BigInteger, nullable=False), Column("input_sha256", HASH, nullable=False),
    Column("result_bytes", BigInteger), Column("result_sha256", HASH), Column("error", Text),
    Column("attempts", Integer, nullable=False), Column("created", Float, nullable=False),
    Column("changed", Float, nullable=False, index=True), Column("started", Float), Column("finished", Float),
    Column("expires", Float, index=True), Column("worker", ID), Column("lease", Float),
    Column("seconds_keys", Float), Column("seconds_run", Float), Column("fetched", Float),
    Column("result_pack", String(160)), Column("result_offset", BigInteger), Column("put_off", Integer),
    UniqueConstraint("tenant", "idempotency"),
    Index("jobs_of_tenant", "tenant", "state", "input_bytes", "result_bytes"),
    Index("jobs_in_line", "state", "created"),
    Index("jobs_of_pack", "result_pack"),
)  # fmt: skip
workers = Table(
    "workers", TABLES,
    Column("id", ID, primary_key=True), Column("seen", Float, nullable=False),
    Column("info", Text, nullable=False),
)  # fmt: skip


def _first(connection: sql.Connection) -> None:
    TABLES.create_all(connection)


def _second(connection: sql.Connection) -> None:
    """Whether a result was fetched, and what counting a tenant's jobs reads."""
    _with_columns(connection, jobs, fetched="DOUBLE PRECISION")
    for index in jobs.indexes:
        if index.name in ("jobs_of_tenant", "jobs_in_line"):
            index.create(connection, checkfirst=True)


def _third(connection: sql.Connection) -> None:
    """Results that lie in one file, and which rows name it."""
    _with_columns(connection, jobs, result_pack="VARCHAR(160)", result_offset="BIGINT")
    for index in jobs.indexes:
        index.create(connection, checkfirst=True)


def _fourth(connection: sql.Connection) -> None:
    """How many of the attempts failed through no fault of the job or the keys."""
    for table in (jobs, keys):
        _with_columns(connection, table, put_off="INTEGER")


def _with_columns(connection: sql.Connection, table: Table, **wanted: str) -> None:
    """Those of a table that are not there yet."""
    there = {column["name"] for column in sql.inspect(connection).get_columns(table.name)}
    for name, kind in wanted.items():
        if name not in there:
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}")


# Asked with the time: what was put off waits once that is over, and what a dead worker had waits as well.
_FREE = "(lease IS NULL OR lease < ?1)"
_QUEUED = f"EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND {_FREE})"
KEYS_WAIT = f"SELECT EXISTS (SELECT 1 FROM keys WHERE state = 'received' AND {_FREE})"
ANYTHING = f"{KEYS_WAIT} OR {_QUEUED}"
JOBS_WAIT = f"SELECT {_QUEUED} OR EXISTS (SELECT 1 FROM jobs WHERE state = 'running' AND lease < ?1)"
MIGRATIONS: tuple[Callable[[sql.Connection], None], ...] = (_first, _second, _third, _fourth)
"""What brings a database from version k to k + 1. A change of a table is a further function, never an edit
of an old one; the first makes the tables as they are now, so that later ones ask what is there."""


class Database:
    """Connections, transactions, and errors of the library for those of the database.

    Raises StateError for a database of a newer version, StorageError and UnavailableError.
    """

    def __init__(self, url: str) -> None:
        parsed = sql.make_url(url)
        self.lite = parsed.get_backend_name() == "sqlite"
        if self.lite and parsed.database:
            private(Path(parsed.database).parent)
        options = {"connect_args": {"timeout": 30.0}} if self.lite else {"pool_pre_ping": True}
        self.engine = sql.create_engine(parsed, **options)
        if self.lite:
            listen(self.engine, "connect", _tuned)
            listen(self.engine, "begin", _begun)
        with self.writing() as connection:
            _migrate(connection)
        self._looking = threading.Lock()
        self._look: sqlite3.Connection | None = None
        if self.lite and parsed.database:
            self._look = sqlite3.connect(parsed.database, check_same_thread=False, isolation_level=None)

    @contextmanager
    def writing(self, lasting: bool = True) -> Iterator[sql.Connection]:
        """A transaction that may write, committed at the end.

        lasting : it is on the disk when the block ends. Without: all see it, whatever process dies, but a
            machine that loses power may forget it, together with all later ones that are not lasting
        """
        with _translated(), self.engine.connect() as connection:
            connection = connection.execution_options(lasting=lasting)
            with connection.begin():
                yield connection

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """A transaction that only reads."""
        with _translated(), self.engine.connect() as connection:
            connection = connection.execution_options(only_reads=True)
            with connection.begin():
                yield connection

    def version(self) -> int | None:
        """Another number after every commit of anybody, for some microseconds; None where the database has no
        such number, and whoever waits has to ask what he waits for."""
        with self._looking:
            if self._look is None:
                return None
            try:
                return int(self._look.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error:  # busy: what is asked next says it better
                return None

    def anything(self, question: str = ANYTHING) -> bool:
        """May there be something that waits for a worker now? As quick as `version`, and without the lock of
        who writes; True where nobody knows."""
        with self._looking:
            if self._look is None:
                return True
            try:
                return bool(self._look.execute(question, (time.time(),)).fetchone()[0])
            except sqlite3.Error:
                return True

    def close(self) -> None:
        """Closes all connections."""
        with self._looking:
            if self._look is not None:
                self._look.close()
                self._look = None
        self.engine.dispose()


def _tuned(connection: object, _record: object) -> None:
    """Readers beside one writer; a commit is on the disk. Transactions begin where `_begun` says."""
    connection.isolation_level = None  # type: ignore[attr-defined]
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _begun(connection: sql.Connection) -> None:
    """Writers take the lock first: none has to upgrade, which fails where two do."""
    options = connection.get_execution_options()
    if options.get("only_reads"):
        connection.exec_driver_sql("BEGIN")
        return
    wanted = "FULL" if options.get("lasting", True) else "NORMAL"
    if connection.info.get("synchronous", "FULL") != wanted:
        connection.exec_driver_sql(f"PRAGMA synchronous={wanted}")
        connection.info["synchronous"] = wanted
    connection.exec_driver_sql("BEGIN IMMEDIATE")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        text = str(error.orig)
        if "full" in text or "No space" in text or "disk I/O" in text:
            raise StorageError("the database's disk is full", {"retry_after": 30}) from error
        raise UnavailableError("the database does not answer", {"retry_after": 2}) from error
    except NoConnection as error:  # all of the pool's are in use
        raise UnavailableError("the database is busy", {"retry_after": 2}) from error


def _migrate(connection: sql.Connection) -> None:
    there = sql.inspect(connection).has_table(schema_version.name)
    found = connection.scalar(sql.select(sql.func.max(schema_version.c.number))) if there else None
    version = 0 if found is None else int(found)
    if version > len(MIGRATIONS):
        raise StateError(
            f"the database has version {version}, this library knows up to {len(MIGRATIONS)}",
            {"found": version, "expected": len(MIGRATIONS)},
        )
    for number in range(version, len(MIGRATIONS)):
        MIGRATIONS[number](connection)
        connection.execute(sql.insert(schema_version).values(number=number + 1))
