"""The client's side: what it must know of a program, its keys, and encrypted tensors. No weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crenel import ckks
from crenel._crenel import write_file
from crenel.arguments import most_bytes
from crenel.errors import CrenelError, ParameterError, SerializationError, StateError
from crenel.nn import archive
from crenel.nn.archive import Json
from crenel.nn.form import (
    _dict,
    _list,
    boot_form,
    boot_of,
    count,
    fingerprint_of,
    layout_form,
    layout_of,
    positive,
    rotations_of,
)  # fmt: skip
from crenel.nn.functions import reals
from crenel.nn.layout import Layout
from crenel.nn.ops import Reals, Shape
from crenel.nn.plan import Boot


@dataclass(frozen=True, eq=False)
class EncryptedTensor:
    """Samples under encryption: inputs that a client sends, or results that a server returns."""

    ciphertexts: tuple[ckks.Ciphertext, ...]
    """Of each the rows are samples, or several in neighbouring slots, as the layout says."""
    program: str
    """Fingerprint of the program that they are for, or come from."""
    single: bool
    """One sample without an axis in front?"""
    result: bool = False
    """Returned by a server? Else sent by a client."""
    count: int | None = None
    """Samples; None: one a row."""

    @property
    def samples(self) -> int:
        """How many."""
        return self.ciphertexts[0].batch if self.count is None else self.count

    def to_bytes(self) -> bytes:
        """For sending; nothing secret."""
        parts = {f"ciphertext{k}": c.to_bytes() for k, c in enumerate(self.ciphertexts)}
        document: Json = {
            "program": self.program, "single": self.single, "result": self.result, "samples": self.samples,
        }  # fmt: skip
        return archive.packed("tensor", document, parts)

    @classmethod
    def from_bytes(
        cls, data: bytes, context: ckks.Context, *, max_bytes: int | None = None
    ) -> EncryptedTensor:
        """From untrusted bytes.

        max_bytes : refuse what takes more memory, all ciphertexts together, before it is taken; default for
            each as `ckks.Context.ciphertext_from_bytes`. Raises SerializationError, StateError for another
            kind of file, and TypeError for a limit that is no integer.
        """
        limit = most_bytes(max_bytes)
        document, parts = archive.unpacked(data, "tensor", archive.SHORT)
        found = _dict(document)
        flags = [found.get("single"), found.get("result")]
        if type(found.get("program")) is not str or not all(type(f) is bool for f in flags) or not parts:
            raise SerializationError("an encrypted tensor without program, result, single and ciphertexts")
        ciphertexts = _loaded(context, tuple(parts.values()), limit)
        if len({c.batch for c in ciphertexts}) != 1 or (found["single"] and ciphertexts[0].batch != 1):
            raise SerializationError("ciphertexts of different numbers of samples")
        samples = count(
            found.get("samples"), ciphertexts[0].batch, ciphertexts[0].batch * ciphertexts[0].slots
        )
        if found["single"] and samples != 1:
            raise SerializationError("a single sample that is several")
        return cls(ciphertexts, str(found["program"]), bool(found["single"]), bool(found["result"]), samples)


@dataclass(frozen=True, eq=False)
class ClientSpec:
    """What a client needs of a program: parameters, which keys, how tensors are packed, which range."""

    params: ckks.Params
    program: str
    """The program's fingerprint."""
    rotations: Mapping[int, int]
    """Steps that the server rotates by, and the highest level of each."""
    relinearisation: int | None
    """Highest level of products of ciphertexts; None: there are none."""
    bootstraps: tuple[Boot, ...]
    """Kinds of bootstraps that the server makes."""
    input: Layout
    input_level: int
    input_bound: float
    """Largest absolute value of an input: the margin times what calibration saw."""
    output: Layout
    output_shape: Shape
    output_bound: float
    batch: int
    """Most samples of one encrypted tensor."""

    def keygen(self, device: str = "auto") -> Client:
        """A client with a new secret key."""
        return Client(ckks.Context(self.params, device=device).keygen())

    def client_from_secret_key(self, data: bytes, device: str = "auto") -> Client:
        """The client whose `Client.export_secret_key` the bytes are. Raises SerializationError."""
        return Client(ckks.Context(self.params, device=device).client_from_secret_key(data))

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return archive.packed("client", self.document(), {})

    def document(self) -> dict[str, Json]:
        """What the file holds, as JSON."""
        return {
            "params": self.params.to_bytes().hex(), "program": self.program,
            "rotations": [[k, level] for k, level in self.rotations.items()],
            "relinearisation": self.relinearisation,
            "bootstraps": [boot_form(boot) for boot in self.bootstraps],
            "input": layout_form(self.input),
            "input_level": self.input_level, "input_bound": self.input_bound,
            "output": layout_form(self.output), "output_shape": list(self.output_shape),
            "output_bound": self.output_bound, "batch": self.batch,
        }  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the client's file, whole or not at all. Raises FileError."""
        write_file(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, allow_insecure: bool = False) -> ClientSpec:
        """From an untrusted file.

        allow_insecure : accept parameters of less than 128 bits of security. Raises FileError,
        SerializationError, also for insecure parameters, and StateError for another kind of file.
        """
        return cls.from_bytes(archive.read(path), allow_insecure=allow_insecure)

    @classmethod
    def from_bytes(cls, data: bytes, *, allow_insecure: bool = False) -> ClientSpec:
        """From untrusted bytes. Raises as `load`."""
        document, _ = archive.unpacked(data, "client")
        try:
            found = _dict(document)
            params = params_of(found["params"], allow_insecure)
            relinearisation = found["relinearisation"]
            if relinearisation is not None:
                relinearisation = count(relinearisation, 0, params.max_level)
            shape = found["output_shape"]
            if not isinstance(shape, list):
                raise SerializationError("output_shape is no list")
            spec = cls(
                params, fingerprint_of(found["program"]), rotations_of(found["rotations"], params),
                relinearisation, tuple(boot_of(b, params) for b in _list(found["bootstraps"])),
                layout_of(found["input"]), count(found["input_level"], 0, params.normal_top_level),
                positive(found["input_bound"]), layout_of(found["output"]), tuple(count(v) for v in shape),
                positive(found["output_bound"]), count(found["batch"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, CrenelError):
                raise
            raise SerializationError(f"no client's file: {type(error).__name__}: {error}") from None
        if (
            int(np.prod(spec.output_shape)) != int(np.prod(spec.output.shape))
            or max(spec.input.capacity, spec.output.capacity) > params.slots
        ):
            raise SerializationError("layouts or levels that do not fit the parameters or the result")
        return spec


@dataclass(frozen=True, eq=False)
class Client:
    """The holder of a secret key, for programs."""

    ckks_client: ckks.Client

    def evaluation_keys(self, spec: ClientSpec) -> ckks.EvaluationKeys:
        """The keys that the program's server needs, each for the levels it is used at; no secret.

        Raises StateError for a program of other parameters, OutOfMemoryError as
        `ckks.Client.evaluation_keys`.
        """
        self._same(spec)
        return self.ckks_client.evaluation_keys(
            rotations=dict(spec.rotations),
            relinearisation=spec.relinearisation is not None,
            bootstrap=[boot.options() for boot in spec.bootstraps],
            max_level=spec.relinearisation,
        )

    def encrypt(self, samples: ArrayLike, spec: ClientSpec) -> EncryptedTensor:
        """One sample, or up to `spec.batch` of them with an axis in front.

        Raises ParameterError for other shapes, more samples, numbers that are not real or not finite, and
        numbers beyond `spec.input_bound`, on which the program would compute nonsense (``fields["index"]``:
        the first); StateError for a program of other parameters.
        """
        self._same(spec)
        found, single = rows_of(samples, spec, spec.batch)
        wrong = ~(np.abs(found) <= spec.input_bound)  # true of NaN too
        if wrong.any():
            where = [int(k) for k in np.argwhere(wrong)[0]]
            raise ParameterError(
                f"the number at {where[1:]} of sample {where[0]} is not within the program's range of "
                f"{spec.input_bound:g}; {int(wrong.sum())} numbers are beyond it",
                {"index": where, "bound": spec.input_bound, "count": int(wrong.sum())},
            )
        packed = spec.input.pack(found / spec.input_bound)
        slots = spec.input.slots
        return EncryptedTensor(
            tuple(self.ckks_client.encrypt(part, level=spec.input_level, slots=slots) for part in packed),
            spec.program,
            single,
            count=len(found),
        )

    def decrypt(self, tensor: EncryptedTensor, spec: ClientSpec) -> Reals:
        """The result in float64: (samples, *output shape), of a single sample without the axis in front.

        For the key holder's own eyes, as `ckks.Client.decrypt`. Raises StateError for a result of another
        program or under another key, and for what is no result of this one: a tensor that `encrypt` made,
        ciphertexts of another number or of other slots, and samples of another number than `spec.batch` and
        `tensor.single` allow.
        """
        self._same(spec)
        same_program(tensor, spec.program)
        layout = spec.output
        found = [c.slots for c in tensor.ciphertexts]
        most, rows = 1 if tensor.single else spec.batch, layout.rows(tensor.samples)
        fits = tensor.samples <= most and all(c.batch == rows for c in tensor.ciphertexts)
        if found != [layout.slots] * layout.ciphertexts or not fits:
            raise StateError(
                f"{len(found)} ciphertexts of {sorted(set(found))} slots, expected the program's result: "
                f"{layout.ciphertexts} of {layout.slots} slots and at most {most} samples",
                {"ciphertexts": len(found), "expected": layout.ciphertexts, "slots": layout.slots},
            )
        same_direction(tensor, result=True)
        numbers = unpacked(self.ckks_client, tensor.ciphertexts, layout, tensor.samples) * spec.output_bound
        shaped = numbers.reshape(len(numbers), *spec.output_shape)
        return np.asarray(shaped[0] if tensor.single else shaped)

    def tensor_from_bytes(self, data: bytes, *, max_bytes: int | None = None) -> EncryptedTensor:
        """What `EncryptedTensor.to_bytes` of a server sent. Takes a limit and raises as
        `EncryptedTensor.from_bytes`."""
        return EncryptedTensor.from_bytes(data, self.ckks_client.context, max_bytes=max_bytes)

    def export_secret_key(self) -> bytes:
        """For `ClientSpec.client_from_secret_key`: keep it as a secret."""
        return self.ckks_client.export_secret_key()

    def _same(self, spec: ClientSpec) -> None:
        found, expected = self.ckks_client.context.params, spec.params
        if found != expected:
            raise StateError(
                f"a client of parameters {found.id[:16]}, the program has {expected.id[:16]}",
                {"found": found.id, "expected": expected.id},
            )


def rows_of(samples: ArrayLike, spec: ClientSpec, most: int | None = None) -> tuple[Reals, bool]:
    """Samples with an axis in front, and whether it is a single one that came without.

    most : of them; None: any number. Raises ParameterError for other shapes and numbers of them, and for
    what is not real.
    """
    found = reals(samples, "samples")
    if found.shape == spec.input.shape:
        return found[None], True
    if found.shape[1:] != spec.input.shape or not found.ndim or not 1 <= len(found) <= (most or len(found)):
        raise ParameterError(
            f"samples of shape {found.shape}, expected {spec.input.shape}, "
            f"or {f'1 to {most}' if most else 'one or more'} of these",
            {"shape": list(found.shape), "expected": list(spec.input.shape), "batch": spec.batch},
        )
    return found, False


def unpacked(
    client: ckks.Client, ciphertexts: tuple[ckks.Ciphertext, ...], layout: Layout, samples: int
) -> Reals:
    """Tensors of a layout, (samples, *shape), as ciphertexts hold them."""
    parts = [np.atleast_2d(np.real(client.decrypt(here(c, client.context)))) for c in ciphertexts]
    return layout.unpack(np.stack(parts), samples)


def here(ciphertext: ckks.Ciphertext, context: ckks.Context) -> ckks.Ciphertext:
    """Itself, or, of another device object, a copy that travelled as bytes: client and server of one process
    need not share one. Raises StateError for other parameters."""
    try:
        context.evaluator().negate(ciphertext)
    except StateError as refused:
        try:
            return context.ciphertext_from_bytes(ciphertext.to_bytes())
        except SerializationError:
            raise refused from None
    return ciphertext


def same_program(tensor: EncryptedTensor, program: str) -> None:
    """Raises StateError for a tensor of another program, and ParameterError for what is no tensor."""
    if not isinstance(tensor, EncryptedTensor):
        raise ParameterError(
            f"{type(tensor).__name__}, expected an EncryptedTensor: bytes become one by tensor_from_bytes",
            {"type": type(tensor).__name__},
        )
    if tensor.program != program:
        raise StateError(
            f"an encrypted tensor of program {tensor.program[:16]}, expected {program[:16]}",
            {"found": tensor.program, "expected": program},
        )


def same_direction(tensor: EncryptedTensor, result: bool) -> None:
    """Raises StateError for an input where a result is expected, and the other way round: their ciphertexts
    may look alike."""
    if tensor.result != result:
        kinds = ("an input that a client encrypted", "a result that a server returned")
        raise StateError(
            f"{kinds[tensor.result]}, expected the program's {'result' if result else 'input'}",
            {"result": tensor.result},
        )


def params_of(form: Json, allow_insecure: bool) -> ckks.Params:
    """Parameters from a file's text. Raises SerializationError, also where they are insecure."""
    if type(form) is not str:
        raise SerializationError("parameters that are no text")
    try:
        data = bytes.fromhex(form)
    except ValueError:
        raise SerializationError("parameters that are not hexadecimal") from None
    return ckks.Params.from_bytes(data, allow_insecure=allow_insecure)


def _loaded(
    context: ckks.Context, parts: tuple[bytes, ...], max_bytes: int | None
) -> tuple[ckks.Ciphertext, ...]:
    """Ciphertexts, each of at most an equal share; a refusal names what all take.

    Raises
    ------
    SerializationError : as `ckks.Context.ciphertext_from_bytes`
    """
    share = None if max_bytes is None else max_bytes // len(parts)
    try:
        return tuple(context.ciphertext_from_bytes(part, max_bytes=share) for part in parts)
    except SerializationError as error:
        needed = error.fields.get("needed")
        if max_bytes is None or len(parts) == 1 or type(needed) is not int:
            raise
        whole = needed * len(parts)
        found, expected = f"{len(parts)} ciphertexts that take {whole} bytes", f"at most {max_bytes} bytes"
        raise SerializationError(
            f"cannot load a tensor: found {found}, expected {expected} (pass max_bytes={whole})",
            {
                "where": "tensor",
                "found": found,
                "expected": expected,
                "needed": whole,
                "max_bytes": max_bytes,
            },
        ) from None
