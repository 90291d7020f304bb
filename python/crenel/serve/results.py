"""Where results lie: a blob each; of short jobs that were answered together one file of a local disk, a pack.

What a file costs is mostly its being new: a name, a place in the tables of the file system, a wait for the
disk. A pack is written by one worker before the transaction that ends its jobs, under a name that nobody had:
until then nobody knows of it. What is deleted of it is freed at once, and the file goes with its last result.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql

from crenel.errors import NotFoundError
from crenel.serve.blobs import Blobs
from crenel.serve.database import AT_ONCE, Database, jobs
from crenel.serve.observe import log
from crenel.serve.statements import ATTEMPTS, FINAL, KEPT, RUNNING

SMALL = 4 << 20  # bytes of results that are read at once, and at most of one in a pack
FORGOTTEN_S = 3600.0  # files without a row for so long are no request's that is on its way


@dataclass(frozen=True)
class Stored:
    """A result, and where it lies."""

    job: str
    sha256: str
    size: int
    pack: str | None = None
    """The file that it is a part of; None: it is a blob of its own."""
    offset: int | None = None

    @classmethod
    def of(cls, row: Any) -> Stored | None:
        """Of a row with the columns of `KEPT`; None where the job has no result."""
        if row.result_sha256 is None:
            return None
        return cls(row.id, row.result_sha256, row.result_bytes, row.result_pack, row.result_offset)

    @property
    def blob(self) -> str:
        """The name of what it lies in. A blob of its own is named by content: two runs write one."""
        return f"results/{self.job}-{self.sha256}" if self.pack is None else self.pack


def input_of(job: str) -> str:
    """The name of the blob that a job's body lies in."""
    return f"inputs/{job}"


