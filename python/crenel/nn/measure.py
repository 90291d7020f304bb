"""Times of operations on the machine at hand, as a `CostModel`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone

import numpy as np
from numpy.typing import NDArray

from crenel.ckks import BootstrapOptions, Ciphertext, Client, Context, Evaluator, LinearTransform, Params
from crenel.errors import ParameterError
from crenel.nn.cost import BootRow, CostModel, Row
from crenel.nn.passes import priced
from crenel.nn.plan import Boot
from crenel.nn.sizes import limbs_at

Call = Callable[[], object]
Clock = Callable[[Call], float]  # microseconds of a call
SOURCE = "measured"
_FITTED = "least squares over transforms of other steps and diagonals"
# How rows come from what was timed, where they were not timed themselves.
DERIVED = {
    "hoisted_rotation": "(sum of 9 rotations - sum of 2) / 7",
    "transform": _FITTED,
    "baby_step": _FITTED,
    "giant_step": _FITTED,
    "diagonal": _FITTED,
}
# Diagonals of the transforms that are timed and their baby steps: few and many of each kind of step.
SPLITS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((0, 1), 2),
    (tuple(range(8)), 8),
    (tuple(range(8)), 2),
    (tuple(range(16)), 8),
    ((*range(8), 8), 8),
)
REACH = 16  # of their offsets
GROUP_SECONDS = 1e-3  # a wait for a GPU takes 10 us


def measure(
    context: Context,
    *,
    levels: Sequence[int] | None = None,
    batches: Sequence[int] = (1,),
    seconds: float = 0.05,
    slots: Sequence[int] = (),
    targets: Sequence[int] = (),
) -> CostModel:
    """Time every operation of `cost.OPERATIONS`, medians of at least three groups of calls; those of
    `DERIVED` follow from such times, and their rows say how.

    Parameters
    ----------
    context : whose device is measured; keys are made and dropped again
    levels : default five from 0 to the top normal level; times between them are interpolated
    batches : numbers of ciphertexts in one object
    seconds : of each operation at each level, about
    slots : of vectors whose bootstraps are timed, of real vectors, as programs have them (`plan.Boot`)
    targets : levels at which these end, besides the highest

    Raises ParameterError for levels out of range, of operations or of `targets`, batches below 1 and times
    that are not positive, and TypeError for `targets` that are no integers.
    """
    params = context.params
    top = params.normal_top_level
    chosen = (
        sorted({round(top * k / 4) for k in range(5)} | {min(1, top)})
        if levels is None
        else sorted(set(levels))
    )
    if not chosen or chosen[0] < 0 or chosen[-1] > top:
        raise ParameterError(f"levels {chosen}, expected some of 0 to {top}", {"levels": list(chosen)})
    if not batches or min(batches) < 1 or not seconds > 0:
        raise ParameterError(
            f"batches {list(batches)}, {seconds} seconds: expected at least 1, and more than 0",
            {"batches": list(batches), "seconds": float(seconds)},
        )
    device = context.device.info.description

    def clock(call: Call) -> float:
        return _time(context, call, seconds)

    ends: list[int | None] = [None, *(e for e in priced.ends(params, targets) if e is not None)]
    bootstraps = [Boot(count, target=level).options() for count in sorted(set(slots)) for level in ends]
    rows, boots = timed(context, chosen, batches, bootstraps, clock, clock)
    said = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": f"crenel.nn.measure.measure, {seconds} s an operation",
        "params": params.name or params.id,
        "device_description": device,
    }
    return CostModel(device, params.log_n, params.alpha, rows, boots, {SOURCE: said})


def timed(
    context: Context,
    levels: Sequence[int],
    batches: Sequence[int],
    bootstraps: Sequence[BootstrapOptions],
    clock: Clock,
    boot_clock: Clock,
) -> tuple[tuple[Row, ...], tuple[BootRow, ...]]:
    """Rows of a `CostModel`, by clocks of single operations and of bootstraps."""
    client = context.keygen()
    keys = client.evaluation_keys(
        rotations=list(range(1, REACH)), conjugate=True, bootstrap=tuple(bootstraps) or False
    )
    ev = context.evaluator(keys)
    rows: list[Row] = []
    boots: list[BootRow] = []
    for count in sorted(set(batches)):
        for level in levels:
            found = _level(context, client, ev, level, count, clock)
            limbs = limbs_at(context.params, level)
            rows += [Row(name, limbs, count, us, SOURCE, DERIVED.get(name, "")) for name, us in found.items()]
        for options in bootstraps:
            boots.append(_bootstrap(context, client, ev, options, count, boot_clock))
    return _distinct(rows), tuple(boots)


def _distinct(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Two levels may have as many limbs: of their times the larger."""
    out: dict[tuple[str, int, int], Row] = {}
    for row in rows:
        key = row.operation, row.limbs, row.batch
        if key not in out or out[key].us < row.us:
            out[key] = row
    return tuple(sorted(out.values(), key=lambda r: (r.operation, r.batch, r.limbs)))


