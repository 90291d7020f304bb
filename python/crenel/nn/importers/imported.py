"""A network as another framework recorded it: calls in their order, and the module of them."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.functions import Function
from crenel.nn.ops import Shape
from crenel.nn.trace import Module, Tracer

MOST_ELEMENTS = 1 << 28  # of a sample
PAGE = "docs/reference/nn-operators.md"
REPLACEMENTS = {"MaxPool": "avg", "Softmax": "identity"}
"""What `replace` may name, and by what."""


class ReplacementWarning(UserWarning):
    """Operators were replaced by others: the network is not the one that was trained."""


@dataclass(frozen=True)
class Ref:
    """An operand: the value of that name."""

    name: str


@dataclass(frozen=True)
class Tensor:
    """An encrypted value; `number`: of its node, None behind an operator that is not known."""

    number: int | None


class Batch:
    """The number of samples where a network asks for it: it may only be passed on."""


BATCH = Batch()
Make = Callable[..., Any]
"""Of a scope and the operands, which are tensors or constants: what a call makes."""


@dataclass(frozen=True)
class Call:
    """An operator of the framework on operands; `Ref` stands for values, wherever it stands in lists.

    make : None of an operator that is not known
    place : where it stands, in the framework's own names; no other call has the same
    """

    result: str
    operator: str
    make: Make | None
    operands: tuple[object, ...]
    options: Mapping[str, object]
    place: str


class Places:
    """Names that are printable, not long, and each there once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def of(self, name: str) -> str:
        """The name, or that with a number behind it."""
        plain = printable(name) or "unnamed"
        found, number = plain, 0
        while found in self._seen:
            number += 1
            found = f"{plain}_{number}"
        self._seen.add(found)
        return found


def printable(name: object) -> str:
    """A name of a file as it may stand in messages: 80 characters at most, none that controls."""
    return "".join(c if c.isprintable() else "?" for c in str(name)[:80])


@dataclass
class Scope:
    """What a call has to build with."""

    tracer: Tracer
    pointwise: dict[int, tuple[int, Function]]
    """Of nodes that are a function of every element of another: that node, and the function."""
    replace: Mapping[str, str]
    place: str = ""
    operator: str = ""
    replaced: list[str] = field(default_factory=list)

    def shape(self, tensor: Tensor) -> Shape:
        """Of one sample."""
        return self.tracer.shape(_number(tensor))

    def apply(self, module: Module, tensor: Tensor) -> Tensor:
        """What a module makes of a tensor."""
        return Tensor(self.tracer.module(module, _number(tensor), self.place))

    def noted(self, made: Tensor, tensor: Tensor, function: Function) -> Tensor:
        """The first, of which is noted that it is a function of every element of the second."""
        self.pointwise[_number(made)] = (_number(tensor), function)
        return made

    def refuse(self, reason: str) -> None:
        """Notes why this call cannot be imported. What goes on building finds what else there is."""
        self.tracer.unknown.append(_named(self.place, self.operator, reason))

    def replaces(self, operator: str, hint: str) -> bool:
        """Was a replacement asked for? Refuses otherwise."""
        if operator in self.replace:
            self.replaced.append(f"{self.place} ({self.operator})")
            return True
        self.refuse(f"{hint}: replace={{{operator!r}: {REPLACEMENTS[operator]!r}}} does so")
        return False


def _number(tensor: Tensor) -> int:
    assert tensor.number is not None, "calls on what is not known are not made"
    return tensor.number


def _named(place: str, operator: str, reason: str = "") -> str:
    return f"{place} ({printable(operator)}{': ' * bool(reason)}{reason})"


