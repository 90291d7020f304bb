"""Recorded evaluations: equal to the eager ones, replayable, refusing another signature."""

import gc

import numpy as np
import pytest

from crenel import ckks

TOLERANCE = 2**-18


def bits(ciphertext: ckks.Ciphertext) -> bytes:
    return ciphertext.to_bytes()


def test_replay_equals_eager_bit_for_bit(world, rng):
    ev = world.ev

    def f(a, b):
        product = ev.multiply_rescale(a, b)
        return [ev.rotate(product, 1), ev.add(a, b)]

    xs = rng.uniform(-1, 1, (3, 2, world.slots))
    first = [world.client.encrypt(x) for x in xs[0]]
    graph = ckks.Graph(ev, f, *first)
    kept = []
    for x, y in xs:
        inputs = world.client.encrypt(x), world.client.encrypt(y)
        outputs = graph(*inputs)
        assert [bits(c) for c in outputs] == [bits(c) for c in f(*inputs)]
        kept.append((outputs, x, y))
    gc.collect()
    for (rotated, total), x, y in kept:  # results of earlier replays stay what they were
        assert world.error(rotated, np.roll(x * y, -1)) < TOLERANCE
        assert world.error(total, x + y) < TOLERANCE


def test_convenient_form_and_single_results(world, rng):
    x = rng.uniform(-1, 1, world.slots)
    a = world.ev(world.client.encrypt(x))
    graph = ckks.Graph(world.ev, lambda c: world.ev(c).square() * 0.5 + 1, a)
    result = graph(a)
    assert isinstance(result, ckks.Ciphertext)
    assert world.error(result, 0.5 * x * x + 1) < TOLERANCE


def test_another_signature_is_refused(world):
    a = world.client.encrypt([1.0])
    graph = ckks.Graph(world.ev, world.ev.negate, a)
    with pytest.raises(ckks.StateError) as caught:
        graph(world.client.encrypt([1.0], level=2))
    assert caught.value.fields["level"] == 2 and caught.value.fields["expected"] == 6
    with pytest.raises(ckks.StateError):
        graph(a, a)


def test_keys_as_an_argument(world, rng):
    x = rng.uniform(-1, 1, world.slots)

    def f(ev, a):
        return ev.rotate(ev.square(a), 1)

    a = world.client.encrypt(x)
    graph = ckks.Graph(world.ev, f, a, keys="argument")
    assert bits(graph(a, evaluator=world.ev)) == bits(f(world.ev, a))
    for _ in range(2):  # other clients of the context: only they can read what their keys made
        client = world.context.keygen()
        ev = world.context.evaluator(client.evaluation_keys(rotations=[1]))
        c = client.encrypt(x)
        result = graph(c, evaluator=ev)
        assert bits(result) == bits(f(ev, c))
        assert np.abs(client.decrypt(ev.rescale(result)) - np.roll(x * x, -1)).max() < TOLERANCE


def test_keys_where_they_do_not_belong(world):
    a = world.client.encrypt([1.0])
    keyed = ckks.Graph(world.ev, lambda ev, c: ev.rotate(c, 1), a, keys="argument")
    plain = ckks.Graph(world.ev, world.ev.negate, a)
    with pytest.raises(ckks.StateError, match="evaluator"):
        keyed(a)
    with pytest.raises(ckks.StateError):
        plain(a, evaluator=world.ev)
    with pytest.raises(ckks.KeyMissingError) as caught:
        keyed(a, evaluator=world.context.evaluator())
    assert caught.value.fields["rotations"] == [1]
    with pytest.raises(ckks.ParameterError, match="'recorded', 'argument'"):
        ckks.Graph(world.ev, world.ev.negate, a, keys="mine")


def test_errors_of_the_function_come_through(world):
    a = world.client.encrypt([1.0])
    with pytest.raises(ZeroDivisionError):
        ckks.Graph(world.ev, lambda c: 1 / 0, a)
    with pytest.raises(TypeError):
        ckks.Graph(world.ev, lambda c: 3, a)
    assert world.error(world.ev.negate(a), np.r_[-1, np.zeros(world.slots - 1)]) < TOLERANCE
