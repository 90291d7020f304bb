"""Jobs: literal requests and answers, and the queue behind them."""

from __future__ import annotations

import base64
import hashlib
import json
import threading

import numpy as np
import pytest
from service_world import World, made, problem, sha

from crenel.serve.jobs import input_of


def test_submit_run_fetch(world: World):
    m, key = made(), world.ready(made().keys[0])
    answer = world.submit(m.sent[0], key)
    job = answer.json()
    assert answer.status_code == 202 and answer.headers["location"] == f"/jobs/{job['job']}"
    assert (job["state"], job["attempts"], job["position"], job["result"], job["error"]) == (
        "queued",
        0,
        0,
        None,
        None,
    )
    assert job["input"] == {"bytes": len(m.sent[0]), "sha256": sha(m.sent[0])}
    early = problem(world.ask("GET", f"/jobs/{job['job']}/result"), 409, "StateError")
    assert early["retry"] and early["fields"]["state"] == "queued"
    world.work()
    done = world.ask("GET", f"/jobs/{job['job']}").json()
    assert (done["state"], done["attempts"], done["result"]["sha256"]) == ("done", 1, sha(m.answer))
    assert all(done["seconds"][stage] >= 0 for stage in ("wait", "keys", "run"))
    result = world.ask("GET", f"/jobs/{job['job']}/result")
    assert result.content == m.answer and result.headers["etag"] == f'"{sha(m.answer)}"'
    assert (
        result.headers["content-digest"]
        == f"sha-256=:{base64.b64encode(hashlib.sha256(m.answer).digest()).decode()}:"
    )
    found = m.clients[0].decrypt(m.clients[0].tensor_from_bytes(result.content), m.spec)
    assert np.abs(found - m.program.simulate(m.samples[:2], noise=False)).max() < 2**-10


def test_idempotency(world: World):
    m, key = made(), world.ready(made().keys[0])
    first = world.submit(m.sent[0], key, **{"Idempotency-Key": "once"})
    again = world.submit(m.sent[0], key, **{"Idempotency-Key": "once"})
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["job"] == again.json()["job"]
    other = m.clients[0].encrypt(m.samples[2:4], m.spec).to_bytes()
    problem(world.submit(other, key, **{"Idempotency-Key": "once"}), 409, "StateError")
    world.work()
    assert world.submit(m.sent[0], key, **{"Idempotency-Key": "once"}).json()["state"] == "done"
    assert len(world.ask("GET", "/jobs").json()["jobs"]) == 1
    keys_of_bob = world.ready(m.keys[1], "bob")
    assert world.submit(m.sent[1], keys_of_bob, "bob", **{"Idempotency-Key": "once"}).status_code == 202


def test_many_at_once_with_one_idempotency_key_are_one(world: World):
    m, key = made(), world.ready(made().keys[0])
    found = []

    def send():
        found.append(world.submit(m.sent[0], key, **{"Idempotency-Key": "race"}))

    threads = [threading.Thread(target=send) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(a.status_code for a in found) == [200] * 7 + [202]
    assert len({a.json()["job"] for a in found}) == 1


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Crenel-Program": "0" * 64}, 404, "NotFoundError"),
        ({"Crenel-Program": "nonsense"}, 400, "ParameterError"),
        ({"Crenel-Key": "0" * 64}, 409, "KeysNeededError"),
        ({"Crenel-Key": "../../etc/passwd"}, 400, "ParameterError"),
        ({"Idempotency-Key": ""}, 400, "ParameterError"),
        ({"Idempotency-Key": "x" * 129}, 400, "ParameterError"),
        ({"Idempotency-Key": "a b"}, 400, "ParameterError"),
        ({"Content-Type": "application/json"}, 415, "ParameterError"),
        ({"Content-Digest": "sha-256=:AAAA:"}, 422, "SerializationError"),
        ({"Crenel-Protocol": "2"}, 406, "ParameterError"),
    ],
)
def test_submissions_that_are_refused(world: World, headers, status, code):
    key = world.ready(made().keys[0])
    problem(world.submit(made().sent[0], key, **headers), status, code)
    assert world.ask("GET", "/jobs").json() == {"jobs": []}
    assert not list((world.folder / "data").rglob("incoming/*"))


def test_bodies_that_mean_nothing_fail_with_their_error(world: World):
    m, key = made(), world.ready(made().keys[0])
    for body, code in (
        (b"", "SerializationError"),
        (m.sent[0][:-1], "SerializationError"),
        (m.answer, "StateError"),  # a result where an input is expected
        (m.sent[1], "StateError"),  # under another secret key
        (m.spec.to_bytes(), "StateError"),
    ):
        job = world.submit(body, key).json()["job"]
        world.work()
        found = world.ask("GET", f"/jobs/{job}").json()
        assert (found["state"], found["error"]["code"], found["error"]["status"]) == ("failed", code, 422)
        problem(world.ask("GET", f"/jobs/{job}/result"), 422, code)
    good = world.submit(m.sent[0], key).json()["job"]
    world.work()
    assert world.ask("GET", f"/jobs/{good}/result").content == m.answer  # the worker is none the worse


def test_an_input_must_fit_its_memory(world: World):
    world.restart(input_memory=1000)
    key = world.ready(made().keys[0])
    job = world.submit(made().sent[0], key).json()["job"]
    world.work()
    error = world.ask("GET", f"/jobs/{job}").json()["error"]
    assert error["code"] == "SerializationError" and error["fields"]["max_bytes"] <= 1000


