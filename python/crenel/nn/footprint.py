"""What a program takes of a GPU's memory, found by a dry run: no GPU is needed to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crenel import ckks
from crenel.nn.client import Client
from crenel.nn.program import Program

GIB = 1 << 30


@dataclass(frozen=True)
class Footprint:
    """Bytes of a device's memory.

    Attributes
    ----------
    keys : of evaluation keys
    weights : of encoded matrices
    peak : in use at most, these and all that a run makes included
    held : of the device after two runs, with recordings and what is kept for reuse; the driver counts its own
        context besides
    """

    keys: int
    weights: int
    peak: int
    held: int

    def __str__(self) -> str:
        parts = f"{self.keys / GIB:.2f} keys, {self.weights / GIB:.2f} weights"
        return f"{self.peak / GIB:.2f} GiB at most ({parts}), {self.held / GIB:.2f} held"


def footprint(program: Program) -> Footprint:
    """The memory that `Program.bind` and runs of a whole batch take of a GPU, by a run on ``"cuda:dry"``,
    which counts what it would take and computes nothing: seconds for a large network."""
    context = ckks.Context(program.params, "cuda:dry")
    client, spec = Client(context.keygen()), program.client
    server = program.on(context.device).bind(client.evaluation_keys(spec))
    zeros = np.zeros((program.batch, *program.plan.values[0].layout.shape))
    for _ in range(2):  # recordings are made in the first run, and are there in the second
        server.run(client.encrypt(zeros, spec))
    use, demand = context.device.pools(), program.demand
    return Footprint(demand.key_bytes, demand.plaintext_bytes, use.peak, use.held)
