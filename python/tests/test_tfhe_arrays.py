"""Encrypted arrays: types, shapes, slices, files."""

import pickle

import numpy as np
import pytest
from tfhe_world import encrypted, open_tfhe, quiet, tfhe_world

from crenel import tfhe

SHAPES = [(), (1,), (7,), (2, 3), (2, 1, 4)]


@pytest.fixture
def bits(device):
    return tfhe_world("toy-gadget", device)


@pytest.fixture
def tables(device):
    return tfhe_world("toy-lut4", device)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes_and_bytes(bits, rng, shape):
    x = rng.integers(0, 2, shape).astype(bool)
    a = bits.client.encrypt(x)
    assert (a.shape, a.ndim, a.size, a.dtype) == (x.shape, x.ndim, x.size, np.dtype(bool))
    np.testing.assert_array_equal(bits.client.decrypt(a), x)
    again = bits.context.ciphertext_from_bytes(a.to_bytes())
    assert (again.shape, again.dtype) == (a.shape, a.dtype)
    np.testing.assert_array_equal(bits.client.decrypt(again), x)


def test_order_of_memory_does_not_matter(bits, rng):
    x = rng.integers(0, 2, (4, 6)).astype(bool)
    for view in (x.T, x[::2], x[:, ::-1], np.asfortranarray(x)):
        np.testing.assert_array_equal(bits.client.decrypt(bits.client.encrypt(view)), view)
    np.testing.assert_array_equal(bits.client.decrypt(bits.client.encrypt(x.tolist())), x)


def test_slices(bits, rng):
    x = rng.integers(0, 2, (5, 3)).astype(bool)
    a = bits.client.encrypt(x)
    assert len(a) == 5
    for key in (0, -1, 4, slice(1, 3), slice(None), slice(-2, None), np.int64(2)):
        np.testing.assert_array_equal(bits.client.decrypt(a[key]), x[key])
    np.testing.assert_array_equal([bits.client.decrypt(row) for row in a], x)
    for key in (5, -6):
        with pytest.raises(IndexError):
            a[key]
    for key in (slice(2, 2), np.zeros(5, dtype=bool), (slice(None), [])):
        with pytest.raises(tfhe.ParameterError):
            a[key]
    for key in (
        slice(0, 4, 2),
        slice(None, None, -1),
        (1, 2),
        (slice(None), 1),
        (..., [2, 0]),
        [3, 3, 0],
        x[:, 0],
        None,
        (slice(1, 3), None, slice(None, None, -2)),
    ):
        if np.size(x[key]):  # a mask may pick nothing
            np.testing.assert_array_equal(bits.client.decrypt(a[key]), x[key])
    with pytest.raises(TypeError):
        len(bits.client.encrypt(True))
    with pytest.raises(IndexError):
        bits.client.encrypt(True)[0]


def test_slices_of_packed_arrays_begin_with_a_mask(device, rng):
    world = tfhe_world("toy-raising", device, 3)
    x = rng.integers(0, 2, 10).astype(bool)
    a = encrypted(world, x)
    np.testing.assert_array_equal(world.client.decrypt(a[3:8]), x[3:8])
    with pytest.raises(tfhe.ParameterError, match="multiple of 3"):
        a[1:4]


def test_concatenate_and_reshape(bits, rng):
    x, y = rng.integers(0, 2, (2, 3, 2)).astype(bool)
    a, b = bits.client.encrypt(x), bits.client.encrypt(y)
    np.testing.assert_array_equal(bits.client.decrypt(tfhe.concatenate([a, b, a])), np.concatenate([x, y, x]))
    np.testing.assert_array_equal(bits.client.decrypt(a.reshape(-1)), x.reshape(-1))
    np.testing.assert_array_equal(bits.client.decrypt(a.reshape((2, 3))), x.reshape(2, 3))
    np.testing.assert_array_equal(bits.client.decrypt(a.reshape(2, -1)), x.reshape(2, -1))
    with pytest.raises(tfhe.ParameterError):
        a.reshape(4, 2)
    with pytest.raises(tfhe.ParameterError):
        tfhe.concatenate([])
    with pytest.raises(tfhe.StateError):
        tfhe.concatenate([a, b.reshape(-1)])
    with pytest.raises(TypeError):
        tfhe.concatenate([a, x])


