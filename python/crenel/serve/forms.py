"""What clients and service say to each other of a function: its inputs, its keys, bodies of its jobs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crenel import ckks, tfhe
from crenel.ckks.arrays.layout import PACKINGS, Packing
from crenel.ckks.recorder import Recorded, Recorder
from crenel.errors import CrenelError, ParameterError, SerializationError, StateError
from crenel.nn import archive
from crenel.nn.archive import Json
from crenel.nn.form import count, rotations_of
from crenel.pickling import OPTIONS
from crenel.tfhe.types import integer_type

Holder: TypeAlias = "ckks.Client | tfhe.Client"
"""Of a secret key."""
Context: TypeAlias = "ckks.Context | tfhe.Context"
Sealed: TypeAlias = "ckks.Ciphertext | ckks.Array | tfhe.Integers | tfhe.Ciphertext"
"""What travels under encryption."""
Given: TypeAlias = "ArrayLike | Sealed"
"""Numbers, or what is encrypted already."""
Numeric: TypeAlias = "NDArray[np.generic]"
Clear: TypeAlias = "Numeric | tuple[Numeric, ...]"
"""A result in the clear; a tuple where a function gives several."""
T = TypeVar("T")
MOST_PARTS = 1024
"""Inputs of a function, its results, and its kinds of bootstraps, at most."""


@dataclass(frozen=True)
class Vector:
    """An input of CKKS: a ciphertext, of one vector or several.

    slots : of each; None: any, and where a client encrypts numbers all that the parameters have
    level : of the ciphertext; None: any, and where a client encrypts numbers the highest normal one
    """

    slots: int | None = None
    level: int | None = None

    def form(self) -> dict[str, Json]:
        """As JSON's types."""
        return {"kind": "vector", "slots": self.slots, "level": self.level}

    def recorded(self, recorder: Recorder) -> Recorded:
        """In its place where keys are counted."""
        return recorder.input(self.level, self.slots)

    def sealed(self, holder: Holder, value: Given) -> Sealed:
        """Numbers, encrypted, or what is encrypted already. Raises as `ckks.Client.encrypt`, StateError for
        another level or other slots than the function's."""
        if isinstance(value, ckks.Ciphertext):
            return self.fits(value)
        client = _instance(holder, ckks.Client)
        return client.encrypt(np.asarray(value), level=self.level, slots=self.slots)

    def read(self, context: Context, data: bytes, most: int) -> ckks.Ciphertext:
        """From untrusted bytes, of at most so many bytes in memory. Raises SerializationError, StateError."""
        return self.fits(_instance(context, ckks.Context).ciphertext_from_bytes(data, max_bytes=most))

    def fits(self, found: ckks.Ciphertext) -> ckks.Ciphertext:
        """Itself. Raises StateError for another level or other slots."""
        _same("level", found.level, self.level)
        _same("slots", found.slots, self.slots)
        return found


@dataclass(frozen=True)
class Numbers:
    """An input of CKKS: a `ckks.Array`.

    shape : up to two axes
    packing : as of `ckks.encrypt`
    level : of the ciphertext; None: any, and where a client encrypts numbers the highest normal one
    """

    shape: tuple[int, ...]
    packing: str = "rows"
    level: int | None = None

    def form(self) -> dict[str, Json]:
        """As JSON's types."""
        return {"kind": "array", "shape": list(self.shape), "packing": self.packing, "level": self.level}

    def recorded(self, recorder: Recorder) -> ckks.Array:
        """In its place where keys are counted."""
        return self._encrypted(recorder, np.zeros(self.shape))

    def _encrypted(self, key: ckks.Client | Recorder, numbers: ArrayLike) -> ckks.Array:
        return ckks.encrypt(key, numbers, cast(Packing, self.packing), level=self.level)

    def sealed(self, holder: Holder, value: Given) -> Sealed:
        """Numbers, encrypted, or what is encrypted already. Raises ParameterError for another shape,
        StateError for another level or packing than the function's, and as `ckks.encrypt`."""
        if isinstance(value, ckks.Array):
            return self.fits(value)
        numbers = np.asarray(value)
        if numbers.shape != self.shape:
            raise ParameterError(
                f"numbers of shape {numbers.shape}, expected {self.shape}",
                {"shape": list(numbers.shape), "expected": list(self.shape)},
            )
        return self._encrypted(_instance(holder, ckks.Client), numbers)

    def read(self, context: Context, data: bytes, most: int) -> ckks.Array:
        """From untrusted bytes, of at most so many bytes in memory. Raises SerializationError, StateError."""
        return self.fits(ckks.Array.from_bytes(_instance(context, ckks.Context), data, most))

    def fits(self, found: ckks.Array) -> ckks.Array:
        """Itself. Raises StateError for another shape, packing or level."""
        _same("shape", found.shape, self.shape)
        _same("packing", found.packing, self.packing)
        _same("level", found.level, self.level)
        return found


