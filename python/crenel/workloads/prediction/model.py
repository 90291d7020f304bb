"""The data and the model in the clear."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crenel.errors import ParameterError, UnsupportedError

DEGREE = 7
CLIP = 2.0  # standardised features are limited to +-2, which bounds the logits
REGULARISATION = 0.03  # scikit-learn's C: small logits, so that degree 7 follows the sigmoid
MARGIN = 1.25  # the polynomial's interval reaches this much beyond the training logits


def sigmoid(t: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-t))


@dataclass(frozen=True)
class Model:
    """Logistic regression whose sigmoid is a polynomial of degree 7.

    The probability that a tumour is malignant is ``polynomial((x @ weights + bias) / bound)`` with a
    Chebyshev series on [-1, 1]; `weights` and `bias` are kept divided by `bound`.
    """

    weights: np.ndarray
    bias: float
    coefficients: np.ndarray
    bound: float

    def logits(self, features: np.ndarray) -> np.ndarray:
        return (features @ self.weights + self.bias) * self.bound

    def exact(self, features: np.ndarray) -> np.ndarray:
        """Probabilities with the true sigmoid."""
        return sigmoid(self.logits(features))

    def approximate(self, features: np.ndarray) -> np.ndarray:
        """Probabilities with the polynomial: what the server computes, in the clear."""
        return np.polynomial.chebyshev.chebval(self.logits(features) / self.bound, self.coefficients)


@dataclass(frozen=True)
class Split:
    """Training patients, and those whose data will be encrypted; label 1 is malignant."""

    train_features: np.ndarray
    train_labels: np.ndarray
    features: np.ndarray
    labels: np.ndarray


def load(seed: int, patients: int) -> Split:
    """A random split; standardised by the training patients, clipped."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise UnsupportedError("the demo needs scikit-learn: pip install 'crenel[demo]'") from None
    values, target = load_breast_cancer(return_X_y=True)
    total = len(target)
    if not 1 <= patients <= total - 100:
        raise ParameterError(
            f"patients must be between 1 and {total - 100} (the rest trains), got {patients}",
            {"patients": patients},
        )
    order = np.random.default_rng(seed).permutation(total)
    test, train = order[:patients], order[patients:]
    labels = 1 - target
    mean, deviation = values[train].mean(axis=0), values[train].std(axis=0)
    features = np.clip((values - mean) / deviation, -CLIP, CLIP)
    return Split(features[train], labels[train], features[test], labels[test])


def train(split: Split) -> Model:
    """Logistic regression, and a least-squares polynomial for its sigmoid."""
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=REGULARISATION, class_weight="balanced", max_iter=1000)
    regression.fit(split.train_features, split.train_labels)
    logits = regression.decision_function(split.train_features)
    bound = float(np.ceil(MARGIN * np.abs(logits).max()))
    coefficients = fit_sigmoid(logits, bound)
    weights, bias = np.asarray(regression.coef_), np.asarray(regression.intercept_)
    return Model(weights[0] / bound, float(bias[0]) / bound, coefficients, bound)


def fit_sigmoid(logits: np.ndarray, bound: float) -> np.ndarray:
    """Chebyshev coefficients on [-bound, bound], best where the training logits lie."""
    seen = np.repeat(np.concatenate([logits, -logits]), 4)
    points = np.concatenate([seen, np.linspace(-bound, bound, 2001)])
    series = np.polynomial.Chebyshev.fit(points, sigmoid(points), DEGREE, domain=[-bound, bound])
    coefficients = series.coef.copy()
    coefficients[0] = 0.5  # sigmoid - 1/2 is odd
    coefficients[2::2] = 0.0
    return coefficients
