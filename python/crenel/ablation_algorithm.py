"""What the savings of a bootstrap's algorithm are worth: options of ``BootstrapOptions``, each turned on.

The switches of ``crenel.ablation`` keep every bit, or all but the rounding of a rescale. These change what a
bootstrap computes, or its keys, so a result is judged by the bootstrap's own model of errors; where an option
only moves data differently, by the bits of the rung before, with the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crenel import ablation, ckks
from crenel._crenel import Optimisations
from crenel.ablation import Bench, Ladder, Measured, Rung
from crenel.boot_levels import SLACK
from crenel.errors import ParameterError, UnsupportedError

PLAIN: Mapping[str, Any] = {"over_mod_raise": False, "folded_sums": False, "aligned_keys": False}
SAME = "the same bits as the rung before, with the same keys"
WITHIN = f"another algorithm or other keys: within {SLACK:g} times the error of its model"


@dataclass(frozen=True)
class Step:
    """One option more."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    same_bits: bool = False


@dataclass(frozen=True)
class Case:
    """Bootstraps of one kind: what all rungs have, and the options one after the other."""

    name: str
    title: str
    steps: tuple[Step, ...]
    to_low: bool = False
    """To about a third of the levels, which `target_level` is."""

    def options(self, params: ckks.Params) -> list[tuple[Step, dict[str, Any]]]:
        """Of each rung, what is not the default."""
        first = {"target_level": max(1, params.normal_top_level // 3)} if self.to_low else {}
        chosen: dict[str, Any] = dict(first)
        rungs = []
        for step in self.steps:
            chosen = {**chosen, **step.options}
            rungs.append((step, dict(chosen)))
        return rungs

    @property
    def ladder(self) -> Ladder:
        """For titles; its rungs have no switches of a device."""
        return Ladder(self.name, self.title, tuple(Rung(step.name, ()) for step in self.steps))


CASES = (
    Case(
        "algorithm", "by the algorithm: complex vectors of all slots to the highest level",
        (
            Step("plain", PLAIN),
            Step("+OverModRaise", {"over_mod_raise": None}),
            Step("+sums in place", {"folded_sums": True}, same_bits=True),
            Step("+keys for aligned levels", {"aligned_keys": True}),
        ),
    ),
    Case(
        "algorithm-low", "by the algorithm: to a third of the levels",
        (Step("all primes", {"short_raise": False}), Step("+short raise", {"short_raise": True})),
        to_low=True,
    ),
    Case(
        "algorithm-real", "by the algorithm: real vectors of all slots, centred",
        (
            Step("as complex ones", {"message": "real", "values": "centred", "real_symmetry": False}),
            Step("+symmetry of real vectors", {"real_symmetry": True}),
        ),
    ),
)  # fmt: skip
LADDERS = tuple(case.ladder for case in CASES)


def ladders(
    bench: Bench, repeats: int, seconds: float, seed: int, say: Callable[[str], None] = lambda text: None
) -> list[Measured]:
    """Every case's rungs on the device, context and client of a prepared bootstrap, with all switches on. A
    case that the parameters do not have is left out."""
    rows: list[Measured] = []
    for case in CASES:
        rungs = case.options(bench.context.params)
        try:
            for _, options in rungs:
                bench.context.params.key_bytes(bootstrap=ckks.BootstrapOptions(**options))
        except (ParameterError, UnsupportedError) as error:
            say(f"bootstrap: {case.name} left out: {error}")
            continue
        rows += _case(bench, case, rungs, repeats, seconds, np.random.default_rng(seed), say)
    return rows


def _case(
    bench: Bench,
    case: Case,
    rungs: list[tuple[Step, dict[str, Any]]],
    repeats: int,
    seconds: float,
    rng: np.random.Generator,
    say: Callable[[str], None],
) -> list[Measured]:
    context, client = bench.context, bench.client
    values, low, keys = None, None, None
    rows: list[Measured] = []
    for step, chosen in rungs:
        say(f"bootstrap: {case.name}, {step.name}")
        options = ckks.BootstrapOptions(**chosen)
        if not step.same_bits:
            keys = None  # those before go first: two sets of them need not fit
            keys = client.evaluation_keys(bootstrap=options)
        assert keys is not None
        boot = context.bootstrapper(keys, options)
        if low is None or values is None:
            values = _vector(rng, boot.report().slots, chosen.get("message") == "real")
            low = client.encrypt(values, level=boot.levels.input)
        evaluator = context.evaluator(keys)
        limbs = sum(context.params.levels[boot.levels.input])
        own = Bench(context, "bootstrap", limbs, boot.eager, (low,), evaluator, client, values)
        own.ceilings = bench.ceilings
        found = ablation.run(own, Optimisations(), repeats, seconds, None)
        found.ladder, found.rung, found.options = case.name, step.name, chosen
        found.note = SAME if step.same_bits else WITHIN
        if chosen.get("real_symmetry") and not boot.report().real_symmetry:
            found.note = f"not taken by these parameters, whose message ratio has no room for it; {WITHIN}"
        judge(found, rows[-1] if step.same_bits else None, boot.report().expected_error)
        rows.append(found)
        del boot, evaluator, own
    return rows


def judge(found: Measured, before: Measured | None, expected_error: float) -> None:
    """By the bits of the rung before, or else by the model of errors; nothing where nothing was computed."""
    found.expected_error = expected_error
    if found.digest is None or found.error is None:
        found.correct = None
    elif before is not None:
        found.correct = found.digest == before.digest
    else:
        found.correct = found.error <= SLACK * expected_error


def _vector(rng: np.random.Generator, slots: int, real: bool) -> np.ndarray[Any, Any]:
    """Within 1, as the model takes them to be."""
    x = rng.uniform(-1, 1, slots) + 1j * rng.uniform(-1, 1, slots)
    return x.real if real else x / np.maximum(1, np.abs(x))
