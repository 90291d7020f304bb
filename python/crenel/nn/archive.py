"""Files of programs, clients' files and encrypted tensors: JSON and bytes, nothing that executes.

A `crenel.container` with the magic ``CRENELNN``, whose header has ``kind`` and ``document``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, cast

from crenel.container import Container, parts_of
from crenel.errors import StateError
from crenel.workloads.files import opened

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"

FILES = Container("file of crenel.nn", b"CRENELNN", frozenset({"kind", "document"}), 1 << 26)
SHORT = 1 << 20
"""Bytes of a header that lists ciphertexts, at most."""


def packed(kind: str, document: Json, parts: Mapping[str, bytes]) -> bytes:
    """What `unpacked` takes apart. Raises ValueError for numbers that JSON has not."""
    return FILES.packed({"kind": kind, "document": document}, parts)


def unpacked(data: bytes, kind: str, most: int = FILES.max_header) -> tuple[Json, dict[str, bytes]]:
    """Document and parts of untrusted bytes.

    most : bytes of the header, whose values take some thirty times as much memory once read

    Raises SerializationError for bytes that are none of these, damaged, cut short or of another version of
    the format; StateError for those of another kind.
    """
    head, start = replace(FILES, max_header=most).header(data)
    if head["kind"] != kind:
        raise StateError(
            f"a file of a {head['kind']}, expected one of a {kind}",
            {"found": str(head["kind"]), "expected": kind},
        )
    return cast(Json, head["document"]), parts_of(head, data, start)


def read(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes. Raises FileError."""
    with opened(Path(path)) as file:
        return file.read()
