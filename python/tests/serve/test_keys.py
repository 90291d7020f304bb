"""Key files: checked before use, bound to a tenant and a program, ended, replaced, asked for again."""

from __future__ import annotations

import pytest
from service_world import World, made, problem, sha

from crenel.errors import ParameterError
from crenel.serve.keys import blob_of


def test_received_then_ready(world: World):
    data = made().keys[0]
    key = world.upload(data)
    assert key == sha(data)
    before = world.ask("GET", f"/keys/{key}").json()
    assert (before["state"], before["bytes"], before["error"]) == ("received", len(data), None)
    world.work()
    after = world.ask("GET", f"/keys/{key}", params={"wait": 30}).json()
    assert after["state"] == "ready" and after["program"] == made().program.fingerprint
    assert [k["key"] for k in world.ask("GET", "/keys").json()["keys"]] == [key]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda d: b"x" * 1000, "SerializationError"),
        (lambda d: d[:-1], "SerializationError"),
        (
            lambda d: d[: len(d) // 2] + bytes([d[len(d) // 2] ^ 1]) + d[len(d) // 2 + 1 :],
            "SerializationError",
        ),
    ],
)
def test_damaged_files_are_refused(world: World, change, code):
    key = world.upload(change(made().keys[0]))
    world.work()
    found = world.ask("GET", f"/keys/{key}").json()
    assert found["state"] == "refused" and found["error"]["code"] == code and not found["error"]["retry"]
    assert str(world.folder) not in str(found)
    again = problem(world.submit(made().sent[0], key), 409, "KeysNeededError")
    assert again["fields"]["key"] == key


def test_files_that_lack_keys_are_refused(world: World):
    m = made()
    keys = m.clients[0].ckks_client.evaluation_keys(rotations=[1]).to_bytes()
    key = world.upload(keys)
    world.work()
    found = world.ask("GET", f"/keys/{key}").json()["error"]
    assert found["code"] == "KeyMissingError" and found["status"] == 422 and found["fields"]["rotations"]


def test_expanded_they_must_fit(world: World):
    world.restart(key_memory=1000)
    key = world.upload(made().keys[0])
    world.work()
    found = world.ask("GET", f"/keys/{key}").json()["error"]
    assert found["code"] == "SerializationError" and found["fields"]["max_bytes"] == 1000


def test_deleted_they_are_needed_again(world: World):
    key = world.ready(made().keys[0])
    assert world.ask("DELETE", f"/keys/{key}").status_code == 204
    problem(world.ask("GET", f"/keys/{key}"), 404, "NotFoundError")
    problem(world.ask("DELETE", f"/keys/{key}"), 404, "NotFoundError")
    problem(world.submit(made().sent[0], key), 409, "KeysNeededError")
    assert not world.service.blobs.exists(blob_of(key))
    assert world.ready(made().keys[0]) == key


def test_waiting_jobs_learn_that_their_keys_are_gone(world: World):
    key = world.ready(made().keys[0])
    job = world.submit(made().sent[0], key).json()["job"]
    world.ask("DELETE", f"/keys/{key}")
    world.work()
    found = world.ask("GET", f"/jobs/{job}").json()
    assert (found["state"], found["error"]["code"]) == ("failed", "KeysNeededError")


def test_lost_files_are_needed_again(world: World):
    """The row is there, the file is not: a disk was changed."""
    key = world.ready(made().keys[0])
    world.restart()
    world.service.blobs.delete(blob_of(key))
    job = world.submit(made().sent[0], key).json()["job"]
    world.work()
    assert world.ask("GET", f"/jobs/{job}").json()["error"]["code"] == "KeysNeededError"
    problem(world.submit(made().sent[0], key), 409, "KeysNeededError")


def test_content_is_stored_once_and_ends_with_its_last_tenant(world: World):
    data = made().keys[0]
    key = world.upload(data)
    assert world.upload(data, "bob") == key
    assert len(list((world.folder / "data" / "keys").iterdir())) == 1
    world.ask("DELETE", f"/keys/{key}")
    assert world.service.blobs.exists(blob_of(key))
    assert world.ask("GET", f"/keys/{key}", "bob").status_code == 200
    world.ask("DELETE", f"/keys/{key}", "bob")
    assert not world.service.blobs.exists(blob_of(key))


def test_rotation(world: World):
    """New keys end those that they replace once they are ready, and not before."""
    old = world.ready(made().keys[0])
    fresh = made().clients[0].evaluation_keys(made().spec).to_bytes()
    new = world.upload(fresh, replaces=old)
    assert world.ask("GET", f"/keys/{old}").status_code == 200
    world.work()
    assert world.ask("GET", f"/keys/{new}").json()["state"] == "ready"
    problem(world.ask("GET", f"/keys/{old}"), 404, "NotFoundError")


def test_nobody_replaces_anothers(world: World):
    old = world.ready(made().keys[0])
    world.upload(made().keys[1], "bob", replaces=old)
    world.work()
    assert world.ask("GET", f"/keys/{old}").json()["state"] == "ready"


def test_time_to_live_counts_from_the_last_use(world: World, monkeypatch):
    from crenel.serve import jobs
    from crenel.serve import keys as module

    monkeypatch.setattr(jobs, "TOUCH_S", 0.0)  # else a use is noted once a minute
    key = world.ready(made().keys[0])
    ends = world.ask("GET", f"/keys/{key}").json()["expires"]
    world.submit(made().sent[0], key)
    world.work()
    assert world.ask("GET", f"/keys/{key}").json()["expires"] > ends
    later = module.time.time() + world.settings.key_ttl + 60
    monkeypatch.setattr(module.time, "time", lambda: later)
    problem(world.ask("GET", f"/keys/{key}"), 404, "NotFoundError")
    problem(world.submit(made().sent[0], key), 409, "KeysNeededError")
    assert world.service.keys.expire() == 1 and not world.service.blobs.exists(blob_of(key))


def test_keys_larger_than_the_device_are_staged(world: World):
    """As many at a time as have room; the same bits."""
    needed = made().servable.key_memory
    world.restart(device_bytes=9 * needed // 10)
    key = world.ready(made().keys[0])
    job = world.submit(made().sent[0], key).json()["job"]
    world.work()
    assert world.ask("GET", f"/jobs/{job}/result").content == made().answer
    assert world.worker().tiers.device.use.nbytes < needed
    world.restart(device_bytes=needed // 4)
    with pytest.raises(ParameterError, match="device_bytes"):
        world.worker()
