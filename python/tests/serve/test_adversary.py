"""What one tenant, or a stranger, can do to the others and to the service: each was possible once."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from service_world import TUS, World, made, problem, quiet, sha

from crenel import ckks
from crenel.errors import ParameterError, StateError
from crenel.serve import hosting
from crenel.serve.functions import Function
from crenel.serve.programs import Programs
from crenel.serve.settings import Settings
from crenel.serve.worker import Worker

DATA = bytes(range(200))
WEB = Path(__file__).parents[3] / "web"


def test_one_key_file_for_two_programs(tmp_path):
    """What is resident for one program is not taken for another, nor for a check of another."""
    quiet()
    params = ckks.preset("toy-leveled-n13-s28", allow_insecure=True)
    same = Function("same", params, lambda ev, x: x)
    turned = Function("turned", params, lambda ev, x: ev.rotate(x, 1), rotations=(1,))
    settings = Settings(data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0)
    context = ckks.Context(params, device="cpu")
    user = context.keygen()
    file = user.evaluation_keys(rotations=[1]).to_bytes()
    worker = Worker(settings, Programs([same, turned]), "cpu")
    worker._blobs.write(f"keys/{sha(file)}", [file])
    sent = user.encrypt([1.0, 2.0, 3.0, 4.0], slots=4).to_bytes()
    answers = []
    for program in (same, turned):
        with worker.tiers.prepared(program.program, sha(file)) as prepared:
            answers.append(prepared.run(sent, lambda: None, nullcontext))
    found = [user.decrypt(context.ciphertext_from_bytes(a)) for a in answers]
    assert [[round(float(v.real)) for v in f] for f in found] == [[1, 2, 3, 4], [2, 3, 4, 1]]
    assert worker.tiers.keys == {sha(file)}
    worker.close()


def test_a_check_for_one_program_says_nothing_of_another(world: World):
    """The file was sent again, for another program, while a worker checked it for the first."""
    import sqlalchemy as sql

    from crenel.serve.database import keys

    key = world.upload(DATA)
    found = world.service.keys.to_check("w1", 10.0)
    with world.service.database.writing() as connection:
        connection.execute(sql.update(keys).values(program="1" * 64))
    world.service.keys.checked(found, None)
    assert world.ask("GET", f"/keys/{key}").json()["state"] == "received"


def test_chunks_that_are_not_taken_leave_nothing(world: World):
    """Else they would lie on the disk beside the tenant's limit of bytes."""
    uploads, tenant = world.service.uploads, world.service.auth.tenant(f"Bearer {world.tokens['alice']}")
    place = world.begin(DATA)
    for _ in range(3):
        assert world.patch(place, 0, b"").status_code == 204
    found = uploads.expect(tenant, place[-32:], 0)
    assert world.patch(place, 0, DATA[:50]).status_code == 204
    late = uploads.blob_of(found)
    world.service.blobs.write(late, [DATA])
    with pytest.raises(StateError):
        uploads.append(tenant, found, late, 200)
    folder = world.folder / "data" / "uploads" / place[-32:]
    assert [f.stat().st_size for f in folder.iterdir()] == [50]


