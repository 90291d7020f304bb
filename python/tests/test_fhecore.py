"""crenel.fhecore against Python integers and the definitions; counts; refusals."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import toy

import crenel
from crenel import ckks, fhecore

MAIN, TERMINAL, SPECIAL = 1095761921, 31326209, 2147352577  # of boot40: 31, 25 and 31 bits
MODULI = [1, 2, 3, 65537, TERMINAL, 2**28 - 1, 2**28, 2**28 + 1, MAIN, SPECIAL, 2**31 - 1, 2**32 - 1]


@pytest.fixture
def unit(device: str) -> str:
    """The device's name, or a skip with the reason; a failure where the device is required."""
    try:
        crenel.device_info(device)
    except crenel.DeviceError as error:
        if any(r and device.startswith(r) for r in os.environ.get("CRENEL_REQUIRE", "").split(",")):
            raise
        pytest.skip(str(error))
    return device


def product(a, b, c, q) -> np.ndarray:
    """The definition, in Python integers."""
    sums = a.astype(object) @ b.astype(object) + (0 if c is None else c.astype(object))
    return sums % np.asarray(q, dtype=object)


def test_tiles_with_one_modulus_a_column(unit, rng):
    q = np.array([MODULI[j % len(MODULI)] for j in range(16)])
    a = rng.integers(0, 1 << 32, (2, 3, 16, 16), dtype=np.uint32)
    b, c = (rng.integers(0, q, (2, 3, 16, 16)) for _ in range(2))
    for addend in (c, None):
        d = fhecore.fhe_sync(a, b, addend, q, device=unit)
        assert d.dtype == np.uint32 and d.shape == (2, 3, 16, 16)
        assert all(
            (d[i] == product(a[i], b[i], None if addend is None else c[i], q)).all() for i in np.ndindex(2, 3)
        )


def test_moduli_and_tiles_broadcast(unit, rng):
    a = rng.integers(0, 1 << 32, (5, 1, 16, 16), dtype=np.uint64)
    b = rng.integers(0, 97, (16, 16), dtype=np.int8)
    q = np.array([[97] * 16, [SPECIAL] * 16])  # (2, 16): a second batch axis
    with fhecore.counting() as counts:
        d = fhecore.fhe_sync(a, b, None, q, device=unit)
    assert d.shape == (5, 2, 16, 16)
    assert all((d[i, j] == product(a[i, 0], b, None, q[j])).all() for i in range(5) for j in range(2))
    assert (counts.fhe_sync, counts.fhec, counts.setc, counts.faults) == (10, 20, 20, 0)


def test_any_words_above_2_28(unit, rng):
    a, b, c = np.full((3, 16, 16), 0xFFFFFFFF, np.uint32)
    assert (fhecore.fhe_sync(a, b, c, (1 << 28) + 1, device=unit) == product(a, b, c, (1 << 28) + 1)).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integer_dtypes(dtype):
    a = np.arange(256).reshape(16, 16).astype(dtype) % 100
    assert (fhecore.fhe_sync(a, a, a, 1009, device="ref") == product(a, a, a, 1009)).all()


def definition(x: np.ndarray, q: int, psi: int) -> np.ndarray:
    """x(psi^(2 brev(i) + 1)) for every i, by N^2 products."""
    n = len(x)
    bits = n.bit_length() - 1
    power = np.array([pow(psi, e, q) for e in range(2 * n)], dtype=np.uint64)
    j = np.arange(n)
    order = [int(f"{i:0{bits}b}"[::-1], 2) for i in range(n)]
    return np.array([int((x * power[(2 * k + 1) * j % (2 * n)] % q).sum() % q) for k in order])


