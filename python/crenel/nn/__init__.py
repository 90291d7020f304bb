"""`crenel.nn`: a trained network in, a program on encrypted samples out.

>>> from crenel import ckks, nn
>>> model = nn.Sequential(nn.Linear(w1, b1), nn.ReLU(), nn.Linear(w2, b2))
>>> program = nn.compile(model, samples, params=ckks.preset("leveled-n16-s40"))
>>> print(program.describe())

Modules
    `Linear`, `Conv2d`, `BatchNorm`, `AvgPool2d`, `GlobalAvgPool`, `Flatten`; `Sequential`, `Residual`,
    `Add`, `Concat`; activations as `ReLU`, `GELU`, `SiLU`, `Square`, `Polynomial`: weights are NumPy
    arrays, and ``module(x)`` is what it means in float64
    of sequences `LayerNorm`, `Softmax`, `MultiHeadAttention`, `Token`, `TokenMean`; `bert` and
    `encoder_layer` are made of them
`from_torch`, `from_onnx`, `from_keras`
    networks of other frameworks as an `Imported`, a module like the others; ``weights.load`` reads files of
    weights
`compile`
    a `Program`: ``simulate``, ``describe``, ``explain``, ``save``, ``load``, ``bind``
`ClientSpec`
    the client's file, ``program.client``; ``spec.keygen()`` is a `Client`: keys, ``encrypt``, ``decrypt``
`Server`
    ``program.bind(keys)``; ``run`` takes and returns an `EncryptedTensor`
`duration`
    how long a run takes on a known GPU, by its launches, without one
`footprint`
    what a program takes of a GPU's memory, without one
`report`
    errors of every intermediate, expected and measured, under a test key
"""

from crenel.nn.activations import (
    ELU,
    GELU,
    Erf,
    HardSigmoid,
    HardSwish,
    LeakyReLU,
    Polynomial,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softplus,
    Square,
    Tanh,
    TanhGELU,
)
from crenel.nn.client import Client, ClientSpec, EncryptedTensor
from crenel.nn.compiler import compile
from crenel.nn.footprint import Footprint, footprint
from crenel.nn.importers import weights
from crenel.nn.importers.imported import Imported
from crenel.nn.importers.keras_file import from_keras
from crenel.nn.importers.onnx_graph import from_onnx
from crenel.nn.importers.replacements import ReplacementWarning
from crenel.nn.importers.torch_graph import from_torch
from crenel.nn.launches import duration
from crenel.nn.machine import Duration
from crenel.nn.modules import AvgPool2d, BatchNorm, Conv2d, Flatten, GlobalAvgPool, Linear
from crenel.nn.networks import Add, Concat, Residual, Sequential
from crenel.nn.passes.approximate import AgreementWarning
from crenel.nn.passes.calibrate import CalibrationWarning
from crenel.nn.plan import Decision, Plan
from crenel.nn.program import Expected, Program, Server
from crenel.nn.report import Report, report
from crenel.nn.trace import Module
from crenel.nn.transformers import (
    LayerNorm,
    MultiHeadAttention,
    Softmax,
    Token,
    TokenMean,
    bert,
    encoder_layer,
)  # fmt: skip

__all__ = [
    "ELU",
    "GELU",
    "Add",
    "AgreementWarning",
    "AvgPool2d",
    "BatchNorm",
    "CalibrationWarning",
    "Client",
    "ClientSpec",
    "Concat",
    "Conv2d",
    "Decision",
    "Duration",
    "EncryptedTensor",
    "Erf",
    "Expected",
    "Flatten",
    "Footprint",
    "GlobalAvgPool",
    "HardSigmoid",
    "HardSwish",
    "Imported",
    "LeakyReLU",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "Plan",
    "Polynomial",
    "Program",
    "ReLU",
    "ReLU6",
    "ReplacementWarning",
    "Report",
    "Residual",
    "Sequential",
    "Server",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Square",
    "Tanh",
    "TanhGELU",
    "Token",
    "TokenMean",
    "bert",
    "compile",
    "duration",
    "encoder_layer",
    "footprint",
    "from_keras",
    "from_onnx",
    "from_torch",
    "report",
    "weights",
]
