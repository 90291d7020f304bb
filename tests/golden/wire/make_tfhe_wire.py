"""Writes the TFHE wire files of this folder: a client that shares nothing with the library. It makes a
secret, encrypts bits and makes evaluation keys of toy-raising, from docs/reference/file-format.md alone.
Standard library only; run it again after a change of the format:
    python3 tests/golden/wire/make_tfhe_wire.py
"""

import hashlib
import math
import pathlib
import random
import struct

from make_wire import OWNED, chacha20_block, safetensors

LWE_DIM, GLWE_DIM, LOG_N, LOG_Q = 16, 3, 6, 7
N = 1 << LOG_N
LOG_BIG_Q, LOG_T = 17, 39  # Q of the accumulator, T of the key
LOG_SWITCH, LOG_BASE = 16, 5
SWITCH_DIGITS = -(-LOG_SWITCH // LOG_BASE)
rng = random.Random(2026)


def is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def prime_pair() -> list[int]:
    """Of the 64 primes = 1 mod 2N nearest to 2^(log T / 2), the two of least product >= T."""
    centre = int(2 ** (LOG_T / 2))
    spread = range(1, 1 << 21, 2 * N)
    near = sorted((p for p in spread if is_prime(p)), key=lambda p: abs(p - centre))[:64]
    pairs = [(a * b, [a, b]) for a in sorted(near) for b in near if a < b and a * b >= 1 << LOG_T]
    return min(pairs)[1]


PRIMES = prime_pair()
T = PRIMES[0] * PRIMES[1]
WEIGHT = (T + (1 << LOG_BIG_Q) // 2) >> LOG_BIG_Q  # round(T / Q)


def params_id(slots: int) -> str:
    data = b"crenel.tfhe.params.2\0"
    raising, approx, ternary = 1, 1, 0
    numbers = [LWE_DIM, GLWE_DIM, slots, LOG_N, LOG_Q, raising, approx, ternary, 1 << LOG_BIG_Q, 0, 1]
    numbers += [LOG_SWITCH, LOG_BASE, 4, 0, len(PRIMES), *PRIMES]
    data += struct.pack(f"<{len(numbers)}Q", *numbers)
    max_norm2, security_bits, paper, name = 2.0, 0.0, 0, b"toy-raising"
    data += struct.pack("<ddQQ", max_norm2, security_bits, paper, len(name)) + name
    return hashlib.sha256(data).hexdigest()[:32]


def error() -> int:
    """Centred binomial of 21 pairs of coins, as the library's clients."""
    return rng.getrandbits(21).bit_count() - rng.getrandbits(21).bit_count()


def lwe_mask(seed: bytes, row: int, words: int, log_modulus: int) -> list[int]:
    blocks = range(-(-words // 16))
    stream = b"".join(chacha20_block(seed, block, (1, row, 0)) for block in blocks)
    return [w % (1 << log_modulus) for w in struct.unpack(f"<{words}I", stream[: 4 * words])]


def lwe_body(mask: list[int], secret: list[int], message: int, log_modulus: int) -> int:
    return (sum(a * s for a, s in zip(mask, secret, strict=True)) + message + error()) % (1 << log_modulus)


def mask_polynomial(seed: bytes, serial: int) -> list[list[int]]:
    """[prime][N] residues."""
    out = []
    for position, prime in enumerate(PRIMES):
        data = b"".join(
            chacha20_block(seed, position * (N // 4) + block, (1, serial, 0)) for block in range(N // 4)
        )
        out.append([int.from_bytes(data[16 * i : 16 * i + 16], "little") % prime for i in range(N)])
    return out


def negacyclic(a: list[int], s: list[int], prime: int) -> list[int]:
    out = [0] * N
    for i, x in enumerate(a):
        for j, y in enumerate(s):
            sign = 1 if i + j < N else -1
            out[(i + j) % N] += sign * x * y
    return [v % prime for v in out]


def bootstrap_bodies(seed: bytes, lwe: list[int], glwe: list[list[int]]) -> list[int]:
    """[n, keys, digits, k + 1, 1, primes, N]: row t < k adds -m S_t, row k adds m, times round(T / Q)."""
    words, row = [], 0
    for s in lwe:
        for wanted in (1, -1):
            m = int(s == wanted) * WEIGHT
            for t in range(GLWE_DIM + 1):
                masks = [mask_polynomial(seed, row * GLWE_DIM + i) for i in range(GLWE_DIM)]
                message = [-m * x for x in glwe[t]] if t < GLWE_DIM else [m] + [0] * (N - 1)
                noise = [error() for _ in range(N)]
                for position, prime in enumerate(PRIMES):
                    body = [(m0 + e) % prime for m0, e in zip(message, noise, strict=True)]
                    for mask, key in zip(masks, glwe, strict=True):
                        product = negacyclic(mask[position], key, prime)
                        body = [(b + x) % prime for b, x in zip(body, product, strict=True)]
                    words += body
                row += 1
    return words


def switch_bodies(seed: bytes, lwe: list[int], glwe: list[list[int]]) -> list[int]:
    """[k N, digits, base - 1, 1]: v base^d times the word of the extracted secret."""
    words, row = [], 0
    for word in (x for poly in glwe for x in poly):
        for digit in range(SWITCH_DIGITS):
            for value in range(1, 1 << LOG_BASE):
                mask = lwe_mask(seed, row, LWE_DIM, LOG_SWITCH)
                words.append(lwe_body(mask, lwe, word * value << (LOG_BASE * digit), LOG_SWITCH))
                row += 1
    return words


def u32s(shape: list[int], words: list[int]) -> tuple:
    assert math.prod(shape) == len(words)
    return "U32", shape, struct.pack(f"<{len(words)}I", *words)


def u8s(data: bytes) -> tuple:
    return "U8", [len(data)], data


def shape_of(size: int) -> tuple:
    return "U64", [1], struct.pack("<Q", size)


def array(bits: list[int], secrets: list[list[int]], seed: bytes | None) -> dict[str, tuple]:
    """Rows of len(secrets) bits under one mask, at m q / 4; the last row is filled up with 0."""
    slots = len(secrets)
    rows = [bits[i : i + slots] + [0] * (i + slots - len(bits)) for i in range(0, len(bits), slots)]
    words = []
    for y, messages in enumerate(rows):
        mask = lwe_mask(seed, y, LWE_DIM, LOG_Q) if seed else [rng.getrandbits(LOG_Q) for _ in range(LWE_DIM)]
        # errors of a few units would leave no room modulo 2^7: the phases here are exact
        bodies = [
            (sum(a * s for a, s in zip(mask, key, strict=True)) + (m << LOG_Q >> 2)) % (1 << LOG_Q)
            for key, m in zip(secrets, messages, strict=True)
        ]
        words += bodies if seed else mask + bodies
    shape = {"shape": shape_of(len(bits))}
    if seed:
        return {**shape, "bodies": u32s([len(rows), slots], words), "seed": u8s(seed)}
    return {**shape, "rows": u32s([len(rows), LWE_DIM + slots], words)}


def packed_residues(shape: list[int], words: list[int]) -> tuple[str, list[int], bytes]:
    """Each in the bits of the largest prime, lowest bit of a byte first; a polynomial is whole bytes."""
    bits = max(PRIMES).bit_length()
    number = sum(word << (bits * i) for i, word in enumerate(words))
    return "U8", [*shape[:-1], N * bits // 8], number.to_bytes(len(words) * bits // 8, "little")


def main() -> None:
    lwe = [rng.choice((-1, 0, 1)) for _ in range(LWE_DIM)]
    other = [rng.choice((-1, 0, 1)) for _ in range(LWE_DIM)]
    glwe = [[rng.choice((-1, 0, 0, 1)) for _ in range(N)] for _ in range(GLWE_DIM)]
    left, right, packed = ([rng.getrandbits(1) for _ in range(size)] for size in (12, 12, 5))
    about = {"element": "bool", "plain_modulus": "4", "log_modulus": str(LOG_Q), "noise_variance": "0"}
    seeds = [rng.randbytes(32) for _ in range(4)]

    def ciphertext(bits: list[int], secrets: list[list[int]], seed: bytes | None) -> bytes:
        owner = OWNED if len(secrets) == 1 else {"secret_key_id": bytes(range(16, 32)).hex()}
        metadata = {**about, **owner, "size": str(len(bits)), "seeded": "true" if seed else "false"}
        return safetensors("tfhe_ciphertext", metadata, array(bits, secrets, seed), params_id(len(secrets)))

    shape = [LWE_DIM, 2, 1, GLWE_DIM + 1, 1, len(PRIMES), N]
    bodies = bootstrap_bodies(seeds[0], lwe, glwe)
    switch = u32s([GLWE_DIM * N, SWITCH_DIGITS, (1 << LOG_BASE) - 1, 1], switch_bodies(seeds[1], lwe, glwe))
    coefficients = bytes(x % 256 for x in lwe + [x for poly in glwe for x in poly])
    known = [0] * (2 * LWE_DIM + 2)  # rows of masks 0: 1 and 0 at q / 4
    known[LWE_DIM] = 1 << LOG_Q >> 2

    def key_file(form: str, bodies: tuple[str, list[int], bytes]) -> bytes:
        tensors = {
            f"bootstrap/{form}": bodies,
            "bootstrap/seed": u8s(seeds[0]),
            "key_switch/b": switch,
            "key_switch/seed": u8s(seeds[1]),
        }
        return safetensors("tfhe_evaluation_keys", {**OWNED, "packing": "false"}, tensors, params_id(1))

    files = {
        "tfhe_secret_key": safetensors(
            "tfhe_secret_key",
            OWNED,
            {"coefficients": ("U8", [1, len(coefficients)], coefficients)},
            params_id(1),
        ),
        "tfhe_known": safetensors(
            "tfhe_ciphertext",
            {**about, "secret_key_id": "none", "size": "2", "seeded": "false"},
            {"shape": shape_of(2), "rows": u32s([2, LWE_DIM + 1], known)},
            params_id(1),
        ),
        "tfhe_left": ciphertext(left, [lwe], None),
        "tfhe_right_seeded": ciphertext(right, [lwe], seeds[2]),
        "tfhe_packed_seeded": ciphertext(packed, [lwe, other], seeds[3]),
        "tfhe_evaluation_keys": key_file("packed", packed_residues(shape, bodies)),
        "tfhe_evaluation_keys_words": key_file("b", u32s(shape, bodies)),  # as they were written before
    }
    folder = pathlib.Path(__file__).parent
    for name, data in files.items():
        (folder / f"{name}.safetensors").write_bytes(data)
    numbers = {"lwe": lwe, "other": other, "left": left, "right": right, "packed": packed}
    lines = "".join(f"{name} {' '.join(map(str, values))}\n" for name, values in numbers.items())
    (folder / "tfhe_expected.txt").write_text(lines)


if __name__ == "__main__":
    main()
