"""What is computed on the way to a polynomial's value: enough is counted, and no more than is made."""

import numpy as np
import pytest
from nn_world import rng, toy  # noqa: F401
from numpy.polynomial import chebyshev

from crenel import ckks
from crenel.nn.headroom import HEADROOM, on_the_way


def reach_of(degree, at):
    """|T_degree| there."""
    return np.cosh(degree * np.arccosh(at))


def beyond_one(series, reach):
    """The argument at which the series' evaluation reaches so far."""
    low, high = 1.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if on_the_way([series], middle) < reach else (low, middle)
    return low


@pytest.mark.parametrize("degree", range(1, 32))
def test_elements_that_evaluation_makes(degree):
    """T_(2^k) up to the degree."""
    largest = max(i for i in (1, 2, 4, 8, 16) if i <= degree)
    assert on_the_way([np.eye(degree + 1)[degree]], 3.0) == pytest.approx(reach_of(largest, 3.0))


def test_what_fits_is_computed(rng):  # noqa: F811
    """Arguments beyond [-1, 1] by so much that the result, and all that is multiplied on the way, fits, where
    T_d would not: nothing is refused, and decrypted values are the polynomial's."""
    context = ckks.Context(toy("toy-boot40"), device="cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    for degree in (3, 7, 11, 15, 23, 31):
        series = rng.uniform(-1, 1, degree + 1) / 2.0 ** np.arange(degree + 1)
        at = beyond_one(series, HEADROOM / 2)
        values = chebyshev.chebval([at, -at], series)
        if np.abs(values).max() > HEADROOM:
            series *= HEADROOM / 2 / np.abs(values).max()
        x = np.concatenate([[at, -at], rng.uniform(-1, 1, context.params.slots - 2)])
        assert degree <= 3 or reach_of(degree, at) > HEADROOM
        result = client.decrypt(ev.polynomial(client.encrypt(x), series, basis="chebyshev"))
        exact = chebyshev.chebval(x, series)
        assert np.abs(result.real - exact).max() < 1e-4 * max(1.0, np.abs(exact).max()), degree


def test_the_next_polynomial_gets_what_the_one_before_it_makes():
    cube, steep = np.eye(4)[3], np.eye(9)[8]
    alone, after = on_the_way([steep], 2.0), on_the_way([cube, steep], 2.0)
    assert after == pytest.approx(reach_of(8, reach_of(3, 2.0))) and after > alone


@pytest.mark.parametrize("given", [np.nan, np.inf, 1e308])
def test_what_is_no_number_fits_nowhere(given):
    for series in (np.eye(2)[1], np.eye(8)[7], np.ones(32)):
        assert not on_the_way([series], given) <= HEADROOM


def test_within_the_interval_nothing_grows(rng):  # noqa: F811
    for degree in (0, 1, 2, 5, 63):
        assert on_the_way([np.eye(degree + 1)[degree]], rng.uniform(0, 1)) == 1.0
    assert on_the_way([np.zeros(8)], 0.5) == 1.0
