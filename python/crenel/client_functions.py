"""What a client must know of a function of a service: its keys, its inputs, and what comes back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from crenel import ckks, tfhe
from crenel._crenel import write_file
from crenel.arguments import refuse_masked
from crenel.errors import CrenelError, ParameterError, SerializationError, StateError
from crenel.nn import archive
from crenel.nn.archive import Json
from crenel.nn.client import params_of
from crenel.serve import forms
from crenel.serve.forms import Clear, Given, Holder, Input, Vector

MOST_ROTATIONS = 1 << 16


class Exports(Protocol):
    """The holder of a secret key, of any scheme."""

    def export_secret_key(self) -> bytes:
        """For a file that is kept as a secret."""
        ...


H = TypeVar("H", bound=Exports, covariant=True)


class Makes(Protocol[H]):
    """What makes such a holder."""

    def keygen(self, device: str = "auto") -> H:
        """With a new secret key."""
        ...

    def client_from_secret_key(self, data: bytes, device: str = "auto") -> H:
        """With an exported one. Raises SerializationError."""
        ...


@dataclass(frozen=True, eq=False)
class FunctionSpec:
    """A function as its client file says it: parameters, which keys, which inputs. What it computes is its
    author's to describe."""

    name: str
    version: str
    program: str
    """Its fingerprint."""
    params: ckks.Params | tfhe.Params
    """Of the scheme that it computes in."""
    inputs: tuple[Input, ...]
    """What it takes."""
    needs: ckks.Needs | None = None
    """Keys of CKKS and their levels; None: TFHE's, or for all levels those of `rotations`, `conjugate`."""
    rotations: tuple[int, ...] = ()
    conjugate: bool = False

    @classmethod
    def from_bytes(cls, data: bytes, *, allow_insecure: bool = False) -> FunctionSpec:
        """From an untrusted client file.

        allow_insecure : accept parameters of less than 128 bits of security. Raises SerializationError, also
        for insecure parameters, and StateError for another kind of file.
        """
        document, _ = archive.unpacked(data, "function")
        try:
            return cls._of(document, allow_insecure)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, CrenelError) and not isinstance(error, ParameterError):
                raise
            raise SerializationError(f"no function's file: {type(error).__name__}: {error}") from None

    @classmethod
    def _of(cls, document: Json, allow_insecure: bool) -> FunctionSpec:
        found = document if isinstance(document, dict) else {}
        names, program = (found["name"], found["version"]), forms.fingerprint(document)
        if not all(type(name) is str for name in names):
            raise SerializationError("a function without name and version")
        name, version = map(str, names)
        scheme, given = found.get("scheme", "ckks"), found.get("inputs")
        if scheme not in ("ckks", "tfhe") or not (given is None or (isinstance(given, list) and given)):
            raise SerializationError(f"a function of the scheme {scheme!r}, or of inputs that are no list")
        if given is not None and len(given) > forms.MOST_PARTS:
            raise SerializationError(f"{len(given)} inputs, expected at most {forms.MOST_PARTS}")
        if scheme == "tfhe":
            params = tfhe.Params.from_bytes(_hex(found["params"]), allow_insecure=allow_insecure)
            inputs = tuple(forms.input_of(each, params) for each in cast("list[Json]", found["inputs"]))
            return cls(name, version, program, params, inputs)
        chain = params_of(found["params"], allow_insecure)
        inputs = (Vector(),) if given is None else tuple(forms.input_of(each, chain) for each in given)
        if "needs" in found:
            needs = forms.needs_of(found["needs"], chain)
            return cls(name, version, program, chain, inputs, needs)
        steps, conjugate = found["rotations"], found["conjugate"]
        if (
            not isinstance(steps, list)
            or len(steps) > MOST_ROTATIONS
            or not all(type(k) is int for k in steps)
            or type(conjugate) is not bool
        ):
            raise SerializationError("a function without rotations and conjugate")
        return cls(name, version, program, chain, inputs, None, tuple(cast("list[int]", steps)), conjugate)

    def keygen(self, device: str = "auto") -> Holder:
        """A client with a new secret key: of `crenel.ckks` or `crenel.tfhe`."""
        return self._context(device).keygen()

    def client_from_secret_key(self, data: bytes, device: str = "auto") -> Holder:
        """The client whose `export_secret_key` the bytes are. Raises SerializationError."""
        return self._context(device).client_from_secret_key(data)

    def _context(self, device: str) -> ckks.Context | tfhe.Context:
        if isinstance(self.params, ckks.Params):
            return ckks.Context(self.params, device=device)
        return tfhe.Context(self.params, device=device)

    def save_keys(self, client: Holder, path: str | os.PathLike[str]) -> None:
        """Makes the evaluation keys that the function needs, into a file; no secret.

        Raises StateError for a client of other parameters, OutOfMemoryError, FileError.
        """
        self._same(client)
        if not isinstance(client, ckks.Client):
            write_file(path, client.evaluation_keys().to_bytes())
        elif self.needs is not None:
            self.needs.keys(client).save(path)
        else:
            client.evaluation_keys(rotations=self.rotations, conjugate=self.conjugate).save(path)

    def encrypt(self, client: Holder, *inputs: Given) -> bytes:
        """A job's body: of numbers, or of what the client encrypted.

        Raises ParameterError for another number of inputs and for numbers that are none of these, StateError
        for ciphertexts of another level, shape, type or secret key.
        """
        self._same(client)
        if len(inputs) != len(self.inputs):
            raise ParameterError(
                f"{len(inputs)} inputs, expected {len(self.inputs)}",
                {"inputs": len(inputs), "expected": len(self.inputs)},
            )
        for number, value in enumerate(inputs):
            refuse_masked(value, f"input {number}")
        sealed = [kind.sealed(client, value) for kind, value in zip(self.inputs, inputs, strict=True)]
        for value in sealed:
            owner = value.ciphertext if isinstance(value, ckks.Array) else value
            found = str(owner.secret_key_id)  # type: ignore[union-attr]
            if found != client.secret_key_id:
                raise StateError(
                    f"a ciphertext of the secret key {found}, expected {client.secret_key_id}",
                    {"found": found, "expected": client.secret_key_id},
                )
        return forms.packed(self.program, sealed, result=False, single=len(sealed) == 1)

    def decrypt(self, client: Holder, data: bytes) -> Clear:
        """A result in the clear: numbers of NumPy, or a tuple of such where the function gives several.

        For the key holder's own eyes, as `crenel.ckks.Client.decrypt`. Raises SerializationError for bytes
        that are no result, StateError for one of another function or under another key.
        """
        self._same(client)
        parts, single = forms.unpacked(data, self.program, result=True)
        found = tuple(forms.opened(client, kind, part) for kind, part in parts)
        return found[0] if single else found

    def _same(self, client: Holder) -> None:
        found = client.context.params
        if found != self.params:
            raise StateError(
                f"a client of parameters {found.id[:16]}, the function has {self.params.id[:16]}",
                {"found": found.id, "expected": self.params.id},
            )


def _hex(form: Json) -> bytes:
    if type(form) is not str:
        raise SerializationError("parameters that are no text")
    return bytes.fromhex(form)
