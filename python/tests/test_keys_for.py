"""The keys and levels of a program, found before a key is made."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import World, open_context, toy

from crenel import ckks


def test_the_keys_are_those_that_are_used(world, rng):
    x, m = rng.uniform(-1, 1, (6, 5)), rng.uniform(-1, 1, (5, 3))

    def program(a):
        return (a @ m).square().sum(axis=0) @ np.ones(3) + a[2, 1]

    a = ckks.encrypt(world.client, x)
    found = ckks.needs(program, world.params, a)
    assert (found.relinearisation, found.conjugate, found.bootstrap) == (True, False, None)
    keys = found.keys(world.client)
    assert keys.rotations == found.rotations and not keys.conjugate
    result = program(world.context.evaluator(keys)(a))
    expected = ((x @ m) ** 2).sum() + x[2, 1]
    assert np.abs(world.client.decrypt(result) - expected) < 2**-10
    assert found.depth == world.top - result.level
    # None of them is idle; keys of ref take long, and what is missing is decided without the device.
    on_ref = world.context.device.name == "ref"
    for step in rng.choice(found.rotations, 2, replace=False) if on_ref else found.rotations:
        fewer = [k for k in found.rotations if k != step]
        with pytest.raises(ckks.KeyMissingError):
            program(world.context.evaluator(world.client.evaluation_keys(rotations=fewer))(a))
    with pytest.raises(ckks.KeyMissingError):
        bare = world.client.evaluation_keys(rotations=found.rotations, relinearisation=False)
        program(world.context.evaluator(bare)(a))


OPERATIONS = {
    "sum": lambda a: a.sum(),
    "mean": lambda a: a.mean(),
    "some": lambda a: a.sum(4, 2),
    "rotate": lambda a: a.rotate(-3) + a.rotate(a.slots + 1),
    "many": lambda a: a.rotate_many([1, 2])[1] * a.rotate_sum([0, 5]),
    "conjugate": lambda a: a.conjugate() * 1j,
    "integers": lambda a: a * 3 - 2 * a + (2 - 1j) * a,
    "floats": lambda a: (a * 2.0) / 4,
    "numpy": lambda a: a * np.float64(3) * np.int64(3) * np.complex128(2),
    "values": lambda a: [1, 2] * a + np.ones(3),
    "big": lambda a: a * 2**40,
    "power": lambda a: a**5,
    "levels": lambda a: a.at_level(3) * a,
    "power polynomial": lambda a: a.polynomial([1, 2, 3, 4, 0]),
    "linear polynomial": lambda a: a.polynomial([1, 2]),
    "chebyshev": lambda a: a.polynomial([1, 2, 3, 4], "chebyshev", (-2, 2)),
    "matrix": lambda a: a @ np.arange(64.0).reshape(8, 8),
    "left matrix": lambda a: np.eye(8)[:3] @ a,
    "complex matrix": lambda a: a.linear_transform({1: [1j]}),
    "dot": lambda a: a.dot(a) + a @ np.ones(8),
    "slots": lambda a: a.with_slots(64).sum(8, 8).with_slots(8, repeating=True),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_records_go_as_operands_do(world, rng, name):
    f = OPERATIONS[name]
    c = world.client.encrypt(rng.uniform(-1, 1, 8), slots=8)
    keys = ckks.keys_for(world.client, f, c)
    result = f(world.context.evaluator(keys)(c))
    recorded = []
    found = ckks.needs(lambda a: recorded.append(f(a)), world.params, c)
    assert (recorded[0].level, recorded[0].slots) == (result.level, result.slots)
    assert recorded[0].real == result.real
    assert found.depth == world.top - result.level
    relinearised = name in ("many", "power", "levels", "power polynomial", "chebyshev", "dot")
    assert (keys.relinearisation, keys.conjugate) == (relinearised, name == "conjugate")


def test_keys_for_aligned_levels_come_when_asked_for(rng):
    with pytest.warns(ckks.InsecureParametersWarning):
        params = ckks.preset("toy-boot40", allow_insecure=True)
    client = ckks.Context(params, device="cpu").keygen()
    c = client.encrypt(rng.uniform(-1, 1, 8), slots=8)

    def program(a):
        return (a * a).rotate(1)

    found = ckks.needs(program, params, c)
    plain, aligned = ckks.keys_for(client, program, c), ckks.keys_for(client, program, c, aligned=True)
    assert (plain.aligned_rotations, aligned.aligned_rotations) == ([], [1])
    assert [k.nbytes for k in (plain, aligned)] == [found.key_bytes(params, aligned=a) for a in (False, True)]


def test_sums_take_powers_of_two(world):
    found = ckks.needs(lambda a: a.sum(), world.params, np.ones(60))
    assert found.rotations == [1, 2, 4, 8, 16, 32]


def test_too_few_levels_are_named_before_any_key(world):
    def program(a):
        for _ in range(world.top):
            a = a.square()
        return a.polynomial([0, 0, 0, 1.0])

    with pytest.raises(ckks.StateError, match="polynomial") as caught:
        ckks.keys_for(world.client, program, np.ones(5))
    assert caught.value.fields == {
        "operation": "polynomial", "level": world.top, "needed": world.top + 2
    }  # fmt: skip
    low = world.client.encrypt([1.0], level=1)
    with pytest.raises(ckks.StateError) as caught:
        ckks.needs(lambda a: a.square() * 0.5, world.params, low)
    assert caught.value.fields == {"operation": "product", "level": 1, "needed": 2}


def test_prepared_transforms(world, rng):
    m = rng.uniform(-1, 1, (8, 8))
    t = world.context.linear_transform(m, level=world.top, slots=8)
    found = ckks.needs(lambda a: t(a.evaluator, a), world.params, world.client.encrypt([1.0], slots=8))
    assert {k % 8 for k in found.rotations} == set(t.rotations) and found.depth == 1


def test_bootstrappers_are_found():
    world = World(open_context(toy("toy-boot40"), "cpu"))
    boot = world.context.bootstrapper()
    c = world.client.encrypt([0.5], level=boot.levels.input, slots=boot.options.slots)
    found = ckks.needs(lambda a: boot(a).square(), world.params, c)
    assert found.bootstrap is not None and found.bootstrap.slots == boot.options.slots
    assert found.relinearisation


def test_lists_of_a_bootstrapper_are_found():
    world = World(open_context(toy("toy-boot40"), "cpu"))
    boot = world.context.bootstrapper(slots=32, pack=2)
    c = world.client.encrypt([0.5], level=boot.levels.input, slots=32)
    found = ckks.needs(lambda a, b: [x.rotate(3) for x in boot([a, b])], world.params, c, c)
    assert found.bootstrap is not None and (found.bootstrap.slots, found.bootstrap.pack) == (32, 2)
    assert found.rotations == [3]


def test_monomials_need_no_key(world):
    n = 2 * world.slots
    found = ckks.needs(lambda a: a.multiply_monomial(-5), world.params, world.client.encrypt([1.0]))
    assert not found.rotations and not found.relinearisation and found.depth == 0
    c = world.ev(world.client.encrypt(np.ones(8), slots=8))
    for power in (0, 1, -6, n // 16, n // 2, n, -3 * n // 8, 5 * n // 32):
        real = c.multiply_monomial(power)
        seen: list = []
        ckks.needs(lambda a, p=power, s=seen: s.append(a.multiply_monomial(p)), world.params, c)
        assert (seen[0].slots, seen[0].level, seen[0].real) == (
            real.slots,
            real.level,
            bool(real.real),
        )


def test_what_cannot_be_found_is_refused(world):
    c = world.client.encrypt([1.0])
    for use in (lambda a: a.evaluator.multiply(a, a), lambda a: a.relinearise()):
        with pytest.raises(ckks.UnsupportedError) as caught:
            ckks.needs(use, world.params, c)
        assert caught.value.fields["operation"] in ("multiply", "relinearise")
    with pytest.raises(TypeError, match="input of the program"):
        ckks.needs(lambda a: a + c, world.params, c)
    for use in (lambda a: a**0, lambda a: a**1.5, lambda a: a.sum(3), lambda a: a.sum(stride=3)):
        with pytest.raises(ckks.ParameterError):
            ckks.needs(use, world.params, c)
    for use in (lambda a: a.at_level(world.top + 1), lambda a: a.with_slots(8)):
        with pytest.raises(ckks.StateError):
            ckks.needs(use, world.params, c)
    with pytest.raises(ZeroDivisionError):
        ckks.needs(lambda a: a / 0, world.params, c)
