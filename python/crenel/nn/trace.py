"""What a module is, and from modules to a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from numpy.typing import ArrayLike

from crenel.errors import UnsupportedError
from crenel.nn.graph import Builder, Graph, checked_samples
from crenel.nn.ops import Op, Reals, Shape


class Module(ABC):
    """A layer or a network of them."""

    @abstractmethod
    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        """Adds its operations on a value to a graph and returns the number of the last one's."""

    def shape(self, inputs: Shape) -> Shape:
        """The result's shape for a sample of this shape. Raises ParameterError for one that does not fit."""
        graph = trace(self, inputs)
        return graph.nodes[graph.output].shape

    def __call__(self, samples: ArrayLike) -> Reals:
        """The result in float64, samples in front. Raises ParameterError for a shape that does not fit."""
        found = checked_samples(samples, None)
        return trace(self, found.shape[1:])(found)


class Tracer:
    """Builds a graph, and goes on behind modules that it does not know, to name them all.

    Values are numbers of nodes; None is what an unknown module would have made.
    """

    def __init__(self, shape: Shape) -> None:
        self.builder = Builder(shape)
        self.unknown: list[str] = []

    def add(self, op: Op, values: Sequence[int | None], place: str) -> int | None:
        """A node for an operation on values."""
        known = [value for value in values if value is not None]
        return self.builder.add(op, known, place) if len(known) == len(values) else None

    def shape(self, value: int) -> Shape:
        """Of one sample of a value."""
        return self.builder.nodes[value].shape

    def module(self, module: object, value: int | None, place: str) -> int | None:
        """What a module makes of a value; place: of the module, as ``"0.branch.2"``."""
        if isinstance(module, Module):
            return module._trace(self, value, place)
        self.unknown.append(f"{place or 'the model'} ({_kind(module)})")
        return None


def _kind(module: object) -> str:
    """What it is, so that a caller sees why it is no module."""
    if isinstance(module, type):
        return f"the class {module.__name__} itself, not {module.__name__}(...)"
    homes = {kind.__module__.split(".")[0] for kind in type(module).__mro__}
    of = next((f"{library}: " for library in ("torch", "onnx") if library in homes), "")
    return f"{of}{type(module).__qualname__}"


def trace(module: object, shape: Shape) -> Graph:
    """The graph of a module for samples of a shape.

    Raises UnsupportedError naming every module that is not known, with its place (``fields["modules"]``);
    ParameterError, naming the place, for shapes that do not fit.
    """
    tracer = Tracer(shape)
    output = tracer.module(module, 0, "")
    if tracer.unknown or output is None:
        raise UnsupportedError(
            f"modules that cannot be compiled: {', '.join(tracer.unknown)}. "
            "Known are the classes of crenel.nn, and what from_torch, from_onnx, from_keras make of others",
            {"modules": ", ".join(tracer.unknown)},
        )
    return tracer.builder.graph(output).verify("trace")
