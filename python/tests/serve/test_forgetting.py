"""Keys that are deleted, replaced or over: workers drop what they hold, and what others have stays."""

from __future__ import annotations

import errno
import gc
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql
from service_world import World, made, quiet, sha

from crenel.errors import StorageError
from crenel.serve.copies import Copies
from crenel.serve.database import keys
from crenel.serve.settings import Settings

PROGRAM_LEASE = 1.0


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A service on files, and one whose key files are elsewhere and copied to this machine's disk."""
    quiet()
    elsewhere = {
        "data": f"memory://{uuid.uuid4().hex}", "database": f"sqlite:///{tmp_path / 'x.sqlite'}",
        "cache": str(tmp_path / "cache"),
    }  # fmt: skip
    given = {"data": str(tmp_path / "data")} if request.param == "folder" else elsewhere
    world = World(
        tmp_path, Settings(**given, allow_insecure=True, min_free_bytes=0, lease_seconds=PROGRAM_LEASE)
    )
    yield world
    world.close()


def _files(world: World) -> set[str]:
    """Copies on the disk, those that are being made included."""
    folder = Path(world.settings.cache or "nowhere")
    return set(os.listdir(folder)) if folder.is_dir() else set()


def _in_memory() -> int:
    """Key files that this process has in memory."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += "crenel-keys" in os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
    return found


def _device(world: World):
    return world.worker()._loaded[made().program.fingerprint].context.device


def _held(world: World) -> tuple[int, int, int]:
    """Of a worker: expanded keys, files in memory, copies on the disk."""
    tiers = world.worker().tiers
    return tiers.device.use.entries, tiers.host.use.entries, len(_files(world))


def _deleted(world: World, key: str) -> None:
    assert world.ask("DELETE", f"/keys/{key}").status_code == 204


def _over(world: World, key: str) -> None:
    with world.service.database.writing() as connection:
        mine = (keys.c.key == key) & (keys.c.tenant == world.service.auth.tenant(_bearer(world)).id)
        connection.execute(sql.update(keys).where(mine).values(expires=time.time() - 1))


def _bearer(world: World) -> str:
    return f"Bearer {world.tokens['alice']}"


@pytest.mark.parametrize("ends", [_deleted, _over], ids=["deleted", "expired"])
def test_nothing_stays(place: World, ends: Callable[[World, str], None]):
    """Of the device, the memory and the disk; the bytes are given back."""
    place.worker()
    gc.collect()
    others, before = _in_memory(), _device(place).pools()
    key = place.ready(made().keys[0])
    job = place.submit(made().sent[0], key).json()["job"]
    place.work()
    assert place.ask("GET", f"/jobs/{job}").json()["state"] == "done"
    local = place.service.blobs.local
    assert _held(place) == (1, 1, 0 if local else 1) and _in_memory() == others + 1
    with place.worker().tiers.prepared(made().program.fingerprint, key) as prepared:
        seen, size = weakref.ref(prepared), prepared.nbytes
    del prepared
    assert size > 0 and _device(place).pools().in_use >= before.in_use + size
    place.worker()._forget()
    assert _held(place)[0] == 1  # still the tenant's
    ends(place, key)
    place.worker()._forget()
    assert _held(place) == (0, 0, 0) and place.worker().tiers.keys == set()
    gc.collect()
    assert seen() is None and _in_memory() == others
    after = _device(place).pools()
    assert after.in_use <= before.in_use + size // 100 and after.idle <= before.idle
    assert place.ready(made().keys[0]) == key  # and all of it may come again
    assert _held(place)[0] == 1


def test_an_idle_worker_forgets_in_time(place: World):
    """By its heartbeats, which nobody has to wake."""
    key = place.ready(made().keys[0])
    worker = place.worker()
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        time.sleep(PROGRAM_LEASE / 2)
        assert _held(place)[0] == 1
        _deleted(place, key)
        end = time.monotonic() + PROGRAM_LEASE / 4 + 5.0  # of a machine that may be busy
        while _held(place) != (0, 0, 0):
            assert time.monotonic() < end, _held(place)
            time.sleep(0.02)
    finally:
        worker.stop()
        thread.join()
        place._worker = None


def test_replaced_keys_go_and_new_ones_stay(place: World):
    old = place.ready(made().keys[0])
    fresh = made().clients[0].evaluation_keys(made().spec).to_bytes()
    new = place.upload(fresh, replaces=old)
    place.work()
    assert place.worker().tiers.keys == {old, new}
    place.worker()._forget()
    assert place.worker().tiers.keys == {new} == place.worker().tiers.host.names
    assert _files(place) <= {new}


def test_what_another_tenant_has_stays(place: World):
    """Keys are held once by content: they go with the last tenant's."""
    data = made().keys[0]
    key = place.ready(data)
    assert place.upload(data, "bob") == key
    place.work()
    held = _held(place)
    _deleted(place, key)
    place.worker()._forget()
    assert _held(place) == held and held[0] == 1
    job = place.submit(made().sent[0], key, "bob").json()["job"]
    place.work()
    assert place.ask("GET", f"/jobs/{job}/result", "bob").content == made().answer
    assert place.ask("DELETE", f"/keys/{key}", "bob").status_code == 204
    place.worker()._forget()
    assert _held(place) == (0, 0, 0)


