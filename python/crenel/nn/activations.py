"""Functions of every element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from crenel.errors import ParameterError
from crenel.nn import ops
from crenel.nn.modules import _numbers
from crenel.nn.ops import Reals
from crenel.nn.trace import Module, Tracer


class AbstractActivation(Module):
    """A function of `functions.FUNCTIONS`, which is compiled to polynomials."""

    function: ClassVar[str]

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(ops.Activation(self.function), [value], place or self.function)


@dataclass(frozen=True, eq=False)
class ReLU(AbstractActivation):
    """max(x, 0)."""

    function: ClassVar[str] = "relu"


@dataclass(frozen=True, eq=False)
class GELU(AbstractActivation):
    """x (1 + erf(x / sqrt 2)) / 2."""

    function: ClassVar[str] = "gelu"


@dataclass(frozen=True, eq=False)
class SiLU(AbstractActivation):
    """x / (1 + exp(-x))."""

    function: ClassVar[str] = "silu"


@dataclass(frozen=True, eq=False)
class Sigmoid(AbstractActivation):
    """1 / (1 + exp(-x))."""

    function: ClassVar[str] = "sigmoid"


@dataclass(frozen=True, eq=False)
class Tanh(AbstractActivation):
    """The hyperbolic tangent."""

    function: ClassVar[str] = "tanh"


@dataclass(frozen=True, eq=False, init=False)
class Polynomial(Module):
    """sum_k coefficients[k] x^k, lowest first; computed as it is, never fitted.

    Degree 2: one level as a square of a shifted input; two where the shift, -c1 / (2 c2), or the constant is
    large beside the values, or where the result's bound is a sum's or a fitted function's. Degree 1 or less:
    a norm, part of the linear layer beside it. Others: as of fitted polynomials of the degree.
    """

    coefficients: Reals

    def __init__(self, coefficients: ArrayLike) -> None:
        """coefficients : up to degree 127. Raises ParameterError for more, and for what is not finite."""
        found = _numbers(coefficients, 1, "coefficients")
        if len(found) > 128:
            raise ParameterError(
                f"a polynomial of degree {len(found) - 1}, expected at most 127", {"degree": len(found) - 1}
            )
        object.__setattr__(self, "coefficients", found)

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(ops.Polynomial(self.coefficients), [value], place or "polynomial")


@dataclass(frozen=True, eq=False)
class Square(Module):
    """x^2: one level, or two where the bound of the result is that of a sum or of a fitted function."""

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(
            ops.Polynomial(_numbers([0.0, 0.0, 1.0], 1, "coefficients")), [value], place or "square"
        )
