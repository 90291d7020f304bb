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


def test_plaintexts_as_arguments(world, rng):
    n = world.slots

    def f(ev, a, weights, bias):
        return ev.add(ev.rescale(ev.multiply(a, weights)), bias)

    def fresh():
        x, w, b = rng.uniform(-1, 1, (3, n))
        c = world.client.encrypt(np.array([x, -x]))  # one plaintext serves both rows
        level = world.top - 1
        return (x, w, b), c, [world.context.encode(w), world.context.encode(b, level)]

    _, first, plain = fresh()
    graph = ckks.Graph(world.ev, lambda *args: f(world.ev, *args), first, plaintexts=plain)
    keyed = ckks.Graph(world.ev, f, first, plaintexts=plain, keys="argument")
    for _ in range(3):
        (x, w, b), c, given = fresh()
        eager = f(world.ev, c, *given)
        result = graph(c, plaintexts=given)
        assert bits(result) == bits(eager)
        assert bits(keyed(c, plaintexts=given, evaluator=world.ev)) == bits(eager)
        assert np.abs(world.client.decrypt(result) - [x * w + b, b - x * w]).max() < TOLERANCE
    for bad, field in [
        ([world.context.encode([1.0], 1), given[1]], "level"),
        ([world.context.encode([1.0], slots=8), given[1]], "slots"),
        ([world.context.encode(np.ones((2, 4))), given[1]], "batch"),
        (given[:1], "plaintexts"),
        ([], "plaintexts"),
    ]:
        with pytest.raises(ckks.StateError) as caught:
            graph(c, plaintexts=bad)
        assert field in caught.value.fields, caught.value
    for found in (1, None, c, np.ones(4)):
        with pytest.raises(TypeError, match=f"expected a plaintext, got {type(found).__name__}"):
            graph(c, plaintexts=[given[0], found])
        with pytest.raises(TypeError, match="expected a plaintext"):
            ckks.Graph(world.ev, lambda *args: f(world.ev, *args), first, plaintexts=[found])
    assert bits(graph(c, plaintexts=given)) == bits(eager)


def test_a_replay_holds_the_staged_keys_that_it_reads(world, rng):
    keys = world.client.evaluation_keys(rotations=range(1, 9), relinearisation=False)
    others = world.context.evaluator(keys.staged(keys.nbytes // 2))
    x = rng.uniform(-1, 1, 8)
    c = world.client.encrypt(x, slots=8)
    busy = False

    def f(ev, a):
        # Where the function is called again: what others do between a replay's keys and its work.
        for step in range(3, 9) if busy else ():
            others.rotate(c, step)
        return ev.rotate(ev.rotate(a, 1), 2)

    graph = ckks.Graph(world.context.evaluator(keys), f, c, keys="argument")
    busy = True
    for _ in range(3):
        assert world.error(graph(c, evaluator=others), np.roll(x, -3)) < TOLERANCE


def test_a_program_with_transforms_is_one_graph(world, rng):
    slots = 16
    m = rng.normal(size=(slots, slots))
    one = world.context.linear_transform(m, 3, slots)
    two = ckks.BlockTransform(world.context, [[m, None], [m.T, m]], 2, slots)
    keys = world.client.evaluation_keys(rotations=sorted({*one.rotations, *two.rotations}))
    ev = world.context.evaluator(keys)

    def program(on, a, weights):
        b = one(on, a)
        c, d = two(on, [b, b])
        return [c, on.rescale(on.multiply(d, weights))]

    def fresh():
        x, w = rng.uniform(-1, 1, (2, slots))
        return world.client.encrypt(x, 3, slots=slots), world.context.encode(w, 1, slots=slots)

    first, plain = fresh()
    graph = ckks.Graph(ev, program, first, plaintexts=[plain], keys="argument")
    for _ in range(2):
        c, w = fresh()
        replayed = graph(c, plaintexts=[w], evaluator=ev)
        assert [bits(r) for r in replayed] == [bits(r) for r in program(ev, c, w)]
