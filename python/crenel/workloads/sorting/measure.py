"""A sort from values to a record: encrypted, decrypted, compared with the clear, timed by stage."""

from __future__ import annotations

import os
from dataclasses import replace
from math import log2
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crenel import ckks
from crenel.errors import ParameterError
from crenel.workloads import records
from crenel.workloads.kept import Kept
from crenel.workloads.masks import MaskStore
from crenel.workloads.records import Round, Sort
from crenel.workloads.session import RunOptions, Session
from crenel.workloads.sorting.plan import Sorting
from crenel.workloads.sorting.simulate import Trace
from crenel.workloads.sorting.values import EncryptedValues

DEVIATIONS = 8.0  # times the stated error: what a correct run does not exceed
MOST_VALUES = 512  # that a record holds of each order; of longer ones every so many
LEAST = 2.0**-60  # an error of no bits at all would have no logarithm


def stated_range(values: NDArray[np.float64], low: float | None, high: float | None) -> tuple[float, float]:
    """What is public of the values: [0, 1] where it has them all, else the range that they fill.

    Raises ParameterError for values that are all one number beyond it: then there is no range.
    """
    least, most = float(values.min()), float(values.max())
    inside = least >= 0 and most <= 1
    found = (
        (0.0 if inside else least) if low is None else low,
        (1.0 if inside else most) if high is None else high,
    )
    if not found[0] < found[1]:
        raise ParameterError(
            f"the range [{found[0]:g}, {found[1]:g}] has no width; state low and high",
            {"low": found[0], "high": found[1]},
        )
    return found


def measure(
    session: Session,
    values: NDArray[np.float64],
    options: RunOptions,
    *,
    source: str = "values",
    comparator: str | None = None,
    radix: Literal[2, 4] | None = None,
    descending: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> Sort:
    """Sort the values under encryption, and compare with their order in the clear.

    Parameters
    ----------
    session : its client is exchanged for that of before where a run goes on
    options : `warm` sorts once before
    source : what the record says of the values
    comparator, radix, descending : as of `Sorting`; None: what it chooses
    low, high : the public range of the values; None: `stated_range`

    States after every round are decrypted after the run, which is undisturbed. Raises DivergenceError where
    the result means nothing, and what the plan raises.
    """
    params, count = session.context.params, len(values)
    bottom, top = stated_range(values, low, high)
    plan = Sorting(
        params, count, comparator=comparator, radix=radix, descending=descending, variant=options.variant
    )
    session.report.line(plan.describe())
    data = records.digest(values)
    # What Sorting itself compares in a checkpoint, so that the folder is refused before keys are made.
    said = f"{count} {plan.radix} {plan.comparator.name} {descending} [{bottom}, {top}]"
    kept = session.kept(options, program=said, data=data)
    with session.step("in the clear"):
        trace = plan.simulate(values, low=bottom, high=top)
    keys = session.keys(plan.keys)
    with session.step("client: encrypt the values"):
        x, sent = _encrypt(session, plan, values, bottom, top, kept)

    out, states, recorded, resumed = _sort(session, options, plan, keys, x, kept)
    with session.step("client: decrypt"):
        found = plan.decrypt(session.client, out)
        rounds = tuple(_round(session, trace, done, state) for done, state in states)
    facts = session.facts(options, keys, len(plan.rounds), recorded=recorded, resumed=resumed)
    facts |= {"data": source, "data_digest": data, "wire_bytes": sent, "rounds": rounds}
    facts |= {"bootstraps": trace.bootstraps, "latency_us": 1e6 * session.seconds, "descending": descending}
    facts["encrypt_s"] = session.seconds_of("client: encrypt the values")
    facts["decrypt_s"] = session.seconds_of("client: decrypt")
    expected = np.sort(values)[::-1] if descending else np.sort(values)
    return _judged(plan, found, expected, top - bottom, facts)


def _judged(
    plan: Sorting,
    found: NDArray[np.float64],
    expected: NDArray[np.float64],
    width: float,
    facts: dict[str, Any],
) -> Sort:
    """The record: what was found against the right order, of a range of that width, beside other facts."""
    count = len(expected)
    deviation = np.abs(found - expected) / width
    error, rms = float(deviation.max()), float(np.sqrt(np.mean(deviation**2)))
    bound = DEVIATIONS * plan.report.expected_error
    every = -(-count // MOST_VALUES)
    return Sort(
        **facts,
        name="sort",
        digest=records.digest(found),
        batch=1,
        correct=error <= bound,
        error=error,
        bound=bound,
        bound_note=f"{DEVIATIONS:g} times the stated largest error, of the range",
        count=count,
        comparator=plan.comparator.name,
        radix=plan.radix,
        error_bits=-log2(max(error, LEAST)),
        rms_bits=-log2(max(rms, LEAST)),
        every=every,
        expected=tuple(expected[::every].tolist()),
        found=tuple(found[::every].tolist()),
    )


def _sort(
    session: Session,
    options: RunOptions,
    plan: Sorting,
    keys: ckks.EvaluationKeys,
    x: EncryptedValues,
    kept: Kept | None,
) -> tuple[EncryptedValues, list[tuple[int, EncryptedValues]], bool, bool]:
    """The server's part: the result, the states after rounds; was it recorded, and resumed?"""
    evaluator, masks = session.context.evaluator(keys), MaskStore()
    boot = session.bootstrapper(keys, plan.bootstrap)
    recordings = session.recordings(options)
    if options.warm:
        with session.step("server: sort once before"):
            plan.run(evaluator, x, boot=boot, masks=masks, graph=recordings or False)
            session.context.synchronize()
    states: list[tuple[int, EncryptedValues]] = []
    resumed = kept is not None and kept.checkpoint.exists()
    out = session.run(
        "server: sort",
        lambda: plan.run(
            evaluator, x, boot=boot, masks=masks, stages=session.stages,
            checkpoint=None if kept is None else os.fspath(kept.checkpoint),
            on_round=lambda done, state: states.append((done, state)), graph=recordings or False,
        ),
    )  # fmt: skip
    return out, states, recordings is not None, resumed


def _encrypt(
    session: Session,
    plan: Sorting,
    values: NDArray[np.float64],
    low: float,
    high: float,
    kept: Kept | None,
) -> tuple[EncryptedValues, int]:
    """The values, and the bytes that a client sends."""
    x = plan.encrypt(session.client, values, low=low, high=high)
    parts = [column.to_bytes() for column in x.columns]
    if kept is not None:
        parts = kept.sent("values", lambda: parts)
        x = replace(x, columns=tuple(session.context.ciphertext_from_bytes(part) for part in parts))
    session.context.synchronize()
    return x, sum(map(len, parts))


def _round(session: Session, trace: Trace, done: int, state: EncryptedValues) -> Round:
    slots = np.asarray(session.client.decrypt(state.columns[0])).real
    clear = trace.rounds[done - 1][0]
    return Round(done, float(np.abs(slots - clear[: len(slots)]).max()), float(np.abs(slots).max()))
