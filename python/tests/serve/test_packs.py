"""Results of short jobs in one file: read, freed one by one, swept; workers that die between two steps."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sql
from service_world import World, made, problem, sha

from crenel.errors import NotFoundError, StorageError, UnavailableError
from crenel.serve.blobs import PAGE, Blobs
from crenel.serve.database import Database, jobs, schema_version
from crenel.serve.jobs import Answered, Claimed
from crenel.serve.results import Stored
from crenel.serve.settings import Settings


def _files(world: World, folder: str) -> list[str]:
    place = world.folder / "data" / folder
    return sorted(os.listdir(place)) if place.exists() else []


def _claimed(world: World, count: int, worker: str = "aa") -> list[Claimed]:
    """Jobs of two tenants in turn, taken by a worker of this name."""
    m = made()
    keys = [world.ready(m.keys[0], "alice"), world.ready(m.keys[1], "bob")]
    for k in range(count):
        assert world.submit(m.sent[k % 2], keys[k % 2], ("alice", "bob")[k % 2]).status_code == 202
    found: list[Claimed] = []
    while len(found) < count:
        found += world.service.jobs.claim(worker, set(), set())
    return found


def _tenant(world: World, claimed: Claimed) -> str:
    known = {world.service.auth.tenant(f"Bearer {world.tokens[n]}").id: n for n in ("alice", "bob")}
    return known[claimed.tenant]


def _fetched(world: World, claimed: Claimed) -> bytes:
    answer = world.ask("GET", f"/jobs/{claimed.id}/result", _tenant(world, claimed))
    assert answer.status_code == 200, answer.text
    return answer.content


def _drawn(count: int) -> list[bytes]:
    """Of one byte, of sizes around a page, and of others."""
    seed = int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    sizes = [1, PAGE, PAGE + 1, *rng.integers(64, 5 * PAGE, count)][:count]
    return [rng.bytes(int(size)) for size in sizes]


@pytest.mark.parametrize("can", [True, False])
def test_results_together_are_one_file_and_each_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch, can: bool
):
    """Whoever asks gets his bytes and no other's; what is deleted is freed, and the last takes the file, also
    where a file system cannot free a part of one."""
    if not can:
        monkeypatch.setattr("crenel.serve.blobs._fallocate", lambda: None)
    taken, data = _claimed(world, 6), _drawn(6)
    answers = [Answered(job, found, 0, 0) for job, found in zip(taken, data, strict=True)]
    assert world.service.jobs.done("aa", answers) == [True] * 6
    (pack,) = _files(world, "packs")
    assert not _files(world, "results") and not _files(world, "inputs")
    path = world.folder / "data/packs" / pack
    for job, found in zip(taken, data, strict=True):
        assert _fetched(world, job) == found
        other = "bob" if _tenant(world, job) == "alice" else "alice"
        problem(world.ask("GET", f"/jobs/{job.id}/result", other), 404, "NotFoundError")
    full, punches = path.stat().st_blocks, _punches(world.folder)
    assert can or not punches
    for k, job in enumerate(taken):
        assert world.ask("DELETE", f"/jobs/{job.id}", _tenant(world, job)).status_code == 204
        for left, found in list(zip(taken, data, strict=True))[k + 1 :]:
            assert _fetched(world, left) == found
        if k + 1 < len(taken) and punches:
            assert len(data[k]) == 1 or data[k] not in path.read_bytes()
            assert path.stat().st_blocks < full
    assert _files(world, "packs") == []


def _punches(folder: Path) -> bool:
    """Can this file system free a part of a file?"""
    blobs = Blobs(str(folder / "try"))
    blobs.together("packs/x", [b"1" * PAGE, b"2"])
    path = folder / "try/packs/x"
    before = path.stat().st_blocks
    blobs.punch("packs/x", 0, PAGE)
    return path.stat().st_blocks < before


def test_punched_is_zeros_and_nothing_beside_it(tmp_path: Path):
    blobs, data = Blobs(str(tmp_path)), _drawn(5)
    places = blobs.together("packs/x", data)
    assert all(place % PAGE == 0 for place in places)
    blobs.punch("packs/x", places[2], len(data[2]))
    blobs.punch("packs/none", 0, 1)  # no error, as deleting nothing is none
    read = [blobs.part("packs/x", place, len(found)) for place, found in zip(places, data, strict=True)]
    assert read[:2] + read[3:] == data[:2] + data[3:]
    assert read[2] in (bytes(len(data[2])), data[2])
    with pytest.raises(NotFoundError):
        blobs.part("packs/none", 0, 1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EPERM, errno.EOPNOTSUPP])
def test_what_cannot_be_freed_now_is_deleted_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
):
    """A full disk may refuse to free a part: its job is gone, the others' stay, the file goes with the last.
    A call that a signal cut short is made again."""
    taken, data = _claimed(world, 3), [b"", *_drawn(2)]
    world.service.jobs.done("aa", [Answered(j, d, 0, 0) for j, d in zip(taken, data, strict=True)])
    calls: list[int] = []

    def refused(_file: int, _mode: int, _offset: int, size: int) -> int:
        assert size > 0
        calls.append(size)
        ctypes.set_errno(errno.EINTR if len(calls) == 1 else number)
        return -1

    monkeypatch.setattr("crenel.serve.blobs._fallocate", lambda: refused)
    for job, left in zip(taken, (taken[1:], taken[2:], []), strict=True):
        assert world.ask("DELETE", f"/jobs/{job.id}", _tenant(world, job)).status_code == 204
        assert len(_files(world, "packs")) == (1 if left else 0)
        assert [_fetched(world, other) for other in left] == data[3 - len(left) :]
    assert calls == [-(-len(data[1]) // PAGE) * PAGE] * 2


def test_a_result_that_is_damaged_is_not_sent(world: World):
    """Nobody gets other bytes than were written: neither those of a neighbour nor zeros."""
    taken, data = _claimed(world, 3), _drawn(3)
    world.service.jobs.done("aa", [Answered(j, d, 0, 0) for j, d in zip(taken, data, strict=True)])
    (pack,) = _files(world, "packs")
    with (world.folder / "data/packs" / pack).open("r+b") as file:
        file.write(bytes([data[0][0] ^ 1]))
    with world.service.database.writing() as connection:
        connection.execute(sql.update(jobs).where(jobs.c.id == taken[1].id).values(result_offset=2 * PAGE))
    for job in taken[:2]:
        problem(world.ask("GET", f"/jobs/{job.id}/result", _tenant(world, job)), 404, "NotFoundError")
    assert _fetched(world, taken[2]) == data[2]
    (world.folder / "data/packs" / pack).unlink()
    answer = world.ask("GET", f"/jobs/{taken[2].id}/result", _tenant(world, taken[2]))
    problem(answer, 404, "NotFoundError")
    assert pack not in answer.text and "not in the storage any more" in answer.text


def test_late_results_of_a_group(world: World):
    """One is cancelled, one deleted, one another worker's by now: the others end, and only these stay."""
    world.restart(lease_seconds=0.2)
    taken, data = _claimed(world, 5), _drawn(5)
    assert world.ask("POST", f"/jobs/{taken[0].id}/cancel", _tenant(world, taken[0])).status_code == 200
    assert world.ask("DELETE", f"/jobs/{taken[1].id}", _tenant(world, taken[1])).status_code == 204
    with world.service.database.writing() as connection:
        connection.execute(sql.update(jobs).where(jobs.c.id == taken[2].id).values(worker="bb", attempts=2))
    answers = [Answered(job, found, 0, 0) for job, found in zip(taken, data, strict=True)]
    assert world.service.jobs.done("aa", answers) == [False, False, False, True, True]
    (pack,) = _files(world, "packs")
    held = (world.folder / "data/packs" / pack).read_bytes()
    if _punches(world.folder):
        assert data[1] not in held and data[2] not in held
    assert [_fetched(world, job) for job in taken[3:]] == data[3:]
    # All late: nothing stays, and what is right stays right.
    assert world.service.jobs.done("aa", answers[3:]) == [False, False]
    assert _files(world, "packs") == [pack]
    assert [_fetched(world, job) for job in taken[3:]] == data[3:]


