"""What lets short jobs share their costs: groups, files and commits together, inputs read ahead."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import sqlalchemy as sql
from service_world import World, made

from crenel import nn
from crenel.errors import StorageError
from crenel.serve.blobs import Blobs
from crenel.serve.database import ANYTHING, KEYS_WAIT
from crenel.serve.edge import Waiter
from crenel.serve.jobs import GROUP_S, LONG_GROUP_S, _together


def _waiting(count: int) -> list[SimpleNamespace]:
    return [SimpleNamespace(id=str(k), key="k", program="p", attempts=0) for k in range(count)]


@pytest.mark.parametrize("each", [0.004, 0.011, 0.05])
def test_groups_grow_with_what_waits(each: float):
    """A tenth of a second, or a third of all that waits, never more than a quarter of a second."""
    for count in (1, 5, 20, 64, 500):
        found = _waiting(count)
        some = _together(found[:1], found, {"k"}, lambda _p: each, count)
        limit = min(max(GROUP_S, count * each / 3), LONG_GROUP_S)
        assert 1 <= len(some) <= count and (len(some) - 1) * each <= limit
        if count * each > limit:
            assert (len(some) + 1) * each >= limit
        assert [row.id for row in some] == [row.id for row in found[: len(some)]]
    begun = _waiting(9)
    begun[3].attempts = 1
    assert "3" not in {row.id for row in _together(begun[:1], begun, {"k"}, lambda _p: 0.001, 9)}
    assert len(_together(begun[:1], begun, {"k"}, lambda _p: 0.001, 4)) == 4, "others want their part"


def test_a_budget_of_so_many_keys_holds_so_many(world: World):
    """A file's header is no key: it takes no room on the device."""
    m = made()
    world.restart(device_bytes=2 * m.servable.key_memory)
    keys = [world.ready(m.keys[0], "alice"), world.ready(m.keys[1], "bob")]
    for _ in range(2):
        jobs = [
            (name, world.submit(sent, key, name).json()["job"])
            for name, sent, key in zip(("alice", "bob"), m.sent, keys, strict=True)
        ]
        world.work()
        assert all(world.ask("GET", f"/jobs/{job}", name).json()["state"] == "done" for name, job in jobs)
    use = world.worker().tiers.device.use
    assert (use.entries, use.misses, use.evictions) == (2, 2, 0)
    assert use.nbytes <= world.settings.device_bytes


def test_files_together_are_all_there_or_none(tmp_path, monkeypatch):
    """The second of three does not reach the disk: no name, and nothing half written, is left."""
    blobs = Blobs(str(tmp_path / "data"))
    data = {f"results/{name}": np.random.default_rng().bytes(5000) for name in "abc"}
    honest, calls = os.fsync, []

    def full(file: int) -> None:
        calls.append(file)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        honest(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError):
        blobs.put(data)
    assert list((tmp_path / "data/results").iterdir()) == []
    blobs.put(data)
    assert {name: blobs.read(name) for name in data} == data


def test_what_need_not_last_is_not_synced(world: World):
    """A claim is forgotten with its worker; a job that is accepted and one that is done are not."""
    database = world.service.database
    for lasting, expected in ((True, 2), (False, 1), (True, 2)):
        with database.writing(lasting=lasting) as connection:
            assert connection.scalar(sql.text("PRAGMA synchronous")) == expected


def test_waiting_for_the_end_is_not_told_of_the_beginning():
    async def told() -> list[tuple[bool, bool]]:
        waiter, seen = Waiter(SimpleNamespace()), []  # type: ignore[arg-type]
        end, any_change = asyncio.Event(), asyncio.Event()
        waiter._events = {"job": {end: True, any_change: False}}
        for state in ("queued", "running", "done"):
            waiter._tell({"job": state})
            seen.append((end.is_set(), any_change.is_set()))
        return seen

    assert asyncio.run(told()) == [(False, False), (False, True), (True, True)]


def test_an_input_is_read_while_another_job_computes(world: World, monkeypatch):
    """Until the device is free it has not begun; whoever looks for keys to check finds none."""
    m, key = made(), world.ready(made().keys[0])
    worker, read = world.worker(), threading.Event()
    honest = nn.Server.tensor_from_bytes

    def seen(self: nn.Server, *given: object, **more: object) -> object:
        read.set()
        return honest(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(nn.Server, "tensor_from_bytes", seen)
    job = world.submit(m.sent[0], key).json()["job"]
    assert worker._database.anything(ANYTHING) and not worker._database.anything(KEYS_WAIT)
    lane = threading.Thread(target=worker.step)
    with worker._device:
        lane.start()
        assert read.wait(60)
        assert worker._unstarted == {job}
        assert world.ask("GET", f"/jobs/{job}").json()["state"] == "running"
    lane.join()
    assert not worker._unstarted
    assert world.ask("GET", f"/jobs/{job}/result").content == m.answer
