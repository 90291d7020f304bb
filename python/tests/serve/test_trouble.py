"""What fails on the service's side, device, memory, storage, is nobody's fault whose keys or jobs met it."""

from __future__ import annotations

import errno
import os
import threading
import time
from importlib import import_module

import numpy as np
import pytest
import sqlalchemy as sql
from faulty import Faults, honest, later, raising
from service_world import World, made, problem, quiet, sha

from crenel import ckks, client
from crenel.errors import DeviceError, FileError, OutOfMemoryError, StorageError, UnavailableError
from crenel.serve import patience, running
from crenel.serve.blobs import Blobs
from crenel.serve.database import keys
from crenel.serve.functions import Function
from crenel.serve.health import Health
from crenel.serve.settings import Settings

ILLEGAL = "CUDA: cudaStreamSynchronize: cudaErrorIllegalAddress"
TROUBLES = [
    DeviceError(ILLEGAL), OutOfMemoryError("no memory"), MemoryError(), StorageError("the disk is full"),
    UnavailableError("the store does not answer"), FileError("cannot be read", {"errno": errno.EIO}),
    OSError(errno.EMFILE, "Too many open files"),
]  # fmt: skip


def _row(world: World, key: str):
    with world.service.database.reading() as connection:
        return connection.execute(sql.select(keys).where(keys.c.key == key)).one()


@pytest.mark.parametrize("error", TROUBLES, ids=lambda e: type(e).__name__)
def test_keys_that_could_not_be_checked_wait(world: World, error: BaseException):
    """However often, and the client sees why; once the trouble is over they are ready."""
    world.restart(device_errors=1000)
    faults = Faults(world.worker())
    key = world.upload(made().keys[0])
    faults.prepare = raising(error)
    pauses = []
    for _ in range(world.settings.attempts + 3):
        assert world.worker().step()
        pauses.append(_row(world, key).lease - time.time())
        assert not world.worker().step()  # not before the pause is over
        found = world.ask("GET", f"/keys/{key}").json()
        assert (found["state"], found["error"]) == ("received", None), found
        assert found["waits"]["retry"] and found["waits"]["status"] >= 500
        assert str(world.folder) not in str(found)
        later(world)
    expected = [min(2.0**k, patience.LONGEST_S) for k in range(len(pauses))]
    assert all(e - 1 < p <= e for p, e in zip(pauses, expected, strict=True)), pauses
    if not isinstance(error, OSError | MemoryError):
        assert found["waits"]["code"] == type(error).__name__
    faults.prepare = honest
    later(world)
    world.work()
    found = world.ask("GET", f"/keys/{key}").json()
    assert (found["state"], found["waits"]) == ("ready", None)


def test_keys_that_are_there_no_more_are_not_waited_for(world: World):
    """The file is deleted while its check waits."""
    faults = Faults(world.worker())
    key = world.upload(made().keys[0])
    faults.prepare = raising(DeviceError(ILLEGAL))
    assert world.worker().step()
    assert world.ask("DELETE", f"/keys/{key}").status_code == 204
    later(world)
    assert not world.worker().step()
    problem(world.ask("GET", f"/keys/{key}"), 404, "NotFoundError")


def test_keys_that_end_workers_are_refused_whatever_else_was_wrong(world: World):
    """What was put off does not count, what ended a worker does."""
    world.restart(attempts=3)
    faults = Faults(world.worker())
    key = world.upload(made().keys[0])
    faults.prepare = raising(OutOfMemoryError("no memory"))
    for k in range(5):
        if k % 2:
            assert world.worker().step()
        else:
            assert world.service.keys.to_check("dead", -1.0) is not None
        later(world)
    assert world.ask("GET", f"/keys/{key}").json()["state"] == "received"
    assert world.service.keys.to_check("dead", -1.0) is None
    found = world.ask("GET", f"/keys/{key}").json()
    assert (found["state"], found["waits"]) == ("refused", None)
    assert "ended workers" in found["error"]["detail"]


def test_a_mistake_of_ours_is_tried_again_and_then_ends(world: World):
    faults = Faults(world.worker())
    key = world.upload(made().keys[0])
    faults.prepare = raising(RuntimeError("ours"))
    for _ in range(world.settings.attempts):
        assert world.worker().step()
        assert world.ask("GET", f"/keys/{key}").json()["waits"]["code"] == "CrenelError"
        later(world)
    world.work()
    assert faults.prepares == world.settings.attempts
    assert world.ask("GET", f"/keys/{key}").json()["state"] == "refused"


def _two_tenants(world: World) -> tuple[str, Faults]:
    """Alice's and Bob's keys are resident."""
    faults = Faults(world.worker())
    key = world.ready(made().keys[0])
    world.ready(made().keys[1], "bob")
    assert len(world.worker().tiers.keys) == 2
    return key, faults


