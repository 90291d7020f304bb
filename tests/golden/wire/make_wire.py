"""Writes the wire files of this folder: an implementation of docs/reference/file-format.md that shares
nothing with the library. Standard library only; run it again after a change of the format:
    python3 tests/golden/wire/make_wire.py
"""

import hashlib
import json
import pathlib
import random
import struct

LOG_N = 10
N = 1 << LOG_N
MAIN = [786433, 1146881, 1073750017]
AUXILIARY = [2147473409]
PRIMES = MAIN + AUXILIARY  # position order; there are no terminal primes
LEVELS = [(2, 0), (3, 0)]
LOG_SCALE, NORMAL_TOP_LEVEL, HAMMING_WEIGHT = 30, 1, 0
DIGITS = 3
SECRET_KEY_ID = bytes(range(16)).hex()
OWNED = {"secret_key_id": SECRET_KEY_ID}
rng = random.Random(20260)


def params_id() -> str:
    data = b"crenel.ckks.params.1\0"
    numbers = [LOG_N, LOG_SCALE, NORMAL_TOP_LEVEL, HAMMING_WEIGHT]
    for primes in (MAIN, [], AUXILIARY):
        numbers += [len(primes), *primes]
    numbers += [len(LEVELS), *(x for level in LEVELS for x in level)]
    data += struct.pack(f"<{len(numbers)}Q", *numbers)
    return hashlib.sha256(data).hexdigest()[:32]


def safetensors(kind: str, metadata: dict[str, str], tensors: dict[str, tuple], home: str = "") -> bytes:
    """tensors: name -> (dtype, shape, bytes), in file order; home: the id of the parameters."""
    meta = {
        "format": "crenel",
        "format_version": "2",
        "library_version": "0.1.0",
        "kind": kind,
        "params_id": home or params_id(),
        "header_sha256": "0" * 64,
        **metadata,
    }
    entries, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        meta[f"sha256:{name}"] = hashlib.sha256(data).hexdigest()
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    entries["__metadata__"] = meta
    text = json.dumps(entries, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256(text).hexdigest().encode()
    text = text.replace(b"0" * 64, digest, 1)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def residues(*shape: int, limbs: list[int]) -> tuple:
    """Shape is [..., limbs, N]; the extreme residues 0 and q - 1 occur in every limb."""
    copies = 1
    for extent in shape[:-2]:
        copies *= extent
    words = []
    for _ in range(copies):
        for prime in limbs:
            words += [0, PRIMES[prime] - 1]
            words += [rng.randrange(PRIMES[prime]) for _ in range(N - 2)]
    return "U32", list(shape), struct.pack(f"<{len(words)}I", *words)


def seed() -> bytes:
    return rng.randbytes(32)


def seed_tensor(value: bytes) -> tuple:
    return "U8", [32], value


def chacha20_block(key: bytes, counter: int, nonce: tuple[int, int, int]) -> bytes:
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key), counter, *nonce]
    x = list(start)

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for p, q, r, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[p] = (x[p] + x[q]) & 0xFFFFFFFF
            x[r] ^= x[p]
            x[r] = ((x[r] << bits) | (x[r] >> (32 - bits))) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(x, start, strict=False)))


