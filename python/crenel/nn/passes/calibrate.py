"""Ranges of every value of a network, from samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crenel.errors import ParameterError
from crenel.nn.approximation import Histogram
from crenel.nn.graph import Graph
from crenel.nn.ops import Reals

LARGEST = 1e100  # absolute value that a network may have
FEW = 5  # samples; a range that fewer decide may be left by the next ones


class CalibrationWarning(UserWarning):
    """Ranges of layers rest on too few samples."""


@dataclass(frozen=True, eq=False)
class Range:
    """What calibration saw of one value."""

    least: float
    largest: float
    mean: float
    rms: float
    reaching: int
    """Samples with an element beyond half of the largest absolute value."""
    histogram: Histogram

    @property
    def reach(self) -> float:
        """The largest absolute value."""
        return max(abs(self.least), abs(self.largest))


@dataclass(frozen=True)
class Calibrate:
    """Ranges, one a node of the graph, in its order."""

    chunk: int = 64
    """Samples at a time: memory grows with it."""

    def __call__(self, graph: Graph, samples: Reals) -> tuple[Range, ...]:
        """samples: (count, *shape of the input), finite.

        Raises ParameterError naming the first layer whose values go beyond 1e100: their squares would leave
        float64. Warns with CalibrationWarning, naming layers, where fewer than five samples decide a range.
        """
        reaches = np.zeros((len(samples), len(graph.nodes)))
        with np.errstate(over="ignore", invalid="ignore"):  # said below, with the layer
            for values, part in self._parts(graph, samples):
                for number, value in enumerate(values):
                    reaches[part, number] = np.abs(value).reshape(len(value), -1).max(axis=1)
        for node, reach in zip(graph.nodes, reaches.T, strict=True):
            if not (reach <= LARGEST).all():  # true of NaN too
                raise ParameterError(
                    f"{node.origin}: samples lead to values beyond {LARGEST:g}, or to none: divide inputs "
                    "or weights by their size",
                    {"origin": node.origin},
                )
        largest = np.maximum(reaches.max(axis=0), 1e-30)
        ranges = self._measure(graph, samples, largest, (reaches > 0.5 * largest).sum(axis=0))
        few = [graph.nodes[k].origin for k, found in enumerate(ranges) if found.reaching < FEW]
        if few:
            warnings.warn(
                f"ranges decided by fewer than {FEW} of {len(samples)} samples: "
                f"{', '.join(dict.fromkeys(few))}. "
                "Give more samples, or a larger margin",
                CalibrationWarning,
                stacklevel=3,
            )
        return ranges

    def _parts(self, graph: Graph, samples: Reals) -> Iterator[tuple[list[Reals], slice]]:
        parts = [slice(k, k + self.chunk) for k in range(0, len(samples), self.chunk)]
        return ((graph.values(samples[part]), part) for part in parts)

    def _measure(self, graph: Graph, samples: Reals, largest: Reals, reaching: Reals) -> tuple[Range, ...]:
        bins = 128
        counts = np.zeros((len(graph.nodes), bins))
        sums = np.zeros((len(graph.nodes), 3))
        ends = np.tile([np.inf, -np.inf], (len(graph.nodes), 1))
        for values, _ in self._parts(graph, samples):
            for k, value in enumerate(values):
                counts[k] += np.histogram(value, bins, (-largest[k], largest[k]))[0]
                sums[k] += value.size, value.sum(), (value**2).sum()
                ends[k] = min(ends[k, 0], value.min()), max(ends[k, 1], value.max())
        return tuple(
            Range(
                float(ends[k, 0]), float(ends[k, 1]), float(sums[k, 1] / sums[k, 0]),
                float(np.sqrt(sums[k, 2] / sums[k, 0])), int(reaching[k]),
                Histogram(float(largest[k]), counts[k]),
            )
            for k in range(len(graph.nodes))
        )  # fmt: skip
