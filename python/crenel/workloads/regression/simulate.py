"""The training in the clear: the same packing, polynomials and operations, on slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crenel.workloads.regression import circuit
from crenel.workloads.regression.clear import Clear, ClearOperations, encode
from crenel.workloads.regression.layout import Layout
from crenel.workloads.regression.noise import Noise
from crenel.workloads.regression.plan import Plan
from crenel.workloads.regression.schedule import Factors
from crenel.workloads.regression.sigmoid import Sigmoid
from crenel.workloads.stages import unmeasured


@dataclass(frozen=True)
class Trace:
    """What a training in the clear did."""

    weights: NDArray[np.float64]
    """After each iteration, shape (iterations, features + 1), the intercept first."""
    largest_inner: NDArray[np.float64]
    """Largest |z.v| of each iteration, which the sigmoid's limit must exceed; the first one's is 0."""
    largest_state: NDArray[np.float64]
    """Largest |entry| of the state after each iteration, which the range of weights must exceed."""
    levels: list[int]
    """Of the state after each iteration."""
    counts: dict[str, int]
    """Operations on single vectors, all told."""


def simulate(
    layout: Layout,
    sigmoid: Sigmoid,
    weight_range: float,
    plan: Plan,
    factors: Sequence[Factors],
    seen: Sequence[int],
    features: Sequence[NDArray[np.float64]],
    labels: Sequence[NDArray[np.float64]],
    noise: Noise | None,
    rng: np.random.Generator,
) -> Trace:
    """Train on blocks of rows and of labels, in the order `seen`."""
    ops = ClearOperations(plan.output, layout.columns, noise, rng)

    ready: dict[int, circuit.Block[Clear]] = {}

    def block(which: int) -> circuit.Block[Clear]:
        if which not in ready:
            x = ops.fresh(layout.block(features[which]), plan.fresh)
            y = ops.fresh(layout.labels(labels[which])[None, :].astype(np.complex128), plan.fresh)
            ready[which] = circuit.prepare(ops, layout, x, y, plan.start, plan.highest)
        return ready[which]

    weights: list[NDArray[np.float64]] = []
    inner: list[float] = []
    largest: list[float] = []
    levels: list[int] = []
    state: circuit.State[Clear] | None = None
    for part in plan.segments(len(seen)):
        for t in range(part.first, part.first + part.count):
            if state is None:
                half = circuit.first_constant(layout, weight_range, factors[0], plan.start, encode)
                state = circuit.begin(ops, layout, block(seen[0]), half, plan.start, unmeasured)
            else:
                if t == part.first:
                    state = circuit.refresh(ops, layout, state, unmeasured)
                by = circuit.constants(layout, sigmoid, weight_range, factors[t], state.ahead.level, encode)
                state = circuit.iterate(ops, layout, sigmoid, state, block(seen[t]), by, unmeasured)
            weights.append(layout.weights(state.weights.values) * (weight_range / factors[t].keep))
            u = 0.0 if state.inner is None else float(np.abs(state.inner.values.real).max())
            inner.append(u / sigmoid.mu)
            entries = [layout.weights(v.values) for v in (state.ahead, state.weights)]
            largest.append(weight_range * max(float(np.abs(v).max()) for v in entries))
            levels.append(state.ahead.level)
    return Trace(np.array(weights), np.array(inner), np.array(largest), levels, dict(ops.counts))
