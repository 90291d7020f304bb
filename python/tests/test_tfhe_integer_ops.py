"""Division, shifts, counts, types, tables, reductions of encrypted integers, exact against Python's."""

import numpy as np
import pytest
from tfhe_world import open_tfhe, tfhe_world

from crenel import tfhe
from crenel.tfhe.types import integer_type

CIRCUITS = ["lean", "fast"]


@pytest.fixture
def world(device):
    return tfhe_world("toy-lut4", device)


@pytest.fixture
def cpu():
    return tfhe_world("toy-lut4", "cpu")


def draw(rng, dtype, count):
    """Values of a type, edges among them, as Python ints."""
    kind = integer_type("draw", dtype)
    edges = [kind.low, kind.high, 0, 1, kind.high - 1, kind.low + 1]
    span = kind.high - kind.low + 1
    spread = [int.from_bytes(rng.bytes(33), "little") % span + kind.low for _ in range(count)]
    small = [int(rng.integers(0, 4)) for _ in range(count)]
    return [[edges, spread, small][rng.integers(0, 3)][i % 6 if count >= 6 else 0] for i in range(count)]


def wrap(value, dtype):
    kind = integer_type("wrap", dtype)
    return (value - kind.low) % (1 << kind.bits) + kind.low


def check(world, found, expected):
    decrypted = world.client.decrypt(found)
    assert decrypted.dtype == found.dtype
    np.testing.assert_array_equal(decrypted, np.asarray(expected, dtype=found.dtype))


