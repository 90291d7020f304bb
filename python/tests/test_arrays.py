"""Encrypted arrays against NumPy: fresh shapes, every packing, every device to the bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import World, open_context, toy

from crenel import ckks

PACKINGS = ["rows", "columns", "batch", "features"]
SHAPES = [(5, 7), (8, 4), (1, 3), (6, 1), (1, 1)]
TOLERANCE = 2**-14


@pytest.fixture(scope="session")
def arrays(device) -> World:
    """All rotations of short vectors, and powers of two."""
    if device == "ref":  # test_one_result_on_every_device
        pytest.skip("what arrays do to bits is compared with ref once")
    world = World(open_context(toy(), device))
    steps = {s * 2**k for k in range(10) for s in (1, -1)} | set(range(-128, 129))
    world.keys = world.client.evaluation_keys(rotations=sorted(steps), conjugate=True)
    world.ev = world.context.evaluator(world.keys)
    return world


@pytest.fixture
def fresh() -> np.random.Generator:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    return np.random.default_rng(seed)


class Check:
    """Runs a function on encrypted arrays and on clear ones."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __call__(self, f, *values, packing=None, tolerance=TOLERANCE) -> ckks.Array:
        expected = np.asarray(f(*values))
        given = [ckks.encrypt(self.world.client, v, packing if np.ndim(v) == 2 else None) for v in values]
        result = f(*[self.world.ev(a) for a in given])
        found = self.world.client.decrypt(result)
        assert result.shape == found.shape == expected.shape
        assert found.dtype == result.dtype == expected.dtype
        assert np.abs(found - expected).max() < tolerance * max(1.0, np.abs(expected).max())
        return result


@pytest.fixture
def check(arrays) -> Check:
    return Check(arrays)


def concatenated(*parts, axis=0):
    if isinstance(parts[0], ckks.Array):
        return ckks.concatenate(parts, axis)
    return np.concatenate(parts, axis)


def cubic(x):
    c = [0.5, -1.0, 0.25, 0.125]
    return x.polynomial(c) if isinstance(x, ckks.Array) else np.polynomial.polynomial.polyval(x, c)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 64])
