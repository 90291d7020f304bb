"""A training run from a table to a record: encrypted, decrypted, compared with the clear, timed by stage."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crenel import ckks
from crenel.errors import DivergenceError
from crenel.workloads import records
from crenel.workloads.data import Table
from crenel.workloads.kept import Kept
from crenel.workloads.records import Iteration, Training
from crenel.workloads.regression.layout import MIN_COLUMNS
from crenel.workloads.regression.model import LogisticRegression
from crenel.workloads.regression.schedule import Order
from crenel.workloads.regression.simulate import Trace
from crenel.workloads.regression.state import TrainingState
from crenel.workloads.regression.tables import FEATURES, LABELS, EncryptedTable
from crenel.workloads.session import RunOptions, Session

MOST_ROWS = 1024  # of an iteration: the published batch
DEVIATIONS = 8.0  # of the stated error: what a correct run does not exceed


def suitable_batch(slots: int, rows: int) -> int:
    """The largest power of two that the rows fill and the slots hold, at most that of the papers."""
    most = max(1, min(MOST_ROWS, rows, slots // MIN_COLUMNS))
    return 1 << (most.bit_length() - 1)


def accuracy(weights: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Share of rows on the right side."""
    return float(((x @ weights[1:] + weights[0]) * y > 0).mean())


