"""Functions of every element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from numpy.typing import ArrayLike

from crenel.errors import ParameterError
from crenel.nn import ops
from crenel.nn.functions import member
from crenel.nn.modules import _numbers
from crenel.nn.ops import Reals
from crenel.nn.trace import Module, Tracer


class AbstractActivation(Module):
    """A function of `functions.FUNCTIONS`: what is compiled to polynomials."""

    function: ClassVar[str]

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(ops.Activation(self.function), [value], place or self.function)


@dataclass(frozen=True, eq=False)
class ReLU(AbstractActivation):
    """max(x, 0)."""

    function: ClassVar[str] = "relu"


@dataclass(frozen=True, eq=False)
class ReLU6(AbstractActivation):
    """min(max(x, 0), 6)."""

    function: ClassVar[str] = "relu6"


@dataclass(frozen=True, eq=False)
class GELU(AbstractActivation):
    """x (1 + erf(x / sqrt 2)) / 2."""

    function: ClassVar[str] = "gelu"


@dataclass(frozen=True, eq=False)
class TanhGELU(AbstractActivation):
    """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: what some networks were trained with for GELU."""

    function: ClassVar[str] = "gelu_tanh"


@dataclass(frozen=True, eq=False)
class SiLU(AbstractActivation):
    """x / (1 + exp(-x))."""

    function: ClassVar[str] = "silu"


@dataclass(frozen=True, eq=False)
class Sigmoid(AbstractActivation):
    """1 / (1 + exp(-x))."""

    function: ClassVar[str] = "sigmoid"


@dataclass(frozen=True, eq=False)
class HardSwish(AbstractActivation):
    """x min(max(x + 3, 0), 6) / 6."""

    function: ClassVar[str] = "hard_swish"


@dataclass(frozen=True, eq=False)
class HardSigmoid(AbstractActivation):
    """min(max(x + 3, 0), 6) / 6."""

    function: ClassVar[str] = "hard_sigmoid"


@dataclass(frozen=True, eq=False)
class Softplus(AbstractActivation):
    """log(1 + exp(x))."""

    function: ClassVar[str] = "softplus"


@dataclass(frozen=True, eq=False)
class Tanh(AbstractActivation):
    """The hyperbolic tangent."""

    function: ClassVar[str] = "tanh"


@dataclass(frozen=True, eq=False)
class Erf(AbstractActivation):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""

    function: ClassVar[str] = "erf"


class AbstractFamily(Module):
    """A function of `functions.FAMILIES` with its parameter."""

    family: ClassVar[str]
    parameter: float

    def __init__(self, parameter: float) -> None:
        """Raises ParameterError for what is no finite number."""
        if isinstance(parameter, bool) or not isinstance(parameter, Real) or not math.isfinite(parameter):
            raise ParameterError(
                f"{self.family} of {parameter!r:.60}, expected a finite number",
                {"parameter": f"{parameter!r:.60}"},
            )
        object.__setattr__(self, "parameter", float(parameter))

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return tracer.add(ops.Activation(member(self.family, self.parameter)), [value], place or self.family)


@dataclass(frozen=True, eq=False, init=False)
class LeakyReLU(AbstractFamily):
    """max(x, 0) + slope min(x, 0)."""

    parameter: float
    family: ClassVar[str] = "leaky_relu"

    def __init__(self, slope: float = 0.01) -> None:
        """Raises ParameterError for what is no finite number."""
        super().__init__(slope)


@dataclass(frozen=True, eq=False, init=False)
class ELU(AbstractFamily):
    """x where it is positive, alpha (exp(x) - 1) elsewhere."""

    parameter: float
    family: ClassVar[str] = "elu"

    def __init__(self, alpha: float = 1.0) -> None:
        """Raises ParameterError for what is no finite number."""
        super().__init__(alpha)


@dataclass(frozen=True, eq=False, init=False)
class Polynomial(Module):
    """sum_k coefficients[k] x^k, lowest first; computed as it is, never fitted.

    Degree 2: one level as a square of a shifted input; two where the shift, -c1 / (2 c2), or the constant is
    large beside the values, or where the result's bound is a sum's or a fitted function's. Degree 1 or less:
    a norm, part of the linear layer beside it. Others: as of fitted polynomials of the degree.
    """

    coefficients: Reals

    def __init__(self, coefficients: ArrayLike) -> None:
        """coefficients : a vector, up to degree 127. Raises ParameterError for more, and for what is not
        finite."""
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
