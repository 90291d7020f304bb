"""What is accepted is answered: workers and servers that are killed, restarts, disks without room."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sql
from service_world import World, made, problem

from crenel import client
from crenel.errors import StorageError
from crenel.serve import running
from crenel.serve.blobs import Blobs, Writer
from crenel.serve.database import MIGRATIONS, Database, schema_version
from crenel.serve.jobs import Answered
from crenel.serve.settings import Settings

QUICK = {"lease_seconds": 1.0, "allow_insecure": True, "min_free_bytes": 0}


def test_a_worker_that_dies_loses_its_lease_and_not_the_job(world: World):
    """Claimed and never answered: another one begins it again, and a late answer changes nothing."""
    world.restart(lease_seconds=3.0)
    m, key = made(), world.ready(made().keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    jobs = world.service.jobs
    (dead,) = jobs.claim("dead", set(), set())
    assert jobs.claim("other", set(), set()) == []  # the lease holds
    time.sleep(3.1)
    world.work()
    found = world.ask("GET", f"/jobs/{job}").json()
    assert (found["state"], found["attempts"]) == ("done", 2)
    assert jobs.done("dead", [Answered(dead, b"late", 0, 0)]) == [False] and not jobs.extend(dead, "dead")
    jobs.failed(dead, "dead", StorageError("late"))
    assert world.ask("GET", f"/jobs/{job}/result").content == m.answer
    assert len(list((world.folder / "data/results").iterdir())) == 1  # the late one is gone


def test_a_job_that_kills_workers_ends(world: World):
    world.restart(lease_seconds=0.2, attempts=2)
    key = world.ready(made().keys[0])
    job = world.submit(made().sent[0], key).json()["job"]
    for _ in range(2):
        assert world.service.jobs.claim("dead", set(), set())
        time.sleep(0.25)
    assert world.service.jobs.claim("dead", set(), set()) == []
    found = world.ask("GET", f"/jobs/{job}").json()
    assert (found["state"], found["error"]["code"], found["error"]["retry"]) == (
        "failed",
        "UnavailableError",
        True,
    )


def test_a_restart_keeps_everything(world: World):
    m, key = made(), world.ready(made().keys[0])
    place = world.begin(m.keys[1])
    world.patch(place, 0, m.keys[1][:1000])
    jobs = [world.submit(m.sent[0], key).json()["job"] for _ in range(2)]
    world.restart()
    assert world.ask("GET", f"/keys/{key}").json()["state"] == "ready"
    assert world.patch(place, 1000, m.keys[1][1000:]).headers["upload-offset"] == str(len(m.keys[1]))
    world.work()
    assert [world.ask("GET", f"/jobs/{j}/result").content for j in jobs] == [m.answer] * 2


def test_no_room(world: World):
    """Refused before anything is taken, and said in the error's type; what was accepted is answered."""
    m, key = made(), world.ready(made().keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    world.restart(min_free_bytes=1 << 60)
    found = problem(world.submit(m.sent[0], key), 507, "StorageError")
    assert found["retry"] and found["fields"]["needed"] > 0
    headers = {"Tus-Resumable": "1.0.0", "Upload-Length": "10"}
    from service_world import metadata

    answer = world.ask("POST", "/keys/uploads", headers=headers | {"Upload-Metadata": metadata("0" * 64)})
    problem(answer, 507, "StorageError")
    assert world.http.get("/readyz").status_code == 503
    world.work()
    assert world.ask("GET", f"/jobs/{job}").json()["state"] == "done"


@pytest.mark.parametrize("where", ["write", "commit"])
def test_a_disk_that_fills_within_a_write(world: World, monkeypatch, where):
    """ENOSPC from the system: 507, nothing half written, and the upload stands where it stood."""
    m = made()
    place = world.begin(m.keys[0])
    assert world.patch(place, 0, m.keys[0][:1000]).status_code == 204
    honest = getattr(Writer, where)

    def full(self: Writer, *given: bytes) -> object:
        from crenel.serve.blobs import translated

        with translated():
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Writer, where, full)
    problem(world.patch(place, 1000, m.keys[0][1000:]), 507, "StorageError")
    monkeypatch.setattr(Writer, where, honest)
    stands = world.ask("HEAD", place, headers={"Tus-Resumable": "1.0.0"})
    assert stands.headers["upload-offset"] == "1000"
    assert not list((world.folder / "data").rglob("*.part"))
    assert world.patch(place, 1000, m.keys[0][1000:]).status_code == 204
    world.work()


