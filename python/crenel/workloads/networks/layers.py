"""Layers of a record: the values of a plan with their times and errors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crenel import ckks, nn
from crenel.nn.ops import Reals
from crenel.nn.pictures.graph import kind_of
from crenel.nn.plan import Evaluate, Plan, Quadratic
from crenel.workloads.records import Layer, Stage
from crenel.workloads.session import Session


def measured(
    held: Session, server: nn.Server, client: nn.Client, samples: Reals, x: nn.EncryptedTensor,
    *, timed: bool, errors: bool,
) -> tuple[Layer, ...]:  # fmt: skip
    """Values of the plan with the time and the error of each, where they are asked for.

    samples : what the client sees of `x`
    errors : decrypts every value, under the client's key, which must be a test key
    """
    plan = server.program.plan
    layers = of_plan(plan)
    if timed:
        with held.step("server: one run, timed by layer"):
            for number, seconds in _seconds(server, x, held.context.synchronize).items():
                layers[number] = replace(layers[number], seconds=seconds)
    if errors:
        with held.step("errors of every layer, under a test key"):
            found = nn.report(server, client, samples)
        # Rows come in the order in which values are made.
        for number, row in zip((step.out for step in plan.steps), found.rows, strict=True):
            layers[number] = replace(layers[number], expected=row.expected, measured=row.measured)
    return tuple(layers.values())


def _seconds(server: nn.Server, x: nn.EncryptedTensor, wait: Callable[[], Any]) -> dict[int, float]:
    """Of each value that a run makes."""
    found: dict[int, float] = {}
    wait()
    last = time.perf_counter()

    def made(number: int, ciphertexts: list[ckks.Ciphertext]) -> None:
        nonlocal last
        wait()
        now = time.perf_counter()
        found[number], last = now - last, now

    server.run(x, watch=made)
    return found


def of_plan(plan: Plan) -> dict[int, Layer]:
    """Values in the order in which they are made, the input first; by their numbers."""
    kinds = {0: "input"} | {step.out: kind_of(step) for step in plan.steps}
    return {
        number: Layer(value.origin, kind, value.level, value.layout.slots, value.layout.ciphertexts)
        for number, kind in kinds.items()
        for value in [plan.values[number]]
    }


def by_kind(found: tuple[Layer, ...]) -> tuple[Stage, ...]:
    """By kind of step."""
    timed = [layer for layer in found if layer.seconds is not None]
    return tuple(
        Stage(
            kind,
            sum(layer.seconds or 0.0 for layer in timed if layer.kind == kind),
            sum(layer.kind == kind for layer in timed),
        )
        for kind in dict.fromkeys(layer.kind for layer in timed)
    )


def polynomials(plan: Plan) -> str:
    """Polynomials of the plan, as ``relu 63 x 19``."""
    found: Counter[str] = Counter()
    for step in plan.steps:
        if isinstance(step, Evaluate):
            degrees = ",".join(str(len(f) - 1) for f in step.series.factors)
            found[f"{step.series.function} {degrees}"] += 1
        elif isinstance(step, Quadratic):
            found["quadratic"] += 1
    return ", ".join(f"{name} x {count}" for name, count in found.items()) or "none"
