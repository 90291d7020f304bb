"""What looks like an operator that can be imported and means another one: the same numbers, or refused."""

import numpy as np
import pytest
from nn_onnx import PLANES, chain, model
from nn_world import rng, weights  # noqa: F401
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from crenel import nn
from crenel.errors import ParameterError, UnsupportedError

node = helper.make_node


def refused(proto, match):
    with pytest.raises(UnsupportedError, match=match):
        nn.from_onnx(proto)


def test_a_bias_of_samples_is_no_bias_of_outputs(rng):  # noqa: F811
    """Gemm's C is broadcast: a column is a number for each sample."""
    w, c = weights(rng, 3, 4), weights(rng, 3)
    step = chain(("Gemm", ["w", "c"], {"transB": 1}))
    refused(model(step, (4,), w=w, c=c[:, None]), r"C of shape \(3, 1\)")
    x = weights(rng, 2, 4)
    np.testing.assert_allclose(nn.from_onnx(model(step, (4,), w=w, c=c[None]))(x), x @ w.T + c, atol=1e-12)
    np.testing.assert_allclose(nn.from_onnx(model(step, (4,), w=w, c=c[:1]))(x), x @ w.T + c[0], atol=1e-12)


def test_a_norm_with_results_of_its_training(rng):  # noqa: F811
    """Below version 14 nothing else says that it takes the statistics of the samples."""
    s = rng.uniform(0.5, 2.0, 4)
    outputs = ["y", "mean", "var", "saved_mean", "saved_var"]
    refused(model([node("BatchNormalization", ["x", *"ssss"], outputs)], opset=9, s=s), "training_mode")


@pytest.mark.parametrize(
    ("batch", "sizes"), [(1, [4, -1]), ("n", [4, -1]), ("n", [192, -1]), (8, [1, -1]), ("n", [3, 4, 8, 6])]
)
def test_samples_are_not_made_of_other_axes(batch, sizes):
    refused(model(chain(("Reshape", ["s"], {})), batch=batch, s=np.array(sizes)), "axis of the samples")


@pytest.mark.parametrize(("batch", "sizes"), [(8, [8, -1]), ("n", [1, -1]), (1, [1, 192]), (8, [-1, 192])])
def test_samples_may_be_counted(rng, batch, sizes):  # noqa: F811
    x = rng.standard_normal((2, *PLANES))
    network = nn.from_onnx(model(chain(("Reshape", ["s"], {})), batch=batch, s=np.array(sizes)))
    np.testing.assert_array_equal(network(x), x.reshape(2, -1))


def test_a_part_of_the_samples_is_not_all_of_them():
    cut = chain(("Slice", ["b", "e", "b"], {}))
    refused(model(cut, b=np.array([0]), e=np.array([1])), "not every so many rows")
    nn.from_onnx(model(cut, b=np.array([0]), e=np.array([2**31 - 1])))
    nn.from_onnx(model(cut, batch=1, b=np.array([0]), e=np.array([1])))


def test_products_keep_small_factors(rng):  # noqa: F811
    """x (c sigmoid(x)), with a c that is small beside 1, and with six digits of it."""
    x = rng.uniform(-8.0, 8.0, (3, *PLANES))
    for exponent in (-12, -6, -3, 0, 3):
        c = np.array(float(rng.uniform(1.0, 10.0)) * 10.0**exponent)
        nodes = [
            node("Sigmoid", ["x"], ["s"]),
            node("Mul", ["s", "c"], ["t"]),
            node("Mul", ["x", "t"], ["y"]),
        ]
        found = nn.from_onnx(model(nodes, c=c))(x)
        np.testing.assert_allclose(found / c, x / (1 + np.exp(-x)), atol=1e-6)
        nodes[0] = node("Tanh", ["x"], ["s"])
        refused(model(nodes, c=c), "a product of two encrypted tensors")


@pytest.mark.parametrize(
    "others",
    [
        [node("Add", ["p", "e"], ["q"])],  # x^2 (x^2 + 1/10000), beside x^4
        [node("Clip", ["x", "l", "h"], ["q"])],  # x^2 clip(x), beside x^3, different beyond 20
    ],
    ids=["small", "far"],
)
def test_products_that_are_nearly_a_power(others):
    nodes = [node("Mul", ["x", "x"], ["p"]), *others, node("Mul", ["p", "q"], ["y"])]
    constants = {"e": np.array(1e-4)} if len(others[0].input) == 2 else {"l": -20.0, "h": np.array(20.0)}
    refused(model(nodes, **constants), "a product of two encrypted tensors")


