"""The service on a database and a store that are not this machine's files: PostgreSQL and an S3-like store.

Each runs where its programs are installed: Debian's `postgresql` with `psycopg`; `moto`, a server of that
protocol from PyPI, with `s3fs`. Else it is skipped, with what is missing.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql
from faulty import later
from needed import lacking, needs
from service_world import World, made, problem, quiet

from crenel import client
from crenel.errors import NotFoundError, UnavailableError
from crenel.serve import running
from crenel.serve.blobs import Blobs
from crenel.serve.database import MIGRATIONS, Database, jobs, schema_version
from crenel.serve.jobs import Answered
from crenel.serve.settings import Settings

QUICK = {"allow_insecure": True, "min_free_bytes": 0}


def _port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _binaries() -> Path | None:
    """Of the newest PostgreSQL that Debian's package put where it does."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[4]))
    return found[-1].parent if found else None


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server of its own, at a socket in a folder of its own, without a port."""
    binaries = _binaries()
    if binaries is None:
        lacking("service", "Debian's package postgresql is not installed")
    needs("service", "psycopg")
    folder = tmp_path_factory.mktemp("postgres", numbered=True)
    user: dict[str, object] = {}
    if os.geteuid() == 0:  # which PostgreSQL refuses to be
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam("postgres")
            user = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
        if not user:
            lacking("service", "this runs as root, and there is no user postgres")
        for above in (folder, *folder.parents[:2]):
            above.chmod(0o755)
        shutil.chown(folder, "postgres", "postgres")
    data = folder / "data"
    made_ = subprocess.run(
        [binaries / "initdb", "-D", data, "-A", "trust", "-U", "crenel", "--no-sync"],
        capture_output=True, text=True, cwd=folder, **user,  # type: ignore[call-overload]
    )  # fmt: skip
    assert made_.returncode == 0, made_.stderr
    server = subprocess.Popen(
        [binaries / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses="],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **user,  # type: ignore[call-overload]
    )  # fmt: skip
    try:
        for _ in range(300):
            if (folder / ".s.PGSQL.5432").exists():
                break
            time.sleep(0.1)
        yield f"postgresql+psycopg://crenel@/postgres?host={folder}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    """A database of its own."""
    name = f"crenel_{uuid.uuid4().hex}"
    engine = sql.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    yield postgres.replace("/postgres?", f"/{name}?")


class Bucket:
    """A server of a store, which may go and come back with what it has."""

    def __init__(self) -> None:
        self._port = _port()
        self.start()

    def start(self) -> None:
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self._port, verbose=False)
        self._server.start()
        self.url = "http://{}:{}".format(*self._server.get_host_and_port())

    def stop(self) -> None:
        self._server.stop()


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    needs("service", "s3fs", "moto", "flask")
    server = Bucket()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def store(bucket: Bucket) -> Iterator[str]:
    """A bucket's URL; the server's address is in the environment, as for any program of that protocol."""
    told = {
        "AWS_ENDPOINT_URL": bucket.url, "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1",
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in told}
    os.environ |= told
    try:
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("crenel-test")
        yield "s3://crenel-test/service"
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _answers(world: World) -> None:
    """Keys, two jobs, a cancelled one, a refused one, another tenant; then all is deleted."""
    m, key = made(), world.ready(made().keys[0])
    job, again = (world.submit(m.sent[0], key).json()["job"] for _ in range(2))
    cancelled = world.submit(m.sent[0], key).json()["job"]
    assert world.ask("POST", f"/jobs/{cancelled}/cancel").json()["state"] == "cancelled"
    world.work()
    for name in (job, again):
        assert world.ask("GET", f"/jobs/{name}/result", params={"wait": 5}).content == m.answer
        problem(world.ask("GET", f"/jobs/{name}", "bob"), 404, "NotFoundError")
    once = [world.submit(m.sent[0], key, **{"Idempotency-Key": "once"}).status_code for _ in range(2)]
    assert once == [202, 200]
    world.work()
    _together(world, key)
    world.service.note()
    for found in world.ask("GET", "/jobs").json()["jobs"]:
        assert world.ask("DELETE", f"/jobs/{found['job']}").status_code == 204
    assert world.ask("DELETE", f"/keys/{key}").status_code == 204
    assert not world.service.blobs.exists(f"keys/{key}")


def _together(world: World, key: str) -> None:
    """Results of a group: one file of a local disk, a blob each in a store; deleted one by one."""
    sent = [world.submit(made().sent[0], key).json()["job"] for _ in range(3)]
    taken = [job for _ in sent for job in world.service.jobs.claim("aa", set(), set())]
    data = [os.urandom(size) for size in (100, 4096, 5000)]
    answers = [Answered(job, found, 0, 0) for job, found in zip(taken, data, strict=True)]
    assert world.service.jobs.done("aa", answers) == [True] * 3
    assert world.service.jobs.done("aa", answers) == [False] * 3  # late, and without a trace
    with world.service.database.reading() as connection:
        rows = list(connection.execute(sql.select(jobs.c.result_pack).where(jobs.c.id.in_(sent))))
    assert len(set(rows)) == 1 and (rows[0].result_pack is not None) == world.service.blobs.local
    assert world.service.jobs.results.sweep() == 0
    for k, job in enumerate(taken):
        assert world.ask("GET", f"/jobs/{job.id}/result").content == data[k]
        assert world.ask("DELETE", f"/jobs/{job.id}").status_code == 204
    if world.service.blobs.local:
        assert world.service.blobs.names("packs") == []


def _world(folder: Path, **given: object) -> World:
    quiet()
    return World(folder, Settings(**(QUICK | {"data": str(folder / "data")} | given)))  # type: ignore[arg-type]


def test_postgresql(database: str, tmp_path: Path):
    world = _world(tmp_path, database=database)
    try:
        _answers(world)
        assert world.service.database.version() is None  # it has no such number: who waits asks
    finally:
        world.close()


def test_postgresql_makes_its_tables_once(database: str):
    """Twice is no error, and an older database gets what is new."""
    Database(database).close()
    found = Database(database)
    with found.writing() as connection:
        for name in ("fetched", "result_pack", "result_offset", "put_off"):
            connection.exec_driver_sql(f"ALTER TABLE jobs DROP COLUMN {name}")
        connection.exec_driver_sql("DROP INDEX jobs_in_line")
        connection.execute(sql.delete(schema_version).where(schema_version.c.number > 1))
    found.close()
    found = Database(database)
    with found.reading() as connection:
        assert list(connection.execute(sql.select(jobs))) == []
        assert {i["name"] for i in sql.inspect(connection).get_indexes(jobs.name)} >= {
            index.name for index in jobs.indexes
        }
        assert connection.scalar(sql.select(sql.func.max(schema_version.c.number))) == len(MIGRATIONS)
    found.close()


def test_postgresql_lets_one_of_many_claim_a_job(database: str, tmp_path: Path):
    """Workers that ask at the same time get different jobs, and limits hold for submissions that race."""
    world = _world(tmp_path, database=database, jobs=6)
    try:
        key = world.ready(made().keys[0])
        codes: list[int] = []
        threads = [
            threading.Thread(target=lambda: codes.append(world.submit(made().sent[0], key).status_code))
            for _ in range(6)
        ]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert codes == [202] * 6
        problem(world.submit(made().sent[0], key), 429, "LimitError")
        claimed: list[str] = []

        def claim(k: int) -> None:
            claimed.extend(c.id for c in world.service.jobs.claim(f"w{k}", set(), set()))

        threads = [threading.Thread(target=claim, args=(k,)) for k in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert len(set(claimed)) == len(claimed) and claimed
    finally:
        world.close()


def test_a_service_of_processes_on_postgresql(database: str, tmp_path: Path):
    """Server and worker as they run, and a client."""
    m = made()
    settings = Settings(data=str(tmp_path / "data"), database=database, **QUICK)  # type: ignore[arg-type]
    with running([m.servable], settings, device="cpu") as service:
        session = client.Session(client.connect(service.url, service.token or ""), m.spec, m.clients[0])
        session.send_keys()
        assert [len(j.encrypted(60)) for j in [session.submit(m.samples[:2]) for _ in range(4)]] == [
            len(m.answer)
        ] * 4


def test_blobs_of_a_store(store: str):
    blobs = Blobs(f"{store}/{uuid.uuid4().hex}")
    assert not blobs.local and blobs.path("a/b") is None
    assert blobs.write("a/b", [b"one", b"two"]) == 6 and blobs.read("a/b") == b"onetwo"
    blobs.put({"a/c": b"3", "a/d": b"4"})
    assert (blobs.size("a/b"), blobs.read("a/d")) == (6, b"4")
    blobs.move("a/b", "x/y")
    assert blobs.exists("x/y") and not blobs.exists("a/b")
    blobs.delete("a")
    assert not blobs.exists("a/c") and not blobs.exists("a/d")
    with pytest.raises(NotFoundError):
        blobs.read("a/c")
    writer = blobs.writer("half")
    writer.write(b"x" * 100)
    writer.abort()
    assert not blobs.exists("half")
    with blobs.reserved(10**18):  # nobody knows how much room a store has
        pass


def test_a_store(store: str, tmp_path: Path):
    """Keys and results in the store, copies of keys in the folder `cache`."""
    url = f"{store}/{uuid.uuid4().hex}"
    cache = tmp_path / "cache"
    world = _world(tmp_path, data=url, database=f"sqlite:///{tmp_path / 'x.sqlite'}", cache=str(cache))
    try:
        _answers(world)
        assert len(list(cache.iterdir())) == 1
    finally:
        world.close()


def test_a_store_that_goes_and_comes_back(store: str, bucket: Bucket, tmp_path: Path):
    """Nobody answers at its address: what was accepted waits, what is sent is refused, nothing is lost."""
    url = f"{store}/{uuid.uuid4().hex}"
    cache = str(tmp_path / "cache")
    world = _world(tmp_path, data=url, database=f"sqlite:///{tmp_path / 'x.sqlite'}", cache=cache)
    try:
        m, key = made(), world.ready(made().keys[0])
        job, unchecked = world.submit(m.sent[0], key).json()["job"], world.upload(m.keys[1], "bob")
        bucket.stop()
        try:
            assert world.worker().step()
            waits = world.ask("GET", f"/keys/{unchecked}", "bob").json()
            assert (waits["state"], waits["waits"]["code"]) == ("received", "UnavailableError"), waits
            with pytest.raises(UnavailableError):
                world.worker().step()
            assert world.ask("GET", f"/jobs/{job}").json()["state"] == "queued"
            problem(world.submit(m.sent[0], key), 503, "UnavailableError")
        finally:
            bucket.start()
        later(world)
        world.work()
        assert world.ask("GET", f"/jobs/{job}/result").content == m.answer
        assert world.ask("GET", f"/keys/{unchecked}", "bob").json()["state"] == "ready"
    finally:
        world.close()


def test_postgresql_and_a_store(database: str, store: str, tmp_path: Path):
    url = f"{store}/{uuid.uuid4().hex}"
    world = _world(tmp_path, data=url, database=database, cache=str(tmp_path / "cache"))
    try:
        _answers(world)
    finally:
        world.close()
