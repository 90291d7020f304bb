"""Levels of a training: where each iteration begins, and where the state is refreshed."""

from __future__ import annotations

from dataclasses import dataclass

from crenel._crenel import Params
from crenel.errors import ParameterError
from crenel.workloads.checked import whole

LEVELS = 4  # of an iteration
FIRST_LEVELS = 2  # of the first one, whose inner products are all zero: label, gradient
MOST_ITERATIONS = 2**16  # there are lists of them; HELR takes 32
FLOOR = 0  # where a bootstrap takes the state


@dataclass(frozen=True)
class Segment:
    """Iterations in a row; all segments but the first begin with a refresh."""

    first: int
    count: int
    start: int
    """Level of the state that the first of these reads; of segment 0, that the first one leaves."""

    @property
    def refreshed(self) -> bool:
        """Does it begin with a bootstrap?"""
        return self.first > 0

    @property
    def end(self) -> int:
        """Level of the state that the last of these leaves."""
        return self.start - LEVELS * (self.count if self.refreshed else self.count - 1)


@dataclass(frozen=True)
class Plan:
    """Levels by parameters alone: the same for every number of iterations, which only cuts it off."""

    fresh: int
    """Level that tables are encrypted at."""
    start: int
    """Level of the state after the first iteration."""
    output: int | None
    """Level after a refresh; None without bootstraps."""

    @classmethod
    def of(cls, params: Params, output: int | None) -> Plan:
        """Raises ParameterError for parameters with too few levels.

        output : highest level after a bootstrap, None for parameters without
        """
        fresh = params.normal_top_level
        if fresh < FIRST_LEVELS or (output is not None and output < LEVELS):
            raise ParameterError(
                f"{fresh} levels, {output} after a bootstrap: the first iteration takes {FIRST_LEVELS}, "
                f"every other {LEVELS}",
                {"fresh": fresh, "output": -1 if output is None else output, "needed": LEVELS},
            )
        if output is None:
            return cls(fresh, fresh - FIRST_LEVELS, None)
        # No level is left over at a refresh: fewer primes all the way.
        return cls(fresh, _whole(fresh - FIRST_LEVELS), _whole(output))

    @property
    def highest(self) -> int:
        """Highest level that a state has."""
        return max(self.start, self.output or 0)

    @property
    def most(self) -> int | None:
        """Iterations that there are levels for; None: any number."""
        return None if self.output is not None else 1 + self.start // LEVELS

    def segments(self, iterations: int) -> list[Segment]:
        """Raises ParameterError for fewer than one iteration, and more than the levels allow."""
        iterations = whole("iterations", iterations)
        if not 1 <= iterations <= MOST_ITERATIONS:
            raise ParameterError(
                f"iterations must be at least 1 and at most {MOST_ITERATIONS}, got {iterations}",
                {"iterations": iterations},
            )
        most = self.most
        if most is not None and iterations > most:
            raise ParameterError(
                f"{iterations} iterations: these parameters have levels for {most} and none for bootstraps. "
                f"depth={FIRST_LEVELS + LEVELS * (iterations - 1)} would do, or a set that bootstraps",
                {
                    "iterations": iterations,
                    "max_iterations": most,
                    "needed": FIRST_LEVELS + LEVELS * (iterations - 1),
                },
            )
        found = [Segment(0, min(iterations, 1 + self.start // LEVELS), self.start)]
        while self.output is not None and (done := found[-1].first + found[-1].count) < iterations:
            found.append(Segment(done, min(iterations - done, self.output // LEVELS), self.output))
        return found


def _whole(levels: int) -> int:
    return levels - (levels - FLOOR) % LEVELS
