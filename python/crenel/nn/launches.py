"""How long a run takes on a known machine: its launches, counted by a dry run, and what each costs there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np

from crenel import ckks
from crenel._crenel import Account
from crenel.nn.client import Client
from crenel.nn.machine import Duration, Launch, Machine, machine_of
from crenel.nn.plan import Refresh
from crenel.nn.program import Program


def counted(program: Program) -> tuple[tuple[bool, list[Launch]], ...]:
    """Launches of each step of a run of a whole batch, and whether they are a bootstrap's, by a run on
    ``"cuda:dry"``, which computes nothing: seconds for a large network."""
    context = ckks.Context(program.params, "cuda:dry")
    client, spec = Client(context.keygen()), program.client
    server = program.on(context.device).bind(client.evaluation_keys(spec))
    x = client.encrypt(np.zeros((program.batch, *program.plan.values[0].layout.shape)), spec)
    server.run(x)  # recordings are made in the first run, and replayed in the second
    boots = {step.out for step in program.plan.steps if isinstance(step, Refresh)}
    found: list[tuple[bool, list[Launch]]] = []
    account = Account()

    def made(number: int, _: Sequence[ckks.Ciphertext]) -> None:
        found.append((number in boots, cast("list[Launch]", account.records())))
        account.clear()

    account.attach(context)
    try:
        server.run(x, watch=made)
    finally:
        account.detach()
    return tuple(found)


def duration(program: Program, machine: str) -> Duration:
    """How long a run of a whole batch takes on a known machine, for `Program.describe`. The launches of a
    program are counted once, by a dry run, which takes seconds.

    machine : its GPU's description, or the first words of its name, as "NVIDIA H100"; see
        `crenel.nn.machine.machine_of`, which raises UnsupportedError naming those that are known
    """
    known = machine_of(machine)
    kept = program._kept
    if "launches" not in kept:
        kept["launches"] = counted(program)
    steps = cast("tuple[tuple[bool, list[Launch]], ...]", kept["launches"])
    return of_steps(steps, known)


def of_steps(steps: Iterable[tuple[bool, Sequence[Launch]]], machine: Machine) -> Duration:
    """Of the launches of steps, as `counted` has them."""
    eager = recorded = 0.0
    launches = 0
    for bootstrap, records in steps:
        eager += machine.us(records, bootstrap)
        recorded += machine.us(records, recorded=True)
        launches += len(records)
    return Duration(machine.device, 1e-3 * eager, 1e-3 * recorded, launches)
