"""PRESENT-80 on arrays of bits: encrypted plaintext, encrypted key, many blocks side by side.

The state is four planes: plane j holds bits 4 i + j of the block, i = 0 to 15, each for all blocks (element
i blocks + block), so that the sixteen S-boxes of a round are one array operation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crenel.workloads.ciphers.circuit import Bits, Gates, concatenate, count_gates, evaluate, rotate
from crenel.workloads.ciphers.sboxes import present_sbox

ROUNDS = 31
BLOCK_BITS, KEY_BITS = 64, 80
NAME = "PRESENT-80"
# Bogdanov et al., CHES 2007, appendix I.
TEST_KEY, TEST_PLAINTEXT = bytes(10), bytes(8)
TEST_CIPHERTEXT = bytes.fromhex("5579c1387b228445")


def to_bits(blocks: list[bytes]) -> np.ndarray:
    """Blocks of equal length, most significant byte first, as bools [bits, len(blocks)], bit 0 first."""
    data = np.frombuffer(b"".join(blocks), dtype=np.uint8).reshape(len(blocks), -1)
    return np.unpackbits(data, axis=1)[:, ::-1].T.astype(bool)


def from_bits(bits: np.ndarray) -> list[bytes]:
    """What `to_bits` was given."""
    return [row.tobytes() for row in np.packbits(bits.T[:, ::-1], axis=1)]


def encrypt(
    plaintext: object,
    key: object,
    gates: Gates,
    done: Callable[[int], None] | None = None,
    rounds: int = ROUNDS,
) -> object:
    """Ciphertext bits [64 blocks] from [64 blocks] of plaintext and [80 blocks] of key, bit 0 first.

    rounds : 1 to 31; fewer make a shorter cipher, which ends with the addition of a round key as ever
    """
    state, register = Bits.of(plaintext), Bits.of(key)
    for number in range(1, rounds + 1):
        state, register = _round(state, register, number)
        evaluate([state, register], gates, done)
    return evaluate([state ^ _round_key(register)], gates, done)[0]


def gate_count(blocks: int = 1, rounds: int = ROUNDS) -> int:
    """Gates that `encrypt` computes."""
    state, register = Bits.of(range(64 * blocks)), Bits.of(range(80 * blocks))
    for number in range(1, rounds + 1):
        state, register = _round(state, register, number)
    return count_gates([state ^ _round_key(register), register])


def _round_key(register: Bits) -> Bits:
    blocks = len(register) // 80
    return register[16 * blocks :]


def _round(state: Bits, register: Bits, number: int) -> tuple[Bits, Bits]:
    blocks = len(register) // 80
    mixed = state ^ _round_key(register)
    register = rotate(register, 19 * blocks)  # left by 61 places
    planes = [concatenate([mixed[i * blocks : (i + 1) * blocks] for i in range(j, 64, 4)]) for j in range(4)]
    # The key schedule's S-box, on bits 79 to 76, beside the sixteen of the round.
    top = [register[(76 + j) * blocks : (77 + j) * blocks] for j in range(4)]
    planes = present_sbox([concatenate([p, t]) for p, t in zip(planes, top, strict=True)])
    # Bit i goes to 16 i mod 63: plane j's sixteen bits come to lie side by side, from 16 j on.
    state = concatenate([p[: 16 * blocks] for p in planes])
    counter = [register[i * blocks : (i + 1) * blocks] for i in range(15, 20)]
    counter = [~bit if number >> i & 1 else bit for i, bit in enumerate(counter)]
    rest = register[20 * blocks : 76 * blocks]
    return state, concatenate([register[: 15 * blocks], *counter, rest, *(p[16 * blocks :] for p in planes)])
