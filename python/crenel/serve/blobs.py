"""Bytes by name over fsspec: written whole or not at all, read, joined, deleted."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import re
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fsspec

from crenel.errors import CrenelError, NotFoundError, ParameterError, StorageError, UnavailableError
from crenel.serve.observe import log

NAME = re.compile(r"[a-z0-9_-]+(/[a-z0-9_-]+)*")
PIECE = 1 << 20
PAGE = 4096  # bytes: what file systems free at least
KEEP_SIZE, PUNCH_HOLE = 1, 2  # of fallocate(2)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Also of a file system that writes anew what it changes and is full, and of a sandbox without the call.
NOT_FREED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, *FULL)


class Blobs:
    """A place for bytes: a local folder, or what fsspec reaches by its URL.

    min_free_bytes : a local disk with less than this refuses to take more (StorageError)
    """

    def __init__(self, url: str, min_free_bytes: int = 0) -> None:
        self._reserving, self._reserved = threading.Lock(), 0
        self.files, self.root = fsspec.core.url_to_fs(url)
        self.local = "file" in _protocols(self.files)
        self.min_free_bytes = min_free_bytes
        with self._translated():
            if self.local:
                private(Path(self.root))
            else:
                self.files.makedirs(self.root, exist_ok=True)

    def _translated(self, name: str = "") -> contextlib.AbstractContextManager[None]:
        return translated(name) if self.local else _of_a_store(name)

    def room(self, needed: int = 0) -> None:
        """Raises StorageError where a local disk has no room for so many bytes."""
        if not self.local:
            return
        with self._reserving:
            self._room(needed)

    def _room(self, needed: int) -> None:
        free = shutil.disk_usage(self.root).free - self._reserved
        if free - needed < self.min_free_bytes:
            raise StorageError(
                f"no room for {needed} bytes: {free} are free and not promised to other requests, of which "
                f"{self.min_free_bytes} stay so",
                {"needed": needed, "available": max(0, free), "retry_after": 30},
            )

    @contextmanager
    def reserved(self, needed: int) -> Iterator[Reserved]:
        """Room for so many bytes until the block ends, beside what other requests of this process reserved.
        Raises StorageError."""
        with self._reserving:
            if self.local:
                self._room(needed)
            self._reserved += needed
        made = Reserved(self, needed)
        try:
            yield made
        finally:
            made.used(made.left)

    def _unreserve(self, nbytes: int) -> None:
        with self._reserving:
            self._reserved -= nbytes

    def write(self, name: str, data: Iterable[bytes]) -> int:
        """A new blob, or the old one replaced; on the disk when this returns. Returns its size.

        Raises StorageError where there is no room; nothing of the blob is left then.
        """
        writer = self.writer(name)
        try:
            for piece in data:
                writer.write(piece)
        except BaseException:
            writer.abort()
            raise
        return writer.commit()

    def writer(self, name: str) -> Writer:
        """A blob that is written piece by piece; there once it is committed. Raises StorageError."""
        path = self._path(name)
        with self._translated():
            self._folder_of(path)
            return Writer(self, path)

    def put(self, found: Mapping[str, bytes]) -> None:
        """Several blobs at once, all on the disk when this returns: one sync of each folder for all of them.
        Raises StorageError; those that were written before stay, and may be written again."""
        if not self.local:
            for name, data in found.items():
                self.write(name, [data])
            return
        paths = {self._path(name): data for name, data in found.items()}
        with self._translated():
            for path in paths:
                self._folder_of(path)
            _put(paths)
            for folder in {os.path.dirname(path) for path in paths}:
                _sync(folder)

    def together(self, name: str, found: Sequence[bytes]) -> list[int]:
        """A new blob of a local disk, of several parts; all on the disk when this returns where each begins,
        at multiples of `PAGE`: what is punched is free then. Raises StorageError, and nothing is left."""
        path = self._path(name)
        places, end = [], 0
        with self._translated():
            self._folder_of(path)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            try:
                for data in found:
                    places.append(end)
                    _written(file, data, end)
                    end += -(-len(data) // PAGE) * PAGE
                os.fsync(file)
                _sync_folder(path)
            except BaseException:
                os.unlink(path)
                raise
            finally:
                os.close(file)
        return places

    def part(self, name: str, offset: int, size: int) -> bytes:
        """Bytes of a local blob; fewer where it ends before. Raises NotFoundError."""
        with self._translated(name):
            file = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read(file, offset, size)
            finally:
                os.close(file)

    def punch(self, name: str, offset: int, size: int) -> None:
        """Frees a part of a local blob, which reads as zeros then; a file system that cannot, or not now,
        keeps the bytes until the blob is deleted. None of the name is no error."""
        with contextlib.suppress(NotFoundError), self._translated():
            file = os.open(self._path(name), os.O_WRONLY | os.O_CLOEXEC)
            try:
                _punch(file, offset, -(-size // PAGE) * PAGE)
            finally:
                os.close(file)

    def names(self, folder: str) -> list[str]:
        """Blobs of a folder, without those that are being written to a local disk."""
        path = self._path(folder)
        with self._translated():
            try:
                if self.local:
                    found = os.listdir(path)
                else:
                    self.files.invalidate_cache(path)  # others write, too
                    found = [entry.rpartition("/")[2] for entry in self.files.ls(path, detail=False)]
            except FileNotFoundError:
                return []
        return [f"{folder}/{name}" for name in found if NAME.fullmatch(name)]

    def _folder_of(self, path: str) -> None:
        if not self.local:
            self.files.makedirs(self.files._parent(path), exist_ok=True)
            return
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            _sync_folder(folder)  # its own name, too, is on the disk before anything in it counts

    def pieces(self, name: str) -> Iterator[bytes]:
        """Its bytes, piece after piece. Raises NotFoundError."""
        with self._translated(name), self.files.open(self._path(name), "rb") as file:
            while piece := file.read(PIECE):
                yield piece

    def read(self, name: str) -> bytes:
        """All its bytes. Raises NotFoundError."""
        if not self.local:
            return b"".join(self.pieces(name))
        with self._translated(name):
            file = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read(file, 0, os.fstat(file).st_size)
            finally:
                os.close(file)

    def join(self, names: list[str], target: str) -> str:
        """One blob of several, in their order. Returns its SHA-256. Raises NotFoundError, StorageError."""
        digest = hashlib.sha256()

        def seen() -> Iterator[bytes]:
            for name in names:
                for piece in self.pieces(name):
                    digest.update(piece)
                    yield piece

        self.write(target, seen())
        return digest.hexdigest()

    def move(self, source: str, target: str) -> None:
        """Another name for a blob, in the place of what had it. Raises NotFoundError."""
        path = self._path(target)
        with self._translated(source):
            self._folder_of(path)
            if self.local:
                os.replace(self._path(source), path)
                _sync_folder(path)
            else:
                self.files.mv(self._path(source), path)

    def exists(self, name: str) -> bool:
        """Is there a blob of this name? Raises StorageError, UnavailableError: fsspec's own says no then."""
        try:
            self.size(name)
        except NotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        """Bytes of a blob. Raises NotFoundError."""
        with self._translated(name):
            return int(self.files.size(self._path(name)))

    def delete(self, name: str) -> None:
        """Deletes a blob, or all below a name; none is no error."""
        path = self._path(name)
        with self._translated():
            try:
                if self.local:
                    with contextlib.suppress(IsADirectoryError):
                        os.unlink(path)
                        return
                self.files.rm(path, recursive=True)
            except FileNotFoundError:
                return

    def delete_files(self, names: Iterable[str]) -> None:
        """Deletes blobs, none of them a name above others; none is no error."""
        if not self.local:
            for name in names:
                self.delete(name)
            return
        paths = [self._path(name) for name in names]
        with self._translated():
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)

    def path(self, name: str) -> Path | None:
        """The file of a local blob; None where blobs are elsewhere."""
        return Path(self._path(name)) if self.local else None

    def _path(self, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ParameterError(f"{name!r} is no name of a blob", {"name": name})
        return f"{self.root}/{name}"


class Reserved:
    """Bytes of a disk that a request will write. See `Blobs.reserved`."""

    def __init__(self, blobs: Blobs, nbytes: int) -> None:
        self._blobs, self.left = blobs, nbytes

    def used(self, nbytes: int) -> None:
        """So many are written: the disk itself says that they are gone."""
        nbytes = min(nbytes, self.left)
        self.left -= nbytes
        self._blobs._unreserve(nbytes)


class Writer:
    """A blob on its way: `write` as often as needed, then `commit` or `abort`. See `Blobs.writer`."""

    def __init__(self, blobs: Blobs, path: str) -> None:
        self._blobs, self._path, self.size = blobs, path, 0
        self._beside = f"{path}.{uuid.uuid4().hex}.part" if blobs.local else path
        self._file: Any = blobs.files.open(self._beside, "wb")

    def write(self, piece: bytes) -> None:
        """One piece more. Raises StorageError; `abort` then."""
        with self._blobs._translated():
            self._file.write(piece)
        self.size += len(piece)

    def commit(self) -> int:
        """The blob is there, and on the disk. Returns its size. Raises StorageError, and nothing is left."""
        try:
            with self._blobs._translated():
                if self._blobs.local:
                    self._file.flush()
                    os.fsync(self._file.fileno())
                self._file.close()
                if self._blobs.local:
                    os.replace(self._beside, self._path)
                    _sync_folder(self._path)
        except BaseException:
            self.abort()
            raise
        return self.size

    def abort(self) -> None:
        """Nothing of it stays."""
        if self._blobs.local:
            with contextlib.suppress(OSError):
                self._file.close()
            Path(self._beside).unlink(missing_ok=True)
            return
        with contextlib.suppress(StorageError, UnavailableError, NotFoundError), self._blobs._translated():
            self._file.discard()  # of fsspec's buffered files: parts that were sent are given up
        with contextlib.suppress(AttributeError):  # of files that are in memory only
            self._file.closed = True  # else collecting it writes what was given up


def private(folder: Path) -> None:
    """Makes a folder that only its owner reads; one that is there stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _protocols(files: Any) -> tuple[str, ...]:
    found = files.protocol
    return (found,) if isinstance(found, str) else tuple(found)


def _put(found: Mapping[str, bytes]) -> None:
    """Files whose bytes are on the disk; their names are once their folders are synced.

    All are written before the first is synced: what that writes of the file system's own is of all of them.
    """
    with contextlib.ExitStack() as files:
        beside: dict[str, str] = {}
        try:
            opened = []
            for path, data in found.items():
                beside[path] = f"{path}.{uuid.uuid4().hex}.part"
                opened.append(files.enter_context(open(beside[path], "wb", buffering=0)))
                _written(opened[-1].fileno(), data)
            for file in opened:
                os.fsync(file.fileno())
            for path in found:
                os.replace(beside.pop(path), path)
        except BaseException:
            for path in beside.values():
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise


def _read(file: int, offset: int, size: int) -> bytes:
    """So many bytes, or as many as there are."""
    data = os.pread(file, size, offset)
    while len(data) < size and (more := os.pread(file, size - len(data), offset + len(data))):
        data += more
    return data


def _written(file: int, data: bytes, offset: int = 0) -> None:
    """All of it: a system may take less at a time."""
    left = memoryview(data)
    while left:
        done = os.pwrite(file, left, offset)
        left, offset = left[done:], offset + done


@cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """Linux' call, which Python does not have; None where the system has none for offsets of 64 bits."""
    system = ctypes.CDLL(None, use_errno=True)
    names = ["fallocate64", *(["fallocate"] if ctypes.sizeof(ctypes.c_long) == 8 else [])]
    call = next((getattr(system, name) for name in names if hasattr(system, name)), None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return call


def _punch(file: int, offset: int, size: int) -> None:
    call = _fallocate()
    while call is not None and size and call(file, KEEP_SIZE | PUNCH_HOLE, offset, size) != 0:
        number = ctypes.get_errno()
        if number in NOT_FREED:
            return
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def _sync_folder(path: str) -> None:
    """The new name, too, is on the disk."""
    _sync(os.path.dirname(path))


def _sync(path: str) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def translated(name: str = "") -> Iterator[None]:
    """What the system says of files, in the library's errors. Raises NotFoundError, of the name,
    StorageError, and UnavailableError where a connection failed."""
    try:
        yield
    except CrenelError:  # which may be one of the system's, too
        raise
    except FileNotFoundError:
        raise NotFoundError(f"no blob {name}", {"name": name}) from None
    except (ConnectionError, TimeoutError) as error:
        raise _unavailable(error) from error
    except OSError as error:
        if error.errno in FULL:
            raise StorageError("the disk is full", {"retry_after": 30}) from None
        raise StorageError(f"storage failed: {os.strerror(error.errno or 0)}", {"retry_after": 30}) from error


@contextmanager
def _of_a_store(name: str) -> Iterator[None]:
    """As `translated`, and of whatever else a store's package raises: their errors have no common base."""
    try:
        with translated(name):
            yield
    except CrenelError:
        raise
    except Exception as error:
        log("store_failed", code=type(error).__name__)
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> UnavailableError:
    return UnavailableError(f"the store does not answer ({type(error).__name__})", {"retry_after": 5})
