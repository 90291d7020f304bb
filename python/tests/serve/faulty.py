"""A worker's programs that fail as they are told, and time that passes where a test says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sql
from service_world import World

from crenel.serve.database import jobs, keys
from crenel.serve.servable import Check, Loaded, Prepared, Reading, Turn
from crenel.serve.worker import Worker

Fault = Callable[[], None]
"""Called before the honest one: what it raises is what fails."""


def honest() -> None:
    """Nothing fails."""


class FaultyPrepared:
    def __init__(self, real: Prepared, faults: Faults) -> None:
        self._real, self._faults = real, faults

    @property
    def nbytes(self) -> int:
        return self._real.nbytes

    def run(self, data: bytes, check: Check, turn: Turn) -> bytes:
        self._faults.runs += 1
        self._faults.run()
        return self._real.run(data, check, turn)


class FaultyLoaded:
    def __init__(self, real: Loaded, faults: Faults) -> None:
        self._real, self._faults = real, faults

    @property
    def context(self):
        return self._faults.context or self._real.context

    def prepare(self, keys: Path, reading: Reading) -> FaultyPrepared:
        self._faults.prepares += 1
        self._faults.prepare()
        return FaultyPrepared(self._real.prepare(keys, reading), self._faults)


class Faults:
    """Of a worker: set `run` and `prepare` to what raises; both are counted. And `context` to another one."""

    def __init__(self, worker: Worker) -> None:
        self.run: Fault = honest
        self.prepare: Fault = honest
        self.runs = self.prepares = 0
        self.context: object | None = None
        for program, loaded in list(worker._loaded.items()):
            worker._loaded[program] = FaultyLoaded(loaded, self)


def raising(error: BaseException, times: int | None = None) -> Fault:
    """Raises it, so many times or always."""
    left = [times]

    def fault() -> None:
        if left[0] is None or left[0] > 0:
            left[0] = None if left[0] is None else left[0] - 1
            raise error

    return fault


def later(world: World) -> None:
    """What was put off may be tried again."""
    with world.service.database.writing() as connection:
        for table in (keys, jobs):
            connection.execute(sql.update(table).values(lease=0.0).where(table.c.worker.is_(None)))
