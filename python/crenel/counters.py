"""Hardware counters of a GPU by kernel: records of ``dev/kernels/ncu_account.sh``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from crenel.analyze import Ceilings
from crenel.errors import ParameterError, SerializationError

COUNTERS = "crenel-ncu-account"
EACH = "each"  # of provenance: every operation once, told apart by their outermost stages


@dataclass(frozen=True)
class Counted:
    """A kernel under hardware counters, over all its launches."""

    kernel: str
    launches: int
    us: float
    l2_bytes: float
    dram_bytes: float


def read(path: Path, operation: str) -> list[Counted]:
    """Kernels of an operation, longest first, of a record of it or of one that has each operation once.

    Raises
    ------
    SerializationError : not such a record
    ParameterError : of other operations
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["kind"] != COUNTERS:
            raise ValueError(f"kind {data['kind']}")
        of, rows = str(data["provenance"]["operation"]), list(data["rows"])
        if of == EACH:
            rows = [row for row in rows if row["stage"].split("/")[0] == operation]
        sums: dict[str, tuple[int, float, float, float]] = {}
        for row in rows:
            count, us, l2, memory = sums.get(row["kernel"], (0, 0.0, 0.0, 0.0))
            moved = float(row["read"] + row["written"])
            sums[row["kernel"]] = count + 1, us + row["us"], l2 + moved, memory + row["dram_bytes"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise SerializationError(
            f"{path}: expected a record of kind {COUNTERS}, found {error!r}", {"path": str(path)}
        ) from None
    if not sums or of not in (EACH, operation):
        raise ParameterError(
            f"{path} has counters of {of}, expected some of {operation}", {"path": str(path), "found": of}
        )
    found = [Counted(name, *values) for name, values in sums.items()]
    return sorted(found, key=lambda each: -each.us)


def utilisation(counted: Counted, ceilings: Ceilings) -> tuple[float, float]:
    """Shares of L2's and of the memory's measured rate that a kernel used, 0 to 1."""
    seconds = 1e-6 * counted.us
    return counted.l2_bytes / seconds / ceilings.l2, counted.dram_bytes / seconds / ceilings.dram
