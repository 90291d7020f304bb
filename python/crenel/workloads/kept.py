"""What a client and a server keep on the disk, so that a run that was stopped goes on where it was.

A checkpoint is of ciphertexts under one secret key, made of encryptions that cannot be made a second time:
whoever plays both sides keeps the key, what was encrypted, and the checkpoint in one folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from crenel import ckks
from crenel._crenel import write_file
from crenel.errors import ParameterError, SerializationError, StateError
from crenel.workloads.files import opened

FORMAT = 1
DESCRIPTION, SECRET, CHECKPOINT = "run.json", "secret.key", "checkpoint.crn"


class Kept:
    """A folder of one run: what it is, the client's secret key (mode 0600), what was sent, the checkpoint."""

    def __init__(self, folder: Path, run: Mapping[str, str | int | float]) -> None:
        """
        Parameters
        ----------
        folder : is made where it is not there; only its owner may look in
        run : what decides the run: parameters, data, options

        Raises StateError for the folder of another run, ParameterError for one that holds other files,
        FileError, SerializationError.
        """
        self.folder = folder
        there = folder / DESCRIPTION
        if there.exists():
            self._compare(there, run)
            return
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ParameterError(
                f"{folder} is there and holds no run; name a new folder", {"path": str(folder)}
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(there, json.dumps({"format": FORMAT, "run": dict(run)}, indent=1).encode())

    @property
    def checkpoint(self) -> Path:
        """The server's file."""
        return self.folder / CHECKPOINT

    def client(self, context: ckks.Context) -> ckks.Client:
        """The client of before, or a new one whose secret key is kept.

        Raises StateError where the key alone is gone: a new one would not open what is there.
        """
        path = self.folder / SECRET
        if path.exists():
            with opened(path) as file:
                return context.client_from_secret_key(file.read())
        there = sorted(other.name for other in self.folder.iterdir() if other.name != DESCRIPTION)
        if there:
            raise StateError(
                f"{path} is not there, and {there[0]} is: bring the secret key back, or name another folder",
                {"path": str(path), "found": there[0]},
            )
        client = context.keygen()
        write_file(path, client.export_secret_key(), secret=True)
        return client

    def sent(self, name: str, make: Callable[[], Sequence[bytes]]) -> list[bytes]:
        """Files that were sent before under this name, or those of `make`, which are kept."""
        done = self.folder / f"{name}.json"
        if not done.exists():
            parts = make()
            for number, part in enumerate(parts):
                write_file(self.folder / f"{name}-{number}.safetensors", part)
            # Written last: where it is, all parts are.
            write_file(done, json.dumps({"parts": len(parts)}).encode())
            return list(parts)
        count = _document(done).get("parts")
        if type(count) is not int or count < 0:
            raise SerializationError(f"{done}: parts {count!r}, expected a number", {"path": str(done)})
        found = []
        for number in range(count):
            with opened(self.folder / f"{name}-{number}.safetensors") as file:
                found.append(file.read())
        return found

    def _compare(self, path: Path, run: Mapping[str, str | int | float]) -> None:
        before = _document(path).get("run")
        if not isinstance(before, dict):
            raise SerializationError(f"{path}: no description of a run", {"path": str(path)})
        for name in sorted({*before, *run}):
            if before.get(name) != run.get(name):
                raise StateError(
                    f"{os.fspath(self.folder)} is of a run with {name} {before.get(name)!r}, this one has "
                    f"{run.get(name)!r}: give the options of that run, or a new folder",
                    {"path": str(self.folder), "what": name},
                )


def _document(path: Path) -> dict[str, object]:
    with opened(path) as file:
        try:
            found = json.loads(file.read())
        except ValueError as error:
            raise SerializationError(f"{path}: {error}", {"path": str(path)}) from None
    if not isinstance(found, dict):
        raise SerializationError(f"{path}: no object", {"path": str(path)})
    return found
