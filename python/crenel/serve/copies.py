"""Copies of key files that a worker keeps near: in memory, and on its disk where blobs are elsewhere."""

from __future__ import annotations

import os
import re
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from crenel.serve.blobs import FULL, Blobs, translated
from crenel.serve.keys import blob_of

COPY, PART = re.compile("[0-9a-f]{64}"), re.compile(r"[0-9a-f]{64}\.[0-9a-f]{32}\.part")
LEFT_S = 3600.0  # so long nobody wrote to the part of a copy: who did so is gone


class MemoryFile:
    """A copy of a file that lies in memory and is read by a path, until nobody has it any more."""

    def __init__(self, source: Path) -> None:
        self._file = os.memfd_create("crenel-keys", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        with source.open("rb") as file:
            done = 0
            while sent := os.sendfile(self._file, file.fileno(), done, 1 << 24):
                done += sent

    @property
    def path(self) -> Path:
        """For this process."""
        return Path(f"/proc/self/fd/{self._file}")


class Copies:
    """A folder of copies, which workers of one service and machine share; each is named by its key's hash.

    budget : bytes that the copies take; one that is larger is there alone
    """

    def __init__(self, folder: Path, budget: int, blobs: Blobs) -> None:
        self._folder, self._budget, self._blobs = folder, budget, blobs

    @contextmanager
    def file(self, key: str) -> Iterator[Path]:
        """The copy, made where there is none; readable until the block ends, whoever deletes it meanwhile.

        Raises NotFoundError where the storage has no such keys, StorageError and UnavailableError.
        """
        with translated():
            file = self._opened(key)
        with file:
            yield Path(f"/proc/self/fd/{file.fileno()}")

    @property
    def names(self) -> set[str]:
        """Keys of which there is a copy, or a part that whoever wrote it left. Raises StorageError."""
        with translated():
            return {path.name[:64] for path, status in self._found() if _may_go(path, status)}

    def drop(self, key: str) -> None:
        """Forgets a copy, and parts of it that were left. Raises StorageError."""
        with translated():
            for path, status in self._found():
                if path.name[:64] == key and _may_go(path, status):
                    path.unlink(missing_ok=True)

    def _opened(self, key: str) -> BinaryIO:
        with suppress(FileNotFoundError):
            file = (self._folder / key).open("rb")
            os.utime(file.fileno())
            return file
        try:
            return self._copied(key)
        except OSError as error:
            if error.errno not in FULL or self._shrink(key, 0) == 0:
                raise
        return self._copied(key)

    def _copied(self, key: str) -> BinaryIO:
        """A new copy, under a name of its own until it is whole and on the disk."""
        self._folder.mkdir(parents=True, exist_ok=True)
        beside = self._folder / f"{key}.{uuid.uuid4().hex}.part"
        file = beside.open("w+b")
        try:
            for piece in self._blobs.pieces(blob_of(key)):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            beside.replace(self._folder / key)
        except BaseException:
            with suppress(OSError):
                file.close()
            beside.unlink(missing_ok=True)
            raise
        self._shrink(key, self._budget)
        return file

    def _shrink(self, key: str, budget: int) -> int:
        """Drops others, the least recently used first, while more bytes are there; returns how many went."""
        found = sorted(self._found(), key=lambda f: f[1].st_mtime)
        total, gone = sum(status.st_size for _, status in found), 0
        for path, status in found:
            if total <= budget:
                break
            if path.name == key or not _may_go(path, status):
                continue
            path.unlink(missing_ok=True)
            total, gone = total - status.st_size, gone + 1
        return gone

    def _found(self) -> list[tuple[Path, os.stat_result]]:
        found: list[tuple[Path, os.stat_result]] = []
        with suppress(FileNotFoundError):  # the folder comes with its first copy
            for path in self._folder.iterdir():
                with suppress(FileNotFoundError):  # another worker was faster
                    found.append((path, path.stat()))
        return found


def _may_go(path: Path, status: os.stat_result) -> bool:
    """Is it a copy, or a part that was left? What another worker writes now is its own."""
    if COPY.fullmatch(path.name):
        return True
    return PART.fullmatch(path.name) is not None and time.time() - status.st_mtime > LEFT_S
