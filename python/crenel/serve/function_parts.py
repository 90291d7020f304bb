"""What functions of both schemes have in common: checks, and runs with a client's keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from crenel import ckks, tfhe
from crenel.errors import ParameterError, StateError
from crenel.nn.archive import Json
from crenel.serve import forms
from crenel.serve.forms import Sealed
from crenel.serve.servable import Check, Turn

Value: TypeAlias = "Sealed | ckks.Operand"
Call: TypeAlias = Callable[..., "Value | Sequence[Value]"]
"""``call(evaluator, *inputs)``, which gives a ciphertext, an array, or a sequence of such."""


def expect_params(name: str, found: object, kind: type) -> None:
    """Raises ParameterError for those of another scheme."""
    if not isinstance(found, kind):
        raise ParameterError(
            f"{name}: parameters of {type(found).__name__}, expected {kind.__name__}",
            {"name": name, "type": type(found).__name__},
        )


def expect_inputs(name: str, found: Sequence[object], kinds: tuple[type, ...]) -> None:
    """Raises ParameterError for none, for more than `forms.MOST_PARTS`, and for those of another scheme."""
    if len(found) > forms.MOST_PARTS:
        raise ParameterError(
            f"{name}: {len(found)} inputs, expected at most {forms.MOST_PARTS}", {"name": name}
        )
    if not found or not all(isinstance(x, kinds) for x in found):
        raise ParameterError(
            f"{name}: inputs {list(found)}, expected at least one {' or '.join(k.__name__ for k in kinds)}",
            {"name": name},
        )


def facts_of(input_shape: list[Json], output_shape: list[Json]) -> dict[str, Json]:
    """Members of a description."""
    return {
        "batch": 1, "input_shape": input_shape, "input_bound": None, "output_shape": output_shape,
        "packing": None,
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class PreparedFunction:
    """A function with a client's keys on a device, of any scheme."""

    program: str
    inputs: Sequence[forms.Input]
    read: Callable[..., Sealed]
    call: Call
    evaluator: object
    keys: ckks.EvaluationKeys | tfhe.EvaluationKeys
    input_memory: int

    @property
    def nbytes(self) -> int:
        """Of the keys on the device."""
        return int(self.keys.nbytes)

    def run(self, data: bytes, check: Check, turn: Turn) -> bytes:
        """As `Prepared.run`. Raises SerializationError, StateError for other inputs than the function's."""
        parts, _ = forms.unpacked(data, self.program, result=False)
        expected = [str(x.form()["kind"]) for x in self.inputs]
        found = ["integers" if kind == "messages" else kind for kind, _ in parts]
        if found != expected:
            raise StateError(
                f"inputs: {', '.join(found)}; expected {', '.join(expected)}",
                {"found": ", ".join(found), "expected": ", ".join(expected)},
            )
        share = self.input_memory // len(parts)
        given = [self.read(x, part, share) for x, (_, part) in zip(self.inputs, parts, strict=True)]
        with turn():
            check()
            made = self.call(self.evaluator, *given)
            several = made if isinstance(made, (list, tuple)) else None
            values = [cast(Value, made)] if several is None else several
            sealed = [_travels(x) for x in values]
            return forms.packed(self.program, sealed, result=True, single=several is None)


def _travels(value: Value) -> Sealed:
    return value.ciphertext if isinstance(value, ckks.Operand) else value