def test_a_file_is_joined_once_however_many_ask(world: World, monkeypatch):
    """A join copies the whole file: requests that come meanwhile must not each begin another."""
    service, place = world.service, world.begin(DATA)
    honest, joins = service.blobs.join, []

    def slow(names, target):
        joins.append(target)
        time.sleep(0.3)
        return honest(names, target)

    monkeypatch.setattr(service.blobs, "join", slow)
    with monkeypatch.context() as patched:
        patched.setattr(
            type(service.uploads), "finish", lambda self, tenant, upload: self.get(tenant, upload)
        )
        world.patch(place, 0, DATA)
    answers = []

    def look():
        answers.append(world.ask("HEAD", place, headers=TUS))

    threads = [threading.Thread(target=look) for _ in range(5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert [(a.status_code, a.headers.get("crenel-key")) for a in answers] == [(200, sha(DATA))] * 5
    assert len(joins) == 1


def test_a_long_join_is_not_waited_for_without_end(world: World, monkeypatch):
    from crenel.serve import uploads as module

    monkeypatch.setattr(module, "JOIN_S", 0.05)
    place = world.begin(DATA)
    with monkeypatch.context() as patched:
        patched.setattr(module.Uploads, "finish", lambda self, tenant, upload: self.get(tenant, upload))
        world.patch(place, 0, DATA)
    world.service.uploads._joining.add(place[-32:])
    answer = world.ask("HEAD", place, headers=TUS)
    assert answer.status_code == 503 and "retry-after" in answer.headers


def test_wrong_tokens_lock_nobody_out(world: World):
    """Behind a proxy all have one address."""
    world.restart(refusals_per_second=0.1)
    wrong = {"Authorization": "Bearer x"}
    assert [world.http.get("/jobs", headers=wrong).status_code for _ in range(3)] == [401, 401, 429]
    assert world.ask("GET", "/jobs").status_code == 200


def test_guessing_the_token_of_metrics_is_slowed(world: World):
    world.restart(refusals_per_second=0.1, metrics_token="m" * 40)
    wrong = {"Authorization": "Bearer x"}
    assert [world.http.get("/metrics", headers=wrong).status_code for _ in range(3)] == [401, 401, 429]
    assert world.http.get("/metrics", headers={"Authorization": f"Bearer {'m' * 40}"}).status_code == 200


def test_key_files_without_end_keep_no_job_waiting(world: World):
    m, key = made(), world.ready(made().keys[0])
    job = world.submit(m.sent[0], key).json()["job"]
    for k in range(4):
        world.upload(bytes([k]) * 50, "bob")
    for _ in range(2):
        world.worker().step()
    assert world.ask("GET", f"/jobs/{job}").json()["state"] == "done"
    assert world.work() == 3  # and the files are checked, too


def test_insecure_parameters_are_served_only_where_that_is_set():
    quiet()
    params = ckks.preset("toy-leveled-n13-s28", allow_insecure=True)
    toy = Function("toy", params, lambda ev, x: x)
    for program in (toy, made().servable):
        with pytest.raises(ParameterError, match="allow_insecure") as found:
            hosting.found([program], Settings())
        assert found.value.fields["name"] == "toy"
        assert hosting.found([program], Settings(allow_insecure=True)) == [program]


def test_other_users_of_the_machine_read_nothing(world: World):
    assert (world.folder / "data").stat().st_mode & 0o077 == 0


def test_a_mistake_does_not_end_a_worker(world: World, monkeypatch):
    """A lane that ended would leave a worker that looks alive and does nothing."""
    worker, steps = world.worker(), []

    def step() -> bool:
        steps.append(1)
        if len(steps) > 1:
            worker.stop()
            return True
        raise RuntimeError("a driver's own error")

    monkeypatch.setattr(worker, "step", step)
    monkeypatch.setattr(worker._stop, "wait", lambda seconds: worker._stop.is_set())
    worker._lane()
    assert len(steps) == 2


def test_a_busy_database_is_no_mistake(world: World):
    """More requests at once than connections: they may come again."""
    import sqlalchemy as sql

    database = world.service.database
    database.engine.dispose()
    url = world.settings.database_url
    database.engine = sql.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.05)
    with database.engine.connect():
        assert problem(world.ask("GET", "/jobs"), 503, "UnavailableError")["retry"]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node: apt install nodejs")
def test_a_browser_sends_on_where_head_answers_503():
    """An answer to HEAD has no body, whatever its content type says."""
    script = """
    import { Service } from "SERVICE";
    const json = { "Content-Type": "application/problem+json" }, seen = [];
    let stored = false;
    const answer = (status, headers, body = null) => new Response(body, { status, headers });
    globalThis.fetch = async ({ pathname }, { method }) => {
      seen.push(method);
      if (method === "POST") return answer(201, { Location: "/keys/uploads/u" });
      if (pathname === "/protocol") return Response.json({ limits: { chunk_bytes: 100 } });
      if (method === "HEAD") return answer(503, { ...json, "Retry-After": "1" });
      if (method === "PATCH" && !seen.includes("HEAD")) throw new TypeError("broken");
      if (method === "PATCH") stored = true;
      if (method === "PATCH") return answer(204, { "Upload-Offset": "3" });
      if (stored) return Response.json({ state: "ready", program: "p" });
      return answer(404, json, JSON.stringify({ code: "NotFoundError", detail: "no" }));
    };
    const keys = { file: new Blob(["abc"]), sha256: "k" };
    console.log(await new Service("http://s/", "t").sendKeys("p", keys));
    """
    made = subprocess.run(
        ["node", "--input-type=module", "-e", script.replace("SERVICE", (WEB / "service.mjs").as_uri())],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert made.stdout == "k\n", made.stderr
