"""Workers as others see them: a row each, with what it says of itself and when it did so last."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sql

from crenel.serve.database import Database, workers
from crenel.serve.settings import Settings


class Presence:
    """A worker's own row."""

    def __init__(self, database: Database, settings: Settings, worker: str) -> None:
        self._database, self._settings, self.worker = database, settings, worker

    def say(self, info: Mapping[str, object]) -> list[dict[str, Any]]:
        """It lives, and is this; returns what others that live say of themselves."""
        now = time.time()
        row = {"seen": now, "info": json.dumps(info)}
        mine, wanted = workers.c.id == self.worker, sql.select(workers.c.info)
        with self._database.writing(lasting=False) as connection:
            if connection.execute(sql.update(workers).where(mine).values(**row)).rowcount == 0:
                connection.execute(sql.insert(workers).values(id=self.worker, **row))
            others = wanted.where(workers.c.id != self.worker, workers.c.seen > now - self._lease)
            return [json.loads(text) for text in connection.scalars(others)]

    def end(self) -> None:
        """Others need not wait for it any more."""
        with self._database.writing() as connection:
            connection.execute(sql.delete(workers).where(workers.c.id == self.worker))

    @property
    def _lease(self) -> float:
        return self._settings.lease_seconds


def alive(database: Database, settings: Settings) -> list[dict[str, object]]:
    """What workers say of themselves whose signs of life are recent."""
    recent = workers.c.seen > time.time() - settings.lease_seconds
    with database.reading() as connection:
        rows = list(connection.execute(sql.select(workers.c.id, workers.c.info).where(recent)))
    return [{"id": row.id, **json.loads(row.info)} for row in rows]


def expire(database: Database, settings: Settings) -> None:
    """Forgets workers that have been silent for long."""
    over = workers.c.seen < time.time() - 20 * settings.lease_seconds
    with database.writing() as connection:
        connection.execute(sql.delete(workers).where(over))
