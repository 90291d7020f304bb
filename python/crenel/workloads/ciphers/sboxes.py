"""The S-boxes of AES and PRESENT as circuits of gates with two inputs (NOT is free under TFHE).

AES: inversion in GF(2^8) by the tower GF(((2^2)^2)^2) in normal bases. For x = a Y^16 + b Y with a, b in
GF(2^4) and trace Y + Y^16 = 1, the norm is x^17 = a b + Y^17 (a + b)^2, in GF(2^4), and the inverse is
x^16 / x^17 = (b / norm) Y^16 + (a / norm) Y. Products in GF(2^4) are Karatsuba's, nine ANDs each, and every
linear layer is one matrix whose common sums are shared greedily (Paar).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from functools import cache

from crenel.workloads.ciphers.circuit import Bits

# Gates on wires 0 to 3, each result the next wire: found by exhaustive search for one output after the other,
# up to six gates at a time, over many orders of the outputs. Inversion in GF(2^4) in the basis _BASIS_16.
INVERSE_GATES = "0&3 1|4 0&~2 5^6 1&~2 0^7 3|9 ~8&10 1|9 3^4 12&~13 4^10 2|14 15^16"
INVERSE_OUTPUTS = "17 11 7 14"
PRESENT_GATES = "~1&2 3^4 0^5 1^2 0|7 ~2&8 0&7 3|10 9^11 8^12 6&7 1^13 14^15 ~12&16 5^17"
PRESENT_OUTPUTS = "6 16 ~18 ~12"

PRESENT_TABLE = (0xC, 5, 6, 0xB, 9, 0, 0xA, 0xD, 3, 0xE, 0xF, 8, 4, 7, 1, 2)
_TIES = 2  # seed of the choice among equally good sums: 120 gates, the fewest of seeds 0 to 99


def present_sbox(x: Sequence[Bits]) -> list[Bits]:
    """The S-box of PRESENT on four arrays of bits, least significant first."""
    return straight_line(PRESENT_GATES, PRESENT_OUTPUTS, x)


def aes_sbox(x: Sequence[Bits]) -> list[Bits]:
    """SubBytes on eight arrays of bits, least significant first."""
    top, middle, forms, bottom = _matrices(_TIES)
    sums = _linear(top, x)
    a, b, scaled = sums[:9], sums[9:18], sums[18:]
    norm = _linear(middle, [u & v for u, v in zip(a, b, strict=True)] + scaled)
    inverse = _linear(forms, straight_line(INVERSE_GATES, INVERSE_OUTPUTS, norm))
    y = _linear(bottom, [u & v for half in (a, b) for u, v in zip(half, inverse, strict=True)])
    return [~bit if 0x63 >> i & 1 else bit for i, bit in enumerate(y)]


def straight_line(gates: str, outputs: str, inputs: Sequence[Bits]) -> list[Bits]:
    """Evaluates a list of gates such as ``0&~2``: wire 0 AND NOT wire 2."""
    wires = list(inputs)

    def wire(name: str) -> Bits:
        return ~wires[int(name[1:])] if name[0] == "~" else wires[int(name)]

    for gate in gates.split():
        kind = next(c for c in "&|^" if c in gate)
        a, b = map(wire, gate.split(kind))
        wires.append(a & b if kind == "&" else a | b if kind == "|" else a ^ b)
    return [wire(name) for name in outputs.split()]


# ---- GF(2^8) modulo X^8 + X^4 + X^3 + X + 1 ----------------------------------------------------------------


def multiply(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def power(a: int, exponent: int) -> int:
    result = 1
    for _ in range(exponent):
        result = multiply(result, a)
    return result


def affine(x: int) -> int:
    """The linear part of SubBytes' last step."""
    return x ^ _left(x, 1) ^ _left(x, 2) ^ _left(x, 3) ^ _left(x, 4)


def _left(x: int, count: int) -> int:
    return (x << count | x >> (8 - count)) & 0xFF


