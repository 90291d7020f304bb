"""Objects that look like numbers, arrays or ciphertexts and are none: refused, the process lives on."""

import numpy as np
import pytest
from conftest import toy

from crenel import ckks, tfhe
from crenel.errors import ParameterError

MASKED = np.ma.masked_array([1.0, 999.0], mask=[False, True])
HUGE = 10**400  # beyond float64


class Failing:
    """An integer, were it asked at a better time."""

    def __index__(self):
        raise ZeroDivisionError("asked")


@pytest.fixture(scope="module")
def world():
    context = ckks.Context(toy("toy-boot40"), device="cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    return context, client, ev, client.encrypt([1.0])


@pytest.mark.parametrize("exponent", [np.array([2]), np.array([1.0]), np.array(["a"]), "2", 2.0, 0, -1])
def test_exponents(world, exponent):
    _, client, ev, a = world
    for x in (ev(a), ev(ckks.encrypt(client, np.ones(2)))):
        with pytest.raises(ParameterError, match="exponent must be a positive integer"):
            x**exponent
    assert client.decrypt(ev(a) ** np.array(2))[0] == pytest.approx(1.0, abs=1e-5)


def test_what_an_object_raises_is_what_the_caller_sees(world):
    _, _, ev, a = world
    for operation in (
        lambda x: x ** Failing(),
        lambda x: x * Failing(),
        lambda x: x + Failing(),
        lambda x: x - Failing(),
        lambda x: x / Failing(),
    ):
        with pytest.raises(ZeroDivisionError, match="asked"):
            operation(ev(a))
    with pytest.raises(ZeroDivisionError):
        ev.chebyshev(lambda x: 1 / 0, -1, 1, 3)


def test_integers_beyond_float64(world):
    _, client, ev, a = world
    for x in (ev(a), ev(ckks.encrypt(client, np.ones(2)))):
        for operation in (lambda x: x * HUGE, lambda x: x + HUGE, lambda x: x - HUGE, lambda x: x / HUGE):
            with pytest.raises(ParameterError, match="beyond the range of float64"):
                operation(x)
    with pytest.raises(ParameterError, match="beyond the range of float64"):
        ev.chebyshev(lambda x: HUGE, -1, 1, 3)


def test_masked_places_are_no_numbers(world):
    context, client, ev, a = world
    for run in (
        lambda: client.encrypt(MASKED),
        lambda: client.public_key().encrypt(MASKED),
        lambda: context.encode(MASKED),
        lambda: ckks.encrypt(client, MASKED),
        lambda: ev(a) * MASKED,
        lambda: ev(a) + MASKED,
        lambda: ev(a) / MASKED,
        lambda: ev(a) * np.ma.masked,
        lambda: ev(ckks.encrypt(client, np.ones(2))) * MASKED,
        lambda: ev.polynomial(a, MASKED),
        lambda: context.linear_transform(np.ma.masked_array(np.eye(2), mask=np.eye(2))),
        lambda: context.linear_transform({0: MASKED}),
    ):
        with pytest.raises(ParameterError, match="masked places, expected numbers in all of them"):
            run()
    whole = np.ma.masked_array([1.0, 2.0], mask=[False, False])
    assert client.decrypt(client.encrypt(whole))[:2] == pytest.approx([1.0, 2.0], abs=1e-6)


def test_rows_of_different_lengths(world):
    with pytest.raises(ParameterError, match="got rows of different lengths"):
        world[1].encrypt([[1], [1, 2]])


def test_only_ciphertexts_are_decrypted(world):
    """A client has a method `decrypt`, as an array has."""
    context, client, _, _ = world
    others = tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), device="cpu").keygen()
    for what, name in (
        (client, "Client"),
        (context.keygen(), "Client"),
        (others, "crenel.tfhe.Client"),
        (others.encrypt([True]), "crenel.tfhe.Ciphertext"),
        ("x", "str"),
    ):
        with pytest.raises(TypeError, match=f"expected a ciphertext, got {name}$"):
            client.decrypt(what)
    assert client.decrypt(ckks.encrypt(client, np.ones((2, 2)))).shape == (2, 2)


@pytest.mark.parametrize("value, name", [("a", "str"), (None, "NoneType"), (1j, "complex"), ([1.0], "list")])
def test_functions_of_no_real_numbers(world, value, name):
    for fit in (
        lambda f: world[2].chebyshev(f, -1, 1, 3),
        lambda f: ckks.ErrorModel(world[0].params).chebyshev(f, -1, 1, 3),
        lambda f: ckks.chebyshev_fit(f, 3),
    ):
        with pytest.raises(ParameterError, match=f"the function gives {name} at .*, expected a real number"):
            fit(lambda x: value)
        fit(np.cos)
        fit(lambda x: 1)
