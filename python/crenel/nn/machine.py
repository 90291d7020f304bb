"""What launches cost on known GPUs and their hosts.

A launch takes the host some time, and the device the time of its bytes and of its kernel besides: blocks
start, each waits for its first values, and the last ones run alone. The longer one counts. A recording leaves
out the host's alone: nothing of the device's shrinks. Bootstraps are recordings in every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import TypedDict

from crenel.arguments import text
from crenel.errors import UnsupportedError

ELEMENTWISE = "elementwise"
"""Kernels of many short blocks, which take their bytes' time and that of an empty one."""


class Launch(TypedDict):
    """A launch, as accounts state it."""

    work: str
    read_bytes: int
    """At the second-level cache."""
    written_bytes: int


@dataclass(frozen=True)
class Machine:
    """What launches cost on a GPU and its host, as measured: see costs.json for the records.

    Attributes
    ----------
    device : how the description of the GPU begins
    launch_us : microseconds of a launch by the host
    empty_us, kernel_us : microseconds of the device besides bytes, for an element-wise kernel and any other
    cached, beyond : bytes a microsecond of launches that move up to `cache` bytes, and that move more
    cache : bytes of the second-level cache
    source : file of bench/results
    """

    device: str
    launch_us: float
    empty_us: float
    kernel_us: float
    cached: float
    beyond: float
    cache: int
    source: str = ""

    def us(self, launches: Iterable[Launch], recorded: bool) -> float:
        """Microseconds of launches one after the other, in a recording or by themselves."""
        least = 0.0 if recorded else self.launch_us
        return sum(max(least, self.device_us(*kind_of(launch))) for launch in launches)

    def device_us(self, elementwise: bool, moved: int) -> float:
        """Microseconds of the device for a launch, as `kind_of` has it."""
        rate = self.cached if moved <= self.cache else self.beyond
        return (self.empty_us if elementwise else self.kernel_us) + moved / rate


def kind_of(launch: Launch) -> tuple[bool, int]:
    """Of a launch: is it element-wise, and the bytes that it reads and writes."""
    return launch["work"] == ELEMENTWISE, launch["read_bytes"] + launch["written_bytes"]


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
    costs = resources.files("crenel.nn").joinpath("costs.json").read_text(encoding="utf-8")
    return tuple(Machine(**found) for found in json.loads(costs)["machines"])


def machine_of(description: str) -> Machine:
    """By a GPU's description, as a device says it, or by the first words of its name, maker and model at
    least: "NVIDIA H100". Raises UnsupportedError naming those that are known, for what is none of them and
    for words that several begin with, and TypeError for what is no string."""
    known = machines()
    words = text("machine", description).split(",")[0].split()
    found = [one for one in known if len(words) > 1 and one.device.split()[: len(words)] == words]
    if len(found) == 1:
        return found[0]
    there = ", ".join(one.device for one in known)
    said = description or "an unnamed device"
    what = "several are called so" if found else "nothing is known of its launches"
    raise UnsupportedError(
        f"{said}: {what}; expected a device's description or the first words of a name, maker and model at "
        f"least, of {there}",
        {"device": description, "known": there},
    )
