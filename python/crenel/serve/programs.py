"""What a service runs: programs of `crenel.nn`, and functions of an evaluator. Bytes in, bytes out."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from crenel import ckks, nn
from crenel.errors import NotFoundError, ParameterError
from crenel.nn import archive
from crenel.nn.archive import Json
from crenel.nn.layout import Layout
from crenel.nn.sizes import rotation_key_bytes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Check = Callable[[], None]
Turn = Callable[[], AbstractContextManager[object]]
"""A block in which a job has the device for itself."""


@dataclass(frozen=True)
class Reading:
    """Limits of what is read for a stranger, in bytes."""

    key_memory: int
    input_memory: int
    staged_bytes: int | None = None
    """At most so many of the keys on the device at a time, the others in host memory; None: all."""


class Prepared(Protocol):
    """A program with a client's keys on a device."""

    @property
    def nbytes(self) -> int:
        """Of the keys on the device."""
        ...

    def run(self, data: bytes, check: Check, turn: Turn) -> bytes:
        """The answer to one input. `check` is called often and may raise, which stops the run.

        It computes inside one block of `turn`; what it reads before that, it reads while another computes.
        """
        ...


class Loaded(Protocol):
    """A program on a device, to which clients' keys are bound."""

    @property
    def context(self) -> ckks.Context:
        """Of its device, which counts the memory that it took."""
        ...

    def prepare(self, keys: Path, reading: Reading) -> Prepared:
        """With keys from an untrusted file; everything about them is checked."""
        ...


class Servable(Protocol):
    """What a service knows of a program. It is sent to worker processes: it holds no device."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def kind(self) -> str:
        """``nn`` or ``function``."""
        ...

    @property
    def program(self) -> str:
        """64 hexadecimal digits."""
        ...

    @property
    def params(self) -> ckks.Params: ...

    @property
    def client_file(self) -> bytes:
        """What a client reads."""
        ...

    @property
    def key_memory(self) -> int:
        """Bytes of one client's keys on the device."""
        ...

    @property
    def largest_key(self) -> int:
        """Bytes of the largest of them."""
        ...

    @property
    def most_key_memory(self) -> int:
        """The same where every key that the program needs serves the highest level: what is larger holds
        something else."""
        ...

    def facts(self) -> dict[str, Json]:
        """Members of its description that are its kind's own."""
        ...

    def load(self, device: str) -> Loaded:
        """On a device. Raises DeviceError, OutOfMemoryError."""
        ...


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


def _keys(context: ckks.Context, source: Path, rotations: list[int], reading: Reading) -> ckks.EvaluationKeys:
    """Only what the program needs is read."""
    return context.load_evaluation_keys(
        source, rotations=rotations, staged_bytes=reading.staged_bytes, max_bytes=reading.key_memory
    )


@dataclass(frozen=True, eq=False)
class _LoadedNn:
    server: nn.Server

    @property
    def context(self) -> ckks.Context:
        return self.server.context

    def prepare(self, keys: Path, reading: Reading) -> Prepared:
        demand = self.server.program.demand
        # Those of bootstraps have names of their own in the file: all are read where there are any.
        if demand.bootstraps:
            read = self.server.context.load_evaluation_keys(
                keys, staged_bytes=reading.staged_bytes, max_bytes=reading.key_memory
            )
        else:
            read = _keys(self.server.context, keys, list(demand.rotations), reading)
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


Call = Callable[[ckks.Evaluator, ckks.Ciphertext], ckks.Ciphertext]