def test_a_full_disk_does_not_end_a_job(world: World, monkeypatch):
    """The worker cannot write the result: the job waits, and is answered once there is room."""
    m, key = made(), world.ready(made().keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    honest = Blobs.put

    def full(self, found):
        assert all(name.startswith("results/") for name in found)
        raise StorageError("the disk is full")

    monkeypatch.setattr(Blobs, "put", full)
    monkeypatch.setattr("crenel.serve.patience.FIRST_S", 0.0)
    for _ in range(world.settings.attempts + 2):  # however often: it is not the job's fault
        with pytest.raises(StorageError):
            world.worker().step()
        assert world.ask("GET", f"/jobs/{job}").json()["state"] == "queued"
    monkeypatch.setattr(Blobs, "put", honest)
    world.work()
    assert world.ask("GET", f"/jobs/{job}/result").content == m.answer


def test_a_real_file_system_that_is_full(tmp_path):
    """/dev/full says so at every write."""
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    blobs = Blobs(str(tmp_path))
    writer = blobs.writer("y")
    writer._file.close()
    writer._file = Path("/dev/full").open("wb")  # noqa: SIM115
    writer.write(b"1" * 100)
    with pytest.raises(StorageError, match="full"):
        writer.commit()
    assert not blobs.exists("y") and not list(tmp_path.glob("*.part"))


def test_a_database_of_a_newer_version_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.sqlite'}"
    database = Database(url)
    with database.writing() as connection:
        connection.execute(sql.insert(schema_version).values(number=len(MIGRATIONS) + 1))
    database.close()
    with pytest.raises(Exception, match="this library knows"):
        Database(url)


def test_killed_workers(tmp_path):
    """SIGKILL between acceptance and answer, again and again: every job is answered, and right."""
    m = made()
    settings = Settings(data=str(tmp_path / "data"), attempts=20, **QUICK)
    with running([m.servable], settings, device="cpu") as made_:
        session = client.Session(client.connect(made_.url, made_.token or ""), m.spec, m.clients[0])
        session.send_keys()
        jobs = []
        for k in range(12):
            jobs.append(session.submit(m.samples[:2]))
            if k in (3, 7):
                _kill(made_.workers)
        found = [job.encrypted(timeout=60) for job in jobs]
        clear = m.program.simulate(m.samples[:2], noise=False)
        for data in found:
            values = m.clients[0].decrypt(m.clients[0].tensor_from_bytes(data), m.spec)
            assert abs(values - clear).max() < 2**-10
        states = [job.state() for job in jobs]
        assert [s["state"] for s in states] == ["done"] * 12


def _kill(workers) -> None:
    """One that lives: a new one may be about to start."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(ProcessLookupError):
            os.kill(workers.pids[0], signal.SIGKILL)
            return
        time.sleep(0.05)
    raise AssertionError("no worker started again")


SERVER = """
import sys, time, warnings
warnings.simplefilter("ignore")
from crenel.serve import Settings, running
settings = Settings.from_json(sys.argv[1])
with running([sys.argv[2]], settings, device="cpu", port=int(sys.argv[3])) as made:
    print(made.url, made.token, flush=True)
    time.sleep(600)
"""


def test_a_killed_server(tmp_path):
    """SIGKILL of the server with jobs waiting: the next one answers them; its orphan ends by itself."""
    m = made()
    (tmp_path / "toy.crn").write_bytes(m.servable.data)
    settings = Settings(data=str(tmp_path / "data"), **QUICK).to_json()

    def start(port: int) -> tuple[subprocess.Popen[str], list[str]]:
        command = [sys.executable, "-c", SERVER, settings, str(tmp_path / "toy.crn"), str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, process.stdout.readline().split()

    first, (url, token) = start(0)
    try:
        session = client.Session(client.connect(url, token), m.spec, m.clients[0])
        session.send_keys()
        jobs = [session.submit(m.samples[:2]) for _ in range(6)]
        first.kill()
        first.wait()
        second, _ = start(httpx.URL(url).port or 0)
        try:
            assert all(len(job.encrypted(timeout=60)) == len(m.answer) for job in jobs)
            assert {job.state()["state"] for job in jobs} == {"done"}
        finally:
            second.terminate()
            second.wait()
    finally:
        first.kill()
