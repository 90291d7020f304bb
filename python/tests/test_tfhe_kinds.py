"""Kinds of encrypted arrays: every method takes a pair of kinds or raises a typed error; nothing else."""

import inspect
import itertools

import numpy as np
import pytest
from tfhe_world import tfhe_world

from crenel import tfhe

COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
GATES = ["and_", "or_", "nand", "nor", "xor", "xnor"]
BITWISE = ["bit_and", "bit_or", "bit_xor"]
INTEGERS = ["div", "rem", "divmod", "min_max", "dot", "add_overflow", "sub_overflow", "mul_overflow"]
PAIRS = {
    **dict.fromkeys(GATES, {"bit"}),
    **dict.fromkeys([*BITWISE, *INTEGERS], {"integer"}),
    **dict.fromkeys(["add", "sub", "mul", "min", "max"], {"message", "integer"}),
    **dict.fromkeys(COMPARISONS, {"bit", "message", "integer"}),
}
ONE = {
    "not_": {"bit"},
    "any": {"bit"},
    "all": {"bit"},
    "refresh": {"bit", "message"},
    "lut": {"bit", "message"},
    "floor": {"message"},
    "sign": {"message"},
    "decompose": {"message"},
    "pack": {"bit", "message"},
    "neg": {"message", "integer"},
    "bit_not": {"integer"},
    "shift_left": {"integer"},
    "shift_right": {"integer"},
    "rotate_left": {"integer"},
    "rotate_right": {"integer"},
    "leading_zeros": {"integer"},
    "trailing_zeros": {"integer"},
    "count_ones": {"integer"},
    "abs": {"integer"},
    "cast": {"integer"},
    "sort": {"integer"},
    "amin": {"integer"},
    "amax": {"integer"},
    "argmin": {"integer"},
    "argmax": {"integer"},
    "sum": {"bit", "message", "integer"},
    "to_messages": {"bit"},
    "to_bits": {"message"},
    "to_integers": {"bit", "message"},
    "one_hot": {"message"},
    "histogram": {"message"},
}
MANY = {"majority": 3, "and3": 3, "or3": 3, "and4": 4, "or4": 4, "mux": 3}
ARGUMENTS = {"lut": [[0] * 16], "floor": [2], "decompose": [2], "cast": ["int16"]}
ARGUMENTS |= {f"{move}_{side}": [2] for move in ("shift", "rotate") for side in ("left", "right")}


def wrapped(operation):
    """operation, and where 8 bits do not hold what it gives."""

    def both(x, y):
        exact = operation(x.astype(int), y.astype(int))
        return exact % 256, (exact < 0) | (exact > 255)

    return both


