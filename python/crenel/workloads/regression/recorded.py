"""A refresh and its iterations as one recording, replayed with other blocks and constants."""

from __future__ import annotations

from collections.abc import Sequence

from crenel._crenel import Bootstrapper, Ciphertext, Evaluator, Plaintext
from crenel.workloads.recordings import Recordings
from crenel.workloads.regression import circuit
from crenel.workloads.regression.encrypted import Encrypted
from crenel.workloads.regression.setup import Setup
from crenel.workloads.stages import unmeasured

STATE, BLOCK, CONSTANTS = 2, 2, 5  # ciphertexts of a state and of a block, plaintexts of an iteration


class RecordedSegments:
    """Refreshed segments of the most iterations: they have equal levels, and one recording serves them.

    What its stages would be is one stage, "segment": a replay has no parts.
    """

    def __init__(self, setup: Setup, ev: Evaluator, boot: Bootstrapper, recordings: Recordings) -> None:
        self._setup, self._ev, self._recordings = setup, ev, recordings
        self._ops = Encrypted(ev, boot, eager=True)  # a recording holds no other

    def serves(self, iterations: int, refreshed: bool) -> bool:
        """Is it a segment of the recorded kind?"""
        output = self._setup.plan.output
        return refreshed and output is not None and iterations == output // 4

    def __call__(
        self,
        state: circuit.State[Ciphertext],
        blocks: Sequence[circuit.Block[Ciphertext]],
        by: Sequence[circuit.Constants[Plaintext]],
    ) -> circuit.State[Ciphertext]:
        """As circuit.segment with a refresh."""
        inputs = [state.ahead, state.weights]
        for block in blocks:
            inputs += [block.examples, block.conjugates]
        plaintexts: list[Plaintext] = []
        for one in by:
            plaintexts += [one.mask, one.gradient, one.half, one.keep, one.momentum]
        shape = "segment", self._setup.fingerprint, len(blocks)
        ahead, weights, inner = self._recordings.replay(self._ev, shape, self._run, inputs, plaintexts)
        return circuit.State(ahead, weights, inner)

    def _run(self, *arguments: Ciphertext | Plaintext) -> list[Ciphertext]:
        """The segment of these inputs and, behind them, plaintexts."""
        count = (len(arguments) - STATE) // (BLOCK + CONSTANTS)
        ciphertexts = [a for a in arguments if isinstance(a, Ciphertext)]
        plaintexts = [a for a in arguments if isinstance(a, Plaintext)]
        state = circuit.State(ciphertexts[0], ciphertexts[1], None)
        blocks = [circuit.Block(*ciphertexts[STATE + BLOCK * k :][:BLOCK]) for k in range(count)]
        by = [circuit.Constants(*plaintexts[CONSTANTS * k :][:CONSTANTS]) for k in range(count)]
        m = self._setup
        done = circuit.segment(self._ops, m.layout, m.sigmoid, state, blocks, by, unmeasured, refreshed=True)
        assert done.inner is not None  # behind any iteration
        return [done.ahead, done.weights, done.inner]
