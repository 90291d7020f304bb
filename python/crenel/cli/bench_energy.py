"""``crenel bench boot --energy``: who counts joules for the suites of bench/."""

from __future__ import annotations

import time
from collections.abc import Callable

import crenel
from crenel.errors import UnsupportedError
from crenel.workloads.energy import PERIOD_MS, Meter

LEAST_SAMPLES = 10
"""Of the power, a second's worth: fewer say little about a mean."""


class EnergyMeter:
    """What the suite calls: `check` before it makes keys, `measure` around the repetitions."""

    def check(self, device: crenel.Device) -> None:
        """Raises UnsupportedError, with the reason, where this device's power cannot be sampled."""
        with Meter(device) as meter:
            pass
        if meter.note:
            raise UnsupportedError(f"--energy: {meter.note}", {"option": "--energy", "device": device.name})

    def measure(
        self, device: crenel.Device, steps: int, work: Callable[[], None]
    ) -> dict[str, float | int | str | None]:
        """Run `work`, which does `steps` of the same. Joules are of the whole board, in all and for a step;
        None where there were too few samples, and then the note says so."""
        with Meter(device) as meter:
            begin = time.perf_counter()
            work()
            seconds = time.perf_counter() - begin
        found = meter.energy(steps)
        enough = found.joules is not None and found.samples >= LEAST_SAMPLES
        note = found.note
        if not enough:
            few = f"{found.samples} samples in {seconds:.2f} s, expected {LEAST_SAMPLES}"
            note = f"{few}: more repetitions; {note}"
        return {
            "bootstraps": steps,
            "seconds": seconds,
            "joules": found.joules if enough else None,
            "joules_per_bootstrap": found.joules_per_step if enough else None,
            "mean_watts": found.mean_watts if enough else None,
            "samples": found.samples,
            "period_ms": PERIOD_MS,
            "note": note,
        }