def test_messages_keep_their_type(tables, rng):
    for dtype in (np.uint8, np.int16, np.uint64, np.int64):
        m = rng.integers(0, 16, 5).astype(dtype)
        a = tables.client.encrypt(m, bits=4)
        found = tables.client.decrypt(tables.context.ciphertext_from_bytes(a.to_bytes()))
        assert isinstance(a, tfhe.Ciphertext) and found.dtype == dtype
        np.testing.assert_array_equal(found, m)


def test_tables(tables, rng):
    m = np.arange(16, dtype=np.uint8).reshape(2, 8)
    a = tables.client.encrypt(m, bits=4)

    def f(t):
        return (t * t + 1) % 16

    np.testing.assert_array_equal(tables.client.decrypt(tables.ev.lut(a, f)), f(m.astype(int)))
    table = rng.integers(0, 16, 16)
    np.testing.assert_array_equal(tables.client.decrypt(tables.ev.lut(a, table)), table[m])
    other = rng.integers(0, 16, 16)
    index = rng.integers(0, 2, m.shape)
    found = tables.client.decrypt(tables.ev.lut(a, [table, other], index=index))
    np.testing.assert_array_equal(found, np.where(index, other[m], table[m]))
    is_odd = tables.ev.lut(tables.client.encrypt(m % 2 == 1), [1, 0] + [0] * 14)
    assert is_odd.dtype == bool
    np.testing.assert_array_equal(tables.client.decrypt(is_odd), m % 2 == 0)


def test_tables_that_are_refused(tables):
    a = tables.client.encrypt(np.array([3]), bits=4)
    for table in ([0] * 15, [0] * 17, [16] + [0] * 15, [-1] + [0] * 15, lambda t: t + 1):
        with pytest.raises(tfhe.ParameterError):
            tables.ev.lut(a, table)
    for index in ([2], [-1], [0, 0], [0.0]):
        with pytest.raises(tfhe.ParameterError):
            tables.ev.lut(a, [[0] * 16, [1] * 16], index=index)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (np.zeros(0, dtype=bool), {}),
        (np.zeros((3, 0), dtype=np.uint8), {}),
        (np.array([1.0]), {}),
        (np.array([1j]), {}),
        (np.array(["1"]), {}),
        (np.array([16]), {"bits": 4}),
        (np.array([-1]), {"bits": 4}),
        (np.array([2]), {"bits": 1}),
        (np.array([1]), {"bits": 0}),
        (np.array([1]), {"bits": 5}),
        (np.array([True]), {"bits": 2}),
        (np.array([True]), {"fan_in": 3}),
        (np.array([True]), {"fan_in": 5}),
    ],
    ids=str,
)
def test_what_cannot_be_encrypted(tables, values, options):
    with pytest.raises(tfhe.ParameterError):
        tables.client.encrypt(values, **options)


def test_integers_need_a_set_for_tables(bits):
    with pytest.raises(tfhe.ParameterError):
        bits.client.encrypt(np.arange(4, dtype=np.uint8))


def test_repr_shows_no_secret(bits):
    a = bits.client.encrypt(np.ones((2, 3), dtype=bool))
    assert repr(a) == f"<tfhe.Ciphertext bool (2, 3), modulo 4, on {bits.context.device.name}>"
    key = bits.client.export_secret_key()
    for thing in (bits.client, bits.context, bits.ev, bits.keys, bits.context.params):
        assert repr(thing).startswith("<tfhe.") and len(repr(thing)) < 200
        assert key.hex() not in repr(thing)


def test_pickles(bits):
    params = bits.context.params
    assert pickle.loads(pickle.dumps(params)) == params
    for thing in (bits.client, bits.client.encrypt(np.array([True]))):
        with pytest.raises(TypeError):
            pickle.dumps(thing)


def test_secret_keys_travel_when_asked_for(bits, rng):
    x = rng.integers(0, 2, 20).astype(bool)
    again = bits.context.client_from_secret_key(bits.client.export_secret_key())
    np.testing.assert_array_equal(again.decrypt(bits.client.encrypt(x)), x)
    with pytest.raises(tfhe.SerializationError):
        bits.context.client_from_secret_key(bits.client.export_secret_key()[:-1])


