"""Sequences: norms, softmax and attention, in the clear, simulated and under encryption."""

from dataclasses import replace

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401
from test_nn_program import DEVICES, ran, usable

from crenel import nn
from crenel.errors import ParameterError, SerializationError, StateError, UnsupportedError
from crenel.nn.blocks import feature_transform, moves, roll_transform, shift_transform
from crenel.nn.intervals import TOLERANCE, Interval, exponential, inverse_root, reciprocal
from crenel.nn.layout import Layout
from crenel.nn.linear import applied, chain_map, slot_transform
from crenel.nn.ops import Linear
from crenel.nn.plan import Contract, Multiply, Refresh, Transform
from crenel.nn.sequences import Attend, Grouped, Product, Roll, Scores


def layer_weights(rng, layers, features, inner, sharp=1.0):  # noqa: F811
    """Of an encoder, by BERT's names; `sharp`: of queries and keys, whose scores grow with its square."""
    found = {}

    def linear(name, outputs, inputs, size=1.0):
        found[f"{name}.weight"] = size * weights(rng, outputs, inputs)
        found[f"{name}.bias"] = 0.1 * rng.standard_normal(outputs)

    for k in range(layers):
        at = f"encoder.layer.{k}."
        for part, size in (("query", sharp), ("key", sharp), ("value", 1.0)):
            linear(f"{at}attention.self.{part}", features, features, size)
        linear(f"{at}attention.output.dense", features, features)
        linear(f"{at}intermediate.dense", inner, features)
        linear(f"{at}output.dense", features, inner)
        for norm in ("attention.output", "output"):
            found[f"{at}{norm}.LayerNorm.weight"] = rng.uniform(0.5, 1.5, features)
            found[f"{at}{norm}.LayerNorm.bias"] = 0.2 * rng.standard_normal(features)
    return found


def attention(rng, features, heads, mask=None, sharp=1.0):  # noqa: F811
    """A module of random weights."""
    parts = [nn.Linear(size * weights(rng, features, features)) for size in (sharp, sharp, 1.0, 1.0)]
    return nn.MultiHeadAttention(heads, *parts, mask)


