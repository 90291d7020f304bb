"""Of ``crenel gpus``: gates of TFHE on a pool, an array of them divided and keys on every GPU."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crenel import tfhe
from crenel.errors import InsecureParametersWarning, ParameterError


@dataclass(frozen=True)
class Gates:
    """What a GPU's share of an array needs: bytes of an array, bytes of the keys."""

    nbytes: int
    keys: int


def account(params: tfhe.Params, each: int, packing: int = 1) -> Gates:
    """Of `each` gates, counted on a model of a GPU; `packing` as of `tfhe.Context`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureParametersWarning)
        context = tfhe.Context(params, device="cuda:dry", packing=packing)
    slots = context.params.slots
    one = context.keygen().encrypt([False] * slots).nbytes
    return Gates(-(-each // slots) * one, context.key_bytes())


def seconds_of(params: tfhe.Params, each: int) -> tuple[float, str]:
    """Seconds of `each` gates on one GPU at the rate that was measured, and where. ParameterError where none
    was."""
    from crenel import analyze

    known: dict[str, Any] = analyze.data()["gates"]["sets"]
    found = known.get(params.name)
    if found is None:
        names = ", ".join(known)
        raise ParameterError(
            f"no rate of {params.name}'s gates is known, expected --measured-ms, or a set of {names}",
            {"params": params.name, "expected": names},
        )
    return each / found["rate"], f"by the measured rate of {found['size']:,} at once, {found['source']}"


def tell(
    params: tfhe.Params,
    of_gpus: Sequence[int],
    each: int | None,
    measured_ms: float | None,
    file: Path | None,
) -> None:
    """Print, and write to `file`."""
    from crenel import analyze, gpus
    from crenel.cli import gpus_output
    from crenel.records import write_record

    count: int = each or analyze.data()["gates"]["each"]
    if measured_ms is None:
        seconds, how = seconds_of(params, count)
    else:
        seconds, how = 1e-3 * measured_ms, "measured"
    one = account(params, count)
    ceilings, links = analyze.load_ceilings(), gpus.load_links()
    rows = [gpus.spread_gates(seconds, one.nbytes, n, count, links, ceilings) for n in of_gpus]
    gpus_output.head_of_gates(params.name, one, seconds, count, how, ceilings.device)
    gpus_output.spread(rows, "Gates of an array spread over GPUs, all keys on each (tfhe.DevicePool)")
    if file is None:
        return
    facts = {"kind": "crenel-gpus-gates", "format": 1, "params": params.name, "device": ceilings.device}
    facts |= {"one": asdict(one) | {"each": count, "seconds": seconds}, "rate_from": how}
    facts |= {"links": analyze.data()["links"], "spread": [asdict(row) for row in rows]}
    write_record(file, facts, finite=True)
