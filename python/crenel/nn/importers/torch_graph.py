"""Networks of PyTorch, as torch.fx records them.

Only `from_torch` needs PyTorch: nodes are read by what they have, ``op``, ``name``, ``target``, ``args`` and
``kwargs``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.functions import Reals, reals
from crenel.nn.importers.imported import (
    Call,
    Imported,
    Make,
    Ref,
    checked,
    needs,
)
from crenel.nn.importers.names import Places, printable
from crenel.nn.importers.replacements import checked_replacements
from crenel.nn.importers.torch_functions import FUNCTIONS, MODULES, VIEWS
from crenel.nn.ops import Shape

if TYPE_CHECKING:
    import torch


def from_torch(
    module: torch.nn.Module, shape: Shape | None = None, *, replace: Mapping[str, str] | None = None
) -> Imported:
    """A trained `torch.nn.Module` as a module of crenel.nn, with copies of its weights.

    Parameters
    ----------
    module : in evaluation mode (``module.eval()``), with one input and one output; torch.fx must be able to
        trace it: no control flow that depends on data
    shape : of one sample, (channels, height, width); then everything is checked here, otherwise only whether
        operators are known, and the rest when samples come
    replace : ``{"MaxPool": "avg"}`` puts average pools where maxima are, ``{"Softmax": "identity"}`` leaves a
        softmax out; both warn with ReplacementWarning

    Places, as in ``degree={"layer1.0.relu": 15}``, are PyTorch's own; what is used again has a number behind
    it. Raises UnsupportedError for operators that cannot be imported, all of them with their places
    (``fields["operators"]``), for networks that cannot be traced and without PyTorch; ParameterError for what
    is no such module, and for weights and shapes that do not fit.
    """
    try:
        import torch
    except ImportError:
        needs("PyTorch", "torch")
    if not isinstance(module, torch.nn.Module):
        kind = type(module).__qualname__
        hint = ", in which load_state_dict puts weights" if isinstance(module, Mapping) else ""
        raise ParameterError(f"{kind}, expected a torch.nn.Module{hint}", {"type": kind})
    asked = checked_replacements(replace)
    if type(module).__name__ in MODULES:  # torch.fx looks into what it is given, into a layer too
        module = torch.nn.Sequential(module)
    try:
        recorded = torch.fx.Tracer().trace(module)
    except Exception as error:  # whatever a forward raises that was given what stands for a tensor
        raise UnsupportedError(
            f"torch.fx cannot trace the network: {type(error).__name__}: {error}. What it does must not "
            "depend on data, nor on the number of samples",
            {"error": type(error).__name__},
        ) from error
    return checked(imported(recorded.nodes, module, asked), shape)


def imported(nodes: Iterable[Any], root: object, replace: Mapping[str, str]) -> Imported:
    """The module of recorded nodes; root: what has the modules and constants that they name."""
    nodes = list(nodes)
    inputs = [node.name for node in nodes if node.op == "placeholder"]
    outputs = [node.args[0] for node in nodes if node.op == "output"]
    if len(inputs) != 1 or len(outputs) != 1 or not _is_node(outputs[0]):
        results = len(outputs[0]) if outputs and isinstance(outputs[0], (tuple, list, dict)) else 1
        raise UnsupportedError(
            f"a network of {len(inputs)} inputs ({', '.join(inputs)}) and {results} results, expected one "
            "tensor in and one out",
            {"inputs": len(inputs), "results": results},
        )
    places = Places()
    broken = _overwritten(nodes, root)
    calls = [
        _call(node, root, places, node.name in broken)
        for node in nodes
        if node.op in ("call_module", "call_function", "call_method", "get_attr")
    ]
    return Imported(tuple(calls), inputs[0], outputs[0].name, replace)


def _call(node: Any, root: object, places: Places, broken: bool) -> Call:
    operands, options = _refs(node.args), {name: _refs(value) for name, value in node.kwargs.items()}
    scope, reason = _scope(node), ""
    if node.op == "get_attr":
        constant = array(_attribute(root, node.target))
        return Call(node.name, "constant", lambda s: constant, (), {}, places.of(node.target))
    if node.op == "call_module":
        module = _attribute(root, node.target)
        operator, place = type(module).__name__, places.of(node.target)
        make, known, reason = _of_module(module)
        options |= known
    elif node.op == "call_method":
        operator = str(node.target)
        make, place = FUNCTIONS.get(operator.rstrip("_")), places.of(f"{scope}{operator}")
    else:
        operator = _name(node.target)
        make = FUNCTIONS.get(operator.rstrip("_")) if _of_torch(node.target) else None
        place = places.of(f"{scope}{operator}")
    options.pop("inplace", None)
    if broken:
        return Call(node.name, operator, None, (), {}, place, "changes in place what is read again")
    return Call(node.name, operator, make, operands, options, place, reason)


def _of_module(module: object) -> tuple[Make | None, dict[str, object], str]:
    """The function that a module is, and its arguments; None: it is not known, or not for the reason."""
    entry = MODULES.get(type(module).__name__)
    if entry is None:
        return None, {}, ""
    home = type(module).__module__
    if not home.startswith("torch.nn.modules."):  # torch.ao.nn has classes of the same names
        return None, {}, f"of {home}: only the class of torch.nn is known"
    if any(getattr(module, each, None) for each in ("_forward_hooks", "_forward_pre_hooks")):
        return None, {}, "hooks change it, as those of weight_norm: remove them before the import"
    make, attributes = entry
    given = {name: getattr(module, name) for name in attributes}
    known: dict[str, object] = {
        name: array(value) if hasattr(value, "shape") else value for name, value in given.items()
    }
    return make, known, ""


def _of_torch(target: object) -> bool:
    """Is a function one of PyTorch's or of Python's operators? Others may have the same names."""
    module = getattr(target, "__module__", None) or ""
    return module.split(".")[0] in ("torch", "_operator", "operator", "builtins", "math")


def _scope(node: Any) -> str:
    """The module in whose forward a function is called, as ``"layer1.0."``."""
    stack = list((getattr(node, "meta", None) or {}).get("nn_module_stack") or {})
    return f"{stack[-1]}." if stack and stack[-1] else ""


def _is_node(given: object) -> bool:
    return hasattr(given, "op") and hasattr(given, "target") and hasattr(given, "name")


def _refs(given: Any) -> Any:
    if _is_node(given):
        return Ref(given.name)
    if isinstance(given, (tuple, list)):
        return tuple(_refs(each) for each in given)
    return given


def _attribute(root: object, path: str) -> object:
    for name in path.split("."):
        root = root[int(name)] if isinstance(root, (list, tuple)) else getattr(root, name)
    return root


def array(value: Any) -> Reals:
    """A copy of a tensor's numbers in float64. Raises ParameterError for what has none: complex, sparse and
    quantized tensors, and those of the device "meta"."""
    if hasattr(value, "detach"):
        kind = f"{getattr(value, 'dtype', '')} on {getattr(value, 'device', '')}"
        try:
            value = value.detach().cpu()
            value = (value.double() if value.is_floating_point() else value).numpy()
        except (RuntimeError, TypeError, ValueError) as error:
            raise ParameterError(f"a tensor of {kind}: {printable(error)}", {"type": kind}) from None
    return np.array(reals(value, "a tensor"))


def _overwritten(nodes: Sequence[Any], root: object) -> set[str]:
    """Calls that change in place a tensor of which a later call reads what it was, itself or a view of it."""
    reads = [{each.name for each in _nodes_in((node.args, node.kwargs))} for node in nodes]
    storage: dict[str, str] = {}
    broken = set()
    for number, node in enumerate(nodes):
        module = _attribute(root, node.target) if node.op == "call_module" else None
        operator = type(module).__name__ if module is not None else _name(node.target)
        first = next(_nodes_in(node.args), None)
        flags = (getattr(module, "inplace", False), node.kwargs.get("inplace", False))
        changes = True in flags or (node.op.startswith("call_") and _in_place(operator))
        if first is not None and (changes or operator in VIEWS):
            older = {name for name, of in storage.items() if of == storage[first.name]}
            if changes and any(older & later for later in reads[number + 1 :]):
                broken.add(node.name)
            storage[node.name] = storage[first.name]
        else:
            storage[node.name] = node.name
    return broken


def _in_place(operator: str) -> bool:
    return operator in ("iadd", "isub", "imul", "itruediv") or operator.endswith("_") != operator.endswith(
        "__"
    )


def _nodes_in(given: Any) -> Iterator[Any]:
    if _is_node(given):
        yield given
    elif isinstance(given, (tuple, list)):
        for each in given:
            yield from _nodes_in(each)
    elif isinstance(given, dict):
        yield from _nodes_in(tuple(given.values()))


def _name(target: object) -> str:
    return str(getattr(target, "__name__", target))
