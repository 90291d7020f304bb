"""Storage that is full or does not answer: what was accepted waits, and is answered when it is back."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import types
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from faulty import later
from fsspec.implementations.memory import MemoryFileSystem
from service_world import World, made, problem, quiet, sha

from crenel.errors import StorageError, UnavailableError
from crenel.serve import results
from crenel.serve.blobs import Blobs
from crenel.serve.copies import Copies
from crenel.serve.settings import Settings


class DriverError(Exception):
    """What a store's own package raises: no error of the system's."""


class Flaky(MemoryFileSystem):
    """A store in memory that does not answer while `gone` says what is raised in its place."""

    protocol = "flaky"
    store: dict = {}  # noqa: RUF012  fsspec keeps it with the class
    pseudo_dirs = [""]  # noqa: RUF012
    gone: BaseException | None = None

    def _asked(self) -> None:
        if Flaky.gone is not None:
            raise Flaky.gone


def _guarded(name: str):
    honest = getattr(MemoryFileSystem, name)

    def method(self: Flaky, *given: object, **more: object) -> object:
        self._asked()
        return honest(self, *given, **more)

    return method


for _name in ("_open", "makedirs", "info", "rm", "mv", "ls", "cat_file", "pipe_file", "cp_file", "rm_file"):
    setattr(Flaky, _name, _guarded(_name))
fsspec.register_implementation("flaky", Flaky, clobber=True)

ERRORS = [
    DriverError("EndpointConnectionError"), ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    asyncio.TimeoutError(), TimeoutError("timed out"), OSError(errno.EIO, "Input/output error"),
]  # fmt: skip


@pytest.fixture
def far(tmp_path: Path) -> Iterator[World]:
    """A service whose blobs are in a store."""
    quiet()
    Flaky.gone = None
    url = f"flaky://{uuid.uuid4().hex}"
    settings = Settings(
        data=url, database=f"sqlite:///{tmp_path / 'x.sqlite'}", cache=str(tmp_path / "cache"),
        allow_insecure=True, min_free_bytes=0,
    )  # fmt: skip
    world = World(tmp_path, settings)
    yield world
    Flaky.gone = None
    world.close()


def _code(error: BaseException) -> tuple[type, int]:
    typed = UnavailableError if not isinstance(error, OSError) or error.errno != errno.EIO else StorageError
    return typed, 503 if typed is UnavailableError else 507


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_a_store_that_is_gone_and_back(far: World, error: BaseException):
    m, key = made(), far.ready(made().keys[0])
    job = far.submit(m.sent[0], key).json()["job"]
    typed, status = _code(error)
    Flaky.gone = error
    for _ in range(far.settings.attempts + 2):
        with pytest.raises(typed):
            far.worker().step()
        assert far.ask("GET", f"/jobs/{job}").json()["state"] == "queued"
        assert not far.worker().step()  # not before its pause is over
        later(far)
    refused = problem(far.submit(m.sent[0], key), status, typed.__name__)
    assert refused["retry"]
    Flaky.gone = None
    far.work()
    assert far.ask("GET", f"/jobs/{job}/result").content == m.answer


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_keys_wait_for_the_store(far: World, error: BaseException):
    key, worker = far.upload(made().keys[0]), far.worker()
    Flaky.gone = error
    for _ in range(far.settings.attempts + 2):
        assert worker.step()
        found = far.ask("GET", f"/keys/{key}").json()
        assert (found["state"], found["waits"]["code"]) == ("received", _code(error)[0].__name__)
        later(far)
    Flaky.gone = None
    far.work()
    assert far.ask("GET", f"/keys/{key}").json()["state"] == "ready"


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_results_and_uploads_of_a_store_that_is_gone(far: World, error: BaseException, monkeypatch):
    """Nothing is taken for lost because nobody answers."""
    typed, status = _code(error)
    m, key = made(), far.ready(made().keys[0])
    job = far.submit(m.sent[0], key).json()["job"]
    far.work()
    place = far.begin(m.keys[1])
    Flaky.gone = error
    for small in (results.SMALL, 10):  # which is sent whole, or piece by piece
        monkeypatch.setattr(results, "SMALL", small)
        problem(far.ask("GET", f"/jobs/{job}/result"), status, typed.__name__)
    problem(far.patch(place, 0, m.keys[1]), status, typed.__name__)
    with pytest.raises(typed):
        Blobs(far.settings.data)
    Flaky.gone = None
    monkeypatch.undo()
    assert far.ask("GET", f"/jobs/{job}/result").content == m.answer
    assert far.patch(place, 0, m.keys[1]).status_code == 204


def test_what_is_not_there_is_told_from_who_does_not_answer(far: World):
    assert not far.service.blobs.exists("keys/none")
    Flaky.gone = DriverError("no")
    with pytest.raises(UnavailableError, match="DriverError"):
        far.service.blobs.exists("keys/none")


def test_a_writer_that_is_given_up_raises_nothing_more(far: World):
    """The first error is the one that is told."""
    writer = far.service.blobs.writer("x/y")
    writer.write(b"1" * 10)
    writer._file.discard = lambda: (_ for _ in ()).throw(DriverError("no"))
    writer.abort()


@pytest.mark.parametrize("local", [True, False], ids=["folder", "store"])
def test_a_file_that_was_not_deleted_is_swept(local: bool, world: World, far: World, monkeypatch):
    """The storage refused when its keys were deleted; keys that somebody has stay."""
    used = world if local else far
    key, kept = used.ready(made().keys[0]), used.ready(made().keys[1], "bob")
    assert used.service.keys.sweep() == 0
    with monkeypatch.context() as broken:
        broken.setattr(Blobs, "delete", _refusing)
        problem(used.ask("DELETE", f"/keys/{key}"), 507, "StorageError")
    assert used.service.blobs.exists(f"keys/{key}")
    assert used.service.keys.sweep() == 0  # an upload that is on its way looks the same
    monkeypatch.setattr("crenel.serve.keys.FORGOTTEN_S", -1.0)
    assert used.service.keys.sweep() == 1
    assert not used.service.blobs.exists(f"keys/{key}") and used.service.blobs.exists(f"keys/{kept}")


def _refusing(self: Blobs, name: str) -> None:
    raise StorageError("storage failed: Input/output error")


def _full(monkeypatch: pytest.MonkeyPatch, folder: Path, most: int) -> list[bool]:
    """The disk of copies takes so many bytes, and says ENOSPC at more, until what is returned says False."""
    full = [True]

    def fsync(file: int) -> None:
        if full[0] and sum(p.stat().st_size for p in folder.iterdir()) > most:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.fsync(file)

    monkeypatch.setattr("crenel.serve.copies.os", types.SimpleNamespace(**(vars(os) | {"fsync": fsync})))
    return full


def test_a_full_folder_of_copies(far: World, monkeypatch):
    """Jobs wait and keys are not refused; nothing half written stays."""
    m, folder = made(), Path(far.settings.cache)
    full = _full(monkeypatch, folder, 100)
    key = far.upload(m.keys[0])
    job = far.submit(m.sent[0], key).json()["job"]
    for _ in range(far.settings.attempts + 2):
        assert far.worker().step()  # the check
        found = far.ask("GET", f"/keys/{key}").json()
        assert (found["state"], found["waits"]["code"]) == ("received", "StorageError")
        with pytest.raises(StorageError, match="full"):
            far.worker().step()
        assert far.ask("GET", f"/jobs/{job}").json()["state"] == "queued"
        assert list(folder.iterdir()) == []
        later(far)
    full[0] = False
    far.work()
    assert far.ask("GET", f"/keys/{key}").json()["state"] == "ready"
    assert far.ask("GET", f"/jobs/{job}/result").content == m.answer


def test_copies_make_room_for_one_another(far: World, monkeypatch):
    """A folder that is full of copies has room for the next one."""
    m, folder = made(), Path(far.settings.cache)
    far.ready(m.keys[0])
    assert os.listdir(folder) == [sha(m.keys[0])]
    _full(monkeypatch, folder, max(map(len, m.keys)) + 1000)
    key = far.ready(m.keys[1], "bob")
    assert os.listdir(folder) == [key]


def test_a_real_disk_that_is_full(tmp_path: Path, far: World):
    """A file system in memory of 64 KiB, where this process may have one."""
    folder = tmp_path / "small"
    folder.mkdir()
    made_ = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
    )
    if made_.returncode:
        pytest.skip("this process may not mount")
    try:
        names = [sha(bytes([k])) for k in range(3)]
        data = {n: os.urandom(size) for n, size in zip(names, (30_000, 50_000, 100_000), strict=True)}
        far.service.blobs.put({f"keys/{name}": found for name, found in data.items()})
        copies = Copies(folder, 1 << 30, far.service.blobs)
        for name in names[:2]:  # the second has room once the first is gone
            with copies.file(name) as path:
                assert path.read_bytes() == data[name]
            assert os.listdir(folder) == [name]
        for _ in range(2):
            with pytest.raises(StorageError, match="full"), copies.file(names[2]):
                pass
            assert os.listdir(folder) == []
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
