"""A worker that stops without dying, with the lock of the database in its hands."""

from __future__ import annotations

import os
import time
from importlib import import_module

import sqlalchemy as sql
from service_world import World, made, quiet

from crenel import ckks, client
from crenel.serve import local, running
from crenel.serve.database import jobs
from crenel.serve.functions import Function
from crenel.serve.settings import Settings

PROGRAM = """
import os, pathlib, signal, sqlite3

FOLDER = pathlib.Path(__file__).parent


def stops(evaluator, x):
    if not (FOLDER / "once").exists():
        (FOLDER / "once").touch()
        held = sqlite3.connect(FOLDER / "data" / "service.sqlite", isolation_level=None)
        held.execute("BEGIN IMMEDIATE")
        os.kill(os.getpid(), signal.SIGSTOP)
    return x
"""
"""The first of its runs takes the database's lock and then does nothing any more."""


def test_a_worker_that_is_stopped_with_the_lock_is_killed(tmp_path, monkeypatch):
    """Who writes meanwhile waits, and is answered; what the worker ran begins again."""
    quiet()
    (tmp_path / "stopping_program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(local, "SILENT_S", 2.0)
    params = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
    function = Function("stops", params, import_module("stopping_program").stops)
    settings = Settings(data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0, lease_seconds=1.0)
    context = ckks.Context(params, device="cpu")
    user = context.keygen()
    user.evaluation_keys().save(tmp_path / "keys")
    with running([function], settings, device="cpu") as service:
        (first,) = service.workers.pids
        connected = client.connect(service.url, service.token or "")
        key = connected.upload(tmp_path / "keys", function.program)
        headers = {
            "Crenel-Program": function.program, "Crenel-Key": key, "Content-Type": "application/octet-stream",
        }  # fmt: skip
        data = user.encrypt([0.5], slots=8).to_bytes()

        def submit(name: str) -> str:
            answer = connected.request(
                "POST", "/jobs", content=data, headers=headers | {"Idempotency-Key": name}, tries=1
            )
            return str(answer.json()["job"])

        sent = [submit("one")]
        end = time.monotonic() + 30
        while not (tmp_path / "once").exists():
            assert time.monotonic() < end, "the job did not begin"
            time.sleep(0.02)
        sent.append(submit("two"))  # one request: it waits for the lock and no error comes of it
        for job in sent:
            found = connected.request("GET", f"/jobs/{job}", params={"wait": 30}).json()
            assert found["state"] == "done", found
        assert service.workers.pids != [first]


def test_an_idle_worker_never_has_the_lock(world: World):
    """It asks by reading; what it looks for is found all the same."""
    m, worker = made(), world.worker()
    key = world.ready(m.keys[0])
    asked: list[bool] = []
    honest = worker._database.writing

    def writing(lasting: bool = True):
        asked.append(lasting)
        return honest(lasting)

    worker._database.writing = writing  # type: ignore[method-assign]
    assert not worker.step() and asked == []
    job = world.submit(m.sent[0], key).json()["job"]
    world.service.jobs.claim("dead", set(), set())
    assert not worker.step() and asked == []  # another's, whose lease holds
    with world.service.database.writing() as connection:
        connection.execute(sql.update(jobs).values(lease=time.time() - 1))
    assert worker.step() and asked
    assert world.ask("GET", f"/jobs/{job}").json()["state"] == "done"
