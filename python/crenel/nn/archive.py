"""Files of programs, clients' files and encrypted tensors: JSON and bytes, nothing that executes.

Bytes 0..7 are ``CRENELNN``, 8..11 the format's version, 12..19 the length of the header, little-endian; the
header is JSON with ``kind``, ``document``, ``parts`` ([name, length] each) and ``digest`` (SHA-256 of all
parts, hexadecimal); 32 bytes SHA-256 of all before; then the parts in that order.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, TypeAlias

from crenel.errors import FieldValue, SerializationError, StateError
from crenel.workloads.files import opened

MAGIC, VERSION, FIXED, DIGEST = b"CRENELNN", 1, 20, 32
MAX_HEADER = 1 << 26

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"


def _fail(text: str, fields: Mapping[str, FieldValue] | None = None) -> NoReturn:
    raise SerializationError(text, fields)


def packed(kind: str, document: Json, parts: Mapping[str, bytes]) -> bytes:
    """What `unpacked` takes apart. Raises ValueError for numbers that JSON has not."""
    digest = hashlib.sha256()
    for part in parts.values():
        digest.update(part)
    head = {
        "kind": kind, "document": document,
        "parts": [[name, len(part)] for name, part in parts.items()], "digest": digest.hexdigest(),
    }  # fmt: skip
    text = json.dumps(head, sort_keys=True, allow_nan=False).encode()
    start = MAGIC + VERSION.to_bytes(4, "little") + len(text).to_bytes(8, "little") + text
    return b"".join([start, hashlib.sha256(start).digest(), *parts.values()])


def unpacked(data: bytes, kind: str) -> tuple[Json, dict[str, bytes]]:
    """Document and parts of untrusted bytes.

    Raises SerializationError for bytes that are none of these, damaged, cut short or of another version of
    the format; StateError for those of another kind.
    """
    if len(data) < FIXED or data[:8] != MAGIC:
        _fail("no file of crenel.nn: it does not begin with CRENELNN", {"bytes": len(data)})
    version, length = int.from_bytes(data[8:12], "little"), int.from_bytes(data[12:FIXED], "little")
    if version != VERSION:
        _fail(
            f"version {version} of the format, expected {VERSION}", {"version": version, "expected": VERSION}
        )
    end = FIXED + length
    if length > MAX_HEADER or end + DIGEST > len(data):
        _fail(f"a header of {length} bytes in a file of {len(data)}", {"header": length, "bytes": len(data)})
    if hashlib.sha256(data[:end]).digest() != data[end : end + DIGEST]:
        _fail("the header's checksum is wrong: the file is damaged")
    try:
        head = json.loads(data[FIXED:end])
    except (ValueError, RecursionError):
        _fail("the header is not JSON")
    if not isinstance(head, dict) or set(head) != {"kind", "document", "parts", "digest"}:
        _fail("the header has other members than digest, document, kind and parts")
    if head["kind"] != kind:
        raise StateError(
            f"a file of a {head['kind']}, expected one of a {kind}",
            {"found": str(head["kind"]), "expected": kind},
        )
    return head["document"], _parts(data, end + DIGEST, head["parts"], head["digest"])


def _parts(data: bytes, start: int, listed: object, digest: object) -> dict[str, bytes]:
    if not isinstance(listed, list) or not all(
        isinstance(p, list) and len(p) == 2 and type(p[0]) is str and type(p[1]) is int and p[1] >= 0
        for p in listed
    ):
        _fail("parts must be pairs of a name and a length")
    expected = start + sum(length for _, length in listed)
    if len(data) != expected:
        _fail(f"{len(data)} bytes, expected {expected}", {"bytes": len(data), "expected": expected})
    if hashlib.sha256(memoryview(data)[start:]).hexdigest() != digest:
        _fail("the checksum of the parts is wrong: the file is damaged")
    found: dict[str, bytes] = {}
    for name, length in listed:
        if name in found:
            _fail(f"two parts of the name {name!r}", {"part": name})
        found[name] = data[start : start + length]
        start += length
    return found


def read(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes. Raises FileError."""
    with opened(Path(path)) as file:
        return file.read()
