"""What bootstraps of fewer levels and fewer slots cost: by the launches of a GPU, or by a CPU's time."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import crenel
from crenel import analyze, ckks
from crenel.records import record

ORDERS = ("coeff_to_slot_first", "slot_to_coeff_first")
MESSAGES = ("complex", "real")
SLACK = 8.0  # how far the largest error of a sound bootstrap may be above its expectation

Row = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is measured.

    slots : of the vectors; 0: all
    targets : levels of results, None the highest
    orders : of ORDERS
    short : with ``short_raise``, without it, or one after the other
    messages : of MESSAGES: what the slots hold
    symmetry : of real vectors of all slots, CoeffToSlot first: with ``real_symmetry``, without it, or one
        after the other
    values : what the slots' values are like, for the message ratio; the ones measured are ``"centred"``
    runs : on devices that compute: bootstraps of fresh values that are timed and compared
    seed : of the values, which are uniform with absolute values within 1
    """

    slots: Sequence[int] = (0,)
    targets: Sequence[int | None] = (None,)
    orders: Sequence[str] = ORDERS[:1]
    short: Sequence[bool] = (True,)
    messages: Sequence[str] = MESSAGES[:1]
    symmetry: Sequence[bool] = (True,)
    values: str = "unknown"
    runs: int = 3
    seed: int = 0

    def options(self) -> Iterable[ckks.BootstrapOptions]:
        """Of each row."""
        for message, order, slots, target in product(self.messages, self.orders, self.slots, self.targets):
            halves = message == "real" and order == ORDERS[0] and slots == 0
            for symmetry, short in product(
                self.symmetry if halves else (True,), self.short if target is not None else (True,)
            ):
                yield ckks.BootstrapOptions(
                    slots=slots or None, target_level=target, message=message, order=order,  # type: ignore[arg-type]
                    values=self.values, short_raise=short, real_symmetry=symmetry,  # type: ignore[arg-type]
                )  # fmt: skip


def measure(params: ckks.Params, device: crenel.Device, plan: Plan, say: Say = print) -> list[Row]:
    """A row for each choice, in the order of `Plan.options`: levels, primes, sizes, and either what launches
    move with the time that measured ceilings allow (``"cuda:dry"``) or times and the largest error. Raises
    ParameterError for targets and slots that the parameters do not have."""
    for options in plan.options():
        params.key_bytes(bootstrap=options)  # raises for what there is not, before the first row
    context = ckks.Context(params, device)
    client = context.keygen()
    rng = np.random.default_rng(plan.seed)
    rows: list[Row] = []
    for options in plan.options():
        keys = client.evaluation_keys(bootstrap=options)
        boot = context.bootstrapper(keys, options)
        row = _facts(boot, options)
        say(f"{row['slots']} slots to level {row['output']}, EvalMod from {row['eval_mod_limbs']} primes")
        dry = device.name.startswith("cuda:dry")
        rows.append(
            row | (_account(context, client, boot) if dry else _timed(context, client, boot, plan, rng))
        )
        del boot, keys
    return rows


def _facts(boot: ckks.Bootstrapper, options: ckks.BootstrapOptions) -> Row:
    report = boot.report()
    return {
        "slots": report.slots,
        "message": options.message,
        "message_ratio": report.message_ratio,
        "order": options.order,
        "real_symmetry": report.real_symmetry,
        "target": options.target_level,
        "short_raise": options.short_raise,
        "input": boot.levels.input,
        "output": boot.levels.output,
        "short_base": boot.levels.short_base,
        "raised_limbs": report.raised_limbs,
        "eval_mod_limbs": report.eval_mod_limbs,
        "key_count": report.key_count,
        "key_bytes": report.key_bytes,
        "plaintext_bytes": report.plaintext_bytes,
        "workspace_bytes": report.workspace_bytes,
    }


def _account(context: ckks.Context, client: ckks.Client, boot: ckks.Bootstrapper) -> Row:
    low = client.encrypt([0.5], level=boot.levels.input, slots=boot.report().slots)
    boot.eager(low)  # what is made in the first call is kept
    with crenel.profile(context) as account:
        boot.eager(low)
    ceilings, records = analyze.load_ceilings(), account.records()
    total = analyze.total(records, ceilings)
    stages = {row.name: 1e6 * row.bound for row in analyze.by_stage(records, ceilings)}
    return {
        "launches": total.launches,
        "bytes": total.bytes,
        "dram_bytes": round(total.dram_bytes),
        "bound_us": 1e6 * total.bound,
        "stages_us": stages,
    }


def _timed(
    context: ckks.Context, client: ckks.Client, boot: ckks.Bootstrapper, plan: Plan, rng: np.random.Generator
) -> Row:
    slots, real = boot.report().slots, boot.options.message == "real"
    walls: list[float] = []
    cpus: list[float] = []
    errors: list[float] = []
    for run in range(plan.runs + 1):  # the first warms the pool, and is compared as well
        x = rng.uniform(-1, 1, slots) + 1j * rng.uniform(-1, 1, slots)
        x = x.real if real else x / np.maximum(1, np.abs(x))
        low = client.encrypt(x, level=boot.levels.input, slots=slots)
        context.synchronize()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime, time.perf_counter()
        result = boot(low)
        context.synchronize()  # or a GPU's work would be timed with the decryption's
        if run:
            walls.append(time.perf_counter() - before[1])
            cpus.append(resource.getrusage(resource.RUSAGE_SELF).ru_utime - before[0])
        errors.append(float(np.abs(client.decrypt(result) - x).max()))
    expected = boot.report().expected_error
    return {
        "latency_us": 1e6 * statistics.median(walls),
        "cpu_us": 1e6 * statistics.median(cpus),
        "runs": len(errors),
        "error": max(errors),
        "expected_error": expected,
        "failures": sum(error > SLACK * expected for error in errors),
        "correct": max(errors) <= SLACK * expected,
    }


def document(rows: Sequence[Row], params: ckks.Params, plan: Plan, provenance: Row) -> Row:
    """A record of the rows, for a file."""
    return record("levels", provenance, rows, params=params.name or params.id, seed=plan.seed)
