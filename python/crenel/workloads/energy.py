"""Power and memory of a GPU while a program runs, sampled by nvidia-smi."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

import crenel
from crenel.workloads.records import Energy

PERIOD_MS = 100
COUNTED = frozenset({"cuda"})  # kinds of devices with a counter
# The power of now where the driver has it; `power.draw` is a mean over a second on some.
POWER = ("power.draw.instant", "power.draw")
FIRST_SAMPLE_S = 5.0


@dataclass(frozen=True)
class Sample:
    """At a time of `time.perf_counter`."""

    at: float
    watts: float
    bytes: int


def selector(device: str) -> str:
    """What nvidia-smi calls the GPU that CUDA calls ``cuda:<index>``."""
    index = int(device.partition(":")[2] or 0)
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[index] if index < len(visible) else str(index)


def joules(samples: Sequence[Sample], begin: float, end: float) -> float | None:
    """The integral of the power from `begin` to `end`: linear between samples, constant beyond them.

    None where fewer than two samples lie between.
    """
    inside = [s for s in samples if begin <= s.at <= end]
    if len(inside) < 2:
        return None
    points = [(begin, inside[0].watts), *((s.at, s.watts) for s in inside), (end, inside[-1].watts)]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(points, points[1:], strict=False))


class Meter:
    """Samples a GPU while the context lasts; elsewhere it says why it does not.

    >>> with Meter(device) as meter:
    ...     run()
    >>> meter.energy(iterations).joules_per_step
    """

    def __init__(self, device: crenel.Device, wanted: bool = True) -> None:
        self.samples: list[Sample] = []
        self.note = ""
        self._device = device
        self._process: subprocess.Popen[str] | None = None
        self._begin = self._end = 0.0
        if not wanted:
            self.note = "not asked for"
        elif device.kind not in COUNTED or device.name.startswith("cuda:dry"):
            self.note = f"no counter of energy is read on {device.name}"
        elif shutil.which("nvidia-smi") is None:
            self.note = "nvidia-smi is not installed"

    def __enter__(self) -> Meter:
        if not self.note:
            self._start()
        self._begin = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end = time.perf_counter()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._thread.join()

    def _start(self) -> None:
        for power in POWER:
            command = ["nvidia-smi", f"--id={selector(self._device.name)}"]
            command += [f"--query-gpu={power},memory.used,name", "--format=csv,noheader,nounits"]
            probe = subprocess.run(command, capture_output=True, text=True, check=False)
            if probe.returncode == 0:
                break
            self.note = f"nvidia-smi: {(probe.stdout or probe.stderr).strip().splitlines()[:1]}"
        else:
            return
        self.note = ""
        name = probe.stdout.strip().rpartition(", ")[2]
        if name not in self._device.description:
            self.note = f"nvidia-smi numbers the GPUs differently: it calls this one {name}"
            return
        self._process = subprocess.Popen(
            [*command, f"--loop-ms={PERIOD_MS}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._power = power
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        waited = time.perf_counter()
        while not self.samples and time.perf_counter() - waited < FIRST_SAMPLE_S:
            time.sleep(PERIOD_MS / 2000)

    def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            watts, mebibytes = (cell.strip() for cell in line.split(",")[:2])
            try:
                self.samples.append(Sample(time.perf_counter(), float(watts), int(mebibytes) << 20))
            except ValueError:
                self.note = f"nvidia-smi states no power here: {watts}"
                return

    def energy(self, steps: int) -> Energy:
        """Of the time inside the context. `steps`: iterations or the like, which share it."""
        spent = joules(self.samples, self._begin, self._end)
        if spent is None:
            note = self.note or f"fewer than two samples, {PERIOD_MS} ms apart, lie within the run"
            return Energy(None, None, None, len(self.samples), note)
        watts = spent / (self._end - self._begin)
        note = f"nvidia-smi {self._power}, every {PERIOD_MS} ms, the whole board"
        return Energy(spent, spent / steps, watts, len(self.samples), note)

    def peak_bytes(self) -> tuple[int | None, str]:
        """Memory in use on the device at most while sampled, by its driver, and how that was found."""
        now = self._device.memory()
        if not now.total:
            return None, f"{self._device.name} computes in the host's memory"
        sampled = [s.bytes for s in self.samples if self._begin <= s.at <= self._end]
        if not sampled:
            return now.used, "the driver's count after the run"
        return max([*sampled, now.used]), f"the driver's count, sampled every {PERIOD_MS} ms"