@pytest.mark.parametrize("error", [OutOfMemoryError("no memory"), MemoryError()], ids=["device", "host"])
def test_out_of_memory_while_computing(world: World, error: MemoryError):
    """Keys that nobody uses go, and it is tried once more."""
    key, faults = _two_tenants(world)
    faults.run = raising(error, 1)
    job = world.submit(made().sent[0], key).json()["job"]
    world.work()
    assert world.ask("GET", f"/jobs/{job}/result").content == made().answer
    assert faults.runs == 2 and world.worker().tiers.keys == {key}
    assert world.worker().tiers.host.use.entries == 0


@pytest.mark.parametrize("error", [OutOfMemoryError("no memory"), MemoryError()], ids=["device", "host"])
def test_out_of_memory_again(world: World, error: MemoryError):
    """Typed, to be tried again by who sent it; the worker goes on, and is not taken for broken."""
    world.restart(device_errors=1)
    key, faults = _two_tenants(world)
    faults.run = raising(error)
    job = world.submit(made().sent[0], key).json()["job"]
    world.work()
    found = world.ask("GET", f"/jobs/{job}").json()
    assert (found["state"], found["attempts"]) == ("failed", 1)
    assert (found["error"]["code"], found["error"]["retry"]) == ("OutOfMemoryError", True)
    assert faults.runs == 2
    assert world.worker().health.well and not world.worker()._stop.is_set()
    faults.run = honest
    good = world.submit(made().sent[0], key).json()["job"]
    world.work()
    assert world.ask("GET", f"/jobs/{good}/result").content == made().answer


def test_a_device_that_fails_again_and_again(world: World):
    """The worker ends after so many, nobody is told to be ready, and the job is another worker's."""
    world.restart(device_errors=3, attempts=5)
    worker = world.worker()
    key, faults = world.ready(made().keys[0]), Faults(worker)
    job = world.submit(made().sent[0], key).json()["job"]
    worker.tiers.shrink()  # keys are prepared anew, by what fails as it is told
    faults.run = raising(DeviceError(ILLEGAL))
    for k in range(3):
        assert not worker._stop.is_set() and worker.health.failures == k
        assert worker.step()
        assert world.ask("GET", f"/jobs/{job}").json()["state"] == "queued"
        worker._beat()
        ready = world.http.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["workers"]) == (503, "the devices of all fail")
    assert worker._stop.is_set() and worker.health.broken
    worker.run()  # nothing more: it ends, and says so
    assert world.http.get("/readyz").json()["checks"]["workers"] == "none lives"
    world._worker = None
    world.work()
    found = world.ask("GET", f"/jobs/{job}").json()
    assert (found["state"], found["attempts"]) == ("done", 4)
    assert world.ask("GET", f"/jobs/{job}/result").content == made().answer
    world.worker()._beat()
    assert world.http.get("/readyz").status_code == 200


def test_a_job_ends_with_its_last_attempt(world: World):
    world.restart(device_errors=100, attempts=2)
    key, faults = world.ready(made().keys[0]), Faults(world.worker())
    job = world.submit(made().sent[0], key).json()["job"]
    world.worker().tiers.shrink()
    faults.run = raising(DeviceError(ILLEGAL))
    world.work()
    found = world.ask("GET", f"/jobs/{job}").json()
    assert (found["state"], found["attempts"], found["error"]["code"]) == ("failed", 2, "DeviceError")
    assert found["error"]["retry"] and faults.runs == 2


def test_failures_are_counted_in_a_row(world: World):
    """Between two of them something was computed: the device is well."""
    world.restart(device_errors=2)
    key, faults = world.ready(made().keys[0]), Faults(world.worker())
    world.worker().tiers.shrink()
    for _ in range(3):
        faults.run = raising(DeviceError(ILLEGAL), 1)
        world.submit(made().sent[0], key)
        world.work()
        assert world.worker().health.failures == 0 and world.worker().health.well
    assert not world.worker()._stop.is_set()
    assert {j["state"] for j in world.ask("GET", "/jobs").json()["jobs"]} == {"done"}


def test_keys_end_a_broken_worker_too(world: World):
    """Checks alone: no job is there that could."""
    world.restart(device_errors=2)
    faults = Faults(world.worker())
    key = world.upload(made().keys[0])
    faults.prepare = raising(DeviceError(ILLEGAL))
    for _ in range(2):
        later(world)
        assert world.worker().step()
    assert world.worker().health.broken and world.worker()._stop.is_set()
    assert world.ask("GET", f"/keys/{key}").json()["state"] == "received"


