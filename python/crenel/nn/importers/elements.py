"""Operators of any framework that work element by element: functions, sums, products."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from crenel.nn import modules, ops
from crenel.nn.activations import AbstractActivation, AbstractFamily, Polynomial, ReLU, ReLU6, Square
from crenel.nn.functions import FUNCTIONS, Function, Reals, function, member, reals
from crenel.nn.importers.imported import Either, Scope, Tensor
from crenel.nn.trace import Module

FAR = np.array([16.0, 50.0, 200.0, 1000.0])
GRID = np.concatenate([-FAR, np.linspace(-12.0, 12.0, 481), FAR])
CLOSE = 1e-6  # what constants in float32 may make of a function


def activated(s: Scope, x: Tensor, name: str) -> Tensor:
    """A row of functions.FUNCTIONS."""
    made = Tensor(s.tracer.add(ops.Activation(name), [x.number], s.place))
    return s.noted(made, x, function(name))


def activation(kind: type[AbstractActivation]) -> Callable[[Scope, Tensor], Tensor]:
    """The operator that is a class of crenel.nn."""

    def make(s: Scope, x: Tensor) -> Tensor:
        return activated(s, x, kind.function)

    make.__doc__ = f"`{kind.__name__}`."
    return make


def gelu(s: Scope, x: Tensor, approximate: str) -> Tensor:
    """By the name of what the framework computes in its place, "none" or "tanh"."""
    if approximate not in ("none", "tanh"):
        s.refuse(f"approximate {approximate}")
    return activated(s, x, "gelu_tanh" if approximate == "tanh" else "gelu")


def of_family(s: Scope, x: Tensor, kind: type[AbstractFamily], parameter: float) -> Tensor:
    """That class of crenel.nn with its parameter."""
    module = kind(parameter)
    return s.noted(s.apply(module, x), x, function(member(kind.family, module.parameter)))


def affine(s: Scope, x: Tensor, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    """Numbers."""
    if (scale, shift) == (1.0, 0.0):
        return x
    channels = s.shape(x)[0]
    s.takes(4 * channels)
    made = s.apply(_affine(np.full(channels, scale), np.full(channels, shift)), x)
    return s.noted(made, x, lambda v: scale * v + shift)


def _affine(scale: Reals, shift: Reals) -> Module:
    return modules.BatchNorm(np.zeros_like(scale), np.ones_like(scale), scale, shift, 0.0)


def negated(s: Scope, x: Tensor) -> Tensor:
    """Part of the linear layers beside it."""
    return affine(s, x, -1.0)


def subtracted(s: Scope, a: Either, b: Either) -> object:
    """`Add`; constants are numbers, or one a channel."""
    return added(s, a, b, -1.0)


def clipped(s: Scope, x: Tensor, low: float | None, high: float | None) -> Tensor:
    """min(max(x, low), high), by ReLU6 between two norms; by ReLU where there is one limit. Limits are
    numbers: those of channels or columns are refused."""
    if np.ndim(low) or np.ndim(high):  # type: ignore[arg-type]
        s.refuse("limits that are no numbers")
        return Tensor(None)
    if low is None or high is None:
        if low is None and high is None:
            return x
        sign, limit = (1.0, low) if low is not None else (-1.0, high)
        assert limit is not None
        return affine(s, activated(s, affine(s, x, sign, -sign * limit), ReLU.function), sign, limit)
    if not low < high:
        s.refuse(f"limits {low} and {high}")
        return Tensor(None)
    factor = 6.0 / (high - low)
    inside = activated(s, affine(s, x, factor, -low * factor), ReLU6.function)
    return affine(s, inside, 1.0 / factor, low)


def power(s: Scope, x: Tensor, exponent: Any) -> Tensor:
    """A `Polynomial`; exponents from 1 to 127."""
    number = _number(exponent)
    if number is None or not 1 <= number <= 127 or number != int(number):
        s.refuse("an exponent that is no integer from 1 to 127")
        return Tensor(None)
    coefficients = np.zeros(int(number) + 1)
    coefficients[-1] = 1.0
    return s.noted(s.apply(Polynomial(coefficients), x), x, lambda v: v ** int(number))


def added(s: Scope, a: Either, b: Either, factor: float = 1.0) -> object:
    """a + factor b."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if s.shape(a) != s.shape(b):
            s.refuse(f"a sum of tensors of the shapes {s.shape(a)} and {s.shape(b)}")
            return _larger(s, a, b)
        second = affine(s, b, factor)
        total = Tensor(s.tracer.add(ops.Add(), [a.number, second.number], s.place))
        for number, of_a, of_b in _common(s, a, second)[:1]:
            s.noted(total, Tensor(number), _plus(of_a, of_b))
        return total
    if isinstance(a, Tensor):
        return _with_constant(s, a, None, factor * _constant(b))
    if isinstance(b, Tensor):
        return _with_constant(s, affine(s, b, factor), None, _constant(a))
    return folded(s, lambda u, v: u + v if factor == 1.0 else u + factor * v, a, b)


