"""The model, with its client's and its server's sides."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crenel._crenel import Client, EvaluationKeys, Evaluator
from crenel.errors import DivergenceError, ParameterError, StateError
from crenel.workloads.recordings import Recordings, kept
from crenel.workloads.regression import tables, training
from crenel.workloads.regression.describe import describe
from crenel.workloads.regression.noise import Noise
from crenel.workloads.regression.setup import Setup
from crenel.workloads.regression.simulate import Trace, simulate
from crenel.workloads.regression.state import TrainingState
from crenel.workloads.regression.tables import EncryptedTable
from crenel.workloads.regression.training import EncryptedScores
from crenel.workloads.shared import Progress, same_params
from crenel.workloads.stages import Stages, unmeasured


class LogisticRegression(Setup):
    """Logistic regression trained on encrypted examples, after HELR (HHCP19): Nesterov's momentum, blocks of
    rows.

    All of it is public: shapes, rate, order of blocks. Client and server make the same object each. Derived
    in docs/theory/training.md.
    """

    def describe(self, iterations: int = 32) -> str:
        """Levels, refreshes, operations, keys, memory and expected error, before anything runs."""
        return describe(self, iterations)

    def simulate(
        self, X: ArrayLike, y: ArrayLike, iterations: int, noise: Noise | None = None, seed: int = 0
    ) -> Trace:
        """The same training in the clear: same packing, polynomials, levels and order of blocks.

        Parameters
        ----------
        X : shape (rows, features), real numbers up to feature_range
        y : -1 or +1 for each row
        noise : what operations add, e.g. `self.noise()`, drawn with `seed`; None: nothing
        """
        table, labels = self._table(X, y)
        self.plan.segments(iterations)  # refuses what are no iterations
        batch = self.layout.batch
        parts, theirs = tables.blocks_of(table, batch), tables.blocks_of(labels, batch)
        with np.errstate(over="ignore", invalid="ignore"):  # a training that diverges shows it in its trace
            return simulate(
                self.layout, self.sigmoid, self.weight_range, self.plan, self.factors(iterations),
                self.blocks_seen(len(parts), iterations), parts, theirs, noise, np.random.default_rng(seed),
            )  # fmt: skip

    # ---- client --------------------------------------------------------------------------------------------

    def keys(self, client: Client, progress: Progress = None) -> EvaluationKeys:
        """The evaluation keys that a server needs to train and to predict, of the levels it needs them at."""
        same_params(client.context.params, self.params)
        return self.needs.keys(client, progress)

    def encrypt(self, client: Client, X: ArrayLike) -> EncryptedTable:
        """A table of shape (rows, features), block by block.

        Raises ParameterError naming the first place of what is not finite or beyond feature_range.
        """
        same_params(client.context.params, self.params)
        table = tables.check_features(X, self.layout.features, self.feature_range)
        return tables.encrypt_features(client, self.layout, table)

    def encrypt_labels(self, client: Client, y: ArrayLike) -> EncryptedTable:
        """Labels -1 and +1, both of which occur: a vector, one for each row. Raises ParameterError for
        others."""
        same_params(client.context.params, self.params)
        return tables.encrypt_labels(client, self.layout, tables.check_labels(y))

    def decrypt(self, client: Client, state: TrainingState) -> NDArray[np.float64]:
        """The weights, the intercept first: shape (features + 1,). For the key holder's eyes, as
        `Client.decrypt` says.
        """
        self._own(state)
        keep = self.factors(state.iteration)[-1].keep
        return self.layout.weights(_complex(client, state.weights)) * (self.weight_range / keep)

    def decrypt_scores(self, client: Client, scores: EncryptedScores) -> NDArray[np.float64]:
        """z.w of each row: positive for the class +1. Shape (rows,). Raises StateError for scores of another
        model, whose units differ."""
        self._same_model(scores.model, "scores")
        scale = self.weight_range / (self.layout.width * self.factors(scores.iteration)[-1].keep)
        parts = [
            self.layout.first_column(_complex(client, block))[:rows]
            for block, rows in zip(scores.blocks, scores.rows, strict=True)
        ]
        return np.concatenate(parts) * scale

    def check(self, client: Client, state: TrainingState) -> None:
        """Raises DivergenceError where the inner products of the last iteration are beyond the sigmoid's
        limit, or the state beyond weight_range: all later results mean nothing. Names a row or a weight.
        """
        self._own(state)
        for vectors in (state.ahead, state.weights):
            entries = np.abs(self.layout.weights(_complex(client, vectors)))
            self._within(entries <= 1, state, "weight", f"the range of weights, {self.weight_range:g}")
        if state.inner is not None:
            inner = np.abs(self.layout.first_column(_complex(client, state.inner)))
            limit = self.sigmoid.limit
            self._within(inner <= self.sigmoid.mu * limit, state, "row", f"the sigmoid's limit, {limit:.1f}")

    # ---- server --------------------------------------------------------------------------------------------

    def fit(
        self,
        ev: Evaluator,
        x: EncryptedTable,
        y: EncryptedTable,
        iterations: int,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress = None,
        stages: Stages = unmeasured,
        on_refresh: Callable[[TrainingState], object] | None = None,
        graph: bool | Recordings = False,
    ) -> TrainingState:
        """Train from weights that are zero, or go on from a checkpoint.

        Parameters
        ----------
        ev : with the keys of `keys`
        x, y : of `encrypt` and `encrypt_labels`
        iterations : all told, those of a checkpoint included
        checkpoint : a file, written before every refresh and at the end, when the state is smallest. Where
            it is there already, training goes on from it, to the same bits; one that was killed loses what
            came after its last refresh began. It holds nothing secret
        progress : True for a bar, or a function f(done, total, what); what it raises stops the training.
            Default: as `crenel.progress` says
        stages : who times the parts
        on_refresh : called with the state before every refresh, for `check` by the client; what it raises
            stops the training
        graph : record a refresh and its iterations once, and replay that with other blocks: fewer launches
            on a GPU, the same bits. `Recordings` are kept for further runs with the same evaluator, and pay
            there

        Raises ParameterError for more iterations than there are levels, StateError for tables of another
        model or key and for a checkpoint of another program, other data or more iterations, KeyMissingError
        for missing keys.
        """
        same_params(ev.context.params, self.params)
        tables.check_table(x, tables.FEATURES, self.layout, self.plan.fresh)
        tables.check_table(y, tables.LABELS, self.layout, self.plan.fresh)
        tables.check_pair(x, y)
        return training.fit(self, ev, x, y, iterations, checkpoint, progress, stages, on_refresh, kept(graph))

    def predict(
        self, ev: Evaluator, x: EncryptedTable, state: TrainingState, *, stages: Stages = unmeasured
    ) -> EncryptedScores:
        """Scores of encrypted rows under encrypted weights, which are refreshed where no level is left.

        Raises StateError where there is neither a level nor a bootstrap.
        """
        same_params(ev.context.params, self.params)
        self._own(state)
        tables.check_table(x, tables.FEATURES, self.layout, self.plan.fresh)
        return training.predict(self, ev, x, state, stages)

    def _table(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        table = tables.check_features(X, self.layout.features, self.feature_range)
        labels = tables.check_labels(y)
        if len(table) != len(labels):
            raise ParameterError(
                f"{len(table)} rows and {len(labels)} labels", {"rows": len(table), "labels": len(labels)}
            )
        return table, labels

    def _own(self, state: TrainingState) -> None:
        self._same_model(str(state.belongs.get("model")), "a state")
        narrow = (self.layout.columns, self.layout.ciphertexts)
        for name, part in (("ahead", state.ahead), ("weights", state.weights), ("inner", state.inner)):
            wide = (self.layout.slots, 1 if name == "inner" else self.layout.ciphertexts)
            expected = (wide,) if name == "inner" else (narrow, wide)
            if part is not None and (part.slots, part.batch) not in expected:
                raise StateError(
                    f"{name} of the state: {part.slots} slots, batch {part.batch}, expected {wide[0]} and "
                    f"{wide[1]}",
                    {"what": name, "found": [part.slots, part.batch], "expected": list(wide)},
                )

    def _same_model(self, found: str, what: str) -> None:
        if found != self.fingerprint:
            raise StateError(
                f"{what} of model {found}, this one is {self.fingerprint}",
                {"found": found, "expected": self.fingerprint},
            )

    def _within(self, good: NDArray[np.bool_], state: TrainingState, what: str, limit: str) -> None:
        bad = np.flatnonzero(~good)  # not a number is not good
        if len(bad):
            more = f" and {len(bad) - 1} more are" if len(bad) > 1 else " is"
            raise DivergenceError(
                f"after iteration {state.iteration} {what} {bad[0]}{more} beyond {limit}: the training "
                "diverged. A smaller rate, smaller features or a sigmoid for a longer interval may keep it",
                {"iteration": state.iteration, "what": what, "index": int(bad[0]), "count": len(bad)},
            )


def _complex(client: Client, vectors: object) -> NDArray[np.complex128]:
    return np.asarray(client.decrypt(vectors), dtype=np.complex128)  # type: ignore[call-overload]
