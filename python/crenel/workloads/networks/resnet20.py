"""ResNet-20 for CIFAR-10 (He et al., arXiv:1512.03385, section 4.2) from trained weights.

Three stages of three blocks of two convolutions with 16, 32 and 64 channels. A shortcut between stages takes
every second pixel and pads channels with zeros, a quarter of the new ones on each side: it has no weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from crenel import nn
from crenel.errors import ParameterError
from crenel.nn.ops import Reals
from crenel.workloads.networks import cifar
from crenel.workloads.networks.task import Task

CHANNELS = (16, 32, 64)
BLOCKS = 3
CLASSES = 10
DEGREE = 63  # 31 agrees on 99 % of training images, and on 98 % of the first 500 of the test set; 63 on 99 %
EPSILON = 1e-5  # of the batch norms, as trained
# Of the training images' colours, by which inputs were normalised in training.
MEAN = np.array([0.485, 0.456, 0.406])
DEVIATION = np.array([0.229, 0.224, 0.225])
NEEDED = (
    "Neither weights nor images come with Crenel. Weights: a PyTorch state dict, or an .npz or .safetensors "
    "file of its arrays (conv1.weight, bn1.running_mean, layer1.0.conv1.weight, .., linear.weight). Images: "
    "CIFAR-10's binary version, test_batch.bin for --data and data_batch_1.bin for --calibration, or its "
    "folder for --data; or .npz files of images (count, 3, 32, 32) of bytes and labels (count,)"
)
PREFIX = "module."  # of names, where a network was trained on several GPUs


class _Weights:
    """Arrays by name, each checked when it is taken."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = {name.removeprefix(PREFIX): np.asarray(array) for name, array in arrays.items()}
        self.taken: set[str] = set()

    def __call__(self, name: str, *shape: int) -> Reals:
        if name not in self.arrays:
            raise ParameterError(
                f"no array {name!r} of shape {shape} among {len(self.arrays)} arrays of weights",
                {"array": name, "expected": list(shape)},
            )
        array = self.arrays[name]
        if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ParameterError(
                f"array {name!r}: {array.dtype} of shape {array.shape}, expected finite numbers of {shape}",
                {"array": name, "shape": list(array.shape), "expected": list(shape)},
            )
        self.taken.add(name)
        return array.astype(np.float64)

    def norm(self, name: str, channels: int) -> nn.BatchNorm:
        parts = ("running_mean", "running_var", "weight", "bias")
        mean, variance, weight, bias = (self(f"{name}.{part}", channels) for part in parts)
        return nn.BatchNorm(mean=mean, variance=variance, weight=weight, bias=bias, epsilon=EPSILON)

    def left(self) -> list[str]:
        """Names that nothing took, but for counters of training."""
        return sorted(n for n in set(self.arrays) - self.taken if not n.endswith(".num_batches_tracked"))


def _shortcut(inputs: int, outputs: int) -> nn.Conv2d:
    """Every second pixel; channels in the middle of the new ones."""
    weight = np.zeros((outputs, inputs, 1, 1))
    weight[np.arange(inputs) + (outputs - inputs) // 2, np.arange(inputs)] = 1.0
    return nn.Conv2d(weight, stride=2)


def _block(weights: _Weights, place: str, inputs: int, outputs: int) -> nn.Module:
    first = nn.Conv2d(
        weights(f"{place}.conv1.weight", outputs, inputs, 3, 3), stride=outputs // inputs, padding=1
    )
    second = nn.Conv2d(weights(f"{place}.conv2.weight", outputs, outputs, 3, 3), padding=1)
    branch = nn.Sequential(
        first, weights.norm(f"{place}.bn1", outputs), nn.ReLU(),
        second, weights.norm(f"{place}.bn2", outputs),
    )  # fmt: skip
    shortcut = None if inputs == outputs else _shortcut(inputs, outputs)
    return nn.Sequential(nn.Residual(branch, shortcut), nn.ReLU())


def resnet20(weights: Mapping[str, np.ndarray]) -> nn.Module:
    """The network on normalised images (3, 32, 32): 10 logits.

    weights : by the names that PyTorch's state dict of the public implementations has (``conv1.weight``,
        ``bn1.running_mean``, ``layer2.0.conv1.weight``, .., ``linear.weight``), with or without ``module.``

    Raises ParameterError naming an array that is missing, left over, of another shape or not finite.
    """
    take = _Weights(weights)
    stem = [
        nn.Conv2d(take("conv1.weight", CHANNELS[0], 3, 3, 3), padding=1),
        take.norm("bn1", CHANNELS[0]),
        nn.ReLU(),
    ]
    blocks, inputs = [], CHANNELS[0]
    for stage, outputs in enumerate(CHANNELS, start=1):
        for number in range(BLOCKS):
            blocks.append(_block(take, f"layer{stage}.{number}", inputs, outputs))
            inputs = outputs
    head = nn.Linear(take("linear.weight", CLASSES, inputs), take("linear.bias", CLASSES))
    if left := take.left():
        raise ParameterError(
            f"{len(left)} arrays that ResNet-20 does not have, {left[0]!r} the first", {"array": left[0]}
        )
    return nn.Sequential(*stem, *blocks, nn.GlobalAvgPool(), head)


def normalised(images: np.ndarray) -> Reals:
    """Images (count, 3, 32, 32) of bytes as the network takes them, in float64."""
    scaled = images / 255.0
    return np.asarray((scaled - MEAN[:, None, None]) / DEVIATION[:, None, None])


def task(
    weights: Path | None, data: Path | None, calibration: Path | None, images: int, *, samples: int = 1000
) -> Task:
    """ResNet-20 on the first images of CIFAR-10's test set.

    Parameters
    ----------
    weights : a file that `nn.weights.load` reads
    data : the test set, as `cifar.read` takes it
    calibration : training images; default where `data` is a folder: its ``data_batch_1.bin``
    images : to be classified under encryption
    samples : of the calibration, at most

    Raises ParameterError naming all files that are missing, and what the readers raise.
    """
    weights, data, calibration = cifar.given("resnet20", "--weights", weights, data, calibration, NEEDED)
    test = cifar.first(cifar.read(data), images, "images")
    seen = cifar.read(calibration, cifar.TRAINING).images[:samples]
    return Task(
        "resnet20", resnet20(nn.weights.load(weights)), weights.name, data.name, normalised(seen),
        normalised(test.images), test.labels, DEGREE,
    )  # fmt: skip
