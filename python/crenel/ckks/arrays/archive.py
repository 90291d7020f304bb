"""An array as bytes: a header of shape and packing, then the file of the ciphertext.

Bytes 0..7 are ``CRENELAR``, 8..11 the version (1), 12..15 the length of the header, little-endian; the header
is JSON with the keys of `KEYS`; 32 bytes SHA-256 of all before; the ciphertext's file follows.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import NoReturn, TypedDict

from crenel.ckks.arrays.layout import Layout
from crenel.errors import FieldValue, SerializationError

MAGIC, VERSION, MAX_HEADER, DIGEST = b"CRENELAR", 1, 4096, 32
KEYS = {"shape", "rows", "columns", "width", "group", "transposed", "pad"}


class Head(TypedDict):
    """Header of the file."""

    shape: list[int]
    rows: int
    columns: int
    width: int
    group: int
    transposed: bool
    pad: list[float] | None


def fail(text: str, **fields: FieldValue) -> NoReturn:
    raise SerializationError(f"array: {text}", fields)


def write(
    ciphertext: bytes, shape: tuple[int, ...], layout: Layout, transposed: bool, pad: complex | None
) -> bytes:
    """The file."""
    z = None if pad is None else complex(pad)
    finite = z is not None and math.isfinite(z.real) and math.isfinite(z.imag)
    head: Head = {
        "shape": list(shape), "rows": layout.rows, "columns": layout.columns, "width": layout.width,
        "group": layout.group, "transposed": transposed,
        "pad": [z.real, z.imag] if z is not None and finite else None,
    }  # fmt: skip
    text = json.dumps(head, sort_keys=True).encode()
    start = MAGIC + VERSION.to_bytes(4, "little") + len(text).to_bytes(4, "little") + text
    return start + hashlib.sha256(start).digest() + ciphertext


def read(data: bytes | bytearray | memoryview) -> tuple[Head, bytes | memoryview]:
    """Header, copied and checked by itself, and the ciphertext's file, not yet read."""
    view = memoryview(data).cast("B")
    size = view.nbytes
    whole = bytes(view[: 16 + MAX_HEADER + DIGEST])
    if len(whole) < 16 or whole[:8] != MAGIC:
        fail(
            "no file of an array: it does not begin with CRENELAR; ciphertexts alone are read by "
            "context.ciphertext_from_bytes",
            bytes=size,
        )
    version, length = (int.from_bytes(whole[i : i + 4], "little") for i in (8, 12))
    if version != VERSION:
        fail(f"version {version}, expected {VERSION}", version=version, expected=VERSION)
    if length > MAX_HEADER or 16 + length + DIGEST > len(whole):
        fail(f"header of {length} bytes in a file of {size}", header=length, bytes=size)
    end = 16 + length
    if hashlib.sha256(whole[:end]).digest() != whole[end : end + DIGEST]:
        fail("the header's checksum is wrong: the file is damaged")
    try:
        head = json.loads(whole[16:end])
    except (ValueError, RecursionError):
        fail("the header is not JSON")
    check(head)
    body = view[end + DIGEST :]
    return head, bytes(body) if isinstance(data, bytes) else body  # the loader copies what may change


def _integer(x: object, least: int = 1) -> bool:
    return type(x) is int and least <= x < 2**40


def check(head: object) -> None:
    """The header's own consistency."""
    if not isinstance(head, dict) or set(head) != KEYS:
        fail(f"the header has other members than {', '.join(sorted(KEYS))}")
    for name in ("rows", "columns", "width", "group"):
        if not _integer(head[name]):
            fail(f"{name} is {head[name]!r}, expected a positive integer", name=name)
    for name in ("width", "group"):
        if head[name] & (head[name] - 1):
            fail(f"{name} is {head[name]}, expected a power of two", name=name)
    if type(head["transposed"]) is not bool:
        fail(f"transposed is {head['transposed']!r}, expected true or false")
    shape = head["shape"]
    if not isinstance(shape, list) or len(shape) > 2 or not all(_integer(n) for n in shape):
        fail(f"shape is {shape!r}, expected up to two positive integers")
    rows, columns = shape if len(shape) == 2 else (1, shape[0] if shape else 1)
    expected = (columns, rows) if head["transposed"] else (rows, columns)
    if (head["rows"], head["columns"]) != expected:
        fail(
            f"shape {shape} packed as {head['rows']} x {head['columns']}, "
            f"expected {expected[0]} x {expected[1]}"
        )
    if head["columns"] > head["width"] and head["group"] != 1:
        fail(f"rows of {head['columns']} in segments of {head['width']}, {head['group']} to a vector")
    pad = head["pad"]
    fine = pad is None or (
        isinstance(pad, list) and len(pad) == 2 and all(type(x) is float and math.isfinite(x) for x in pad)
    )
    if not fine:
        fail(f"pad is {pad!r}, expected null or two finite numbers")


def layout(head: Head) -> tuple[Layout, bool]:
    """Layout, and whether it is that of the transpose."""
    return Layout(head["rows"], head["columns"], head["width"], head["group"]), head["transposed"]


def expect(layout: Layout, slots: int, batch: int) -> None:
    """Refuses a ciphertext that is not in this layout."""
    if (slots, batch) != (layout.slots, layout.batch):
        fail(
            f"{batch} vectors of {slots} slots, expected {layout.batch} of {layout.slots}",
            slots=slots, expected_slots=layout.slots, vectors=batch, expected_vectors=layout.batch,
        )  # fmt: skip


def shape(head: Head) -> tuple[int, ...]:
    """Shape of the array."""
    return tuple(head["shape"])


def pad(head: Head) -> complex | None:
    """What padding holds."""
    found = head["pad"]
    return None if found is None else complex(*found) if found[1] else found[0]
