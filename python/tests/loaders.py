"""Every loader of bytes, with a file that it takes; files made by hand."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from conftest import World, open_context, toy
from tfhe_world import open_tfhe

from crenel import ckks, tfhe


@dataclass
class Loader:
    name: str
    data: bytes
    load: Callable  # (data, **options) -> object
    save: Callable  # object -> bytes


def quiet(function: Callable, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        return function(*args, **options)


def ckks_loaders(device: str) -> list[Loader]:
    world = World(open_context(toy(), device))
    context = world.context
    fresh = world.client.encrypt(np.arange(64).reshape(16, 4) / 64)

    def save(x) -> bytes:
        return x.to_bytes()

    def params(data, **options):
        return quiet(ckks.Params.from_bytes, data, allow_insecure=True, **options)

    return [
        Loader("params", world.params.to_bytes(), params, save),
        Loader("seeded", fresh.to_bytes(), context.ciphertext_from_bytes, save),
        Loader("product", world.ev.multiply(fresh, fresh).to_bytes(), context.ciphertext_from_bytes, save),
        Loader("plaintext", context.encode(np.ones((16, 2))).to_bytes(), context.plaintext_from_bytes, save),
        Loader("keys", world.client.evaluation_keys(rotations=[1]).to_bytes(),
               context.evaluation_keys_from_bytes, save),
        Loader("public", world.client.public_key().to_bytes(), context.public_key_from_bytes, save),
    ]  # fmt: skip


def tfhe_loaders(device: str) -> list[Loader]:
    context = open_tfhe(tfhe.preset("toy-lut4", allow_insecure=True), device)
    client = context.keygen()
    keys = client.evaluation_keys()
    messages = client.encrypt(np.arange(20000, dtype=np.uint64) % 16, bits=4)

    groups = open_tfhe(tfhe.preset("toy-lut4g4", allow_insecure=True), device)
    holder = groups.keygen()
    ev = groups.evaluator(holder.evaluation_keys(), max_p_fail_log2=0)
    stored = ev.compress(holder.encrypt(np.arange(900) % 16, bits=4))

    def save(x) -> bytes:
        return x.to_bytes()

    def params(data, **options):
        return tfhe.Params.from_bytes(data, allow_insecure=True, **options)

    return [
        Loader("tfhe params", context.params.to_bytes(), params, save),
        Loader("tfhe seeded", messages.to_bytes(), context.ciphertext_from_bytes, save),
        Loader("tfhe rows", messages[:999].to_bytes(), context.ciphertext_from_bytes, save),
        Loader("tfhe integers", client.encrypt(np.arange(500, dtype=np.uint16)).to_bytes(),
               context.integers_from_bytes, save),
        Loader("tfhe compressed", stored.to_bytes(), groups.compressed_from_bytes, save),
        Loader("tfhe keys", keys.to_bytes(), context.evaluation_keys_from_bytes, save),
    ]  # fmt: skip


NAMES = ["params", "seeded", "product", "plaintext", "keys", "public"]
NAMES += ["tfhe params", "tfhe seeded", "tfhe rows", "tfhe integers", "tfhe compressed", "tfhe keys"]


def header_bytes(data: bytes) -> int:
    return 8 + int.from_bytes(data[:8], "little")


def edited(data: bytes, metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> bytes:
    """The file with other metadata and tensors in the place of some, and with right checksums."""
    header = json.loads(data[8 : header_bytes(data)])
    payload, meta = data[header_bytes(data) :], header.pop("__metadata__")
    parts, members, at = [], {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        part = payload[slice(*entry["data_offsets"])]
        if name in arrays:
            part, entry["shape"] = arrays[name].tobytes(), list(arrays[name].shape)
        members[name] = {**entry, "data_offsets": [at, at + len(part)]}
        meta["sha256:" + name] = hashlib.sha256(part).hexdigest()
        parts.append(part)
        at += len(part)
    meta.update(metadata, header_sha256="0" * 64)
    text = json.dumps({"__metadata__": meta, **members}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256(text).hexdigest().encode()
    text = text.replace(b'"header_sha256":"' + b"0" * 64, b'"header_sha256":"' + digest)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
