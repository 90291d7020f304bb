"""How times grow: operations over rings, limbs and batches, bootstraps over slots, CPUs over threads.

One axis at a time, all else held: the same chain of primes on every ring, the same ring for every number of
limbs. ``crenel bench growth`` runs it; ``crenel reproduce`` draws its records.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

import crenel
from crenel import ablation, ckks
from crenel._crenel import Optimisations
from crenel.errors import InsecureParametersWarning, ParameterError
from crenel.records import record
from crenel.sweep import levels_of

AXES = {
    "log_n": "ring degree",
    "limbs": "limbs of a ciphertext",
    "batch": "ciphertexts of one call",
    "slots": "slots of a bootstrap",
    "threads": "threads of a CPU",
}
OPERATIONS = ("hmult", "hrot", "rescale", "hadd")
IN_A_ROW = 16  # operations of a replayed graph, which copies its inputs and results once
# Largest error of a right result, slots being within 1: those of rotations of other places or of other
# products are near 1, and a scale of 2^28 or more leaves far smaller ones.
TOLERANCE = 2.0**-8
Row = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class LeftOut:
    """A point that was asked for and not measured."""

    axis: str
    x: int
    name: str
    """The operation; empty for all."""
    why: str


@dataclass
class Growth:
    """What was measured, and what was not."""

    rows: list[Row] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """What is measured, and how often."""

    scale_bits: int = 40
    depth: int = 8
    """Of the chain that every ring has."""
    alpha: int = 4
    """Special primes of it."""
    params: str = "leveled-n16-s40"
    """Where limbs and batches grow, and threads."""
    boot: str = "boot40"
    """Where slots grow."""
    log_n: tuple[int, ...] = (13, 14, 15, 16, 17)
    steps: int = 8
    """Numbers of limbs, at most."""
    batches: tuple[int, ...] = (1, 2, 4, 8, 16)
    log_slots: tuple[int, ...] = (9, 11, 13, 15)
    threads: tuple[int, ...] = (1, 2, 4, 8, 16)
    """More than this process may use are left out."""
    repeats: int = 9
    seconds: float = 0.2
    """Of timing one point, about."""
    limit: float = 600
    """Seconds after which no further point is begun."""
    seed: int = 1


def measure(
    device: crenel.Device, axes: Iterable[str], plan: Plan, say: Callable[[str], None] = lambda text: None
) -> Growth:
    """A row for each point of the axes, or the reason why there is none: an operation that takes a level
    where none is left, more slots than there are, more threads than this process may use, memory, time.

    Raises ParameterError for an axis that is none, threads of a device that is not the CPU, and rings out of
    range.
    """
    found, end = Growth(), time.monotonic() + plan.limit
    names = list(axes)
    for axis in names:
        if axis not in AXES:
            raise ParameterError(f"axis '{axis}', expected some of {', '.join(AXES)}", {"axis": axis})
    for axis in names:
        for x, points in _MEASURES[axis](device, plan):
            if time.monotonic() > end:
                why = f"{plan.limit:g} s of all were over (--limit)"
                found.left_out.append(LeftOut(axis, x, "", why))
                continue
            try:
                for point in points():
                    if isinstance(point, LeftOut):
                        found.left_out.append(replace(point, axis=axis, x=x))
                    else:
                        say(f"{axis} {x}: {point['name']}")
                        found.rows.append({"axis": axis, "x": x, **point})
                    gc.collect()
            except MemoryError as error:  # OutOfMemoryError, and NumPy's
                found.left_out.append(LeftOut(axis, x, "", str(error) or "out of memory"))
            gc.collect()
    return found


def _generated(log_n: int, plan: Plan) -> ckks.Params:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureParametersWarning)
        return ckks.Params(
            log_n=log_n,
            scale_bits=plan.scale_bits,
            depth=plan.depth,
            alpha=plan.alpha,
            allow_insecure=True,
        )


Point = Row | LeftOut
Points = Iterator[tuple[int, Callable[[], Iterable[Point]]]]
"""Places on an axis, and what measures all that is asked for there: whatever takes memory is made there."""


def _left_out(name: str, why: str) -> LeftOut:
    """Of a place that `measure` knows."""
    return LeftOut("", 0, name, why)


class _Shared(Generic[T]):
    """What all places of an axis use: made at the first of them, and no second time where it failed."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | MemoryError | None = None

    def __call__(self) -> T:
        if self._made is None:
            try:
                self._made = self._make()
            except MemoryError as error:
                self._made = error.with_traceback(None)  # which would hold what was made before it
        if isinstance(self._made, MemoryError):
            raise self._made
        return self._made


