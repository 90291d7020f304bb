"""Resumable uploads of key files: tus 1.0.0 with creation, checksum, termination and expiration.

A chunk is a blob of its own and a row that says where it begins, written in one transaction that compares the
offset: whatever dies in between leaves the upload as it was. Nothing is locked: of two senders one wins.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sql

from crenel.errors import (
    LimitError,
    NotFoundError,
    ParameterError,
    SerializationError,
    StateError,
    UnavailableError,
)  # fmt: skip
from crenel.serve.auth import Tenant
from crenel.serve.blobs import Blobs
from crenel.serve.database import Database, keys, parts, uploads
from crenel.serve.keys import Keys
from crenel.serve.programs import Programs
from crenel.serve.settings import Settings

HASH = re.compile(r"[0-9a-f]{64}")
EXTENSIONS = "creation,checksum,termination,expiration"
JOIN_S = 5.0


@dataclass(frozen=True)
class Upload:
    """Where an upload stands."""

    id: str
    sha256: str
    length: int
    offset: int
    expires: float
    finished: bool


def metadata_of(header: str | None) -> dict[str, str]:
    """tus' ``name base64,name base64``. Raises ParameterError."""
    found = {}
    for entry in (header or "").split(","):
        name, _, value = entry.strip().partition(" ")
        try:
            found[name] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise ParameterError(f"Upload-Metadata: {name[:40]!r} is not base64 of text") from None
    return found


def checksum_of(header: str | None) -> bytes | None:
    """The SHA-256 of a chunk from ``sha256 BASE64``. Raises ParameterError for what is none."""
    if header is None:
        return None
    algorithm, _, value = header.partition(" ")
    try:
        found = base64.b64decode(value, validate=True)
    except binascii.Error:
        found = b""
    if algorithm != "sha256" or len(found) != 32:
        raise ParameterError("Upload-Checksum: expected sha256 and 32 bytes in base64")
    return found


