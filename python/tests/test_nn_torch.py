"""`nn.from_torch` and `nn.weights.load` against PyTorch itself; skipped where that is not installed.

PyTorch with its CUDA libraries is 5 GB: CI has none. There test_nn_importers.py runs the same reader on
recorded nodes, and test_nn_onnx.py the same operators.
"""

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy  # noqa: F401

from crenel import nn
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.importers.torch_functions import FUNCTIONS, MODULES
from crenel.nn.trace import trace

torch = pytest.importorskip("torch")
from torch import nn as tn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

PLANES = (4, 8, 6)


class Of(tn.Module):
    """The network of a function."""

    def __init__(self, rule):
        super().__init__()
        self.rule = rule

    def forward(self, x):
        return self.rule(x)


@pytest.fixture(autouse=True)
def seeded(rng):  # noqa: F811
    torch.manual_seed(int(rng.integers(1 << 31)))


def prepared(module):
    """In float64 and for inference, with statistics of norms that are not those of the start."""
    for each in module.modules():
        if isinstance(each, (tn.BatchNorm1d, tn.BatchNorm2d)):
            each.running_mean.normal_()
            each.running_var.uniform_(0.5, 2.0)
            tn.init.normal_(each.weight)
            tn.init.normal_(each.bias)
    return module.double().eval()


def assert_same(module, rng, shape=PLANES, **options):  # noqa: F811
    module = prepared(module)
    x = 3.0 * rng.standard_normal((3, *shape))
    with torch.no_grad():
        expected = module(torch.tensor(x)).numpy()
    for given in (shape, None):
        found = nn.from_torch(module, given, **options)(x)
        np.testing.assert_allclose(found, expected.reshape(found.shape), atol=1e-9)


LAYERS = [
    tn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), groups=2),
    tn.Conv2d(4, 8, (2, 4), padding="same", dilation=(3, 2), bias=False),
    tn.Conv2d(4, 3, 3, padding="valid"),
    tn.BatchNorm2d(4),
    tn.AvgPool2d((2, 3), (1, 2), (1, 1)),
    tn.AvgPool2d(2, ceil_mode=True),
    tn.AdaptiveAvgPool2d(1),
    tn.AdaptiveAvgPool2d((4, None)),
    tn.Flatten(),
    tn.Identity(),
    tn.Dropout(0.5),
    tn.Dropout2d(0.5),
    tn.ReLU(),
    tn.ReLU6(),
    tn.GELU(),
    tn.GELU(approximate="tanh"),
    tn.SiLU(),
    tn.Sigmoid(),
    tn.Tanh(),
    tn.Hardswish(),
    tn.Hardsigmoid(),
    tn.Hardtanh(-0.5, 2.0),
    tn.LeakyReLU(0.2),
    tn.ELU(0.7),
    tn.Softplus(),
    tn.ZeroPad2d((1, 2, 0, 3)),
    tn.Sequential(tn.Flatten(), tn.Linear(192, 5), tn.BatchNorm1d(5)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_layers_agree(rng, layer):  # noqa: F811
    assert_same(layer, rng)


def test_every_class_has_a_test():
    tested = {type(each).__name__ for layer in LAYERS for each in layer.modules()}
    assert tested | {"MaxPool2d", "Softmax", "LogSoftmax"} >= set(MODULES)


RULES = {
    "add": lambda x: x + x + 1.5,
    "sub": lambda x: 2.0 - torch.sub(x, torch.relu(x), alpha=0.5),
    "mul": lambda x: 3 * x * torch.tensor([[1.0], [2.0], [3.0], [4.0]]).unsqueeze(2),
    "div": lambda x: x / 4,
    "neg": lambda x: -x,
    "pow": lambda x: x**3 + torch.square(x) + x.pow(2),
    "cat": lambda x: torch.cat([x, torch.tanh(x)], dim=1),
    "concat": lambda x: torch.concat([x, x], 1),
    "mean": lambda x: x.mean([2, 3]),
    "mean_keep": lambda x: torch.mean(x, dim=(-1, -2), keepdim=True),
    "view": lambda x: x.view(x.size(0), -1),
    "view_shape": lambda x: x.view(x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]),
    "reshape": lambda x: x.contiguous().reshape(-1, 192),
    "flatten": lambda x: torch.flatten(x, 1),
    "clamp": lambda x: x.clamp(-1, 0.5) + torch.clip(x, min=0.25),
    "silu": lambda x: F.silu(x) + x * torch.sigmoid(x),
    "small_factor": lambda x: x * (1.2345678e-7 * torch.sigmoid(x)),
    "gelu": lambda x: F.gelu(x) + 0.5 * x * (1 + torch.erf(x / 2**0.5)),
    "relu6": lambda x: F.relu6(x) + F.hardsigmoid(x) * x + F.hardswish(x),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1) + F.elu(x) + F.softplus(x, beta=2.0),
    "hardtanh": lambda x: F.hardtanh(x),
    "pad": lambda x: F.pad(x, (1, 0, 2, 1)) + F.pad(x, (1, 0, 2, 1, 0, 0), "constant", 0),
    "shortcut": lambda x: F.pad(x[:, :, ::2, ::3], (0, 0, 0, 0, 2, 1), "constant", 0),
    "pools": lambda x: F.adaptive_avg_pool2d(F.avg_pool2d(x, 2), 1),
    "dropout": lambda x: F.dropout(x, training=False),
    "in_place": lambda x: F.relu(x + 1.0, inplace=True).mul_(2.0),
}


