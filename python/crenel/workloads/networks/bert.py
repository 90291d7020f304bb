"""BERT-Tiny with random weights, whose functions see the ranges of the trained one.

Two layers of two heads, 128 features, 512 inside, a pooler and two classes. The published weights come
without the embeddings that the ranges rest on; random ones are scaled so that, on the samples, sums of
exponentials reach `SUM`, inputs of GELU `GELU_REACH` and of tanh `TANH_REACH`, as was seen on SST-2.
"""

from __future__ import annotations

import numpy as np

from crenel import nn
from crenel.nn.ops import Reals
from crenel.workloads.checked import positive, seed_of
from crenel.workloads.networks.task import Task

LAYERS, HEADS, FEATURES, INNER, CLASSES = 2, 2, 128, 512, 2
SUM, GELU_REACH, TANH_REACH = 5000.0, 17.0, 30.0
CALIBRATION = 16
DEGREES = {"0.2.branch.1": 63, "1.2.branch.1": 63, "4": 127}  # that GELU and tanh need on such ranges
MARGIN = 1.5


def task(seed: int, samples: int, tokens: int = 128) -> Task:
    """BERT-Tiny on sequences that its calibration does not have: (samples, tokens, 128).

    Raises ParameterError for a seed below 0, and for samples or tokens below 1.
    """
    seed, samples, tokens = seed_of(seed), positive("samples", samples), positive("tokens", tokens)
    network, seen = bert_tiny(seed, tokens)
    fresh = embedded(np.random.default_rng([seed, 1]), samples, tokens)
    return Task(
        "bert-tiny", network, f"random, seed {seed}", "random embeddings", seen, fresh,
        degree=DEGREES, margin=MARGIN,
    )  # fmt: skip


def embedded(rng: np.random.Generator, samples: int, tokens: int) -> Reals:
    """Normalised random embeddings, (samples, tokens, 128)."""
    return nn.LayerNorm(np.ones(FEATURES))(rng.standard_normal((samples, tokens, FEATURES)))


def bert_tiny(seed: int, tokens: int = 128, samples: int = CALIBRATION) -> tuple[nn.Sequential, Reals]:
    """The network, and sequences of normalised random embeddings, (samples, tokens, 128), for it."""
    rng = np.random.default_rng(seed)
    x = embedded(rng, samples, tokens)
    modules: list[nn.Module] = []
    values = x
    for _ in range(LAYERS):
        layer = _layer(rng, values)
        modules.append(layer)
        values = layer(values)
    first = nn.Token(0)(values)
    pooler = _reaching(_linear(rng, FEATURES, FEATURES), first, TANH_REACH)
    return nn.Sequential(*modules, nn.Token(0), pooler, nn.Tanh(), _linear(rng, FEATURES, CLASSES)), x


def _layer(rng: np.random.Generator, x: Reals) -> nn.Sequential:
    query, key, value, output = (_linear(rng, FEATURES, FEATURES) for _ in range(4))
    sharp = _sharpness(query(x), key(x))
    query = nn.Linear(sharp * query.weight, sharp * query.bias)
    attention = nn.Sequential(
        nn.Residual(nn.MultiHeadAttention(HEADS, query, key, value, output)), _norm(rng)
    )
    inner = _reaching(_linear(rng, FEATURES, INNER), attention(x), GELU_REACH)
    forward = nn.Sequential(inner, nn.GELU(), _linear(rng, INNER, FEATURES))
    return nn.Sequential(*attention.modules, nn.Residual(forward), _norm(rng))


def _sharpness(q: Reals, k: Reals) -> float:
    """Factor of queries with which the largest sum of exponentials is `SUM`, by bisection."""
    heads = [x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3) for x in (q, k)]
    scores = np.matmul(heads[0], heads[1].transpose(0, 1, 3, 2)) / np.sqrt(FEATURES // HEADS)
    low, high = 0.0, 700.0 / float(np.abs(scores).max())
    for _ in range(30):
        middle = 0.5 * (low + high)
        reached = float(np.exp(middle * scores).sum(axis=-1).max())
        low, high = (middle, high) if reached < SUM else (low, middle)
    return low


def _linear(rng: np.random.Generator, inputs: int, outputs: int) -> nn.Linear:
    weight = rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)
    return nn.Linear(weight, 0.1 * rng.standard_normal(outputs))


def _reaching(linear: nn.Linear, x: Reals, reach: float) -> nn.Linear:
    """Scaled so that its largest result on the samples is `reach`."""
    factor = reach / float(np.abs(linear(x)).max())
    return nn.Linear(factor * linear.weight, factor * linear.bias)


def _norm(rng: np.random.Generator) -> nn.LayerNorm:
    return nn.LayerNorm(rng.uniform(0.5, 1.5, FEATURES), 0.2 * rng.standard_normal(FEATURES), 1e-12)