NUMPY = {
    "and_": np.logical_and,
    "or_": np.logical_or,
    "xor": np.logical_xor,
    "nand": lambda x, y: ~(x & y),
    "nor": lambda x, y: ~(x | y),
    "xnor": lambda x, y: x == y,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "div": lambda x, y: np.where(y == 0, 255, x // np.maximum(y, 1)),
    "rem": lambda x, y: np.where(y == 0, x, x % np.maximum(y, 1)),
    "divmod": lambda x, y: (NUMPY["div"](x, y), NUMPY["rem"](x, y)),
    "min_max": lambda x, y: (np.minimum(x, y), np.maximum(x, y)),
    "dot": lambda x, y: np.sum(x * y, dtype=np.uint8),
    "add_overflow": wrapped(np.add),
    "sub_overflow": wrapped(np.subtract),
    "mul_overflow": wrapped(np.multiply),
}


@pytest.fixture
def world(device):
    return tfhe_world("toy-lut4", device)


def clear_of(kind, rng, shape=(3,)):
    high = {"bit": 2, "message": 16, "integer": 256}[kind]
    return rng.integers(0, high, shape).astype(bool if kind == "bit" else np.uint8)


def encrypt(world, kind, values):
    return world.client.encrypt(values, bits=4) if kind == "message" else world.client.encrypt(values)


def check(world, found, expected):
    found = world.client.decrypt(found)
    np.testing.assert_array_equal(found, expected)


def test_the_tables_above_name_every_method():
    plain = {"circuits", "context", "keys", "max_p_fail_log2", "p_fail_log2", "select", "take", "random"}
    plain |= {"compress", "decompress"}  # of every kind: test_tfhe_compressed.py
    plain |= {"steps", "step_table"}  # test_tfhe_steps.py
    plain |= {"circuit", "circuit_rounds"}  # of programs: test_tfhe_programs.py
    methods = {n for n in dir(tfhe.Evaluator) if not n.startswith("_")}
    assert methods == plain | set(PAIRS) | set(ONE) | set(MANY)
    assert all(inspect.getdoc(getattr(tfhe.Evaluator, n)) for n in methods)


KINDS = ["bit", "message", "integer"]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(KINDS, KINDS)))
@pytest.mark.parametrize("name", sorted(PAIRS))
def test_pairs_of_kinds(world, rng, name, first, second):
    x, y = clear_of(first, rng), clear_of(second, rng)
    a, b = encrypt(world, first, x), encrypt(world, second, y)
    call = getattr(world.ev, name)
    encrypted_product = name == "mul" and first == "message"
    if first != second or first not in PAIRS[name] or encrypted_product:
        with pytest.raises(TypeError, match="found .*expected.*ev\\."):
            call(a, b)
        return
    expected = NUMPY.get(name) or getattr(np, name)
    values, found = expected(x, y), call(a, b)
    if not isinstance(found, tuple):
        values, found = (values,), (found,)
    for value, part in zip(values, found, strict=True):
        check(world, part, value % 16 if first == "message" else value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(ONE))
def test_single_kinds(world, rng, name, kind):
    a = encrypt(world, kind, clear_of(kind, rng))
    call = getattr(world.ev, name)
    arguments = ARGUMENTS.get(name, [])
    if kind not in ONE[name]:
        with pytest.raises(TypeError, match=f"{name}: found encrypted {kind}s, expected .*ev\\."):
            call(a, *arguments)
        return
    try:
        call(a, *arguments)
    except tfhe.KeyMissingError:
        assert name == "pack"


@pytest.mark.parametrize("name", sorted(MANY))
def test_gates_of_many_inputs(world, rng, name):
    good = [world.client.encrypt(clear_of("bit", rng)) for _ in range(MANY[name])]
    getattr(world.ev, name)(*good)
    for kind in ("message", "integer"):
        for i in range(MANY[name]):
            wrong = [encrypt(world, kind, clear_of(kind, rng)) if j == i else g for j, g in enumerate(good)]
            with pytest.raises(TypeError, match=f"found encrypted {kind}s, expected bits"):
                getattr(world.ev, name)(*wrong)


@pytest.mark.parametrize("condition", KINDS)
@pytest.mark.parametrize(("first", "second"), list(itertools.product(KINDS, KINDS)))
def test_select(world, rng, condition, first, second):
    c, x, y = clear_of(condition, rng), clear_of(first, rng), clear_of(second, rng)
    a, b = encrypt(world, first, x), encrypt(world, second, y)
    chosen = encrypt(world, condition, c)
    if condition != "bit" or first != second:
        with pytest.raises(TypeError, match="found"):
            world.ev.select(chosen, a, b)
        return
    check(world, world.ev.select(chosen, a, b), np.where(c, x, y))


@pytest.mark.parametrize("kind", KINDS)
def test_files_keep_the_kind(world, rng, kind):
    a = encrypt(world, kind, clear_of(kind, rng))
    load = world.context.integers_from_bytes if kind == "integer" else world.context.ciphertext_from_bytes
    again = load(a.to_bytes())
    assert a.kind == again.kind == a[:2].kind == a.reshape(1, 3).kind == kind
    if kind == "message":
        with pytest.raises(TypeError, match="found encrypted messages, expected bits"):
            world.ev.not_(again)


