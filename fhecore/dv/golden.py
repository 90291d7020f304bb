"""Golden models of the unit's arithmetic: Python integers, straight from the definitions.

Nothing here shares code with the RTL, the C++ model or the library. Notation (fhecore/doc/verification.md):
W word bits; q modulus of a column; q' = q << s; mu = floor(2^(2W+1) / q'); A [R][K], B [K][C], C, D [R][C].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Matrix = Sequence[Sequence[int]]


class GoldenError(ValueError):
    """An argument outside a model's domain; the text names it, its value and the range."""


def check_range(name: str, value: int, low: int, high: int) -> None:
    """GoldenError unless low <= value < high."""
    if not low <= value < high:
        raise GoldenError(f"{name} = {value}: expected {low} <= {name} < {high}")


@dataclass(frozen=True)
class Column:
    """Constants of one column. `of` makes the consistent ones; the plain constructor takes any words, as the
    unit does."""

    shifted: int  # q'
    mu: int
    shift: int  # s
    width: int = 32  # W

    @classmethod
    def of(cls, q: int, width: int = 32) -> Column:
        """Constants of modulus q in [1, 2^W)."""
        check_range("width", width, 6, 33)
        check_range("q", q, 1, 1 << width)
        shift = 0 if q > 1 << (width - 4) else width - 2 - q.bit_length()
        shifted = q << shift
        return cls(shifted, (1 << (2 * width + 1)) // shifted, shift, width)

    @property
    def q(self) -> int:
        return self.shifted >> self.shift

    def valid(self) -> bool:
        """What the hardware checks: ranges of q', mu and s, not that they belong together."""
        w = self.width
        ranges = (
            (self.shifted, (1 << (w - 4)) + 1, 1 << w),
            (self.mu, 0, 1 << (w + 5)),
            (self.shift, 0, w - 1),
        )
        return all(low <= value < high for value, low, high in ranges)


@dataclass(frozen=True)
class Reduction:
    """Barrett reduction of one product and how far its estimate was off."""

    product: int  # p
    quotient: int  # the estimate
    error: int  # floor(p / q') - estimate: 0 or 1 is what the unit can correct
    rest: int  # p - estimate * q', not wrapped
    canonical: int  # p mod q'


def barrett(p: int, shifted: int, mu: int, width: int = 32) -> Reduction:
    """Fixed-shift Barrett: estimate = ((p >> (W-5)) * mu) >> (W+6), for p < 2^(2W) ([Barrett86], with shifts
    that do not depend on q). The error bound needs mu = floor(2^(2W+1) / q') and q' > 2^(W-4)."""
    check_range("p", p, 0, 1 << (2 * width))
    check_range("q'", shifted, 1, 1 << width)
    quotient = ((p >> (width - 5)) * mu) >> (width + 6)
    return Reduction(p, quotient, p // shifted - quotient, p - quotient * shifted, p % shifted)


def element(steps: Sequence[tuple[int, int]], c: int, column: Column) -> int:
    """One processing element over a tile: (sum a*b + c) mod q', any W-bit a, b, c."""
    for word in (c, *(w for step in steps for w in step)):
        check_range("operand", word, 0, 1 << column.width)
    return (sum(a * b for a, b in steps) + c) % column.shifted


def element_stepwise(steps: Sequence[tuple[int, int]], c: int, column: Column) -> int:
    """The same through the recurrence of the hardware, every intermediate range checked."""
    acc = 0
    for k, (a, b) in enumerate(steps):
        reduced = barrett(a * b + (c if k == 0 else 0), column.shifted, column.mu, column.width)
        check_range("r2", reduced.rest, 0, 2 * column.shifted)
        total = acc + reduced.rest
        acc = total - column.shifted * (total // column.shifted)
        check_range("subtractions", total // column.shifted, 0, 3)
    return acc


@dataclass(frozen=True)
class Tile:
    """Result of a tile: D [R][C], fault bit of column j in bit j."""

    d: list[list[int]]
    fault: int


def tile(a: Matrix, b: Matrix, c: Matrix | None, columns: Sequence[Column]) -> Tile:
    """D[i][j] = (sum_k A[i][k] B[k][j] + C[i][j]) mod q_j, canonical; a faulty column is zero.

    Faults: constants out of range, or an operand of B or C that does not fit W bits once shifted by s.
    """
    rows, depth = len(a), len(b)
    d = [[0] * len(columns) for _ in range(rows)]
    fault = 0
    for j, column in enumerate(columns):
        addends = [c[i][j] if c is not None else 0 for i in range(rows)]
        entering = [b[k][j] for k in range(depth)] + addends
        if not column.valid() or any(word << column.shift >> column.width for word in entering):
            fault |= 1 << j
            continue
        for i in range(rows):
            steps = [(a[i][k], b[k][j] << column.shift) for k in range(depth)]
            d[i][j] = element(steps, addends[i] << column.shift, column) >> column.shift
    return Tile(d, fault)


def matmul(a: Matrix, b: Matrix, c: Matrix | None, moduli: Sequence[int]) -> list[list[int]]:
    """The mathematical meaning of `tile`, without shifts or faults; the modulus belongs to the column."""
    return [
        [
            (sum(x * b[k][j] for k, x in enumerate(row)) + (c[i][j] if c is not None else 0)) % q
            for j, q in enumerate(moduli)
        ]
        for i, row in enumerate(a)
    ]


# -- transforms -------------------------------------------------------------------------------------------


def ntt(a: Sequence[int], psi: int, q: int) -> list[int]:
    """Negacyclic transform by definition, O(N^2), natural order: X[k] = sum_n a[n] psi^((2k+1) n) mod q.
    psi is a primitive 2N-th root of unity mod the prime q."""
    size = len(a)
    check_root(psi, q, size)
    powers = [pow(psi, e, q) for e in range(2 * size)]
    return [sum(x * powers[(2 * k + 1) * n % (2 * size)] for n, x in enumerate(a)) % q for k in range(size)]


def intt(x: Sequence[int], psi: int, q: int) -> list[int]:
    """Inverse of `ntt`, by definition."""
    size = len(x)
    check_root(psi, q, size)
    inverse = pow(size, -1, q)
    powers = [pow(psi, -e, q) for e in range(2 * size)]
    return [
        inverse * sum(v * powers[(2 * k + 1) * n % (2 * size)] for k, v in enumerate(x)) % q
        for n in range(size)
    ]


def check_root(psi: int, q: int, size: int) -> None:
    """GoldenError unless psi^N = -1 mod q, which for N a power of two means order 2N."""
    if size < 1 or size & (size - 1):
        raise GoldenError(f"transform length {size}: expected a power of two")
    if pow(psi, size, q) != q - 1:
        raise GoldenError(f"psi = {psi}: psi^{size} mod {q} = {pow(psi, size, q)}, expected {q - 1}")


def negacyclic_product(a: Sequence[int], b: Sequence[int], q: int) -> list[int]:
    """a * b mod (X^N + 1, q), schoolbook."""
    size = len(a)
    out = [0] * size
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            sign = 1 if i + j < size else -1
            out[(i + j) % size] += sign * x * y
    return [v % q for v in out]


@dataclass(frozen=True)
class Conversion:
    """Result of a base conversion of one coefficient."""

    residues: list[int]  # mod q_j
    value: int  # the x in [0, P) that the source residues mean (CRT)
    overshoot: int  # e: the residues are those of x + e P, 0 <= e < number of source primes


def base_convert(residues: Sequence[int], source: Sequence[int], target: Sequence[int]) -> Conversion:
    """Fast base conversion from the CRT: sum_i [x_i Phat_i^-1]_{p_i} Phat_i = x + e P ([HPS19], without
    the correction of e), so the residues are (x + e P) mod q_j. Source primes are coprime."""
    product = math.prod(source)
    total = 0
    for residue, p in zip(residues, source, strict=True):
        cofactor = product // p
        total += residue * pow(cofactor, -1, p) % p * cofactor
    return Conversion([total % q for q in target], total % product, total // product)