def _over_rings(device: crenel.Device, plan: Plan) -> Points:
    def of(log_n: int) -> Iterator[Point]:
        params = _generated(log_n, plan)
        world = World(params, device, plan)
        for name in OPERATIONS:
            yield world.row(name, params.max_level, 1)

    for log_n in plan.log_n:
        yield log_n, partial(of, log_n)


def _over_limbs(device: crenel.Device, plan: Plan) -> Points:
    params = ablation.of(plan.params)
    world = _Shared(lambda: World(params, device, plan))
    limbs = [sum(level) for level in params.levels]

    def of(level: int) -> Iterator[Point]:
        for name in OPERATIONS:
            if level == 0 and name in ("hmult", "rescale"):
                yield _left_out(name, "a product takes a level, and none is left")
            else:
                yield world().row(name, level, 1)

    for level in levels_of(limbs, plan.steps):
        yield limbs[level], partial(of, level)


def _over_batches(device: crenel.Device, plan: Plan) -> Points:
    params = ablation.of(plan.params)
    world = _Shared(lambda: World(params, device, plan))
    level = min(range(1, params.max_level + 1), key=lambda k: abs(sum(params.levels[k]) - 24))

    def of(batch: int) -> Iterator[Point]:
        for name in OPERATIONS:
            yield world().row(name, level, batch)

    for batch in plan.batches:
        yield batch, partial(of, batch)


def _over_slots(device: crenel.Device, plan: Plan) -> Points:
    params = ablation.of(plan.boot)
    shared = _Shared(lambda: ckks.Context(params, device=device))
    rng = np.random.default_rng(plan.seed)

    def of(slots: int) -> Iterator[Point]:
        if slots > params.slots:
            yield _left_out("bootstrap", f"{plan.boot} has {params.slots} slots")
            return
        context = shared()
        client = context.keygen()
        options = ckks.BootstrapOptions(slots=slots)
        keys = client.evaluation_keys(bootstrap=options)
        boot = context.bootstrapper(keys, options)
        values = _vector(rng, slots)
        inputs = (client.encrypt(values, level=boot.levels.input, slots=slots),)
        limbs = sum(params.levels[boot.levels.input])
        evaluator = context.evaluator(keys)
        bench = ablation.Bench(context, "bootstrap", limbs, boot.eager, inputs, evaluator, client, values)
        yield {
            "name": "bootstrap",
            "slots": slots,
            "levels_left": boot.levels.output,
            "key_bytes": keys.nbytes,
            **_facts(params, limbs, 1),
            **_timed(bench, plan),
        }

    for log_slots in plan.log_slots:
        yield 1 << log_slots, partial(of, 1 << log_slots)


def _over_threads(device: crenel.Device, plan: Plan) -> Points:
    """In processes of their own: OpenMP's threads are counted when one starts."""
    if device.kind != "cpu":
        raise ParameterError(
            f"threads of {device.name}, expected the device cpu: a GPU's work does not divide by threads",
            {"device": device.name, "expected": "cpu"},
        )
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def of(threads: int) -> Iterator[Point]:
        if threads > allowed:
            yield _left_out("", f"this process may use {allowed}")
            return
        record = _child(plan, threads)
        if isinstance(record, LeftOut):
            yield record
            return
        for row in record["results"]:
            yield {name: value for name, value in row.items() if name not in ("axis", "x")} | {
                "threads": threads
            }
        for each in record["left_out"]:
            yield _left_out(each["name"], each["why"])

    for threads in plan.threads:
        yield threads, partial(of, threads)