@dataclass(frozen=True)
class Integers:
    """An input of TFHE: an array of bits or integers.

    type : "bool", or a type of integers, "uint8" or "int128" say
    shape : None: any
    """

    type: str
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.type != "bool":
            object.__setattr__(self, "type", integer_type("an input of a function", self.type).name)

    def form(self) -> dict[str, Json]:
        """As JSON's types."""
        return {"kind": "integers", "type": self.type, "shape": None if self.shape is None else [*self.shape]}

    def sealed(self, holder: Holder, value: Given) -> Sealed:
        """Integers, encrypted, or what is encrypted already. Raises ParameterError for integers that the type
        does not hold, StateError for another type or shape than the function's."""
        if isinstance(value, (tfhe.Integers, tfhe.Ciphertext)):
            return self.fits(value)
        client = _instance(holder, tfhe.Client)
        if self.type == "bool":
            bits = np.asarray(value)
            if bits.dtype != np.bool_:
                raise ParameterError(f"elements of {bits.dtype}, expected bits", {"dtype": str(bits.dtype)})
            return self.fits(client.encrypt(bits))
        return self.fits(client.encrypt(cast(ArrayLike, value), dtype=self.type))

    def read(self, context: Context, data: bytes, most: int) -> tfhe.Integers | tfhe.Ciphertext:
        """From untrusted bytes, of at most so many bytes in memory. Raises SerializationError, StateError."""
        place = _instance(context, tfhe.Context)
        load = place.ciphertext_from_bytes if self.type == "bool" else place.integers_from_bytes
        return self.fits(load(data, max_bytes=most))

    def fits(self, found: tfhe.Integers | tfhe.Ciphertext) -> tfhe.Integers | tfhe.Ciphertext:
        """Itself. Raises StateError for another type or shape."""
        _same("type", found.type.name if isinstance(found, tfhe.Integers) else str(found.dtype), self.type)
        _same("shape", found.shape, self.shape)
        return found


Input: TypeAlias = "Vector | Numbers | Integers"


def _same(what: str, found: object, expected: object) -> None:
    if expected is not None and found != expected:
        raise StateError(
            f"an input of {what} {found}, expected {expected}",
            {"input": what, "found": str(found), "expected": str(expected)},
        )


def _instance(found: object, kind: type[T]) -> T:
    if not isinstance(found, kind):
        raise StateError(
            f"an input of another scheme: {type(found).__module__}, expected {kind.__module__}",
            {"found": type(found).__name__, "expected": kind.__name__},
        )
    return found


def input_of(form: Json, params: ckks.Params | tfhe.Params) -> Input:
    """From untrusted JSON. Raises SerializationError."""
    found = form if isinstance(form, dict) else {}
    kind, shape, level = found.get("kind"), found.get("shape"), found.get("level")
    sizes: tuple[int, ...] | None = None
    if shape is not None:
        sizes = tuple(count(n) for n in (shape if isinstance(shape, list) else [shape]))
    if isinstance(params, ckks.Params):
        height = None if level is None else count(level, 0, params.max_level)
        if kind == "vector":
            slots = found.get("slots")
            return Vector(None if slots is None else count(slots, 1, params.slots), height)
        if kind == "array" and sizes is not None and found.get("packing") in PACKINGS:
            return Numbers(sizes, str(found["packing"]), height)
    elif kind == "integers" and isinstance(found.get("type"), str):
        return Integers(str(found["type"]), sizes)
    raise SerializationError(f"an input of kind {kind!r} is none of these parameters", {"kind": str(kind)})


# ---- keys ----------------------------------------------------------------------------------------------


def needs_form(needs: ckks.Needs) -> dict[str, Json]:
    """The keys that a function needs, as JSON's types."""
    return {
        "rotations": [[k, level] for k, level in sorted(needs.rotation_levels.items())],
        "conjugation": needs.conjugation_level, "relinearisation": needs.relinearisation_level,
        "bootstraps": [_options_form(options) for options in needs.bootstraps],
    }  # fmt: skip


def _options_form(options: ckks.BootstrapOptions) -> dict[str, Json]:
    """Those that are not as by default, so that later options change nothing of what is written today."""
    default = ckks.BootstrapOptions()
    return {
        name: cast(Json, getattr(options, name))
        for name in OPTIONS
        if getattr(options, name) != getattr(default, name)
    }


