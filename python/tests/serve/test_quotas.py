"""What one tenant may hold of a service: waiting requests, waiting and finished jobs, their bytes, the disk,
and key files no larger than its program's keys."""

from __future__ import annotations

import threading
import time

import pytest
from service_world import TUS, World, made, metadata, problem, sha

from crenel.errors import LimitError, StorageError
from crenel.serve.jobs import Submission
from crenel.serve.limits import AtOnce


def answered(world: World, key: str, fetch: bool = True) -> str:
    """A job that ran; whether its result was read to the end."""
    job = world.submit(made().sent[0], key).json()["job"]
    world.work()
    if fetch:
        assert world.ask("GET", f"/jobs/{job}/result").content == made().answer
        world.service.note()
    return job


def test_bytes_of_waiting_jobs(world: World):
    size = len(made().sent[0])
    world.restart(job_bytes=2 * size)
    key = world.ready(made().keys[0])
    assert [world.submit(made().sent[0], key).status_code for _ in range(2)] == [202, 202]
    found = problem(world.submit(made().sent[0], key), 429, "LimitError")
    assert found["fields"]["limit"] == 2 * size
    world.work()
    assert world.submit(made().sent[0], key).status_code == 202


def test_one_job_may_always_wait(world: World):
    """A limit of bytes below one input bounds how many wait, and refuses nobody for ever."""
    world.restart(job_bytes=1)
    key = world.ready(made().keys[0])
    assert world.submit(made().sent[0], key).status_code == 202
    problem(world.submit(made().sent[0], key), 429, "LimitError")


def test_read_results_make_room_oldest_first(world: World):
    world.restart(finished_jobs=3)
    key = world.ready(made().keys[0])
    ended = [answered(world, key) for _ in range(3)]
    newest = answered(world, key)
    problem(world.ask("GET", f"/jobs/{ended[0]}"), 404, "NotFoundError")
    assert world.ask("GET", f"/jobs/{newest}").json()["state"] == "done"
    assert len(list((world.folder / "data/results").iterdir())) <= 3


@pytest.mark.parametrize("limits", [{"finished_jobs": 2}, {"result_bytes": 1}])
def test_unread_results_are_never_dropped(world: World, limits):
    """Whoever fetches nothing is refused; reading, deleting, or time make room."""
    world.restart(**limits)
    key = world.ready(made().keys[0])
    kept = [answered(world, key, fetch=False) for _ in range(limits.get("finished_jobs", 1))]
    found = problem(world.submit(made().sent[0], key), 429, "LimitError")
    assert found["retry"] and "fetch them" in found["detail"]
    for job in kept:
        assert world.ask("GET", f"/jobs/{job}/result").content == made().answer
    assert world.ask("DELETE", f"/jobs/{kept[0]}").status_code == 204
    assert world.submit(made().sent[0], key).status_code == 202


def test_what_failed_makes_room(world: World):
    world.restart(finished_jobs=2)
    key = world.ready(made().keys[0])
    for _ in range(5):
        assert world.submit(b"nothing", key).status_code == 202
        world.work()


def test_one_tenants_ended_jobs_are_not_anothers(world: World):
    world.restart(finished_jobs=1)
    key, other = world.ready(made().keys[0]), world.ready(made().keys[1], "bob")
    answered(world, key, fetch=False)
    problem(world.submit(made().sent[0], key), 429, "LimitError")
    assert world.submit(made().sent[1], other, "bob").status_code == 202


def test_requests_that_wait(world: World):
    """Long polls of a tenant are bounded; another tenant's are not touched, and each gives its place back."""
    world.restart(waiting=2)
    key = world.ready(made().keys[0])
    job = world.submit(made().sent[0], key).json()["job"]
    threads = [
        threading.Thread(target=world.ask, args=("GET", f"/jobs/{job}"), kwargs={"params": {"wait": 3}})
        for _ in range(2)
    ]
    [t.start() for t in threads]
    end = time.monotonic() + 2.5
    while world.service.waiting._found.get(world.service.auth.known(_bearer(world)).id, 0) < 2:  # type: ignore[union-attr]
        assert time.monotonic() < end
        time.sleep(0.01)
    refused = problem(world.ask("GET", "/jobs"), 429, "LimitError")
    assert refused["retry"] and refused["fields"]["limit"] == 2
    assert world.ask("GET", "/jobs", "bob").status_code == 200
    [t.join() for t in threads]
    assert world.ask("GET", "/jobs").status_code == 200
    assert not world.service.waiting._found


