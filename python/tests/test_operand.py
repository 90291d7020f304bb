"""The convenient form: operators, with levels and scales handled."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from crenel import ckks

TOLERANCE = 2**-18


@pytest.fixture
def ab(world, xy):
    return [world.ev(world.client.encrypt(v)) for v in xy]


def test_sums(world, xy, ab):
    (x, y), (a, b) = xy, ab
    cases = [
        (a + b, x + y),
        (a - b, x - y),
        (-a, -x),
        (+a, x),
        (a + b.ciphertext, x + y),
        (b.ciphertext + a, x + y),
        (a - b.ciphertext, x - y),
        (a + 1, x + 1),
        (1 - a, 1 - x),
        (a - 0.25, x - 0.25),
        (2j + a, x + 2j),
        (a + y, x + y),
        (y + a, x + y),
        (y - a, y - x),
        (a - y, x - y),
        (a + list(y), x + y),
        (a + np.float32(0.5), x + 0.5),
        (a + np.array(0.5), x + 0.5),
        (a + np.array([1, 2]), x + np.pad([1, 2], (0, world.slots - 2))),
        (a + world.context.encode(y), x + y),
        (sum([a, b, a]), 2 * x + y),
    ]
    for result, expected in cases:
        assert isinstance(result, ckks.Operand)
        assert result.level == world.top and result.scale == a.scale
        assert world.error(result, expected) < TOLERANCE


def test_products_consume_one_level(world, xy, ab):
    (x, y), (a, b) = xy, ab
    cases = [
        (a * b, x * y),
        (a * b.ciphertext, x * y),
        (b.ciphertext * a, x * y),
        (a * a, x * x),
        (a.square(), x * x),
        (a * 0.3, 0.3 * x),
        (0.3 * a, 0.3 * x),
        (a * 2.0, 2 * x),
        (a * (0.5 + 2j), (0.5 + 2j) * x),
        (a * y, x * y),
        (y * a, x * y),
        (a * (1j * y), 1j * x * y),
        (a * np.int64(1) * np.float64(0.5), 0.5 * x),
        (a / 4, x / 4),
        (a * Fraction(3, 4), 0.75 * x),
        (a * Decimal("0.5"), 0.5 * x),
        (a / (2 + y), x / (2 + y)),
        (a * world.context.encode(y), x * y),
    ]
    for result, expected in cases:
        assert result.level == world.top - 1
        assert result.scale == world.params.scale(result.level)
        assert world.error(result, expected) < TOLERANCE


def test_integers_consume_no_level(world, xy, ab):
    x, a = xy[0], ab[0]
    cases = [(2 * a, 2 * x), (a * -3, -3 * x), (a * np.int8(5), 5 * x), (a * np.array(5), 5 * x)]
    cases += [(a * True, x), (1j * a, 1j * x), (a * (2 - 1j), (2 - 1j) * x), (0 * a, 0 * x)]
    for result, expected in cases:
        assert result.level == world.top and world.error(result, expected) < TOLERANCE
    big = a * 2**33
    assert big.level == world.top - 1 and world.error(big, 2**33 * x) < 2**33 * TOLERANCE


def test_powers(world, xy, ab):
    for exponent, depth in [(1, 0), (2, 1), (3, 2), (4, 2), (7, 3), (8, 3)]:
        result = ab[0] ** exponent
        assert result.level == world.top - depth
        assert world.error(result, xy[0] ** exponent) < TOLERANCE


def test_operands_at_different_levels_meet_at_the_lower_one(world, xy, ab):
    (x, y), (a, b) = xy, ab
    low = a * a * 0.5 * b
    assert low.level == world.top - 3
    for result, expected in [
        (low + b, 0.5 * x * x * y + y),
        (b - low, y - 0.5 * x * x * y),
        (low - b, 0.5 * x * x * y - y),
    ]:
        assert result.level == low.level and world.error(result, expected) < TOLERANCE
    for result in (low * b, b * low):
        assert result.level == low.level - 1
        assert world.error(result, 0.5 * x * x * y * y) < TOLERANCE


def test_unusual_scales_are_brought_in_line(world, xy, ab):
    (x, y), (a, b) = xy, ab
    fresh = world.ev.multiply(a.ciphertext, b.ciphertext)  # scale 2^80, not rescaled
    lazy = world.ev.multiply_lazy(a.ciphertext, b.ciphertext)  # three components
    for product in (fresh, lazy):
        e = world.ev(product)
        assert world.error(e + a, x * y + x) < TOLERANCE
        assert world.error(e * a, x * y * x) < TOLERANCE
        assert world.error(e * 0.5, x * y * 0.5) < TOLERANCE
        assert world.error(e.polynomial([0, 0, 1]), (x * y) ** 2) < TOLERANCE
    odd = world.ev(world.client.encrypt(y, scale=1.5 * a.scale))
    assert world.error(a + odd, x + y) < TOLERANCE
    low_odd = world.client.encrypt(y, level=3, scale=1.5 * a.scale)
    for result, expected in [(a + low_odd, x + y), (low_odd - a, y - x), (world.ev(low_odd) + a, x + y)]:
        assert world.error(result, expected) < TOLERANCE
    low = [world.ev(world.client.encrypt(y, level=0, scale=s * a.scale)) for s in (1, 1.5)]
    with pytest.raises(ckks.StateError) as caught:
        low[0] + low[1]
    assert caught.value.fields["level"] == 0


def test_slot_operations(world, xy, ab):
    x, a = xy[0], ab[0]
    assert world.error(a.rotate(-3), np.roll(x, 3)) < TOLERANCE
    assert world.error(a.conjugate(), x) < TOLERANCE
    assert world.error((1j * a).conjugate(), -1j * x) < TOLERANCE
    assert world.error(a.sum(), np.full(world.slots, x.sum())) < 2**-12
    assert world.error(a.sum(4, 2), sum(np.roll(x, -2 * k) for k in range(4))) < TOLERANCE
    assert world.error(a.sum(stride=256), sum(np.roll(x, -256 * k) for k in range(4))) < TOLERANCE
    assert world.error(a.rotate_sum([0, 1]), x + np.roll(x, -1)) < TOLERANCE
    with pytest.raises(ckks.ParameterError, match="too wide"):  # the map would be rounded to nothing
        a.polynomial([0.0, 1.0], "chebyshev", (-1e12, 1e12))
    with pytest.raises(ckks.ParameterError, match="count"):  # over all of which slots?
        a.sum(stride=3)
    for result, step in zip(a.rotate_many([1, 2]), (1, 2), strict=True):
        assert world.error(result, np.roll(x, -step)) < TOLERANCE


def test_polynomial_and_levels(world, xy, ab):
    x, a = xy[0], ab[0]
    p = a.polynomial([0.5, 0.2, 0, -0.1])
    assert p.level == world.top - 2 and world.error(p, 0.5 + 0.2 * x - 0.1 * x**3) < TOLERANCE
    fit = ckks.chebyshev_fit(np.exp, 7, (-1, 1))
    assert world.error(a.polynomial(fit, basis="chebyshev"), np.exp(x)) < 2**-15
    assert a.at_level(1).level == 1 and world.error(a.at_level(1), x) < TOLERANCE


def test_sparse_operands(world, rng):
    z, w = rng.normal(size=(2, 8)) + 1j * rng.normal(size=(2, 8))
    a, b = (world.ev(world.client.encrypt(v, slots=8)) for v in (z, w))
    result = (a * b + 1j).rotate(1) * w
    assert result.slots == 8
    assert world.error(result, np.roll(z * w + 1j, -1) * w) < TOLERANCE
    assert world.error(a.sum(), np.full(8, z.sum())) < TOLERANCE


def test_running_out_of_levels_says_so(world, ab):
    a = ab[0].at_level(0)
    for use in (lambda: a * a, lambda: a * 0.5, lambda: a * [1.0], lambda: a.polynomial([0, 1, 1])):
        with pytest.raises(ckks.StateError) as caught:
            use()
        assert caught.value.fields["level"] == 0
    assert (a + 1).level == 0 and (a * 3).level == 0


def test_refused_operands(world, ab):
    a = ab[0]
    for use in (lambda: a / a, lambda: a / a.ciphertext, lambda: 1 / a, lambda: world.ev(3)):
        with pytest.raises(TypeError):
            use()
    for use in (
        lambda: a + "text",
        lambda: a * "text",
        lambda: a + [float("nan")],
        lambda: a**0.5,
        lambda: a**0,
    ):
        with pytest.raises(ckks.ParameterError):
            use()
    with pytest.raises(ckks.ParameterError):
        a * np.ones(world.slots + 1)
    with pytest.raises(ZeroDivisionError):
        a / 0
    with pytest.raises(TypeError, match="Ciphertext|ciphertext"):
        world.client.decrypt(object())
    for count in (6, 0, -1):
        with pytest.raises(ckks.ParameterError):
            ckks.sum_slots_rotations(count)
    for use in (lambda: a / np.zeros(2), lambda: a**0, lambda: a**-1, lambda: a ** (2**70)):
        with pytest.raises(ckks.ParameterError):
            use()


def test_immutability_and_repr(world, xy, ab):
    a = ab[0]
    b = a
    b += 1
    assert world.error(a, xy[0]) < TOLERANCE and world.error(b, xy[0] + 1) < TOLERANCE
    assert "Operand level 6" in repr(a)
    assert world.ev(a).ciphertext.to_bytes() == a.ciphertext.to_bytes()
    assert a.evaluator.keys.rotations == world.ev.keys.rotations
    assert ckks.Operand(world.ev, a.ciphertext).level == ckks.Operand(world.ev, a).level == a.level
    assert a.real and not (1j * a).real


def test_decrypt_takes_both_forms(world, ab):
    assert np.array_equal(world.client.decrypt(ab[0]), world.client.decrypt(ab[0].ciphertext))
    plaintext = world.client.decrypt_to_plaintext(ab[0])
    assert np.array_equal(world.context.decode(plaintext), world.client.decrypt(ab[0]))


def test_ciphertexts_say_who_computes(world):
    a = world.client.encrypt([0.5])
    x = world.ev(a)
    for use in (
        lambda: a + a,
        lambda: a * 2,
        lambda: 1 - a,
        lambda: np.ones(3) * a,
        lambda: a / 2,
        lambda: a @ np.eye(2),
    ):
        with pytest.raises(TypeError, match=r"ev\(a\) \+ b"):
            use()
    assert np.abs(world.client.decrypt(a + x)[:1] - 1.0).max() < 1e-4
    assert np.abs(world.client.decrypt(a * x)[:1] - 0.25).max() < 1e-4


def test_no_numbers_are_refused(world):
    x = world.ev(world.client.encrypt([0.5]))
    for use in (
        lambda: world.client.encrypt([]),
        lambda: x * [],
        lambda: world.context.encode(np.ones((0, 3))),
    ):
        with pytest.raises(ckks.ParameterError, match="at least one number"):
            use()
