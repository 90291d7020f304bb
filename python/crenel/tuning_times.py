"""What ``crenel tune`` times: operations of CKKS of few and many limbs and batches, gates of TFHE."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from crenel import ablation, growth, tfhe
from crenel._crenel import Device, Optimisations
from crenel.errors import StateError, UnsupportedError
from crenel.tuning import Choice, Times

# Operation, limbs as near as there are, ciphertexts: large and small grids of every kind of launch.
CKKS = (
    ("hmult", 46, 1),
    ("hmult", 24, 1),
    ("hmult", 11, 1),
    ("hrot", 24, 8),
    ("rescale", 46, 1),
    ("rescale", 24, 8),
)
GATES = (16, 64, 128, 1024)  # of one call
OF_GATES = ("switch_rows", "switch_blocks")


class Workloads:
    """Keys and inputs on a device that choices are timed on; each result must keep the bits of the first."""

    def __init__(
        self, device: Device, params: str, gates: str | None, repeats: int, seconds: float, seed: int
    ) -> None:
        """
        params : a set of CKKS; gates : a set of TFHE, None for none
        repeats, seconds : times that a workload is timed, at most, and about how long

        Raises UnsupportedError for a device that computes nothing.
        """
        if device.name.startswith("cuda:dry"):
            raise UnsupportedError(
                f"{device.name} computes nothing: there are no times to tune by", {"device": device.name}
            )
        self._device, self._repeats, self._seconds = device, repeats, seconds
        self._digests: dict[str, str] = {}
        world = growth.World(ablation.of(params), device, growth.Plan(seed=seed))
        self._benches: dict[str, ablation.Bench] = {}
        for name, limbs, batch in CKKS:
            levels = range(1, world.params.max_level + 1)
            level = min(levels, key=lambda k: abs(sum(world.params.levels[k]) - limbs))
            bench = replace(world.bench(name, level, batch), expected=None)  # bits are compared
            self._benches[f"{name}, {bench.limbs} limbs, {batch} together"] = bench
        self._gates = _gates(device, gates, seed) if gates else {}

    def times(self, choice: Choice, of: str = "") -> Times:
        """Medians in microseconds of what the number `of` may change; of all without one.

        Raises StateError where a result has other bits than that of the first call.
        """
        before, wanted = self._device.optimisations, Optimisations()
        choice.apply(self._device)
        wanted = self._device.optimisations
        found: dict[str, float] = {}
        try:
            if of not in OF_GATES:
                for name, bench in self._benches.items():
                    measured = ablation.run(bench, wanted, self._repeats, self._seconds, None)
                    self._same(name, str(measured.digest))
                    found[name] = measured.latency_us or 0.0
            if not of or of in OF_GATES:
                for name, run in self._gates.items():
                    found[name] = self._gate(name, run)
        finally:
            self._device.optimisations = before
        return found

    def _gate(self, name: str, run: Callable[[], tfhe.Ciphertext]) -> float:
        self._same(name, hashlib.sha256(run().to_bytes()).hexdigest())
        times: list[float] = []
        while not times or (len(times) < self._repeats and sum(times) < self._seconds):
            began = time.perf_counter()
            run().context.synchronize()
            times.append(time.perf_counter() - began)
        return 1e6 * statistics.median(times)

    def _same(self, name: str, digest: str) -> None:
        if self._digests.setdefault(name, digest) != digest:
            raise StateError(
                f"{name}: other bits than with the numbers that the device began with",
                {"found": digest, "expected": self._digests[name]},
            )


def _gates(device: Device, preset: str, seed: int) -> dict[str, Callable[[], tfhe.Ciphertext]]:
    context = tfhe.Context(tfhe.preset(preset), device)
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    rng = np.random.default_rng(seed)
    found: dict[str, Callable[[], tfhe.Ciphertext]] = {}
    for count in GATES:
        a, b = (client.encrypt(x) for x in rng.integers(0, 2, (2, count)).astype(bool))
        found[f"nand, {count} together"] = lambda a=a, b=b: ev.nand(a, b)  # type: ignore[misc]
    return found