@dataclass(frozen=True, eq=False)
class Function:
    """Any function of an evaluator and a ciphertext as a program: clients send ciphertext files.

    name : for people, and part of the fingerprint
    call : ``call(evaluator, x)``, the same for everybody; what it does is its author's to describe
    rotations : steps that it rotates by
    conjugate : does it conjugate?
    version : another one for another function of the same name: it is part of the fingerprint
    """

    name: str
    params: ckks.Params
    call: Call
    rotations: tuple[int, ...] = ()
    conjugate: bool = False
    version: str = "1"
    kind: str = field(default="function", init=False)

    @property
    def document(self) -> dict[str, Json]:
        """What a client needs, as JSON."""
        return {
            "name": self.name, "version": self.version, "params": self.params.to_bytes().hex(),
            "rotations": list(self.rotations), "conjugate": self.conjugate,
        }  # fmt: skip

    @property
    def program(self) -> str:
        """Hash of name, version, parameters and keys; of `call` nobody can tell."""
        return hashlib.sha256(json.dumps(self.document, sort_keys=True).encode()).hexdigest()

    @property
    def client_file(self) -> bytes:
        """The document in a container of kind ``function``."""
        return archive.packed("function", json.loads(json.dumps(self.document)), {})

    @property
    def key_memory(self) -> int:
        """Bytes of all keys at the top level."""
        return self.params.key_bytes(rotations=self.rotations, conjugate=self.conjugate)

    @property
    def largest_key(self) -> int:
        """Bytes of one: all are as large."""
        return self.params.key_bytes()

    @property
    def most_key_memory(self) -> int:
        """Bytes: the same, they are at the highest level."""
        return self.key_memory

    def facts(self) -> dict[str, Json]:
        """None but that it takes one ciphertext."""
        return {
            "batch": 1, "input_shape": [self.params.slots], "input_bound": None,
            "output_shape": [self.params.slots], "packing": None,
        }  # fmt: skip

    def load(self, device: str) -> Loaded:
        """A context on the device."""
        return _LoadedFunction(self, ckks.Context(self.params, device=device))


@dataclass(frozen=True, eq=False)
class _LoadedFunction:
    function: Function
    context: ckks.Context

    def prepare(self, keys: Path, reading: Reading) -> Prepared:
        read = _keys(self.context, keys, list(self.function.rotations), reading)
        return _PreparedFunction(self.function.call, self.context, self.context.evaluator(read), reading)


@dataclass(frozen=True, eq=False)
class _PreparedFunction:
    call: Call
    context: ckks.Context
    evaluator: ckks.Evaluator
    reading: Reading

    @property
    def nbytes(self) -> int:
        return int(self.evaluator.keys.nbytes)

    def run(self, data: bytes, check: Check, turn: Turn) -> bytes:
        x = self.context.ciphertext_from_bytes(data, max_bytes=self.reading.input_memory)
        with turn():
            check()
            return self.call(self.evaluator, x).to_bytes()


HEADER = 1 << 20  # bytes of names and numbers beside keys, at most


def key_file_bytes(servable: Servable) -> int:
    """The largest file that holds the program's keys: seeds stand for half of each."""
    return servable.most_key_memory // 2 + HEADER


def key_reading_bytes(servable: Servable) -> int:
    """What reading them takes at most: the keys, and one of them on its way."""
    return servable.most_key_memory + servable.params.key_bytes() + HEADER


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
            "insecure": params.insecure, "key_bytes": servable.key_memory // 2, **facts,
            "client_bytes": len(client), "client_sha256": hashlib.sha256(client).hexdigest(),
        }  # fmt: skip
        if full:
            document, _ = archive.unpacked(client, "client" if servable.kind == "nn" else "function")
            found |= {"client": document, "packing": packing}
        return found


def read(source: str | os.PathLike[str], allow_insecure: bool = False) -> Servable:
    """A program from ``[NAME=]FILE.crn`` or ``MODULE:ATTRIBUTE`` (a `Function`, or what makes one).

    Raises FileError, SerializationError, StateError, ParameterError.
    """
    text = os.fspath(source)
    module, colon, attribute = text.partition(":")
    if colon and not Path(text).exists() and "/" not in text:
        found = getattr(importlib.import_module(module), attribute)
        made = found() if callable(found) and not isinstance(found, Function) else found
        if not isinstance(made, Function):
            raise ParameterError(f"{text} is no crenel.serve.Function", {"name": text})
        return made
    name, equals, path = text.partition("=")
    file = Path(path if equals else text)
    return NnProgram(name if equals else file.stem, archive.read(file), allow_insecure).checked()
