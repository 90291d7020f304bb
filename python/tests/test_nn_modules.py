"""Modules against definitions written out with loops, their refusals, and graphs."""

import numpy as np
import pytest
from nn_world import rng, toy, weights  # noqa: F401

from crenel import nn
from crenel.errors import ParameterError, StateError, UnsupportedError
from crenel.nn.graph import Graph, Node
from crenel.nn.passes.fold import Fold
from crenel.nn.trace import trace


def convolved(x, weight, bias, stride, padding, dilation, groups):
    """One sample, element by element."""
    outputs, inner, height, width = weight.shape
    padded = np.pad(x, ((0, 0), (padding[0],) * 2, (padding[1],) * 2))
    rows = (padded.shape[1] - dilation[0] * (height - 1) - 1) // stride[0] + 1
    columns = (padded.shape[2] - dilation[1] * (width - 1) - 1) // stride[1] + 1
    result = np.zeros((outputs, rows, columns))
    for o in range(outputs):
        first = o // (outputs // groups) * inner
        for y in range(rows):
            for z in range(columns):
                seen = padded[
                    first : first + inner,
                    y * stride[0] : y * stride[0] + dilation[0] * (height - 1) + 1 : dilation[0],
                    z * stride[1] : z * stride[1] + dilation[1] * (width - 1) + 1 : dilation[1],
                ]
                result[o, y, z] = np.sum(seen * weight[o]) + bias[o]
    return result


def random_conv(rng, channels=None):  # noqa: F811
    groups = int(rng.integers(1, 4))
    inner, outputs = int(rng.integers(1, 4)), groups * int(rng.integers(1, 4))
    kernel = rng.integers(1, 4, 2)
    options = {
        "stride": tuple(int(v) for v in rng.integers(1, 4, 2)),
        "padding": tuple(int(v) for v in rng.integers(0, 3, 2)),
        "dilation": tuple(int(v) for v in rng.integers(1, 3, 2)),
        "groups": groups,
    }
    weight = weights(rng, outputs, inner, *(int(k) for k in kernel))
    size = [int(v) for v in rng.integers(5, 12, 2)]
    return weight, weights(rng, outputs), options, (inner * groups, *size)


@pytest.mark.parametrize("_", range(8))
def test_convolution_is_its_definition(rng, _):  # noqa: F811
    weight, bias, options, shape = random_conv(rng)
    module = nn.Conv2d(weight, bias, **options)
    x = rng.standard_normal((2, *shape))
    expected = np.stack([convolved(one, weight, bias, **options) for one in x])
    assert module.shape(shape) == expected.shape[1:]
    np.testing.assert_allclose(module(x), expected, atol=1e-12)


def test_pools_norms_and_networks(rng):  # noqa: F811
    x = rng.standard_normal((3, 4, 7, 6))
    pooled = nn.AvgPool2d((3, 2), stride=(2, 1), padding=(1, 0))(x)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    assert pooled.shape == (3, 4, 4, 5)
    np.testing.assert_allclose(pooled[1, 2, 3, 4], padded[1, 2, 6:9, 4:6].mean(), atol=1e-13)
    np.testing.assert_allclose(nn.GlobalAvgPool()(x), x.mean(axis=(2, 3)), atol=1e-13)
    mean, variance, scale, shift = (rng.uniform(0.5, 2.0, 4) for _ in range(4))
    norm = nn.BatchNorm(mean, variance, scale, shift, epsilon=0.1)
    wanted = (x - mean[:, None, None]) / np.sqrt(variance + 0.1)[:, None, None] * scale[:, None, None]
    np.testing.assert_allclose(norm(x), wanted + shift[:, None, None], atol=1e-12)
    np.testing.assert_allclose(nn.Residual(nn.Square())(x), x + x**2, atol=1e-12)
    np.testing.assert_allclose(nn.Add(nn.Square(), nn.Tanh())(x), x**2 + np.tanh(x), atol=1e-12)
    both = nn.Concat(nn.ReLU(), nn.Sequential())(x)
    np.testing.assert_array_equal(both, np.concatenate([np.maximum(x, 0), x], axis=1))
    np.testing.assert_allclose(nn.Polynomial([1, 2, 0, 3])(x), 1 + 2 * x + 3 * x**3, atol=1e-11)


@pytest.mark.parametrize(
    ("module", "value"),
    [(nn.Sigmoid(), 0.8807970779778823), (nn.SiLU(), 1.7615941559557646), (nn.GELU(), 1.9544997361036416)],
)
def test_values_of_functions(module, value):
    """At 2, from tables; and no overflow far out."""
    assert module(np.array([[2.0]]))[0, 0] == pytest.approx(value, rel=1e-12)
    assert np.isfinite(module(np.array([[-1000.0, 1000.0]]))).all()


def test_all_unknown_modules_are_named_at_once():
    class Other:
        pass

    model = nn.Sequential(
        nn.Linear(np.eye(3)),
        Other(),
        nn.Residual(nn.Sequential(nn.ReLU(), max)),
        nn.Concat(nn.ReLU, nn.ReLU()),
    )
    with pytest.raises(UnsupportedError) as found:
        model.shape((3,))
    for place in ("1 (", "2.branch.1 (", "3.0 (the class ReLU itself, not ReLU(...))"):
        assert place in str(found.value.fields["modules"])


