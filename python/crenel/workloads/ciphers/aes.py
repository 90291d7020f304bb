"""AES-128 on arrays of bits: encrypted plaintext, encrypted key, many blocks side by side.

The state is eight planes, one a bit of a byte, least significant first. A plane holds 16 bytes row by
row, each for all blocks: element (4 row + column) blocks + block. ShiftRows and RotWord are then slices, and
a gate on a plane is 16 gates a block. The key schedule is computed on encrypted bits too, beside the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crenel.workloads.ciphers.circuit import Bits, Gates, concatenate, count_gates, evaluate, rotate
from crenel.workloads.ciphers.sboxes import aes_sbox

ROUNDS = 10
BLOCK_BITS = KEY_BITS = 128
NAME = "AES-128"
# FIPS-197, appendix C.1.
TEST_KEY = bytes(range(16))
TEST_PLAINTEXT = bytes(17 * i for i in range(16))
TEST_CIPHERTEXT = bytes.fromhex("69c4e0d86a7b0430d8cdb78070b4c55a")

Planes = list[Bits]


def to_bits(blocks: list[bytes]) -> np.ndarray:
    """Blocks of 16 bytes as bools [8, 16, len(blocks)], the layout of the planes."""
    data = np.frombuffer(b"".join(blocks), dtype=np.uint8).reshape(-1, 4, 4)  # block, column, row
    rows = data.transpose(2, 1, 0).reshape(16, -1)
    return (rows >> np.arange(8, dtype=np.uint8)[:, None, None] & 1).astype(bool)


def from_bits(bits: np.ndarray) -> list[bytes]:
    """What `to_bits` was given."""
    rows = (
        bits.reshape(8, 4, 4, -1).astype(np.uint8) << np.arange(8, dtype=np.uint8)[:, None, None, None]
    ).sum(axis=0, dtype=np.uint8)
    return [block.tobytes() for block in rows.transpose(2, 1, 0).reshape(-1, 16)]


def encrypt(
    plaintext: list[Any],
    key: list[Any],
    gates: Gates,
    done: Callable[[int], None] | None = None,
    rounds: int = ROUNDS,
) -> list[Any]:
    """Eight planes of the ciphertext from those of plaintext and key (arrays that `gates` takes).

    rounds : 1 to 10; fewer than 10 make a shorter cipher, the last one without MixColumns as ever
    """
    state, round_key = [Bits.of(p) for p in plaintext], [Bits.of(p) for p in key]
    state = _xor(state, round_key)
    for number in range(1, rounds + 1):
        state, round_key = _round(state, round_key, number, number == rounds)
        evaluate([*state, *round_key], gates, done)
    return [plane.value for plane in state]


def gate_count(blocks: int = 1, rounds: int = ROUNDS) -> int:
    """Gates that `encrypt` computes."""
    planes = [Bits.of(range(16 * blocks)) for _ in range(8)]
    state, key = _xor(planes, planes), planes
    for number in range(1, rounds + 1):
        state, key = _round(state, key, number, number == rounds)
    return count_gates([*state, *key])


def _round(state: Planes, key: Planes, number: int, last: bool) -> tuple[Planes, Planes]:
    blocks = len(state[0]) // 16
    word = [_rotated_column(plane, blocks) for plane in key]
    together = [concatenate([s, w]) for s, w in zip(state, word, strict=True)]
    substituted = aes_sbox(together)  # the round's 16 bytes and the key schedule's 4
    state = [_shift_rows(plane[: 16 * blocks], blocks) for plane in substituted]
    key = _next_key(key, [plane[16 * blocks :] for plane in substituted], number, blocks)
    if last:
        return _xor(state, key), key
    # Column (a0, a1, a2, a3): row 0 becomes 2 (a0 + a1) + a1 + (a2 + a3), the others the same in turn.
    following = [rotate(plane, 4 * blocks) for plane in state]
    sums = _xor(state, following)
    opposite = [rotate(plane, 8 * blocks) for plane in sums]
    doubled = [sums[7], *(sums[i] ^ sums[7] if i + 1 in (1, 3, 4) else sums[i] for i in range(7))]
    return _xor(_xor(following, key), _xor(opposite, doubled)), key


def _xor(a: Planes, b: Planes) -> Planes:
    return [x ^ y for x, y in zip(a, b, strict=True)]


def _shift_rows(plane: Bits, blocks: int) -> Bits:
    row = 4 * blocks
    return concatenate([rotate(plane[row * i : row * (i + 1)], i * blocks) for i in range(4)])


def _column(plane: Bits, column: int, blocks: int) -> Bits:
    starts = [(4 * row + column) * blocks for row in range(4)]
    return concatenate([plane[s : s + blocks] for s in starts])


def _rotated_column(plane: Bits, blocks: int) -> Bits:
    """RotWord of the last column."""
    return rotate(_column(plane, 3, blocks), blocks)


def _next_key(key: Planes, word: Planes, number: int, blocks: int) -> Planes:
    """The round key that follows; `word` is SubWord(RotWord(last column))."""
    constant = 1 << (number - 1) if number < 9 else (0x1B, 0x36)[number - 9]
    planes = []
    for bit, (plane, column) in enumerate(zip(key, word, strict=True)):
        if constant >> bit & 1:  # on row 0
            column = concatenate([~column[:blocks], column[blocks:]])
        columns = []
        for c in range(4):
            column = column ^ _column(plane, c, blocks)
            columns.append(column)
        rows = [columns[c][r * blocks : (r + 1) * blocks] for r in range(4) for c in range(4)]
        planes.append(concatenate(rows))
    return planes
