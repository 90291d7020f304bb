"""`nn.from_onnx` against the reference evaluator of the onnx package."""

import numpy as np
import pytest
from nn_onnx import PLANES, chain, mobile, model
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from crenel import nn
from crenel.errors import UnsupportedError
from crenel.nn.importers.onnx_operators import OPERATORS
from crenel.nn.ops import Activation
from crenel.nn.trace import trace


def assert_same(proto, rng, shape=PLANES, scale=2.0, **options):  # noqa: F811
    x = scale * rng.standard_normal((3, *shape))
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    found = nn.from_onnx(proto, **options)(x)
    np.testing.assert_allclose(found, np.asarray(expected).reshape(found.shape), atol=1e-6, rtol=1e-6)


def conv_cases(rng):  # noqa: F811
    w, b = weights(rng, 6, 2, 3, 2), weights(rng, 6)
    options = [
        {"strides": [2, 1], "pads": [1, 0, 1, 0], "dilations": [1, 2]},
        {"pads": [2, 0, 1, 1]},
        {"pads": [0, 1, 1, 0], "dilations": [2, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "VALID"},
    ]
    for each in options:
        yield model(chain(("Conv", ["w", "b"], {"group": 2, **each})), w=w, b=b)


def plane_cases(rng):  # noqa: F811
    positive = rng.uniform(0.5, 2.0, 4)
    yield model(
        chain(("BatchNormalization", ["s", "b", "m", "v"], {"epsilon": 1e-3}), ("Relu", [], {})),
        s=weights(rng, 4), b=weights(rng, 4), m=weights(rng, 4), v=positive,
    )  # fmt: skip
    yield model(chain(("AveragePool", [], {"kernel_shape": [2, 3], "strides": [2, 1]})))
    counted = {"kernel_shape": [3, 2], "pads": [1, 0, 0, 1], "count_include_pad": 1, "strides": [3, 2]}
    yield model(chain(("AveragePool", [], counted)))
    yield model(chain(("AveragePool", [], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1})))
    yield model(chain(("GlobalAveragePool", [], {}), ("Flatten", [], {})))
    yield model(chain(("GlobalAveragePool", [], {}), ("Squeeze", ["a"], {})), a=np.array([2, 3]))
    yield model(chain(("ReduceMean", ["a"], {"keepdims": 0})), a=np.array([-1, -2]))
    yield model(chain(("ReduceMean", [], {"axes": [2, 3]})), opset=17)
    yield model(chain(("Pad", ["p"], {})), p=np.array([0, 0, 1, 0, 0, 0, 2, 3]))
    yield model(chain(("Pad", [], {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "mode": "constant"})), opset=10)
    yield model(
        chain(("Slice", ["b", "e", "a", "t"], {}), ("Pad", ["p"], {})),
        b=np.array([0, 0]), e=np.array([99, 6]), a=np.array([2, -1]), t=np.array([2, 3]),
        p=np.array([0, 2, 0, 0, 0, 1, 0, 0]),
    )  # fmt: skip
    yield model(
        [helper.make_node("Neg", ["x"], ["z"]), helper.make_node("Concat", ["x", "z", "x"], ["y"], axis=1)]
    )


