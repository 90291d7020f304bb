"""ONNX files that are not right: each is refused with an error of the library that says what is wrong."""

import contextlib

import numpy as np
import pytest
from nn_onnx import PLANES, chain, mobile, model
from nn_world import rng, weights  # noqa: F401
from onnx import TensorProto, helper

from crenel import nn
from crenel.errors import CrenelError, MissingFileError, ParameterError, SerializationError, UnsupportedError
from crenel.nn.trace import trace


def test_truncated_and_changed_files_raise_typed_errors(rng, tmp_path):  # noqa: F811
    data = mobile(rng).SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert isinstance(nn.from_onnx(path), nn.Imported)
    with pytest.raises(MissingFileError):
        nn.from_onnx(tmp_path / "none.onnx")
    for cut in (0, 1, 7, *rng.integers(8, len(data) - 1, 30)):
        with pytest.raises(CrenelError):
            nn.from_onnx(data[: int(cut)])
    for _ in range(200):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), 3):
            changed[at] = int(rng.integers(0, 256))
        with contextlib.suppress(CrenelError):  # anything else is a failure
            nn.from_onnx(bytes(changed))
    with pytest.raises(ParameterError, match="dict, expected a path"):
        nn.from_onnx({})


def test_cycles_and_names_made_twice_are_refused(rng):  # noqa: F811
    node = helper.make_node
    cycle = [node("Add", ["x", "b"], ["a"], "one"), node("Relu", ["a"], ["b"], "two")]
    with pytest.raises(SerializationError, match="one reads b, which nothing before it makes"):
        nn.from_onnx(model(cycle, outputs=("b",)))
    with pytest.raises(SerializationError, match="two makes x, which is there already"):
        nn.from_onnx(model([node("Relu", ["x"], ["y"]), node("Relu", ["y"], ["x"], "two")]))
    with pytest.raises(SerializationError, match="nothing makes the output y"):
        nn.from_onnx(model([node("Relu", ["x"], ["z"])]))


@pytest.mark.parametrize(("outputs", "match"), [((), "0 outputs"), (("y", "x2"), "2 outputs .x; y, x2.")])
def test_one_output_is_expected(outputs, match):
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["y"], ["x2"])]
    with pytest.raises(UnsupportedError, match=match):
        nn.from_onnx(model(nodes, outputs=outputs))


def test_weights_that_are_not_what_they_declare(rng):  # noqa: F811
    proto = model(chain(("Flatten", [], {}), ("MatMul", ["w"], {})), w=weights(rng, 192, 2))
    tensor = proto.graph.initializer[0]
    for dims in ([192, 3], [10**9, 10**9], [-1, 2], [384]):
        del tensor.dims[:]
        tensor.dims.extend(dims)
        with pytest.raises((SerializationError, ParameterError), match="w"):
            nn.from_onnx(proto)
    bad = weights(rng, 192, 2)
    bad[3, 1] = np.nan
    with pytest.raises(ParameterError, match=r"MatMul_1: weight: the number at \[1, 3\] is not finite"):
        nn.from_onnx(model(chain(("Flatten", [], {}), ("MatMul", ["w"], {})), w=bad))


def test_declared_shapes(rng):  # noqa: F811
    relu = chain(("Relu", [], {}))
    with pytest.raises(ParameterError, match="at most 33554432"):
        nn.from_onnx(model(relu, (10**9, 10**9)))
    with pytest.raises(ParameterError, match=r"the file says 3, \?, 8 of a sample's shape, give shape="):
        nn.from_onnx(model(relu, (3, "height", 8)))
    assert nn.from_onnx(model(relu, (3, "height", 8)), (3, 5, 8)).shape((3, 5, 8)) == (3, 5, 8)
    with pytest.raises(ParameterError, match="the file's input x says"):
        nn.from_onnx(model(relu, (3, 8, 8)), (3, 5, 8))
    with pytest.raises(ParameterError, match="the file says nothing"):
        nn.from_onnx(model(relu, None))
    with pytest.raises(ParameterError, match="expected positive integers"):
        nn.from_onnx(model(relu, None), (0, 3))
    proto = model(relu)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(UnsupportedError, match="a tensor of real numbers"):
        nn.from_onnx(proto)


def test_names_cannot_control_the_terminal(rng):  # noqa: F811
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="a\nb\x1b[31m" + 300 * "c")] * 1
    nodes.append(helper.make_node("Tanh", ["y"], ["z"], name="a\nb\x1b[31m" + 300 * "c"))
    network = nn.from_onnx(model(nodes, outputs=("z",)))
    origins = [node.origin for node in trace(network, PLANES).nodes[1:]]
    assert len(set(origins)) == 2
    assert all(origin.isprintable() and len(origin) < 90 for origin in origins)


