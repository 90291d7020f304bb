"""Small networks of squares on handwritten digits: a perceptron, and convolutions in the shape of LeNet-5.

Their hidden weights are random; the last layer is fitted to the training images by least squares. So they are
there in a second with any seed, classify most digits rightly, and cost under encryption what trained ones of
their shape cost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crenel import nn
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.ops import Reals
from crenel.workloads import idx
from crenel.workloads.checked import seed_of
from crenel.workloads.networks.task import Task

SIDE = 28
CLASSES = 10
TRAINING = 1400  # of the 1,797 images that come with scikit-learn
MOST_TRAINING = 4000  # of a file's
CALIBRATION = 200
RIDGE = 1e-3  # of the mean square of the features
Split = tuple[Reals, NDArray[np.int64], Reals, NDArray[np.int64]]


def load(data: Path | None, count: int) -> Split:
    """Training images (.., 1, 28, 28) within [0, 1], their digits, and `count` test images with theirs.

    data : a folder of MNIST's files; None: scikit-learn's digits of 8 x 8, each pixel as 3 x 3, in a margin

    Raises ParameterError for more images than there are and for a folder without both sets,
    UnsupportedError without scikit-learn, and what `idx.folder` raises.
    """
    if data is None:
        try:
            from sklearn.datasets import load_digits
        except ImportError:
            raise UnsupportedError(
                "without --data this needs scikit-learn: pip install 'crenel[demo]'"
            ) from None
        pixels, target = load_digits(return_X_y=True)
        found = np.asarray(pixels, dtype=np.float64).reshape(-1, 8, 8) / 16.0
        images = np.pad(found.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))
        x, tests = images[:TRAINING], images[TRAINING:]
        y, labels = target[:TRAINING], target[TRAINING:]
    else:
        sets = idx.folder(data) if data.is_dir() else []
        if len(sets) != 2 or any(images.shape[1:] != (SIDE, SIDE) for images, _ in sets):
            raise ParameterError(
                f"{data}: expected a folder of MNIST's files, training and test set of {SIDE} x {SIDE}",
                {"path": str(data), "sets": len(sets)},
            )
        (x, y), (tests, labels) = [(images / 255.0, digits) for images, digits in sets]
        x, y = x[:MOST_TRAINING], y[:MOST_TRAINING]
    if not 1 <= count <= len(tests):
        raise ParameterError(f"{count} images, expected 1 to {len(tests)}", {"count": count})
    return x[:, None], y.astype(np.int64), tests[:count, None], labels[:count].astype(np.int64)


def _random(rng: np.random.Generator, *shape: int) -> Reals:
    """Weights that keep the variance of their input, of single precision as trained ones are."""
    found = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    return np.asarray(found, dtype=np.float64)


def _fitted(body: list[nn.Module], x: Reals, y: NDArray[np.int64]) -> nn.Module:
    """The network whose last layer tells the digits from what `body` makes of them, by least squares."""
    features = np.column_stack([nn.Sequential(*body)(x), np.ones(len(x))])
    wanted = 2.0 * np.eye(CLASSES)[y] - 1.0
    ridge = RIDGE * np.mean(features**2) * len(x)
    head = np.linalg.solve(features.T @ features + ridge * np.eye(features.shape[1]), features.T @ wanted)
    return nn.Sequential(*body, nn.Linear(head[:-1].T, head[-1]))


def mlp(x: Reals, y: NDArray[np.int64], seed: int = 0) -> nn.Module:
    """784-128-128-10 with squares."""
    rng = np.random.default_rng(seed)
    body = [nn.Flatten(), nn.Linear(_random(rng, 128, SIDE * SIDE)), nn.Square()]
    return _fitted([*body, nn.Linear(_random(rng, 128, 128)), nn.Square()], x, y)


def lenet(x: Reals, y: NDArray[np.int64], seed: int = 0) -> nn.Module:
    """Convolutions of 5 x 5 with stride 2 to 32 and 64 channels, dense layers of 512 and 10; squares."""
    rng = np.random.default_rng(seed)
    body = [nn.Conv2d(_random(rng, 32, 1, 5, 5), stride=2, padding=2), nn.Square()]
    body += [nn.Conv2d(_random(rng, 64, 32, 5, 5), stride=2, padding=2), nn.Square(), nn.Flatten()]
    side = -(-SIDE // 4)
    return _fitted([*body, nn.Linear(_random(rng, 512, 64 * side**2)), nn.Square()], x, y)


NETWORKS: dict[str, Callable[[Reals, NDArray[np.int64], int], nn.Module]] = {"mlp": mlp, "lenet": lenet}


def task(name: str, data: Path | None, images: int, seed: int = 0) -> Task:
    """`mlp` or `lenet` on test images of digits. Raises what `load` raises, and ParameterError for a seed
    below 0."""
    seed = seed_of(seed)
    x, y, tests, labels = load(data, images)
    source = "digits of scikit-learn" if data is None else data.name
    weights = f"random, seed {seed}, the last layer fitted"
    return Task(name, NETWORKS[name](x, y, seed), weights, source, x[:CALIBRATION], tests, labels)
