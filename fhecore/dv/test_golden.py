"""The golden models against each other and against definitions written a second way."""

from __future__ import annotations

import itertools

import pytest

from fhecore.dv import fragments, golden, stimulus
from fhecore.dv.golden import Column


def words(source, rows, cols, bound=1 << 32):
    return [[source.randrange(bound) for _ in range(cols)] for _ in range(rows)]


# -- constants and reduction ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [6, 7, 8])
def test_every_modulus_gives_valid_constants(width):
    for q in range(1, 1 << width):
        column = Column.of(q, width)
        assert column.valid() and column.q == q
        assert column.mu * column.shifted <= 1 << (2 * width + 1) < (column.mu + 1) * column.shifted
        if column.shift:
            assert 1 << (width - 3) <= column.shifted < 1 << (width - 2)


@pytest.mark.parametrize("q", [0, -1, 1 << 32])
def test_moduli_out_of_range_are_named(q):
    with pytest.raises(golden.GoldenError, match=f"q = {q}: expected 1 <= q"):
        Column.of(q)


def test_barrett_at_32_bits_is_off_by_at_most_one():
    source = stimulus.rng("barrett")
    seen = {0: 0, 1: 0}
    for _ in range(20000):
        column = Column.of(stimulus.any_shifted(source, 32))
        p = stimulus.adversarial_product(source, 32, column.shifted)
        reduced = golden.barrett(p, column.shifted, column.mu)
        seen[reduced.error] += 1  # KeyError: an error other than 0 or 1
        assert 0 <= reduced.rest < 2 * column.shifted and reduced.rest % column.shifted == reduced.canonical
    assert seen[0] and seen[1], "the stimulus never made the estimate wrong"