def test_a_group_for_which_there_is_no_room(world: World, monkeypatch: pytest.MonkeyPatch):
    """The disk fills at the sync: nothing is left of the file, no job ended, all do once there is room."""
    taken, data = _claimed(world, 4), _drawn(4)
    answers = [Answered(job, found, 0, 0) for job, found in zip(taken, data, strict=True)]
    honest = os.fsync

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError):
        world.service.jobs.done("aa", answers)
    monkeypatch.setattr(os, "fsync", honest)
    assert _files(world, "packs") == [] and len(_files(world, "inputs")) == 4
    assert world.service.jobs.done("aa", answers) == [True] * 4
    assert [_fetched(world, job) for job in taken] == data


def test_a_transaction_that_fails_again_and_again(world: World, monkeypatch: pytest.MonkeyPatch):
    """Trying again does not fill the disk: of all that was written for nothing at most the last stays."""
    monkeypatch.setattr("crenel.serve.patience.FIRST_S", 0.0)
    m, key = made(), world.ready(made().keys[0])
    group = [world.submit(m.sent[0], key).json()["job"] for _ in range(4)]
    with monkeypatch.context() as broken:
        broken.setattr("crenel.serve.jobs.FINISH", sql.text("INSERT INTO nothing VALUES (:job)"))
        broken.setattr("crenel.serve.jobs._together", lambda _first, found, *_: found)
        for _ in range(3):
            with pytest.raises(UnavailableError):
                world.worker().step()
            assert len(_files(world, "packs")) == 1
    world.work()
    assert _files(world, "packs") == [] and len(_files(world, "results")) == 4
    assert [world.ask("GET", f"/jobs/{job}/result").content for job in group] == [m.answer] * 4


