"""Functions of arrays of bits and integers (`crenel.tfhe`) as programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from crenel import tfhe
from crenel.nn import archive
from crenel.nn.archive import Json
from crenel.serve import forms
from crenel.serve.forms import Integers, Sealed
from crenel.serve.function_parts import Call, PreparedFunction, expect_inputs, expect_params, facts_of
from crenel.serve.servable import HEADER, Loaded, Prepared, Reading


@dataclass(frozen=True, eq=False)
class IntegerFunction:
    """A function of arrays of bits and integers (`crenel.tfhe`) as a program.

    name : for people, and part of the fingerprint
    call : ``call(evaluator, *inputs)``, the same for everybody, gives an array or a sequence of such
    inputs : what it takes: `Integers`, or their types, "bool" or "uint8" say
    version : another one for another function of the same name: it is part of the fingerprint

    Raises ParameterError for no inputs, and for types that are none of bits or integers.
    """

    name: str
    params: tfhe.Params
    call: Call
    inputs: tuple[Integers | str, ...]
    version: str = "1"
    kind: str = field(default="function", init=False)

    def __post_init__(self) -> None:
        expect_params(self.name, self.params, tfhe.Params)
        given = tuple(Integers(x) if isinstance(x, str) else x for x in self.inputs)
        expect_inputs(self.name, given, (Integers,))
        object.__setattr__(self, "inputs", given)

    @property
    def document(self) -> dict[str, Json]:
        """What a client needs, as JSON."""
        return {
            "name": self.name, "version": self.version, "scheme": "tfhe",
            "params": self.params.to_bytes().hex(),
            "inputs": [cast(Integers, x).form() for x in self.inputs],
        }  # fmt: skip

    @property
    def program(self) -> str:
        """Hash of name, version, parameters and inputs; of `call` nobody can tell."""
        return forms.fingerprint(self.document)

    @property
    def insecure(self) -> bool:
        """Have the parameters less than 128 bits of security, or a failure probability above 2^-128
        (docs/theory/tfhe.md, "Probability of failure")?"""
        return self.params.below_norm

    @property
    def client_file(self) -> bytes:
        """The document in a container of kind ``function``."""
        return archive.packed("function", self.document, {})

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        context = tfhe.Context(self.params, device="cpu")
        return context.key_bytes(), context.key_wire_bytes()

    @property
    def key_memory(self) -> int:
        """Bytes of one client's keys on the device."""
        return self._sizes[0]

    @property
    def largest_key(self) -> int:
        """Bytes: they are on the device together or not at all."""
        return self._sizes[0]

    @property
    def most_key_memory(self) -> int:
        """Bytes: the same, all have one size."""
        return self._sizes[0]

    @property
    def file_bytes(self) -> int:
        """Bytes to send."""
        return self._sizes[1]

    @property
    def most_file_bytes(self) -> int:
        """Bytes to send, and a header."""
        return self._sizes[1] + HEADER

    @property
    def reading_bytes(self) -> int:
        """The file, the keys, and as much on its way."""
        return 2 * self._sizes[0] + self._sizes[1] + HEADER

    def facts(self) -> dict[str, Json]:
        """None but that it takes arrays: of one element where no shape is stated."""
        first = cast(Integers, self.inputs[0])
        return facts_of(list[Json](first.shape or ()), [])

    def load(self, device: str) -> Loaded:
        """A context on the device."""
        return _LoadedIntegers(self, tfhe.Context(self.params, device=device))


@dataclass(frozen=True, eq=False)
class _LoadedIntegers:
    function: IntegerFunction
    context: tfhe.Context

    def prepare(self, keys: Path, reading: Reading) -> Prepared:
        read = self.context.evaluation_keys_from_bytes(archive.read(keys), max_bytes=reading.key_memory)
        evaluator = self.context.evaluator(read)

        def read_input(kind: Integers, data: bytes, most: int) -> Sealed:
            return evaluator(kind.read(self.context, data, most))

        function = self.function
        inputs = tuple(cast(Integers, x) for x in function.inputs)
        return PreparedFunction(
            function.program, inputs, read_input, function.call, evaluator, read, reading.input_memory
        )
