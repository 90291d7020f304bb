"""The one error tree, the same as in C++: every error names the offending values in its fields."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeAlias

from crenel._crenel import register_errors

FieldValue: TypeAlias = str | int | float | bool | list[int]


class CrenelError(Exception):
    """Base of all errors of the library.

    Attributes
    ----------
    fields : named values, e.g. ``{"level": 0}`` or ``{"rotations": [1, 2, 4]}``: text, numbers, truth values
        and lists of integers
    """

    def __init__(self, message: str, fields: Mapping[str, FieldValue] | None = None) -> None:
        super().__init__(message)
        self.fields: dict[str, FieldValue] = dict(fields or {})

    @property
    def code(self) -> str:
        """Stable machine-readable name of the error, that of its class in C++."""
        return type(self).__name__

    def __reduce__(self) -> tuple[type[CrenelError], tuple[str, dict[str, FieldValue]]]:
        return type(self), (str(self), self.fields)


class ParameterError(CrenelError, ValueError):
    """A parameter set or an argument is outside what is allowed."""


class StateError(CrenelError, RuntimeError):
    """Objects disagree (level, scale, slot count, context, secret key), or one cannot be used now."""


class KeyMissingError(CrenelError, LookupError):
    """An operation needs evaluation keys that were not made.

    ``fields["rotations"]`` lists the rotations without a key, ``fields["key"]`` names other keys; the
    message has the call that makes all that the operation needs. Where keys are there that serve lower
    levels only, ``fields["level"]`` is the level of the operand and ``fields["max_level"]`` what they serve.
    """


class DivergenceError(StateError):
    """A computation on encrypted numbers left the range in which it works: its results mean nothing.

    Only a client can see it. ``fields`` has the place, never a value: of a training ``iteration``, ``what``
    ("row" or "weight"), ``index``, the first such, and ``count``.
    """


class SerializationError(CrenelError, ValueError):
    """Bytes that are truncated, oversized, corrupted, of another context or version; files that fail."""


class FileError(SerializationError, OSError):
    """A file that cannot be read or written: SerializationError, and what the operating system said.

    Raised as the class of both that Python has for the number: with FileNotFoundError, PermissionError,
    IsADirectoryError or NotADirectoryError where it is one of these.

    Attributes
    ----------
    errno, strerror, filename : as of OSError
    """

    def __init__(self, message: str, fields: Mapping[str, FieldValue] | None = None) -> None:
        super().__init__(message, fields)
        number = self.fields.get("errno")
        self.errno = number if isinstance(number, int) else None
        self.strerror = None if self.errno is None else os.strerror(self.errno)
        self.filename = self.fields.get("filename")

    def __str__(self) -> str:
        return str(self.args[0])  # OSError would print number, text and name in its place

    @property
    def code(self) -> str:
        """That of its base, which is the class of the error tree."""
        return SerializationError.__name__


class MissingFileError(FileError, FileNotFoundError):
    """No such file, or a folder of its path is missing."""


class FilePermissionError(FileError, PermissionError):
    """The operating system denies the access."""


class DirectoryFileError(FileError, IsADirectoryError):
    """A directory where a file is expected."""


class FolderError(FileError, NotADirectoryError):
    """Part of the path is a file."""


def _file_error(errno: int) -> type[FileError]:
    """The class of an error of the operating system, by its number."""
    python = type(OSError(errno, ""))
    for kind in FileError.__subclasses__():
        if python in kind.__bases__:
            return kind
    return FileError


class DeviceError(CrenelError, RuntimeError):
    """A device is absent, out of memory, or failed."""


class OutOfMemoryError(DeviceError, MemoryError):
    """Memory of a device or of the host that is not there; wherever it can be, nothing was taken yet.

    ``fields`` has ``needed`` and ``available`` in bytes, ``device`` and ``limit`` (what sets it), and
    ``fits`` where a number of equal things was asked for. ``needed`` is missing where the C++ library
    itself ran out.
    """


class UnsupportedError(CrenelError, NotImplementedError):
    """Meaningful, but not supported by this build, device or parameter set."""


class Cancelled(CrenelError):
    """Work that a program in C++ stopped by its CancelToken; Python stops work by an exception."""


class ServiceError(CrenelError):
    """What a service answers, or a client of one meets, that no computation raises.

    ``fields["retry_after"]``, where it is there, is in how many seconds the same request may succeed.
    """


class AuthenticationError(ServiceError):
    """No token, or one that a service does not know, that it revoked, or whose time is over."""


class NotFoundError(ServiceError, LookupError):
    """A service has no such thing of this tenant, or had it."""


class LimitError(ServiceError):
    """More, or larger, than a service takes from a tenant: ``fields["limit"]`` is how much it takes."""


class KeysNeededError(ServiceError):
    """A service does not hold these evaluation keys (any more): send them again. ``fields["key"]``: which."""


class UnavailableError(ServiceError):
    """A service that cannot answer now: its queue is full, it starts or stops, or its workers died."""


class StorageError(ServiceError):
    """A service's storage takes nothing more, or failed. What was accepted before is not lost."""


class InsecureParametersWarning(UserWarning):
    """Parameters with less than 128 bits of security are in use."""


class KeyModeWarning(UserWarning):
    """Keys were made for another bootstrap than the one asked for, and serve it slowly."""


_by_number: dict[str, type[Exception] | Callable[[int], type[Exception]]] = {"file_error": _file_error}

register_errors(
    _by_number
    | {
        kind.__name__: kind
        for kind in (
            CrenelError,
            ParameterError,
            StateError,
            KeyMissingError,
            SerializationError,
            DeviceError,
            OutOfMemoryError,
            UnsupportedError,
            Cancelled,
            InsecureParametersWarning,
            KeyModeWarning,
        )
    }
)
