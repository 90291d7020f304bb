"""What a network is measured on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError
from crenel.nn import Module
from crenel.nn.ops import Reals


@dataclass(frozen=True, eq=False)
class Task:
    """A network, and samples like those that it will see.

    Attributes
    ----------
    name : of the command
    model : None where a compiled program stands for it (`clear.kept`)
    weights, data : where they come from, for the record
    calibration : (count, *input shape) of the training, from which `nn.compile` takes ranges
    samples : (count, *input shape) to be computed under encryption; not of the training
    labels : (count,) the right class of each; None: there are none
    degree, margin : as of `nn.compile`, where a run is not told otherwise
    """

    name: str
    model: Module | None
    weights: str
    data: str
    calibration: Reals
    samples: Reals
    labels: NDArray[np.int64] | None = None
    degree: int | Mapping[str, int] | None = None
    margin: float = 2.0

    def __post_init__(self) -> None:
        """Raises ParameterError for samples and labels that do not belong together."""
        if self.samples.shape[1:] != self.calibration.shape[1:] or not len(self.samples):
            raise ParameterError(
                f"samples of shape {self.samples.shape}, for calibration {self.calibration.shape}; expected "
                "one shape behind the first axis, and at least one sample",
                {"samples": list(self.samples.shape), "calibration": list(self.calibration.shape)},
            )
        if self.labels is not None and self.labels.shape != self.samples.shape[:1]:
            raise ParameterError(
                f"{self.labels.shape} labels for {len(self.samples)} samples",
                {"labels": list(self.labels.shape), "samples": len(self.samples)},
            )

    def accuracy(self, outputs: Reals) -> float | None:
        """Share of the samples, or of the first ones, whose largest output is the right class."""
        if self.labels is None:
            return None
        return float((classes(outputs) == self.labels[: len(outputs)]).mean())


def classes(outputs: Reals) -> NDArray[np.int64]:
    """Of each sample the place of its largest output."""
    return np.asarray(outputs.reshape(len(outputs), -1).argmax(axis=1), dtype=np.int64)


def agreement(found: Reals, expected: Reals) -> float:
    """Share of samples with the same largest output."""
    return float((classes(found) == classes(expected)).mean())


def least_cosine(found: Reals, expected: Reals) -> float:
    """Least over samples, of the cosine between outputs; 1 where both are zero."""
    a, b = found.reshape(len(found), -1), expected.reshape(len(expected), -1)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = (a * b).sum(axis=1)
    return float(np.where(lengths > 0, products / np.where(lengths > 0, lengths, 1.0), 1.0).min())