def test_what_may_still_be_done_is_kept(world: World):
    """Nobody knows of a transaction, and its jobs are the worker's still: its file stays until then."""
    taken, data = _claimed(world, 2), _drawn(2)
    results = world.service.jobs.results
    stored = results.write("aa", [(j.id, d, sha(d)) for j, d in zip(taken, data, strict=True)])
    results.doubt(stored, {job.id: job.attempt for job in taken})
    results._settle()
    assert len(_files(world, "packs")) == 1
    with world.service.database.writing() as connection:  # it was done after all
        for s in stored:
            values = {"state": "done", "result_pack": s.pack, "result_offset": s.offset}
            values |= {"result_sha256": s.sha256, "result_bytes": s.size}
            connection.execute(sql.update(jobs).where(jobs.c.id == s.job).values(**values))
    results._settle()
    assert [_fetched(world, job) for job in taken] == data and not results._doubted


def test_a_sweep_takes_what_nobody_has(world: World, monkeypatch: pytest.MonkeyPatch):
    """Packs without a row, unless their worker runs jobs; blobs and bodies of jobs that ended or are gone."""
    results, blobs = world.service.jobs.results, world.service.blobs
    taken, data = _claimed(world, 5), _drawn(5)
    world.service.jobs.done("aa", [Answered(j, d, 0, 0) for j, d in zip(taken[:2], data[:2], strict=True)])
    world.service.jobs.done("aa", [Answered(taken[2], data[2], 0, 0)])  # alone: a blob of its own
    (kept,), (own,) = _files(world, "packs"), _files(world, "results")
    orphans = [f"packs/{worker}-{uuid.uuid4().hex}" for worker in ("aa", "cc")]
    for name in orphans:
        blobs.together(name, data)
    blobs.put({f"results/{taken[3].id}-{'0' * 64}": b"late", f"results/{'1' * 32}-{'0' * 64}": b"deleted"})
    blobs.put({f"inputs/{taken[0].id}": b"ended", f"inputs/{'2' * 32}": b"on its way"})
    assert results.sweep() == 3  # of cc, of the deleted job, the body of the ended one
    assert sorted(_files(world, "packs")) == sorted([kept, orphans[0].partition("/")[2]])
    assert _files(world, "results") == sorted([own, f"{taken[3].id}-{'0' * 64}"])
    assert set(_files(world, "inputs")) == {taken[3].id, taken[4].id, "2" * 32}
    answers = [Answered(j, d, 0, 0) for j, d in zip(taken[3:], data[3:], strict=True)]
    assert world.service.jobs.done("aa", answers) == [True, True]
    monkeypatch.setattr("crenel.serve.results.FORGOTTEN_S", -1.0)
    assert results.sweep() == 3  # of aa, the late blob, the body that nobody came for
    assert results.sweep() == 0
    assert [_fetched(world, job) for job in taken] == data


DYING = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import sqlalchemy
from crenel.serve import blobs, jobs, results, worker
from crenel.serve.programs import NnProgram, Programs
from crenel.serve.settings import Settings
settings, program, where = Settings.from_json(sys.argv[1]), sys.argv[2], sys.argv[3]
works = worker.Worker(settings, Programs([NnProgram("toy", open(program, "rb").read(), True)]), "cpu")