class Uploads:
    """Uploads of tenants."""

    def __init__(
        self, database: Database, blobs: Blobs, settings: Settings, programs: Programs, stored: Keys
    ) -> None:
        self._database, self._blobs, self._settings = database, blobs, settings
        self._programs, self._keys = programs, stored
        self._joining: set[str] = set()
        self._changed = threading.Condition()

    def create(self, tenant: Tenant, length: int, metadata: Mapping[str, str]) -> Upload:
        """A new one. Raises ParameterError, NotFoundError for a program that is not served, LimitError,
        StorageError."""
        settings = self._settings
        sha256, replaces = metadata.get("sha256", ""), metadata.get("replaces") or None
        if not HASH.fullmatch(sha256) or (replaces and not HASH.fullmatch(replaces)):
            raise ParameterError("Upload-Metadata needs program and sha256, and replaces only as a hash")
        if length < 1:
            raise ParameterError("Upload-Length must be positive", {"length": length})
        servable = self._programs.get(metadata.get("program", ""))
        program, most = servable.program, min(settings.key_bytes, servable.most_file_bytes)
        if length > most:
            raise LimitError(f"{length} bytes; keys of {servable.name} have at most {most}", {"limit": most})
        self._blobs.room(2 * length)  # chunks, and the file that they become
        now = time.time()
        row = {
            "id": uuid.uuid4().hex, "tenant": tenant.id, "program": program, "sha256": sha256,
            "replaces": replaces, "length": length, "offset": 0, "finished": 0, "created": now,
            "expires": now + settings.upload_ttl,
        }  # fmt: skip
        with self._database.writing() as connection:
            self._within(connection, tenant, length)
            connection.execute(sql.insert(uploads).values(**row))
        return self.get(tenant, str(row["id"]))

    def get(self, tenant: Tenant, upload: str) -> Upload:
        """Raises NotFoundError."""
        with self._database.reading() as connection:
            return self._found(connection, tenant, upload)

    def blob_of(self, upload: Upload) -> str:
        """A name for its next chunk that no other sender has."""
        return f"uploads/{upload.id}/{upload.offset:016x}-{uuid.uuid4().hex}"

    def expect(self, tenant: Tenant, upload: str, offset: int) -> Upload:
        """Raises StateError, with the right offset, where the upload stands elsewhere; NotFoundError."""
        found = self.get(tenant, upload)
        if found.offset != offset:
            raise StateError(
                f"the upload stands at {found.offset}, not at {offset}", {"offset": found.offset}
            )
        return found

    def append(self, tenant: Tenant, upload: Upload, blob: str, size: int) -> Upload:
        """Takes a blob that was written as the next chunk. After the last byte the file is joined, compared
        with its hash and handed to the keys.

        Raises StateError where another sender was faster, SerializationError for another hash: the upload is
        gone then. StorageError leaves all as it was, but for what was taken.
        """
        expires = time.time() + self._settings.upload_ttl
        moved = (
            sql.update(uploads)
            .where(uploads.c.id == upload.id, uploads.c.tenant == tenant.id)
            .where(uploads.c.offset == upload.offset)
            .values(offset=upload.offset + size, expires=expires)
        )
        row = {"upload": upload.id, "offset": upload.offset, "blob": blob, "length": size}
        with self._database.writing() as connection:
            ours = connection.execute(moved).rowcount == 1
            if ours and size:
                connection.execute(sql.insert(parts).values(**row))
        if not ours or not size:  # no row names it: it would lie beside the tenant's limits of bytes
            self._blobs.delete(blob)
        if not ours:
            raise StateError("another request sent this chunk", {"offset": upload.offset})
        return self.finish(tenant, upload.id)

    def finish(self, tenant: Tenant, upload: str) -> Upload:
        """Does what is left to do after the last byte, as often as it is called. Raises as `append`, and
        UnavailableError while another request joins the file for longer than `JOIN_S`."""
        found = self.get(tenant, upload)
        if found.finished or found.offset < found.length:
            return found
        with self._alone(upload):
            found = self.get(tenant, upload)
            return found if found.finished else self._joined(tenant, found)

    @contextmanager
    def _alone(self, upload: str) -> Iterator[None]:
        """Of the requests of this process one at a time joins an upload: a join copies the whole file."""
        with self._changed:
            if not self._changed.wait_for(lambda: upload not in self._joining, JOIN_S):
                raise UnavailableError("the file is being joined", {"retry_after": JOIN_S})
            self._joining.add(upload)
        try:
            yield
        finally:
            with self._changed:
                self._joining.discard(upload)
                self._changed.notify_all()

    def _joined(self, tenant: Tenant, found: Upload) -> Upload:
        upload = found.id
        wanted = sql.select(parts.c.blob).where(parts.c.upload == upload).order_by(parts.c.offset)
        with self._database.reading() as connection:
            names = [str(n) for n in connection.scalars(wanted)]
            row = connection.execute(sql.select(uploads).where(uploads.c.id == upload)).one()
        joined = f"uploads/{upload}/joined-{uuid.uuid4().hex}"
        with self._blobs.reserved(found.length):
            digest = self._blobs.join(names, joined)
        if digest != found.sha256:
            self.delete(tenant, upload)
            raise SerializationError(
                "the file's SHA-256 is another one than announced",
                {"found": digest, "expected": found.sha256},
            )
        self._keys.add(tenant, row.program, digest, found.length, joined, row.replaces)
        with self._database.writing() as connection:
            connection.execute(sql.update(uploads).where(uploads.c.id == upload).values(finished=1))
            connection.execute(sql.delete(parts).where(parts.c.upload == upload))
        self._blobs.delete(f"uploads/{upload}")
        return self.get(tenant, upload)

    def delete(self, tenant: Tenant, upload: str) -> None:
        """Raises NotFoundError."""
        with self._database.writing() as connection:
            self._found(connection, tenant, upload)
            self._forget(connection, [upload])
        self._blobs.delete(f"uploads/{upload}")

    def expire(self) -> int:
        """Deletes those whose time is over; returns how many."""
        wanted = sql.select(uploads.c.id).where(uploads.c.expires < time.time())
        with self._database.writing() as connection:
            found = [str(u) for u in connection.scalars(wanted)]
            self._forget(connection, found)
        for upload in found:
            self._blobs.delete(f"uploads/{upload}")
        return len(found)

    def _forget(self, connection: sql.Connection, found: list[str]) -> None:
        connection.execute(sql.delete(parts).where(parts.c.upload.in_(found)))
        connection.execute(sql.delete(uploads).where(uploads.c.id.in_(found)))

    def _found(self, connection: sql.Connection, tenant: Tenant, upload: str) -> Upload:
        wanted = sql.select(uploads).where(uploads.c.id == upload, uploads.c.tenant == tenant.id)
        row = connection.execute(wanted).one_or_none()
        if row is None or row.expires < time.time():
            raise NotFoundError("no such upload")
        return Upload(row.id, row.sha256, row.length, row.offset, row.expires, bool(row.finished))

    def _within(self, connection: sql.Connection, tenant: Tenant, length: int) -> None:
        """Raises LimitError where one more upload is too many or too much."""
        settings = self._settings
        open_ = (uploads.c.tenant == tenant.id) & (uploads.c.finished == 0)
        number, sent = connection.execute(
            sql.select(sql.func.count(), sql.func.coalesce(sql.func.sum(uploads.c.length), 0)).where(open_)
        ).one()
        if number >= settings.uploads:
            raise LimitError(f"{number} unfinished uploads", {"limit": settings.uploads, "retry_after": 60})
        held = connection.scalar(
            sql.select(sql.func.coalesce(sql.func.sum(keys.c.bytes), 0)).where(keys.c.tenant == tenant.id)
        )
        if int(held or 0) + int(sent) + length > settings.stored_key_bytes:
            raise LimitError(
                f"{held} bytes of keys are stored, and {length} more are too many: delete some",
                {"limit": settings.stored_key_bytes, "retry_after": 60},
            )


class Chunk:
    """A chunk on its way: its hash so far, and what is kept of it when the sender goes away."""

    def __init__(self, upload: Upload, checksum: bytes | None) -> None:
        self.upload, self.checksum = upload, checksum
        self._digest = hashlib.sha256()

    def seen(self, piece: bytes) -> None:
        """One piece more."""
        if self.checksum is not None:
            self._digest.update(piece)

    def check(self) -> None:
        """Raises SerializationError where the checksum is another one."""
        if self.checksum is not None and self._digest.digest() != self.checksum:
            raise SerializationError("the chunk's checksum is wrong: nothing of it was kept")
