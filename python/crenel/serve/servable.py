"""What a service needs of a program, of any kind: bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from crenel import ckks, tfhe
from crenel.nn.archive import Json

Check: TypeAlias = Callable[[], None]
Turn: TypeAlias = Callable[[], AbstractContextManager[object]]
"""A block in which a job has the device for itself."""
HEADER = 1 << 20  # bytes of names and numbers beside keys, at most


@dataclass(frozen=True)
class Reading:
    """Limits of what is read for a stranger, in bytes."""

    key_memory: int
    input_memory: int
    staged_bytes: int | None = None
    """At most so many of the keys on the device at a time, the others in host memory; None: all."""


class Prepared(Protocol):
    """A program with a client's keys on a device."""

    @property
    def nbytes(self) -> int:
        """Of the keys on the device."""
        ...

    def run(self, data: bytes, check: Check, turn: Turn) -> bytes:
        """The answer to one input. `check` is called often and may raise, which stops the run.

        It computes inside one block of `turn`; what it reads before that, it reads while another computes.
        """
        ...


class Loaded(Protocol):
    """A program on a device, to which clients' keys are bound."""

    @property
    def context(self) -> ckks.Context | tfhe.Context:
        """Of its device, which counts the memory that it took."""
        ...

    def prepare(self, keys: Path, reading: Reading) -> Prepared:
        """With keys from an untrusted file; everything about them is checked."""
        ...


class Servable(Protocol):
    """What a service knows of a program. It is sent to worker processes: it holds no device."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def kind(self) -> str:
        """``nn`` or ``function``."""
        ...

    @property
    def program(self) -> str:
        """64 hexadecimal digits."""
        ...

    @property
    def params(self) -> ckks.Params | tfhe.Params:
        """Of the scheme that it computes in."""
        ...

    @property
    def insecure(self) -> bool:
        """Have they less than 128 bits of security?"""
        ...

    @property
    def client_file(self) -> bytes:
        """What a client reads."""
        ...

    @property
    def key_memory(self) -> int:
        """Bytes of one client's keys on the device."""
        ...

    @property
    def largest_key(self) -> int:
        """Bytes of the largest of them: of what is on the device whole or not at all."""
        ...

    @property
    def most_key_memory(self) -> int:
        """The same where every key that the program needs serves the highest level: what is larger holds
        something else."""
        ...

    @property
    def file_bytes(self) -> int:
        """About how much one client's keys take in a file."""
        ...

    @property
    def most_file_bytes(self) -> int:
        """The largest file that holds the program's keys."""
        ...

    @property
    def reading_bytes(self) -> int:
        """Bytes of memory that reading them takes at most."""
        ...

    def facts(self) -> dict[str, Json]:
        """Members of its description that are its kind's own."""
        ...

    def load(self, device: str) -> Loaded:
        """On a device. Raises DeviceError, OutOfMemoryError."""
        ...