def smallest_root(q: int, n: int) -> int:
    """The smallest primitive 2N-th root of unity."""
    root = next(r for x in range(2, q) if pow(r := pow(x, (q - 1) // (2 * n), q), n, q) == q - 1)
    return min(pow(root, e, q) for e in range(1, 2 * n, 2))


@pytest.mark.parametrize("q", [TERMINAL, MAIN, SPECIAL])
@pytest.mark.parametrize("n", [256, 512])
def test_transform_is_the_definition(unit, rng, q, n):
    x = rng.integers(0, q, n)
    y = fhecore.ntt(x, q, device=unit)
    assert (y == definition(x.astype(np.uint64), q, smallest_root(q, n))).all()
    assert (fhecore.ntt(y, q, inverse=True, device=unit) == x).all()


def test_whole_limbs_in_both_decompositions(unit, rng):
    x = rng.integers(0, TERMINAL, 1 << 16)
    with fhecore.counting() as small:
        y = fhecore.ntt(x, TERMINAL, device=unit)
    with fhecore.counting() as large:
        z = fhecore.ntt(x, TERMINAL, decomposition="256x256", device=unit)
    assert (y == z).all()
    assert (small.fhe_sync, small.fhec, small.multiplications) == (1024, 2048, 65536)
    assert (large.fhe_sync, large.fhec, large.multiplications) == (8192, 16384, 65536)
    assert small == fhecore.transform_work(16, "16^4").counts
    assert large == fhecore.transform_work(16, "256x256").counts


def test_parameters_stand_for_their_primes(unit, rng):
    params = toy("toy-boot40")
    q = np.array(params.primes, dtype=np.int64)[:, None]
    x = rng.integers(0, q, (2, len(q), params.ring_dim))
    y = fhecore.ntt(x, params, device=unit)
    assert (fhecore.ntt(y, params.primes, inverse=True, device=unit) == x).all()
    with fhecore.counting() as counts:
        fhecore.ntt(x, params, device=unit)
    assert counts == 2 * len(q) * fhecore.transform_work(params.log_n).counts
    if unit == "ref":
        assert (fhecore.ntt(x, ckks.Context(params, device="ref"), device=unit) == y).all()


def test_base_conversion_in_integers(unit, rng):
    primes = toy("toy-boot40").primes
    sources, destinations = primes[:9], primes[9:36]
    product_of = int(np.prod([int(p) for p in sources], dtype=object))
    x = rng.integers(0, np.array(sources)[:, None], (len(sources), 32))
    with fhecore.counting() as counts:
        out = fhecore.base_convert(x, sources, destinations, device=unit)
    assert counts == fhecore.conversion_work(5, 9, 27).counts
    for k in range(32):
        parts = [int(x[j, k]) * pow(product_of // d, -1, d) % d for j, d in enumerate(sources)]
        centred = [z - d if z > d // 2 else z for z, d in zip(parts, sources, strict=True)]
        value = sum(z * (product_of // d) for z, d in zip(centred, sources, strict=True))
        assert all(value % d == x[j, k] for j, d in enumerate(sources))
        assert [value % p for p in destinations] == out[:, k].tolist()


def test_more_polynomials_than_a_grid_counts(unit, rng):
    rows = 65540 if unit.startswith("cuda") else 300  # emulated on a CPU, so many take a minute
    x = rng.integers(0, TERMINAL, (rows, 1, 16), dtype=np.uint32)
    y = fhecore.base_convert(x, [TERMINAL], [MAIN], device=unit)
    for first in (0, rows // 2 - 3, rows - 6):
        part = slice(first, first + 6)
        assert (y[part] == fhecore.base_convert(x[part], [TERMINAL], [MAIN], device=unit)).all()


def test_empty_batches():
    none = np.empty((0, 1, 256), np.uint32)
    assert fhecore.ntt(none, [MAIN], device="ref").shape == (0, 1, 256)
    assert fhecore.base_convert(none, [MAIN], [TERMINAL, SPECIAL], device="ref").shape == (0, 2, 256)
    assert fhecore.fhe_sync(np.empty((0, 16, 16), int), TILE, None, MAIN, device="ref").shape == (0, 16, 16)


def test_work_of_the_paper():
    work = fhecore.conversion_work(16, 9, 27)
    assert (work.counts.fhe_sync, work.counts.fhec) == (8192, 16384)
    assert work.depth_use == 9 / 16 and work.column_use == 27 / 32
    assert work.use == pytest.approx(9 / 16 * 27 / 32)
    assert fhecore.transform_work(16).use == 1.0


def test_counters_nest_and_stay_in_their_thread():
    x = np.zeros(256, np.uint32)
    with fhecore.counting() as outer:
        fhecore.ntt(x, MAIN, device="ref")
        with fhecore.counting() as inner:
            fhecore.ntt(x, MAIN, device="ref")
        thread = threading.Thread(target=fhecore.ntt, args=(x, MAIN), kwargs={"device": "ref"})
        thread.start()
        thread.join()
    assert inner == fhecore.transform_work(8).counts
    assert outer == 2 * inner
    assert "fhe_sync=4" in repr(outer)


TILE = np.zeros((16, 16), np.uint32)
WIDE = np.zeros((16, 16), np.int64)


def wide(value: int) -> np.ndarray:
    array = WIDE.copy()
    array[2, 5] = value
    return array


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((wide(-1), TILE, None, 5), "a[2, 5] = -1, expected a word in 0..2^32 - 1"),
        ((wide(1 << 32), TILE, None, 5), "a[2, 5] = 4294967296, expected a word"),
        ((TILE, wide(1 << 27), None, TERMINAL), "b[0, 2, 5] = 134217728, expected below 2^27"),
        ((TILE, TILE, wide(1 << 27), TERMINAL), "c[0, 2, 5] = 134217728, expected below 2^27"),
        ((TILE, TILE, None, 0), "q = 0, expected 1..2^32 - 1"),
        ((TILE, TILE, None, 1 << 32), "q = 4294967296, expected 1..2^32 - 1"),
        ((TILE, TILE, None, [5] * 15 + [0]), "q[15] = 0, expected 1..2^32 - 1"),
        ((TILE, TILE, None, [5] * 8), "q has shape (8,), expected one modulus or (..., 16)"),
        ((TILE, TILE, None, 5.0), "q must be an integer, got 5.0"),
        ((TILE.astype(float), TILE, None, 5), "a must be integers, got dtype float64"),
        ((TILE[:8], TILE, None, 5), "a has shape (8, 16), expected (..., 16, 16)"),
        ((np.zeros((2, 16, 16), int), np.zeros((3, 16, 16), int), None, 5), "batch axes do not broadcast"),
    ],
)
def test_tile_refusals(arguments, text):
    with pytest.raises(crenel.ParameterError) as error:
        fhecore.fhe_sync(*arguments, device="ref")
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fhecore.ntt(np.zeros(100, int), MAIN), "x has 100 coefficients"),
        (lambda: fhecore.ntt(np.zeros(128, int), MAIN), "log_n = 7, expected 8..17"),
        (lambda: fhecore.ntt(np.zeros(256, int), MAIN, decomposition="256x256"), "log_n = 8, expected 16"),
        (lambda: fhecore.ntt(np.zeros(256, int), MAIN, decomposition="64x4"), 'decomposition "64x4"'),
        (lambda: fhecore.ntt(np.zeros(256, int), 257), "prime 257 does not serve N = 2^8"),
        (lambda: fhecore.ntt(np.zeros(256, int), 15), "primes: 15, expected distinct odd primes below 2^31"),
        (
            lambda: fhecore.ntt(np.full(256, MAIN), MAIN),
            f"x[0, 0, 0] = {MAIN}, expected a residue below {MAIN}",
        ),
        (lambda: fhecore.ntt(np.zeros((3, 256), int), [MAIN, SPECIAL]), "expected (..., 2, N)"),
        (lambda: fhecore.base_convert(np.zeros((1, 8), int), [MAIN], [SPECIAL]), "log_n = 3, expected 4..17"),
        (
            lambda: fhecore.base_convert(np.zeros((1, 16), int), [MAIN], [MAIN]),
            "expected distinct odd primes",
        ),
        (lambda: fhecore.base_convert(np.zeros((1, 16), int), [MAIN], []), "0 destinations, expected 1..128"),
        (lambda: fhecore.ntt([[1, 2], [3]], MAIN), "x is not an array"),
        (lambda: fhecore.fhe_sync(TILE, TILE, None, [[5], [5, 6]]), "q is not an array"),
        (lambda: fhecore.conversion_work(16, 0, 1), "from 0 to 1 limbs"),
        (lambda: fhecore.transform_work(18), "log_n = 18, expected 8..17"),
    ],
)
def test_refusals(call, text):
    with pytest.raises(crenel.ParameterError) as error:
        call()
    assert text in str(error.value)


def test_unknown_device():
    with pytest.raises(crenel.DeviceError):
        fhecore.ntt(np.zeros(256, int), MAIN, device="tpu")


PAGE = Path(__file__).parents[2] / "fhecore" / "doc" / "mapping.md"


def conversions(params: ckks.Params, level: int) -> dict[str, list[tuple[int, int]]]:
    """(sources, destinations) of every conversion that a level asks for, by operation."""
    terminal, alpha = len(params.terminal_primes), params.alpha

    def window(at: int) -> set[int]:
        main, small = params.levels[at]
        return set(range(terminal - small, terminal + main))

    here = window(level)
    extended = len(here) + alpha
    digits = [sum(i // alpha == d for i in here) for d in sorted({i // alpha for i in here})]
    found = {"ModUp": [(k, extended - k) for k in digits], "ModDown": [(alpha, len(here))]}
    if level > 0:
        below = window(level - 1)
        dropped, left = len(here - below), len(below)
        found |= {"rescale": [(dropped, left)], "merged": [(dropped + alpha, left)]}
    return found


def cell(shapes: list[tuple[int, int]]) -> tuple[str, float]:
    """ "fhe_sync / FHEC" of conversions one after the other, and how full the unit is."""
    works = [fhecore.conversion_work(16, *shape) for shape in shapes]
    text = f"{sum(w.counts.fhe_sync for w in works):,} / {sum(w.counts.fhec for w in works):,}"
    return text, sum(w.useful_products for w in works) / sum(w.offered_products for w in works)


@pytest.mark.skipif(not PAGE.exists(), reason="needs the sources of the page")
def test_mapping_page_states_every_level_of_boot40():
    params = ckks.preset("boot40")
    table = PAGE.read_text().split("<!-- boot40 -->")[1].split("<!-- /boot40 -->")[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    assert len(rows) == params.max_level + 1
    for level, row in enumerate(rows):
        found = conversions(params, level)
        (up, use), (down, _) = cell(found["ModUp"]), cell(found["ModDown"])
        rest = [cell(found[name])[0] if level > 0 else "-" for name in ("rescale", "merged")]
        limbs = sum(params.levels[level])
        assert row == [str(level), str(limbs), str(len(found["ModUp"])), up, f"{use:.0%}", down, *rest]