class Results:
    """Results in the storage."""

    def __init__(self, database: Database, blobs: Blobs) -> None:
        self._database, self._blobs = database, blobs
        self._seen: dict[str, float] = {}
        """Bodies without a job, and when `sweep` first saw each."""
        self._doubted: dict[str, Mapping[str, int]] = {}

    def write(self, worker: str, found: Sequence[tuple[str, bytes, str]]) -> list[Stored]:
        """Results, each of a job with its SHA-256, on the disk when this returns.

        Raises StorageError: what was written is nobody's then, and `sweep` finds it.
        """
        self._settle()
        short = [k for k, (_, data, _) in enumerate(found) if len(data) <= SMALL]
        if not self._blobs.local or len(short) < 2:
            short = []
        stored = [Stored(job, digest, len(data)) for job, data, digest in found]
        if short:
            pack = f"packs/{worker}-{uuid.uuid4().hex}"
            offsets = self._blobs.together(pack, [found[k][1] for k in short])
            for k, offset in zip(short, offsets, strict=True):
                stored[k] = Stored(stored[k].job, stored[k].sha256, stored[k].size, pack, offset)
        alone = {s.blob: data for s, (_, data, _) in zip(stored, found, strict=True) if s.pack is None}
        if alone:
            self._blobs.put(alone)
        return stored

    def doubt(self, stored: Iterable[Stored], attempts: Mapping[str, int]) -> None:
        """A transaction failed that was to name these, of these attempts of jobs: not every failure says
        whether it was done. The next `write` looks, so that trying again on a full disk does not fill it."""
        for found in stored:
            if found.pack is not None:
                self._doubted[found.pack] = attempts

    def _settle(self) -> None:
        for pack, attempts in list(self._doubted.items()):
            rows = self._rows(ATTEMPTS, jobs.c.id, attempts)
            if any(row.state == RUNNING and row.attempts == attempts[job] for job, row in rows.items()):
                continue  # it may yet be done
            self._doubted.pop(pack, None)
            if all(row.result_pack != pack for row in rows.values()):
                self._blobs.delete(pack)

    def read(self, stored: Stored) -> Iterator[bytes]:
        """Its bytes. Raises NotFoundError where it is gone, or is not what was written."""
        if stored.size > SMALL:
            if not self._blobs.exists(stored.blob):
                raise self._lost(stored)
            return self._blobs.pieces(stored.blob)
        try:
            if stored.pack is None:
                data = self._blobs.read(stored.blob)
            else:
                data = self._blobs.part(stored.pack, stored.offset or 0, stored.size)
        except NotFoundError:  # which names the file
            raise self._lost(stored) from None
        if hashlib.sha256(data).hexdigest() != stored.sha256:  # damaged, or freed while it was read
            raise self._lost(stored)
        return iter([data])

    def _lost(self, stored: Stored) -> NotFoundError:
        log("result_lost", job=stored.job, bytes=stored.size)
        return NotFoundError("the result is not in the storage any more")

    def forget(self, found: Iterable[Stored]) -> None:
        """Deletes results whose rows are gone, or that no row ever named."""
        packs: dict[str, list[Stored]] = {}
        for stored in found:
            if stored.pack is None:
                self._blobs.delete(stored.blob)
            else:
                packs.setdefault(stored.pack, []).append(stored)
        named = self._named(packs)
        for pack, parts in packs.items():
            if pack not in named:
                self._blobs.delete(pack)
                continue
            for part in parts:
                self._blobs.punch(pack, part.offset or 0, part.size)

    def late(self, stored: Stored) -> None:
        """Deletes a result that ended nothing, unless it is the very one that is kept, or will be: a job that
        begins again writes the same blob."""
        rows = self._rows(KEPT, jobs.c.id, [stored.job])
        if stored.pack is not None or _nobodys(stored.blob, rows.get(stored.job)):
            self.forget([stored])

    def sweep(self) -> int:
        """Deletes files of a local disk that no job has: of workers that died between writing and the
        transaction that ends jobs, of deletions that were cut short. Returns how many.

        A pack is nobody's once its worker, whose name it has, runs no job and no row names it. What such a
        worker writes later has another name.
        """
        if not self._blobs.local:
            return 0
        packs, alone, bodies = (self._blobs.names(f) for f in ("packs", "results", "inputs"))
        at_work = sql.select(jobs.c.worker.label("id")).where(jobs.c.state == RUNNING).distinct()
        with self._database.reading() as connection:
            running = set(connection.scalars(at_work))
        named = self._named(packs)  # after that: whoever ran then may have ended what he ran
        gone = [p for p in packs if p not in named and _owner(p) not in running]
        rows = self._rows(KEPT, jobs.c.id, [_owner(name) for name in alone])
        gone += [name for name in alone if _nobodys(name, rows.get(_owner(name)))]
        gone += self._without_job(bodies)
        self._blobs.delete_files(gone)
        return len(gone)

    def _without_job(self, bodies: list[str]) -> list[str]:
        """Bodies of jobs that ended, and those that had no job an hour ago either."""
        now = time.monotonic()
        rows = self._rows(KEPT, jobs.c.id, [_owner(name) for name in bodies])
        ended = [n for n in bodies if _owner(n) in rows and rows[_owner(n)].state in FINAL]
        strange = [name for name in bodies if _owner(name) not in rows]
        self._seen = {name: self._seen.get(name, now) for name in strange}
        return ended + [name for name, since in self._seen.items() if now - since > FORGOTTEN_S]

    def _named(self, packs: Collection[str]) -> set[str]:
        """Those that some row names."""
        wanted = sql.select(jobs.c.result_pack.label("id")).distinct()
        return set(self._rows(wanted, jobs.c.result_pack, packs))

    def _rows(
        self, wanted: sql.Select[Any], column: sql.ColumnElement[Any], found: Collection[str]
    ) -> dict[str, Any]:
        """Rows by their `id`, where the column is one of these."""
        names = list(found)
        rows: dict[str, Any] = {}
        if not names:
            return rows
        with self._database.reading() as connection:
            for start in range(0, len(names), AT_ONCE):
                some = wanted.where(column.in_(names[start : start + AT_ONCE]))
                rows |= {str(row.id): row for row in connection.execute(some)}
        return rows


def _owner(name: str) -> str:
    """The job, or of a pack the worker, that a blob's name begins with."""
    return name.partition("/")[2].partition("-")[0]


def _nobodys(name: str, row: Any | None) -> bool:
    """Will no row ever name this blob of its own? That of its job is given."""
    if row is None:
        return True
    stored = Stored.of(row)
    return row.state in FINAL and (stored is None or stored.blob != name)