def vector_cases(rng):  # noqa: F811
    flat = ("Flatten", [], {})
    inputs = int(np.prod(PLANES))
    w, b = weights(rng, 5, inputs), weights(rng, 5)
    yield model(chain(flat, ("Gemm", ["w", "b"], {"transB": 1, "alpha": 0.5, "beta": 2.0})), w=w, b=b)
    yield model(chain(flat, ("Gemm", ["w"], {})), w=w.T)
    yield model(chain(flat, ("MatMul", ["w"], {}), ("Add", ["b"], {})), w=w.T, b=b)
    yield model(chain(("Reshape", ["s"], {})), s=np.array([0, -1]))
    yield model(
        chain(("Reshape", ["s"], {}), ("Dropout", [], {}), ("Identity", [], {})), s=np.array([-1, inputs])
    )
    yield model(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Gather", ["shape", "zero"], ["first"], axis=0),
            helper.make_node("Unsqueeze", ["first", "axes"], ["one"]),
            helper.make_node("Concat", ["one", "minus"], ["wanted"], axis=0),
            helper.make_node("Reshape", ["x", "wanted"], ["flat"]),
            helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
            helper.make_node("MatMul", ["flat", "t"], ["y"]),
        ],
        zero=np.array(0), axes=np.array([0]), minus=np.array([-1]), w=w,
    )  # fmt: skip
    yield model(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Slice", ["shape", "a", "b"], ["one"]),
            helper.make_node("Cast", ["one"], ["same"], to=TensorProto.INT64),
            helper.make_node("Concat", ["same", "minus"], ["wanted"], axis=0),
            helper.make_node("Reshape", ["x", "wanted"], ["y"]),
        ],
        a=np.array([0]), b=np.array([1]), minus=np.array([inputs]),
    )  # fmt: skip


def element_cases(rng):  # noqa: F811
    for operator in (
        "Relu",
        "Sigmoid",
        "Tanh",
        "Softplus",
        "HardSwish",
        "HardSigmoid",
        "Elu",
        "LeakyRelu",
        "Erf",
    ):
        yield model(chain((operator, [], {})))
    yield model(chain(("LeakyRelu", [], {"alpha": 0.3}), ("Elu", [], {"alpha": 0.7})))
    yield model(chain(("HardSigmoid", [], {"alpha": 1 / 6, "beta": 0.5})))
    yield model(chain(("Gelu", [], {}), ("Gelu", [], {"approximate": "tanh"})))
    yield model(chain(("Clip", ["l", "h"], {})), l=np.array(-1.5), h=np.array(0.25))
    yield model(chain(("Clip", ["l"], {})), l=np.array(-1.5))
    yield model([helper.make_node("Clip", ["x", "", "h"], ["y"])], h=np.array(-0.5))
    yield model(chain(("Swish", [], {"alpha": 1.7})), opset=24)
    c = weights(rng, 4, 1, 1)
    yield model(
        chain(("Mul", ["c"], {}), ("Add", ["c", "@"], {}), ("Sub", ["c", "@"], {}), ("Sub", ["d"], {})),
        c=c,
        d=0.5,
    )
    yield model(chain(("Div", ["c"], {}), ("Neg", [], {}), ("Pow", ["p"], {})), c=c, p=np.array(3.0))
    two = numpy_helper.from_array(np.array(2.5))
    yield model(
        [helper.make_node("Constant", [], ["c"], value=two), helper.make_node("Mul", ["c", "x"], ["y"])]
    )
    yield model([helper.make_node("Neg", ["x"], ["z"]), helper.make_node("Sum", ["x", "z", "x"], ["y"])])


CASES = {"conv": conv_cases, "plane": plane_cases, "vector": vector_cases, "element": element_cases}


@pytest.mark.parametrize("kind", CASES)
def test_operators_agree_with_the_reference(rng, kind):  # noqa: F811
    for proto in CASES[kind](rng):
        assert_same(proto, rng)


def test_every_operator_has_a_case(rng):  # noqa: F811
    seen = {node.op_type for cases in CASES.values() for proto in cases(rng) for node in proto.graph.node}
    assert seen | {"MaxPool", "Softmax", "LogSoftmax"} >= set(OPERATORS)  # these are replaced, below


# ---- patterns ----------------------------------------------------------------------------------------------

