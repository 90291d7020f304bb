"""A sorting program in numbers and in words, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from crenel.workloads.shared import MIB, columns
from crenel.workloads.sorting import circuit
from crenel.workloads.sorting.setup import Setup
from crenel.workloads.sorting.simulate import expected
from crenel.workloads.sorting.values import SPAN


@dataclass(frozen=True)
class Report:
    """What a sorting program costs and gives, before it runs."""

    rounds: int
    """Comparisons one after the other."""
    stages: int
    """Of the network: two where a round is of radix 4."""
    comparisons: int
    """Pairs compared, all told."""
    levels: tuple[int, int]
    """Of a round of the plan's radix; after a bootstrap."""
    bootstraps: int
    """Of two real vectors each."""
    rotation_keys: int
    """Beside those of the bootstrap."""
    key_bytes: int
    """Of all evaluation keys, on the device."""
    recordings: tuple[int, int]
    """Recorded parts of a run with ``graph=True``; replays of them."""
    resolution: float
    """Smallest difference, of numbers in a range of width 1, that is told from a tie."""
    expected_error: float
    """Largest error of a result, of uniform numbers in a range of width 1: the mean over simulated runs,
    not a bound: few numbers at worse distances come out several times as far off."""
    expected_rms: float
    """Root mean square of it."""
    converges: bool
    """No argument of a polynomial left its interval in those runs; otherwise both errors are infinite."""


def report(setup: Setup) -> Report:
    """Costs and expected errors, some of them from simulated runs of uniform numbers."""
    errors, needs, rounds = expected(setup), setup.demand, setup.rounds
    levels = setup.comparator.levels + circuit.TAIL[setup.radix] + (setup.radix == 4)
    return Report(
        rounds=len(rounds),
        stages=sum(r.radix // 2 for r in rounds),
        comparisons=sum(setup.size // 2 if r.radix == 2 else 3 * setup.size // 2 for r in rounds),
        levels=(levels, setup.refresh.output_level),
        bootstraps=needs.bootstraps,
        rotation_keys=len(setup.rotations),
        key_bytes=setup.key_bytes(),
        recordings=(needs.recordings, needs.replays),
        resolution=setup.comparator.interval / SPAN,
        expected_error=errors.largest,
        expected_rms=errors.rms,
        converges=errors.converge,
    )


def describe(setup: Setup, found: Report, variant: str) -> str:
    """The text of Sorting.describe."""
    what = "all" if setup.top is None else f"the {setup.top}"
    kind = "largest first" if setup.descending else "smallest first"
    error = "without bound: errors of these parameters leave the polynomials' intervals"
    if found.converges:
        error = (
            f"about 2^{log2(found.expected_error):.1f} of the range at the largest, rms "
            f"2^{log2(found.expected_rms):.1f} (simulated, of uniform numbers)"
        )
    padding = "" if setup.size == setup.count else f", padded to {setup.size}"
    lines = [
        ("sorts", f"{setup.count} numbers ({what}, {kind}) and {setup.payload} columns of payload, in "
         f"vectors of {setup.slots} slots{padding}"),
        ("network", f"{found.rounds} rounds of radix {setup.radix} ({found.stages} two-way stages), "
         f"{found.comparisons} comparisons; variant {variant!r}"),
        ("comparator", f"{setup.comparator.name}: {setup.comparator.levels} levels; a round takes "
         f"{found.levels[0]}, a bootstrap gives {found.levels[1]}"),
        ("bootstraps", f"{found.bootstraps}, of two vectors each, message ratio "
         f"2^{setup.refresh.message_ratio}"),
        ("keys", f"{found.rotation_keys} rotations beside the bootstrap's, {found.key_bytes / MIB:.0f} MiB "
         "in all"),
        ("recordings", f"{found.recordings[0]} parts for {found.recordings[1]} replays, with graph=True"),
        ("ties", f"numbers closer than {found.resolution:.1e} of the range come out mixed, payload with "
         "them"),
        ("error", error),
    ]  # fmt: skip
    return columns(lines, 11)
