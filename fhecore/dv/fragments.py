"""Golden fragments of the instruction FHEC.16816 (m16 n8 k16): lane -> element maps, constants, fhe_sync.

A fragment is 32 lanes x registers of 32 bits: `fragment[register][lane]`. One register over all lanes is one
beat of the register file. The maps are those of PTX's m16n8k16 for 16-bit elements, with one register an
element: g = lane >> 2, t = lane & 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fhecore.dv.golden import Column, Matrix, Tile, tile

LANES = 32
Fragment = list[list[int]]
Position = Callable[[int, int], tuple[int, int]]


def position_a(register: int, lane: int) -> tuple[int, int]:
    """(row, k) of A 16 x 16, registers 0..7."""
    return (lane >> 2) + 8 * (register >> 1 & 1), 2 * (lane & 3) + (register & 1) + 8 * (register >> 2)


def position_b(register: int, lane: int) -> tuple[int, int]:
    """(k, column) of B 16 x 8, registers 0..3."""
    return 2 * (lane & 3) + (register & 1) + 8 * (register >> 1), lane >> 2


def position_cd(register: int, lane: int) -> tuple[int, int]:
    """(row, column) of C and D 16 x 8, registers 0..3."""
    return (lane >> 2) + 8 * (register >> 1), 2 * (lane & 3) + (register & 1)


def _pack(matrix: Matrix, registers: int, position: Position) -> Fragment:
    spots = [[position(register, lane) for lane in range(LANES)] for register in range(registers)]
    return [[matrix[row][col] for row, col in register] for register in spots]


def _unpack(fragment: Sequence[Sequence[int]], rows: int, cols: int, position: Position) -> list[list[int]]:
    matrix = [[0] * cols for _ in range(rows)]
    for register, beat in enumerate(fragment):
        for lane, word in enumerate(beat):
            row, col = position(register, lane)
            matrix[row][col] = word
    return matrix


def pack_a(matrix: Matrix) -> Fragment:
    return _pack(matrix, 8, position_a)


def pack_b(matrix: Matrix) -> Fragment:
    return _pack(matrix, 4, position_b)


def pack_cd(matrix: Matrix) -> Fragment:
    return _pack(matrix, 4, position_cd)


def unpack_a(fragment: Fragment) -> list[list[int]]:
    return _unpack(fragment, 16, 16, position_a)


def unpack_b(fragment: Fragment) -> list[list[int]]:
    return _unpack(fragment, 16, 8, position_b)


def unpack_cd(fragment: Fragment) -> list[list[int]]:
    return _unpack(fragment, 16, 8, position_cd)


def encode_constants(columns: Sequence[Column]) -> list[int]:
    """One register: lane l holds word l >> 3 of column l & 7. Words: q'; mu[31:0]; mu[36:32] | s << 8; 0."""
    words = ([c.shifted for c in columns], [c.mu & 0xFFFFFFFF for c in columns])
    high = [c.mu >> 32 | c.shift << 8 for c in columns]
    return [*words[0], *words[1], *high, *[0] * 8]


def decode_constants(beat: Sequence[int]) -> tuple[list[Column], int]:
    """Columns and the bits of those whose words the unit refuses (reserved bits, ranges)."""
    columns, fault = [], 0
    for j in range(8):
        shifted, low, high, zero = (beat[j + 8 * word] for word in range(4))
        column = Column(shifted, low | (high & 0x1F) << 32, high >> 8 & 0x1F)
        columns.append(column)
        if high & ~0x1F1F or zero or not column.valid():
            fault |= 1 << j
    return columns, fault


def fhec(a: Fragment, b: Fragment, c: Fragment | None, constants: Sequence[int]) -> tuple[Fragment, int]:
    """FHEC.16816.u32: D fragment and fault bits of the 8 columns. c None is RZ."""
    columns, refused = decode_constants(constants)
    result: Tile = tile(unpack_a(a), unpack_b(b), unpack_cd(c) if c is not None else None, columns)
    fault = result.fault | refused
    d = [[0 if fault >> j & 1 else word for j, word in enumerate(row)] for row in result.d]
    return pack_cd(d), fault


def fhe_sync(
    a: Fragment,
    b: Sequence[Fragment],
    c: Sequence[Fragment] | None,
    constants: Sequence[Sequence[int]],
) -> tuple[list[Fragment], int]:
    """m16n16k16 as two FHEC.16816: b, c, d are (left, right) halves of 8 columns. `constants` has one set for
    both halves or one for each. Fault bits: left in 0..7, right in 8..15."""
    sets = [constants[0], constants[-1]]
    halves = [fhec(a, b[h], c[h] if c is not None else None, sets[h]) for h in range(2)]
    return [d for d, _ in halves], halves[0][1] | halves[1][1] << 8
