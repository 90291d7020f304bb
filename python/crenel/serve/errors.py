"""One table: each class of the library's errors, its status in HTTP, and whether trying again may help."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from crenel import errors
from crenel.errors import CrenelError, FieldValue


@dataclass(frozen=True)
class Row:
    """How an error travels."""

    status: int
    title: str
    retry: bool = False


TABLE: dict[type[Exception], Row] = {
    errors.ParameterError: Row(400, "The request is malformed."),
    errors.StateError: Row(409, "The thing is in another state."),
    errors.DivergenceError: Row(422, "The computation left its range."),
    errors.KeyMissingError: Row(422, "Evaluation keys are missing in the file."),
    errors.SerializationError: Row(422, "The body is damaged, or of other parameters."),
    errors.FileError: Row(500, "A file of the service failed.", True),
    errors.MissingFileError: Row(500, "A file of the service failed.", True),
    errors.FilePermissionError: Row(500, "A file of the service failed.", True),
    errors.DirectoryFileError: Row(500, "A file of the service failed.", True),
    errors.FolderError: Row(500, "A file of the service failed.", True),
    errors.DeviceError: Row(503, "The device failed.", True),
    errors.OutOfMemoryError: Row(503, "The device is out of memory.", True),
    errors.UnsupportedError: Row(501, "The service cannot do this."),
    errors.Cancelled: Row(409, "The job was cancelled."),
    errors.ServiceError: Row(500, "The service refused."),
    errors.AuthenticationError: Row(401, "A bearer token is needed."),
    errors.NotFoundError: Row(404, "There is no such thing."),
    errors.LimitError: Row(429, "A limit is reached.", True),
    errors.KeysNeededError: Row(409, "Evaluation keys must be sent again."),
    errors.UnavailableError: Row(503, "The service cannot answer now.", True),
    errors.StorageError: Row(507, "The service's storage takes nothing more.", True),
    errors.CrenelError: Row(500, "The service failed.", True),
}
RETRY_AFTER = 5
SECRETIVE = ("filename", "path")  # fields that tell of the service's own machine


@dataclass(frozen=True)
class Problem:
    """An error as it is sent (RFC 9457) and stored."""

    status: int
    code: str
    detail: str
    fields: dict[str, FieldValue]
    retry: bool
    title: str

    @classmethod
    def of(cls, error: CrenelError, status: int | None = None, retry: bool | None = None) -> Problem:
        """Of an error; `status` and `retry` where a route has its own."""
        row = next(TABLE[kind] for kind in type(error).__mro__ if kind in TABLE)
        shown = {k: v for k, v in error.fields.items() if k not in SECRETIVE}
        detail = row.title if row.status == 500 else str(error)
        again = row.retry if retry is None else retry
        return cls(status or row.status, error.code, detail, shown, again, row.title)

    @property
    def retry_after(self) -> int:
        """Seconds, for the header."""
        found = self.fields.get("retry_after")
        return int(found) if isinstance(found, (int, float)) else RETRY_AFTER

    def document(self) -> dict[str, object]:
        """As JSON."""
        return {
            "type": f"urn:crenel:error:{self.code}", "title": self.title, "status": self.status,
            "detail": self.detail, "code": self.code, "fields": self.fields, "retry": self.retry,
        }  # fmt: skip

    def to_json(self) -> str:
        """Text for the database."""
        return json.dumps(self.document())


def error_of(document: Mapping[str, object]) -> CrenelError:
    """The library's error of a problem document, as a client raises it: an unknown code is a ServiceError."""
    kind = getattr(errors, str(document.get("code")), errors.ServiceError)
    if not (isinstance(kind, type) and issubclass(kind, CrenelError)):
        kind = errors.ServiceError
    found = document.get("fields")
    shown = dict(found) if isinstance(found, dict) else {}
    return kind(str(document.get("detail") or document.get("title") or "the service refused"), shown)
