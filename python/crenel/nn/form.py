"""Plans, layouts and operations as JSON and arrays, and back from untrusted ones."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import cast

import numpy as np

from crenel import ckks
from crenel.errors import CrenelError, SerializationError
from crenel.nn.archive import Json
from crenel.nn.layout import Layout
from crenel.nn.ops import (
    OPS,
    Affine,
    AvgPool2d,
    Conv2d,
    Flatten,
    Linear,
    Op,
    Place,
    Reals,
    Series,
    Shape,
)  # fmt: skip
from crenel.nn.passes.priced import FACTORS
from crenel.nn.plan import (
    Boot,
    Contract,
    Decision,
    Evaluate,
    Multiply,
    Plan,
    Quadratic,
    Refresh,
    Step,
    Sum,
    Transform,
    Value,
)  # fmt: skip
from crenel.nn.sequences import Attend, Grouped, Pool, Product, Roll, Scores, Weigh

STEPS: dict[str, type[Step]] = {
    "transform": Transform, "evaluate": Evaluate, "quadratic": Quadratic, "multiply": Multiply,
    "contract": Contract, "sum": Sum, "refresh": Refresh,
}  # fmt: skip
LINEAR = (
    Conv2d,
    Linear,
    Affine,
    AvgPool2d,
    Flatten,
    Place,
    Weigh,
    Pool,
    Grouped,
    Roll,
)  # what chains of transforms are made of
MAX_SLOTS = 1 << 20
MAX_ELEMENTS = MAX_SLOTS * 64  # of a tensor


class Arrays:
    """Arrays of a document; equal ones are stored once, so that a document depends on their numbers alone
    and a program has one fingerprint before and after its file."""

    def __init__(self, short: bool = False) -> None:
        """short: numbers that single precision holds exactly, as trained weights are, take four bytes."""
        self.parts: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}
        self._short = short

    def put(self, array: Reals) -> Json:
        """What stands for it in the document."""
        found: dict[str, Json] = {"shape": [int(n) for n in array.shape]}
        flat = np.ascontiguousarray(array, dtype="<f8")
        data = flat.tobytes()
        key = hashlib.sha256(data).digest()
        if self._short:
            with np.errstate(over="ignore"):
                single = flat.astype("<f4")
            if single.astype("<f8").tobytes() == data:
                data = single.tobytes()
                found["type"] = "f4"
        found["array"] = self._names.setdefault(key, f"array{len(self.parts)}")
        self.parts[str(found["array"])] = data
        return found


def layout_form(layout: Layout) -> Json:
    """A layout as JSON."""
    return {
        "shape": list(layout.shape), "size": list(layout.size), "gap": list(layout.gap),
        "plane": list(layout.plane), "capacity": layout.capacity, "sequence": layout.sequence,
        "groups": layout.groups, "images": layout.images,
    }  # fmt: skip


def layout_of(form: Json) -> Layout:
    """From JSON. Raises SerializationError for what is no layout."""
    found = _dict(form)
    shape, size = _counts(found, "shape", None), _counts(found, "size", 3)
    gap, plane = _counts(found, "gap", 2), _counts(found, "plane", 2)
    capacity, groups = count(found["capacity"]), count(found["groups"])
    images = count(found["images"], 1, capacity)
    sequence = found["sequence"]
    ok = (
        type(sequence) is bool
        and (not sequence or (gap, size[2]) == ((1, 1), 1))
        and (groups == 1 or (gap == (1, 1) and size[0] % groups == 0))
        and capacity & (capacity - 1) == 0
        and images & (images - 1) == 0
        and (images == 1 or (groups == 1 and not sequence))
        and capacity <= MAX_SLOTS
        and math.prod(shape) == math.prod(size)
        and size[1] * gap[0] <= plane[0]
        and size[2] * gap[1] <= plane[1]
        and math.prod(size) <= MAX_ELEMENTS
        and -(-size[0] // (gap[0] * gap[1])) * plane[0] * plane[1] <= MAX_ELEMENTS
    )
    if not ok:
        raise SerializationError("a layout that does not hold its tensor", {"shape": list(shape)})
    return Layout(
        shape, (size[0], size[1], size[2]), (gap[0], gap[1]), (plane[0], plane[1]), capacity, bool(sequence),
        groups, images,
    )  # fmt: skip


def _op_form(op: Op, arrays: Arrays) -> Json:
    found: dict[str, Json] = {"op": op.name}
    for each in fields(op):  # type: ignore[arg-type]  # every operation is a dataclass
        found[each.name] = _field(getattr(op, each.name), arrays)
    return found


def _field(value: object, arrays: Arrays) -> Json:
    if isinstance(value, np.ndarray):
        return arrays.put(value)
    if isinstance(value, tuple):
        return [_field(v, arrays) for v in value]
    return cast("Json", value)


def _op_of(form: Json, parts: Mapping[str, bytes]) -> Op:
    found = dict(_dict(form))
    kind = OPS[str(found.pop("op"))]
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    if names != set(found):
        raise SerializationError(f"{kind.name} with {', '.join(sorted(found))}", {"operation": kind.name})
    op = kind(**{name: _value(value, parts) for name, value in found.items()})
    _legal(op)
    _consistent(op)
    return op


def _value(form: Json, parts: Mapping[str, bytes]) -> object:
    if isinstance(form, dict):
        shape = _counts(form, "shape", None)
        kind = form.get("type", "f8")
        if kind not in ("f4", "f8"):
            raise SerializationError(f"an array of type {str(kind)[:20]!r}, expected 'f4' or 'f8'")
        flat = np.frombuffer(parts[str(form["array"])], dtype=f"<{kind}")
        array = flat.reshape(shape).astype(np.float64)
        if not np.isfinite(array).all():
            raise SerializationError("numbers that are not finite", {"array": str(form["array"])})
        array.setflags(write=False)
        return array
    return tuple(_value(v, parts) for v in form) if isinstance(form, list) else form


EXPECTED: dict[str, object] = {
    "stride": (1, 2), "dilation": (1, 2), "kernel": (1, 2), "padding": (0, 2), "groups": (1, 0),
    "channels": (1, 0), "offset": (0, 0), "width": (1, 0), "matrix": np.ndarray,
    "size": (1, None), "weight": np.ndarray,
    "bias": np.ndarray, "scale": np.ndarray,
    "shift": np.ndarray, "coefficients": np.ndarray, "function": str, "gated": bool, "bound": float,
}  # fmt: skip


def _legal(op: Op) -> None:
    for each in fields(op):  # type: ignore[arg-type]
        value, rule = getattr(op, each.name), EXPECTED.get(each.name)
        if isinstance(rule, tuple):
            least, length = rule
            items = value if isinstance(value, tuple) else (value,)
            right = isinstance(value, tuple) == (length != 0) and length in (0, None, len(items))
            good = right and all(type(v) is int and v >= least for v in items)
        elif each.name == "factors":
            good = (
                isinstance(value, tuple)
                and bool(value)
                and all(isinstance(f, np.ndarray) and f.ndim == 1 and len(f) > 0 for f in value)
            )
        else:
            good = isinstance(value, rule)  # type: ignore[arg-type]
        if not good:
            raise SerializationError(f"{op.name}: {each.name} {value!r}"[:200], {"operation": op.name})


def _consistent(op: Op) -> None:
    """Raises SerializationError where the axes of an operation's arrays do not belong together."""
    if isinstance(op, (Conv2d, Linear)):
        axes = 4 if isinstance(op, Conv2d) else 2
        good = op.weight.ndim == axes and op.bias.shape == op.weight.shape[:1]
        good = good and not (isinstance(op, Conv2d) and len(op.weight) % op.groups)
    elif isinstance(op, Affine):
        good = op.scale.ndim == 1 and op.shift.shape == op.scale.shape
    else:
        good = True
    if not good:
        raise SerializationError(f"{op.name} with arrays that do not fit", {"operation": op.name})


