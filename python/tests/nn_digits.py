"""Networks of scikit-learn's digits, trained in seconds with NumPy."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from crenel import nn

TRAINING = 1400  # of 1797 images of 8 x 8


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 1, 8, 8) within [0, 1], and their digits."""
    found = load_digits()
    return found.images[:, None] / 16.0, found.target


@cache
def dense(seed: int = 0) -> nn.Module:
    """64-32-10 with ReLU."""
    images, labels = digits()
    x = images[:TRAINING].reshape(TRAINING, -1)
    trained = MLPClassifier((32,), max_iter=60, random_state=seed, learning_rate_init=5e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # good enough
        trained.fit(x, labels[:TRAINING])
    (w1, w2), (b1, b2) = trained.coefs_, trained.intercepts_
    return nn.Sequential(nn.Linear(w1.T, b1), nn.ReLU(), nn.Linear(w2.T, b2))


def _patches(x: np.ndarray, stride: int) -> np.ndarray:
    """(count, channels, h, w) to (count, places, channels * 9): windows of 3 x 3 with padding 1."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
    return seen.transpose(0, 2, 3, 1, 4, 5).reshape(len(x), -1, x.shape[1] * 9)


def _back(grad: np.ndarray, shape: tuple[int, ...], stride: int) -> np.ndarray:
    """The transpose of `_patches`."""
    count, channels, height, width = shape
    padded = np.zeros((count, channels, height + 2, width + 2))
    rows, columns = -(-height // stride), -(-width // stride)
    grad = grad.reshape(count, rows, columns, channels, 3, 3).transpose(0, 3, 4, 5, 1, 2)
    for v in range(3):
        for h in range(3):
            part = padded[
                :, :, v : v + stride * (rows - 1) + 1 : stride, h : h + stride * (columns - 1) + 1 : stride
            ]
            part += grad[:, :, v, h]
    return padded[:, :, 1:-1, 1:-1]


@cache
def convolutional(square: bool, seed: int = 0) -> nn.Module:
    """conv 1-6 (8 x 8), conv 6-12 stride 2 (4 x 4), mean of 2 x 2, dense 48-10; squares, or ReLU."""
    rng = np.random.default_rng(seed)
    images, labels = digits()
    x, y = images[:TRAINING], np.eye(10)[labels[:TRAINING]]
    gain = 0.7 if square else 1.4
    w = [gain * rng.standard_normal(s) / np.sqrt(s[1]) for s in ((6, 9), (12, 54), (10, 48))]
    b = [np.zeros(len(v)) for v in w]
    momentum = [np.zeros_like(v) for v in (*w, *b)]
    rate = 0.02 if square else 0.1
    for epoch in range(20):
        order = rng.permutation(TRAINING)
        for start in range(0, TRAINING, 50):
            rows = order[start : start + 50]
            p1 = _patches(x[rows], 1)
            u1 = p1 @ w[0].T + b[0]
            a1 = (u1**2 if square else np.maximum(u1, 0)).transpose(0, 2, 1).reshape(-1, 6, 8, 8)
            p2 = _patches(a1, 2)
            u2 = p2 @ w[1].T + b[1]
            a2 = u2**2 if square else np.maximum(u2, 0)
            pooled = a2.transpose(0, 2, 1).reshape(-1, 12, 2, 2, 2, 2).mean(axis=(3, 5)).reshape(-1, 48)
            logits = pooled @ w[2].T + b[2]
            e = np.exp(logits - logits.max(axis=1, keepdims=True))
            g = (e / e.sum(axis=1, keepdims=True) - y[rows]) / len(rows)
            g3 = (g.T @ pooled, g.sum(axis=0))
            back = np.repeat(np.repeat((g @ w[2]).reshape(-1, 12, 2, 2), 2, axis=2), 2, axis=3) / 4.0
            g2 = back.reshape(-1, 12, 16).transpose(0, 2, 1) * (2 * u2 if square else u2 > 0)
            back = _back(g2 @ w[1], a1.shape, 2).reshape(-1, 6, 64).transpose(0, 2, 1)
            g1 = back * (2 * u1 if square else u1 > 0)
            grads = [np.einsum("npo,npi->oi", g1, p1), np.einsum("npo,npi->oi", g2, p2), g3[0]]
            grads += [g1.sum(axis=(0, 1)), g2.sum(axis=(0, 1)), g3[1]]
            for k, (value, grad) in enumerate(zip((*w, *b), grads, strict=True)):
                momentum[k] = 0.9 * momentum[k] + grad / max(1.0, float(np.sqrt(np.sum(grad**2))))
                value -= rate * (1.0 if epoch < 15 else 0.3) * momentum[k]
    act = nn.Square if square else nn.ReLU
    return nn.Sequential(
        nn.Conv2d(w[0].reshape(6, 1, 3, 3), b[0], padding=1), act(),
        nn.Conv2d(w[1].reshape(12, 6, 3, 3), b[1], stride=2, padding=1), act(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(w[2], b[2]),
    )  # fmt: skip