def _bearer(world: World) -> str:
    world.service.auth.tenant(f"Bearer {world.tokens['alice']}")
    return f"Bearer {world.tokens['alice']}"


def test_at_once():
    limit = AtOnce(1)
    limit.enter("a")
    with pytest.raises(LimitError):
        limit.enter("a")
    limit.enter("b")
    limit.leave("a")
    limit.enter("a")


def test_the_disk_is_promised_once(world: World, monkeypatch):
    """Two bodies that each have room, and not both: the second is refused before a byte of it is written."""
    import shutil

    blobs = world.service.blobs
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10**9, 0, 1000))
    with blobs.reserved(600) as room:
        with pytest.raises(StorageError) as refused, blobs.reserved(600):
            pass
        assert refused.value.fields["available"] == 400
        room.used(300)  # written: a real disk has less free then
        with blobs.reserved(600):
            pass
        blobs.room(700)
    with blobs.reserved(1000):
        pass
    assert blobs._reserved == 0


def test_a_refused_body_gives_its_room_back(world: World):
    key = world.ready(made().keys[0])
    wrong = world.submit(made().sent[0], key, **{"Content-Digest": "sha-256=:AAAA:"})
    problem(wrong, 422, "SerializationError")
    place = world.begin(made().keys[0])
    bad = world.patch(place, 0, made().keys[0], **{"Upload-Checksum": "sha256 " + "A" * 43 + "="})
    assert bad.status_code == 460
    assert world.service.blobs._reserved == 0


def test_key_files_are_no_larger_than_keys(world: World):
    """What cannot be a program's keys is refused before it is sent: nobody stores other things so."""
    servable = made().servable
    most = servable.most_file_bytes
    for data in made().keys:
        assert len(data) < most < 2 * len(data) + (2 << 20)
    headers = TUS | {"Upload-Length": str(most + 1), "Upload-Metadata": metadata("0" * 64)}
    found = problem(world.ask("POST", "/keys/uploads", headers=headers), 413, "LimitError")
    assert found["fields"]["limit"] == most and not found["retry"]
    headers["Upload-Length"] = str(most)
    assert world.ask("POST", "/keys/uploads", headers=headers).status_code == 201


def test_keys_of_the_highest_level_are_taken(world: World):
    """A client may have keys that serve more levels than the program needs."""
    m = made()
    rotations = list(m.program.demand.rotations)
    data = m.clients[0].ckks_client.evaluation_keys(rotations=rotations).to_bytes()
    key = world.ready(data)
    job = world.submit(m.sent[0], key).json()["job"]
    world.work()
    assert world.ask("GET", f"/jobs/{job}/result").status_code == 200
    use = world.worker().tiers.device.use
    assert use.nbytes > m.servable.key_memory


def test_many_at_once_stay_within_the_number(world: World):
    """Submissions race: the count is taken in the transaction that enters the job."""
    world.restart(jobs=3)
    key = world.ready(made().keys[0])
    tenant = world.service.auth.tenant(_bearer(world))
    found = []

    def send(k: int) -> None:
        data = made().sent[0]
        asked = Submission(made().program.fingerprint, key, f"n{k}", data, "", len(data), sha(data))
        try:
            found.append(world.service.jobs.submit(tenant, asked)[1])
        except LimitError:
            found.append(False)

    threads = [threading.Thread(target=send, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(found) == [False] * 5 + [True] * 3
    assert len(list((world.folder / "data/inputs").iterdir())) == 3