# Activations as exporters write them, of the value v: operator, inputs, result.
WRITTEN = [
    ("silu", "Sigmoid v s; Mul v s y"),
    ("hard_swish", "HardSigmoid v s; Mul s v y"),
    ("hard_swish", "Add v three a; Clip a zero six l; Mul v l m; Div m six y"),
    ("gelu", "Div v root d; Erf d e; Add e one a; Mul v a m; Mul m half y"),
    ("gelu", "Mul half v h; Div v root d; Erf d e; Add one e a; Mul a h y"),
    (
        "gelu_tanh",
        "Mul v v p; Mul v p q; Mul q c r; Add v r w; Mul w k t; Tanh t h; Add h one o; Mul v o g; "
        "Mul g half y",
    ),
    (
        "gelu_tanh",
        "Pow v three q; Mul q c r; Add v r w; Mul w k t; Tanh t h; Add h one o; Mul v half g; Mul g o y",
    ),
]
NUMBERS = {
    "zero": 0.0, "half": 0.5, "one": 1.0, "three": 3.0, "six": 6.0, "root": np.sqrt(2.0), "c": 0.044715,
    "k": np.sqrt(2.0 / np.pi),
}  # fmt: skip


@pytest.mark.parametrize(("name", "lines"), WRITTEN)
def test_activations_that_exporters_write_out_are_found(rng, name, lines):  # noqa: F811
    nodes = [helper.make_node("Relu", ["x"], ["v"])]
    for line in lines.split("; "):
        operator, *inputs, result = line.split()
        options = {"alpha": 1 / 6} if operator == "HardSigmoid" else {}
        nodes.append(helper.make_node(operator, inputs, [result], **options))
    proto = model(nodes, **{key: np.array(value) for key, value in NUMBERS.items()})
    found = trace(nn.from_onnx(proto), PLANES)
    functions = [node.op.function for node in found.nodes if isinstance(node.op, Activation)]
    assert functions == ["relu", name]
    assert_same(proto, rng)


def test_products_of_other_functions_are_refused(rng):  # noqa: F811
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["x", "t"], ["y"], name="both")]
    with pytest.raises(UnsupportedError, match="both .Mul: a product of two encrypted tensors"):
        nn.from_onnx(model(nodes))
    assert_same(model([helper.make_node("Mul", ["x", "x"], ["y"])]), rng)


# ---- networks ----------------------------------------------------------------------------------------------


def test_a_mobile_network_compiles_and_agrees(rng):  # noqa: F811
    proto = mobile(rng)
    network = nn.from_onnx(proto.SerializeToString())
    x = rng.standard_normal((120, 1, 8, 8))
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(network(x), expected, atol=1e-6)  # a sixth is one of float32 there
    degrees = {"swish": 31, "act": 31}
    program = quiet_compile(network, x, params=toy(), degree=degrees, device="cpu")
    assert "stem" in program.explain()
    assert np.sqrt(np.mean((program.simulate(x) - expected) ** 2)) < 0.02 * float(np.std(expected))
    spec = program.client
    client = spec.keygen(device="cpu")
    server = program.bind(client.evaluation_keys(spec))
    found = client.decrypt(server.run(client.encrypt(x[:1], spec)), spec)
    np.testing.assert_allclose(found, program.simulate(x[:1], noise=False), atol=1e-6)


