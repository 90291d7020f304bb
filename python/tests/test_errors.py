"""Every class of the error tree, triggered, with its fields."""

import pickle
import sys

import numpy as np
import pytest
from conftest import World, open_context, toy

import crenel
from crenel import ckks


def expect(kind: type[crenel.CrenelError], call, **fields: object) -> str:
    """The call raises exactly this class; its fields hold these values, its message their text."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert type(error) is kind and error.code == kind.__name__
    for name, value in fields.items():
        found = error.fields[name]
        assert type(found) is type(value) and repr(found) == repr(value)  # repr: not-a-number is one
        assert (f"{value:.17g}" if isinstance(value, float) else str(value)) in str(error)
    return str(error)


def expect_fields(call) -> dict:
    """The fields of the KeyMissingError that the call raises."""
    with pytest.raises(ckks.KeyMissingError) as caught:
        call()
    return caught.value.fields


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (ckks.ParameterError, ValueError),
        (ckks.StateError, RuntimeError),
        (ckks.KeyMissingError, LookupError),
        (ckks.SerializationError, ValueError),
        (ckks.DeviceError, RuntimeError),
        (ckks.OutOfMemoryError, MemoryError),
        (ckks.OutOfMemoryError, ckks.DeviceError),
        (ckks.UnsupportedError, NotImplementedError),
    ],
)
def test_tree(kind, base):
    assert issubclass(kind, crenel.CrenelError) and issubclass(kind, base)
    fields = {"text": "1", "level": 3, "large": 2**64 - 1, "scale": 2.5, "real": True, "rotations": [1, -2]}
    error = pickle.loads(pickle.dumps(kind("message", fields)))
    assert (str(error), error.fields, error.code) == ("message", fields, kind.__name__)
    assert getattr(crenel, kind.__name__) is kind


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, complex(0, np.nan)])
def test_not_a_number(world, bad):
    for make in (world.client.encrypt, world.context.encode):
        expect(ckks.ParameterError, lambda make=make: make([1.0, bad]), index=1)


def test_too_many_values(world):
    n = world.slots
    expect(ckks.ParameterError, lambda: world.client.encrypt(np.zeros(n + 1)), values=n + 1, slots=n)
    expect(ckks.ParameterError, lambda: world.client.encrypt(np.zeros(5), slots=4), values=5, slots=4)


def test_values_that_overflow_the_modulus(world):
    message = expect(ckks.ParameterError, lambda: world.client.encrypt([1e9], level=0))
    assert "overflow" in message


def test_arguments_of_encode(world):
    encode = world.context.encode
    expect(ckks.ParameterError, lambda: encode([1], slots=3), slots=3)
    expect(ckks.ParameterError, lambda: encode([1], slots=0), slots=0)
    expect(ckks.ParameterError, lambda: encode([1], slots=2 * world.slots), slots=2 * world.slots)
    expect(ckks.ParameterError, lambda: encode([1], level=7), level=7, max_level=6)
    expect(ckks.ParameterError, lambda: encode([1], level=-1), level=-1)
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        expect(ckks.ParameterError, lambda scale=scale: encode([1], scale=scale), scale=scale)
    expect(ckks.ParameterError, lambda: encode(np.zeros((2, 2, 2))), shape="shape (2, 2, 2)")
    expect(ckks.ParameterError, lambda: encode(1.0), shape="shape ()")
    expect(ckks.ParameterError, lambda: encode(["a"]))
    expect(ckks.ParameterError, lambda: encode([None]), dtype="dtype object")
    expect(ckks.ParameterError, lambda: encode(np.zeros((0, 4))))


def test_levels_and_scales_that_differ(world):
    ev, client = world.ev, world.client
    a, low = client.encrypt([1.0]), client.encrypt([1.0], level=2)
    for op in (ev.add, ev.sub, ev.multiply, ev.multiply_lazy, ev.multiply_rescale):
        expect(ckks.StateError, lambda op=op: op(a, low), level_a=6, level_b=2)
    other = client.encrypt([1.0], scale=2.0**38)
    message = expect(ckks.StateError, lambda: ev.add(a, other), scale_b=2.0**38)
    assert "2^38" in message and "rescale" in message  # what to do next
    sparse = client.encrypt([1.0], slots=4)
    expect(ckks.StateError, lambda: ev.add(a, sparse), slots_a=world.slots, slots_b=4)
    expect(ckks.StateError, lambda: ev.add(a, world.context.encode([1.0], level=2)), level_a=6, level_b=2)


def test_levels_that_are_not_there(world):
    ev = world.ev
    low = world.client.encrypt([1.0], level=0)
    assert "bootstrap" in expect(ckks.StateError, lambda: ev.rescale(low), level=0)
    expect(ckks.StateError, lambda: ev.multiply_rescale(low, low), level=0)
    expect(ckks.StateError, lambda: ev.adjust_level(low, 3), level=0, target=3, needed=3)
    expect(ckks.ParameterError, lambda: ev.adjust_level(low, -1), level=-1)
    for call, operation, needed in (
        (lambda: ev(low) * ev(low), "multiply", 1),
        (lambda: ev(low) * 0.5, "multiply", 1),
        (lambda: ev(low) * [0.5], "multiply", 1),
        (lambda: ev(low).square(), "multiply", 1),
        (lambda: ev(low) / 3, "divide", 1),
        (lambda: ev(low) / [3, 4], "divide", 1),
        (lambda: ev(low) ** 5, "power", 3),
        (lambda: ev(low).at_level(2), "adjust_level to level 2", 2),
        (lambda: ev.rescale(low), "rescale", 1),
        (lambda: ev.polynomial(low, [0, 0, 1]), "polynomial", 2),
        (lambda: ev.linear_transform([[1.0]], low), "linear_transform", 1),
        (lambda: world.context.linear_transform([[1.0]], 2)(ev, low), "linear_transform", 2),
    ):
        message = expect(ckks.StateError, call, level=0, operation=operation, needed=needed)
        depth = world.params.max_level + needed
        assert "bootstrap" in message and f"Params(..., depth={depth})" in message


def test_three_components(world):
    lazy = world.ev.square_lazy(world.client.encrypt([1.0]))
    for op in (lambda: world.ev.rotate(lazy, 1), lambda: world.ev.square(lazy)):
        expect(ckks.StateError, op, components=3)


def test_polynomial_arguments(world):
    a = world.client.encrypt([1.0])
    polynomial = world.ev.polynomial
    expect(ckks.ParameterError, lambda: polynomial(a, [1, 2], basis="legendre"), basis="legendre")
    expect(ckks.ParameterError, lambda: polynomial(a, []))
    expect(ckks.ParameterError, lambda: polynomial(a, [1, np.inf]), index=1)
    expect(ckks.ParameterError, lambda: polynomial(a, [1, 1j]), dtype="dtype complex128")
    expect(ckks.ParameterError, lambda: polynomial(a, [[1], [2]]))
    expect(ckks.ParameterError, lambda: polynomial(a, [1, 2], "chebyshev", (1, -1)))


def test_missing_keys_are_named(world):
    a = world.client.encrypt([1.0])
    expect(ckks.KeyMissingError, lambda: world.ev.rotate(a, 77), rotations=[77])
    expect(ckks.KeyMissingError, lambda: world.ev.rotate(a, -77), rotations=[-77])
    both = expect_fields(lambda: world.ev.rotate_many(a, [1, 77, 79]))
    assert both == {"operation": "rotate_many", "rotations": [77, 79]}
    assert expect_fields(lambda: world.ev.rotate_sum(a, [1, 77]))["rotations"] == [77]
    assert expect_fields(lambda: world.ev(a).sum(4, 77))["rotations"] == [77, 154]
    bare = world.context.evaluator(world.client.evaluation_keys(relinearisation=False))
    for op in (lambda: bare.multiply(a, a), lambda: bare.square(a), lambda: bare(a) * a):
        message = expect(ckks.KeyMissingError, op, key="relinearisation")
        assert "evaluation_keys(relinearisation=True)" in message
    expect(ckks.KeyMissingError, lambda: bare.conjugate(a), key="conjugate")


def test_the_call_that_a_missing_key_names_is_all_it_takes(world):
    """Copied from the message, it makes keys that the operation runs with."""
    a = world.client.encrypt([1.0, 2.0])
    for use in (
        lambda ev: ev.rotate_many(a, [77, -5, 1]),
        lambda ev: ev.conjugate(a),
        lambda ev: ev(a).sum(8, 3),
        lambda ev: ev(a).polynomial([0, 0, 1.0]),
        lambda ev: ev.linear_transform({0: [1.0], 5: [2.0], 77: [3.0]}, a),
    ):
        with pytest.raises(ckks.KeyMissingError) as caught:
            use(world.context.evaluator())
        call = str(caught.value).rpartition(": ")[2]
        assert call.startswith("client.evaluation_keys(")
        keys = eval(call, {"client": world.client})
        use(world.context.evaluator(keys))


def test_objects_of_other_parameters(world, device):
    other = World(open_context(toy("toy-leveled-n13-s40"), device))
    a, b = world.client.encrypt([1.0]), other.client.encrypt([1.0])
    ids = {"found": other.params.id, "expected": world.params.id}
    expect(ckks.StateError, lambda: world.ev.negate(b), **ids)
    expect(ckks.StateError, lambda: world.client.decrypt(b), **ids)
    expect(ckks.StateError, lambda: world.ev.add(a, other.context.encode([1.0])), **ids)
    expect(ckks.StateError, lambda: world.client.encrypt(other.context.encode([1.0])), **ids)
    expect(ckks.StateError, lambda: world.context.decode(other.context.encode([1.0])), **ids)
    expect(ckks.StateError, lambda: world.context.evaluator(other.keys), **ids)
    expect(ckks.SerializationError, lambda: world.context.ciphertext_from_bytes(b.to_bytes()))


def test_devices_that_cannot_be_had():
    expect(ckks.DeviceError, lambda: ckks.Context(toy(), device="abacus"), device="abacus")
    for name in ("cuda:99", "cuda:x", "cuda:-1"):
        message = expect(ckks.DeviceError, lambda name=name: crenel.device_info(name))
        assert name in message
    if reason := crenel.cuda_unavailable_reason():
        assert reason in expect(ckks.DeviceError, lambda: ckks.Context(toy(), device="cuda"))


def test_unsupported(monkeypatch):
    from crenel.workloads.prediction import model

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert "scikit-learn" in expect(ckks.UnsupportedError, lambda: model.load(1, 10))


def test_wrong_types_are_type_errors(world):
    a = world.client.encrypt([1.0])
    for call in (
        lambda: world.ev.add(a, "text"),
        lambda: world.ev.rotate(a, 1.5),
        lambda: world.client.decrypt(3),
        lambda: world.context.ciphertext_from_bytes("text"),
        lambda: ckks.Context("boot40"),
        lambda: ckks.Params(15, 40, 8),
        lambda: a + a,
    ):
        with pytest.raises(TypeError):
            call()


def test_objects_of_other_devices():
    """Memory of one device is never read by another: the names of both are in the error."""
    params = toy()
    here, there = World(ckks.Context(params, "cpu")), World(ckks.Context(params, "ref"))
    c, plaintext = there.client.encrypt([1.0]), there.context.encode([1.0])
    for call in (
        lambda: here.client.decrypt(c),
        lambda: here.client.encrypt(plaintext),
        lambda: here.context.decode(plaintext),
        lambda: here.context.evaluator(there.keys),
        lambda: here.ev.negate(c),
        lambda: here.ev.add(here.client.encrypt([1.0]), plaintext),
        lambda: here.client.public_key().encrypt(plaintext),
    ):
        expect(ckks.StateError, call, found="ref", expected="cpu")
