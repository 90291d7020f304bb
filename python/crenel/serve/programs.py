"""What a service runs: programs of `crenel.nn`, and `functions`."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from crenel import ckks, nn
from crenel.errors import NotFoundError, ParameterError
from crenel.nn import archive
from crenel.nn.archive import Json
from crenel.nn.layout import Layout
from crenel.nn.sizes import rotation_key_bytes
from crenel.serve.functions import Function
from crenel.serve.integer_functions import IntegerFunction
from crenel.serve.servable import HEADER, Check, Loaded, Prepared, Reading, Servable, Turn

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, eq=False)
class NnProgram:
    """A program of `crenel.nn`, as its file has it."""

    name: str
    """For people: up to 64 letters, digits, dots, dashes and underscores."""
    data: bytes
    """What `crenel.nn.Program.save` wrote."""
    allow_insecure: bool = False
    """Accept parameters of less than 128 bits of security."""
    kind: str = field(default="nn", init=False)

    @cached_property
    def _program(self) -> nn.Program:
        return nn.Program.from_bytes(self.data, "cpu", allow_insecure=self.allow_insecure)

    def checked(self) -> NnProgram:
        """Itself, read. Raises SerializationError, StateError."""
        _ = self._program
        return self

    @property
    def program(self) -> str:
        """Its fingerprint."""
        return self._program.fingerprint

    @property
    def params(self) -> ckks.Params:
        """Its parameters."""
        return self._program.params

    @cached_property
    def _client(self) -> bytes:
        return self._program.client.to_bytes()

    @property
    def client_file(self) -> bytes:
        """Of its `ClientSpec`."""
        return self._client

    @cached_property
    def _memory(self) -> int:  # counted, by a walk over the program
        return self._program.demand.key_bytes

    @property
    def key_memory(self) -> int:
        """Bytes of one client's keys on the device."""
        return self._memory

    @property
    def largest_key(self) -> int:
        """Bytes of one of the highest level; with bootstraps, of all."""
        demand = self._program.demand
        if demand.bootstraps:
            return self.params.key_bytes()
        return rotation_key_bytes(self.params, max([*demand.rotations.values(), demand.relinearisation or 0]))

    @cached_property
    def _most(self) -> int:
        demand = self._program.demand
        if demand.bootstraps:
            return demand.key_bytes
        multiplies = demand.relinearisation is not None
        return self.params.key_bytes(rotations=list(demand.rotations), relinearisation=multiplies)

    @property
    def most_key_memory(self) -> int:
        """Bytes where every key is of the highest level; with bootstraps as counted."""
        return self._most

    @property
    def insecure(self) -> bool:
        """Have its parameters less than 128 bits of security?"""
        return self.params.insecure

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
        """Shapes, bound and packing."""
        spec = self._program.client
        return {
            "batch": spec.batch, "input_shape": list(spec.input.shape), "input_bound": spec.input_bound,
            "output_shape": list(spec.output_shape),
            "packing": {"input": _packing(spec.input), "output": _packing(spec.output)},
        }  # fmt: skip

    def load(self, device: str) -> Loaded:
        """Weights are encoded once, for all clients."""
        program = nn.Program.from_bytes(self.data, device, allow_insecure=self.allow_insecure)
        return _LoadedNn(nn.Server.shared(program))


def _packing(layout: Layout) -> dict[str, Json]:
    return {
        "ciphertexts": layout.ciphertexts, "slots": layout.slots, "images": layout.images,
        "positions": layout.positions().tolist(),
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _LoadedNn:
    server: nn.Server

    @property
    def context(self) -> ckks.Context:
        return self.server.context

    def prepare(self, keys: Path, reading: Reading) -> Prepared:
        demand = self.server.program.demand
        # Those of bootstraps have names of their own in the file: all are read where there are any.
        read = self.server.context.load_evaluation_keys(
            keys, rotations=None if demand.bootstraps else list(demand.rotations),
            staged_bytes=reading.staged_bytes, max_bytes=reading.key_memory,
        )  # fmt: skip
        return _PreparedNn(self.server.with_keys(read), reading.input_memory)


@dataclass(frozen=True, eq=False)
class _PreparedNn:
    server: nn.Server
    input_memory: int

    @property
    def nbytes(self) -> int:
        return int(self.server.evaluator.keys.nbytes)

    def run(self, data: bytes, check: Check, turn: Turn) -> bytes:
        tensor = self.server.tensor_from_bytes(data, max_bytes=self.input_memory)
        with turn():
            return self.server.run(tensor, lambda _number, _made: check()).to_bytes()


class Programs:
    """The programs of a service, by fingerprint. Raises ParameterError for none, or two of one name."""

    def __init__(self, found: Iterable[Servable]) -> None:
        self._all: Mapping[str, Servable] = {p.program: p for p in found}
        names = [p.name for p in self._all.values()]
        if not names or len(set(names)) != len(names) or not all(NAME.fullmatch(n) for n in names):
            raise ParameterError(
                f"programs named {', '.join(names) or 'nothing'}: expected at least one, and different "
                "names of 1 to 64 of A-Z a-z 0-9 . _ -"
            )

    def __iter__(self) -> Iterator[Servable]:
        return iter(self._all.values())

    def get(self, program: str) -> Servable:
        """Raises NotFoundError for a program that the service does not have."""
        found = self._all.get(program)
        if found is None:
            raise NotFoundError(f"no program {program[:16]}", {"program": program[:64]})
        return found

    def describe(self, servable: Servable, full: bool = False) -> dict[str, object]:
        """As the protocol has it; `full` with the client's document and the packing."""
        params, client = servable.params, servable.client_file
        facts = servable.facts()
        packing = facts.pop("packing")
        found: dict[str, object] = {
            "program": servable.program, "name": servable.name, "kind": servable.kind,
            "params": params.id, "params_name": params.name, "security_bits": round(params.security_bits, 1),
            "insecure": servable.insecure, "key_bytes": servable.file_bytes, **facts,
            "client_bytes": len(client), "client_sha256": hashlib.sha256(client).hexdigest(),
        }  # fmt: skip
        if full:
            document, _ = archive.unpacked(client, "client" if servable.kind == "nn" else "function")
            found |= {"client": document, "packing": packing}
        return found


def read(source: str | os.PathLike[str], allow_insecure: bool = False) -> Servable:
    """A program from ``[NAME=]FILE.crn`` or ``MODULE:ATTRIBUTE`` (a `Function` or `IntegerFunction`, or what
    makes one).

    Raises FileError, SerializationError, StateError, ParameterError.
    """
    text = os.fspath(source)
    module, colon, attribute = text.partition(":")
    if colon and not Path(text).exists() and "/" not in text:
        found = getattr(importlib.import_module(module), attribute)
        kinds = (Function, IntegerFunction)
        made = found() if callable(found) and not isinstance(found, kinds) else found
        if not isinstance(made, kinds):
            raise ParameterError(f"{text} is no crenel.serve.Function or IntegerFunction", {"name": text})
        return made
    name, equals, path = text.partition("=")
    file = Path(path if equals else text)
    return NnProgram(name if equals else file.stem, archive.read(file), allow_insecure).checked()