def loss(weights: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Mean logistic loss, natural logarithm."""
    return float(np.logaddexp(0.0, -y * (x @ weights[1:] + weights[0])).mean())


def measure(
    session: Session,
    table: Table,
    options: RunOptions,
    *,
    iterations: int = 32,
    batch: int | None = None,
    rate: float = 1.0,
    order: Order = "cyclic",
    weight_range: float = 8.0,
) -> Training:
    """Train on the training rows under encryption, and compare with the same training in the clear.

    Parameters
    ----------
    session : its client is exchanged for that of before where a run goes on
    options : `warm` trains as far as the first refresh
    batch : rows of an iteration; None: `suitable_batch`
    rate, order, weight_range : as of `LogisticRegression`

    Weights of every refresh and of the end are decrypted after the run, which is undisturbed. Raises
    DivergenceError where the training leaves its range, before anything is encrypted if it does so in the
    clear, and what the model raises.
    """
    params, rows = session.context.params, len(table.y_train)
    model = LogisticRegression(
        params, features=table.features, batch=batch or suitable_batch(params.slots, rows), rate=rate,
        order=order, seed=options.seed, variant=options.variant, weight_range=weight_range,
    )  # fmt: skip
    session.report.line(model.describe(iterations))
    data = records.digest(table.X_train, table.y_train, table.X_test, table.y_test)
    kept = session.kept(options, model=model.fingerprint, data=data)
    with session.step("in the clear"):
        trace = model.simulate(table.X_train, table.y_train, iterations)
    _refuse_divergence(model, trace)
    keys = session.keys(model.keys)
    with session.step("client: encrypt the training rows"):
        x, y, sent = _encrypt(session, model, table, kept)

    states, recorded, resumed = _train(session, options, model, keys, x, y, iterations, kept)
    with session.step("client: decrypt the weights"):
        found = {s.iteration: _open(session, model, s) for s in states}
    facts = session.facts(options, keys, iterations, recorded=recorded, resumed=resumed)
    facts |= {"data": table.name, "data_digest": data, "digest": records.digest(found[iterations])}
    facts |= {"wire_bytes": sent, "rows": rows, "features": table.features, "test_rows": len(table.y_test)}
    facts["latency_us"] = 1e6 * session.seconds / iterations
    facts["encrypt_s"] = session.seconds_of("client: encrypt the training rows")
    facts["decrypt_s"] = session.seconds_of("client: decrypt the weights")
    return _judged(model, table, trace, found, iterations, facts)


def _judged(
    model: LogisticRegression,
    table: Table,
    trace: Trace,
    found: Mapping[int, NDArray[np.float64]],
    iterations: int,
    facts: dict[str, Any],
) -> Training:
    """The record: decrypted weights against those of the training in the clear, beside other facts."""
    curve = tuple(_iteration(table, t, trace.weights[t - 1], found.get(t)) for t in range(1, iterations + 1))
    expected = model.expected_errors(iterations)
    errors = [i for i in curve if i.error is not None]
    correct = all(i.error is not None and i.error <= DEVIATIONS * expected[i.iteration - 1] for i in errors)
    return Training(
        **facts,
        name="helr",
        batch=model.layout.batch,
        bootstraps=sum(part.refreshed for part in model.plan.segments(iterations)),
        correct=correct,
        error=errors[-1].error or 0.0,
        bound=DEVIATIONS * expected[-1],
        bound_note=f"{DEVIATIONS:g} times the stated deviation of a weight",
        iterations=curve,
        largest_inner_product=float(trace.largest_inner.max()),
    )


def _train(
    session: Session,
    options: RunOptions,
    model: LogisticRegression,
    keys: ckks.EvaluationKeys,
    x: EncryptedTable,
    y: EncryptedTable,
    iterations: int,
    kept: Kept | None,
) -> tuple[list[TrainingState], bool, bool]:
    """The server's part: the states of every refresh and of the end; was it recorded, and resumed?"""
    evaluator = session.context.evaluator(keys)
    ready = session.bootstrapper(keys, model.bootstrap)
    recordings = session.recordings(options)
    if options.warm:
        first, *others = model.plan.segments(iterations)
        # What is recorded is a whole segment behind a refresh.
        behind = others[0].count if others and recordings is not None else 1
        with session.step("server: train once before"):
            model.fit(evaluator, x, y, min(iterations, first.count + behind), graph=recordings or False)
    states: list[TrainingState] = []
    resumed = kept is not None and kept.checkpoint.exists()
    last = session.run(
        "server: train",
        lambda: model.fit(
            evaluator, x, y, iterations, checkpoint=None if kept is None else os.fspath(kept.checkpoint),
            stages=session.stages, on_refresh=states.append, graph=recordings or False,
        ),
    )  # fmt: skip
    del ready
    return [*states, last], recordings is not None, resumed


def _refuse_divergence(model: LogisticRegression, trace: Trace) -> None:
    """Before keys are made: a training that leaves its range in the clear does so under encryption."""
    for what, largest, limit, of, wider in (
        (
            "weight",
            trace.largest_state,
            model.weight_range,
            "the range of weights",
            ", a wider --weight-range",
        ),
        ("row", trace.largest_inner, model.sigmoid.limit, "the sigmoid's limit", ""),
    ):
        bad = np.flatnonzero(~(largest <= limit))  # not a number is beyond
        if len(bad):
            raise DivergenceError(
                f"in the clear already, iteration {bad[0] + 1} takes a {what} to {largest[bad[0]]:.3g}, "
                f"beyond {of}, {limit:.3g}: nothing was encrypted. Try a smaller --rate than "
                f"{model.rate:g}{wider}, or fewer --iterations",
                {"iteration": int(bad[0]) + 1, "what": what, "count": len(bad)},
            )


def _encrypt(
    session: Session, model: LogisticRegression, table: Table, kept: Kept | None
) -> tuple[EncryptedTable, EncryptedTable, int]:
    """Features, labels, and the bytes that a client sends for both."""
    client = session.client

    def send(what: str, make: Callable[[], EncryptedTable]) -> tuple[EncryptedTable, int]:
        if kept is None:
            made = make()
            return made, sum(map(len, made.to_bytes()))
        parts = kept.sent(what, lambda: make().to_bytes())
        return EncryptedTable.from_bytes(session.context, parts), sum(map(len, parts))

    x, bytes_of_x = send(FEATURES, lambda: model.encrypt(client, table.X_train))
    y, bytes_of_y = send(LABELS, lambda: model.encrypt_labels(client, table.y_train))
    session.context.synchronize()
    return x, y, bytes_of_x + bytes_of_y


def _open(session: Session, model: LogisticRegression, state: TrainingState) -> NDArray[np.float64]:
    model.check(session.client, state)
    return model.decrypt(session.client, state)


def _iteration(
    table: Table, iteration: int, clear: NDArray[np.float64], found: NDArray[np.float64] | None
) -> Iteration:
    train, test = (table.X_train, table.y_train), (table.X_test, table.y_test)
    in_the_clear = accuracy(clear, *test), loss(clear, *train)
    if found is None:
        return Iteration(iteration, *in_the_clear)
    error = float(np.abs(found - clear).max())
    return Iteration(iteration, *in_the_clear, accuracy(found, *test), loss(found, *train), error)
