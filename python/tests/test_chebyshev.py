"""Functions by Chebyshev series: the fit, its error, the levels."""

import math

import numpy as np
import pytest

from crenel import ckks

TOLERANCE = 2**-18


def sigmoid(t: float) -> float:
    return 1 / (1 + math.exp(-t))


@pytest.mark.parametrize(("a", "b", "degree"), [(-4, 4, 15), (-1, 1, 7), (0.5, 2.5, 8)])
def test_the_error_is_that_of_the_fit(world, rng, a, b, degree):
    fit = world.ev.chebyshev(sigmoid, a, b, degree)
    x = rng.uniform(a, b, world.slots)
    clear = np.array([sigmoid(t) for t in x])
    distance = np.abs(fit.clear(x) - clear).max()
    assert 0.5 * fit.error < distance <= fit.error * (1 + 1e-3) + 1e-15
    assert (fit.interval, fit.degree, len(fit.coefficients)) == ((a, b), degree, degree + 1)

    encrypted = world.client.encrypt(x)
    result = fit(encrypted)
    assert result.level == encrypted.level - fit.depth
    assert result.scale == world.params.scale(result.level)
    assert world.error(result, fit.clear(x)) < TOLERANCE
    assert world.error(result, clear) < fit.error + TOLERANCE


def test_depth_counts_the_interval(world):
    assert world.ev.chebyshev(math.sin, -1, 1, 7).depth == 3
    assert world.ev.chebyshev(math.sin, -2, 2, 7).depth == 4
    constant = world.ev.chebyshev(lambda t: 2.0, -2, 2, 0)
    assert (constant.depth, constant.error) == (0, 0.0)
    encrypted = world.client.encrypt([1.0])
    assert constant(encrypted).level == encrypted.level


def test_operands_stay_operands(world, rng):
    x = rng.uniform(-1, 1, world.slots)
    fit = world.ev.chebyshev(np.tanh, -1, 1, 7)
    result = fit(world.ev(world.client.encrypt(x))) + 1
    assert isinstance(result, ckks.Operand)
    assert world.error(result, np.tanh(x) + 1) < fit.error + TOLERANCE


def test_coefficients_are_those_of_chebyshev_fit(world):
    fit = world.ev.chebyshev(np.tanh, -3, 3, 9)
    assert (fit.coefficients == ckks.chebyshev_fit(np.tanh, 9, (-3, 3))).all()
    assert "degree 9 on [-3, 3]" in repr(fit)


@pytest.mark.parametrize("interval", [(1, -1), (1, 1), (-math.inf, 1), (0, math.nan)])
def test_intervals_that_cannot_be(world, interval):
    with pytest.raises(ckks.ParameterError):
        world.ev.chebyshev(math.sin, *interval, 3)


def test_functions_and_levels_that_cannot_be(world):
    chebyshev = world.ev.chebyshev
    with pytest.raises(ckks.ParameterError, match="finite"):
        chebyshev(lambda t: math.nan, -1, 1, 3)
    with pytest.raises(ckks.ParameterError, match="at 0") as pole:  # between the nodes, on the grid
        chebyshev(lambda t: 1 / t if t else math.inf, 0, 1, 3)
    assert pole.value.fields["x"] == 0.0
    with pytest.raises(ZeroDivisionError):
        chebyshev(lambda t: 1 / (t - t), -1, 1, 3)
    for degree in (-1, 1 << 20):
        with pytest.raises(ckks.ParameterError, match="degree"):
            chebyshev(math.sin, -1, 1, degree)
    low = world.client.encrypt([0.5], level=1)
    with pytest.raises(ckks.StateError) as caught:
        chebyshev(math.sin, -1, 1, 7)(low)
    assert caught.value.fields["level"] == 1