def _time(context: Context, call: Call, seconds: float) -> float:
    """Microseconds of a call: the median of groups of calls, after each of which the device is waited for.
    Groups are long enough for the waiting not to count."""
    call()
    context.synchronize()
    calls = 1
    spent = _group(context, call, calls)
    while spent < GROUP_SECONDS:
        calls = max(2 * calls, min(int(GROUP_SECONDS / max(spent, 1e-9) * calls) + 1, 16 * calls))
        spent = _group(context, call, calls)
    groups = [spent]
    while len(groups) < 3 or sum(groups) < seconds:
        groups.append(_group(context, call, calls))
    return statistics.median(groups) / calls * 1e6


def _group(context: Context, call: Call, calls: int) -> float:
    """Seconds of so many calls, one after the other."""
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    context.synchronize()
    return time.perf_counter() - begin


def _numbers(params: Params, batch: int, seed: int = 0) -> NDArray[np.float64]:
    """Slots of a batch, uniform in [-1/2, 1/2]."""
    shape = (batch, params.slots) if batch > 1 else (params.slots,)
    return np.random.default_rng(seed).uniform(-0.5, 0.5, shape)


def _level(
    context: Context, client: Client, ev: Evaluator, level: int, batch: int, clock: Clock
) -> dict[str, float]:
    """Microseconds of every operation that this level has."""
    params = context.params
    a = client.encrypt(_numbers(params, batch), level=level)
    b = client.encrypt(_numbers(params, batch, 1), level=level)
    few, many = [1, 2], list(range(1, 10))
    calls: dict[str, Call] = {
        "add": lambda: ev.add(a, b),
        "rotation": lambda: ev.rotate(a, 1),
        "conjugation": lambda: ev.conjugate(a),
    }
    if level > 0:
        p = context.encode(_numbers(params, 1, 2), level=level)
        product = ev.multiply(a, b)
        calls |= {
            "plain_product": lambda: ev.multiply(a, p),
            "product": lambda: ev.multiply(a, b),
            "product_rescale": lambda: ev.multiply_rescale(a, b),
            "rescale": lambda: ev.rescale(product),
            "adjust_level": lambda: ev.adjust_level(a, level - 1),
        }
    out = {name: clock(call) for name, call in calls.items()}
    two = clock(lambda: ev.rotate_sum(a, few))
    nine = clock(lambda: ev.rotate_sum(a, many))
    out["hoisted_rotation"] = max(0.0, (nine - two) / 7)
    return out | (_transforms(context, ev, a, level, clock) if level > 0 else {})


def _transforms(context: Context, ev: Evaluator, a: Ciphertext, level: int, clock: Clock) -> dict[str, float]:
    """Of a linear transform: what it takes but for steps and diagonals, and each of these, by least squares
    without negative times."""
    slots = context.params.slots
    values = np.random.default_rng(3).uniform(-0.5, 0.5, (REACH, slots))
    counts, times = [], []
    for offsets, babies in SPLITS:
        made: LinearTransform = context.linear_transform(
            {k: values[k] for k in offsets}, level=level, baby_steps=babies
        )
        counts.append([1.0, made.baby_steps - 1, made.giant_steps - 1, len(offsets)])
        times.append(clock(lambda made=made: made(ev, a)))  # type: ignore[misc]
    found = _non_negative(np.array(counts), np.array(times))
    return dict(zip(("transform", "baby_step", "giant_step", "diagonal"), found, strict=True))


def _non_negative(counts: NDArray[np.float64], times: NDArray[np.float64]) -> list[float]:
    """The x >= 0 with the smallest relative residual of counts x - times: the best over all sets of unknowns
    that are zero."""
    scaled, ones = counts / times[:, None], np.ones(len(times))
    best: tuple[float, list[float]] = (np.inf, [0.0] * counts.shape[1])
    for mask in range(1, 2 ** counts.shape[1]):
        used = [k for k in range(counts.shape[1]) if mask >> k & 1]
        x = np.linalg.lstsq(scaled[:, used], ones, rcond=None)[0]
        residual = float(np.linalg.norm(scaled[:, used] @ x - ones))
        if (x >= 0).all() and residual < best[0] - 1e-12:
            full = [0.0] * counts.shape[1]
            for k, value in zip(used, x, strict=True):
                full[k] = float(value)
            best = residual, full
    return best[1]


def _bootstrap(
    context: Context, client: Client, ev: Evaluator, options: BootstrapOptions, batch: int, clock: Clock
) -> BootRow:
    """Time of a bootstrap with these options."""
    params = context.params
    boot = context.bootstrapper(ev.keys, options)
    slots = boot.options.slots or params.slots
    values = _numbers(params, batch)[..., :slots]
    x = client.encrypt(values, level=boot.levels.input, slots=slots)
    us = clock((lambda: boot.pair(x, x)) if options.message == "pair" else (lambda: boot(x)))
    return BootRow(
        params.id, slots, boot.levels.input, boot.levels.output, batch, us, SOURCE, options.message
    )