def test_constants_are_computed_as_onnx_does(rng):  # noqa: F811
    """Casts that cut off, quotients of integers, tables put together along an axis that is not the first."""
    x = rng.standard_normal((3, 4))
    a, b = weights(rng, 4, 2), weights(rng, 4, 3)
    number = float(rng.uniform(1.5, 9.5))
    whole, by = int(rng.integers(10, 99)), int(rng.integers(2, 9))
    nodes = [
        node("Concat", ["a", "b"], ["w"], axis=1),
        node("MatMul", ["x", "w"], ["z"]),
        node("Cast", ["number"], ["i"], to=TensorProto.INT64),
        node("Div", ["whole", "by"], ["q"]),
        node("Mul", ["q", "i"], ["k"]),
        node("Cast", ["k"], ["f"], to=TensorProto.DOUBLE),
        node("Div", ["z", "f"], ["y"]),
    ]
    proto = model(nodes, (4,), a=a, b=b, number=np.array(number), whole=np.array(whole), by=np.array(-by))
    expected = x @ np.concatenate([a, b], axis=1) / (int(number) * -(whole // by))
    np.testing.assert_allclose(nn.from_onnx(proto)(x), expected, atol=1e-12)
    proto = model(nodes[:4], (4,), ("z",), a=a, b=b, number=1.0, whole=np.array(1), by=np.array(0))
    refused(proto, "a division by 0")


def test_limits_are_numbers():
    refused(model(chain(("Clip", ["l"], {})), l=np.zeros(4)), "limits that are no numbers")
    refused(model([node("Clip", ["x", "", "h"], ["y"])], h=np.zeros(6)), "limits that are no numbers")


@pytest.mark.parametrize(
    ("operator", "options", "opset"),
    [("Gelu", {"approximate": "other"}, 20), ("Dropout", {"is_test": 0}, 6), ("Relu", {"magic": 1}, 20)],
)
def test_attributes_that_change_the_meaning(operator, options, opset):
    refused(model(chain((operator, [], options)), opset=opset), f"{operator}_0")


def test_no_message_has_what_controls_a_terminal():
    evil = "\x1b[31m\nroot# "
    for operator, options in (
        ("Conv", {"auto_pad": evil}),
        ("Conv", {"group": evil}),
        ("Conv", {f"{evil}{'long' * 1000}": 1}),
        ("Gelu", {"approximate": evil}),
        (evil, {}),
    ):
        constants = {"w": np.ones((1, 4, 1, 1))} if operator == "Conv" else {}
        with pytest.raises((UnsupportedError, ParameterError)) as found:
            nn.from_onnx(model(chain((operator, list(constants), options)), **constants))
        text = str(found.value)
        assert text.isprintable() and len(text) < 600


def test_memory_is_that_of_all_nodes_together():
    """Each would be allowed alone: kernels that asymmetric padding makes longer, constants that double."""
    long = {"pads": [0, 0, 4000, 0]}
    nodes = [node("Conv", ["x", "w"], [f"y{k}"], **long) for k in range(60)]
    proto = model(
        [*nodes, node("Sum", [f"y{k}" for k in range(60)], ["y"])], (4, 4000, 1), w=np.ones((16, 4, 4, 1))
    )
    with pytest.raises(ParameterError, match="elements"):
        nn.from_onnx(proto)
    nodes = [
        node("Shape", ["x"], ["c0"]),
        *(node("Concat", [f"c{k}"] * 2, [f"c{k + 1}"], axis=0) for k in range(60)),
    ]
    refused(model([*nodes, node("Reshape", ["x", "c60"], ["y"])]), "a shape of 64 axes")
    nodes = [node("Concat", [f"c{k}"] * 2, [f"c{k + 1}"], axis=0) for k in range(60)]
    with pytest.raises(ParameterError, match="elements"):
        nn.from_onnx(model([*nodes, node("Mul", ["x", "c60"], ["y"])], c0=np.ones(8)))


def test_patterns_are_found_after_all(rng):  # noqa: F811
    """The comparison that refuses the products above still takes constants in float32."""
    sixth = np.array(1 / 6, dtype=np.float32).astype(np.float64)
    nodes = [
        node("Add", ["x", "three"], ["a"]),
        node("Clip", ["a", "zero", "six"], ["c"]),
        node("Mul", ["c", "sixth"], ["h"]),
        node("Mul", ["x", "h"], ["y"]),
    ]
    proto = model(nodes, three=np.array(3.0), zero=np.array(0.0), six=np.array(6.0), sixth=sixth)
    x = 4 * rng.standard_normal((3, *PLANES))
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(nn.from_onnx(proto)(x), expected, atol=2e-6)
