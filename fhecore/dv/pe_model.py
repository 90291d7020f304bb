"""Cycle model of the processing element: what its ports show after every clock edge.

Arithmetic is `%` on Python integers, not Barrett; the pipeline is a list of steps, not registers. It states
the contract of modmul_pe and modmul_pe_cs: forwarding after 1 edge, results after 6, reset of control only.
"""

from __future__ import annotations

from dataclasses import dataclass

from fhecore.config import LEVELS
from fhecore.dv.golden import Column, barrett


@dataclass(frozen=True)
class Inputs:
    """Values at one edge. first, last and bank mean something with valid; c with valid and first."""

    a: int = 0
    b: int = 0
    c: int = 0
    valid: bool = False
    first: bool = False
    last: bool = False
    bank: int = 0
    rst: bool = False


@dataclass(frozen=True)
class Outputs:
    """Values after an edge. None: the contract leaves it open."""

    a: int | None
    b: int | None
    valid: bool
    first: bool | None
    last: bool | None
    bank: int | None
    acc: int | None
    done: bool


@dataclass(frozen=True)
class Step:
    """What one accumulation did: for coverage."""

    error: int  # of the quotient estimate
    subtractions: int  # multiples of q' taken off acc + r2


class Element:
    """One processing element, W-bit words."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.pipe: list[tuple[Inputs, Column] | None] = [None] * (LEVELS - 1)
        self.acc: int | None = None  # unknown until a first step arrives
        self.last_step: Step | None = None

    def in_flight(self, bank: int | None = None) -> int:
        """Steps that have been sampled and not yet accumulated."""
        return sum(1 for s in self.pipe if s is not None and (bank is None or s[0].bank == bank))

    def tick(self, given: Inputs, columns: tuple[Column, Column]) -> Outputs:
        """One clock edge: `given` and the constants of the two banks are sampled."""
        leaving = self.pipe.pop()
        self.last_step = None
        if leaving is not None:
            self._accumulate(*leaving)
        if given.rst:
            self.pipe = [None] * len(self.pipe)
            self.acc = None
        done = leaving is not None and leaving[0].last and not given.rst
        entering = given.valid and not given.rst
        self.pipe.insert(0, (given, columns[given.bank]) if entering else None)
        known = entering or not given.rst
        return Outputs(
            a=given.a if known else None,
            b=given.b if known else None,
            valid=entering,
            first=given.first if entering else None,
            last=given.last if entering else None,
            bank=given.bank if entering else None,
            acc=self.acc,
            done=done,
        )

    def _accumulate(self, step: Inputs, column: Column) -> None:
        if step.first:
            self.acc = 0
        if self.acc is None:
            return
        product = step.a * step.b + (step.c if step.first else 0)
        reduced = barrett(product, column.shifted, column.mu, self.width)
        total = self.acc + reduced.rest
        self.last_step = Step(reduced.error, total // column.shifted)
        self.acc = (self.acc + product) % column.shifted