@pytest.mark.parametrize("kind", KINDS)
def test_unbound_arrays_refuse_operators(world, rng, kind):
    x = clear_of(kind, rng)
    a = encrypt(world, kind, x)
    b = encrypt(world, kind, x)
    for call, method in (
        (lambda: a == b, "equal"),
        (lambda: a != 3, "not_equal"),
        (lambda: a < b, "less"),
        (lambda: x == a, "equal"),
        (lambda: a + b, "add"),
        (lambda: 1 + a, "add"),
        (lambda: x + a, "add"),
        (lambda: a & b, "and_"),
        (lambda: a << 1, "shift_left"),
        (lambda: a == None, "equal"),  # noqa: E711
    ):
        with pytest.raises(TypeError, match=rf"ev\.{method}\("):
            call()
    for bound in (a, world.ev(a)):
        for call in (lambda v=bound: bool(v), lambda v=bound: 1 if v else 0, lambda v=bound: not v):
            with pytest.raises(TypeError, match="truth"):
                call()
        with pytest.raises(TypeError, match="in"):
            3 in bound  # noqa: B015
        with pytest.raises(TypeError, match="decrypt"):
            np.asarray(bound)
        with pytest.raises(TypeError):
            hash(bound)
        assert len(bound) == 3 and len(list(bound)) == 3


def test_messages_say_what_to_do(world):
    ev = world.ev
    m = world.client.encrypt(np.array([3, 7], dtype=np.uint8), bits=4)
    b = world.client.encrypt(np.array([True, False]))
    n = world.client.encrypt(np.array([3, 7], dtype=np.uint8))
    for call, text in (
        (lambda: ev.and_(m, m), "and_: found encrypted messages, expected bits; compare messages (ev.equal"),
        (lambda: ev.add(b, b), "add: found encrypted bits, expected messages or integers; ev.to_messages"),
        (lambda: ev.lut(n, [0] * 16), "lut: found encrypted integers, expected bits or messages"),
        (lambda: ev.add(m, n), "add: found encrypted messages and integers, expected one kind; ev.to_i"),
        (lambda: ev.equal(m, b), "found encrypted messages and bits, expected one kind; ev.to_messages"),
        (lambda: ev.equal(m, 1.5), "expected encrypted messages or public integers, got float"),
        (lambda: ev.add(m, None), "got NoneType"),
        (lambda: ev.add(1, 2), "expected an encrypted array of messages or integers, got int"),
        (lambda: ev.select(m, m, m), "select, condition: found encrypted messages, expected bits"),
        (lambda: ev(3), "binding: expected an encrypted array"),
        (lambda: ev(m) & m, "and_: found encrypted messages"),
        (lambda: ev(m) << 1, "ev.lut"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert text in str(caught.value)


@pytest.mark.parametrize("device", ["cpu"])
def test_the_upper_half_is_that_of_the_messages(world):
    """With padding, phases of messages never reach the upper half of the modulus."""
    values = np.arange(16, dtype=np.uint8)
    signs = world.ev.sign(world.client.encrypt(values, bits=4))
    assert np.array_equal(world.client.decrypt(signs), values >= 8)
    both = world.ev.and_(signs, world.client.encrypt(values % 2 == 1))  # bits like any others
    assert np.array_equal(world.client.decrypt(both), (values >= 8) & (values % 2 == 1))


@pytest.mark.parametrize("device", ["cpu"])
def test_odd_operands_are_type_errors_that_say_what_to_do(world):
    messages = world.client.encrypt(np.array([1, 5], dtype=np.uint8), bits=4)
    integers = world.ev(world.client.encrypt(np.array([1, 5], dtype=np.uint8)))
    bound = world.ev(messages)
    for other in (["1", 1], [None], np.array(1.5, dtype=object)):
        for array in (bound, integers):
            with pytest.raises(TypeError, match="got an array of"):
                array + other
    for key in (True, np.True_, "0", 1.5, (0, True)):
        with pytest.raises(TypeError, match="ints, ranges"):
            messages[key]
    with pytest.raises(TypeError, match="encrypted key"):
        messages[integers]
    with pytest.raises(TypeError, match="public int as count"):
        integers << [1, 2]
    with pytest.raises(TypeError, match="encrypted count"):
        1 << bound
    check(world, 1 << integers, [2, 32])
    with pytest.raises(TypeError, match="got one array"):
        tfhe.concatenate(messages)
    assert tfhe.concatenate(m for m in (messages, bound)).shape == (4,)
