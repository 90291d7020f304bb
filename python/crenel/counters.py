"""Hardware counters of a GPU by kernel: records of ``crenel analyze --counters-to``, and of
``dev/kernels/ncu_account.sh``, which has some operations each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crenel.analyze import Ceilings
from crenel.errors import ParameterError, SerializationError
from crenel.records import command_line, made

COUNTERS = "crenel-ncu-account"
TOLERANCE = 0.05
"""Of what launches state, against what is counted of all launches of a kernel."""
MOST = 1e30  # of a row's numbers: beyond any counter, and their products are finite
EACH = "each"  # of provenance: every operation once, told apart by their outermost stages


@dataclass(frozen=True)
class Counted:
    """A kernel under hardware counters, over all its launches."""

    kernel: str
    launches: int
    us: float
    l2_bytes: float
    dram_bytes: float


def summed(rows: Iterable[Mapping[str, Any]]) -> list[Counted]:
    """By kernel, longest first, of rows as `crenel.ncu.row_of` makes them."""
    sums: dict[str, tuple[int, float, float, float]] = {}
    for row in rows:
        count, us, l2, memory = sums.get(row["kernel"], (0, 0.0, 0.0, 0.0))
        moved = float(row["read"] + row["written"])
        sums[row["kernel"]] = count + 1, us + row["us"], l2 + moved, memory + row["dram_bytes"]
    found = [Counted(name, *values) for name, values in sums.items()]
    return sorted(found, key=lambda each: -each.us)


def document(
    rows: Sequence[Mapping[str, Any]], params: str, operation: str, device: str, command: str = ""
) -> dict[str, Any]:
    """Rows of one operation as a record; without a command, of the one that runs."""
    facts = {**made(command or command_line()), "params": params, "operation": operation, "device": device}
    return {"kind": COUNTERS, "format": 1, "provenance": facts, "tolerance": TOLERANCE,
            "kernels": differences(rows), "rows": list(rows)}  # fmt: skip


def differences(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What the launches of a kernel state over what was counted of them, less one."""
    found = {}
    for name in dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == name]
        stated = sum(row["model_read"] + row["model_written"] for row in own)
        found[name] = stated / sum(row["read"] + row["written"] for row in own) - 1
    return found


def _read(path: Path) -> tuple[str, list[dict[str, Any]]]:
    from crenel.workloads.files import opened

    with opened(path) as file:
        content = file.read()
    data: Any = None
    with suppress(ValueError, RecursionError):  # no JSON, as is said next
        data = json.loads(content)
    if not isinstance(data, dict):
        raise _other(path, "no JSON object")
    if data.get("kind") != COUNTERS:
        raise _other(path, f"kind {data['kind']!r:.40}" if "kind" in data else "no kind")
    try:
        rows = [_checked(row) for row in data["rows"]]
        operation = str(data["provenance"]["operation"])
    except KeyError as error:
        raise _other(path, f"no {error.args[0]}") from None
    except ValueError as error:
        raise _other(path, str(error)) from None
    except TypeError:
        raise _other(path, "no list of rows, or no provenance") from None
    if not rows:
        raise _other(path, "no rows")
    return operation, rows


def _other(path: Path, found: str) -> SerializationError:
    return SerializationError(
        f"{path}: expected a record of kind {COUNTERS}, found {found}", {"path": str(path)}
    )


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose names are texts and whose numbers can be added and divided by."""
    for name in ("stage", "kernel"):
        if not isinstance(row[name], str):
            raise ValueError(f"{name} is {row[name]!r:.40}")
    for name in ("us", "read", "written", "dram_bytes"):
        value = row[name]
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 <= value < MOST or (name == "us" and value == 0):
            raise ValueError(f"{name} is {str(value)[:40]}")
    return row


def operations(path: Path) -> list[str]:
    """What a record counted, in its order.

    Raises
    ------
    SerializationError : not such a record
    """
    of, rows = _read(path)
    return [of] if of != EACH else list(dict.fromkeys(row["stage"].split("/")[0] for row in rows))


def read(path: Path, operation: str) -> list[Counted]:
    """Kernels of an operation, longest first, of a record of it or of one that has each operation once.

    Raises
    ------
    SerializationError : not such a record
    ParameterError : of other operations
    """
    of, rows = _read(path)
    if of == EACH:
        rows = [row for row in rows if row["stage"].split("/")[0] == operation]
    if not rows or of not in (EACH, operation):
        found = ", ".join(operations(path))
        raise ParameterError(
            f"{path} has counters of {found}, expected some of {operation}",
            {"path": str(path), "found": found},
        )
    return summed(rows)


def utilisation(counted: Counted, ceilings: Ceilings) -> tuple[float, float]:
    """Shares of L2's and of the memory's measured rate that a kernel used, 0 to 1."""
    seconds = 1e-6 * counted.us
    return counted.l2_bytes / seconds / ceilings.l2, counted.dram_bytes / seconds / ceilings.dram
