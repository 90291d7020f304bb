"""The one error tree, the same as in C++: every error names the offending values in its fields."""

from __future__ import annotations

from collections.abc import Mapping

from crenel._crenel import register_errors


class CrenelError(Exception):
    """Base of all errors of the library.

    Attributes
    ----------
    fields : named values, e.g. ``{"level": "0"}``, as text
    """

    def __init__(self, message: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields: dict[str, str] = dict(fields or {})

    @property
    def code(self) -> str:
        """Stable machine-readable name of the error, that of its class in C++."""
        return type(self).__name__

    def __reduce__(self) -> tuple[type[CrenelError], tuple[object, ...]]:
        return type(self), (str(self), self.fields)


class ParameterError(CrenelError, ValueError):
    """A parameter set or an argument is outside what is allowed."""


class StateError(CrenelError, RuntimeError):
    """Objects disagree (level, scale, slot count, context, secret key), or one cannot be used now."""


class KeyMissingError(CrenelError, LookupError):
    """An operation needs an evaluation key that was not generated; ``fields["rotation"]`` names it."""


class SerializationError(CrenelError, ValueError):
    """Bytes that are truncated, oversized, corrupted, of another context or version; files that fail."""


class DeviceError(CrenelError, RuntimeError):
    """A device is absent, out of memory, or failed."""


class UnsupportedError(CrenelError, NotImplementedError):
    """Meaningful, but not supported by this build, device or parameter set."""


class InsecureParametersWarning(UserWarning):
    """Parameters with less than 128 bits of security are in use."""


register_errors(
    {
        kind.__name__: kind
        for kind in (
            CrenelError,
            ParameterError,
            StateError,
            KeyMissingError,
            SerializationError,
            DeviceError,
            UnsupportedError,
            InsecureParametersWarning,
        )
    }
)