def _child(plan: Plan, threads: int) -> dict[str, Any] | LeftOut:
    """The record of a process with so many threads; a wrong result is one of its rows. Or how it ended:
    one that takes too much memory may be killed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "growth.json"
        words = [sys.executable, "-m", "crenel", "bench", "growth", "--device", "cpu", "--axes", "batch"]
        words += ["--params", plan.params, "--batches", "1", "--repeats", str(plan.repeats)]
        words += ["--seconds", str(plan.seconds), "--seed", str(plan.seed), "--json", str(path)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if not path.is_file():
            told = done.stderr.strip()[-300:]
            return _left_out("", f"its process ended with status {done.returncode} and no record: {told}")
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


_MEASURES: dict[str, Callable[[crenel.Device, Plan], Points]] = {
    "log_n": _over_rings,
    "limbs": _over_limbs,
    "batch": _over_batches,
    "slots": _over_slots,
    "threads": _over_threads,
}


def _vector(rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    return rng.uniform(-0.7, 0.7, count) + 1j * rng.uniform(-0.7, 0.7, count)


class World:
    """Keys of one parameter set on one device, and what its operations are given."""

    def __init__(self, params: ckks.Params, device: crenel.Device, plan: Plan) -> None:
        self.params, self.plan = params, plan
        self._context = ckks.Context(params, device=device)
        self._client = self._context.keygen()
        self._ev = self._context.evaluator(self._client.evaluation_keys(rotations=[1]))
        self._rng = np.random.default_rng(plan.seed)

    def row(self, name: str, level: int, batch: int) -> Row:
        """One operation on `batch` ciphertexts of a level."""
        bench = self.bench(name, level, batch)
        return {"name": name, **_facts(self.params, bench.limbs, batch), **_timed(bench, self.plan)}

    def bench(self, name: str, level: int, batch: int) -> ablation.Bench:
        """The same, ready to run, with inputs of its own; on a GPU several in a row."""
        limbs = sum(self.params.levels[level])
        work, inputs, expected = self._work(name, level, batch)
        times = IN_A_ROW if self._context.device.has_graphs else 1

        def several(*given: ckks.Ciphertext) -> ckks.Ciphertext:
            for _ in range(times - 1):
                work(*given)
            return work(*given)

        return ablation.Bench(
            self._context, name, limbs, several, inputs, self._ev, self._client, expected, times
        )

    def _work(
        self, name: str, level: int, batch: int
    ) -> tuple[Callable[..., ckks.Ciphertext], tuple[ckks.Ciphertext, ...], np.ndarray[Any, Any]]:
        a, b = (self._values(batch) for _ in range(2))
        ev = self._ev
        if name == "hmult":
            return ev.multiply, (self._encrypted(a, level), self._encrypted(b, level)), a * b
        if name == "hadd":
            return ev.add, (self._encrypted(a, level), self._encrypted(b, level)), a + b
        if name == "hrot":
            return lambda x: ev.rotate(x, 1), (self._encrypted(a, level),), np.roll(a, -1, axis=-1)
        product = ev.multiply(self._encrypted(a, level), self._encrypted(b, level))
        return ev.rescale, (product,), a * b

    def _values(self, batch: int) -> np.ndarray[Any, Any]:
        own = [_vector(self._rng, self.params.slots) for _ in range(batch)]
        return own[0] if batch == 1 else np.stack(own)

    def _encrypted(self, values: np.ndarray[Any, Any], level: int) -> ckks.Ciphertext:
        return self._client.encrypt(values, level=level)


def _facts(params: ckks.Params, limbs: int, batch: int) -> Row:
    return {
        "params": params.name or "generated",
        "params_id": params.id,
        "log_n": params.log_n,
        "scale_bits": params.log_scale,
        "limbs": limbs,
        "special": params.alpha,
        "batch": batch,
        "security_bits": round(params.security_bits),
    }


def _timed(bench: ablation.Bench, plan: Plan) -> Row:
    """Of one operation: medians of replayed graphs on a GPU, of calls elsewhere, bounds on cuda:dry."""
    found = ablation.run(bench, Optimisations(), plan.repeats, plan.seconds, None)
    judged = {} if bench.dry else {"correct": found.error is not None and found.error < TOLERANCE}
    return {
        **judged,
        "latency_us": found.latency_us,
        "min_us": found.min_us,
        "repeats": found.repeats,
        "in_a_row": bench.in_a_row,
        "bound_us": found.paced_us,
        "launches": found.launches,
        "bytes": found.bytes,
        "dram_bytes": found.dram_bytes,
        "error": found.error,
    }


def document(found: Growth, plan: Plan, where: dict[str, Any]) -> dict[str, Any]:
    """Plain data, as bench/results keeps it."""
    left_out = [asdict(each) for each in found.left_out]
    return record("growth", where, found.rows, seed=plan.seed, left_out=left_out)
