"""Homomorphism on arbitrary vectors, slot counts and constants."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TOLERANCE = 2**-16
relaxed = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
reals = st.floats(-2, 2)
complexes = st.builds(complex, reals, reals)


@st.composite
def vectors(draw, count: int = 1):
    """`count` complex vectors of one power-of-two length."""
    slots = 2 ** draw(st.integers(0, 5))
    rows = [draw(st.lists(complexes, min_size=slots, max_size=slots)) for _ in range(count)]
    return [np.array(row) for row in rows]


def encrypted(world, *values):
    return [world.ev(world.client.encrypt(v, slots=len(v))) for v in values]


@relaxed
@given(xy=vectors(2))
def test_sum_and_difference(world, xy):
    a, b = encrypted(world, *xy)
    assert world.error(a + b, xy[0] + xy[1]) < TOLERANCE
    assert world.error(a - b, xy[0] - xy[1]) < TOLERANCE


@relaxed
@given(xyz=vectors(3))
def test_product_and_distributivity(world, xyz):
    x, y, z = xyz
    a, b, c = encrypted(world, *xyz)
    assert world.error(a * b, x * y) < TOLERANCE
    assert world.error(a * (b + c), x * (y + z)) < TOLERANCE
    assert world.error(a * b + a * c, x * (y + z)) < TOLERANCE
    assert world.error(a * y + z, x * y + z) < TOLERANCE


@relaxed
@given(x=vectors(), steps=st.sampled_from([0, 1, 2, 4, 8, 16, -1, -3]))
def test_rotation_and_conjugation(world, x, steps):
    (a,) = encrypted(world, *x)
    assert world.error(a.rotate(steps), np.roll(x[0], -steps)) < TOLERANCE
    assert world.error(a.conjugate(), x[0].conj()) < TOLERANCE
    assert world.error(a.sum(), np.full(len(x[0]), x[0].sum())) < TOLERANCE


@relaxed
@given(x=vectors(), constant=complexes, re=st.integers(-99, 99), im=st.integers(-99, 99))
def test_constants(world, x, constant, re, im):
    (a,) = encrypted(world, *x)
    assert world.error(a * constant + constant, x[0] * constant + constant) < TOLERANCE
    assert world.error(a * complex(re, im), x[0] * complex(re, im)) < TOLERANCE


@relaxed
@given(x=st.lists(st.floats(-1, 1), min_size=4, max_size=4), c=st.lists(reals, min_size=1, max_size=10))
def test_polynomials(world, x, c):
    (a,) = encrypted(world, np.array(x))
    assert world.error(a.polynomial(c), np.polynomial.polynomial.polyval(np.array(x), c)) < TOLERANCE


@relaxed
@given(x=vectors(), level=st.integers(0, 6))
def test_encryption_and_bytes_at_every_level(world, x, level):
    c = world.client.encrypt(x[0], level=level, slots=len(x[0]))
    again = world.context.ciphertext_from_bytes(c.to_bytes())
    assert (again.level, again.scale, again.slots) == (level, c.scale, len(x[0]))
    assert np.array_equal(world.client.decrypt(again), world.client.decrypt(c))
