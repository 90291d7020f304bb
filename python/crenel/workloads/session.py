"""What the drivers of all workloads share: a device and a client of it, and what is measured around a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

import crenel
from crenel import ckks
from crenel.workloads.energy import Meter
from crenel.workloads.recordings import Recordings, worth
from crenel.workloads.records import Energy, Memory, Stage, process_peak_bytes, stages_of
from crenel.workloads.report import Report
from crenel.workloads.stages import Stages, Stopwatch, unmeasured

T = TypeVar("T")


class Session:
    """One context with its client, and a report that is told of every step and its time."""

    def __init__(
        self,
        params: ckks.Params,
        device: str = "auto",
        report: Report | None = None,
        timed_stages: bool = True,
        energy: bool = False,
    ) -> None:
        """
        Parameters
        ----------
        timed_stages : time the program's stages; the device is waited for at both ends of each, which makes a
            run on a GPU slower
        energy : sample the GPU's power while the program runs

        Raises DeviceError where the device cannot be had.
        """
        self.report = report or Report()
        self.device = crenel.Device(device)
        with self.report.step("parameters and tables"):
            self.context = ckks.Context(params, device=self.device)
        with self.report.step("client: secret key"):
            self.client = self.context.keygen()
        self._watch = Stopwatch(self.context.synchronize) if timed_stages else None
        self._meter = Meter(self.device, energy)
        self.seconds = 0.0

    @property
    def stages(self) -> Stages:
        """For the program: times what it calls a stage, or does not."""
        return self._watch or unmeasured

    def recordings(self, graph: bool | None, warm: bool) -> Recordings | None:
        """For a program of this session: see `recordings.worth`."""
        wanted = worth(graph, self.device, warm=warm, timed_stages=self._watch is not None)
        return Recordings() if wanted else None

    def step(self, name: str) -> AbstractContextManager[None]:
        """A step of the client's, timed: ``session.seconds_of(name)``."""
        return self.report.step(name)

    def seconds_of(self, name: str) -> float:
        """Of a step that was done."""
        return self.report.times[name]

    def run(self, name: str, program: Callable[[], T]) -> T:
        """The server's part: timed until the device is done, its power sampled."""
        self.context.synchronize()
        with self.report.step(name), self._meter:
            start = time.perf_counter()
            result = program()
            self.context.synchronize()
            self.seconds = time.perf_counter() - start
        return result

    def energy(self, steps: int) -> Energy:
        """Of the run."""
        return self._meter.energy(steps)

    def memory(self, keys: ckks.EvaluationKeys) -> Memory:
        """So far."""
        self.context.synchronize()
        driver, note = self._meter.peak_bytes()
        return Memory(keys.nbytes, self.device.pools().peak, driver, note, process_peak_bytes())

    def measured_stages(self) -> tuple[Stage, ...]:
        """Of the run; none where they were not timed."""
        return stages_of(self._watch) if self._watch else ()
