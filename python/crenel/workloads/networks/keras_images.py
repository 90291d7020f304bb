"""A sequential network of a Keras file on CIFAR-10's images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crenel import nn
from crenel.errors import ParameterError
from crenel.workloads.networks import cifar
from crenel.workloads.networks.task import Task

NEEDED = (
    "Neither networks nor images come with Crenel. --file: what Keras' model.save wrote as .h5; --data: "
    "CIFAR-10's test_batch.bin, or the folder of its binary version, or an .npz file of images "
    "(count, 3, 32, 32) of bytes and labels (count,); --calibration: data_batch_1.bin, default where --data "
    "is a folder"
)
SAMPLES = 200  # of the calibration: a plan of many channels is simulated on them layer by layer


def task(
    file: Path | None,
    data: Path | None,
    calibration: Path | None,
    images: int,
    *,
    replace: Sequence[str] = (),
    divide: float = 1.0,
    samples: int = SAMPLES,
) -> Task:
    """The network of a file on the first images of CIFAR-10's test set.

    Parameters
    ----------
    file : as `nn.from_keras` takes it
    data : the test set, as `cifar.read` takes it
    calibration : training images; default where `data` is a folder: its ``data_batch_1.bin``
    images : to be classified under encryption
    replace : what `nn.from_keras` may put in the place of what, as "MaxPool=relu"
    divide : by which bytes of images are divided, as they were in the training
    samples : of the calibration, at most

    Raises ParameterError naming all files that are missing, for replacements that are none, a divisor that is
    not positive and for a network of other inputs or outputs than 3 x 32 x 32 and 10, and what the readers
    raise.
    """
    file, data, calibration = cifar.given("keras", "--file", file, data, calibration, NEEDED)
    if not 0.0 < divide < float("inf"):
        raise ParameterError(f"--divide {divide:g}, expected a positive number", {"divide": divide})
    model = nn.from_keras(file, replace=dict(map(_replacement, replace)))
    test = cifar.first(cifar.read(data), images, "images")
    seen = cifar.read(calibration, cifar.TRAINING).images[:samples] / divide
    found = model(seen[:1]).shape[1:]
    if found != (cifar.CLASSES,):
        raise ParameterError(
            f"{file} makes {list(found)} of an image, expected {cifar.CLASSES} classes",
            {"found": list(found)},
        )
    return Task("keras", model, file.name, data.name, seen, test.images / divide, test.labels)


def _replacement(text: str) -> tuple[str, str]:
    operator, sign, by = text.partition("=")
    if not (operator and sign and by):
        raise ParameterError(f"--replace {text!r:.60}, expected as in MaxPool=relu", {"replace": text[:60]})
    return operator, by