def test_networks_of_other_frameworks_are_told_how_they_come_in():
    class Network(type("Module", (), {"__module__": "torch.nn.modules.module"})):
        pass

    with pytest.raises(UnsupportedError, match="the model .torch: .*Network.*from_torch"):
        nn.compile(Network(), np.ones((2, 3)), params=toy())


def test_weights_that_are_not_finite_are_refused():
    with pytest.raises(ParameterError, match=r"weight: the number at \[1, 0\] is not finite"):
        nn.Linear([[1.0], [np.nan]])
    with pytest.raises(ParameterError, match="bias of length 2, expected 1"):
        nn.Linear([[1.0]], [1.0, 2.0])
    with pytest.raises(ParameterError, match="groups 2, expected a divisor of the 3"):
        nn.Conv2d(np.ones((3, 1, 1, 1)), groups=2)
    with pytest.raises(ParameterError, match="variance"):
        nn.BatchNorm([0.0], [-1.0])


@pytest.mark.parametrize("padding", [10**9, (0, 4097), 2**70, -1])
def test_padding_is_bounded(padding):
    for make in (
        lambda: nn.Conv2d(np.ones((1, 1, 2, 2)), padding=padding),
        lambda: nn.AvgPool2d(2, 1, padding),
    ):
        with pytest.raises(ParameterError, match="padding .*, expected an integer from 0 to 4096, or two"):
            make()
    assert nn.Conv2d(np.ones((1, 1, 2, 2)), padding=(4096, 0)).padding == (4096, 0)


def test_shapes_that_do_not_fit_name_the_place():
    model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Flatten(), nn.Linear(np.ones((2, 9)))))
    with pytest.raises(ParameterError, match=r"^1\.1: inputs of a linear layer: 8 in the tensor, 9 in"):
        model.shape((2, 2, 2))
    with pytest.raises(ParameterError, match="put a Flatten before it"):
        nn.Linear(np.ones((2, 4))).shape((1, 2, 2))
    with pytest.raises(ParameterError, match="no place"):
        nn.AvgPool2d(5).shape((1, 4, 4))


def test_weights_cannot_be_changed_afterwards():
    given = np.ones((2, 2))
    module = nn.Linear(given)
    given[0, 0] = 5.0
    assert module.weight[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        module.weight[0, 0] = 5.0


def test_a_wrong_graph_is_named():
    graph = trace(nn.Sequential(nn.Linear(np.eye(2)), nn.ReLU()), (2,))
    assert graph.text().splitlines()[1:] == [
        "%1 = linear(%0) [2] # 0",
        "%2 = activation(%1) [2] # 1",
        "return %2",
    ]
    first, second, third = graph.nodes
    with pytest.raises(StateError, match="after test: %1 = linear.*an operand that is not made before"):
        Graph((first, Node(second.op, (1,), (2,), "0"), third), 2).verify("test")
    with pytest.raises(StateError, match="the shape should be"):
        Graph((first, Node(second.op, (0,), (3,), "0"), third), 2).verify("test")


def test_folding_keeps_the_meaning_and_leaves_no_norm(rng):  # noqa: F811
    def norm(channels):
        return nn.BatchNorm(
            weights(rng, channels),
            rng.uniform(0.5, 2, channels),
            weights(rng, channels) + 1,
            weights(rng, channels),
        )

    model = nn.Sequential(
        norm(2),
        nn.Conv2d(weights(rng, 4, 1, 3, 2), weights(rng, 4), groups=2),
        norm(4),
        nn.Polynomial([0.5, 2.0, 0.0]),
        nn.ReLU(),
        nn.Conv2d(weights(rng, 3, 4, 3, 3), padding=1),
        norm(3),
        nn.Flatten(),
        nn.Flatten(),
        norm(36),
        nn.Linear(weights(rng, 5, 36), weights(rng, 5)),
        norm(5),
    )
    graph = trace(model, (2, 6, 4))
    folded = Fold()(graph)
    names = [node.op.name for node in folded.nodes]
    assert names == ["input", "conv2d", "activation", "conv2d", "flatten", "linear"]
    x = rng.standard_normal((7, 2, 6, 4))
    np.testing.assert_allclose(folded(x), graph(x), atol=1e-11)


def test_a_norm_stays_where_padding_would_take_its_shift(rng):  # noqa: F811
    model = nn.Sequential(
        nn.ReLU(), nn.BatchNorm([1.0], [1.0], [2.0], [3.0]), nn.Conv2d(weights(rng, 2, 1, 3, 3), padding=1)
    )
    graph = trace(model, (1, 4, 4))
    folded = Fold()(graph)
    assert [node.op.name for node in folded.nodes] == ["input", "activation", "affine", "conv2d"]
    x = rng.standard_normal((2, 1, 4, 4))
    np.testing.assert_allclose(folded(x), graph(x), atol=1e-12)


def test_numbers_of_numpy_count_groups(rng):  # noqa: F811
    weight = weights(rng, 4, 1, 2, 2)
    x = rng.standard_normal((3, 2, 5, 5))
    found = nn.Conv2d(weight, groups=np.int64(2))
    assert type(found.groups) is int
    np.testing.assert_array_equal(found(x), nn.Conv2d(weight, groups=2)(x))
    for wrong in (True, 2.0, "2", None, 3, 0):
        with pytest.raises(ParameterError, match="groups"):
            nn.Conv2d(weight, groups=wrong)
