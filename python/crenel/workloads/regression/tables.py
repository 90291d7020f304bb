"""The client's tables and labels: what is refused, and what is encrypted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crenel._crenel import Ciphertext, Client, Context
from crenel.errors import ParameterError, SerializationError, StateError
from crenel.workloads import checkpoint
from crenel.workloads.checked import refuse_masked
from crenel.workloads.checkpoint import fingerprint
from crenel.workloads.regression.layout import Layout

FEATURES, LABELS = "features", "labels"
KIND, BLOCK = "a block of an encrypted table", "block"
MOST = 10**9  # blocks, and rows of one, that untrusted bytes may state


@dataclass(frozen=True)
class EncryptedTable:
    """Blocks of rows of a table, or their labels. Their number and rows are public. Immutable."""

    what: str
    """'features' or 'labels'."""
    blocks: Sequence[Ciphertext]
    """A batch of vectors for each block."""
    rows: tuple[int, ...]
    """Rows of each block."""
    _made: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __len__(self) -> int:
        """Rows of the table."""
        return sum(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(block.nbytes for block in self.blocks)

    def to_bytes(self) -> list[bytes]:
        """A file for each block, for a server: each says which block of how many it is, and its rows.

        Nothing secret is in it.
        """
        return [
            checkpoint.packed(
                KIND,
                {},
                {"what": self.what, "block": number, "blocks": len(self.blocks), "rows": rows},
                {BLOCK: block},
            )
            for number, (block, rows) in enumerate(zip(self.blocks, self.rows, strict=True))
        ]

    @classmethod
    def from_bytes(cls, context: Context, blocks: Sequence[bytes]) -> EncryptedTable:
        """A table from untrusted bytes: all files of `to_bytes`, in their order.

        Raises SerializationError for what is damaged, and for files that are missing, too many, in another
        order or of tables of both kinds; StateError for another kind of file.
        """
        found = [_read(context, data) for data in blocks]
        if not found:
            raise SerializationError("no block of an encrypted table, expected at least one", {"blocks": 0})
        what = found[0].what
        for number, block in enumerate(found):
            if (block.what, block.number, block.of) != (what, number, len(found)):
                raise SerializationError(
                    f"file {number} of {len(found)} of encrypted {what} is block {block.number} of "
                    f"{block.of} of encrypted {block.what}: expected all blocks of one table, in their order",
                    {"block": block.number, "blocks": block.of, "expected": number, "count": len(found)},
                )
        return cls(what, [block.ciphertext for block in found], tuple(block.rows for block in found))

    @property
    def fingerprint(self) -> str:
        """Of all bytes: two encryptions of one table differ."""
        with self._lock:
            if "id" not in self._made:
                self._made["id"] = fingerprint(*(fingerprint(block.to_bytes()) for block in self.blocks))
            return self._made["id"]


@dataclass(frozen=True)
class _Block:
    """What the file of a block holds."""

    what: str
    number: int
    of: int
    rows: int
    ciphertext: Ciphertext


def _read(context: Context, data: bytes) -> _Block:
    _, said, parts = checkpoint.unpacked(data, context, KIND)
    what = said.get("what")
    numbers = [said.get(name) for name in ("block", "blocks", "rows")]
    number, of, rows = (n if type(n) is int and 0 <= n <= MOST else -1 for n in numbers)
    if what not in (FEATURES, LABELS) or not 0 <= number < of or rows < 1 or list(parts) != [BLOCK]:
        raise SerializationError(
            f"{rows} rows in block {number} of {of} of {str(what)[:40]!r} with {len(parts)} ciphertexts; "
            "expected one, and a positive number of rows in a block of 'features' or 'labels'",
            {"what": str(what)[:40], "block": number, "blocks": of, "rows": rows},
        )
    return _Block(str(what), number, of, rows, parts[BLOCK])


def check_features(X: ArrayLike, features: int, largest: float) -> NDArray[np.float64]:
    """A table of numbers in range; errors name the place, never a number."""
    table = _numbers(X, "X")
    if table.ndim != 2 or table.shape[1] != features or len(table) < 1:
        raise ParameterError(
            f"X has shape {table.shape}, expected (rows, {features}) with at least one row",
            {"shape": list(table.shape), "features": features},
        )
    _refuse(~np.isfinite(table), "X", "is not finite")
    _refuse(
        np.abs(table) > largest,
        "X",
        f"is beyond {largest:g}, the largest |feature| of this model: scale the table",
    )
    return table


def check_labels(y: ArrayLike) -> NDArray[np.float64]:
    """Labels -1 and +1."""
    labels = _numbers(y, "y")
    if labels.ndim != 1 or len(labels) < 1:
        raise ParameterError(
            f"y has shape {labels.shape}, expected (rows,) with at least one", {"shape": list(labels.shape)}
        )
    _refuse(np.abs(labels) != 1.0, "y", "is no class: classes are -1 and +1")
    if (labels == labels[0]).all():
        raise ParameterError("all labels are of one class, expected two", {"rows": len(labels)})
    return labels


def blocks_of(numbers: NDArray[np.float64], batch: int) -> list[NDArray[np.float64]]:
    """Rows in blocks of `batch`, the last one with what is left."""
    return [numbers[start : start + batch] for start in range(0, len(numbers), batch)]


def encrypt_features(client: Client, layout: Layout, table: NDArray[np.float64]) -> EncryptedTable:
    """Blocks as batches of vectors at the top level."""
    parts = blocks_of(table, layout.batch)
    vectors = [layout.block(part) for part in parts]
    # Real vectors are known to be real.
    blocks = [client.encrypt(v if layout.paired else v.real, slots=layout.slots) for v in vectors]
    return EncryptedTable(FEATURES, blocks, tuple(len(part) for part in parts))


def encrypt_labels(client: Client, layout: Layout, labels: NDArray[np.float64]) -> EncryptedTable:
    """A vector for each block."""
    parts = blocks_of(labels, layout.batch)
    blocks = [client.encrypt(layout.labels(part)[None, :], slots=layout.slots) for part in parts]
    return EncryptedTable(LABELS, blocks, tuple(len(part) for part in parts))


def check_table(table: EncryptedTable, what: str, layout: Layout, level: int) -> None:
    """Raises StateError for a table of the other kind, or packed for another model."""
    if table.what != what:
        raise StateError(
            f"encrypted {table.what} where {what} are expected", {"found": table.what, "expected": what}
        )
    batch = layout.ciphertexts if what == FEATURES else 1
    for number, (block, rows) in enumerate(zip(table.blocks, table.rows, strict=True)):
        found = [block.slots, block.batch, block.level]
        expected = [layout.slots, batch, level]
        if found != expected or rows > layout.batch:
            raise StateError(
                f"block {number} of the {what} has slots, batch and level {found} and {rows} rows, expected "
                f"{expected} and at most {layout.batch}: it was encrypted for another model",
                {"block": number, "found": found, "expected": expected, "rows": rows},
            )


def check_pair(x: EncryptedTable, y: EncryptedTable) -> None:
    """Raises StateError unless rows and labels are as many, in equal blocks."""
    if x.rows != y.rows:
        raise StateError(
            f"{len(x)} rows in {len(x.rows)} blocks and {len(y)} labels in {len(y.rows)}",
            {"rows": len(x), "labels": len(y), "blocks": len(x.rows), "label_blocks": len(y.rows)},
        )


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    refuse_masked(values, name)
    try:
        found = np.asarray(values)
    except ValueError:
        raise ParameterError(f"{name} has rows of different lengths", {"name": name}) from None
    if found.dtype.kind not in "biuf":
        raise ParameterError(
            f"{name} holds {found.dtype}, expected real numbers", {"name": name, "dtype": str(found.dtype)}
        )
    return found.astype(np.float64)


def _refuse(bad: NDArray[np.bool_], name: str, why: str) -> None:
    places = np.argwhere(bad)
    if len(places):
        at = [int(i) for i in places[0]]
        more = f", and {len(places) - 1} more" if len(places) > 1 else ""
        raise ParameterError(f"{name}{at} {why}{more}", {"name": name, "at": at, "count": len(places)})
