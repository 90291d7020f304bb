"""Functions of an evaluator and ciphertexts of CKKS as programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from crenel import ckks
from crenel.ckks.programs import needs_of_records
from crenel.ckks.recorder import Recorded
from crenel.errors import KeyMissingError, ParameterError
from crenel.nn import archive
from crenel.nn.archive import Json
from crenel.serve import forms
from crenel.serve.forms import Numbers, Sealed, Vector
from crenel.serve.function_parts import Call, PreparedFunction, Value, expect_inputs, expect_params, facts_of
from crenel.serve.servable import HEADER, Loaded, Prepared, Reading

Program: TypeAlias = Call
"""``program(*inputs)`` of operands and arrays, as `crenel.ckks.needs` takes it."""


@dataclass(frozen=True, eq=False)
class Function:
    """Any function of an evaluator and ciphertexts of CKKS as a program; `of` finds its keys.

    name : for people, and part of the fingerprint
    call : ``call(evaluator, *inputs)``, the same for everybody, gives a ciphertext, a `crenel.ckks.Array` or
        a sequence of such; what it does is its author's to describe
    rotations : steps that it rotates by
    conjugate : does it conjugate?
    version : another one for another function of the same name: it is part of the fingerprint
    needs : the keys, each with its highest level, and bootstraps, in the place of `rotations` and `conjugate`
    inputs : what it takes; default one ciphertext of any level and slots
    make : ``make(context)`` gives `call`, in its place: once on each worker's device, for bootstrappers and
        prepared transforms

    Raises ParameterError for both or neither of `call` and `make`, for `needs` beside `rotations` or
    `conjugate`, and for no inputs or inputs of another scheme.
    """

    name: str
    params: ckks.Params
    call: Call | None = None
    rotations: tuple[int, ...] = ()
    conjugate: bool = False
    version: str = "1"
    needs: ckks.Needs | None = None
    inputs: tuple[Vector | Numbers, ...] = (Vector(),)
    make: Callable[[ckks.Context], Call] | None = None
    kind: str = field(default="function", init=False)

    def __post_init__(self) -> None:
        expect_params(self.name, self.params, ckks.Params)
        if (self.call is None) == (self.make is None):
            raise ParameterError(f"{self.name}: expected one of call and make", {"name": self.name})
        if self.needs is not None and (self.rotations or self.conjugate):
            raise ParameterError(
                f"{self.name}: needs beside rotations or conjugate, expected either", {"name": self.name}
            )
        expect_inputs(self.name, self.inputs, (Vector, Numbers))

    @classmethod
    def of(
        cls,
        name: str,
        params: ckks.Params,
        program: Program | None = None,
        inputs: Sequence[Vector | Numbers | ArrayLike] = (Vector(),),
        *,
        make: Callable[[ckks.Context], Program] | None = None,
        version: str = "1",
    ) -> Function:
        """A function whose keys, and their levels, are found by running it on records.

        Parameters
        ----------
        name, params, version : as of the class
        program : ``program(*inputs)`` of operands and arrays, as `crenel.ckks.needs` takes it; to be sent to
            workers it is a function of a module
        inputs : `Vector`, `Numbers`, or numbers in their place, of which the shape is read
        make : ``make(context)`` gives the program, in its place: once on each worker's device, and once here
            on the CPU. `refreshed` bootstraps in it

        Raises as `crenel.ckks.needs`; ParameterError as the class.
        """
        given = tuple(x if isinstance(x, (Vector, Numbers)) else Numbers(np.asarray(x).shape) for x in inputs)
        if (program is None) == (make is None):
            raise ParameterError(f"{name}: expected one of program and make", {"name": name})
        found = program if make is None else make(ckks.Context(params, device="cpu"))
        needs = needs_of_records(
            cast(Program, found), params, lambda recorder: [x.recorded(recorder) for x in given]
        )
        call = None if program is None else _OfOperands(program)
        made = None if make is None else _Made(make)
        return cls(name, params, call, version=version, needs=needs, inputs=given, make=made)

    @property
    def document(self) -> dict[str, Json]:
        """What a client needs, as JSON. What is as by default is not in it, but for what always was: a
        fingerprint stays what it is."""
        rotations, conjugate = list(self.rotations), self.conjugate
        found: dict[str, Json] = {}
        if self.needs is not None:
            rotations, conjugate = self.needs.rotations, self.needs.conjugate
            found["needs"] = forms.needs_form(self.needs)
        if self.inputs != (Vector(),):
            found["inputs"] = [x.form() for x in self.inputs]
        return {
            "name": self.name, "version": self.version, "params": self.params.to_bytes().hex(),
            "rotations": list[Json](rotations), "conjugate": conjugate, **found,
        }  # fmt: skip

    @property
    def program(self) -> str:
        """Hash of name, version, parameters, keys and inputs; of `call` nobody can tell."""
        return forms.fingerprint(self.document)

    @property
    def insecure(self) -> bool:
        """Have the parameters less than 128 bits of security?"""
        return self.params.insecure

    @property
    def client_file(self) -> bytes:
        """The document in a container of kind ``function``."""
        return archive.packed("function", self.document, {})

    @property
    def key_memory(self) -> int:
        """Bytes of all keys, each at its level."""
        if self.needs is not None:
            return self.needs.key_bytes(self.params)
        return self.params.key_bytes(rotations=self.rotations, conjugate=self.conjugate)

    @property
    def largest_key(self) -> int:
        """Bytes of one of the highest level."""
        return self.params.key_bytes()

    @property
    def most_key_memory(self) -> int:
        """Bytes where every key is of the highest level; with bootstraps as counted."""
        if self.needs is None or self.needs.bootstraps:
            return self.key_memory
        needs = self.needs
        return self.params.key_bytes(
            rotations=needs.rotations, conjugate=needs.conjugate, relinearisation=needs.relinearisation
        )

    @property
    def file_bytes(self) -> int:
        """Seeds stand for half of each key."""
        return self.key_memory // 2

    @property
    def most_file_bytes(self) -> int:
        """The same of the largest keys, and a header."""
        return self.most_key_memory // 2 + HEADER

    @property
    def reading_bytes(self) -> int:
        """The keys, and one of them on its way."""
        return self.most_key_memory + self.params.key_bytes() + HEADER

    def facts(self) -> dict[str, Json]:
        """Shape of its first input where it is stated, else all slots."""
        first = self.inputs[0]
        slots = self.params.slots
        shape = list(first.shape) if isinstance(first, Numbers) else [first.slots or slots]
        return facts_of(list[Json](shape), [slots])

    def load(self, device: str) -> Loaded:
        """A context on the device, and what is made once for it."""
        context = ckks.Context(self.params, device=device)
        call = self.call if self.make is None else self.make(context)
        boots = () if self.needs is None else self.needs.bootstraps
        # Plaintexts of bootstraps are encoded once for a context, as long as somebody holds them.
        held = tuple(context.bootstrapper(options=options) for options in boots)
        return _LoadedFunction(self, cast(Call, call), context, held)


@dataclass(frozen=True)
class _OfOperands:
    """A program of operands as a call with an evaluator."""

    program: Program

    def __call__(
        self, evaluator: ckks.Evaluator, *inputs: ckks.Ciphertext | ckks.Array
    ) -> Value | Sequence[Value]:
        return self.program(*(evaluator(x) for x in inputs))


@dataclass(frozen=True)
class _Made:
    """What makes such a program, as what makes a call."""

    make: Callable[[ckks.Context], Program]

    def __call__(self, context: ckks.Context) -> Call:
        return _OfOperands(self.make(context))


def refreshed(boot: ckks.Bootstrapper, x: ckks.Operand) -> ckks.Operand:
    """A bootstrap within a program of `Function.of`: by the keys of whoever sent the operand.

    boot : ``context.bootstrapper(...)`` of the context that `make` is given
    x : an operand at level ``boot.levels.input``

    Raises as `boot`.
    """
    if isinstance(x, Recorded):
        return cast("ckks.Operand", boot(x))
    return x.evaluator(boot(x, x.evaluator))


@dataclass(frozen=True, eq=False)
class _LoadedFunction:
    function: Function
    call: Call
    context: ckks.Context
    held: tuple[ckks.Bootstrapper, ...]

    def prepare(self, keys: Path, reading: Reading) -> Prepared:
        function, needs = self.function, self.function.needs
        # Those of bootstraps have names of their own in the file: all are read where there are any.
        steps = function.rotations if needs is None else needs.rotations
        read = self.context.load_evaluation_keys(
            keys, rotations=None if self.held else list(steps), staged_bytes=reading.staged_bytes,
            max_bytes=reading.key_memory,
        )  # fmt: skip
        if needs is None:
            wanted: dict[int | str, int | None] = {"conjugate": None} if function.conjugate else {}
        else:
            special = {"conjugate": needs.conjugation_level, "relinearisation": needs.relinearisation_level}
            wanted = dict(needs.rotation_levels.items())
            wanted |= {k: v for k, v in special.items() if v is not None}
            for options in needs.bootstraps:
                self.context.bootstrapper(read, options)  # names keys that are missing
        _expect_keys(read, wanted)
        evaluator = self.context.evaluator(read)

        def read_input(kind: Vector | Numbers, data: bytes, most: int) -> Sealed:
            return kind.read(self.context, data, most)

        return PreparedFunction(
            function.program, function.inputs, read_input, self.call, evaluator, read, reading.input_memory
        )


def _expect_keys(keys: ckks.EvaluationKeys, wanted: Mapping[int | str, int | None]) -> None:
    """Raises KeyMissingError naming what is not there, or for lower levels alone."""
    found = {key: keys.level_of(key) for key in wanted}  # type: ignore[arg-type]
    missing = [k for k, level in wanted.items() if found[k] is None or (found[k] or 0) < (level or 0)]
    if missing:
        raise KeyMissingError(
            f"keys are missing, or serve lower levels than the function needs: {missing}",
            {"missing": ", ".join(map(str, missing))},
        )