# Y, Z, W have trace 1 over GF(2^4), GF(2^2), GF(2): the choice with the fewest gates among all 128.
_Y, _Z, _W = 254, 92, 188
_BASIS_4 = (_W, power(_W, 2))
_BASIS_16 = tuple(multiply(z, w) for z in (_Z, power(_Z, 4)) for w in _BASIS_4)
_BASIS = tuple(multiply(y, b) for y in (_Y, power(_Y, 16)) for b in _BASIS_16)
# Karatsuba in normal bases: a product is the sum of its nine partial products times these.
_PARTS = tuple(multiply(z, w) for z in (_Z, power(_Z, 4), power(_Z, 5)) for w in (*_BASIS_4, power(_W, 3)))


def _coordinates(basis: Sequence[int]) -> dict[int, int]:
    """Coordinates of every element of the span, bit i for basis[i]."""
    return {_sum(b for i, b in enumerate(basis) if c >> i & 1): c for c in range(1 << len(basis))}


def _sum(elements: Iterable[int]) -> int:
    total = 0
    for element in elements:
        total ^= element
    return total


def _transpose(columns: Sequence[int], rows: int) -> list[int]:
    return [sum((c >> i & 1) << j for j, c in enumerate(columns)) for i in range(rows)]


def _karatsuba(rows: Sequence[int]) -> list[int]:
    """The nine linear forms of an element with these coordinates in _BASIS_16."""
    low, high = rows[:2], rows[2:]
    pairs = (low, high, [low[0] ^ high[0], low[1] ^ high[1]])
    return [form for a, b in pairs for form in (a, b, a ^ b)]


@cache
def _matrices(seed: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    rng = random.Random(seed)
    coordinates, small = _coordinates(_BASIS), _coordinates(_BASIS_16)
    x = _transpose([coordinates[1 << j] for j in range(8)], 8)
    b, a = x[:4], x[4:]
    norm = power(_Y, 17)
    square = _transpose([small[multiply(norm, multiply(e, e))] for e in _BASIS_16], 4)
    scaled = [_sum(a[j] ^ b[j] for j in range(4) if row >> j & 1) for row in square]
    product = _transpose([small[e] for e in _PARTS], 4)
    outputs = [affine(multiply(y, e)) for y in (_Y, power(_Y, 16)) for e in _PARTS]
    return (
        _share(_karatsuba(a) + _karatsuba(b) + scaled, 8, rng),
        _share([row | 1 << (9 + i) for i, row in enumerate(product)], 13, rng),
        _share(_karatsuba([1, 2, 4, 8]), 4, rng),
        _share(_transpose(outputs, 8), 18, rng),
    )


# ---- Linear layers -----------------------------------------------------------------------------------------


def _share(rows: Sequence[int], inputs: int, rng: random.Random) -> tuple[tuple[int, int], ...]:
    """Sums of pairs, one after the other, then one pair (wire, wire) a row that names its result twice.

    Each time the pair that occurs in most rows is made a wire of its own.
    """
    rows, wires, program = list(rows), inputs, []
    while any(r.bit_count() > 1 for r in rows):
        found: dict[tuple[int, int], int] = {}
        for row in rows:
            bits = [i for i in range(wires) if row >> i & 1]
            for pair in itertools.combinations(bits, 2):
                found[pair] = found.get(pair, 0) + 1
        most = max(found.values())
        pair = rng.choice([p for p, count in found.items() if count == most])
        mask = 1 << pair[0] | 1 << pair[1]
        rows = [r & ~mask | 1 << wires if r & mask == mask else r for r in rows]
        program.append(pair)
        wires += 1
    return (*program, *((r.bit_length() - 1, r.bit_length() - 1) for r in rows))


def _linear(program: Sequence[tuple[int, int]], inputs: Sequence[Bits]) -> list[Bits]:
    wires, results = list(inputs), []
    for i, j in program:
        if i == j:
            results.append(wires[i])
        else:
            wires.append(wires[i] ^ wires[j])
    return results