@pytest.mark.parametrize("_", range(8))
def test_weights_of_tokens_are_those_of_features(rng, _):  # noqa: F811
    """Several ciphertexts, groups, and tokens that are no power of two; against the matrix of all slots."""
    tokens, capacity = int(rng.integers(1, 9)), int(rng.choice([16, 32, 64]))
    given, made = (int(2 * k) for k in rng.integers(1, 13, 2))
    groups = int(rng.choice([1, 2]))
    op = Linear(weights(rng, made, given), rng.standard_normal(made))
    x = rng.standard_normal((3, tokens, given))
    layouts = [
        Layout.of((tokens, given), capacity),
        Layout.of((tokens, made), capacity).after(Grouped(groups)),
    ]
    short = feature_transform([[op, Grouped(groups)]], layouts[:1], layouts[1], [0.5], 2.0)
    long = slot_transform([chain_map([op], (tokens, given))], layouts[:1], layouts[1], [0.5], 2.0)
    packed = [np.tile(part, (1, short.slots // part.shape[1])) for part in layouts[0].pack(x)]
    found = []
    for transform in (short, long):
        sums = [y.reshape(3, transform.copies, -1).sum(axis=1) for y in applied(transform, packed)]
        slots = np.stack([y + b for y, b in zip(sums, transform.bias, strict=True)])
        found.append(layouts[1].unpack(slots))
        np.testing.assert_allclose(found[-1], 0.5 * (op(x) - op.bias) + op.bias / 2.0, atol=1e-12)
    assert short.offsets == [k for k in short.offsets if k % layouts[1].plane[0] == 0]


@pytest.mark.parametrize("_", range(6))
def test_products_of_rolled_values_are_scores_and_attention(rng, _):  # noqa: F811
    """The slots of one group: rolls, shifts and rotations against the definition."""
    tokens = int(rng.choice([4, 8, 16]))
    width, heads = int(rng.choice([2, 4])), int(rng.choice([1, 2, 4]))
    capacity = tokens**2 * heads
    narrow = Layout.of((tokens, width * heads), capacity)
    wide = Layout.of((tokens, tokens * heads), capacity)
    matrix = rng.standard_normal((tokens, tokens))
    roll = Roll(matrix, 1, width)
    q, k = rng.standard_normal((2, 2, tokens, width * heads))
    transform = roll_transform(roll, narrow, wide, 0.5)
    tiled = np.tile(narrow.pack(k)[0], (1, tokens // width))
    (rolled,) = applied(transform, [tiled])
    np.testing.assert_allclose(wide.unpack(rolled[None]), 0.5 * roll(k), atol=1e-12)
    for op, left, layout in (
        (Scores(1, width), q, narrow),
        (Attend(1, width), rng.standard_normal((2, *wide.shape)), wide),
    ):
        slots = layout.pack(left)[0]
        wide_left = np.tile(slots, (1, wide.slots // slots.shape[1]))
        for babies in (0, *(1 << k for k in range(width.bit_length()))):
            shifted = applied(shift_transform(op, wide, babies), [rolled])
            inner, outer = moves(op, babies)
            total = np.zeros_like(wide_left)
            for n, y in enumerate(shifted):
                g, x = divmod(n, babies or width)
                a, b = (inner[x], outer[g]) if isinstance(op, Scores) or not babies else (inner[g], outer[x])
                product = np.roll(wide_left, -a * tokens * heads, axis=1) * y
                total += np.roll(product, -b * tokens * heads, axis=1)
            out = wide if isinstance(op, Scores) else narrow
            total = total.reshape(2, -1, out.slots).sum(axis=1)
            np.testing.assert_allclose(out.unpack(total[None]), 0.5 * op(left, roll(k)), atol=1e-10)


def test_scores_and_attention_in_baby_and_giant_steps_have_one_matrix():
    """So that their rotations have the same keys: as many as without steps for one of the two."""
    wide = Layout.of((16, 16 * 2), 16 * 16 * 2)
    for babies in (1, 2, 4, 8):
        scores, attend = (shift_transform(kind(1, 8), wide, babies) for kind in (Scores, Attend))
        assert scores.offsets == attend.offsets and scores.rotations() == attend.rotations()
        for (one,), (other,) in zip(scores.blocks, attend.blocks, strict=True):
            assert all(np.array_equal(one[k], other[k]) for k in one)
        assert len(scores.rotations()) == len(shift_transform(Attend(1, 8), wide).rotations())


@pytest.mark.parametrize("_", range(6))
def test_attention_is_softmax_of_scores(rng, _):  # noqa: F811
    """Taken apart by offsets it is the textbook's, padding and heads that fill no group included."""
    tokens, size, heads = int(rng.choice([4, 8])), int(rng.integers(1, 5)), int(rng.integers(1, 6))
    mask = np.ones(tokens)
    mask[int(rng.integers(1, tokens + 1)) :] = 0.0
    features = heads * size
    module = attention(rng, features, heads, mask)
    x = rng.standard_normal((20, tokens, features))
    q, k, v = (layer(x) for layer in (module.query, module.key, module.value))
    wanted = np.zeros_like(x)
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        powers = np.exp(q[..., part] @ k[..., part].transpose(0, 2, 1) / np.sqrt(size)) * mask
        wanted[..., part] = powers / powers.sum(axis=-1, keepdims=True) @ v[..., part]
    wanted = module.output(wanted)
    np.testing.assert_allclose(module(x), wanted, atol=1e-10)
    program = quiet_compile(module, x, params=toy(), device="cpu")
    np.testing.assert_allclose(program.simulate(x, noise=False), wanted, atol=2e-3 * np.abs(wanted).max())
    again = nn.Program.from_bytes(program.to_bytes(), allow_insecure=True)
    assert again.explain() == program.explain() and again.fingerprint == program.fingerprint


@pytest.mark.parametrize("device", DEVICES)
def test_an_encoder_under_encryption(rng, device):  # noqa: F811
    """A layer of 8 tokens, two of them padding, within the model of errors; bootstraps included."""
    mask = np.array([1.0] * 6 + [0.0] * 2)
    head = (nn.Token(0), nn.Linear(weights(rng, 16, 16)), nn.Tanh(), nn.Linear(weights(rng, 2, 16)))
    model = nn.bert(layer_weights(rng, 1, 16, 32), 1, 2, mask=mask, head=head)
    x = rng.standard_normal((60, 8, 16))
    program = quiet_compile(model, x, params=toy("toy-boot40"), degree=31, batch=2, device=usable(device))
    kinds = {type(step) for step in program.plan.steps}
    assert {Contract, Multiply, Refresh} <= kinds
    again = nn.Program.from_bytes(program.to_bytes(), device, allow_insecure=True)
    found, ratio = ran(again, x[:2], device)
    assert 1e-4 < ratio < 4.0  # the model's bootstraps are of values all over [-1, 1]; these lie inside
    np.testing.assert_allclose(found, model(x[:2]), atol=2.0**-5)


def steady(rng, device):  # noqa: F811
    """A layer of wide scores that compiles: of one draw in twenty errors leave the range, refused then."""
    for _ in range(8):
        sharp = attention(rng, 16, 2, sharp=1.8)
        x = rng.standard_normal((40, 8, 16))
        try:
            return sharp, x, quiet_compile(sharp, x, params=toy("toy-boot40"), device=device)
        except UnsupportedError as error:
            assert "errors of encryption" in str(error)
    raise AssertionError("eight draws refused")


@pytest.mark.parametrize("device", DEVICES)
def test_groups_of_heads_and_squares_under_encryption(rng, device):  # noqa: F811
    """Eight heads in two ciphertexts, and scores so wide that softmax takes squares."""
    model = attention(rng, 16, 8)
    x = rng.standard_normal((40, 16, 16))
    program = quiet_compile(model, x, params=toy("toy-boot40"), batch=1, device=usable(device))
    assert any(value.layout.groups == 2 for value in program.plan.values)
    found, ratio = ran(program, x[:1], device)
    assert 1e-3 < ratio < 4.0
    np.testing.assert_allclose(found, model(x[:1]), atol=2.0**-5)
    sharp, x, program = steady(rng, device)
    assert "times squared" in program.explain()
    found, ratio = ran(program, x[:1], device)
    assert ratio < 4.0  # errors of a row cancel in its shares, which the model does not know
    np.testing.assert_allclose(found, sharp(x[:1]), atol=2.0**-5)


@pytest.mark.parametrize("device", DEVICES)
def test_contractions_in_any_steps_are_one_function(rng, device):  # noqa: F811
    """As compiled, without steps, and with other steps, from files and under encryption."""
    x = rng.standard_normal((40, 8, 32))
    model = attention(rng, 32, 8)
    program = quiet_compile(model, x, params=toy("toy-boot40"), batch=1, device=usable(device))
    chosen = [step.babies for step in program.plan.steps if isinstance(step, Contract)]
    assert chosen == [2, 2]  # of 4 features a head: 2 rotations and 2 relinearisations for 4 and 1
    clear = program.simulate(x[:1], noise=False)
    rotations = {}
    for babies in (0, 1, 2, 4):
        steps = [
            replace(step, babies=babies) if isinstance(step, Contract) else step
            for step in program.plan.steps
        ]
        other = replace(program, plan=replace(program.plan, steps=tuple(steps)))
        again = nn.Program.from_bytes(other.to_bytes(), usable(device), allow_insecure=True)
        assert again.fingerprint == other.fingerprint and again.explain() == other.explain()
        np.testing.assert_allclose(again.simulate(x[:1], noise=False), clear, atol=1e-9)
        rotations[babies] = again.demand.operations["rotations of products"]
        if babies in (0, 2):
            assert ran(again, x[:1], device)[1] < 4.0
    assert rotations == {0: 2 * 3, 1: 3 + 3, 2: 2 * (1 + 1), 4: 3 + 3}


def test_sums_never_leave_their_interval_below(rng):  # noqa: F811
    """Exponentials of scores of mean 0 sum to their number or more, also of samples unlike the others."""
    module = attention(rng, 8, 2)
    x = rng.standard_normal((40, 8, 8))
    program = quiet_compile(module, x, params=toy(), device="cpu")
    strange = np.concatenate([np.zeros((1, 8, 8)), np.ones((1, 8, 8)), x[:1, :1].repeat(8, axis=1)])
    np.testing.assert_allclose(program.simulate(strange, noise=False), module(strange), atol=1e-2)


@pytest.mark.parametrize("_", range(4))
def test_norms_and_softmax_alone(rng, _):  # noqa: F811
    tokens, features = int(rng.choice([1, 2, 4, 8])), int(rng.integers(8, 20))
    norm = nn.LayerNorm(rng.uniform(0.5, 2.0, features), rng.standard_normal(features), 1e-5)
    x = rng.standard_normal((60, tokens, features)) * rng.uniform(0.7, 1.5, (60, 1, 1))
    wanted = (x - x.mean(-1, keepdims=True)) / np.sqrt(
        x.var(-1, keepdims=True) + 1e-5
    ) * norm.weight + norm.bias
    np.testing.assert_allclose(norm(x), wanted, atol=1e-12)
    for module in (norm, nn.Sequential(nn.Softmax(), nn.TokenMean())):
        program = quiet_compile(module, x, params=toy(), device="cpu", margin=1.5)
        error = program.simulate(x, noise=False) - module(x)
        assert np.abs(error).max() < 2.0**-9 * np.abs(module(x)).max()


def test_series_on_intervals_keep_their_tolerance(rng):  # noqa: F811
    """On points that the fit has not seen."""
    low = float(rng.uniform(0.01, 10.0))
    for ratio in (1.5, 30.0, 1000.0):
        interval = Interval(low, low * ratio)
        u = rng.uniform(-1.0, 1.0, 5000)
        x = interval.middle + interval.half * u
        inverse, root = reciprocal(interval), inverse_root(interval, "here")
        assert inverse is not None
        assert np.abs(inverse(u) * x - 1.0).max() < 1.05 * TOLERANCE
        assert np.abs(root(u) * np.sqrt(x) - 1.0).max() < 1.05 * TOLERANCE
    assert reciprocal(Interval(1.0, 1e7)) is None
    with pytest.raises(UnsupportedError, match="here: variances from 1e-09"):
        inverse_root(Interval(1e-9, 1.0), "here")
    exp = exponential(6.0)
    assert exp is not None
    assert np.abs(exp(u) - np.exp(6.0 * u)).max() < 1.05 * TOLERANCE


def test_attention_refuses_what_it_cannot_be(rng):  # noqa: F811
    square = [nn.Linear(weights(rng, 6, 6)) for _ in range(4)]
    for heads in (4, 0, True, 2.0):
        with pytest.raises(ParameterError, match=r"heads .*, expected a divisor of the 6 features"):
            nn.MultiHeadAttention(heads, *square)
    for mask in (np.zeros(4), np.array([1.0, 0.5, 1.0, 1.0])):
        with pytest.raises(ParameterError, match="mask: expected ones"):
            nn.MultiHeadAttention(2, *square, mask)
    with pytest.raises(ParameterError, match="not finite"):
        nn.LayerNorm([1.0, np.nan])
    with pytest.raises(ParameterError, match="epsilon -1"):
        nn.LayerNorm([1.0, 1.0], epsilon=-1)
    for mask in (np.zeros(4), [2.0, -1.0], [0.5, 0.5]):
        with pytest.raises(ParameterError, match="mask: expected ones for tokens that are read"):
            nn.TokenMean(mask)
    for index in (4, -1, 1.5, True, "1"):
        with pytest.raises(ParameterError, match="token .* of 4"):
            nn.Token(index)(np.zeros((2, 4, 3)))
    linear = nn.Linear(np.eye(4))
    with pytest.raises(ParameterError, match="value: ReLU, expected a Linear"):
        nn.MultiHeadAttention(2, linear, linear, nn.ReLU(), linear)
    with pytest.raises(ParameterError, match="no weights encoder"):
        nn.bert({}, 1, 2)
    module = nn.MultiHeadAttention(2, *square)
    with pytest.raises(ParameterError, match="5 tokens, expected a power of two"):
        quiet_compile(module, rng.standard_normal((20, 5, 6)), params=toy(), device="cpu")
    with pytest.raises(ParameterError, match="2 tokens, expected a power of two from the width"):
        quiet_compile(module, rng.standard_normal((20, 2, 6)), params=toy(), device="cpu")
    with pytest.raises(ParameterError, match="layer_norm: 5 tokens, expected a power of two"):
        quiet_compile(nn.LayerNorm(np.ones(6)), rng.standard_normal((20, 5, 6)), params=toy(), device="cpu")
    with pytest.raises(UnsupportedError, match="64\\^2, exceed a ciphertext of 2048"):
        quiet_compile(module, rng.standard_normal((6, 64, 6)), params=toy(), device="cpu")
    with pytest.raises(ParameterError, match="mask of tokens"):
        masked = nn.MultiHeadAttention(2, *square, np.ones(4))
        masked(rng.standard_normal((2, 8, 6)))
    with pytest.raises(ParameterError, match="token: token 8 of 8"):
        nn.Token(8)(rng.standard_normal((2, 8, 6)))
    with pytest.raises(ParameterError, match="expected \\(tokens, features\\)"):
        nn.Softmax()(rng.standard_normal((2, 8)))


def test_a_forged_product_is_refused(rng):  # noqa: F811
    """Operands in other slots, of other bounds, or for another operation."""
    x = rng.standard_normal((30, 8, 16))
    plan = quiet_compile(attention(rng, 16, 2), x, params=toy(), device="cpu").plan
    for at, step in enumerate(plan.steps):
        if isinstance(step, Transform) and isinstance(step.chains[0][0], Roll):
            (roll,) = step.chains[0]
            for chain in ((roll, Grouped(1)), (replace(roll, width=4),), (replace(roll, groups=2),)):
                steps = (*plan.steps[:at], replace(step, chains=(chain,)), *plan.steps[at + 1 :])
                with pytest.raises((StateError, ParameterError)):
                    replace(plan, steps=steps).verify("load")
        if not isinstance(step, (Multiply, Contract)):
            continue
        same = plan.values[step.inputs[0]].layout == plan.values[step.inputs[1]].layout
        forged = [] if same else [replace(step, inputs=step.inputs[::-1])]
        forged.append(
            replace(step, op=Product(2) if isinstance(step, Multiply) else type(step.op)(2, step.op.width))
        )
        if isinstance(step, Contract):
            forged += [replace(step, babies=babies) for babies in (3, -1, 2 * step.op.width)]
        for wrong in forged:
            steps = (*plan.steps[:at], wrong, *plan.steps[at + 1 :])
            with pytest.raises((StateError, ParameterError, SerializationError)):
                replace(plan, steps=steps).verify("load")


def test_workloads_have_the_ranges_that_they_promise():
    """BERT-Tiny's random weights: sums of exponentials, inputs of GELU and of tanh."""
    from crenel.workloads.networks import bert

    model, x = bert.bert_tiny(3, tokens=8, samples=4)
    assert x.shape == (4, 8, bert.FEATURES) and model(x).shape == (4, bert.CLASSES)
    again, same = bert.bert_tiny(3, tokens=8, samples=4)
    np.testing.assert_array_equal(again(same), model(x))
    first = model.modules[0]
    attention = first.modules[0].branch
    q, k = (layer(x).reshape(4, 8, bert.HEADS, -1) for layer in (attention.query, attention.key))
    sums = np.exp(np.einsum("nihf,njhf->nhij", q, k) / np.sqrt(q.shape[-1])).sum(axis=-1)
    assert sums.max() == pytest.approx(bert.SUM, rel=1e-3)
    inner = nn.Sequential(*first.modules[:2], first.modules[2].branch.modules[0])
    assert np.abs(inner(x)).max() == pytest.approx(bert.GELU_REACH)
    before = nn.Sequential(*model.modules[:4])
    assert np.abs(before(x)).max() == pytest.approx(bert.TANH_REACH)


def test_minilm_refuses_other_files(tmp_path):
    from crenel.errors import FileError
    from crenel.workloads.networks import minilm

    other = tmp_path / "other.onnx"
    other.write_bytes(b"\x00 no network")
    with pytest.raises((FileError, UnsupportedError)):
        minilm.read(tmp_path / "missing.onnx")
    with pytest.raises((SerializationError, UnsupportedError)):
        minilm.read(other)
