"""The server's side: encrypted iterations, checkpoints, predictions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crenel._crenel import Bootstrapper, Ciphertext, Context, Evaluator, Plaintext
from crenel.errors import SerializationError, StateError
from crenel.workloads import checkpoint as checkpoints
from crenel.workloads.checkpoint import Value
from crenel.workloads.masks import MaskStore
from crenel.workloads.progress import Steps
from crenel.workloads.recordings import Recordings
from crenel.workloads.regression import circuit
from crenel.workloads.regression import state as files
from crenel.workloads.regression.encrypted import Encrypted
from crenel.workloads.regression.recorded import RecordedSegments
from crenel.workloads.regression.setup import Setup
from crenel.workloads.regression.state import TrainingState
from crenel.workloads.regression.tables import EncryptedTable
from crenel.workloads.shared import Progress
from crenel.workloads.stages import Stages

SCORES = "scores of a logistic regression"


@dataclass(frozen=True)
class EncryptedScores:
    """Inner products of rows and weights; `LogisticRegression.decrypt_scores` reads them."""

    blocks: Sequence[Ciphertext]
    """One vector to a block of rows."""
    rows: tuple[int, ...]
    """Rows of each block."""
    iteration: int
    """Of the weights."""
    model: str
    """Its fingerprint: the scores are in its units."""

    def to_bytes(self) -> bytes:
        """For the client. Nothing secret is in it."""
        progress: dict[str, Value] = {"iteration": self.iteration, "rows": ",".join(map(str, self.rows))}
        blocks = {f"block {number}": block for number, block in enumerate(self.blocks)}
        return checkpoints.packed(SCORES, {"model": self.model}, progress, blocks)

    @classmethod
    def from_bytes(cls, context: Context, data: bytes) -> EncryptedScores:
        """Scores from untrusted bytes.

        Raises SerializationError for what is damaged or no scores, StateError for another kind of file.
        """
        belongs, progress, parts = checkpoints.unpacked(data, context, SCORES)
        iteration, rows = progress.get("iteration"), files.counts(progress.get("rows"))
        names = [f"block {number}" for number in range(len(rows))]
        if type(iteration) is not int or not 1 <= iteration <= files.MOST_ITERATIONS or names != list(parts):
            raise SerializationError(
                f"scores of iteration {iteration!r} in {len(parts)} blocks; expected an iteration from 1 to "
                f"{files.MOST_ITERATIONS} and {len(rows)} blocks",
                {"iteration": str(iteration), "blocks": len(parts)},
            )
        return cls([parts[name] for name in names], rows, iteration, str(belongs.get("model")))


class Training:
    """One call of fit: what it made of the data, and where it stands."""

    def __init__(
        self,
        model: Setup,
        ev: Evaluator,
        x: EncryptedTable,
        y: EncryptedTable,
        iterations: int,
        stages: Stages,
        recordings: Recordings | None,
    ) -> None:
        self.model, self.x, self.y, self.stages = model, x, y, stages
        self.factors = model.factors(iterations)
        self.context = ev.context
        boot = bootstrapper(model, ev)
        self.ops = Encrypted(ev, boot)
        self.recorded = (
            None if recordings is None or boot is None else RecordedSegments(model, ev, boot, recordings)
        )
        self.encode = encoder(self.context, model.layout.slots)
        self._blocks: dict[int, circuit.Block[Ciphertext]] = {}

    def block(self, which: int) -> circuit.Block[Ciphertext]:
        """Examples of a block: made at the first use, kept while `keep` is asked to."""
        if which not in self._blocks:
            plan = self.model.plan
            with self.stages("data"):
                self._blocks[which] = circuit.prepare(
                    self.ops,
                    self.model.layout,
                    self.x.blocks[which],
                    self.y.blocks[which],
                    plan.start,
                    plan.highest,
                )
        return self._blocks[which]

    def keep(self, coming: Sequence[int]) -> None:
        """Give back the blocks that no coming iteration sees."""
        self._blocks = {which: block for which, block in self._blocks.items() if which in coming}

    def begin(self, seen: Sequence[int]) -> circuit.State[Ciphertext]:
        """The first iteration."""
        m = self.model
        half = circuit.first_constant(m.layout, m.weight_range, self.factors[0], m.plan.start, self.encode)
        return circuit.begin(self.ops, m.layout, self.block(seen[0]), half, m.plan.start, self.stages)

    def segment(
        self,
        state: circuit.State[Ciphertext],
        seen: Sequence[int],
        first: int,
        level: int,
        refreshed: bool,
        steps: Steps,
    ) -> circuit.State[Ciphertext]:
        """Iterations from `first` on, one for each block of `seen`, whose first reads a state at `level`."""
        m = self.model
        by = [
            circuit.constants(m.layout, m.sigmoid, m.weight_range, factors, level - 4 * k, self.encode)
            for k, factors in enumerate(self.factors[first : first + len(seen)])
        ]
        blocks = [self.block(which) for which in seen]
        if self.recorded is not None and self.recorded.serves(len(blocks), refreshed):
            with self.stages("segment"):
                state = self.recorded(state, blocks, by)
            for _ in blocks:
                steps.step()
            return state
        return circuit.segment(
            self.ops,
            m.layout,
            m.sigmoid,
            state,
            blocks,
            by,
            self.stages,
            refreshed=refreshed,
            after=steps.step,
        )


def bootstrapper(model: Setup, ev: Evaluator) -> Bootstrapper | None:
    """Of the model's options, with the evaluator's keys; None where nothing is refreshed."""
    if model.bootstrap is None:
        return None
    return ev.context.bootstrapper(ev.keys, model.bootstrap, progress=False)


def encoder(context: Context, slots: int) -> circuit.Encode[Plaintext]:
    """Plaintexts of so many slots, for the circuit. Encoding a vector waits for the device: once for each."""
    masks = MaskStore()

    def encode(values: NDArray[np.float64] | float, level: int) -> Plaintext:
        if isinstance(values, np.ndarray):
            return masks.encoded(context, values, level)
        return context.encode_constant(values, level=level, slots=slots)

    return encode


def fit(
    model: Setup,
    ev: Evaluator,
    x: EncryptedTable,
    y: EncryptedTable,
    iterations: int,
    checkpoint: str | os.PathLike[str] | None,
    progress: Progress,
    stages: Stages,
    on_refresh: Callable[[TrainingState], object] | None,
    recordings: Recordings | None,
) -> TrainingState:
    """See LogisticRegression.fit."""
    segments = model.plan.segments(iterations)
    belongs: Mapping[str, Value] = {}
    reached: TrainingState | None = None
    if checkpoint is not None:
        belongs = {
            "params": model.params.id, "model": model.fingerprint,
            "features": x.fingerprint, "labels": y.fingerprint,
        }  # fmt: skip
        reached = files.load(checkpoint, ev.context, belongs, x.rows, ev.keys.secret_key_id)
    else:
        belongs = {"params": model.params.id, "model": model.fingerprint}
    done = reached.iteration if reached else 0
    if reached is not None and done >= iterations:
        if done == iterations:
            return reached
        raise StateError(
            f"the checkpoint is of iteration {done}, {iterations} were asked for",
            {"iteration": done, "iterations": iterations},
        )
    training = Training(model, ev, x, y, iterations, stages, recordings)
    seen = model.blocks_seen(len(x.rows), iterations)
    state = None if reached is None else circuit.State(reached.ahead, reached.weights, reached.inner)
    with Steps(progress, iterations, "training iterations", done) as steps:
        for part in segments:
            end = part.first + part.count
            if done >= end:
                continue
            state = _advance(training, state, seen, max(done, part.first), end, part.first, steps)
            done = end
            training.keep(seen[done:])
            reached = TrainingState(done, state.ahead, state.weights, state.inner, x.rows, belongs)
            if checkpoint is not None:
                with stages("checkpoint"):
                    reached.save(checkpoint)
            if on_refresh is not None and done < iterations:
                on_refresh(reached)
    assert reached is not None  # there is at least one segment, and it was not done
    return reached


def _advance(
    training: Training,
    state: circuit.State[Ciphertext] | None,
    seen: Sequence[int],
    start: int,
    end: int,
    first: int,
    steps: Steps,
) -> circuit.State[Ciphertext]:
    """Iterations start to end of the segment that began with `first`."""
    model = training.model
    if state is None:
        state = training.begin(seen)
        start += 1
        steps.step()
    if start == end:
        return state
    refreshed = start == first
    level = state.ahead.level
    if refreshed:
        assert model.plan.output is not None  # without, there is one segment
        level = model.plan.output
    return training.segment(state, seen[start:end], start, level, refreshed, steps)


def predict(
    model: Setup, ev: Evaluator, x: EncryptedTable, state: TrainingState, stages: Stages
) -> EncryptedScores:
    """See LogisticRegression.predict."""
    ops = Encrypted(ev, None)
    weights = state.weights
    if weights.level < 1:
        boot = bootstrapper(model, ev)
        if boot is None:
            raise StateError(
                f"the weights are at level {weights.level}, a score needs level 1, and these parameters have "
                "no bootstrap: train an iteration less, or decrypt and encrypt the weights anew",
                {"operation": "predict", "level": weights.level, "needed": 1},
            )
        ops = Encrypted(ev, boot)
        now = circuit.State(state.ahead, weights, state.inner)
        weights = circuit.refresh(ops, model.layout, now, stages).weights
    weights = ops.at(weights, 1)
    with stages("scores"):
        blocks = [circuit.scores(ops, model.layout, block, weights) for block in x.blocks]
    return EncryptedScores(blocks, x.rows, state.iteration, model.fingerprint)