def vgg(rng, last="Softmax"):  # noqa: F811
    constants = {
        "w1": weights(rng, 3, 1, 3, 3), "w2": weights(rng, 4, 3, 3, 3), "s": rng.uniform(0.5, 1.5, 3),
        "b": weights(rng, 3), "v": rng.uniform(0.5, 1.5, 3), "w3": weights(rng, 5, 16),
    }  # fmt: skip
    nodes = chain(
        ("Conv", ["w1"], {}),
        ("Relu", [], {}),
        ("BatchNormalization", ["s", "b", "b", "v"], {}),
        ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Conv", ["w2"], {"pads": [1, 1, 1, 1]}),
        ("Relu", [], {}),
        ("MaxPool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("Flatten", [], {}),
        ("Gemm", ["w3"], {"transB": 1}),
        (last, [], {}),
    )
    return model(nodes, (1, 10, 10), **constants)


@pytest.mark.parametrize("last", ["Softmax", "LogSoftmax"])
def test_maxima_are_refused_or_replaced(rng, last):  # noqa: F811
    proto = vgg(rng, last)
    with pytest.raises(UnsupportedError) as found:
        nn.from_onnx(proto)
    for place in ("MaxPool_3", "MaxPool_6", f"{last}_9"):
        assert place in str(found.value.fields["operators"])
    assert "replace={'MaxPool': 'avg'}" in str(found.value)
    with pytest.warns(nn.ReplacementWarning, match="MaxPool_3.*MaxPool_6.*check its accuracy"):
        network = nn.from_onnx(proto, replace={"MaxPool": "avg", "Softmax": "identity"})
    with pytest.raises(UnsupportedError, match="MaxPool_6 .MaxPool: padding around maxima"):
        nn.from_onnx(proto, replace={"MaxPool": "relu", "Softmax": "identity"})
    proto.graph.node[-2].output[0] = "y"
    del proto.graph.node[-1]
    x = rng.standard_normal((2, 1, 10, 10))
    for node in proto.graph.node:
        if node.op_type == "MaxPool":
            node.op_type = "AveragePool"
            node.attribute.append(helper.make_attribute("count_include_pad", 1))
    np.testing.assert_allclose(network(x), ReferenceEvaluator(proto).run(None, {"x": x})[0], atol=1e-6)
    seen = rng.standard_normal((60, 1, 10, 10))
    program = quiet_compile(network, seen, params=toy("toy-leveled-n16-s40"), degree=7, device="cpu")
    spec = program.client
    client = spec.keygen(device="cpu")
    server = program.bind(client.evaluation_keys(spec))
    found = client.decrypt(server.run(client.encrypt(seen[:1], spec)), spec)
    np.testing.assert_allclose(found, program.simulate(seen[:1], noise=False), atol=1e-6)


def test_maxima_by_relu_are_those_of_onnx(rng):  # noqa: F811
    """Without a warning: it is the same network."""
    nodes = chain(
        ("Conv", ["w"], {}),
        ("MaxPool", [], {"kernel_shape": [3, 2], "strides": [2, 2]}),
        ("Flatten", [], {}),
        ("Gemm", ["v"], {"transB": 1}),
    )
    proto = model(nodes, (1, 10, 10), w=weights(rng, 3, 1, 3, 3), v=weights(rng, 5, 36))
    x = rng.standard_normal((2, 1, 10, 10))
    found = nn.from_onnx(proto, replace={"MaxPool": "relu"})(x)
    np.testing.assert_allclose(found, ReferenceEvaluator(proto).run(None, {"x": x})[0], atol=1e-6)


def test_a_softmax_within_a_network_is_refused(rng):  # noqa: F811
    nodes = chain(("Flatten", [], {}), ("Softmax", [], {}), ("MatMul", ["w"], {}))
    with pytest.raises(UnsupportedError, match="Softmax_1 .Softmax: within the network"):
        nn.from_onnx(model(nodes, w=weights(rng, 192, 2)), replace={"Softmax": "identity"})


def test_all_that_is_not_known_is_named_at_once(rng):  # noqa: F811
    """Squeeze and excite: the product is refused, and what stands behind it is looked at all the same."""
    node = helper.make_node
    nodes = [
        node("GlobalAveragePool", ["x"], ["g"]),
        node("HardSigmoid", ["g"], ["h"]),
        node("Mul", ["x", "h"], ["e"], "excite"),
        node("AveragePool", ["e"], ["p"], "edge", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Resize", ["p"], ["r"], "up"),
        node("Magic", ["r"], ["q"], "other", domain="org.example"),
        node("MaxPool", ["q"], ["z"], "top", kernel_shape=[2, 2]),
        node("Conv", ["x", "x"], ["y"], "self"),
        node("Add", ["y", "z"], ["out"]),
    ]
    with pytest.raises(UnsupportedError) as found:
        nn.from_onnx(model(nodes, outputs=("out",)))
    named = str(found.value.fields["operators"])
    for place in (
        "excite (Mul",
        "edge (AveragePool",
        "up (Resize)",
        "other (org.example.Magic)",
        "top (MaxPool",
    ):
        assert place in named
    assert "self (Conv: w depends on the network's input)" in named