@pytest.mark.parametrize(
    ("what", "mu_less", "cut", "below"),
    [("mu one too small", 1, 0, 0), ("one more bit of p cut", 0, 1, 0), ("q' <= 2^(W-4)", 0, 0, 1)],
)
def test_each_premise_of_the_bound_is_needed(what, mu_less, cut, below):
    """Without any of the premises an error of 2 shows at W = 8: the accounting above can fail."""
    width, worst = 8, 0
    for q in range((1 << (width - 4 - below)) + 1, 1 << width):
        mu = (1 << (2 * width + 1)) // q - mu_less
        for p in range((1 << (2 * width)) - 1 - 4 * q, 1 << (2 * width)):
            estimate = ((p >> (width - 5 + cut)) * mu) >> (width + 6 - cut)
            worst = max(worst, p // q - estimate)
    assert worst == 2, what


def test_element_recurrence_is_the_sum():
    source = stimulus.rng("element")
    for width, depth in itertools.product((6, 8, 32), (1, 2, 16)):
        for _ in range(100):
            column = Column.of(stimulus.any_shifted(source, width), width)
            steps = [(stimulus.word(source, width, column.shifted),) * 2 for _ in range(depth)]
            c = stimulus.word(source, width, column.shifted)
            assert golden.element_stepwise(steps, c, column) == golden.element(steps, c, column)


# -- tiles and fragments ----------------------------------------------------------------------------------


def test_tile_is_the_matrix_product_for_large_and_small_moduli():
    source = stimulus.rng("tile")
    moduli = [1, 2, 3, 12289, (1 << 28) - 57, (1 << 28) + 3, (1 << 31) - 1, (1 << 32) - 5]
    a = words(source, 16, 16)
    b = [[source.randrange(q) for q in moduli] for _ in range(16)]
    c = [[source.randrange(q) for q in moduli] for _ in range(16)]
    columns = [Column.of(q) for q in moduli]
    for addend in (c, None):
        result = golden.tile(a, b, addend, columns)
        assert result.fault == 0 and result.d == golden.matmul(a, b, addend, moduli)


def test_faulty_columns_are_zero_and_the_others_unharmed():
    source = stimulus.rng("fault")
    q = (1 << 31) - 1
    good, small = Column.of(q), Column.of(12289)
    a, b = words(source, 4, 4), words(source, 4, 4, 12289)
    b[2][1] = 1 << (32 - small.shift)  # one bit too many for this column's shift
    bad = Column(1 << 28, good.mu, 0)
    wide = Column(good.shifted, good.mu, 31)
    result = golden.tile(a, b, None, [good, small, bad, wide])
    assert result.fault == 0b1110
    clean = golden.matmul(a, b, None, [q] * 4)
    assert [row[0] for row in result.d] == [row[0] for row in clean]
    assert all(row[1:] == [0, 0, 0] for row in result.d)


@pytest.mark.parametrize(
    ("position", "registers", "shape"),
    [
        (fragments.position_a, 8, (16, 16)),
        (fragments.position_b, 4, (16, 8)),
        (fragments.position_cd, 4, (16, 8)),
    ],
)
def test_maps_are_bijections(position, registers, shape):
    spots = {position(r, lane) for r in range(registers) for lane in range(32)}
    assert spots == set(itertools.product(range(shape[0]), range(shape[1])))


def test_maps_at_points_of_the_ptx_manual():
    """a0,a1: (g, 2t..); a2,a3: row + 8; a4..: k + 8. b0,b1: (2t.., g); b2: k + 8. c2: row + 8."""
    assert [fragments.position_a(r, 5) for r in (0, 1, 2, 4, 7)] == [(1, 2), (1, 3), (9, 2), (1, 10), (9, 11)]
    assert [fragments.position_b(r, 5) for r in range(4)] == [(2, 1), (3, 1), (10, 1), (11, 1)]
    assert [fragments.position_cd(r, 31) for r in range(4)] == [(7, 6), (7, 7), (15, 6), (15, 7)]


def test_constants_fragment_round_trip_and_reserved_bits():
    columns = [Column.of(q) for q in (1, 2, 65537, (1 << 28) + 1, (1 << 30) - 35, 7, (1 << 32) - 1, 1 << 31)]
    beat = fragments.encode_constants(columns)
    assert fragments.decode_constants(beat) == (columns, 0)
    for lane, bit, column in ((16, 5, 0), (18, 13, 2), (23, 31, 7), (25, 0, 1)):
        spoilt = list(beat)
        spoilt[lane] |= 1 << bit
        assert fragments.decode_constants(spoilt)[1] == 1 << column
    spoilt = list(beat)
    spoilt[3] = 1 << 28
    assert fragments.decode_constants(spoilt)[1] == 1 << 3


def test_fhe_sync_is_a_16_by_16_by_16_product():
    source = stimulus.rng("fhe_sync")
    moduli = [stimulus.random_shifted(source, 32) for _ in range(16)]
    a, b, c = words(source, 16, 16), words(source, 16, 16), words(source, 16, 16)
    halves = [slice(0, 8), slice(8, 16)]
    constants = [fragments.encode_constants([Column.of(q) for q in moduli[h]]) for h in halves]
    b_halves = [fragments.pack_b([row[h] for row in b]) for h in halves]
    c_halves = [fragments.pack_cd([row[h] for row in c]) for h in halves]
    d, fault = fragments.fhe_sync(fragments.pack_a(a), b_halves, c_halves, constants)
    left, right = (fragments.unpack_cd(x) for x in d)
    assert fault == 0
    assert [u + v for u, v in zip(left, right, strict=True)] == golden.matmul(a, b, c, moduli)


# -- transforms -------------------------------------------------------------------------------------------


def root(q, order):
    """An element of the given order (a power of two) mod the prime q."""
    return next(r for g in range(2, q) if pow(r := pow(g, (q - 1) // order, q), order // 2, q) == q - 1)


@pytest.mark.parametrize(("size", "q"), [(1, 3), (2, 5), (16, 12289), (64, 268435456 * 15 + 1), (64, 257)])
def test_ntt_product_is_the_schoolbook_negacyclic_product(size, q):
    if any(q % d == 0 for d in range(2, 70000) if d * d <= q):
        q = next(p for p in range(q + 2 * size, 1 << 32, 2 * size) if all(p % d for d in range(2, 65536)))
    source = stimulus.rng(f"ntt{size}")
    psi = root(q, 2 * size)
    a, b = ([source.randrange(q) for _ in range(size)] for _ in range(2))
    x, y = golden.ntt(a, psi, q), golden.ntt(b, psi, q)
    assert golden.intt(x, psi, q) == a
    assert x == [sum(v * pow(psi, (2 * k + 1) * n, q) for n, v in enumerate(a)) % q for k in range(size)]
    product = golden.intt([u * v % q for u, v in zip(x, y, strict=True)], psi, q)
    assert product == golden.negacyclic_product(a, b, q)


def test_a_wrong_root_is_refused():
    with pytest.raises(golden.GoldenError, match="expected 12288"):
        golden.ntt([0] * 16, root(12289, 16), 12289)
    with pytest.raises(golden.GoldenError, match="power of two"):
        golden.ntt([0] * 12, 3, 12289)


def test_256_points_from_two_rounds_of_tiles():
    """N = 16 x 16 through the unit: n = 16 n1 + n2, k = k1 + 16 k2; two products of 16 x 16 matrices with one
    element-wise multiplication between them give the transform by definition."""
    q, size = 12289, 256
    source = stimulus.rng("four step")
    psi = root(q, 2 * size)
    a = [source.randrange(q) for _ in range(size)]
    constants = [fragments.encode_constants([Column.of(q)] * 8)]

    def multiply(left, right):
        b = [fragments.pack_b([row[h] for row in right]) for h in (slice(0, 8), slice(8, 16))]
        d, fault = fragments.fhe_sync(fragments.pack_a(left), b, None, constants)
        assert fault == 0
        return [u + v for u, v in zip(*(fragments.unpack_cd(x) for x in d), strict=True)]

    span = range(16)
    inner = [[pow(psi, 16 * (2 * k1 + 1) * n1, q) for n1 in span] for k1 in span]
    outer = [[pow(psi, 32 * k2 * n2, q) for k2 in span] for n2 in span]
    rows = multiply(inner, [a[16 * n1 : 16 * n1 + 16] for n1 in span])
    turned = [[rows[k1][n2] * pow(psi, (2 * k1 + 1) * n2, q) % q for n2 in span] for k1 in span]
    result = multiply(turned, outer)
    flat = [result[k % 16][k // 16] for k in range(size)]
    assert flat == golden.ntt(a, psi, q)


# -- base conversion --------------------------------------------------------------------------------------


def test_base_conversion_overshoots_by_less_than_the_number_of_primes():
    source = stimulus.rng("bconv")
    primes = [268435459, 268435463, 268435493, 4294967291, 2147483647]
    target = [268435399, 4294967279, 3]
    product = 1
    for p in primes:
        product *= p
    seen = set()
    for trial in range(200):
        x = (0, 1, product - 1)[trial] if trial < 3 else source.randrange(product)
        got = golden.base_convert([x % p for p in primes], primes, target)
        assert got.value == x and 0 <= got.overshoot < len(primes)
        assert got.residues == [(x + got.overshoot * product) % q for q in target]
        seen.add(got.overshoot)
    assert len(seen) > 1


def test_base_conversion_as_a_tile_with_one_modulus_a_column():
    """Rows = coefficients, k = source primes (padded with zeros), columns = target moduli: residues of the
    source exceed most q_j, which the unit allows in A."""
    source = stimulus.rng("bconv tile")
    primes = [4294967291, 4294967279, 4294967231]
    target = [268435459, 2147483647, 12289]
    product = primes[0] * primes[1] * primes[2]
    xs = [source.randrange(product) for _ in range(16)]
    a = [[x % p * pow(product // p, -1, p) % p for p in primes] + [0] * 13 for x in xs]
    b = [[product // p % q for q in target] for p in primes] + [[0] * 3] * 13
    result = golden.tile(a, b, None, [Column.of(q) for q in target])
    assert result.d == [golden.base_convert([x % p for p in primes], primes, target).residues for x in xs]