def plan_form(plan: Plan, arrays: Arrays) -> Json:
    """A plan as JSON; its arrays go to `arrays`."""
    steps: list[Json] = []
    for step in plan.steps:
        found: dict[str, Json] = {
            "step": type(step).__name__.lower(), "out": step.out, "inputs": list(step.inputs),
            "level": step.level,
        }  # fmt: skip
        if isinstance(step, Transform):
            found["chains"] = [[_op_form(op, arrays) for op in chain] for chain in step.chains]
            found["babies"] = step.babies
        elif isinstance(step, (Multiply, Contract)):
            found["op"] = _op_form(step.op, arrays)
            if isinstance(step, Contract) and step.babies:
                found["babies"] = step.babies  # not of programs of before, which keep their fingerprint
        elif isinstance(step, Evaluate):
            found["series"] = _op_form(step.series, arrays)
        elif isinstance(step, Refresh):
            found["boot"] = boot_form(step.boot)
        elif isinstance(step, Quadratic):
            found["coefficients"] = arrays.put(step.coefficients)
        steps.append(found)
    return {
        "values": [_value_form(v) for v in plan.values],
        "steps": steps,
        "output": plan.output,
        "output_shape": list(plan.output_shape),
        "decisions": [[d.origin, d.chosen, d.instead, d.reason] for d in plan.decisions],
    }


