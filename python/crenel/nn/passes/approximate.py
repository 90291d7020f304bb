"""Polynomials in the place of activations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeAlias

import numpy as np

from crenel.errors import ParameterError
from crenel.nn.approximation import DEGREES, MAX_DEGREE, fit, interpolated, levels, minimax
from crenel.nn.graph import Graph, Node
from crenel.nn.ops import Activation, Reals, Series, Shape
from crenel.nn.passes.calibrate import Range
from crenel.nn.plan import Decision

Strategy: TypeAlias = Literal["fit", "chebyshev", "minimax"]


class AgreementWarning(UserWarning):
    """No degree makes the network agree with the exact one as asked for; the highest is used."""


@dataclass(frozen=True)
class Approximate:
    """%3 = activation(%2)  ->  %3 = series(%2), on the bound of %2."""

    strategy: Strategy = "fit"
    """'fit': least squares weighted by the histogram; 'chebyshev': without it; 'minimax': of ReLU the
    composite sign, of other functions as 'fit'."""
    degree: int | Mapping[str, int] | None = None
    """Of all activations, or by origin; None, or an origin that is missing: the least of 3, 7, 15, 31, 63,
    127, one for all of them, with which the network agrees as `agreement` wants."""
    agreement: float = 0.99
    """Share of samples whose largest output stays the same; of a single output, 1 - the relative root mean
    square of the difference."""
    composite: str = "15,15,15"
    """Degrees of the sign's factors for 'minimax'."""

    def __call__(
        self, graph: Graph, bounds: tuple[float, ...], ranges: tuple[Range, ...], samples: Reals
    ) -> tuple[Graph, tuple[Decision, ...]]:
        """Raises ParameterError for options out of range and for origins that no activation has; warns with
        AgreementWarning where no degree reaches the agreement."""
        places = {n.origin: k for k, n in enumerate(graph.nodes) if isinstance(n.op, Activation)}
        self._check(places)
        if not places:
            return graph, ()
        exact, found = graph(samples), graph
        tried: list[tuple[int, float]] = []
        for degree in DEGREES:
            found = self._with(graph, bounds, ranges, degree)
            tried.append((degree, self._agreement(exact, found, samples)))
            if tried[-1][1] >= self.agreement or not self._searches(graph, places):
                break
        if self._searches(graph, places) and tried[-1][1] < self.agreement:
            warnings.warn(
                f"with degree {tried[-1][0]} the agreement is {tried[-1][1]:.4f} "
                f"({measure_of(graph.nodes[graph.output].shape)}), {self.agreement:g} was asked for: give "
                "samples that show more, a smaller margin, or activation='minimax'",
                AgreementWarning,
                stacklevel=3,
            )
        decisions = [
            self._decision(graph.nodes[k], node, tried)
            for k, node in enumerate(found.nodes)
            if isinstance(graph.nodes[k].op, Activation)
        ]
        return found.verify("approximate"), tuple(decisions)

    def _agreement(self, exact: Reals, found: Graph, samples: Reals) -> float:
        """Of a network; where more samples differ than may, of the part of them that shows it."""
        many = exact[0].size > 1
        most = (1.0 - self.agreement) * len(samples)
        made: list[Reals] = []
        share = 0.0
        for part in found.parts(samples):
            made.append(part)
            seen = np.concatenate(made)
            share = agreement(exact[: len(seen)], seen)
            if many and (1.0 - share) * len(seen) > most + 0.5:
                return share
        return share

    def _decision(self, given: Node, made: Node, tried: Sequence[tuple[int, float]]) -> Decision:
        assert isinstance(made.op, Series), made
        reached = f"agreement {tried[-1][1]:.4f}"
        if self._composite(given):
            reason, instead = f"activation 'minimax' was asked for; {reached}", "one polynomial"
        elif self._asked(made.origin) is not None:
            reason, instead = f"the degree was asked for; {reached}", "a degree by agreement"
        else:
            least = tried[-1][1] >= self.agreement
            reason = f"{reached}, asked for {self.agreement:g}{'' if least else ': no degree reaches it'}"
            lower = "; ".join(f"degree {d}: agreement {share:.4f}" for d, share in tried[:-1])
            instead = lower or "a lower degree: there is none"
        chosen = f"{made.op.function} as series of degree {_degrees(made.op)}, {levels(made.op)} levels"
        return Decision(made.origin, chosen, instead, reason)

    def _check(self, places: Mapping[str, int]) -> None:
        if self.strategy not in ("fit", "chebyshev", "minimax"):
            raise ParameterError(
                f"activation {self.strategy!r}, expected 'fit', 'chebyshev' or 'minimax'",
                {"activation": str(self.strategy)},
            )
        if not (isinstance(self.agreement, Real) and 0.0 < self.agreement <= 1.0):
            raise ParameterError(
                f"agreement {self.agreement}, expected a share from 0 to 1",
                {"agreement": str(self.agreement)},
            )
        asked = dict(self.degree) if isinstance(self.degree, Mapping) else {}
        degrees = asked if isinstance(self.degree, Mapping) or self.degree is None else {"": self.degree}
        for origin, degree in degrees.items():
            right = isinstance(degree, (int, np.integer)) and not isinstance(degree, bool)
            if not (degree is not None and right and 1 <= degree <= MAX_DEGREE) and self.degree is not None:
                raise ParameterError(
                    f"degree {degree!r}{f' of {origin}' if origin else ''}, "
                    f"expected an integer from 1 to {MAX_DEGREE}",
                    {"degree": str(degree)},
                )
        unknown = sorted(map(str, asked.keys() - places.keys()))
        if unknown:
            raise ParameterError(
                f"degrees for {', '.join(unknown)}: no such activations; there are {', '.join(places)}",
                {"origins": ", ".join(unknown)},
            )

    def _asked(self, origin: str) -> int | None:
        return self.degree.get(origin) if isinstance(self.degree, Mapping) else self.degree

    def _composite(self, node: Node) -> bool:
        """By the composite sign? Only where no degree is asked for."""
        relu = isinstance(node.op, Activation) and node.op.function == "relu"
        return self.strategy == "minimax" and relu and self._asked(node.origin) is None

    def _searches(self, graph: Graph, places: Mapping[str, int]) -> bool:
        return any(
            self._asked(origin) is None and not self._composite(graph.nodes[k])
            for origin, k in places.items()
        )

    def _with(self, graph: Graph, bounds: tuple[float, ...], ranges: tuple[Range, ...], degree: int) -> Graph:
        nodes = list(graph.nodes)
        for number, node in enumerate(nodes):
            if not isinstance(node.op, Activation):
                continue
            operand = node.inputs[0]
            wanted = self._asked(node.origin)
            wanted = degree if wanted is None else wanted
            if self._composite(node):
                series = minimax(bounds[operand], self.composite)
            elif self.strategy == "chebyshev":
                series = interpolated(node.op.function, bounds[operand], wanted)
            else:
                series = fit(node.op.function, bounds[operand], wanted, ranges[operand].histogram)
            nodes[number] = Node(series, node.inputs, node.shape, node.origin)
        return Graph(tuple(nodes), graph.output)


def _degrees(series: Series) -> str:
    return "/".join(str(len(factor) - 1) for factor in series.factors)


def measure_of(shape: Shape) -> str:
    """What `agreement` is for outputs of a shape, in words."""
    if math.prod(shape) > 1:
        return "share of samples of equal largest output"
    return "1 - the error relative to the output, root mean squares"


def agreement(exact: Reals, found: Reals) -> float:
    """Share of samples of equal largest output; of single outputs 1 - relative root mean square error, or 0
    where that exceeds 1."""
    wanted, got = exact.reshape(len(exact), -1), found.reshape(len(found), -1)
    finite = np.asarray(np.isfinite(got).all(axis=1))
    if wanted.shape[1] > 1:
        same = wanted.argmax(axis=1) == np.where(finite[:, None], got, 0.0).argmax(axis=1)
        return float(np.mean(finite & same))
    if not finite.all():
        return 0.0
    error, size = float(np.mean((wanted - got) ** 2)), float(np.mean(wanted**2))
    return 1.0 if error == 0.0 else max(0.0, 1.0 - math.sqrt(error / max(size, 1e-300)))