def test_files_that_are_refused(bits, device):
    a = bits.client.encrypt(np.array([True, False]))
    good = a.to_bytes()
    other = tfhe_world("toy-raising", device)
    for load, data in (
        (bits.context.ciphertext_from_bytes, good[:-1]),
        (bits.context.ciphertext_from_bytes, good[:-3] + b"abc"),
        (bits.context.ciphertext_from_bytes, b""),
        (bits.context.integers_from_bytes, good),
        (bits.context.evaluation_keys_from_bytes, good),
        (other.context.ciphertext_from_bytes, good),
        (tfhe.Params.from_bytes, good),
    ):
        with pytest.raises(tfhe.SerializationError) as caught:
            load(data)
        assert caught.value.fields["where"]
    with pytest.raises(tfhe.StateError):
        other.client.decrypt(a)
    with pytest.raises(tfhe.StateError):
        other.context.evaluator(bits.keys)


def test_params(bits):
    assert {"bool128", "lut4-128", "M3", "G1", "STD128"} <= set(tfhe.preset_names())
    for name in ("bool128", "lut4-128", "bool128-classic", "lut4-128-classic"):
        p = tfhe.preset(name, allow_insecure=True)
        assert p.p_fail_log2 <= -128 and p.security_bits >= 128 and not p.warning
    assert tfhe.preset("M1").warning and tfhe.preset("M1").paper
    with pytest.raises(tfhe.ParameterError, match="bool128"):
        tfhe.preset("bool129")
    assert {tfhe.preset("bool128"): 1}[tfhe.preset("BOOL128")] == 1
    p = tfhe.preset("bool128-classic")
    assert p.with_slots(4).slots == 4 and p.with_slots(4) != p and p.with_slots(1) == p
    assert p.with_arithmetic("exact").arithmetic == "exact"
    for call in (lambda: p.with_arithmetic("fast"), lambda: p.with_slots(0), lambda: p.with_slots(17)):
        with pytest.raises(tfhe.ParameterError):
            call()
    with pytest.raises(tfhe.UnsupportedError):
        tfhe.preset("G4").with_arithmetic("approx")
    assert tfhe.preset("G4").arithmetic == "split"
    assert [tfhe.preset("G2").with_arithmetic(a).arithmetic for a in ("exact", "approx", "split")] == [
        "exact", "approx", "split",
    ]  # fmt: skip
    with pytest.raises(tfhe.UnsupportedError, match="split"):
        p.with_arithmetic("split")
    assert tfhe.Params.from_bytes(p.to_bytes()) == p


def test_a_set_below_the_norm_warns(device):
    open_tfhe(tfhe.preset("toy-raising", allow_insecure=True), device)  # or skips
    with pytest.warns(tfhe.InsecureParametersWarning, match="today's norm"):
        context = tfhe.Context(
            tfhe.preset("toy-raising", allow_insecure=True), device=device, packing=2, arithmetic="exact"
        )
    assert (context.params.slots, context.params.arithmetic) == (2, "exact")


def test_memory_is_accounted(device):
    context = quiet(lambda: tfhe.Context(tfhe.preset("toy-raising", allow_insecure=True), device="cpu"))
    client = context.keygen()
    before = context.bytes_in_use
    a = client.encrypt(np.ones(100, dtype=bool))
    assert context.bytes_in_use >= before + a.nbytes and a.nbytes == 100 * 17 * 4
    del a
    assert context.bytes_in_use == before
    context.reset_peak()
    assert context.peak_bytes == before


def test_threads_share_an_evaluator(bits, rng):
    from concurrent.futures import ThreadPoolExecutor

    x, y = rng.integers(0, 2, (2, 8, 50)).astype(bool)
    a, b = bits.client.encrypt(x), bits.client.encrypt(y)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(bits.ev.xor, list(a), list(b)))
    np.testing.assert_array_equal([bits.client.decrypt(r) for r in results], x ^ y)


def test_every_name_and_method_is_documented():
    for name in tfhe.__all__:
        assert getattr(tfhe, name).__doc__, name
    for kind in (tfhe.Params, tfhe.Context, tfhe.Client, tfhe.Evaluator, tfhe.Ciphertext, tfhe.Integers):
        for name in dir(kind):
            assert name.startswith("_") or getattr(kind, name).__doc__, f"{kind.__name__}.{name}"
