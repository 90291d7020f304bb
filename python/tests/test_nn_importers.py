"""The reader of torch.fx graphs on recorded nodes, without PyTorch.

What runs here: `importers.torch_graph.imported` on nodes that are written out below as torch.fx records them,
with modules that have the names and attributes of torch.nn's. What does not: torch.fx itself, and what
PyTorch computes; test_nn_torch.py has these, and is skipped where PyTorch is not installed.
"""

import operator
from types import SimpleNamespace

import numpy as np
import pytest
from nn_world import rng, weights  # noqa: F401

from crenel import nn
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.importers.imported import checked
from crenel.nn.importers.replacements import checked_replacements
from crenel.nn.importers.torch_graph import imported
from crenel.nn.trace import trace


class Node:
    def __init__(self, op, name, target=None, args=(), scope="", **kwargs):
        self.op, self.name, self.target, self.args, self.kwargs = op, name, target, args, kwargs
        self.meta = {"nn_module_stack": {scope: None}}


class Recording:
    """Nodes as torch.fx.Tracer makes them; attributes of `root` are modules and constants by their paths."""

    def __init__(self):
        self.nodes = [Node("placeholder", "x", "x")]
        self.root = SimpleNamespace()

    @property
    def x(self):
        return self.nodes[0]

    def _add(self, op, target, args, kwargs):
        name = f"{getattr(target, '__name__', target)}_{len(self.nodes)}".replace(".", "_")
        self.nodes.append(Node(op, name, target, args, **kwargs))
        return self.nodes[-1]

    def module(self, name, kind, value, **attributes):
        made = type(kind, (), {"__module__": "torch.nn.modules.recorded"})()
        vars(made).update(attributes)
        setattr(self.root, name, made)
        return self._add("call_module", name, (value,), {})

    def again(self, name, value):
        return self._add("call_module", name, (value,), {})

    def function(self, name, *args, module="torch.nn.functional", **kwargs):
        def target():
            raise AssertionError("a reader calls nothing")

        target.__name__, target.__module__ = name, module
        return self._add("call_function", target, args, kwargs)

    def operator(self, target, *args):
        return self._add("call_function", target, args, {})

    def method(self, name, *args, **kwargs):
        return self._add("call_method", name, args, kwargs)

    def imported(self, output, shape=None, **replace):
        nodes = [*self.nodes, Node("output", "output", "output", (output,))]
        return checked(imported(nodes, self.root, checked_replacements(replace)), shape)


def conv(weight, bias=None, **others):
    options = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "padding_mode": "zeros"}
    return {"weight": weight, "bias": bias, **options, **others}


def norm(rng, channels, **others):  # noqa: F811
    statistics = {"running_mean": weights(rng, channels), "running_var": rng.uniform(0.5, 2.0, channels)}
    return {
        **statistics,
        "weight": weights(rng, channels),
        "bias": None,
        "eps": 1e-3,
        "training": False,
        **others,
    }


def test_a_residual_network(rng):  # noqa: F811
    r = Recording()
    w1, w2, w3, b = weights(rng, 4, 2, 3, 2), weights(rng, 4, 4, 3, 3), weights(rng, 3, 4), weights(rng, 3)
    statistics = norm(rng, 4)
    a = r.module("stem", "Conv2d", r.x, **conv(w1, padding="same"))
    a = r.module("bn", "BatchNorm2d", a, **statistics)
    a = r.module("act", "ReLU", a, inplace=True)
    c = r.module("conv", "Conv2d", a, **conv(w2, padding=(1, 1)))
    d = r.operator(operator.iadd, c, a)
    d = r.again("act", d)
    d = r.operator(operator.mul, d, r.function("sigmoid", d, module="torch"))
    d = r.function("adaptive_avg_pool2d", d, (1, 1))
    size = r.method("size", d, 0)
    d = r.method("view", d, size, -1)
    d = r.module("drop", "Dropout", d, training=False, p=0.5)
    d = r.module("fc", "Linear", d, weight=w3, bias=b)
    network = r.imported(d, (2, 5, 4))
    wider = np.concatenate([np.zeros((4, 2, 3, 1)), w1], axis=3)  # "same" pads the right of even kernels
    expected = nn.Sequential(
        nn.Conv2d(wider, padding=(1, 1)),
        nn.BatchNorm(
            statistics["running_mean"], statistics["running_var"], statistics["weight"], epsilon=1e-3
        ),
        nn.ReLU(),
        nn.Residual(nn.Conv2d(w2, padding=1)),
        nn.ReLU(),
        nn.SiLU(),
        nn.GlobalAvgPool(),
        nn.Linear(w3, b),
    )
    x = rng.standard_normal((3, 2, 5, 4))
    np.testing.assert_allclose(network(x), expected(x), atol=1e-12)
    origins = [node.origin for node in trace(network, (2, 5, 4)).nodes]
    assert {"stem", "bn", "act", "conv", "act_1", "fc"} <= set(origins)