def test_limits(world: World):
    world.restart(jobs=2, queue=3, input_bytes=len(made().sent[0]))
    m, key, other = made(), world.ready(made().keys[0]), world.ready(made().keys[1], "bob")
    assert problem(world.submit(m.sent[0] + b"x", key), 413, "LimitError")["retry"] is False
    assert [world.submit(m.sent[0], key).status_code for _ in range(2)] == [202, 202]
    problem(world.submit(m.sent[0], key), 429, "LimitError")
    assert world.submit(m.sent[1], other, "bob").status_code == 202
    problem(world.submit(m.sent[1], other, "bob"), 503, "UnavailableError")
    world.work()
    assert world.submit(m.sent[0], key).status_code == 202


def test_rate(world: World):
    world.restart(requests_per_second=0.01, burst=3)
    assert [world.ask("GET", "/jobs").status_code for _ in range(3)] == [200] * 3
    refused = problem(world.ask("GET", "/jobs"), 429, "LimitError")
    assert int(world.ask("GET", "/jobs").headers["retry-after"]) > 30 and refused["retry"]
    assert world.ask("GET", "/jobs", "bob").status_code == 200


def test_cancel_and_delete(world: World):
    m, key = made(), world.ready(made().keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    cancelled = world.ask("POST", f"/jobs/{job}/cancel").json()
    assert (cancelled["state"], cancelled["error"]["code"]) == ("cancelled", "Cancelled")
    assert not world.service.blobs.exists(input_of(job))
    problem(world.ask("GET", f"/jobs/{job}/result"), 409, "Cancelled")
    assert world.ask("POST", f"/jobs/{job}/cancel").json()["state"] == "cancelled"
    done = world.submit(m.sent[0], key).json()["job"]
    world.work()
    assert world.ask("POST", f"/jobs/{done}/cancel").json()["state"] == "done"
    for name in (job, done):
        assert world.ask("DELETE", f"/jobs/{name}").status_code == 204
        problem(world.ask("GET", f"/jobs/{name}"), 404, "NotFoundError")
    assert not list((world.folder / "data" / "results").rglob("*")) and not list(
        (world.folder / "data" / "inputs").iterdir()
    )


def test_a_running_job_is_stopped(world: World, monkeypatch):
    """Its worker notices between two steps, and goes on with others."""
    m, key = made(), world.ready(made().keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    worker = world.worker()
    honest, steps = worker._checkpoint, []

    def checkpoint() -> None:
        if not steps:
            world.ask("POST", f"/jobs/{job}/cancel")
            [held.lost.set() for held in worker._held.values()]  # what the next heartbeat finds
        steps.append(1)
        honest()

    monkeypatch.setattr(worker, "_checkpoint", checkpoint)
    world.work()
    assert len(steps) == 1 and world.ask("GET", f"/jobs/{job}").json()["state"] == "cancelled"
    assert worker._jobs.claim(worker.id, set(), set()) == []
    assert not worker._jobs.extend(_gone(job), worker.id)


def _gone(job: str):
    from crenel.serve.jobs import Claimed

    return Claimed(job, "", "", "", 1, 0.0)


def test_events(world: World):
    m, key = made(), world.ready(made().keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    seen = []
    working = threading.Timer(0.3, world.work)
    working.start()
    headers = {"Authorization": f"Bearer {world.tokens['alice']}"}
    with world.http.stream("GET", f"/jobs/{job}/events", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line[6:])["state"])
    working.join()
    # Each state once and in its order; on a busy machine work may begin before anybody listens.
    assert seen[-1] == "done" and seen == [state for state in ("queued", "running", "done") if state in seen]


def test_long_poll(world: World):
    m, key = made(), world.ready(made().keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    assert world.ask("GET", f"/jobs/{job}", params={"wait": 0.2}).json()["state"] == "queued"
    working = threading.Timer(0.2, world.work)
    working.start()
    assert world.ask("GET", f"/jobs/{job}", params={"wait": 50}).json()["state"] == "done"
    working.join()
    for bad in ("-1", "nan", "inf", "x", "1e9"):
        problem(world.ask("GET", f"/jobs/{job}", params={"wait": bad}), 400, "ParameterError")


def test_results_end(world: World, monkeypatch):
    from crenel.serve import jobs as module

    key = world.ready(made().keys[0])
    job = world.submit(made().sent[0], key).json()["job"]
    world.work()
    later = module.time.time() + world.settings.result_ttl + 1
    monkeypatch.setattr(module.time, "time", lambda: later)
    assert world.service.jobs.expire() == 1
    problem(world.ask("GET", f"/jobs/{job}"), 404, "NotFoundError")
    assert not list((world.folder / "data" / "results").rglob("*"))


def test_a_worker_takes_first_what_it_has_keys_for(world: World):
    """And after a while what another one has keys for."""
    m = made()
    alice, bob = world.ready(m.keys[0]), world.ready(m.keys[1], "bob")
    first = world.submit(m.sent[0], alice).json()["job"]
    second = world.submit(m.sent[1], bob, "bob").json()["job"]
    jobs = world.service.jobs
    assert [c.id for c in jobs.claim("w1", {bob}, {alice})] == [second]
    assert jobs.claim("w1", {bob}, {alice}) == []  # the other worker's, for now
    row = jobs._database
    import sqlalchemy as sql

    from crenel.serve.database import jobs as table

    with row.writing() as connection:
        connection.execute(sql.update(table).values(changed=0.0))
    assert [c.id for c in jobs.claim("w1", {bob}, {alice})] == [first]
