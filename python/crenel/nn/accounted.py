"""Costs of operations on a known machine, by their launches: neither that machine nor any GPU is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from crenel import ckks
from crenel._crenel import Account
from crenel.nn.cost import CostModel
from crenel.nn.machine import Launch, machine_of
from crenel.nn.measure import Call, timed
from crenel.nn.passes import priced
from crenel.nn.plan import Boot

SOURCE = "launches"
LEVELS = 4  # steps between the levels that are counted; times of others are interpolated


def launched(context: ckks.Context, call: Call) -> list[Launch]:
    """What a call launches; what the first one makes (tables, recordings) is there."""
    call()
    account = Account()
    account.attach(context)
    try:
        call()
    finally:
        account.detach()
    return cast("list[Launch]", account.records())


def accounted(
    params: ckks.Params,
    machine: str,
    *,
    batches: Sequence[int] = (1,),
    targets: Sequence[int] | None = None,
) -> CostModel:
    """Times of `crenel.nn.cost.OPERATIONS` on a machine whose launches are known: each is run on "cuda:dry",
    which computes nothing, and its launches take what `crenel.nn.machine.Machine` says; seconds in all.
    Bootstraps are those of real vectors and of pairs, of a half and of all slots that parameters have; they
    are replayed from recordings, as in programs. Stand-ins are allowed (`CostModel.with_stand_ins`).

    machine : as of `crenel.nn.duration`
    targets : levels at which bootstraps end; default those where they get cheaper, and the highest. To one
        between, placement takes the price of the next higher one

    Raises UnsupportedError naming the machines that are known, where this is none of them, ParameterError for
    levels at which no bootstrap ends, and TypeError for what are no integers.
    """
    known = machine_of(machine)
    context = ckks.Context(params, "cuda:dry")
    top = params.normal_top_level

    bootstraps: list[ckks.BootstrapOptions] = []
    if params.max_level > top:
        ends = priced.ends(params, priced.targets(params) if targets is None else targets)
        halves = (params.slots // 8, params.slots // 4, params.slots // 2, params.slots)
        bootstraps = [
            Boot(slots, pair=pair, target=target).options()
            for target in ends for slots in halves for pair in (False, True)
        ]  # fmt: skip
    levels = sorted({round(top * k / LEVELS) for k in range(LEVELS + 1)} | {min(1, top)})
    rows, boots = timed(
        context, levels, batches, bootstraps,
        lambda call: known.us(launched(context, call), recorded=False),
        lambda call: known.us(launched(context, call), recorded=True),
    )  # fmt: skip
    rows = tuple(replace(row, source=SOURCE) for row in rows)
    boots = tuple(replace(row, source=SOURCE) for row in boots)
    said = {
        "command": "crenel.nn.accounted", "params": params.name or params.id, "machine_source": known.source
    }  # fmt: skip
    return CostModel(known.device, params.log_n, params.alpha, rows, boots, {SOURCE: said}).with_stand_ins()