def needs_of(form: Json, params: ckks.Params) -> ckks.Needs:
    """From untrusted JSON. Raises SerializationError."""
    bootstraps = form.get("bootstraps") if isinstance(form, dict) else None
    if not isinstance(form, dict) or not isinstance(bootstraps, list):
        raise SerializationError("keys that are no table with bootstraps")
    if len(bootstraps) > MOST_PARTS:
        raise SerializationError(f"more than {MOST_PARTS} kinds of bootstraps")
    levels = [form.get(name) for name in ("conjugation", "relinearisation")]
    conjugation, relinearisation = (None if x is None else count(x, 0, params.max_level) for x in levels)
    return ckks.Needs(
        rotations_of(form.get("rotations"), params), conjugation, relinearisation,
        tuple(_options_of(each, params) for each in bootstraps), 0,
    )  # fmt: skip


def _options_of(form: Json, params: ckks.Params) -> ckks.BootstrapOptions:
    if not isinstance(form, dict) or not set(form) <= set(OPTIONS):
        raise SerializationError("options of a bootstrap that this version does not know")
    try:
        options = ckks.BootstrapOptions(**form)  # type: ignore[arg-type]
        options.rotations(params)
    except (CrenelError, TypeError, ValueError) as error:
        raise SerializationError(f"options of a bootstrap: {error}") from None
    return options


# ---- bodies --------------------------------------------------------------------------------------------

KINDS: Mapping[type, str] = {
    ckks.Ciphertext: "vector", ckks.Array: "array", tfhe.Integers: "integers", tfhe.Ciphertext: "messages",
}  # fmt: skip


def packed(program: str, values: Sequence[Sealed], *, result: bool, single: bool) -> bytes:
    """A body: of one ciphertext of CKKS its file, of anything else a container of kind ``ciphertexts``.

    single : is it one value, and not a list of one?
    """
    kinds = [next((name for kind, name in KINDS.items() if isinstance(v, kind)), "") for v in values]
    if not all(kinds):
        wrong = type(values[kinds.index("")]).__name__
        raise ParameterError(f"{wrong}, expected a ciphertext or an encrypted array", {"type": wrong})
    if not 1 <= len(kinds) <= MOST_PARTS:
        raise ParameterError(f"{len(kinds)} values, expected 1 to {MOST_PARTS}", {"values": len(kinds)})
    files = [value.to_bytes() for value in values]
    if single and kinds == ["vector"]:
        return files[0]
    document: Json = {"program": program, "result": result, "single": single, "kinds": list[Json](kinds)}
    return archive.packed("ciphertexts", document, {f"ciphertext{k}": f for k, f in enumerate(files)})


def unpacked(data: bytes, program: str, *, result: bool) -> tuple[list[tuple[str, bytes]], bool]:
    """Kinds and files of a body from untrusted bytes, and whether it is a single one.

    Raises SerializationError for what is no body, StateError for one of another program, or of the other
    direction.
    """
    if data[:8] != archive.FILES.magic:
        return [("vector", data)], True
    document, parts = archive.unpacked(data, "ciphertexts", archive.SHORT)
    found = document if isinstance(document, dict) else {}
    kinds, single = found.get("kinds"), found.get("single")
    if (
        not isinstance(kinds, list)
        or not 1 <= len(kinds) == len(parts) <= MOST_PARTS
        or not all(kind in KINDS.values() for kind in kinds)
        or type(single) is not bool
        or (single and len(kinds) != 1)
    ):
        raise SerializationError("ciphertexts without kinds, or not as many as kinds")
    if found.get("program") != program:
        raise StateError(
            f"ciphertexts of program {str(found.get('program'))[:16]}, expected {program[:16]}",
            {"expected": program},
        )
    if found.get("result") is not result:
        raise StateError(
            f"expected {'results' if result else 'inputs'} of the program", {"result": not result}
        )
    return list(zip(map(str, kinds), parts.values(), strict=True)), single


def opened(client: Holder, kind: str, data: bytes) -> Numeric:
    """A result in the clear. Raises SerializationError, StateError for another secret key."""
    if isinstance(client, ckks.Client):
        if kind == "vector":
            return client.decrypt(client.context.ciphertext_from_bytes(data))
        if kind == "array":
            return client.decrypt(ckks.Array.from_bytes(client.context, data))
    elif kind == "integers":
        return client.decrypt(client.context.integers_from_bytes(data))
    elif kind == "messages":
        return client.decrypt(client.context.ciphertext_from_bytes(data))
    raise SerializationError(f"a result of kind {kind}, which is of another scheme", {"kind": kind})


def fingerprint(document: Json) -> str:
    """Of a function's document, which hashes name it by."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
