"""Tables, models and servers of the tests of training."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field

import numpy as np
from conftest import open_context, toy

from crenel import ckks
from crenel.workloads.regression import EncryptedTable, LogisticRegression


def seeded() -> tuple[int, np.random.Generator]:
    """A new seed in every run, printed; CRENEL_TEST_SEED repeats one."""
    seed = int(os.environ.get("CRENEL_TEST_SEED", np.random.SeedSequence().entropy % 2**32))
    print("CRENEL_TEST_SEED", seed)
    return seed, np.random.default_rng(seed)


def table(rng: np.random.Generator, rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that a plane nearly parts; features up to 1."""
    X = rng.uniform(-1, 1, (rows, features))
    y = np.where(X @ rng.standard_normal(features) + 0.3 * rng.standard_normal(rows) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def tumours() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's breast cancer: 569 rows of 30 features, scaled to 1."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    X = (data.data - data.data.mean(0)) / data.data.std(0) / 6
    return np.clip(X, -1, 1), np.where(data.target == 1, 1.0, -1.0)


@dataclass
class Server:
    """A model with keys and encrypted tables."""

    model: LogisticRegression
    X: np.ndarray
    y: np.ndarray
    device: str = "cpu"
    context: ckks.Context = field(init=False)

    def __post_init__(self) -> None:
        self.context = open_context(self.model.params, self.device)
        self.client = self.context.keygen()
        self.keys = self.model.keys(self.client)
        self.ev = self.context.evaluator(self.keys)
        self.x: EncryptedTable = self.model.encrypt(self.client, self.X)
        self.labels: EncryptedTable = self.model.encrypt_labels(self.client, self.y)


def leveled(depth: int) -> ckks.Params:
    """Small parameters without a bootstrap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        return ckks.Params(log_n=10, scale_bits=40, depth=depth, allow_insecure=True)


def model(preset: str, features: int, batch: int, **options) -> LogisticRegression:
    return LogisticRegression(toy(preset), features=features, batch=batch, **options)


def rms(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(np.mean((a - b) ** 2)))
