"""What a worker holds of tenants' keys: expanded on its device, files in memory, copies on its disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from crenel.errors import DeviceError, FileError, NotFoundError, ParameterError, StorageError
from crenel.serve.blobs import Blobs, translated
from crenel.serve.copies import Copies, MemoryFile
from crenel.serve.keys import blob_of, needed
from crenel.serve.observe import log
from crenel.serve.patience import servers_own
from crenel.serve.programs import Programs
from crenel.serve.residency import Residency
from crenel.serve.servable import HEADER, Loaded, Prepared, Reading, Servable
from crenel.serve.settings import Settings

Held = Callable[[Collection[str]], set[tuple[str, str]]]
"""Of hashes of keys, those that a tenant has, each with the program that they are for."""


class Tiers:
    """Of one worker. Threads may share them.

    loaded : programs on the device, by fingerprint

    Raises ParameterError where the device has no room for the keys of a program.
    """

    def __init__(
        self,
        settings: Settings,
        programs: Programs,
        loaded: Mapping[str, Loaded],
        blobs: Blobs,
        worker: str,
    ) -> None:
        for servable in programs:
            _fits(servable, settings.device_bytes)
        self._settings, self._programs, self._loaded, self._blobs = settings, programs, loaded, blobs
        self._worker = worker
        self.device: Residency[Prepared] = Residency(settings.device_bytes)
        self.host: Residency[MemoryFile] = Residency(settings.host_bytes)
        self.disk = None if blobs.local else Copies(Path(settings.cache), settings.cache_bytes, blobs)
        self._untidy = False

    @property
    def keys(self) -> set[str]:
        """Hashes of the key files that are ready on the device, for any program."""
        return {name.partition("/")[2] for name in self.device.names}

    @contextmanager
    def prepared(self, program: str, key: str) -> Iterator[Prepared]:
        """The program with these keys, on the device until the block ends. Out of memory: once more, alone.

        Raises NotFoundError for another program, KeysNeededError where the storage has no such keys, what is
        wrong with them, DeviceError, OutOfMemoryError, StorageError and UnavailableError.
        """
        servable = self._programs.get(program)
        wanted, budget = servable.key_memory, self._settings.device_bytes
        if bound(program, key) not in self.device:
            with _needed(key):
                halves = self._blobs.size(blob_of(key))
            # Keys may serve higher levels than the program needs; a header is no key.
            if halves > wanted // 2 + HEADER:
                wanted = max(wanted, min(2 * halves, servable.most_key_memory))

        def make() -> tuple[Prepared, int]:
            staged = budget if wanted > budget else None
            # Staged keys are in host memory, and what has room of them on the device as well.
            most = min(self._settings.key_memory, servable.reading_bytes + (staged or 0))
            reading = Reading(most, self._settings.input_memory, staged)
            with self._file(key) as file:
                try:
                    made = self._loaded[program].prepare(file, reading)
                except FileError as error:  # of the disk; what is wrong within the file is another class
                    raise (servers_own(error) or error) from error
            return made, made.nbytes

        def patient() -> tuple[Prepared, int]:
            try:
                return make()
            except MemoryError as error:
                log("out_of_memory", worker=self._worker, key=key, code=type(error).__name__)
                if self.device.shrink() + self.host.shrink() == 0:
                    raise
            return make()

        with self.device.lease(bound(program, key), min(wanted, budget), patient) as found:
            yield found

    @contextmanager
    def _file(self, key: str) -> Iterator[Path]:
        """The key file: in host memory where it has room, else on the disk. Raises KeysNeededError."""
        with ExitStack() as stack:
            with _needed(key):
                local = self._blobs.path(blob_of(key))
                if local is None:
                    assert self.disk is not None
                    local = stack.enter_context(self.disk.file(key))
                path = local
                with translated(blob_of(key)):
                    size = path.stat().st_size
                if size > self._settings.host_bytes:
                    found = path
                else:
                    made = stack.enter_context(self.host.lease(key, size, lambda: _copy(path, size)))
                    found = made.path
            yield found

    def shrink(self) -> None:
        """Drops what nobody uses, and gives idle memory back: a computation found none. Its caller has the
        device for itself."""
        self.device.shrink()
        self.host.shrink()
        self._trim()

    def keep(self, held: Held) -> int:
        """Drops what no tenant has any more; what is in use goes when that ends. Returns how many went.

        held : asked once for all that is here. Raises what it raises, and StorageError of the disk once
            device and memory are done: a disk that fails keeps nothing there.
        """
        device, host = self.device.names, self.host.names
        disk: set[str] = set()
        trouble: StorageError | None = None
        try:
            if self.disk is not None:
                disk = self.disk.names
        except StorageError as error:
            trouble = error
        gone = self._kept(held, device, host, disk)
        if trouble is not None:
            raise trouble
        return gone

    def _kept(self, held: Held, device: set[str], host: set[str], disk: set[str]) -> int:
        names = {name.partition("/")[2] for name in device} | host | disk
        if not names:
            return 0
        theirs = held(names)
        kept, keys = {bound(program, key) for program, key in theirs}, {key for _, key in theirs}
        for name in device - kept:
            self.device.drop(name)
            self._untidy = True
        for key in host - keys:
            self.host.drop(key)
        for key in disk - keys:
            assert self.disk is not None
            self.disk.drop(key)
        return len(device - kept) + len(host - keys) + len(disk - keys)

    def settle(self) -> None:
        """Gives back to the device what keys had that `keep` dropped. Its caller has the device for
        itself."""
        if self._untidy and not self.device.leaving:
            self._untidy = False
            self._trim()

    def _trim(self) -> None:
        for loaded in self._loaded.values():
            with suppress(DeviceError):  # the next job says so
                loaded.context.device.trim()


def bound(program: str, key: str) -> str:
    """What is resident is a program with keys: one file may serve several programs, of several tenants."""
    return f"{program}/{key}"


def _copy(path: Path, size: int) -> tuple[MemoryFile, int]:
    with translated():
        return MemoryFile(path), size


@contextmanager
def _needed(key: str) -> Iterator[None]:
    """What is not in the storage must be sent again."""
    try:
        yield
    except NotFoundError:
        raise needed(key) from None


def _fits(servable: Servable, budget: int) -> None:
    """Raises ParameterError where not even two keys of the program at a time have room on the device."""
    least = min(servable.key_memory, 2 * servable.largest_key)
    if budget < least:
        raise ParameterError(
            f"the setting device_bytes is {budget}, the keys of {servable.name} need at least {least}",
            {"name": "device_bytes", "needed": least},
        )
