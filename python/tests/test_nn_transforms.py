"""Layouts, and linear operations on slots against the same on tensors."""

import numpy as np
import pytest
from nn_world import quiet_compile, rng, small_cnn, toy, weights  # noqa: F401
from test_nn_modules import random_conv

from crenel import nn
from crenel.errors import ParameterError, StateError
from crenel.nn import ops
from crenel.nn.layout import Layout
from crenel.nn.linear import applied, chain_map, slot_transform, sparse_map
from crenel.nn.passes.lower import Lower
from crenel.nn.trace import trace


def on_slots(chains, tensors, layouts, output, factors=None, unit=1.0):
    """The sum of chains of tensors through packing, diagonals, sums of copies and unpacking."""
    maps = [chain_map(chain, layout.shape) for chain, layout in zip(chains, layouts, strict=True)]
    ready = slot_transform(maps, layouts, output, factors or [1.0] * len(maps), unit)
    wide = []
    for tensor, layout in zip(tensors, layouts, strict=True):
        for part in layout.pack(tensor):
            wide.append(np.tile(part, (1, ready.slots // layout.slots)))
    found = applied(ready, wide)
    stride = ready.slots // ready.copies
    summed = [
        y.reshape(len(y), ready.copies, stride).sum(axis=1) + b
        for y, b in zip(found, ready.bias, strict=True)
    ]
    return output.unpack(np.stack(summed)), ready


@pytest.mark.parametrize("capacity", [1 << 6, 1 << 12])
@pytest.mark.parametrize("_", range(6))
def test_convolutions_on_slots(rng, capacity, _):  # noqa: F811
    """One ciphertext or several, any layout before: to 1e-12."""
    weight, bias, options, shape = random_conv(rng)
    op = ops.Conv2d(
        weight, bias, options["stride"], options["padding"], options["dilation"], options["groups"]
    )
    gap = tuple(int(v) for v in rng.integers(1, 3, 2))
    plane = (shape[1] * gap[0] + int(rng.integers(0, 2)), shape[2] * gap[1])
    layout = Layout(shape, shape, gap, plane, capacity)
    output = layout.after(op)
    x = rng.standard_normal((2, *shape))
    found, _ = on_slots([(op,)], [x], [layout], output)
    np.testing.assert_allclose(found, op(x), atol=1e-12)


@pytest.mark.parametrize("_", range(4))
def test_layouts_are_one_to_one(rng, _):  # noqa: F811
    weight, bias, options, shape = random_conv(rng)
    layout = Layout.of(shape, 1 << 7)
    for kind in (nn.Conv2d(weight, bias, **options), nn.AvgPool2d(2, padding=1)):
        (op,) = (node.op for node in trace(kind, layout.shape).nodes[1:])
        layout = layout.after(op)
        places = layout.positions()
        assert len(np.unique(places)) == len(places) == np.prod(layout.shape)
        assert places.max() < layout.ciphertexts * layout.slots
        x = rng.standard_normal((3, *layout.shape))
        packed = layout.pack(x)
        assert packed.shape == (layout.ciphertexts, 3, layout.slots)
        np.testing.assert_array_equal(layout.unpack(packed), x)
    with pytest.raises(ParameterError, match="expected"):
        layout.pack(np.zeros((1, 99)))


def test_chains_and_several_operands(rng):  # noqa: F811
    """Convolution, pool, norm and dense layer as one matrix; operands of other slots; factors and units."""
    conv = ops.Conv2d(weights(rng, 4, 2, 3, 3), weights(rng, 4), (1, 1), (1, 1), (1, 1), 1)
    pool = ops.AvgPool2d((2, 2), (2, 2), (0, 0))
    norm = ops.Affine(weights(rng, 4), weights(rng, 4))
    dense = ops.Linear(weights(rng, 5, 36), weights(rng, 5))
    chain = (conv, pool, norm, ops.Flatten(), dense)
    other = (ops.Linear(weights(rng, 5, 200), np.zeros(5)),)
    x, y = rng.standard_normal((2, 2, 6, 6)), rng.standard_normal((2, 200))
    layouts = [Layout.of((2, 6, 6), 1 << 10), Layout.of((200,), 1 << 10)]
    expected = x
    for op in chain:
        expected = op(expected)
    found, ready = on_slots([chain, other], [x, y], layouts, Layout.of((5,), 1 << 10))
    np.testing.assert_allclose(found, expected + other[0](y), atol=1e-12)
    assert ready.slots == 256 and ready.copies == 32
    scaled, _ = on_slots([chain], [x / 2], [layouts[0]], Layout.of((5,), 1 << 10), [2.0 / 3.0], 3.0)
    np.testing.assert_allclose(3.0 * scaled, expected, atol=1e-12)


def test_a_dense_layer_has_no_more_diagonals_than_output_slots(rng):  # noqa: F811
    dense = ops.Linear(weights(rng, 10, 500), weights(rng, 10))
    x = rng.standard_normal((2, 500))
    found, ready = on_slots([(dense,)], [x], [Layout.of((500,), 1 << 11)], Layout.of((10,), 1 << 11))
    np.testing.assert_allclose(found, dense(x), atol=1e-12)
    assert ready.diagonals <= 16


def test_strides_keep_the_diagonals_of_a_convolution(rng):  # noqa: F811
    """A repeating input and a gap: 4 planes of 9 taps, and as many after a stride as channels need."""
    conv = ops.Conv2d(weights(rng, 16, 4, 3, 3), np.zeros(16), (1, 1), (1, 1), (1, 1), 1)
    layout = Layout.of((4, 8, 8), 1 << 12)
    _, ready = on_slots([(conv,)], [rng.standard_normal((1, 4, 8, 8))], [layout], layout.after(conv))
    assert ready.diagonals <= 36


def test_matrices_of_operations_are_the_operations(rng):  # noqa: F811
    for op, shape in (
        (ops.Place(7, 2), (3, 2, 2)),
        (ops.Affine(weights(rng, 3), weights(rng, 3)), (3, 2)),
        (ops.AvgPool2d((3, 2), (2, 1), (1, 1)), (2, 5, 4)),
        (ops.Flatten(), (2, 3, 4)),
    ):
        x = rng.standard_normal((1, *shape))
        np.testing.assert_allclose(sparse_map(op, shape)(x.reshape(-1)), op(x).reshape(-1), atol=1e-13)


def test_a_plan_in_the_clear_is_the_network_with_its_polynomials(rng):  # noqa: F811
    """Exact activations out, every layer on slots: to 1e-9 of the outputs."""
    model = nn.Sequential(
        nn.Conv2d(weights(rng, 4, 3, 3, 3), weights(rng, 4), padding=1, stride=(2, 1)),
        nn.Polynomial([0.1, 0.5, 0.25]),
        nn.Add(
            nn.Conv2d(weights(rng, 6, 4, 3, 3), padding=1),
            nn.Conv2d(weights(rng, 6, 4, 1, 1), weights(rng, 6)),
        ),
        nn.Residual(nn.Sequential(nn.Conv2d(weights(rng, 6, 6, 1, 1)))),
        nn.Residual(nn.Conv2d(weights(rng, 6, 6, 1, 1), weights(rng, 6)), nn.Square()),
        nn.GlobalAvgPool(),
        nn.Linear(weights(rng, 3, 6)),
    )
    x = rng.standard_normal((40, 3, 7, 9))
    program = quiet_compile(model, x, params=toy("toy-leveled-n15-s40"), device="cpu")
    exact = model(x)
    np.testing.assert_allclose(program.simulate(x, noise=False), exact, atol=1e-9 * np.abs(exact).max())


def test_a_tensor_of_several_ciphertexts(rng):  # noqa: F811
    """12 planes of 16 x 16 in ciphertexts of 1024 slots."""
    model = nn.Sequential(
        nn.Conv2d(weights(rng, 12, 1, 3, 3), weights(rng, 12), padding=1),
        nn.Square(),
        nn.Conv2d(weights(rng, 2, 12, 3, 3), stride=2),
        nn.Flatten(),
        nn.Linear(weights(rng, 4, 98), weights(rng, 4)),
    )
    x = rng.standard_normal((20, 1, 16, 16))
    program = quiet_compile(model, x, params=toy("toy-leveled-n14-s40"), device="cpu")
    assert max(value.layout.ciphertexts for value in program.plan.values) == 3
    exact = model(x)
    np.testing.assert_allclose(program.simulate(x, noise=False), exact, atol=1e-9 * np.abs(exact).max())


def test_a_constant_enters_a_sum_once(rng):  # noqa: F811
    """A layer behind a sum of two linear layers goes into both matrices, its bias into one."""
    both = nn.Add(
        nn.Linear(weights(rng, 4, 5), weights(rng, 4)), nn.Linear(weights(rng, 4, 5), weights(rng, 4))
    )
    model = nn.Sequential(
        both,
        nn.BatchNorm(weights(rng, 4), np.ones(4)),
        nn.Linear(weights(rng, 3, 4), 5.0 + weights(rng, 3)),
    )
    x = rng.standard_normal((20, 5))
    program = quiet_compile(model, x, params=toy("toy-leveled-n14-s40"))
    assert len(program.plan.steps) == 1
    np.testing.assert_allclose(program.simulate(x, noise=False), model(x), atol=1e-11)


def test_what_is_not_linear_is_refused_by_name():
    """Also where Python runs without asserts."""
    relu = ops.Activation("relu")
    for call in (lambda: Layout.of((3,), 8).after(relu), lambda: sparse_map(relu, (3,))):
        with pytest.raises(StateError, match="of activation|after activation") as error:
            call()
        assert error.value.fields["operation"] == relu.name
    graph = trace(nn.ReLU(), (3,))
    with pytest.raises(StateError, match="is not a polynomial: activations are approximated before"):
        Lower(8)(graph, (1.0,) * len(graph.nodes))


def test_padded_planes_are_taken_where_they_cost_less(rng):  # noqa: F811
    """Planes of 12 x 12 behind a stride: those that 16 x 16 slots hold share diagonals. In the clear both are
    the network."""
    model = nn.Sequential(
        nn.Conv2d(weights(rng, 16, 1, 3, 3), weights(rng, 16), stride=2, padding=1),
        nn.Square(),
        nn.Conv2d(weights(rng, 4, 16, 3, 3), weights(rng, 4), stride=2, padding=1),
    )
    samples = rng.standard_normal((20, 1, 12, 12))
    program = quiet_compile(model, samples, params=toy("toy-leveled-n14-s40"), device="cpu")
    assert program.plan.values[0].layout.plane == (16, 16)
    (decision,) = [d for d in program.plan.decisions if d.origin == "layouts"]
    assert decision.chosen.startswith("padded planes; input 1x12x12 gap 1x1 planes 16x16")
    assert decision.instead.startswith("planes: transforms alone 2.1 times the least; ")
    found = program.simulate(samples, noise=False)
    np.testing.assert_allclose(found, model(samples), atol=1e-9 * np.abs(model(samples)).max())
    plain = Layout.of((1, 12, 12), 1 << 12)
    conv = trace(model, (1, 12, 12)).nodes[1].op
    counts = []
    for layout in (plain, plain.padded()):
        _, ready = on_slots([(conv,)], [samples[:1]], [layout], layout.after(conv))
        counts.append(ready.diagonals)
    assert counts[1] <= 16 < counts[0]  # offsets of 3 taps behind 2 places of a gap: 4 a side


def test_planes_stay_as_they_are_where_padding_costs_more(rng):  # noqa: F811
    """Channels that fill the ciphertext would take two in padded planes, with no fewer diagonals."""
    model = nn.Conv2d(weights(rng, 8, 1, 3, 3), padding=1, groups=8)
    params = toy("toy-leveled-n14-s40")  # 1024 slots
    samples = rng.standard_normal((8, 8, 11, 11))
    program = quiet_compile(model, samples, params=params, device="cpu")
    assert program.plan.values[0].layout.plane == (11, 11)
    np.testing.assert_allclose(program.simulate(samples, noise=False), model(samples), atol=1e-9)
