"""Small ONNX models for tests."""

import numpy as np
from nn_world import weights
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

PLANES = (4, 8, 6)


def model(nodes, shape=PLANES, outputs=("y",), opset=20, batch="n", **constants):
    """Of one input x and nodes; constants in float64 but for integers."""
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    dims = None if shape is None else [batch, *shape]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, dims)],
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in outputs],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def chain(*steps):
    """Nodes one after the other, from x to y: (operator, constants behind the tensor, attributes)."""
    nodes = []
    for number, (operator, others, options) in enumerate(steps):
        first = "x" if number == 0 else f"v{number - 1}"
        result = "y" if number == len(steps) - 1 else f"v{number}"
        inputs = [first if name == "@" else name for name in (others if "@" in others else ["@", *others])]
        nodes.append(helper.make_node(operator, inputs, [result], name=f"{operator}_{number}", **options))
    return nodes


def mobile(rng):
    """As text recognition on telephones: depthwise, a hard-swish written out, a residual."""
    constants = {
        "stem": weights(rng, 4, 1, 3, 3), "stem_b": 0.1 * weights(rng, 4), "deep": weights(rng, 4, 1, 3, 3),
        "point": weights(rng, 4, 4, 1, 1), "fc": weights(rng, 3, 4), "fc_b": weights(rng, 3),
        "three": np.array(3.0), "zero": np.array(0.0), "six": np.array(6.0), "s": rng.uniform(0.5, 1.5, 4),
        "b": 0.1 * weights(rng, 4), "m": 0.1 * weights(rng, 4), "v": rng.uniform(0.5, 1.5, 4),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "stem", "stem_b"], ["c"], "stem", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Add", ["c", "three"], ["c3"]),
        node("Clip", ["c3", "zero", "six"], ["c6"]),
        node("Mul", ["c", "c6"], ["cc"], "swish"),
        node("Div", ["cc", "six"], ["h"]),
        node("Conv", ["h", "deep"], ["d"], "deep", pads=[1, 1, 1, 1], group=4),
        node("BatchNormalization", ["d", "s", "b", "m", "v"], ["n"], "norm"),
        node("HardSwish", ["n"], ["a"], "act"),
        node("Conv", ["a", "point"], ["p"], "point"),
        node("Add", ["p", "h"], ["sum"], "sum"),
        node("GlobalAveragePool", ["sum"], ["g"], "pool"),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "fc", "fc_b"], ["y"], "fc", transB=1),
    ]
    return model(nodes, (1, 8, 8), **constants)
