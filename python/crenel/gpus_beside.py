"""What several GPUs do beside the rest of a key switch or of hoisted sums, by launches counted one by one.

Between these and the division of their result stood two passes over what is dropped, an exchange and a
meeting. GPUs make what is dropped first, and all of that goes beside the launch that makes the rest
(`docs/design/0016-several-devices.md`). How long both take together is not measured. Assumed here: as long
as the longer of

* **the chain**: the launch for what is dropped, with all that a launch takes by itself and none of it hidden
  behind the launch before, both passes, the stores and the meeting;
* **the work**: the launch for all limbs, the work of both passes without what does not divide of a launch
  (idle multiprocessors, which the other launch fills), one launch more, and what stores keep from it: the
  blocks that wait for links take half a multiprocessor each, 48 of 132;

and that the launch after both begins when they have ended, and not while they do.

Launches say their kernel and their stage: the launch before the passes of a division is taken for the one
that makes what is divided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from crenel.account import Record
from crenel.analyze import Ceilings
from crenel.launch_times import LaunchTimes, work

HELD = 48 / 132 / 2  # of the multiprocessors, by blocks that store
MAKERS = ("key_switch_rows", "shared_sums", "hoisted_sums")  # of what is divided


def saved(
    records: Sequence[Record],
    alone: Sequence[float],
    links: Sequence[float],
    gpus: int,
    ceilings: Ceilings,
    times: LaunchTimes,
) -> float:
    """Seconds that one operation is shorter than its launches and exchanges one after the other.

    `alone`: of each launch on the GPU with most of it (`crenel.gpus.shares`); `links`: of the exchange after
    it, 0 for none.
    """
    found = 0.0
    for i in range(len(records) - 2):
        if not _divided_next(records, i) or not links[i + 2]:
            continue
        apart = sum(alone[i : i + 3]) + links[i + 2]
        first = times.seconds(_part(records[i], records[i + 1]["limbs"], gpus), ceilings) + times.ahead
        chain = first + alone[i + 1] + alone[i + 2] + links[i + 2]
        passes = sum(_work(r, gpus, ceilings, times) for r in records[i + 1 : i + 3])
        busy = alone[i] + passes + ceilings.launch + HELD * links[i + 2]
        found += apart - max(chain, busy) - times.ahead
    return found


def _divided_next(records: Sequence[Record], i: int) -> bool:
    passes = records[i + 1 : i + 3]
    return (
        records[i]["kernel"] in MAKERS
        and [record["kernel"] for record in passes] == ["row_inverse", "column_inverse"]
        and all(record["stage"].split("/")[-1] == "divide" for record in passes)
    )


def _part(record: Record, limbs: int, gpus: int) -> Any:
    """A GPU's share of a launch for some of its limbs."""
    share = math.ceil(limbs / gpus) / record["limbs"]
    part: Any = dict(record)
    for name in ("read_bytes", "written_bytes", "streamed_bytes", "multiply_adds", "butterflies"):
        part[name] = int(record[name] * share)
    return part


def _work(record: Record, gpus: int, ceilings: Ceilings, times: LaunchTimes) -> float:
    _, factor = times.by_kernel.get(record["kernel"], times.rest)
    return factor * work(_part(record, record["limbs"], gpus), ceilings)
