"""The container of files that are JSON and bytes: what programs of nn and checkpoints of workloads are in.

Bytes 0..7 are a magic, 8..11 the version, 12..19 the length of the header, little-endian; the header is JSON
with ``parts`` ([name, length] each), ``digest`` (SHA-256 of all parts, hexadecimal) and members of its own;
32 bytes SHA-256 of all before; then the parts in that order. Nothing in it executes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from crenel.errors import FieldValue, SerializationError

FIXED, DIGEST = 20, 32


def _fail(text: str, fields: Mapping[str, FieldValue] | None = None) -> NoReturn:
    raise SerializationError(text, fields)


@dataclass(frozen=True)
class Container:
    """A kind of such files.

    name : in refusals, for example "checkpoint"
    magic : eight bytes of ASCII
    members : of the header besides parts and digest
    """

    name: str
    magic: bytes
    members: frozenset[str]
    max_header: int
    version: int = 1

    def packed(self, members: Mapping[str, object], parts: Mapping[str, bytes]) -> bytes:
        """What `header` and `parts` take apart. Raises ValueError for numbers that JSON has not."""
        digest = hashlib.sha256()
        for part in parts.values():
            digest.update(part)
        listed = [[name, len(part)] for name, part in parts.items()]
        head = {**members, "parts": listed, "digest": digest.hexdigest()}
        text = json.dumps(head, sort_keys=True, allow_nan=False).encode()
        start = self.magic + self.version.to_bytes(4, "little") + len(text).to_bytes(8, "little") + text
        return b"".join([start, hashlib.sha256(start).digest(), *parts.values()])

    def header(self, data: bytes) -> tuple[dict[str, object], int]:
        """The header of untrusted bytes, and where the parts begin; what its members are is not looked at.

        Raises SerializationError for bytes that are none of these, or whose header is damaged or cut short.
        """
        size = len(data)
        if size < FIXED or data[:8] != self.magic:
            _fail(f"no {self.name}: it does not begin with {self.magic.decode()}", {"bytes": size})
        version, length = int.from_bytes(data[8:12], "little"), int.from_bytes(data[12:FIXED], "little")
        if version != self.version:
            fields: dict[str, FieldValue] = {"version": version, "expected": self.version}
            _fail(f"version {version} of the format, expected {self.version}", fields)
        end = FIXED + length
        if length > self.max_header or end + DIGEST > size:
            _fail(f"a header of {length} bytes in a file of {size}", {"header": length, "bytes": size})
        if hashlib.sha256(data[:end]).digest() != data[end : end + DIGEST]:
            _fail("the header's checksum is wrong: the file is damaged")
        try:
            head = json.loads(data[FIXED:end])
        except (ValueError, RecursionError):
            _fail("the header is not JSON")
        members = sorted(self.members | {"parts", "digest"})
        if not isinstance(head, dict) or sorted(head) != members:
            _fail(f"the header has other members than {', '.join(members[:-1])} and {members[-1]}")
        return head, end + DIGEST


def parts_of(head: Mapping[str, object], data: bytes, start: int) -> dict[str, bytes]:
    """The parts that a header lists, from `start` to the end.

    Raises SerializationError for a list that is none, two parts of one name, and parts that are damaged, cut
    short or longer than listed.
    """
    listed = head["parts"]
    if not isinstance(listed, list) or not all(
        isinstance(p, list) and len(p) == 2 and type(p[0]) is str and type(p[1]) is int and p[1] >= 0
        for p in listed
    ):
        _fail("parts must be pairs of a name and a length")
    expected = start + sum(length for _, length in listed)
    if len(data) != expected:
        _fail(f"{len(data)} bytes, expected {expected}", {"bytes": len(data), "expected": expected})
    if hashlib.sha256(memoryview(data)[start:]).hexdigest() != head["digest"]:
        _fail("the checksum of the parts is wrong: the file is damaged")
    found: dict[str, bytes] = {}
    for name, length in listed:
        if name in found:
            _fail(f"two parts of the name {name!r}", {"part": name})
        found[name] = data[start : start + length]
        start += length
    return found