def _value_form(value: Value) -> Json:
    found: dict[str, Json] = {
        "layout": layout_form(value.layout), "bound": value.bound, "level": value.level,
        "origin": value.origin,
    }  # fmt: skip
    return found | ({"fill": value.fill} if value.fill else {})  # programs of before keep their fingerprint


def plan_of(form: Json, parts: Mapping[str, bytes]) -> Plan:
    """A plan from JSON and arrays, verified. Raises SerializationError for what is none."""
    try:
        found = _dict(form)
        values = tuple(_plan_value(_dict(v)) for v in _list(found["values"]))
        steps = tuple(_step(_dict(s), parts) for s in _list(found["steps"]))
        shape = _counts(found, "output_shape", None)
        decisions = tuple(Decision(*(str(t) for t in _list(d))) for d in _list(found["decisions"]))
        return _bounded(Plan(values, steps, count(found["output"], 0), shape, decisions).verify("load"))
    except SerializationError:
        raise
    except (CrenelError, KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
        raise SerializationError(f"no plan: {type(error).__name__}: {error}") from None


def _bounded(plan: Plan) -> Plan:
    """Itself. Raises SerializationError where what is between the operations of a chain is larger than what a
    layout may hold: a file of a few bytes could ask for any memory."""
    for step in plan.steps:
        for k, chain in zip(step.inputs, step.chains if isinstance(step, Transform) else (), strict=False):
            shape = plan.values[k].layout.shape
            for op in chain:
                window = math.prod(op.kernel) if isinstance(op, AvgPool2d) else 1
                size, shape = shape[0] * window, op.shape(shape)
                if max(size, math.prod(shape)) > MAX_SLOTS * 64:
                    raise SerializationError(
                        f"{op.name} to a tensor of shape {shape}", {"operation": op.name}
                    )
    return plan


def _plan_value(form: Mapping[str, Json]) -> Value:
    fill = form.get("fill", 0.0)
    if type(fill) is not float or not abs(fill) <= 1.0:
        raise SerializationError(f"fill {str(fill)[:50]!r}, expected a number in [-1, 1]")
    layout, bound = layout_of(form["layout"]), positive(form["bound"])
    return Value(layout, bound, count(form["level"], 0), str(form["origin"]), fill)


def _step(form: Mapping[str, Json], parts: Mapping[str, bytes]) -> Step:
    kind = STEPS[str(form["step"])]
    out, level = count(form["out"]), count(form["level"], 0)
    inputs = tuple(count(k, 0) for k in _list(form["inputs"]))
    if kind is Transform:
        chains = tuple(tuple(_op_of(op, parts) for op in _list(chain)) for chain in _list(form["chains"]))
        if len(chains) != len(inputs) or not all(isinstance(op, LINEAR) for chain in chains for op in chain):
            raise SerializationError("a transform of other operations than linear ones", {"value": out})
        babies = count(form["babies"], 0, MAX_SLOTS)
        if babies & (babies - 1):
            raise SerializationError("baby steps must be a power of two", {"value": out})
        return Transform(out, inputs, chains, level, babies)
    if kind is Sum:
        return Sum(out, inputs, level)
    if kind in (Multiply, Contract):
        first, second = inputs
        op = _op_of(form["op"], parts)
        if kind is Multiply and isinstance(op, Product):
            return Multiply(out, (first, second), op, level)
        if kind is Contract and isinstance(op, (Scores, Attend)):
            return Contract(out, (first, second), op, level, count(form.get("babies", 0), 0, MAX_SLOTS))
        raise SerializationError("a product of another operation", {"value": out})
    (operand,) = inputs
    if kind is Refresh:
        return Refresh(out, (operand,), level, boot_of(form["boot"]))
    if kind is Evaluate:
        series = _op_of(form["series"], parts)
        if not isinstance(series, Series):
            raise SerializationError("a step that evaluates no series", {"value": out})
        return Evaluate(out, (operand,), series, level)
    coefficients = _value(form["coefficients"], parts)
    if not isinstance(coefficients, np.ndarray) or coefficients.shape != (3,) or coefficients[2] == 0.0:
        raise SerializationError("a quadratic without a square", {"value": out})
    return Quadratic(out, (operand,), coefficients, level)


def _dict(form: Json) -> dict[str, Json]:
    if not isinstance(form, dict):
        raise SerializationError(f"{str(form)[:50]!r}, expected an object")
    return form


def _list(form: Json) -> list[Json]:
    if not isinstance(form, list):
        raise SerializationError(f"{str(form)[:50]!r}, expected a list")
    return form


def count(form: Json, least: int = 1, most: int = (1 << 40) - 1) -> int:
    """An integer within limits. Raises SerializationError for other things."""
    if type(form) is not int or not least <= form <= most:
        raise SerializationError(f"{str(form)[:50]!r}, expected an integer from {least} to {most}")
    return form


def fingerprint_of(form: Json) -> str:
    """64 hexadecimal digits. Raises SerializationError for other things."""
    if type(form) is not str or len(form) != 64 or set(form) - set("0123456789abcdef"):
        raise SerializationError(f"program {str(form)[:70]!r}, expected 64 hexadecimal digits")
    return form


def boot_form(boot: Boot) -> dict[str, Json]:
    """A kind of bootstrap as JSON's types."""
    return {"slots": boot.slots, "pack": boot.pack, "pair": boot.pair, "target": boot.target}


def boot_of(form: Json, params: ckks.Params | None = None) -> Boot:
    """The inverse, of what parameters can bootstrap. Raises SerializationError for other things."""
    found = _dict(form)
    slots, pack = (count(found.get(name), 1, MAX_SLOTS) for name in ("slots", "pack"))
    pair, target = found.get("pair"), found.get("target")
    if slots & (slots - 1) or pack & (pack - 1) or slots * pack > MAX_SLOTS or type(pair) is not bool:
        raise SerializationError("a bootstrap must have powers of two as slots and pack, and say pair")
    boot = Boot(slots, pack, pair, None if target is None else count(target))
    if params is not None and not bootable(boot, params):
        raise SerializationError("a bootstrap of more slots or levels than its parameters have")
    return boot


def bootable(boot: Boot, params: ckks.Params) -> bool:
    """Have the parameters such bootstraps?"""
    top = params.normal_top_level
    return (
        boot.slots * boot.pack <= params.slots
        and (boot.target or 0) <= top - FACTORS < top < params.max_level
    )


def rotations_of(form: Json, params: ckks.Params) -> dict[int, int]:
    """Levels by step. Raises SerializationError for other things."""
    found: dict[int, int] = {}
    for pair in _list(form):
        if not isinstance(pair, list) or len(pair) != 2:
            raise SerializationError("rotations must be pairs of a step and a level")
        step = count(pair[0], 1 - params.slots, params.slots - 1)
        if step in found:
            raise SerializationError(f"rotation by {step} twice", {"rotation": step})
        found[step] = count(pair[1], 0, params.max_level)
    return found


def positive(form: Json) -> float:
    """A positive, finite number. Raises SerializationError for other things."""
    if type(form) is not float or not (math.isfinite(form) and form > 0):
        raise SerializationError(f"{str(form)[:50]!r}, expected a positive number")
    return form


def _counts(form: Mapping[str, Json], name: str, length: int | None) -> Shape:
    found = tuple(count(v) for v in _list(form[name]))
    if not found or (length is not None and len(found) != length):
        raise SerializationError(f"{name} of {len(found)} numbers, expected {length}", {"member": name})
    return found
