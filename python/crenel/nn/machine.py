"""What launches cost on known GPUs and their hosts.

A launch takes the host some time, and the device the time of its bytes: the longer one counts. Where
polynomials of one vector are evaluated it is the host's, and where a batch is the device's. A recording
leaves of the host's time what it takes to replay a launch; bootstraps are recordings in every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import TypedDict

from crenel.errors import UnsupportedError


class Launch(TypedDict):
    """Bytes of one launch at the second-level cache, as accounts state them."""

    read_bytes: int
    written_bytes: int
    streamed_bytes: int
    """Of those read: keys and plaintexts."""


@dataclass(frozen=True)
class Machine:
    """What launches cost on a GPU and its host, as measured: see costs.json for the runs.

    Attributes
    ----------
    device : how the description of the GPU begins
    launch_us, replay_us : microseconds of a launch by the host, and of one in a recording
    cached, streamed : bytes a microsecond of data and tables, and of keys and plaintexts, which are read once
    source : file of bench/results
    """

    device: str
    launch_us: float
    replay_us: float
    cached: float
    streamed: float
    source: str = ""

    def us(self, launches: Iterable[Launch], recorded: bool) -> float:
        """Microseconds of launches one after the other, in a recording or by themselves."""
        least = self.replay_us if recorded else self.launch_us
        return sum(max(least, self.of_bytes(*device_bytes(launch))) for launch in launches)

    def of_bytes(self, moved: int, streamed: int) -> float:
        """Microseconds of the device for so many bytes, as `device_bytes` has them."""
        return moved / self.cached + streamed / self.streamed


def device_bytes(launch: Launch) -> tuple[int, int]:
    """Of a launch: bytes read and written but for those streamed, and those."""
    streamed = launch["streamed_bytes"]
    return launch["read_bytes"] + launch["written_bytes"] - streamed, streamed


@dataclass(frozen=True)
class Duration:
    """Milliseconds of a run of a whole batch.

    Attributes
    ----------
    machine : on which
    ms, recorded_ms : of a run, and of one that is replayed as one recording (`Server.run(graph=True)`)
    launches : of a run
    """

    machine: str
    ms: float
    recorded_ms: float
    launches: int

    def __str__(self) -> str:
        return (
            f"about {self.ms:.4g} ms a run on {self.machine}, {self.recorded_ms:.4g} as one recording: "
            f"{self.launches:,} launches"
        )


def machines() -> tuple[Machine, ...]:
    """Those that are known, of costs.json, which tools/gen_costs.py renders from bench/results."""
    text = resources.files("crenel.nn").joinpath("costs.json").read_text(encoding="utf-8")
    return tuple(Machine(**found) for found in json.loads(text)["machines"])


def machine_of(description: str) -> Machine:
    """By a GPU's description or the beginning of a name, "NVIDIA H100". Raises UnsupportedError naming those
    that are known."""
    known = machines()
    for found in known:
        if description and (description.startswith(found.device) or found.device.startswith(description)):
            return found
    there = ", ".join(found.device for found in known)
    raise UnsupportedError(
        f"nothing is known of launches on {description or 'an unnamed device'}, only on {there}",
        {"device": description, "known": there},
    )