def test_places_are_those_of_modules(rng):  # noqa: F811
    r = Recording()
    r.nodes.append(Node("call_function", "relu", np.maximum, (r.x,), scope="layer1.0"))
    with pytest.raises(UnsupportedError, match=r"layer1\.0\.maximum"):
        r.imported(r.nodes[-1])


def test_functions_of_others_are_not_taken_for_those_of_pytorch():
    r = Recording()
    with pytest.raises(UnsupportedError, match="relu .relu"):
        r.imported(r.function("relu", r.x, module="my.own"))


def test_all_that_is_not_known_is_named_at_once(rng):  # noqa: F811
    r = Recording()
    a = r.module("rnn", "LSTM", r.x)
    a = r.module("pool", "MaxPool2d", a, kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False,
                 return_indices=False)  # fmt: skip
    a = r.function("fft", a, module="torch.fft")
    for shape in (None, (1, 8, 8)):
        with pytest.raises(UnsupportedError) as found:
            r.imported(a, shape)
        for place in ("rnn (LSTM)", "pool (MaxPool2d: maxima", "fft (fft)"):
            assert place in str(found.value.fields["operators"])


def test_hooks_are_not_passed_over():
    r = Recording()
    a = r.module("act", "ReLU", r.x, _forward_hooks={0: max})
    with pytest.raises(UnsupportedError, match=r"act \(ReLU: hooks change it"):
        r.imported(a)


def test_classes_of_others_are_not_taken_for_those_of_pytorch(rng):  # noqa: F811
    """torch.ao.nn.qat.Linear is one: its forward rounds the weights."""
    r = Recording()
    a = r.module("fc", "Linear", r.x, weight=weights(rng, 2, 3), bias=None)
    type(r.root.fc).__module__ = "torch.ao.nn.qat.modules.linear"
    with pytest.raises(UnsupportedError, match="fc .Linear: of torch.ao.nn.qat.modules.linear"):
        r.imported(a)


def test_arguments_that_change_the_meaning():
    """A softplus that is a line where it bends, limits of columns, an approximation that is not known."""
    for rule, others in (
        ("softplus", {"threshold": 2.0}),
        ("gelu", {"approximate": "other"}),
        ("clamp", {"max": np.zeros(4)}),
        ("clamp", {"min": np.zeros(4), "max": 1.0}),
    ):
        r = Recording()
        with pytest.raises(UnsupportedError, match=rule):
            r.imported(r.function(rule, r.x, **others), (4, 4, 4))


class Stored:
    """A tensor that PyTorch keeps in another way than as real numbers in memory."""

    shape, dtype, device = (2, 3), "torch.float32", "meta"

    def __init__(self, numbers):
        self.numbers = numbers

    def detach(self):
        return self

    cpu = detach

    def is_floating_point(self):
        return False

    def numpy(self):
        if self.numbers is None:
            raise TypeError("can't convert Sparse layout tensor to numpy")
        return self.numbers


@pytest.mark.parametrize("numbers", [None, np.ones((2, 3), dtype=complex)])
def test_tensors_that_are_no_real_numbers(numbers):
    r = Recording()
    a = r.module("fc", "Linear", r.x, weight=Stored(numbers), bias=None)
    with pytest.raises(ParameterError, match="a tensor"):
        r.imported(a, (3,))