def die(*_given, **_more):
    os.kill(os.getpid(), signal.SIGKILL)

def before(place, name):
    setattr(place, name, die)

def after(place, name, then=die):
    honest = getattr(place, name)
    def done(*given, **more):
        found = honest(*given, **more)
        then()
        return found
    setattr(place, name, done)

def at_commit():
    sqlalchemy.event.listen(works._database.engine, "commit", die)

while works.step():  # one job; its keys are resident then
    pass
jobs._together = lambda _first, found, *_others: found  # however slow this machine is
print("ready", flush=True)
sys.stdin.readline()
{
    "half written": lambda: after(blobs, "_written"),
    "not in its folder": lambda: before(blobs, "_sync_folder"),
    "synced": lambda: after(blobs.Blobs, "together"),
    "in the transaction": lambda: after(blobs.Blobs, "together", at_commit),
    "ended": lambda: before(blobs.Blobs, "delete_files"),
    "one body deleted": lambda: after(blobs.os, "unlink"),
}[where]()
works.step()
print("alive", flush=True)
"""
ENDED = ["ended", "one body deleted"]
BEGUN = ["half written", "not in its folder", "synced", "in the transaction"]


@pytest.mark.parametrize("where", BEGUN + ENDED)
def test_a_worker_that_is_killed_between_two_steps(world: World, where: str):
    """Every job of the group is answered once, and right; nothing that was written for nobody stays."""
    world.restart(lease_seconds=0.5)
    m, key = made(), world.ready(made().keys[0])
    (world.folder / "toy.crn").write_bytes(m.servable.data)
    first = world.submit(m.sent[0], key).json()["job"]
    world.restart()  # its own worker ends: jobs would wait for who holds their keys
    command = [sys.executable, "-c", DYING, world.settings.to_json(), str(world.folder / "toy.crn"), where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        group = [world.submit(m.sent[0], key).json()["job"] for _ in range(5)]
        worker.stdin.write("go\n")
        worker.stdin.flush()
        assert worker.wait(60) == -signal.SIGKILL, worker.stdout.read()
    states = [world.ask("GET", f"/jobs/{job}").json()["state"] for job in group]
    assert states == ["done" if where in ENDED else "running"] * 5
    threading.Event().wait(0.6)
    world.work()
    for job in [first, *group]:
        assert world.ask("GET", f"/jobs/{job}/result").content == m.answer
        assert world.ask("GET", f"/jobs/{job}").json()["attempts"] == (
            1 if job == first or where in ENDED else 2
        )
    world.service.jobs.results.sweep()
    assert _files(world, "inputs") == []
    with world.service.database.reading() as connection:
        rows = [Stored.of(row) for row in connection.execute(sql.select(jobs))]
    named = {stored.blob for stored in rows if stored is not None}
    assert named == {f"{f}/{name}" for f in ("packs", "results") for name in _files(world, f)}


def test_a_database_from_before_packs(tmp_path: Path):
    """What is there is read as it was, and new columns come once."""
    settings = Settings(data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0)
    database = Database(settings.database_url)
    with database.writing() as connection:
        connection.exec_driver_sql("DROP INDEX jobs_of_pack")
        for name in ("result_pack", "result_offset", "put_off"):
            connection.exec_driver_sql(f"ALTER TABLE jobs DROP COLUMN {name}")
        connection.exec_driver_sql("ALTER TABLE keys DROP COLUMN put_off")
        connection.execute(sql.delete(schema_version).where(schema_version.c.number > 2))
        connection.exec_driver_sql(
            "INSERT INTO jobs (id, tenant, program, key, idempotency, state, input_bytes, input_sha256,"
            " attempts, created, changed, result_bytes, result_sha256) VALUES"
            f" ('{'a' * 32}', 't', 'p', 'k', 'i', 'done', 1, 'h', 1, 0, 0, 5, '{'b' * 64}')"
        )
    database.close()
    for _ in range(2):
        found = Database(settings.database_url)
        with found.reading() as connection:
            (row,) = connection.execute(sql.select(jobs))
        found.close()
    stored = Stored.of(row)
    assert stored is not None and stored.blob == f"results/{'a' * 32}-{'b' * 64}"