class _Context:
    """A device's answers to a probe."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)

    def encode(self, values: np.ndarray, slots: int) -> np.ndarray:
        return values

    def decode(self, values: np.ndarray) -> np.ndarray:
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return values + answer


def test_a_probe_tells_a_broken_device_from_a_hard_job(world: World):
    health = Health(3)
    health.probe(_Context())  # type: ignore[arg-type]  # a device that is well is not asked
    health.failed()
    health.probe(world.worker()._loaded[made().program.fingerprint].context)
    assert health.well and health.failures == 1  # it computes; what failed may be too large for it
    health.failed()
    health.probe(_Context(OutOfMemoryError("full")))  # type: ignore[arg-type]
    assert (health.well, health.failures) == (False, 2)
    health.probe(_Context(1.0))  # type: ignore[arg-type]  # wrong numbers
    assert health.broken
    health.worked()
    assert health.well and not health.broken
    health.doubt()  # of what the driver says in a heartbeat
    for k in range(3):
        assert not health.broken
        health.probe(_Context(DeviceError(ILLEGAL)))  # type: ignore[arg-type]
        assert health.failures == k + 1
    assert health.broken


class _Device:
    """A device of which the driver says nothing any more."""

    def __init__(self, real) -> None:
        self.pools = real.pools

    def memory(self) -> None:
        raise DeviceError(ILLEGAL)

    def trim(self) -> None:
        raise DeviceError(ILLEGAL)


def _lost(world: World) -> Faults:
    """The worker's device fails from now on, whatever it is asked."""
    faults = Faults(world.worker())
    context = _Context(*[DeviceError(ILLEGAL)] * 9)
    context.device = _Device(world.worker()._loaded[made().program.fingerprint].context.device)  # type: ignore[attr-defined]
    faults.context = context
    return faults


def test_a_device_that_breaks_while_idle(world: World):
    """Found by heartbeats, without a job."""
    world.restart(lease_seconds=0.2, device_errors=2)
    worker = world.worker()
    _lost(world)
    begun = time.monotonic()
    worker.run()
    assert worker.health.broken and time.monotonic() - begun < 20
    assert world.http.get("/readyz").json()["checks"]["workers"] == "none lives"
    world._worker = None


def test_a_call_that_never_returns_does_not_keep_a_broken_worker(world: World, monkeypatch):
    """A lane is within the device for ever; the worker ends all the same, and its job is another's."""
    monkeypatch.setattr("crenel.serve.worker.GRACE_S", 0.5)
    world.restart(lease_seconds=0.5, device_errors=2)
    worker, free, within = world.worker(), threading.Event(), threading.Event()
    key, faults = world.ready(made().keys[0]), _lost(world)
    worker.tiers.shrink()
    job = world.submit(made().sent[0], key).json()["job"]

    def hangs() -> None:
        within.set()
        assert free.wait(60)

    faults.run = hangs
    try:
        begun = time.monotonic()
        worker.run()
        assert worker.health.broken and time.monotonic() - begun < 30 and within.is_set()
        assert world.http.get("/readyz").json()["checks"]["workers"] == "none lives"
        assert world.ask("GET", f"/jobs/{job}").json()["state"] == "running"
        world._worker = None
        time.sleep(0.6)  # its lease
        world.work()
        assert world.ask("GET", f"/jobs/{job}/result").content == made().answer
    finally:
        free.set()
        for thread in threading.enumerate():
            if thread.name.startswith("lane-"):
                thread.join(20)


def test_a_worker_that_is_stopped_counts_against_no_job(world: World):
    """However often workers are replaced while it runs."""
    world.restart(attempts=2)
    key = world.ready(made().keys[0])
    job = world.submit(made().sent[0], key).json()["job"]
    for _ in range(4):
        worker = world.worker()
        Faults(worker).run = worker.stop  # which the next step of the program finds
        worker.tiers.shrink()
        worker.step()
        assert world.ask("GET", f"/jobs/{job}").json()["state"] == "queued"
        worker.close()
        world._worker = None
    world.work()
    assert world.ask("GET", f"/jobs/{job}/result").content == made().answer


PROGRAM = """
import os, pathlib

from crenel.errors import DeviceError

FOLDER = pathlib.Path(__file__).parent


def breaks(evaluator, x):
    first = FOLDER / "first"
    if not first.exists():
        first.write_text(str(os.getpid()))
    with open(FOLDER / "runs", "a") as runs:
        runs.write(f"{os.getpid()}\\n")
    if first.read_text() == str(os.getpid()):
        raise DeviceError("CUDA: cudaStreamSynchronize: cudaErrorIllegalAddress")
    return x
"""
"""In the process that runs it first every run fails, as after an illegal address."""


