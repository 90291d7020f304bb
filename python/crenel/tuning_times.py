"""What ``crenel tune`` times: operations of CKKS of few and many limbs and batches, linear transforms,
conversions by a launch of their own, gates of TFHE."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from crenel import ablation, ckks, growth, tfhe
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
SUMS = ((24, 1), (24, 4))
"""Limbs and ciphertexts of linear transforms, whose baby steps are hoisted sums."""
DIAGONALS, BABY_STEPS = 32, 8
ALONE = (("hmult", 46, 1), ("rescale", 24, 8))
"""Without ``convert_columns``: rings and numbers of sources that it has no kernel for, and GPUs whose blocks
have too little shared memory for it, convert in a launch of its own."""
GATES = (16, 64, 128, 1024)  # of one call
# What the workloads of a kind are for, where it is not for all numbers but these.
OF_GATES = ("switch_rows", "switch_blocks")
OF_SUMS = ("sums_walk",)
OF_ALONE = ("conversion_start",)

Benches = dict[str, ablation.Bench]


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
        self._operations, self._alone = operations(device, params, seed)
        self._sums = sums(device, params, seed)
        self._gates = _gates(device, gates, seed) if gates else {}

    def times(self, choice: Choice, of: str = "") -> Times:
        """Medians in microseconds of what the number `of` may change; of all without one.

        Raises StateError where a result has other bits than that of the first call.
        """
        before = self._device.optimisations
        choice.apply(self._device)
        wanted = self._device.optimisations
        found: dict[str, float] = {}
        try:
            if of not in (*OF_GATES, *OF_SUMS, *OF_ALONE):
                found |= self._ckks(self._operations, wanted)
            if of not in (*OF_GATES, *OF_ALONE):
                found |= self._ckks(self._sums, wanted)
            if not of or of in OF_ALONE:
                found |= self._ckks(self._alone, wanted.replace(convert_columns=False))
            if not of or of in OF_GATES:
                for name, run in self._gates.items():
                    found[name] = self._gate(name, run)
        finally:
            self._device.optimisations = before
        return found

    def _ckks(self, benches: Mapping[str, ablation.Bench], wanted: Optimisations) -> Times:
        found: dict[str, float] = {}
        for name, bench in benches.items():
            measured = ablation.run(bench, wanted, self._repeats, self._seconds, None)
            self._same(name, str(measured.digest))
            found[name] = measured.latency_us or 0.0
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


def operations(device: Device, params: str, seed: int) -> tuple[Benches, Benches]:
    """Products, rotations and rescales; and those of `ALONE`, to be run without ``convert_columns``."""
    world = growth.World(ablation.of(params), device, growth.Plan(seed=seed))

    def bench(name: str, limbs: int, batch: int) -> ablation.Bench:
        made = world.bench(name, _level(world.params, limbs), batch)
        return replace(made, expected=None)  # bits are compared

    first = {_title(made := bench(*each), each[2]): made for each in CKKS}
    alone = {f"{_title(made := bench(*each), each[2])}, conversions alone": made for each in ALONE}
    return first, alone


def sums(device: Device, params: str, seed: int) -> Benches:
    """Linear transforms, with keys and a context of their own."""
    chosen = ablation.of(params)
    context = ckks.Context(chosen, device=device)
    client, rng = context.keygen(), np.random.default_rng(seed)
    level = _level(chosen, SUMS[0][0])
    diagonals = {k: rng.uniform(-0.1, 0.1, chosen.slots) for k in range(DIAGONALS)}
    transform = context.linear_transform(diagonals, level=level, baby_steps=BABY_STEPS)
    ev = context.evaluator(client.evaluation_keys(rotations=sorted(transform.rotations)))
    times = growth.IN_A_ROW if device.has_graphs else 1

    def several(x: ckks.Ciphertext) -> ckks.Ciphertext:
        for _ in range(times - 1):
            ev.linear_transform(transform, x)
        return ev.linear_transform(transform, x)

    found: Benches = {}
    for _, batch in SUMS:
        values = rng.uniform(-0.7, 0.7, (batch, chosen.slots))
        low = client.encrypt(values[0] if batch == 1 else values, level=level)
        limbs = sum(chosen.levels[level])
        made = ablation.Bench(context, "linear transform", limbs, several, (low,), ev, client, None, times)
        found[_title(made, batch)] = made
    return found


def _level(params: ckks.Params, limbs: int) -> int:
    return min(range(1, params.max_level + 1), key=lambda k: abs(sum(params.levels[k]) - limbs))


def _title(bench: ablation.Bench, batch: int) -> str:
    return f"{bench.operation}, {bench.limbs} limbs, {batch} together"


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
