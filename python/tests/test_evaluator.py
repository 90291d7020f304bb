"""The explicit operations: values, and the level and scale after each."""

import numpy as np
import pytest

from crenel import ckks

TOLERANCE = 2**-18


def test_linear_operations(world, xy):
    x, y = xy
    ev, a, b = world.ev, *map(world.client.encrypt, xy)
    p = world.context.encode(y)
    cases = [
        (ev.add(a, b), x + y),
        (ev.add(a, p), x + y),
        (ev.add(a, 0.5 - 2j), x + 0.5 - 2j),
        (ev.sub(a, b), x - y),
        (ev.sub(a, p), x - y),
        (ev.sub(a, 3), x - 3),
        (ev.negate(a), -x),
        (ev.multiply_integer(a, -3), -3 * x),
        (ev.multiply_monomial(a, 2 * world.slots), -x),
        (ev.multiply_monomial(a, 7 * world.slots), -1j * x),
        (ev.multiply_integer(a, 2, im=-1), (2 - 1j) * x),
    ]
    for result, expected in cases:
        assert (result.level, result.scale) == (a.level, a.scale)
        assert world.error(result, expected) < TOLERANCE


def test_products(world, xy):
    x, y = xy
    ev, a, b = world.ev, *map(world.client.encrypt, xy)
    p = world.context.encode(y)
    for result, expected in [
        (ev.multiply(a, b), x * y),
        (ev.multiply(a, p), x * y),
        (ev.square(a), x * x),
        (ev.relinearise(ev.multiply_lazy(a, b)), x * y),
        (ev.relinearise(ev.square_lazy(a)), x * x),
    ]:
        assert result.level == a.level and result.scale == pytest.approx(a.scale**2, rel=1e-12)
        assert world.error(result, expected) < TOLERANCE
        rescaled = ev.rescale(result)
        assert (rescaled.level, rescaled.scale) == (a.level - 1, world.params.scale(a.level - 1))
        assert world.error(rescaled, expected) < TOLERANCE
    for constant in (0.3, -1.5 + 0.25j):
        result = ev.rescale(ev.multiply(a, constant))
        assert result.scale == world.params.scale(a.level - 1)
        assert world.error(result, constant * x) < TOLERANCE
    assert ev.multiply(a, 0.3, scale=2.0**20).scale == a.scale * 2.0**20


def test_fused_products_are_the_composition(world, xy):
    ev, a, b = world.ev, *map(world.client.encrypt, xy)
    assert world.error(ev.multiply_rescale(a, b), xy[0] * xy[1]) < TOLERANCE
    lazy = ev.add(ev.multiply_lazy(a, b), ev.square_lazy(a))
    assert lazy.components == 3
    result = ev.relinearise_rescale(lazy)
    assert result.components == 2 and result.level == a.level - 1
    assert world.error(result, xy[0] * xy[1] + xy[0] ** 2) < TOLERANCE


def test_a_whole_chain_of_squares(world, rng):
    x = rng.uniform(-1, 1, world.slots)
    c, expected = world.client.encrypt(x), x
    while c.level:
        c, expected = world.ev.multiply_rescale(c, c), expected**2
        assert c.scale == world.params.scale(c.level)
    assert world.error(c, expected) < TOLERANCE


def test_adjust_level_reaches_every_level(world, xy):
    a = world.client.encrypt(xy[0])
    for level in range(world.top + 1):
        lowered = world.ev.adjust_level(a, level)
        assert (lowered.level, lowered.scale) == (level, world.params.scale(level))
        assert world.error(lowered, xy[0]) < TOLERANCE
    odd = world.ev.adjust_level(a, 2, scale=1.01 * world.params.scale(2))
    assert odd.scale == 1.01 * world.params.scale(2) and world.error(odd, xy[0]) < TOLERANCE


@pytest.mark.parametrize("steps", [0, 1, 2, -1, -3, 512])
def test_rotation(world, xy, steps):
    result = world.ev.rotate(world.client.encrypt(xy[0]), steps)
    assert world.error(result, np.roll(xy[0], -steps)) < TOLERANCE


def test_rotation_by_a_multiple_of_the_slots_needs_no_key(world):
    c = world.client.encrypt([1.0, 2.0], slots=2)
    assert world.error(world.ev.rotate(c, 8), [1.0, 2.0]) < TOLERANCE
    assert world.error(world.ev.rotate(c, 5), [2.0, 1.0]) < TOLERANCE


def test_hoisted_rotations(world, xy):
    a = world.client.encrypt(xy[0])
    steps = [0, 1, -3, 64]
    rotated = world.ev.rotate_many(a, steps)
    for step, result in zip(steps, rotated, strict=True):
        assert world.error(result, np.roll(xy[0], -step)) < TOLERANCE
    total = world.ev.rotate_sum(a, steps)
    assert world.error(total, sum(np.roll(xy[0], -s) for s in steps)) < TOLERANCE


def test_conjugate(world, rng):
    z = rng.normal(size=world.slots) + 1j * rng.normal(size=world.slots)
    assert world.error(world.ev.conjugate(world.client.encrypt(z)), z.conj()) < TOLERANCE


def test_sum_slots(world, xy):
    a = world.client.encrypt(xy[0])
    assert world.error(world.ev.sum_slots(a, 4, 2), sum(np.roll(xy[0], -2 * k) for k in range(4))) < TOLERANCE
    assert ckks.sum_slots_rotations(8, 3) == [3, 6, 12]


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5, 7, 12, 15])
@pytest.mark.parametrize("basis", ["power", "chebyshev"])
def test_polynomials(world, rng, basis, degree):
    x = rng.uniform(-1, 1, world.slots)
    coefficients = rng.uniform(-1, 1, degree + 1)
    evaluate = np.polynomial.polynomial.polyval if basis == "power" else np.polynomial.chebyshev.chebval
    a = world.client.encrypt(x)
    result = world.ev.polynomial(a, coefficients, basis=basis)
    assert result.level == a.level - ckks.polynomial_depth(degree)
    assert result.scale == world.params.scale(result.level)
    assert world.error(result, evaluate(x, coefficients)) < TOLERANCE


def test_chebyshev_fit_on_an_interval(world, rng):
    x = rng.uniform(-4, 4, world.slots)
    fit = world.ev.chebyshev_fit(np.tanh, 15, interval=(-4, 4))
    assert len(fit) == 16
    result = world.ev.polynomial(world.client.encrypt(x), fit, basis="chebyshev", interval=(-4, 4))
    reference = np.polynomial.Chebyshev(fit, domain=[-4, 4])(x)
    assert world.error(result, reference) < TOLERANCE
    assert np.abs(reference - np.tanh(x)).max() < 0.01


def test_errors_of_a_fitted_python_function_come_through(world):
    with pytest.raises(ZeroDivisionError):
        ckks.chebyshev_fit(lambda t: 1 / 0, 3)


def test_evaluator_without_keys_does_what_needs_none(world, xy):
    ev = world.context.evaluator()
    a = world.client.encrypt(xy[0])
    assert world.error(ev.add(a, a), 2 * xy[0]) < TOLERANCE
    assert world.error(ev.rescale(ev.multiply(a, 0.5)), 0.5 * xy[0]) < TOLERANCE
    with pytest.raises(ckks.KeyMissingError):
        ev.multiply(a, a)


def test_properties(world):
    assert world.ev.context.params == world.params
    assert world.ev.keys.rotations == world.keys.rotations
    assert world.client.context.device.name == world.context.device.name
    for thing in (world.ev, world.context, world.keys, world.context.device):
        assert repr(thing).startswith("<c")