def test_a_network_in_training_is_refused(rng):  # noqa: F811
    r = Recording()
    a = r.module("bn", "BatchNorm2d", r.x, **norm(rng, 2, training=True))
    a = r.function("dropout", a, p=0.5, training=True)
    with pytest.raises(UnsupportedError, match=r"bn \(.*call eval\(\).*dropout \(.*call eval\(\)"):
        r.imported(a, (2, 3, 3))
    r = Recording()
    a = r.module("bn", "BatchNorm2d", r.x, **norm(rng, 2, running_mean=None, running_var=None))
    with pytest.raises(UnsupportedError, match="no statistics of the training"):
        r.imported(a, (2, 3, 3))


def test_what_is_overwritten_and_read_again_is_refused():
    r = Recording()
    y = r.method("contiguous", r.x)
    z = r.method("relu_", y)
    with pytest.raises(UnsupportedError, match="relu_ .relu_: changes in place what is read again"):
        r.imported(r.operator(operator.add, z, r.x))  # y is x, so x has been overwritten
    r = Recording()
    y = r.operator(operator.add, r.x, 1.0)
    z = r.method("relu_", y)
    assert r.imported(r.operator(operator.add, z, r.x), (3,)).shape((3,)) == (3,)


def test_constants_and_arguments(rng):  # noqa: F811
    r = Recording()
    r.root.scale = weights(rng, 3, 1, 1)
    scale = Node("get_attr", "scale_1", "scale")
    r.nodes.append(scale)
    a = r.operator(operator.mul, scale, r.x)
    a = r.operator(operator.sub, 2.0, a)
    network = r.imported(a, (3, 2, 2))
    x = rng.standard_normal((2, 3, 2, 2))
    np.testing.assert_allclose(network(x), 2.0 - r.root.scale * x, atol=1e-13)
    for wrong in (
        r.function("relu", r.x, 1, 2, 3),
        r.method("view", r.x, 7, 5),
        r.operator(operator.truediv, 1, r.x),
    ):
        with pytest.raises(UnsupportedError, match="operators that cannot be imported"):
            r.imported(wrong, (3, 2, 2))


def test_several_inputs_or_results():
    r = Recording()
    a = r.method("relu", r.x)
    with pytest.raises(UnsupportedError, match=r"1 inputs \(x\) and 2 results"):
        r.imported((a, r.x))
    r.nodes.append(Node("placeholder", "z", "z"))
    with pytest.raises(UnsupportedError, match=r"2 inputs \(x, z\)"):
        r.imported(a)


def test_an_imported_network_is_a_module_like_others(rng):  # noqa: F811
    r = Recording()
    inner = r.imported(r.module("act", "Tanh", r.x))
    x = rng.standard_normal((4, 3))
    whole = nn.Sequential(nn.Linear(np.eye(3)), inner, inner)
    np.testing.assert_allclose(whole(x), np.tanh(np.tanh(x)), atol=1e-13)
    assert [node.origin for node in trace(whole, (3,)).nodes[1:]] == ["0", "1.act", "2.act"]


def test_without_the_libraries(monkeypatch):
    import builtins

    there = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.split(".")[0] in ("torch", "onnx"):
            raise ImportError(name)
        return there(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UnsupportedError, match=r"pip install 'crenel\[torch\]'"):
        nn.from_torch(object())
    with pytest.raises(UnsupportedError, match=r"pip install 'crenel\[onnx\]'"):
        nn.from_onnx(b"")


def test_families_take_finite_numbers(rng):  # noqa: F811
    x = 3 * rng.standard_normal((2, 50))
    np.testing.assert_allclose(nn.LeakyReLU(0.3)(x), np.where(x > 0, x, 0.3 * x), atol=1e-14)
    np.testing.assert_allclose(nn.ELU(0.5)(x), np.where(x > 0, x, 0.5 * (np.exp(x) - 1)), atol=1e-14)
    np.testing.assert_allclose(nn.HardSwish()(x), x * np.clip(x + 3, 0, 6) / 6, atol=1e-14)
    np.testing.assert_allclose(nn.ReLU6()(4 * x), np.clip(4 * x, 0, 6), atol=1e-14)
    np.testing.assert_allclose(nn.Softplus()(x), np.log(1 + np.exp(x)), atol=1e-12)
    for wrong in (np.nan, np.inf, "1", None, True):
        with pytest.raises(ParameterError, match="leaky_relu of"):
            nn.LeakyReLU(wrong)
