"""Expected against measured errors, a step a row: what went wrong, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crenel import ckks
from crenel.errors import ParameterError
from crenel.nn.clear import Slots
from crenel.nn.client import Client, unpacked
from crenel.nn.graph import checked_samples
from crenel.nn.interpret import Watch
from crenel.nn.ops import Reals
from crenel.nn.program import Server

TOLERATED = 4.0  # times the model: two bits
DRAWS = 16  # of the model's errors for each sample: a result may have one number only


@dataclass(frozen=True)
class Row:
    """One value: root mean square errors in units of its bound."""

    origin: str
    level: int
    expected: float
    """By the model."""
    measured: float
    """Decrypted against the same plan in the clear."""
    largest: float
    """Largest absolute value in the clear: beyond 1 the bound was left."""

    @property
    def explained(self) -> bool:
        """Is the error what the model expects, to two bits?"""
        return self.measured <= TOLERATED * self.expected


@dataclass(frozen=True)
class Report:
    """Values in the order of the plan."""

    rows: tuple[Row, ...]

    @property
    def first_unexplained(self) -> Row | None:
        """Where an error first exceeds the model, and with it what to look at; None: nowhere."""
        return next((row for row in self.rows if not row.explained), None)

    def __str__(self) -> str:
        lines = [f"{'value':<24}{'level':>6}{'expected':>12}{'measured':>12}{'largest':>10}"]
        lines += [
            f"{row.origin:<24}{row.level:>6}{row.expected:>12.2g}{row.measured:>12.2g}{row.largest:>10.3g}"
            f"{'' if row.explained else '  <- beyond the model'}"
            for row in self.rows
        ]
        return "\n".join(lines)


def report(server: Server, client: Client, samples: ArrayLike) -> Report:
    """Runs samples and decrypts every intermediate: a test with a test key, never with a user's.

    Raises ParameterError for more samples than the program was compiled for, and as `Client.encrypt`.
    """
    program = server.program
    spec = program.client
    found = checked_samples(samples, spec.input.shape)
    if len(found) > program.batch:
        raise ParameterError(
            f"{len(found)} samples, expected at most {program.batch}",
            {"samples": len(found), "batch": program.batch},
        )
    values = program.plan.values
    measured: dict[int, Reals] = {}
    clear: dict[int, Reals] = {}
    noisy: dict[int, Reals] = {}

    def decrypted(number: int, made: list[ckks.Ciphertext]) -> None:
        measured[number] = unpacked(client.ckks_client, tuple(made), values[number].layout, len(found))

    def kept(into: dict[int, Reals], count: int) -> Watch[Slots]:
        def keep(number: int, made: list[Slots]) -> None:
            into[number] = values[number].layout.unpack(np.stack([a.values for a in made]), count)

        return keep

    server.run(client.encrypt(found, spec), watch=decrypted)
    program.simulate(found, noise=False, watch=kept(clear, len(found)))
    program.simulate(np.repeat(found, DRAWS, axis=0), watch=kept(noisy, DRAWS * len(found)))
    return Report(
        tuple(
            Row(
                values[k].origin, values[k].level, _rms(noisy[k] - np.repeat(clear[k], DRAWS, axis=0)),
                _rms(measured[k] - clear[k]), float(np.abs(clear[k]).max()),
            )
            for k in measured
        )
    )  # fmt: skip


def _rms(errors: Reals) -> float:
    return float(np.sqrt(np.mean(errors**2)))
