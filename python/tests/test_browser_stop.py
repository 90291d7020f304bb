"""The page's stop button, and signals: what was begun at the service ends there, and what was sent counts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from browser_pages import begin, classify, draw, ended, expected, posts, shown, small_program

CHUNK = 1 << 16
JOB = {"queued", "running"}


@pytest.fixture(scope="module")
def program(browser):
    return small_program()


@pytest.fixture
def world(browser, program, tmp_path) -> Iterator[SimpleNamespace]:
    # A worker is let be silent for as long as its lease.
    with shown(browser, program, tmp_path, chunk_bytes=CHUNK, lease_seconds=300.0) as found:
        yield found


@contextmanager
def jobs_wait(world) -> Iterator[None]:
    """The worker stands still within the block."""
    (pid,) = world.service.workers.pids
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def jobs(world) -> list[dict]:
    """The tab's tenant's, as the service has them."""
    asked = next(r for r in world.sent if "authorization" in r.headers)
    headers = {"Authorization": asked.headers["authorization"], "Crenel-Protocol": "1"}
    return world.tab.request.get(f"{world.url}/jobs", headers=headers).json()["jobs"]


def stop(world) -> None:
    """Clicks, and the page says that it stopped, with its buttons as before."""
    world.tab.click("#stop")
    assert ended(world.tab) == "Cancelled"
    assert world.tab.is_disabled("#stop") and "Stopped" in world.tab.inner_text("#state")


def test_there_is_nothing_to_stop(world) -> None:
    assert world.tab.is_disabled("#stop")


def test_sending_keys_stops_and_goes_on(world, program) -> None:
    """The second click sends the rest of the same upload: no new keys, no byte twice."""
    held = []

    def hold(route) -> None:
        if len(held) == 0 and int(route.request.headers.get("upload-offset", 0)) >= 2 * CHUNK:
            held.append(route)  # no answer
        else:
            route.continue_()

    world.tab.route("**/keys/uploads/*", hold)
    draw(world.tab, 7)
    begin(world.tab)
    while not held:
        world.tab.wait_for_timeout(20)
    stop(world)
    before = len(world.sent)
    assert classify(world.tab) == expected(world.tab, program)
    assert [r.method for r in world.sent[before:] if "/keys/uploads" in r.url][:2] == ["HEAD", "PATCH"]
    offsets = [int(r.headers["upload-offset"]) for r in posts(world.sent, "/keys/uploads/")]
    assert offsets == sorted(offsets) and len(offsets) == len(set(offsets)) + 1  # the one without answer
    names = [s["name"] for s in world.tab.evaluate("() => crenelSteps")]
    assert names.count("Make keys for the server") == 1


def test_a_job_that_waits_is_cancelled(world, program) -> None:
    draw(world.tab, 1)
    assert classify(world.tab) == expected(world.tab, program)
    with jobs_wait(world):
        begin(world.tab)
        world.tab.wait_for_event("request", lambda r: "/jobs/" in r.url and "wait=" in r.url, timeout=30_000)
        assert {job["state"] for job in jobs(world)} & JOB
        stop(world)
        assert sorted(job["state"] for job in jobs(world)) == ["cancelled", "done"]
    assert classify(world.tab) == expected(world.tab, program)


def test_a_job_is_cancelled_whose_number_is_not_known_yet(world, program) -> None:
    """Stopped while the answer to its submission is on its way."""
    draw(world.tab, 4)
    assert classify(world.tab) == expected(world.tab, program)
    held = []

    def late(route) -> None:
        held.append((route, route.fetch()))  # the service has it, the page does not know

    world.tab.route("**/jobs", late)
    with jobs_wait(world):
        begin(world.tab)
        while not held:
            world.tab.wait_for_timeout(20)
        assert {job["state"] for job in jobs(world)} == {"queued", "done"}
        world.tab.click("#stop")
        world.tab.wait_for_timeout(100)
        route, answer = held[0]
        route.fulfill(response=answer)
        assert ended(world.tab) == "Cancelled"
        assert sorted(job["state"] for job in jobs(world)) == ["cancelled", "done"]


def test_making_keys_stops(world) -> None:
    """After the key that is being made; the holder makes them when it is asked again. A signal that says so
    already begins nothing."""
    found = world.tab.evaluate(
        """async () => {
          const { KeyHolder } = await import('./keyholder.mjs'), { Service } = await import('./service.mjs');
          const holder = await KeyHolder.start();
          const service = await Service.asGuest(new URL('/', location.href));
          const [program] = await service.programs();
          await holder.program(await service.clientFile(program), { allowInsecure: true });
          await holder.keygen();
          const stopping = new AbortController(), { signal } = stopping, seen = [];
          const told = ({ done }) => { seen.push(done); stopping.abort(); };
          const codeOf = (asked) => asked.then(() => null, (error) => error.code);
          const codes = [await codeOf(holder.evaluationKeys(told, { signal }))];
          codes.push(await codeOf(holder.evaluationKeys(() => {}, { signal })));
          const keys = await holder.evaluationKeys();
          codes.push(await codeOf(service.sendKeys(program.program, keys, { signal })));
          codes.push(await codeOf(service.run(program.program, keys.sha256, new Uint8Array(9), { signal })));
          await holder.close();
          return { codes, most: Math.max(...seen), count: keys.count };
        }"""
    )
    assert found["codes"] == ["Cancelled"] * 4
    assert found["most"] < found["count"]
    assert posts(world.sent, "/keys/uploads") == posts(world.sent, "/jobs") == []


def test_what_a_callback_throws_cancels_the_job(world, program) -> None:
    draw(world.tab, 7)
    assert classify(world.tab) == expected(world.tab, program)
    first = posts(world.sent, "/jobs")[0]
    body = {"program": first.headers["crenel-program"], "key": first.headers["crenel-key"]}
    body["token"] = first.headers["authorization"].removeprefix("Bearer ")
    with jobs_wait(world):
        found = world.tab.evaluate(
            """async ({ program, key, token }) => {
              const { Service } = await import('./service.mjs');
              const onState = () => { throw new Error('enough') };
              return new Service(new URL('/', location.href), token)
                .run(program, key, new Uint8Array(100), { onState }).then(() => null, (e) => e.message);
            }""",
            body,
        )
        assert found == "enough"
        assert sorted(job["state"] for job in jobs(world)) == ["cancelled", "done"]


def test_the_size_of_chunks(world) -> None:
    """What goes in some seconds, within the service's limit, and from half of the last one to twice of it."""
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    rng = np.random.default_rng(seed)
    rows = [
        [int(2 ** rng.uniform(16, 26)), float(10 ** rng.uniform(-3, 3)), int(2 ** rng.uniform(16, 30))]
        for _ in range(500)
    ] + [[1 << 23, 0.0, 1 << 26]]
    found = world.tab.evaluate(
        "async (rows) => { const { sizeAfter } = await import('./uploads.mjs');"
        " return rows.map((row) => sizeAfter(...row)) }",
        rows,
    )
    least = 1 << 20
    for (size, seconds, most), after in zip(rows, found, strict=True):
        assert 0 < after <= most
        assert after <= max(2 * size, least) and after >= min(most, max(size // 2, least))
        if seconds > 0 and least < after < most and size // 2 < after < 2 * size:
            assert abs(after - 4 * size / seconds) <= 1
    assert found[-1] == 1 << 24