def test_a_worker_whose_device_is_broken_is_replaced(tmp_path, monkeypatch):
    """The engine `local` begins another one; the job that ended the worker is answered all the same."""
    quiet()
    (tmp_path / "breaking_program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    params = ckks.preset("toy-leveled-n13-s28", allow_insecure=True)
    function = Function("breaks", params, import_module("breaking_program").breaks)
    settings = Settings(
        data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0, attempts=4, device_errors=3
    )
    user = ckks.Context(params, device="cpu").keygen()
    user.evaluation_keys().save(tmp_path / "keys")
    with running([function], settings, device="cpu") as service:
        (first,) = service.workers.pids
        connected = client.connect(service.url, service.token or "")
        key = connected.upload(tmp_path / "keys", function.program)
        headers = {
            "Crenel-Program": function.program, "Crenel-Key": key, "Idempotency-Key": "one",
            "Content-Type": "application/octet-stream",
        }  # fmt: skip
        data = user.encrypt([0.5], slots=8).to_bytes()
        job = connected.request("POST", "/jobs", content=data, headers=headers).json()["job"]
        found = connected.request("GET", f"/jobs/{job}", params={"wait": 60}).json()
        runs = (tmp_path / "runs").read_text().split()
        broken, last = runs[:-1], runs[-1]
        # Three, and one more where the other lane took the job before the worker had ended: that attempt does
        # not count against the job, of which the fourth is the last that it has.
        assert found["state"] == "done" and 4 <= found["attempts"] <= 5, found
        assert set(broken) == {str(first)} and 3 <= len(broken) <= 4 and last != str(first)
        assert service.workers.pids == [int(last)]
        assert sha(connected.request("GET", f"/jobs/{job}/result").content) == found["result"]["sha256"]


def test_one_bad_file_does_not_keep_others_waiting(world: World, monkeypatch):
    """An input that the disk does not give back waits, longer every time; what came after it is answered."""
    m, key = made(), world.ready(made().keys[0])
    bad, good = (world.submit(m.sent[0], key).json()["job"] for _ in range(2))
    read = Blobs.read

    def reads(self: Blobs, name: str) -> bytes:
        if name.endswith(bad):
            raise StorageError("storage failed: Input/output error")
        return read(self, name)

    monkeypatch.setattr(Blobs, "read", reads)
    with pytest.raises(StorageError):
        world.worker().step()
    later(world)
    with pytest.raises(StorageError):
        world.worker().step()
    world.work()
    assert world.ask("GET", f"/jobs/{good}").json()["state"] == "done"
    assert world.ask("GET", f"/jobs/{bad}").json()["state"] == "queued"
    monkeypatch.setattr(Blobs, "read", read)
    later(world)
    world.work()
    assert world.ask("GET", f"/jobs/{bad}/result").content == m.answer


def test_what_waits_for_longer_than_results_live_ends(world: World, monkeypatch):
    """With the error, as one that may be tried again."""
    world.restart(attempts=2, result_ttl=1.0)
    key = world.ready(made().keys[0])
    job = world.submit(made().sent[0], key).json()["job"]

    def fails(self: Blobs, name: str) -> bytes:
        raise StorageError("storage failed: Input/output error")

    monkeypatch.setattr(Blobs, "read", fails)
    for k in range(3):
        if k == 2:
            time.sleep(1.1)
        assert world.ask("GET", f"/jobs/{job}").json()["state"] == "queued"
        with pytest.raises(StorageError):
            world.worker().step()
        later(world)
    found = world.ask("GET", f"/jobs/{job}").json()
    assert found["state"] == "failed" and found["error"]["code"] == "StorageError" and found["error"]["retry"]


def test_lanes_do_not_burn_attempts_in_a_moment(world: World, monkeypatch):
    """Real lanes, and a storage that fails for some seconds: the job is begun a few times, then answered."""
    m, key = made(), world.ready(made().keys[0])
    read, fails = Blobs.read, [True]

    def reads(self: Blobs, name: str) -> bytes:
        if fails[0]:
            raise StorageError("storage failed: Input/output error")
        return read(self, name)

    monkeypatch.setattr(Blobs, "read", reads)
    worker = world.worker()
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        job = world.submit(m.sent[0], key).json()["job"]
        time.sleep(2.5)
        found = world.ask("GET", f"/jobs/{job}").json()
        assert found["state"] == "queued" and 1 <= found["attempts"] <= 3, found
        fails[0] = False
        found = world.ask("GET", f"/jobs/{job}", params={"wait": 20}).json()
        assert found["state"] == "done", found
    finally:
        worker.stop()
        thread.join()
        world._worker = None