@pytest.mark.parametrize("name", RULES)
def test_functions_agree(rng, name):  # noqa: F811
    assert_same(Of(RULES[name]), rng)


def test_functions_are_those_of_pytorch():
    for name in FUNCTIONS:
        places = (torch, F, torch.Tensor, __import__("operator"), __import__("builtins"))
        assert any(hasattr(place, name) for place in places), name


class Block(tn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = tn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = tn.BatchNorm2d(outputs)
        self.relu = tn.ReLU(inplace=True)
        self.conv2 = tn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = tn.BatchNorm2d(outputs)
        self.shortcut = tn.Sequential()
        if stride > 1:
            self.shortcut = tn.Sequential(tn.Conv2d(inputs, outputs, 1, stride), tn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.shortcut(x)
        return self.relu(y)


class Residual(tn.Module):
    def __init__(self):
        super().__init__()
        self.stem = tn.Sequential(tn.Conv2d(1, 4, 3, padding=1, bias=False), tn.BatchNorm2d(4), tn.SiLU())
        self.layer1 = tn.Sequential(Block(4, 4, 1), Block(4, 8, 2))
        self.fc = tn.Linear(8, 5)

    def forward(self, x):
        x = self.layer1(self.stem(x))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def test_a_residual_network_compiles_and_agrees(rng):  # noqa: F811
    module = Residual()
    assert_same(module, rng, (1, 8, 8))
    network = nn.from_torch(module, (1, 8, 8))
    origins = [node.origin for node in trace(network, (1, 8, 8)).nodes]
    assert {"stem.0", "layer1.0.relu", "layer1.0.relu_1", "layer1.1.shortcut.0", "layer1.1.add"} <= set(
        origins
    )
    x = rng.standard_normal((100, 1, 8, 8))
    with torch.no_grad():
        expected = module(torch.tensor(x)).numpy()
    names = [name for name in origins if name.endswith(("relu", "relu_1", "stem.2"))]
    program = quiet_compile(
        network, x, params=toy("toy-boot35"), degree=dict.fromkeys(names, 31), device="cpu"
    )
    assert np.sqrt(np.mean((program.simulate(x[:20]) - expected[:20]) ** 2)) < 0.1 * float(np.std(expected))


def test_weights_are_copies(rng):  # noqa: F811
    layer = prepared(tn.Linear(3, 2))
    network = nn.from_torch(layer, (3,))
    x = rng.standard_normal((2, 3))
    before = network(x)
    layer.weight.data.zero_()
    np.testing.assert_array_equal(network(x), before)


class Unknown(tn.Module):
    def __init__(self):
        super().__init__()
        self.prelu, self.pool, self.norm = tn.PReLU(4), tn.MaxPool2d(2), tn.GroupNorm(2, 4)

    def forward(self, x):
        return torch.softmax(torch.fft.fft(self.norm(self.pool(self.prelu(x)))).abs(), 1)


def test_all_that_is_not_known_is_named_at_once():
    for shape in (PLANES, None):
        with pytest.raises(UnsupportedError) as found:
            nn.from_torch(Unknown().eval(), shape)
        for place in ("prelu (PReLU)", "pool (MaxPool2d:", "norm (GroupNorm)", "fft_fft", "abs", "softmax"):
            assert place in str(found.value.fields["operators"])


def test_maxima_and_softmax_are_replaced(rng):  # noqa: F811
    layers = tn.Conv2d(4, 4, 3), tn.ReLU(), tn.MaxPool2d(2, 2), tn.Flatten(), tn.Linear(24, 3)
    module = prepared(tn.Sequential(*layers, tn.LogSoftmax(1)))
    with pytest.warns(nn.ReplacementWarning, match=r"2 \(MaxPool2d\), 5 \(LogSoftmax\)"):
        network = nn.from_torch(module, PLANES, replace={"MaxPool": "avg", "Softmax": "identity"})
    x = rng.standard_normal((2, *PLANES))
    instead = tn.Sequential(*layers[:2], tn.AvgPool2d(2, 2), *layers[3:])
    np.testing.assert_allclose(network(x), instead(torch.tensor(x)).detach().numpy(), atol=1e-12)


def branches(x):
    return x if x.sum() > 0 else -x


@pytest.mark.parametrize("rule", [branches, lambda x: x[: len(x)], lambda x: x.view(int(x.shape[0]), -1)])
def test_what_depends_on_data_is_refused(rule):
    with pytest.raises(UnsupportedError, match="torch.fx cannot trace the network"):
        nn.from_torch(Of(rule), (4,))


@pytest.mark.parametrize(
    "module",
    [
        tn.AvgPool2d(3, padding=1, count_include_pad=False),
        tn.AvgPool2d(3, 2, ceil_mode=True),
        tn.AdaptiveAvgPool2d(3),
        tn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"),
        tn.BatchNorm2d(4, track_running_stats=False),
        tn.Conv1d(4, 4, 3),
        tn.Flatten(2),
        tn.BatchNorm2d(4).train(),
        tn.Dropout().train(),
        Of(lambda x: x * torch.tanh(x)),
        Of(lambda x: x * (1e-9 * torch.tanh(x))),
        Of(lambda x: F.softplus(x, 2.0, 1.0)),
        Of(lambda x: torch.clamp(x, max=torch.zeros(6))),
        Of(lambda x: x[:1]),
        Of(lambda x: x.view(4, -1)),
        tn.Softplus(threshold=2.0),
        tn.utils.weight_norm(tn.Conv2d(4, 4, 3)),
        Of(lambda x: 1.0 / x),
        Of(lambda x: (x, x)),
        Of(lambda x: x[:, 0]),
        Of(lambda x: x.transpose(1, 2)),
        Of(lambda x: F.relu(x, inplace=True) + x),
        Of(lambda x: torch.clamp(x, torch.tensor([[[0.0]]]), 1.0)),
    ],
)
def test_what_cannot_be_imported_is_refused(module):
    training = module.training and isinstance(module, (tn.Dropout, tn.BatchNorm2d))
    with pytest.raises((UnsupportedError, ParameterError)):
        nn.from_torch(module if training else module.eval(), PLANES)


def test_other_objects():
    with pytest.raises(ParameterError, match="dict, expected a torch.nn.Module"):
        nn.from_torch({})
    bad = prepared(tn.Linear(4, 2))
    bad.weight.data[1, 2] = float("nan")
    with pytest.raises(ParameterError, match=r"weight: the number at \[1, 2\] is not finite"):
        nn.from_torch(bad, (4,))
    with pytest.raises(ParameterError, match="inputs of a linear layer: 5 in the tensor, 4 in"):
        nn.from_torch(prepared(tn.Linear(4, 2)), (5,))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64])
def test_files_of_pytorch(tmp_path, kind):
    module = Residual()
    state = {name: (8 * value).to(kind) for name, value in module.state_dict().items()}
    state["view"] = torch.arange(24).to(kind).reshape(4, 6).T[1:4, ::2]
    state["parameter"] = tn.Parameter(torch.ones(3))
    torch.save({"state_dict": state, "epoch": 3, "optimiser": {"rate": 0.1}}, tmp_path / "w.pt")
    found = nn.weights.load(tmp_path / "w.pt", prefix="state_dict.")
    assert found.keys() == state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(found[name], value.detach().double().numpy())
    torch.save(module.state_dict(), tmp_path / "plain.pt")
    assert nn.weights.load(tmp_path / "plain.pt").keys() == module.state_dict().keys()
    torch.save(module.state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="before 1.6"):
        nn.weights.load(tmp_path / "old.pt")
    torch.save(module, tmp_path / "module.pt")
    with pytest.raises(ValueError, match="nothing was executed|no list of tensors"):
        nn.weights.load(tmp_path / "module.pt")
