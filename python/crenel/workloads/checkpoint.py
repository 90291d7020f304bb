"""Where a long program stands, in a file: ciphertexts, counters, and what they belong to. Nothing secret.

A `crenel.container` with the magic ``CRENELWL``, whose header has ``kind``, ``belongs`` and ``progress``; its
parts are the ciphertexts' files.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from typing import NoReturn, TypeAlias, cast

from crenel._crenel import Ciphertext, Context, write_file
from crenel.container import Container, parts_of
from crenel.errors import FieldValue, SerializationError, StateError, _file_error

FILES = Container("checkpoint", b"CRENELWL", frozenset({"kind", "belongs", "progress"}), 1 << 20)

Value: TypeAlias = "str | int | float"


def _fail(path: str, text: str, fields: Mapping[str, FieldValue] | None = None) -> NoReturn:
    raise SerializationError(f"checkpoint {path}: {text}", {"path": path} | dict(fields or {}))


def save(
    path: str | os.PathLike[str],
    kind: str,
    belongs: Mapping[str, Value],
    progress: Mapping[str, Value],
    ciphertexts: Mapping[str, Ciphertext],
) -> None:
    """Write a checkpoint: the file is there whole, under its name and on the disk, or the one before it is.

    Parameters
    ----------
    kind : which program, e.g. "logistic regression"
    belongs : what must be the same when the program goes on: fingerprints of parameters, program and data
    progress : counters, e.g. the iteration
    ciphertexts : by name

    Raises FileError as crenel.write_file does; ValueError for numbers that JSON has not.
    """
    write_file(path, packed(kind, belongs, progress, ciphertexts))


def packed(
    kind: str,
    belongs: Mapping[str, Value],
    progress: Mapping[str, Value],
    ciphertexts: Mapping[str, Ciphertext],
) -> bytes:
    """What `save` writes."""
    bodies = {name: ciphertext.to_bytes() for name, ciphertext in ciphertexts.items()}
    return FILES.packed({"kind": kind, "belongs": dict(belongs), "progress": dict(progress)}, bodies)


def load(
    path: str | os.PathLike[str], context: Context, kind: str, belongs: Mapping[str, Value]
) -> tuple[dict[str, Value], dict[str, Ciphertext]] | None:
    """Progress and ciphertexts of a checkpoint; None where there is no such file.

    Raises StateError naming the first thing of `belongs` that differs (fields `what`, `found`, `expected`);
    SerializationError for a file that is none, damaged, cut short or of other parameters; FileError where
    none can be: a checkpoint that cannot be written should be known before the work.
    """
    name = os.fspath(path)
    fields: dict[str, FieldValue]
    try:
        _may_be_saved(name)
        with open(name, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        if not os.path.isdir(os.path.dirname(name) or "."):
            raise _file_error(errno.ENOENT)(
                f"checkpoint {name}: there is no such folder", {"errno": errno.ENOENT, "filename": name}
            ) from None
        return None
    except ValueError as error:  # a name with a zero byte, which no file has
        fields = {"errno": errno.EINVAL, "filename": name}
        raise _file_error(errno.EINVAL)(f"checkpoint {name!r}: {error}", fields) from None
    except OSError as error:
        fields = {"errno": error.errno or 0, "filename": name}
        raise _file_error(error.errno or 0)(f"checkpoint {name}: {error.strerror}", fields) from error
    head, parts = _taken_apart(name, data)
    _same_kind(name, head, kind)
    there = cast("dict[str, Value]", head["belongs"])
    for what in sorted(set(belongs) | set(there)):
        found, expected = there.get(what, "nothing"), belongs.get(what, "nothing")
        if found != expected:
            raise StateError(
                f"checkpoint {name} belongs to another {what}: it has {found}, this program {expected}. "
                "Give the file of this program, or another path to begin anew",
                {"what": what, "found": found, "expected": expected},
            )
    return cast("dict[str, Value]", head["progress"]), _ciphertexts(name, context, parts)


def unpacked(
    data: bytes, context: Context, kind: str
) -> tuple[dict[str, object], dict[str, object], dict[str, Ciphertext]]:
    """What the untrusted bytes of `packed` belong to, progress and ciphertexts.

    Whether they are of the right program is for the caller to see. Raises as `load`.
    """
    head, parts = _taken_apart("bytes", data)
    _same_kind("bytes", head, kind)
    belongs, progress = cast("tuple[dict[str, object], ...]", (head["belongs"], head["progress"]))
    return belongs, progress, _ciphertexts("bytes", context, parts)


def _same_kind(path: str, head: Mapping[str, object], kind: str) -> None:
    if head["kind"] != kind:
        raise StateError(
            f"checkpoint {path} is of {head['kind']}, expected one of {kind}",
            {"what": "kind", "found": str(head["kind"]), "expected": kind},
        )


def _ciphertexts(path: str, context: Context, parts: Mapping[str, bytes]) -> dict[str, Ciphertext]:
    ciphertexts = {}
    for part, body in parts.items():
        try:
            ciphertexts[part] = context.ciphertext_from_bytes(body)
        except SerializationError as error:
            _fail(path, f"{part}: {error}", {"part": part})
    return ciphertexts


def same_key(path: str | os.PathLike[str], ciphertexts: Mapping[str, Ciphertext], secret_key_id: str) -> None:
    """Raises StateError for ciphertexts of a checkpoint that another secret key decrypts."""
    for part, ciphertext in ciphertexts.items():
        if ciphertext.secret_key_id != secret_key_id:
            found = ciphertext.secret_key_id
            raise StateError(
                f"checkpoint {os.fspath(path)}: {part} is encrypted under secret key {found}, the server's "
                f"keys are of {secret_key_id}",
                {"what": "secret key", "found": found, "expected": secret_key_id},
            )


def _may_be_saved(name: str) -> None:
    """Before hours of work: `save` refuses links, and what is no file may have no end."""
    mode = os.lstat(name).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
        _fail(name, f"found {what}, expected a regular file, or none")


def _taken_apart(path: str, data: bytes) -> tuple[dict[str, object], dict[str, bytes]]:
    """The header and the ciphertexts' files, checked."""
    try:
        head, at = FILES.header(data)
        parts = parts_of(head, data, at)
    except SerializationError as error:
        _fail(path, str(error), error.fields)
    if not (isinstance(head["belongs"], dict) and isinstance(head["progress"], dict)):
        _fail(path, "belongs and progress must be objects")
    return head, parts


def fingerprint(*parts: bytes | str) -> str:
    """32 hexadecimal digits of SHA-256 over the parts and their lengths."""
    digest = hashlib.sha256()
    for part in parts:
        body = part.encode() if isinstance(part, str) else part
        digest.update(len(body).to_bytes(8, "little"))
        digest.update(body)
    return digest.hexdigest()[:32]


__all__ = ["fingerprint", "load", "packed", "same_key", "save", "unpacked"]
