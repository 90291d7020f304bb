"""What a sorting program needs: its rounds on operands of which only the level is known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from crenel._crenel import BootstrapOptions, Params
from crenel.ckks.recorder import Needs, Recorded, Recorder
from crenel.workloads.sorting import circuit
from crenel.workloads.sorting.circuit import Masks, Reals
from crenel.workloads.sorting.comparator import Comparator, Factor
from crenel.workloads.sorting.network import Round
from crenel.workloads.sorting.recorded import compared, differed, exchanged


@dataclass(frozen=True)
class Demand:
    """Of a run, without a number."""

    needs: Needs
    """Keys, each at the highest level of its use."""
    bootstraps: int
    """Of two vectors each."""
    recordings: int
    """Different parts: what a run with ``graph=True`` records."""
    replays: int
    """Parts in all."""


def demand(
    params: Params,
    rounds: Iterable[Round],
    comparator: Comparator,
    boot: BootstrapOptions,
    output_level: int,
    slots: int,
    columns: int,
) -> Demand:
    """Of these rounds on so many fresh columns."""
    recorder = Recorder(params)
    machine = _Machine(recorder, output_level)
    parts = _Parts(machine, comparator)
    vectors = [recorder.input(slots=slots) for _ in range(columns)]
    for round_ in rounds:
        vectors = circuit.run_round(parts, vectors, round_, circuit.masks(round_, slots))
    needs = Needs(
        recorder.rotations, recorder.conjugation, recorder.relinearisation, (boot,), params.normal_top_level
    )
    return Demand(needs, machine.bootstraps, len(set(parts.met)), len(parts.met))


class _Machine:
    """`circuit.Machine` that counts."""

    def __init__(self, recorder: Recorder, output_level: int) -> None:
        self.recorder, self.output_level, self.bootstraps = recorder, output_level, 0

    def mask(self, x: Recorded, mask: Reals) -> Recorded:
        return x * mask

    def multiply(self, a: Recorded, b: Recorded) -> Recorded:
        return a * b

    def fourfold(self, x: Recorded) -> Recorded:
        return x

    def factor(self, x: Recorded, factor: Factor, real: bool) -> Recorded:
        result = x.polynomial(factor.chebyshev, basis="chebyshev")
        return result + result.conjugate() if real else result

    def refresh(self, vectors: list[Recorded]) -> list[Recorded]:
        self.bootstraps += (len(vectors) + 1) // 2
        return [Recorded(self.recorder, self.output_level, x.slots, True) for x in vectors]


class _Parts(circuit.Parts[Recorded]):
    def __init__(self, on: _Machine, comparator: Comparator) -> None:
        super().__init__(on, comparator)
        self.met: list[Hashable] = []

    def differences(self, x: Recorded, round_: Round, of: Masks[Reals]) -> Recorded:
        if of.sign:
            self.met.append(differed(x, round_))
        return super().differences(x, round_, of)

    def compare(self, x: Recorded, s: Recorded, radix: int) -> tuple[Recorded, Recorded]:
        self.met.append(compared(x, s, radix))
        return super().compare(x, s, radix)

    def exchange(
        self, columns: list[Recorded], signs: Recorded, round_: Round, of: Masks[Reals]
    ) -> list[Recorded]:
        self.met.append(exchanged(columns, signs, round_))
        return super().exchange(columns, signs, round_, of)