@dataclass(frozen=True, eq=False)
class Imported(Module):
    """A network of another framework, in that one's own names; of `from_torch` and `from_onnx`."""

    calls: tuple[Call, ...]
    source: str
    """Name of the input's value."""
    output: str
    replace: Mapping[str, str] = field(default_factory=dict)

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return self._run(tracer, value, place).number

    def _run(self, tracer: Tracer, value: int | None, place: str) -> Tensor:
        scope = Scope(tracer, {}, self.replace)
        values: dict[str, object] = {self.source: Tensor(value)}
        for call in self.calls:
            scope.place = f"{place}.{call.place}" if place else call.place
            scope.operator = call.operator
            values[call.result] = _made(scope, call, values)
        if scope.replaced:
            warnings.warn(
                f"replaced: {', '.join(scope.replaced)}. The network is not the one that was trained: check "
                "its accuracy anew, or train it with what stands there now",
                ReplacementWarning,
                stacklevel=4,
            )
        output = values[self.output]
        if not isinstance(output, Tensor):
            raise UnsupportedError(
                "the network's result does not depend on its input", {"output": self.output}
            )
        return output


def _made(scope: Scope, call: Call, values: Mapping[str, object]) -> object:
    """What a call makes; a tensor that is not known where one that it reads is not."""
    operands = _filled(call.operands, values)
    options = {name: _filled(option, values) for name, option in call.options.items()}
    if call.make is None:
        scope.refuse("")
        return Tensor(None)
    tensors = [each for each in _flat([operands, options]) if isinstance(each, Tensor)]
    if any(tensor.number is None for tensor in tensors):
        return Tensor(None)
    try:
        inspect.signature(call.make).bind(scope, *operands, **options)
    except TypeError as error:
        scope.refuse(f"{error}")
        return Tensor(None)
    try:
        return call.make(scope, *operands, **options)
    except ParameterError as error:
        if "origin" in error.fields:
            raise
        raise ParameterError(f"{scope.place}: {error}", {"origin": scope.place} | error.fields) from None


def _filled(given: Any, values: Mapping[str, object]) -> Any:
    if isinstance(given, Ref):
        return values[given.name]
    if isinstance(given, (tuple, list)):
        return tuple(_filled(each, values) for each in given)
    return given


def _flat(given: object) -> Iterator[object]:
    if isinstance(given, dict):
        given = tuple(given.values())
    if isinstance(given, (tuple, list)):
        for each in given:
            yield from _flat(each)
    else:
        yield given


def checked_replacements(replace: Mapping[str, str] | None) -> dict[str, str]:
    """Raises ParameterError for replacements that there are not."""
    found = dict(replace or {})
    for operator, by in found.items():
        if REPLACEMENTS.get(operator) != by:
            there = ", ".join(f"{name!r}: {other!r}" for name, other in REPLACEMENTS.items())
            raise ParameterError(
                f"replace {operator!r:.60} by {by!r:.60}: there are {there}",
                {"operator": f"{operator!r:.60}", "by": f"{by!r:.60}"},
            )
    return found


def checked(model: Imported, shape: Shape | None) -> Imported:
    """The module itself. Without a shape only names of operators are looked at.

    Raises UnsupportedError for what cannot be imported, all of it (``fields["operators"]``); ParameterError
    for shapes and weights that do not fit, naming the place.
    """
    if shape is None:
        unknown = [_named(call.place, call.operator) for call in model.calls if call.make is None]
    else:
        tracer = Tracer(checked_shape(shape))
        model._run(tracer, 0, "")
        unknown = tracer.unknown
    if unknown:
        raise UnsupportedError(
            f"operators that cannot be imported: {', '.join(unknown)}. {PAGE} lists those that can",
            {"operators": ", ".join(unknown)},
        )
    return model


def checked_shape(shape: object) -> Shape:
    """Of one sample. Raises ParameterError for what is none, and for more elements than 2^28."""
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else ()
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in axes)
    if not axes or not whole or math.prod(axes) > MOST_ELEMENTS:
        raise ParameterError(
            f"samples of shape {shape!r:.80}, expected positive integers with a product of at most "
            f"{MOST_ELEMENTS}, as (channels, height, width)",
            {"shape": f"{shape!r:.80}"},
        )
    return axes


def needs(library: str, extra: str) -> NoReturn:
    """Raises UnsupportedError for a library that is not installed."""
    raise UnsupportedError(
        f"this needs {library}: pip install 'crenel[{extra}]'", {"library": library}
    ) from None
