"""What the drivers of all workloads share: what they are asked for, a device and a client of it, the steps
around the program, and what is measured of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import crenel
from crenel import ckks
from crenel.workloads.energy import Meter
from crenel.workloads.kept import Kept
from crenel.workloads.recordings import Recordings
from crenel.workloads.records import Json, Memory, facts_of, process_peak_bytes, stages_of
from crenel.workloads.report import Report
from crenel.workloads.shared import Variant
from crenel.workloads.stages import Stages, Stopwatch, unmeasured

T = TypeVar("T")
KEYS, TABLES = "client: evaluation keys", "server: tables"


@dataclass(frozen=True)
class RunOptions:
    """What a driver is asked for, whichever program it runs."""

    seed: int = 1
    """Of what the program draws, and of values, for the record."""
    variant: Variant = "crenel"
    """As of the program."""
    checkpoint: Path | None = None
    """A folder (`Kept`); a run that was stopped goes on, and its times are of what was left."""
    warm: bool = False
    """Run the program, or its first refresh, once before, untimed: tables, memory and recordings are there
    then, as in a server that has computed already."""
    graph: bool = False
    """Replay recorded parts."""


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

    def kept(self, options: RunOptions, **run: str) -> Kept | None:
        """The folder of a run that can go on, whose client is this session's from now on; None where none was
        asked for. `run` and the parameters decide whether it is of the same run. Raises what `Kept` raises.
        """
        if options.checkpoint is None:
            return None
        folder = Kept(options.checkpoint, {"params": self.context.params.id, **run})
        self.client = folder.client(self.context)
        return folder

    def keys(self, make: Callable[[ckks.Client], ckks.EvaluationKeys]) -> ckks.EvaluationKeys:
        """Evaluation keys of the client, timed."""
        with self.step(KEYS):
            made = make(self.client)
            self.context.synchronize()
        return made

    def bootstrapper(
        self, keys: ckks.EvaluationKeys, options: ckks.BootstrapOptions | None
    ) -> ckks.Bootstrapper | None:
        """The server's, timed; None without options. Its tables lie in the context for as long as it lives: a
        program that makes one for itself finds them there.
        """
        with self.step(TABLES):
            made = None if options is None else self.context.bootstrapper(keys, options)
            self.context.synchronize()
        return made

    def recordings(self, options: RunOptions) -> Recordings | None:
        """For a program of this session, where it is to replay its parts."""
        return Recordings() if options.graph else None

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

    def facts(
        self, options: RunOptions, keys: ckks.EvaluationKeys, steps: int, *, recorded: bool, resumed: bool
    ) -> Json:
        """The fields of `Result` that say what was run with, and what that took.

        steps : of the program, for its energy
        recorded, resumed : as in `Result`, where the first is ``graph``
        """
        stages = stages_of(self._watch) if self._watch else ()
        return facts_of(self.context.params) | {
            "variant": options.variant,
            "seed": options.seed,
            "steps": steps,
            "total_s": self.seconds,
            "setup_s": self.seconds_of(TABLES),
            "warm": options.warm,
            "graph": recorded,
            "resumed": resumed,
            "keys_s": self.seconds_of(KEYS),
            "memory": self._memory(keys),
            "energy": self._meter.energy(steps),
            "stages_timed": bool(stages),
            "stages": stages,
        }

    def _memory(self, keys: ckks.EvaluationKeys) -> Memory:
        """So far."""
        self.context.synchronize()
        driver, note = self._meter.peak_bytes()
        return Memory(keys.nbytes, self.device.pools().peak, driver, note, process_peak_bytes())
