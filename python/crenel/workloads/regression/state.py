"""What a training has reached, encrypted, and its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from crenel._crenel import Ciphertext, Context
from crenel.errors import SerializationError
from crenel.workloads import checkpoint

KIND = "logistic regression"
MOST_ITERATIONS = 1 << 20  # that untrusted bytes may state: a reader computes the momentum of each


@dataclass(frozen=True)
class TrainingState:
    """The encrypted state after an iteration: `LogisticRegression.decrypt` makes weights of it. Immutable."""

    iteration: int
    """Iterations done, at least 1."""
    ahead: Ciphertext
    """The point where the next gradient is taken, in units of the weights' range."""
    weights: Ciphertext
    """1 - eta times the weights, in the same units."""
    inner: Ciphertext | None
    """Inner products of the last iteration times mu, for `check`; None after the first iteration."""
    blocks: tuple[int, ...]
    """Rows of each block of the table it was trained on."""
    belongs: Mapping[str, checkpoint.Value]
    """Fingerprints of parameters and model and, of a training with a checkpoint, of data."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it: the file is there whole, or the one before it is. Nothing secret is in it.

        Raises FileError for what the operating system refuses.
        """
        checkpoint.save(path, KIND, self.belongs, {"iteration": self.iteration}, self._parts())

    def to_bytes(self) -> bytes:
        """For the client, or another server: as a checkpoint's file. Nothing secret is in it."""
        rows = ",".join(map(str, self.blocks))
        progress: dict[str, checkpoint.Value] = {"iteration": self.iteration, "rows": rows}
        return checkpoint.packed(KIND, self.belongs, progress, self._parts())

    @classmethod
    def from_bytes(cls, context: Context, data: bytes) -> TrainingState:
        """A state from untrusted bytes; a model refuses one that is not its own when it is used.

        Raises SerializationError for what is damaged or no state, StateError for another kind of file.
        """
        belongs, progress, parts = checkpoint.unpacked(data, context, KIND)
        iteration, rows = progress.get("iteration"), progress.get("rows")
        if (
            type(iteration) is not int
            or not 1 <= iteration <= MOST_ITERATIONS
            or not {"ahead", "weights"} <= set(parts) <= {"ahead", "weights", "inner"}
        ):
            raise SerializationError(
                f"a state of iteration {iteration!r} with {', '.join(sorted(parts))}; expected an iteration "
                f"from 1 to {MOST_ITERATIONS} with ahead, weights and perhaps inner",
                {"iteration": str(iteration), "parts": ", ".join(sorted(parts))},
            )
        return cls(
            iteration, parts["ahead"], parts["weights"], parts.get("inner"), counts(rows),
            {name: str(value) for name, value in belongs.items()},
        )  # fmt: skip

    def _parts(self) -> dict[str, Ciphertext]:
        parts = {"ahead": self.ahead, "weights": self.weights}
        return parts if self.inner is None else parts | {"inner": self.inner}


def counts(rows: object) -> tuple[int, ...]:
    """Rows of blocks from untrusted text, "64,36"."""
    numbers = rows.split(",") if isinstance(rows, str) else []
    if not numbers or not all(n.isascii() and n.isdigit() and len(n) < 10 and int(n) for n in numbers):
        raise SerializationError(
            f"rows of blocks {str(rows)[:40]!r}, expected positive numbers with commas",
            {"rows": str(rows)[:40]},
        )
    return tuple(map(int, numbers))


def load(
    path: str | os.PathLike[str],
    context: Context,
    belongs: Mapping[str, checkpoint.Value],
    blocks: tuple[int, ...],
    secret_key_id: str,
) -> TrainingState | None:
    """A state from its file, None where there is none.

    Raises StateError naming what differs for a file of another model, of other data, parameters or of another
    secret key; SerializationError for a damaged one.
    """
    found = checkpoint.load(path, context, KIND, belongs)
    if found is None:
        return None
    progress, parts = found
    iteration = progress.get("iteration")
    if type(iteration) is not int or iteration < 1 or not {"ahead", "weights"} <= set(parts):
        raise SerializationError(
            f"checkpoint {os.fspath(path)}: iteration {iteration!r}, {', '.join(sorted(parts))}; expected "
            "an iteration from 1 on with ahead and weights",
            {"path": os.fspath(path), "parts": ", ".join(sorted(parts))},
        )
    checkpoint.same_key(path, parts, secret_key_id)
    return TrainingState(
        iteration, parts["ahead"], parts["weights"], parts.get("inner"), blocks, dict(belongs)
    )