def expand(key: bytes, copies: int, limbs: list[int]) -> bytes:
    """[copies, limbs, N] words: the uniform half that a seed stands for."""
    words = []
    for serial in range(copies):
        for prime in limbs:
            for block in range(N // 4):
                data = chacha20_block(key, prime * (N // 4) + block, (1, serial, 0))
                words += [
                    int.from_bytes(data[16 * i : 16 * i + 16], "little") % PRIMES[prime] for i in range(4)
                ]
    return struct.pack(f"<{len(words)}I", *words)


def element_metadata(level: int, scale: float, slots: int, real: bool, batch: int) -> dict[str, str]:
    mantissa, exponent = scale.hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return {
        "level": str(level),
        "scale": f"{mantissa}p{exponent}",
        "slots": str(slots),
        "real": "true" if real else "false",
        "batch": str(batch),
        "domain": "evaluation",
    }


LOW, TOP, EVERY = [0, 1], [0, 1, 2], [0, 1, 2, 3]  # primes
Files, Digests = dict[str, bytes], dict[str, str]


def params_file() -> bytes:
    u64s = lambda v: ("U64", [len(v)], struct.pack(f"<{len(v)}Q", *v))  # noqa: E731
    flat = [x for level in LEVELS for x in level]
    provenance = 'Smallest leveled set at N = 1024, for tests of the file format; "insecure".'
    return safetensors(
        "params",
        {
            "name": "wire",
            "provenance": provenance,
            "log_n": str(LOG_N),
            "log_scale": str(LOG_SCALE),
            "normal_top_level": str(NORMAL_TOP_LEVEL),
            "hamming_weight": str(HAMMING_WEIGHT),
        },
        {
            "main": u64s(MAIN),
            "terminal": u64s([]),
            "auxiliary": u64s(AUXILIARY),
            "levels": ("U32", [len(LEVELS), 2], struct.pack(f"<{len(flat)}I", *flat)),
        },
    )


def put_elements(files: Files, expected: Digests) -> None:
    """Ciphertexts and a plaintext."""
    files["ciphertext"] = safetensors(
        "ciphertext",
        {**OWNED, **element_metadata(0, 2.0**30 * 1.1, 512, False, 1), "components": "3", "seeded": "false"},
        {f"c{c}": residues(1, 2, N, limbs=LOW) for c in range(3)},
    )
    key = seed()
    files["ciphertext_seeded"] = safetensors(
        "ciphertext",
        {**OWNED, **element_metadata(1, 2.0**30, 16, True, 2), "components": "2", "seeded": "true"},
        {"c0": residues(2, 3, N, limbs=TOP), "seed": seed_tensor(key)},
    )
    expected["ciphertext_seeded c1"] = hashlib.sha256(expand(key, 2, TOP)).hexdigest()
    files["plaintext"] = safetensors(
        "plaintext", element_metadata(0, 1.0, 1, True, 1), {"m": residues(1, 2, N, limbs=LOW)}
    )


def put_keys(files: Files, expected: Digests) -> None:
    """Public, evaluation and secret keys."""
    key = seed()
    files["public_key"] = safetensors(
        "public_key", OWNED, {"b": residues(3, N, limbs=TOP), "seed": seed_tensor(key)}
    )
    expected["public_key a"] = hashlib.sha256(expand(key, 1, TOP)).hexdigest()
    tensors = {}
    for name in ("relinearisation", "galois/5", f"galois/{2 * N - 1}"):
        key = seed()
        tensors[f"{name}/b"] = residues(DIGITS, 4, N, limbs=EVERY)
        tensors[f"{name}/seed"] = seed_tensor(key)
        expected[f"{name} a"] = hashlib.sha256(expand(key, DIGITS, EVERY)).hexdigest()
    files["evaluation_keys"] = safetensors("evaluation_keys", {**OWNED, "digits": str(DIGITS)}, tensors)
    files["evaluation_keys_none"] = safetensors(
        "evaluation_keys", {"secret_key_id": "none", "digits": str(DIGITS)}, {}
    )
    coefficients = bytes(rng.choice((0, 0, 1, 0xFF)) for _ in range(N))
    files["secret_key"] = safetensors("secret_key", OWNED, {"coefficients": ("U8", [N], coefficients)})
    expected["secret_key coefficients"] = hashlib.sha256(coefficients).hexdigest()


def main() -> None:
    files: Files = {"params": params_file()}
    expected: Digests = {"params_id": params_id()}
    put_elements(files, expected)
    put_keys(files, expected)
    folder = pathlib.Path(__file__).parent
    for name, data in files.items():
        (folder / f"{name}.safetensors").write_bytes(data)
    lines = "".join(f"{value} {name}\n" for name, value in sorted(expected.items()))
    (folder / "expected.txt").write_text(lines)


if __name__ == "__main__":
    main()