def test_what_is_in_use_goes_when_that_ends(place: World):
    """A job that computes with them is not disturbed; their memory comes back afterwards."""
    worker, key = place.worker(), place.ready(made().keys[0])
    with worker.tiers.prepared(made().program.fingerprint, key) as prepared:
        _deleted(place, key)
        worker._forget()
        assert worker.tiers.keys == set() and worker.tiers.device.leaving == 1
        assert prepared.nbytes > 0
        busy = _device(place).pools().in_use
    del prepared
    assert _held(place) == (0, 0, 0)
    worker._forget()
    assert _device(place).pools().in_use < busy and not worker.tiers._untidy


def test_a_worker_that_computes_forgets_and_settles_later(place: World):
    """The device is another's: its idle memory is given back at the next turn, no heartbeat waits for it."""
    worker, key = place.worker(), place.ready(made().keys[0])
    other = place.ready(made().keys[1], "bob")
    _deleted(place, key)
    with worker._device:
        worker._forget()
        assert worker.tiers.keys == {other} and worker.tiers._untidy
    job = place.submit(made().sent[1], other, "bob").json()["job"]
    place.work()
    assert place.ask("GET", f"/jobs/{job}", "bob").json()["state"] == "done"
    assert not worker.tiers._untidy


def test_what_another_program_needs_of_a_file_is_told_apart(place: World):
    """A file that a tenant has for another program keeps its copies, not what was expanded for this one."""
    worker, key = place.worker(), place.ready(made().keys[0])
    with place.service.database.writing() as connection:
        connection.execute(sql.update(keys).where(keys.c.key == key).values(program="0" * 64))
    worker._forget()
    assert worker.tiers.keys == set() and worker.tiers.host.names == {key}


def test_the_database_is_asked_of_many_at_once(world: World):
    key = world.ready(made().keys[0])
    many = {sha(os.urandom(8)) for _ in range(1234)}
    assert world.service.keys.held({*many, key}) == {(made().program.fingerprint, key)}
    assert world.service.keys.held(many) == set()


def test_a_copy_is_read_by_who_has_it_whoever_deletes_it(tmp_path: Path, world: World):
    """Workers share the folder: one may drop what another one reads, or be about to write."""
    blobs, names = world.service.blobs, [sha(bytes([k])) for k in range(4)]
    data = {name: os.urandom(1000) for name in names}
    blobs.put({f"keys/{name}": found for name, found in data.items()})
    copies = Copies(tmp_path / "cache", 2500, blobs)
    assert copies.names == set()
    with copies.file(names[0]) as path:
        copies.drop(names[0])
        assert path.read_bytes() == data[names[0]] and copies.names == set()
    (tmp_path / "cache" / f"{names[3]}.{uuid.uuid4().hex}.part").write_bytes(b"x" * 100)
    for name in names[:3]:
        with copies.file(name) as path:
            assert path.read_bytes() == data[name]
    assert copies.names == set(names[1:3])  # the least recently used went
    assert len(list((tmp_path / "cache").glob("*.part"))) == 1  # another worker's, which writes it
    with copies.file(names[1]):
        pass
    with copies.file(names[3]):
        pass
    assert copies.names == {names[1], names[3]}
    old = next((tmp_path / "cache").glob("*.part"))
    os.utime(old, (0, 0))
    with copies.file(names[0]):
        pass
    assert not old.exists()  # nobody's any more


def test_a_disk_that_fails_keeps_nothing_elsewhere(place: World, monkeypatch):
    """Its error is said, after device and memory have forgotten; the copy goes once the disk is back."""
    key = place.ready(made().keys[0])
    assert _held(place)[:2] == (1, 1)
    _deleted(place, key)
    copies = len(_files(place))
    with monkeypatch.context() as broken:

        def fails(self: Copies) -> list:
            raise OSError(errno.EIO, "Input/output error")

        broken.setattr(Copies, "_found", fails)
        if copies:
            with pytest.raises(StorageError):
                place.worker()._forget()
        else:
            place.worker()._forget()
        assert _held(place) == (0, 0, copies)
    place.worker()._forget()
    assert _held(place) == (0, 0, 0)


def test_parts_of_copies_that_were_left_go_too(tmp_path: Path, world: World):
    """Of keys that nobody has; one that is written now is not touched, nor a file that is no copy."""
    folder, key, other = tmp_path / "copies", sha(os.urandom(8)), sha(os.urandom(8))
    folder.mkdir()
    left, now, kept = (f"{k}.{uuid.uuid4().hex}.part" for k in (key, key, other))
    for name in (left, now, kept, "notes"):
        (folder / name).write_bytes(b"keys")
    for name in (left, kept, "notes"):
        os.utime(folder / name, (time.time() - 7200, time.time() - 7200))
    copies = Copies(folder, 1 << 20, world.worker()._blobs)
    assert copies.names == {key, other}
    copies.drop(key)
    assert set(os.listdir(folder)) == {now, kept, "notes"}