def test_vectors(arrays, check, fresh, n):
    v, w = fresh.uniform(-1, 1, (2, n))
    m = fresh.uniform(-1, 1, (n, 5))
    for f in (
        lambda a: a + 1,
        lambda a: 2 - a,
        lambda a: a * 0.5 + v,
        lambda a: a / 4 - v * a,
        lambda a: a**3,
        lambda a: a @ m,
        lambda a: m.T @ a,
        lambda a: a @ w,
        lambda a: w @ a,
        lambda a: a.dot(w),
        lambda a: a.sum(),
        lambda a: (a + 1).sum(),
        lambda a: cubic(a).sum(),
        lambda a: a.mean(),
        lambda a: a - a.mean(),
        lambda a: a[n // 2 :],
        lambda a: a[-1],
        lambda a: a[::-2],
        lambda a: a * np.array([3.0]),
        lambda a: -a + 1j * v,
    ):
        check(f, v)
    for f in (lambda a, b: a * b, lambda a, b: a - b, lambda a, b: a @ b, concatenated):
        check(f, v, w)
    assert (check(lambda a: a.sum(), v).level, check(lambda a: (a + 1).sum(), v).level) == (arrays.top,) * 2


def test_padding_never_shows(arrays, check, fresh):
    """What fills a vector up takes no part in sums, whatever was done to it."""
    v = fresh.uniform(1, 2, 5)
    fit = ckks.chebyshev_fit(lambda x: 1 / x, 7, (0.5, 2.5))

    def inverse(x):
        return x.polynomial(fit, "chebyshev", (0.5, 2.5)) if isinstance(x, ckks.Array) else 1 / x

    for f in (
        lambda a: (a * 3 + 7).sum(),
        lambda a: ((a + 100) ** 2).mean(),
        lambda a: ((a - 3) ** 4).sum(),
        lambda a: inverse(a).sum(),
        lambda a: inverse(a) @ np.ones((5, 3)),
        lambda a: (a + 1)[1:4].sum(),
        lambda a: (concatenated(a + 1, a) * 2).sum(),
    ):
        check(f, v, tolerance=2**-8)
    a = arrays.ev(ckks.encrypt(arrays.client, v))
    assert "padding: 7" in (a + 7).describe() and "shape (5,)" in a.describe()
    assert len(arrays.client.decrypt(a + 1)) == len(a) == 5


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_matrices(check, fresh, packing, shape):
    x = fresh.uniform(-1, 1, shape)
    q, narrow, wide = (fresh.uniform(-1, 1, (shape[1], *n)) for n in ((), (3,), (11,)))
    for f in (
        lambda a: a + x,
        lambda a: a * q + q,
        lambda a: a.T * 2,
        lambda a: a @ narrow,
        lambda a: a @ wide,
        lambda a: narrow.T @ a.T,
        lambda a: a @ q,
        lambda a: (a @ q + 1).sum(),
        lambda a: a.sum(),
        lambda a: (a + 1).sum(axis=0),
        lambda a: (a + 1).sum(axis=-1),
        lambda a: (a + 1).sum(axis=1).sum(),
        lambda a: (2 * a + 1).mean(axis=0),
        lambda a: a - a.mean(axis=0),
        lambda a: a[0],
        lambda a: a[-1:],
        lambda a: a[:, 0],
        lambda a: a[:, :2],
        lambda a: a[::2, ::-1],
    ):
        check(f, x, packing=packing)
    check(lambda a, b: a * b, x, q, packing=packing)
    check(lambda a, b: a @ b, x, q, packing=packing)
    for axis in (0, 1):
        check(lambda a, b, axis=axis: concatenated(a, b, axis=axis), x, x, packing=packing)


def test_more_than_the_slots(arrays, check, fresh):
    n = 2 * arrays.slots + 37
    v, w = fresh.uniform(-1, 1, (2, n))
    m = fresh.uniform(-1, 1, (n, 3))
    for f in (lambda a: a * v + 1, lambda a: (a + 1).sum(), lambda a: a @ w, lambda a: a[1000:1100]):
        check(f, v, tolerance=2**-8)
    ev = arrays.ev(ckks.encrypt(arrays.client, v))
    assert ev.layout.batch == 3 and ev.ciphertext.batch == 3
    # Products in several vectors: their sums of blocks.
    check(lambda a: a @ m, v, tolerance=2**-8)
    x = fresh.uniform(-1, 1, (3, arrays.slots + 1))
    for packing in ("rows", "batch"):
        check(lambda a: (a * x).sum(axis=1), x, packing=packing, tolerance=2**-8)
        check(lambda a: a + x[0], x, packing=packing)


def test_packings_of_one_array(arrays, check, fresh):
    x = fresh.uniform(-1, 1, (4, 6))
    for packing in PACKINGS:
        a = arrays.ev(ckks.encrypt(arrays.client, x, packing))
        assert a.packing == packing and a.T.shape == (6, 4)
        for other in PACKINGS:
            b = a.repacked(other)
            assert b.packing == other and np.abs(arrays.client.decrypt(b) - x).max() < TOLERANCE
            assert np.abs(arrays.client.decrypt(a + b) - 2 * x).max() < TOLERANCE


def test_narrow_vectors_broadcast(arrays, check, fresh):
    """A vector in several vectors of few slots, as a column of packing 'batch' is, over wide rows."""
    x, y = fresh.uniform(-1, 1, (12, 4)), fresh.uniform(-1, 1, (5, 12))
    a, b = (arrays.ev(ckks.encrypt(arrays.client, v, "batch")) for v in (x, y))
    column = a[:, 1]
    assert column.layout.pieces == 3
    for result, expected in (
        (b + column, y + x[:, 1]),
        (b @ column, y @ x[:, 1]),
        ((column + y)[2], (x[:, 1] + y)[2]),
        ((column * y).sum(axis=0), (x[:, 1] * y).sum(axis=0)),
    ):
        found = arrays.client.decrypt(result)
        assert found.shape == expected.shape and np.abs(found - expected).max() < TOLERANCE * 12
    with pytest.raises(ckks.StateError, match="3 vectors"):
        ckks.Array(column.ciphertext, (1, 4), b[:1, :4].layout)
    check(lambda s: s[()], np.float64(0.5))


def test_with_slots(arrays, fresh):
    x = fresh.uniform(-1, 1, 8)
    a = arrays.ev(arrays.client.encrypt(x, slots=8))
    for b in (a.with_slots(64), arrays.ev(arrays.ev.with_slots(a.ciphertext, 64))):
        assert b.slots == 64 and arrays.error(b, np.tile(x, 8)) < TOLERANCE
        assert arrays.error(b.with_slots(8, repeating=True), x) < TOLERANCE
        with pytest.raises(ckks.StateError, match="repeat") as caught:
            b.with_slots(8)
        assert caught.value.fields == {"slots": 64, "wanted": 8}
    model = ckks.ErrorModel(arrays.params)
    bound = model.input(max_abs=1.0, slots=8).with_slots(64)
    assert bound.slots == 64 and bound.max >= arrays.error(a.with_slots(64), np.tile(x, 8))
    with pytest.raises(ckks.StateError, match="repeat"):
        bound.with_slots(8)
    for slots in (0, 3, 2 * arrays.slots):
        with pytest.raises(ckks.ParameterError):
            a.with_slots(slots)
    tested = arrays.ev.checked(arrays.client)(a)
    repeating = tested.with_slots(64)
    assert arrays.error(repeating.with_slots(8, repeating=True), x) < TOLERANCE
    with pytest.raises(ckks.StateError, match="off by") as caught:
        tested.with_slots(4, repeating=True)
    assert caught.value.fields["operation"] == "with_slots"


def test_operands_multiply_matrices(arrays, fresh):
    x, w = fresh.uniform(-1, 1, (2, 8))
    m = fresh.uniform(-1, 1, (8, 8))
    a, b = (arrays.ev(arrays.client.encrypt(v, slots=8)) for v in (x, w))
    for found, expected in [
        (a @ m, x @ m), (m @ a, m @ x), (a @ m[:, :3], np.pad(x @ m[:, :3], (0, 5))),
        (a @ w, np.full(8, x @ w)), (w @ a, np.full(8, x @ w)), (a.dot(b), np.full(8, x @ w)),
        (a @ b, np.full(8, x @ w)), (a.mean(), np.full(8, x.mean())),
        (a.linear_transform({1: np.ones(8)}), np.roll(x, -1)),
    ]:  # fmt: skip
        assert found.level == arrays.top - 1 and arrays.error(found, expected) < TOLERANCE
    assert (a @ m).real and not (a @ (1j * m)).real
    with pytest.raises(ckks.ParameterError):
        a @ np.ones((9, 9))
    with pytest.raises(ckks.ParameterError, match="vector"):
        a.dot(m)


CIRCUITS = {
    "affine": lambda a, m: (a @ m) * 0.5 + 1,
    "mlp": lambda a, m: (a @ m + 0.1).square().sum(axis=-1),
    "centred": lambda a, m: a - a.mean(axis=0),
    "ranges": lambda a, m: a[1:, 2:].sum() + a[0, 0],
    "polynomial": lambda a, m: cubic(a).mean(),
    "broadcast": lambda a, m: a * a[0],
}


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("packing", PACKINGS)
def test_errors_stay_within_their_bounds(arrays, fresh, packing, name):
    f = CIRCUITS[name]
    x, m = fresh.uniform(-1, 1, (5, 7)), fresh.uniform(-1, 1, (7, 3))
    a = ckks.encrypt(arrays.client, x, packing)
    found = f(arrays.ev(a), m)
    bound = f(a.error_bound(ckks.ErrorModel(arrays.params), max_abs=1.0), m)
    assert (bound.shape, bound.level, bound.layout) == (found.shape, found.level, found.layout)
    if name == "polynomial":
        expected = cubic(x).mean()
    elif name == "mlp":
        expected = ((x @ m + 0.1) ** 2).sum(axis=-1)
    else:
        expected = f(x, m)
    error = np.abs(arrays.client.decrypt(found) - expected).max()
    assert error < bound.ciphertext.max and np.abs(expected).max() <= bound.ciphertext.message
    assert bound.ciphertext.scale == found.ciphertext.scale


@pytest.mark.parametrize("packing", PACKINGS)
def test_one_result_on_every_device(fresh, packing):
    """The same file of a secret key and of an input: the same bits from ref and cpu."""
    x, m = fresh.uniform(-1, 1, (3, 5)), fresh.uniform(-1, 1, (5, 2))
    ref = open_context(toy(), "ref")
    client = ref.keygen()
    a = ckks.encrypt(client, x, packing)

    def program(v):
        return (v @ m + 1).square().sum(axis=0) - v[0, 1]

    keys = ckks.keys_for(client, program, a).to_bytes()
    results = []
    for context in (ref, open_context(toy(), "cpu")):
        ev = context.evaluator(context.evaluation_keys_from_bytes(keys))
        results.append(program(ev(ckks.Array.from_bytes(context, a.to_bytes()))).to_bytes())
    assert results[0] == results[1]


def test_refusals(arrays, fresh):
    x = fresh.uniform(-1, 1, (3, 4))
    a = ckks.encrypt(arrays.client, x)
    b = arrays.ev(a)
    with pytest.raises(ckks.StateError, match=r"ev\(array\)"):
        a + 1
    with pytest.raises(ckks.ParameterError, match="broadcast") as caught:
        b + arrays.ev(ckks.encrypt(arrays.client, np.ones(3)))
    assert caught.value.fields == {"shape_a": [3, 4], "shape_b": [3]}
    for use in (
        lambda: b @ np.ones((3, 3)),
        lambda: b @ np.ones((4, 0)),
        lambda: b + np.ones(3),
        lambda: b + None,
        lambda: b * "2",
        lambda: b**-1,
        lambda: b**2.0,
        lambda: ckks.encrypt(arrays.client, [[1.0], [1.0, 2.0]]),
        lambda: b.sum(axis=2),
        lambda: b[2:2],
        lambda: ckks.concatenate([b, b[:, :2]]),
        lambda: ckks.encrypt(arrays.client, np.ones((2, 2, 2))),
        lambda: ckks.encrypt(arrays.client, []),
        lambda: ckks.encrypt(arrays.client, x, "diagonal"),
        lambda: ckks.encrypt(arrays.client, x, slots=3),
        lambda: ckks.encrypt(arrays.client, ["a"]),
        lambda: b + float("nan"),
        lambda: b / np.zeros(4),
        lambda: ckks.concatenate([a.ciphertext], axis=1),
    ):
        with pytest.raises(ckks.ParameterError):
            use()
    for index in (3, -4, (0, 4), (0, 0, 0)):
        with pytest.raises(IndexError):
            b[index]
    for use in (lambda: b + a.ciphertext, lambda: b / b, lambda: bool(b), lambda: np.asarray(b),
                lambda: b["x"], lambda: arrays.ev(3), lambda: b == b,
                lambda: ckks.concatenate([b, a.ciphertext]),
                lambda: ckks.concatenate([a.ciphertext, b])):  # fmt: skip
        with pytest.raises(TypeError):
            use()
    with pytest.raises(ZeroDivisionError):
        b / 0
    with pytest.raises(ckks.UnsupportedError, match="one vector at a time"):
        b @ b.T
    with pytest.raises(TypeError):
        pickle.dumps(b)
    assert np.abs(arrays.client.decrypt(b) - x).max() < TOLERANCE


def test_public_keys_encrypt_arrays(arrays, fresh):
    x = fresh.uniform(-1, 1, (3, 4)) * (1 + 1j)
    a = ckks.encrypt(arrays.client.public_key(), x)
    assert a.dtype == np.complex128 and np.abs(arrays.client.decrypt(a) - x).max() < TOLERANCE
    assert np.abs(arrays.client.decrypt(arrays.ev(a).conjugate()) - x.conj()).max() < TOLERANCE


def test_stated_bounds_of_arrays(arrays, fresh):
    x = fresh.uniform(-1, 1, (3, 4))
    a = arrays.ev(ckks.encrypt(arrays.client, x, bound=1.0))
    assert (a.bound, (a + a).bound, (a * 3).bound, (-a).T.bound) == (1.0, 2.0, 3.0, 1.0)
    assert ckks.encrypt(arrays.client, x).bound == np.inf
    assert a.error_bound(ckks.ErrorModel(arrays.params), max_abs=2.0).bound == 2.0
    with pytest.raises(ckks.ParameterError):
        ckks.encrypt(arrays.client, x, bound=1e-3)
    with pytest.raises(ckks.StateError, match="could reach"):
        a.at_level(0) * (1 << 30)


def test_arrays_are_not_compared(arrays):
    a = ckks.encrypt(arrays.client, np.ones((2, 2)))
    for use in (lambda: a < 1, lambda: a != 1, lambda: 1 in a):
        with pytest.raises(TypeError, match="decrypt"):
            use()
    assert "Array" in dir(ckks) and "encrypt" in dir(ckks)
    with pytest.raises(ckks.ParameterError) as caught:
        arrays.ev(a) + np.ones(3)
    assert caught.value.fields == {"shape_a": [2, 2], "shape_b": [3]}


def test_one_array_brings_the_evaluator_for_both(arrays, fresh):
    v, w, m = fresh.uniform(-1, 1, 6), fresh.uniform(-1, 1, 6), fresh.uniform(-1, 1, (3, 6))
    client, ev = arrays.client, arrays.ev
    a, b, c = (ckks.encrypt(client, x) for x in (v, w, m))
    for found, expected in (
        (ev(a) + b, v + w), (a - ev(b), v - w), (c @ ev(a), m @ v), (ev(c) @ a, m @ v),
        (ckks.concatenate([a, ev(b)]), np.concatenate([v, w])),
    ):  # fmt: skip
        assert np.abs(client.decrypt(found) - expected).max() < TOLERANCE
    with pytest.raises(ckks.StateError, match="ev\\(array\\)"):
        a + b


def test_a_stated_bound_is_that_of_the_array(arrays):
    a = ckks.encrypt(arrays.client, np.full(8, 0.5), bound=1.0)
    assert a.ciphertext.bound == 1.0 and (arrays.ev(a) + a).ciphertext.bound == 2.0
    with pytest.raises(ckks.ParameterError):
        ckks.encrypt(arrays.client, np.full(8, 2.0), bound=1.0)


def test_refusals_name_values_and_what_to_call(arrays):
    a = arrays.ev(ckks.encrypt(arrays.client, np.ones(4)))
    with pytest.raises(ckks.ParameterError) as caught:
        a + np.ones(7)
    assert caught.value.fields == {"shape_a": [4], "shape_b": [7]}
    with pytest.raises(TypeError, match="client"):
        ckks.encrypt(arrays.context, np.ones(4))
    with pytest.raises(TypeError, match="decrypt"):
        a < 1  # noqa: B015


def test_arguments_of_other_types_are_named(arrays):
    a = ckks.encrypt(arrays.client, np.ones((3, 4)))
    for x in (a, arrays.ev(a)):
        for axis in ((0, 1), np.array([0, 1]), "a", 0.5, True):
            for f in (x.sum, x.mean, lambda axis, x=x: ckks.concatenate([x, x], axis)):
                with pytest.raises(TypeError, match=f"^axis: expected an integer, got {type(axis).__name__}"):
                    f(axis)
        with pytest.raises(TypeError, match="^basis: expected a string, got ndarray$"):
            x.polynomial([0.0, 1.0], np.array([-1.0, 1.0]))
        for interval in (5, (1,), (1, 2, 3), ("a", "b"), (1j, 2), (np.ones(2), 1)):
            with pytest.raises(TypeError, match="^interval: expected "):
                x.polynomial([0.0, 1.0], "chebyshev", interval)
        with pytest.raises(ckks.ParameterError, match=r"slots of shape \(1,\), expected 1 row\(s\) of 16"):
            x.unpack([1.0])
        with pytest.raises(ckks.ParameterError, match="slots must be numbers"):
            x.unpack("abc")
        with pytest.raises(TypeError, match=r"^client: expected crenel\.ckks\.Client, got int$"):
            x.decrypt(5)


def test_masked_places_are_refused(arrays):
    """They were encrypted and added as what stands under the mask."""
    x = arrays.ev(ckks.encrypt(arrays.client, np.ones(2)))
    clear, masked = (np.ma.array([1.0, 2.0], mask=[0, last]) for last in (0, 1))
    assert np.abs((x + clear).decrypt(arrays.client) - [2.0, 3.0]).max() < TOLERANCE
    for f in (
        lambda: ckks.encrypt(arrays.client, masked), lambda: ckks.encrypt(arrays.client, [masked, masked]),
        lambda: x + masked, lambda: masked + x, lambda: x * masked, lambda: x / masked, lambda: x @ masked,
        lambda: x + np.ma.masked, lambda: x.polynomial(masked),
    ):  # fmt: skip
        with pytest.raises(ckks.ParameterError, match="has masked places, expected numbers in all of them"):
            f()