def beside(rng, tmp_path, location, **entries):  # noqa: F811
    proto = model(chain(("Flatten", [], {}), ("MatMul", ["w"], {})), w=weights(rng, 192, 2))
    tensor = proto.graph.initializer[0]
    data, tensor.raw_data = tensor.raw_data, b""
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    folder = tmp_path / "models"
    folder.mkdir(exist_ok=True)
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return folder / "m.onnx", data, proto


def test_weights_beside_the_model(rng, tmp_path):  # noqa: F811
    path, data, proto = beside(rng, tmp_path, "w.bin", offset=16, length=192 * 2 * 8)
    with pytest.raises(MissingFileError):
        nn.from_onnx(path)
    (path.parent / "w.bin").write_bytes(bytes(16) + data)
    x = rng.standard_normal((2, *PLANES))
    found = nn.from_onnx(path)(x)
    np.testing.assert_allclose(found, x.reshape(2, -1) @ np.frombuffer(data).reshape(192, 2), atol=1e-12)
    with pytest.raises(ParameterError, match="give the model's path"):
        nn.from_onnx(path.read_bytes())
    (path.parent / "w.bin").write_bytes(bytes(15) + data)
    with pytest.raises(SerializationError, match="in a file of"):
        nn.from_onnx(path)


@pytest.mark.parametrize("location", ["../w.bin", "", "link", "a/../../w.bin", "{home}/w.bin"])
def test_weights_elsewhere_are_not_read(rng, tmp_path, location):  # noqa: F811
    path, data, _ = beside(rng, tmp_path, location.format(home=tmp_path))
    (tmp_path / "w.bin").write_bytes(data)
    (path.parent / "link").symlink_to(tmp_path / "w.bin")
    with pytest.raises(SerializationError, match="below the model's folder"):
        nn.from_onnx(path)


@pytest.mark.parametrize("entries", [{"offset": -8}, {"length": 8}, {"offset": "x"}, {"offset": 10**18}])
def test_wrong_sizes_beside_the_model(rng, tmp_path, entries):  # noqa: F811
    path, data, _ = beside(rng, tmp_path, "w.bin", **entries)
    (path.parent / "w.bin").write_bytes(data)
    with pytest.raises(SerializationError, match="bytes, said to be"):
        nn.from_onnx(path)


def test_replacements_that_there_are_not():
    with pytest.raises(ParameterError, match="replace 'ReLU' by 'square': there are"):
        nn.from_onnx(model(chain(("Relu", [], {}))), replace={"ReLU": "square"})


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("Conv", {"pads": [0, 0, 10**9, 0]}),
        ("Conv", {"pads": [10**9, 0, 10**9, 0]}),
        ("Conv", {"pads": [1, 0, 0, 0], "dilations": [10**9, 1]}),
        ("Conv", {"auto_pad": "SAME_UPPER", "dilations": [10**9, 1]}),
        ("Conv", {"group": 10**9}),
        ("AveragePool", {"kernel_shape": [10**9, 1], "pads": [10**9, 0, 10**9, 0], "count_include_pad": 1}),
        ("Pad", {"pads": [0, 0, 0, 0, 0, 0, 10**6, 10**6]}),
    ],
)
def test_sizes_are_refused_before_memory_is_taken(rng, operator, options):  # noqa: F811
    constants = {"w": weights(rng, 4, 4, 2, 1)} if operator == "Conv" else {}
    nodes = chain((operator, list(constants), options))
    with pytest.raises(ParameterError, match=f"{operator}_0: "):
        nn.from_onnx(model(nodes, opset=10 if operator == "Pad" else 20, **constants))


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        ([("Relu", ["c"], {})], "Relu: x is a constant"),
        ([("Conv", ["c", "x"], {})], "Conv: x is a constant"),
        ([("Reshape", ["x", "x"], {})], "Reshape: shape depends on the network's input"),
        ([("Pow", ["x", "x"], {})], "Pow: exponent depends"),
        ([("Conv", ["x", "c"], {"magic": 3})], "unexpected keyword argument 'magic'"),
        ([("Conv", ["x"], {})], "missing a required argument: 'w'"),
        ([("AveragePool", ["x"], {"kernel_shape": "ab"})], "operands that it cannot have"),
        ([("Gemm", ["x", "c"], {"alpha": "ab"})], "operands that it cannot have"),
        ([("Unsqueeze", ["c", "c"], {}), ("Add", ["x", "t0"], {})], "operands that it cannot have"),
        ([("Shape", ["x"], {}), ("Mul", ["x", "t0"], {})], "real numbers"),
    ],
)
def test_operands_of_wrong_kinds(nodes, match):
    made = [
        helper.make_node(operator, inputs, ["y" if k == len(nodes) - 1 else f"t{k}"], **options)
        for k, (operator, inputs, options) in enumerate(nodes)
    ]
    with pytest.raises((UnsupportedError, ParameterError), match=match):
        nn.from_onnx(model(made, c=np.array([5.5, 0.5])))
