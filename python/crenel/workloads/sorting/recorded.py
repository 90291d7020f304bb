"""Rounds of recorded parts. What compares rotates nothing and has nearly all bootstraps: rounds of all
distances replay it. What rotates is recorded for each distance, with masks as arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from crenel._crenel import Operand, Plaintext
from crenel.workloads.recordings import Recordings
from crenel.workloads.sorting import circuit
from crenel.workloads.sorting.circuit import Masks, Reals, Vector
from crenel.workloads.sorting.comparator import Comparator
from crenel.workloads.sorting.encrypted import EncryptedMachine
from crenel.workloads.sorting.network import Round
from crenel.workloads.stages import Stages

V = TypeVar("V", bound=Vector)


def differed(x: V, round_: Round) -> Hashable:
    """On what the recorded differences depend, masks aside."""
    return "differences", round_.radix, round_.distance, x.level


def compared(x: V, s: V, radix: int) -> Hashable:
    """On what a recorded comparison depends."""
    return "comparison", radix, x.level, s.level


def exchanged(columns: Sequence[V], signs: V, round_: Round) -> Hashable:
    """On what a recorded exchange depends, masks aside."""
    return "exchange", round_.radix, round_.distance, signs.level, tuple(x.level for x in columns)


class RecordedParts(circuit.Parts[Operand]):
    """`circuit.Parts` that are replayed. Each is one stage: a replay has no parts."""

    def __init__(
        self, on: EncryptedMachine, comparator: Comparator, stages: Stages, recordings: Recordings
    ) -> None:
        super().__init__(on, comparator, stages)
        self._machine, self._recordings = on, recordings

    def differences(self, x: Operand, round_: Round, of: Masks[Reals]) -> Operand:
        """As Parts.differences; those of radix 2 are a rotation, and no recording saves anything."""
        if not of.sign:
            return super().differences(x, round_, of)

        def part(x: Operand, *sign: Plaintext) -> list[Operand]:
            return [circuit.differences(self._machine, x, round_, sign)]

        with self.stages("differences"):
            return self._replayed(differed(x, round_), round_.size, part, [x], self._encoded(of.sign, x))[0]

    def compare(self, x: Operand, s: Operand, radix: int) -> tuple[Operand, Operand]:
        """As Parts.compare."""

        def part(x: Operand, s: Operand) -> list[Operand]:
            return list(circuit.compare(self._machine, x, s, self.comparator, radix))

        with self.stages("comparison"):
            x, s = self._replayed(compared(x, s, radix), 0, part, [x, s], [])
        return x, s

    def exchange(
        self, columns: list[Operand], signs: Operand, round_: Round, of: Masks[Reals]
    ) -> list[Operand]:
        """As Parts.exchange."""
        count, each = len(columns), len(of.exchange)

        def part(*arguments: Operand | Plaintext) -> list[Operand]:
            given = [a for a in arguments if isinstance(a, Plaintext)]
            *inputs, s = [a for a in arguments if not isinstance(a, Plaintext)]
            masks = [given[each * k :][:each] for k in range(count)]
            return circuit.exchange(self._machine, inputs, s, round_, masks)

        plaintexts = [mask for x in columns for mask in self._encoded(of.exchange, x)]
        shape = exchanged(columns, signs, round_)
        with self.stages("exchange"):
            return self._replayed(shape, round_.size, part, [*columns, signs], plaintexts)

    def _encoded(self, masks: Sequence[Reals], x: Operand) -> list[Plaintext]:
        machine = self._machine
        return [machine.masks.encoded(machine.evaluator.context, mask, x.level) for mask in masks]

    def _replayed(
        self,
        shape: Hashable,
        size: int,
        part: Callable[..., list[Operand]],
        inputs: Sequence[Operand],
        plaintexts: Sequence[Plaintext],
    ) -> list[Operand]:
        evaluator, count = self._machine.evaluator, len(inputs)

        def body(*arguments: object) -> list[Operand]:
            return part(*map(evaluator, arguments[:count]), *arguments[count:])  # type: ignore[arg-type]

        # What else decides, so that several programs may share recordings.
        whole = (shape, self.comparator.name, repr(self._machine.boot.options), inputs[0].slots, size)
        found = self._recordings.replay(evaluator, whole, body, inputs, plaintexts)
        return [evaluator(c) for c in found]
