"""A network as another framework recorded it: calls in their order, and the module of them."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.functions import Function
from crenel.nn.importers.names import printable
from crenel.nn.importers.replacements import EXACT, HINTS, REPLACED, REPLACEMENTS, ReplacementWarning
from crenel.nn.ops import Shape
from crenel.nn.trace import Module, Tracer

MOST_ELEMENTS = 1 << 25  # of a tensor of one sample, and of all weights that are made of others
MOST_REASON = 240  # characters
PAGE = "docs/reference/nn-operators.md"


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
Either: TypeAlias = Any
"""A tensor or a constant."""
Make = Callable[..., Any]
"""Of a scope and operands: what a call makes. Operands annotated with `Tensor` are tensors, those with
`Either` may be, and all others are constants."""


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
    reason: str = ""
    """Why there is no `make`, where that is not because of the operator."""


@dataclass
class Scope:
    """What a call has to build with."""

    tracer: Tracer
    pointwise: dict[int, tuple[int, Function]]
    """Of nodes that are a function of every element of another: that node, and the function."""
    samples: int | None = None
    """How many there are, where the framework fixes it."""
    replace: Mapping[str, str] = field(default_factory=dict)
    """Of operators that are replaced, by what."""
    place: str = ""
    operator: str = ""
    taken: int = 0
    """Numbers of the weights that were made of others."""

    def takes(self, numbers: int) -> None:
        """Before weights are made: raises ParameterError for more than `MOST_ELEMENTS`, all together."""
        self.taken += numbers
        fits(self.taken)

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


def _number(tensor: Tensor) -> int:
    assert tensor.number is not None, "calls on what is not known are not made"
    return tensor.number


def _named(place: str, operator: str, reason: str = "") -> str:
    why = printable(reason, MOST_REASON)
    return f"{place} ({printable(operator)}{': ' * bool(why)}{why})"


@dataclass(frozen=True, eq=False)
class Imported(Module):
    """A network of another framework, in that one's own names; of `from_torch`, `from_onnx` and
    `from_keras`."""

    calls: tuple[Call, ...]
    source: str
    """Name of the input's value."""
    output: str
    replace: Mapping[str, str] = field(default_factory=dict)
    samples: int | None = None
    """How many it takes, where it takes no others."""

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        return self._run(tracer, value, place).number

    def refusal(self, call: Call) -> str | None:
        """Why a call cannot be imported, as far as its operator says it."""
        wanted = REPLACED.get(call.operator)
        if call.make is None:
            return call.reason
        if wanted == "Softmax" and call.result != self.output:
            return "within the network"
        if wanted is None or wanted in self.replace:
            return None
        ways = " or ".join(f"{{{wanted!r}: {by!r}}}" for by in REPLACEMENTS[wanted])
        return f"{HINTS[wanted]}: replace={ways}"

    def _run(self, tracer: Tracer, value: int | None, place: str) -> Tensor:
        scope = Scope(tracer, {}, self.samples, self.replace)
        values: dict[str, object] = {self.source: Tensor(value)}
        for call in self.calls:
            scope.place = f"{place}.{call.place}" if place else call.place
            scope.operator = call.operator
            values[call.result] = _made(scope, call, values, self.refusal(call))
        output = values[self.output]
        if not isinstance(output, Tensor):
            raise UnsupportedError(
                "the network's result does not depend on its input", {"output": self.output}
            )
        return output


def _made(scope: Scope, call: Call, values: Mapping[str, object], refusal: str | None) -> object:
    """What a call makes; a tensor that is not known where one that it reads is not.

    A call that is refused may make something of the right shape: then what follows is looked at too.
    """
    operands = _filled(call.operands, values)
    options = {name: _filled(option, values) for name, option in call.options.items()}
    if refusal is not None:
        scope.refuse(refusal)
    if call.make is None:
        return Tensor(None)
    tensors = [each for each in _flat([operands, options]) if isinstance(each, Tensor)]
    if any(tensor.number is None for tensor in tensors):
        return Tensor(None)
    reason = _mismatch(call.make, scope, operands, options)
    if reason is not None:
        scope.refuse(reason)
        return tensors[0] if tensors else Tensor(None)
    try:
        made = call.make(scope, *operands, **options)
        if isinstance(made, Tensor) and made.number is not None:
            fits(math.prod(scope.shape(made)))
        return made
    except ParameterError as error:
        if scope.tracer.unknown:  # which explain it
            return Tensor(None)
        if "origin" in error.fields:
            raise
        reason = printable(error, MOST_REASON)
        raise ParameterError(f"{scope.place}: {reason}", {"origin": scope.place} | error.fields) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        scope.refuse(f"operands that it cannot have: {printable(error)}")  # a file may say anything
        return Tensor(None)


def _mismatch(make: Make, scope: Scope, operands: tuple[Any, ...], options: dict[str, Any]) -> str | None:
    """Why a call cannot have these operands, by the names and annotations of its own."""
    signature = inspect.signature(make)
    try:
        bound = signature.bind(scope, *operands, **options)
    except TypeError as error:
        return str(error)
    for name, given in list(bound.arguments.items())[1:]:
        kind = str(signature.parameters[name].annotation)
        if kind == "Tensor" and not isinstance(given, Tensor):
            return f"{name} is a constant"
        if "Either" not in kind and kind != "Tensor" and any(isinstance(v, Tensor) for v in _flat(given)):
            return f"{name} depends on the network's input"
    return None


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


def checked(model: Imported, shape: Shape | None) -> Imported:
    """The module itself. Without a shape only names of operators are looked at.

    Raises UnsupportedError for what cannot be imported, all of it (``fields["operators"]``); ParameterError
    for shapes and weights that do not fit, naming the place. Warns where operators are replaced.
    """
    if shape is None:
        reasons = [(call, model.refusal(call)) for call in model.calls]
        unknown = [_named(call.place, call.operator, why) for call, why in reasons if why is not None]
    else:
        tracer = Tracer(checked_shape(shape))
        model._run(tracer, 0, "")
        unknown = tracer.unknown
    if unknown:
        raise UnsupportedError(
            f"operators that cannot be imported: {', '.join(unknown)}. {PAGE} lists those that can",
            {"operators": ", ".join(unknown)},
        )
    replaced = [
        _named(call.place, call.operator)
        for call in model.calls
        if call.operator in REPLACED and model.replace[REPLACED[call.operator]] not in EXACT
    ]
    if replaced:
        warnings.warn(
            f"replaced: {', '.join(replaced)}. The network is not the one that was trained: check its "
            "accuracy anew, or train it with what stands there now",
            ReplacementWarning,
            stacklevel=4,
        )
    return model


def fits(elements: int) -> None:
    """Raises ParameterError for more than a tensor may have: files may ask for any number of them."""
    if elements > MOST_ELEMENTS:
        raise ParameterError(
            f"a tensor of {elements} elements, expected at most {MOST_ELEMENTS}", {"elements": elements}
        )


def checked_shape(shape: object) -> Shape:
    """Of one sample. Raises ParameterError for what is none, and for more elements than 2^25."""
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
