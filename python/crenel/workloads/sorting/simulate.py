"""A sort in the clear, and the errors to expect of an encrypted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crenel.workloads.sorting import circuit, clear
from crenel.workloads.sorting.clear import Noise
from crenel.workloads.sorting.setup import Setup
from crenel.workloads.sorting.values import Scale, slot_vectors

Reals = NDArray[np.float64]
MANY = 2**10
DRAWS = 3  # inputs of which the mean error is taken; of more than MANY numbers one says as much


@dataclass(frozen=True)
class Trace:
    """A simulated run."""

    rounds: list[list[Reals]]
    """After every round: slots of the numbers and of each column of payload."""
    values: Reals
    """The results."""
    payload: Reals
    """A row for each column, in the order of the results."""
    bootstraps: int
    """Of two real vectors each."""
    largest: float
    """Largest argument of a polynomial: above 1 errors explode."""


@dataclass(frozen=True)
class Errors:
    """Of uniform numbers in a range of width 1, from simulated runs; infinite where one diverged."""

    largest: float
    """Mean over the runs of the largest error."""
    rms: float

    @property
    def converge(self) -> bool:
        """No argument of a polynomial left its interval."""
        return self.largest < inf


def simulate(
    setup: Setup,
    values: ArrayLike,
    payload: Sequence[ArrayLike],
    scales: Sequence[Scale],
    noise: Noise | None,
) -> Trace:
    """See Sorting.simulate."""
    machine = clear.ClearMachine(setup.refresh.output_level, noise or clear.EXACT)
    start = setup.params.normal_top_level
    vectors = slot_vectors(values, payload, tuple(scales), setup.slots, setup.last)
    columns = [machine.vector(vector, start) for vector in vectors]
    parts = circuit.Parts(machine, setup.comparator)
    rounds = []
    for round_ in setup.rounds:
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverges
            columns = circuit.run_round(parts, columns, round_, circuit.masks(round_, setup.slots))
        rounds.append([c.values.real for c in columns])
    places = setup.places
    results = [s.from_slots(c.values.real[places]) for s, c in zip(scales, columns, strict=True)]
    rows = np.array(results[1:]).reshape(setup.payload, len(places))
    return Trace(rounds, results[0], rows, machine.bootstraps, machine.largest)


def expected(setup: Setup) -> Errors:
    """Errors of the numbers by simulated runs, the same at every call."""
    random = np.random.default_rng(0)
    largest, squares = [], []
    scales = [Scale(0.0, 1.0)] * (1 + setup.payload)
    for draw in range(DRAWS if setup.size <= MANY else 1):
        numbers = random.random(setup.count)
        payload = [np.zeros(setup.count)] * setup.payload
        trace = simulate(setup, numbers, payload, scales, setup.noise(draw))
        if not trace.largest <= 1:
            return Errors(inf, inf)
        order = np.sort(numbers)[::-1] if setup.descending else np.sort(numbers)
        error = np.abs(trace.values - order[: len(setup.places)])
        largest.append(error.max())
        squares.append(np.mean(error**2))
    return Errors(float(np.mean(largest)), float(np.sqrt(np.mean(squares))))