def divided(x, y, dtype):
    kind = integer_type("divided", dtype)
    if y == 0:
        return (-1 if kind.signed else kind.high), x
    return wrap(x // y, dtype), x % y


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int4", "uint10"])
def test_division(world, rng, dtype):
    x, y = draw(rng, dtype, 6), draw(rng, dtype, 6)
    x[0], y[0], y[1] = integer_type("x", dtype).low, -1 if dtype[0] == "i" else 1, 0
    a, b = (world.ev(world.client.encrypt(v, dtype=dtype)) for v in (x, y))
    expected = [divided(p, q, dtype) for p, q in zip(x, y, strict=True)]
    for form in CIRCUITS:
        ev = world.context.evaluator(world.keys, max_p_fail_log2=0, circuits=form)
        for i, found in enumerate(ev.divmod(a, b)):
            check(world, found, [e[i] for e in expected])
    for k in (1, 3, 7):
        check(world, a // k, [wrap(p // k, dtype) for p in x])
        check(world, a % k, [p % k for p in x])
    check(world, 5 // b, [divided(5, q, dtype)[0] for q in y])
    check(world, 5 % b, [divided(5, q, dtype)[1] for q in y])


@pytest.mark.parametrize("dtype", ["uint128", "int256"])
def test_wide_integers(cpu, rng, dtype):
    x, y = draw(rng, dtype, 6)[:4], draw(rng, dtype, 6)[2:]
    ev = cpu.ev
    a, b = (ev(cpu.client.encrypt(v, dtype=dtype)) for v in (x, y))
    assert (a.type.name, a.dtype) == (dtype, np.dtype(object))
    check(cpu, a + b, [wrap(p + q, dtype) for p, q in zip(x, y, strict=True)])
    check(cpu, a - b, [wrap(p - q, dtype) for p, q in zip(x, y, strict=True)])
    check(cpu, a - (1 << 100), [wrap(p - (1 << 100), dtype) for p in x])
    check(cpu, a + y, [wrap(p + q, dtype) for p, q in zip(x, y, strict=True)])
    check(cpu, a < b, [p < q for p, q in zip(x, y, strict=True)])
    check(cpu, a == b, [p == q for p, q in zip(x, y, strict=True)])
    check(cpu, ev.max(a, b), [max(p, q) for p, q in zip(x, y, strict=True)])
    check(cpu, a * 7, [wrap(p * 7, dtype) for p in x])
    check(cpu, a >> 65, [p >> 65 for p in x])
    bits, mask = a.bits, (1 << a.bits) - 1
    check(cpu, ev.leading_zeros(a), [bits - (p & mask).bit_length() for p in x])
    check(cpu, ev.count_ones(a), [(p & mask).bit_count() for p in x])
    again = cpu.context.integers_from_bytes(a.to_bytes())
    assert repr(again) == repr(a.unbound)
    check(cpu, again, x)
    check(cpu, a.astype("int64"), [wrap(p, "int64") for p in x])
    check(cpu, a.astype("uint8").astype(dtype), [p & 255 for p in x])


def test_wide_products_and_divisions(cpu, rng):
    x, y = draw(rng, "uint66", 2), draw(rng, "uint66", 2)
    a, b = (cpu.client.encrypt(v, dtype="uint66") for v in (x, y))
    check(cpu, cpu.ev.mul(a, b), [wrap(p * q, "uint66") for p, q in zip(x, y, strict=True)])
    check(cpu, cpu.ev.div(a[:1], 10), [x[0] // 10])


@pytest.mark.parametrize(("dtype", "counts"), [("uint8", "uint8"), ("int8", "uint4"), ("int10", "uint16")])
def test_shifts_by_encrypted_counts(world, rng, dtype, counts):
    x = draw(rng, dtype, 8)
    bits, most = integer_type("x", dtype).bits, integer_type("c", counts).high
    by = [0, 1, bits - 1, bits, most, *(int(rng.integers(0, min(most, 2 * bits))) for _ in range(3))]
    by = [min(c, most) for c in by]
    a, n = world.ev(world.client.encrypt(x, dtype=dtype)), world.client.encrypt(by, dtype=counts)
    pairs = list(zip(x, by, strict=True))
    check(world, a << n, [wrap(p << min(c, bits), dtype) for p, c in pairs])
    check(world, a >> n, [p >> min(c, bits) for p, c in pairs])

    def rotated(p, c):
        low = p % (1 << bits)
        return wrap(low << c % bits | low >> (bits - c % bits), dtype)

    check(world, world.ev.rotate_left(a, n), [rotated(p, c) for p, c in pairs])
    check(world, world.ev.rotate_right(a, n), [rotated(p, -c) for p, c in pairs])
    check(world, world.ev.rotate_left(a, 3), [rotated(p, 3) for p in x])
    check(world, 3 << world.ev(n), [wrap(3 << min(c, 99), counts) for c in by])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int12"])
def test_signs_counts_and_types(world, rng, dtype):
    x = draw(rng, dtype, 8)
    a, ev = world.client.encrypt(x, dtype=dtype), world.ev
    bits, mask = a.bits, (1 << a.bits) - 1
    check(world, ev.abs(a), [wrap(abs(p), dtype) for p in x])
    check(world, ev.leading_zeros(a), [bits - (p & mask).bit_length() for p in x])
    check(world, ev.trailing_zeros(a), [((p & -p).bit_length() - 1) if p else bits for p in x])
    check(world, ev.count_ones(a), [(p & mask).bit_count() for p in x])
    for to in ("uint4", "int16", "uint32", "int8"):
        converted = ev.cast(a, to)
        assert converted.type.name == to
        check(world, converted, [wrap(p, to) for p in x])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_overflow(world, rng, dtype):
    x, y = draw(rng, dtype, 6), draw(rng, dtype, 6)
    a, b = (world.client.encrypt(v, dtype=dtype) for v in (x, y))
    for name, exact in (
        ("add", lambda p, q: p + q),
        ("sub", lambda p, q: p - q),
        ("mul", lambda p, q: p * q),
    ):
        for other, values in ((b, y), (3, [3] * 6)):
            value, flag = getattr(world.ev, f"{name}_overflow")(a, other)
            results = [exact(p, q) for p, q in zip(x, values, strict=True)]
            check(world, value, [wrap(r, dtype) for r in results])
            check(world, flag, [wrap(r, dtype) != r for r in results])


def test_tables(world, rng):
    table = rng.integers(-128, 128, 256).astype(np.int8)
    at = rng.integers(0, 256, (2, 2)).astype(np.uint8)
    index = world.client.encrypt(at)
    check(world, world.ev.take(table, index), table[at])
    check(
        world,
        world.ev.take([7, 1000], index, dtype="uint16"),
        np.where(at < 2, [[7, 7], [7, 7]], 0) + 993 * (at == 1),
    )
    small = world.client.encrypt([0, 3], dtype="uint2")
    check(world, world.ev.take([5, 6, 7, 8], small, dtype="uint4"), [5, 8])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_reductions(world, rng, dtype):
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (3, 3), dtype=dtype, endpoint=True)
    x[1, 1] = x[2, 1] = x[0, 1]  # the first of equal ones
    a = world.ev(world.client.encrypt(x))
    for axis in (None, 0, 1, -1):
        check(world, a.sum(axis), x.sum(axis, dtype=dtype))
        check(world, a.min(axis), x.min(axis))
        check(world, a.max(axis), x.max(axis))
        check(world, a.argmin(axis), x.argmin(axis))
        check(world, a.argmax(axis), x.argmax(axis))
    check(world, a.sum(1, keepdims=True), x.sum(1, keepdims=True, dtype=dtype))
    check(world, a.max((0, 1), keepdims=True), x.max((0, 1), keepdims=True))
    check(world, a.sum(0, dtype="int16"), x.sum(0, dtype=np.int16))
    check(world, world.ev.sort(a, 0), np.sort(x, 0))
    check(world, world.ev.sort(a), np.sort(x))
    check(world, a.dot(a[0]), (x * x[0]).sum(1, dtype=dtype))
    check(world, a @ x[0], (x * x[0]).sum(1, dtype=dtype))
    check(world, x[0] @ a[1], (x[0] * x[1]).sum(dtype=dtype))
    check(world, world.ev.dot(a, x[:, :1], axis=0), (x * x[:, :1]).sum(0, dtype=dtype))


def test_numpy_front(cpu, rng):
    x, y = rng.integers(0, 256, (2, 5)).astype(np.uint8)
    y[2] = x[2]
    a, b, ev = cpu.ev(cpu.client.encrypt(x)), cpu.ev(cpu.client.encrypt(y)), cpu.ev
    for f in (np.add, np.subtract, np.multiply, np.minimum, np.maximum, np.bitwise_xor, np.less, np.equal):
        check(cpu, f(a, b), f(x, y))
        check(cpu, f(x, b), f(x, y))
        check(cpu, f(a, y[0]), f(x, y[0]))
    check(cpu, np.divmod(a, 7)[1], x % 7)
    check(cpu, np.invert(a), ~x)
    check(cpu, np.negative(a), (0 - x).astype(np.uint8))
    check(cpu, np.left_shift(a, 3), x << np.uint8(3))
    check(cpu, np.bitwise_count(a), np.bitwise_count(x))
    check(cpu, x + b, x + y)
    check(cpu, x < b, x < y)
    check(cpu, np.logical_and(a < b, a == x), x < y)
    check(cpu, np.where(a < b, a, b), np.minimum(x, y))
    for f in (np.sum, np.max, np.min, np.argmax, np.argmin, np.sort):
        check(cpu, f(a), np.asarray(f(x)).astype(f(a).dtype))
    check(cpu, np.add.reduce(a), np.add.reduce(x, dtype=np.uint8))
    check(cpu, np.concatenate([a, b]), np.concatenate([x, y]))
    check(cpu, np.concatenate([a[None], b[None]], axis=1), np.concatenate([x[None], y[None]], axis=1))
    held = c = a
    c += b
    c <<= 1
    check(cpu, c, (x + y) << np.uint8(1))
    check(cpu, held, x)
    check(cpu, a[::-2], x[::-2])
    check(cpu, abs(a), x)
    for call, text in (
        (lambda: np.add(a, b, out=x), "no out"),
        (lambda: np.exp(a), "np.exp: not computed of encrypted integers"),
        (lambda: np.multiply.reduce(a), "multiply.reduce"),
        (lambda: np.cumsum(a), "np.cumsum"),
        (lambda: a / 2, "rounds down"),
        (lambda: ev(a < b) << 1, "shifts encrypted integers"),
        (lambda: a @ a[None], "expected one axis on the right"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_what_is_refused(cpu):
    ev, client = cpu.ev, cpu.client
    a = client.encrypt(np.array([1, 2], dtype=np.uint8))
    s = client.encrypt(np.array([1, 2], dtype=np.int8))
    wide = client.encrypt([1, 2], dtype="uint16")
    for call, error, text in (
        (lambda: client.encrypt([-16], dtype="int4"), tfhe.ParameterError, "-8 to 7 for int4, element 0"),
        (lambda: client.encrypt([0, 4], dtype="uint2"), tfhe.ParameterError, "element 1"),
        (lambda: client.encrypt([1], dtype="uint7"), tfhe.ParameterError, "even number from 2 to 256"),
        (lambda: client.encrypt([1], dtype="int258"), tfhe.ParameterError, "even number from 2 to 256"),
        (lambda: client.encrypt([1], dtype="float64"), tfhe.ParameterError, "dtype must be of integers"),
        (lambda: client.encrypt([1.5], dtype="uint8"), tfhe.ParameterError, "must be integers"),
        (lambda: client.encrypt([1], bits=4, dtype="uint8"), tfhe.ParameterError, "dtype goes without bits"),
        (lambda: ev.div(a, 0), tfhe.ParameterError, "public divisor is 0"),
        (lambda: ev.rem(a, np.array([1, 0])), tfhe.ParameterError, "element 1"),
        (lambda: ev.div(a, 256), tfhe.ParameterError, "no uint8"),
        (lambda: ev.add(a, wide), tfhe.StateError, r"uint8 and uint16, expected one type; ev\.cast"),
        (lambda: ev.divmod(a, s), tfhe.StateError, "uint8 and int8"),
        (lambda: ev.shift_left(a, 8), tfhe.ParameterError, "expected 0..7"),
        (lambda: ev.rotate_right(a, -1), tfhe.ParameterError, "count"),
        (lambda: ev.shift_left(a, s), tfhe.StateError, "signed"),
        (lambda: ev.shift_left(a, client.encrypt([1, 2, 3], dtype="uint8")), tfhe.StateError, "broadcast"),
        (lambda: ev.take(np.arange(257), a), tfhe.ParameterError, "257 entries"),
        (lambda: ev.take(np.zeros((2, 2), int), a), tfhe.ParameterError, "one axis"),
        (lambda: ev.take([], a, dtype="uint8"), tfhe.ParameterError, "at least one"),
        (lambda: ev.take([1, 300], a, dtype="uint8"), tfhe.ParameterError, "entry 1"),
        (lambda: ev.take([1], s), tfhe.StateError, "signed"),
        (lambda: ev.cast(a, "complex64"), tfhe.ParameterError, "dtype must be"),
        (lambda: ev.argmax(a, 1), tfhe.ParameterError, "axis 1"),
        (lambda: ev.sort(a, 1), tfhe.ParameterError, "axis 1"),
        (lambda: ev.dot(a, wide), tfhe.StateError, "one type"),
        (lambda: ev.random((2, 0)), tfhe.ParameterError, "at least one"),
        (lambda: ev.random(2, seed=b"1"), tfhe.ParameterError, "seed of 1 bytes"),
        (lambda: tfhe.concatenate([a, wide]), tfhe.StateError, "uint16"),
        (lambda: cpu.context.evaluator(cpu.keys, circuits="wide"), tfhe.ParameterError, "lean, fast"),
    ):
        with pytest.raises(error, match=text):
            call()
    check(cpu, ev.add(a, a), [2, 4])  # unharmed


def test_numpy_rules_at_the_edges(cpu, rng):
    ev, client = cpu.ev, cpu.client
    s = np.array([-128, -7, -1, 0, 7, 127], dtype=np.int8)
    a = ev(client.encrypt(s))
    # NumPy counts in the absolute value, count_ones in two's complement
    check(cpu, np.bitwise_count(a), np.bitwise_count(s))
    check(cpu, ev.count_ones(a), [1, 6, 8, 0, 3, 7])
    check(cpu, +a, s)
    x = rng.integers(0, 5, (2, 3, 2)).astype(np.uint8)
    b = ev(client.encrypt(x))
    for axis in (None, 0, -2, 2):
        for f in (np.argmax, np.argmin):
            check(cpu, f(b, axis, keepdims=True), f(x, axis, keepdims=True))
        check(cpu, np.sort(b, axis), np.sort(x, axis))
    check(cpu, b.argmin(1, keepdims=True), x.argmin(1, keepdims=True))
    check(cpu, np.sum(b, 0, None, None, True), np.sum(x, 0, np.uint8, None, True))
    check(cpu, np.max(b, 0, None, True), np.max(x, 0, None, True))
    check(cpu, np.concatenate([b, b], axis=None), np.concatenate([x, x], axis=None))
    flat, column = ev(client.encrypt(x[0])), ev(client.encrypt(x[0, :, :1]))
    for call, error, text in (
        (lambda: flat @ np.array([3]), tfhe.StateError, r"shapes \(3, 2\) and \(1,\)"),
        (lambda: column @ np.array([3, 4, 5]), tfhe.StateError, "one length"),
        (lambda: [1, 2, 3] @ flat[0], tfhe.StateError, "one length"),
        (lambda: np.matmul(column, flat[0]), tfhe.StateError, "one length"),
        (lambda: np.concatenate([b, flat]), tfhe.StateError, r"\(2, 3, 2\) and \(3, 2\) along axis 0"),
        (lambda: np.concatenate([b, b], axis=3), tfhe.StateError, "along axis 3"),
        (lambda: np.sort(b, kind="stable"), TypeError, r"np\.sort: encrypted arrays take a, axis; .*'kind'"),
        (lambda: np.sum(b, initial=1), TypeError, r"np\.sum: .*'initial'"),
        (lambda: np.maximum.reduce(b, dtype=np.int16), TypeError, r"np\.maximum\.reduce: .* no dtype"),
        (lambda: np.reshape(b, (12,), order="F"), TypeError, r"np\.reshape: .*'order'"),
        (lambda: b + [[1], [2, 3]], tfhe.ParameterError, "add: .* several lengths"),
        (lambda: ev.take([[1], [2, 3]], b), tfhe.ParameterError, "take, table: .* several lengths"),
        (lambda: client.encrypt([[1], [2, 3]], dtype="uint8"), tfhe.ParameterError, "several lengths"),
        (lambda: b << (1 << 70), tfhe.ParameterError, r"shift_left: count .* 0\.\.7"),
        (lambda: b >> -1, tfhe.ParameterError, r"shift_right: count -1, expected 0\.\.7"),
        (lambda: ev.rotate_left(b, 8), tfhe.ParameterError, r"rotate_left: count 8, expected 0\.\.7"),
        (lambda: ev.random(2, seed=32), tfhe.ParameterError, "seed of int, expected 32 bytes"),
        (lambda: ev.random(2, seed=b""), tfhe.ParameterError, "seed of 0 bytes"),
        (lambda: ev.random(2, seed=[1] * 32), tfhe.ParameterError, "seed of list"),
        (lambda: tfhe.IntegerType(8.0), tfhe.ParameterError, "8.0 bits"),
        (lambda: tfhe.IntegerType(8, "no"), tfhe.ParameterError, "signed 'no'"),
    ):
        with pytest.raises(error, match=text):
            call()
    wide = tfhe.IntegerType(np.int64(256), np.True_)
    assert wide == tfhe.IntegerType(256, True) and wide.low == -(1 << 255)


def test_random_integers(cpu, rng):
    seed = rng.bytes(32)
    drawn = cpu.ev.random((40, 20), "uint8", seed=seed)
    values = cpu.client.decrypt(drawn)
    assert (cpu.client.decrypt(cpu.ev.random((40, 20), "uint8", seed=seed)) == values).all()
    assert (cpu.client.decrypt(cpu.ev.random(800, "uint8")) != values.reshape(-1)).any()
    # each bit of 800 values: 8 standard deviations of 14.1, a false alarm in 2^-49 runs for each
    for bit in range(8):
        assert abs(int((values >> bit & 1).sum()) - 400) < 113
    # another key, other numbers: the seed alone tells nothing
    other = tfhe_world("toy-lut4", "cpu").context.keygen()
    ev = cpu.context.evaluator(other.evaluation_keys(), max_p_fail_log2=0)
    assert (other.decrypt(ev.random((40, 20), "uint8", seed=seed)) != values).mean() > 0.9
    check(cpu, cpu.ev.sub(drawn, drawn), np.zeros((40, 20)))


def test_ref_and_cpu_give_the_same_bytes(rng):
    """Both forms, from the same keys and inputs; noise within what the set itself promises."""
    worlds = [tfhe_world("toy-lut4", d) for d in ("cpu", "ref")]
    client, (_, ref) = worlds[0].client, worlds
    keys = worlds[0].keys.to_bytes()
    x, y = (
        client.encrypt(rng.integers(0, 256, (2, 2)).astype(np.uint8)).to_bytes(),
        client.encrypt([3, 77], dtype="uint8").to_bytes(),
    )
    seed = rng.bytes(32)

    def results(context, form):
        ev = context.evaluator(context.evaluation_keys_from_bytes(keys), circuits=form)
        assert ev.max_p_fail_log2 < -80 and ev.circuits == form
        a, b = context.integers_from_bytes(x), context.integers_from_bytes(y)
        yield from ev.divmod(a[0], b)
        yield from ev.add_overflow(a[0], b)
        yield ev.mul(a[0], b)
        yield ev.shift_left(a[0], b)
        yield ev.leading_zeros(b)
        yield ev.take(np.arange(20, dtype=np.uint8), b)
        yield ev.dot(a, b)
        yield ev.sort(a, 0)
        yield ev.random(3, "uint4", seed=seed)

    assert ref.context.device.name == "ref"
    opened = {}
    for form in CIRCUITS:
        found = [[r.to_bytes() for r in results(w.context, form)] for w in worlds]
        assert found[0] == found[1]
        opened[form] = [client.decrypt(r).tolist() for r in results(worlds[0].context, form)]
    assert opened["lean"] == opened["fast"]


def test_circuits_are_chosen_by_the_work(cpu):
    """Lean where the processors are busy anyway, fast where rounds are what counts; never worse than both."""
    from crenel import _crenel

    cost = _crenel.tfhe_integer_cost
    assert cost("add", 64, False, "automatic", 1, 132) == cost("add", 64, False, "fast")
    for size, processors in ((100, 132), (1000, 132), (1, 1), (1, 2), (100, 2)):
        assert cost("add", 64, False, "automatic", size, processors) == cost("add", 64, False, "lean")
    with pytest.raises(tfhe.ParameterError, match="unknown operation"):
        cost("root", 8, False)


def test_packed_contexts_have_no_integers():
    context = open_tfhe(tfhe.preset("toy-raising", allow_insecure=True), "cpu")
    with pytest.raises(tfhe.ParameterError, match="p = 32"):
        context.keygen().encrypt([1], dtype="uint8")