def multiplied(s: Scope, a: Either, b: Either) -> object:
    """By a number or one a channel; `Square`; products that are an activation, as x sigmoid(x)."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return s.noted(s.apply(Square(), a), a, np.square) if a == b else _product(s, a, b)
    if isinstance(a, Tensor):
        return _with_constant(s, a, _constant(b), None)
    if isinstance(b, Tensor):
        return _with_constant(s, b, _constant(a), None)
    return folded(s, operator.mul, a, b)


def divided(s: Scope, a: Either, b: Either) -> object:
    """By a number, or one a channel."""
    if isinstance(b, Tensor):
        s.refuse("a division by an encrypted tensor")
        return Tensor(None)
    if not isinstance(a, Tensor):
        return folded(s, operator.truediv, a, b)
    with np.errstate(divide="ignore"):
        return multiplied(s, a, 1.0 / _constant(b))


def _product(s: Scope, a: Tensor, b: Tensor) -> Tensor:
    """x sigmoid(x), x (1 + erf(x / sqrt 2)) / 2 and the like, in whatever order they were written: the
    product is compared with the activations on a grid."""
    for number, of_a, of_b in _common(s, a, b):
        with np.errstate(over="ignore", invalid="ignore"):
            made = of_a(GRID) * of_b(GRID)
        for known, wanted in _candidates():
            scale = _scale(made, wanted)
            if scale:
                x = Tensor(number)
                found = activated(s, x, known) if isinstance(known, str) else power(s, x, known)
                return affine(s, found, scale)
    s.refuse("a product of two encrypted tensors")
    return _larger(s, a, b)


def _scale(made: Reals, wanted: Reals) -> float:
    """By what the second is multiplied in the first, within a relative `CLOSE`; 0: it is another function."""
    size = np.maximum(1.0, np.abs(wanted))
    with np.errstate(all="ignore"):
        scale = float((made / size) @ (wanted / size) / np.square(wanted / size).sum())
        close = np.abs(made - scale * wanted) <= CLOSE * abs(scale) * size
    if not close.all():  # numbers that are not finite are close to none
        return 0.0
    return float(round(scale)) if abs(scale - round(scale)) <= CLOSE * abs(scale) else scale


def _candidates() -> Iterator[tuple[str | int, Reals]]:
    """What a product may be, an activation or a power, and its values on the grid."""
    for name, known in FUNCTIONS.items():
        yield name, known(GRID)
    for exponent in (3, 4):
        yield exponent, GRID**exponent


def _larger(s: Scope, a: Tensor, b: Tensor) -> Tensor:
    """Stands for what is refused, so that what follows has a shape."""
    return max(a, b, key=lambda x: math.prod(s.shape(x)))


def _ancestors(s: Scope, x: Tensor) -> list[tuple[int, Function]]:
    """Nodes of which a tensor is a function of every element, itself first, and these functions."""
    assert x.number is not None
    found: list[tuple[int, Function]] = [(x.number, lambda v: v)]
    while (step := s.pointwise.get(found[-1][0])) is not None:
        found.append((step[0], _after(found[-1][1], step[1])))
    return found


def _common(s: Scope, a: Tensor, b: Tensor) -> list[tuple[int, Function, Function]]:
    """Nodes of which both are functions of every element, the nearest first."""
    ways = dict(_ancestors(s, b))
    return [(number, of_a, ways[number]) for number, of_a in _ancestors(s, a) if number in ways]


def _plus(first: Function, second: Function) -> Function:
    return lambda v: first(v) + second(v)


def _after(outer: Function, inner: Function) -> Function:
    return lambda v: outer(inner(v))


def _with_constant(s: Scope, x: Tensor, scale: Reals | None, shift: Reals | None) -> Tensor:
    """Times a constant or plus one: a number, or one a channel."""
    constant = scale if scale is not None else shift
    assert constant is not None
    shape = s.shape(x)
    if constant.size == 1 and constant.ndim <= len(shape) + 1:
        number = float(constant.reshape(()))
        return affine(s, x, *((number, 0.0) if scale is not None else (1.0, number)))
    along = (1,) * (len(shape) + 1 - constant.ndim) + constant.shape
    if along != (1, shape[0], *(1,) * (len(shape) - 1)):
        s.refuse(f"a constant of shape {constant.shape}: only a number, or one a channel")
        return Tensor(None)
    vector = constant.reshape(-1)
    ones, zeros = np.ones_like(vector), np.zeros_like(vector)
    return s.apply(_affine(vector, zeros) if scale is not None else _affine(ones, vector), x)


def _constant(given: object) -> Reals:
    return reals(given, "a constant")


def _number(given: object) -> float | None:
    found = _constant(given)
    return float(found.reshape(())) if found.size == 1 else None


def folded(s: Scope, rule: Callable[[Any, Any], Any], a: object, b: object) -> object:
    """Of constants, where the result is no larger than they are."""
    if isinstance(a, int) and isinstance(b, int):  # of shapes
        return rule(a, b)
    first, second = np.asarray(a), np.asarray(b)
    try:
        size = math.prod(np.broadcast_shapes(first.shape, second.shape))
    except ValueError:
        size = -1
    if not 0 <= size <= max(first.size, second.size) or first.dtype == object:
        s.refuse("constants that cannot be combined")
        return Tensor(None)
    return np.asarray(rule(first, second))
