"""CIFAR-10's images: its own binary batches, or arrays.

Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. The binary version has files
``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError, SerializationError
from crenel.workloads.files import opened
from crenel.workloads.tables import read_npz

SHAPE = (3, 32, 32)
RECORD = 1 + 3 * 32 * 32  # a label, then the planes of red, green and blue
CLASSES = 10
TEST, TRAINING = "test_batch.bin", "data_batch_1.bin"


@dataclass(frozen=True, eq=False)
class Images:
    """Images (count, 3, 32, 32) of bytes and their classes from 0 to 9."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


def given(
    network: str, option: str, file: Path | None, data: Path | None, calibration: Path | None, needed: str
) -> tuple[Path, Path, Path]:
    """The file that `option` names, the test set and the calibration of a network, where all are there.

    calibration : default where `data` is a folder: its ``data_batch_1.bin``
    needed : what files are asked for, in words

    Raises ParameterError naming all that are missing.
    """
    if calibration is None and data is not None and data.is_dir():
        calibration = data / TRAINING
    if file is not None and data is not None and calibration is not None:
        return file, data, calibration
    named = {option: file, "--data": data, "--calibration": calibration}
    missing = [name for name, path in named.items() if path is None]
    wanted = " and ".join(missing)
    raise ParameterError(f"{network} needs {wanted}. {needed}", {"missing": ", ".join(missing)})


def read(path: Path, inside: str = TEST) -> Images:
    """Images of a file, or of the file `inside` of a folder.

    A file ``.npz`` has the arrays ``images`` (count, 3, 32, 32) and ``labels`` (count,), of bytes; any other
    file is a binary batch, 3,073 bytes an image.

    Raises FileError, and SerializationError for what is no such file, naming what it has instead.
    """
    file = path / inside if path.is_dir() else path
    if file.suffix == ".npz":
        return _arrays(file)
    with opened(file) as stream:
        data = stream.read()
    if not data or len(data) % RECORD:
        raise SerializationError(
            f"{file}: {len(data)} bytes, expected a multiple of {RECORD}, as CIFAR-10's binary version has",
            {"path": str(file), "size": len(data)},
        )
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, RECORD)
    return _checked(file, records[:, 1:].reshape(-1, *SHAPE), records[:, 0])


def _arrays(file: Path) -> Images:
    arrays = read_npz(file)
    missing = [name for name in ("images", "labels") if name not in arrays]
    if missing:
        raise SerializationError(
            f"{file}: no array {missing[0]!r}; it has {', '.join(arrays) or 'none'}", {"path": str(file)}
        )
    return _checked(file, arrays["images"], arrays["labels"])


def _checked(file: Path, images: np.ndarray, labels: np.ndarray) -> Images:
    count = len(images) if images.ndim else 0
    sound = images.dtype == np.uint8 and images.shape[1:] == SHAPE and count > 0
    if not sound or labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise SerializationError(
            f"{file}: images {images.dtype} {images.shape}, labels {labels.dtype} {labels.shape}; expected "
            f"bytes (count, 3, 32, 32) and (count,)",
            {"path": str(file), "images": list(images.shape), "labels": list(labels.shape)},
        )
    wrong = (labels < 0) | (labels >= CLASSES)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise SerializationError(
            f"{file}: the label of image {first} is {int(labels[first])}, expected 0 to {CLASSES - 1}",
            {"path": str(file), "image": first},
        )
    return Images(images, labels.astype(np.int64))


def first(found: Images, count: int, what: str) -> Images:
    """The first ones. Raises ParameterError where there are fewer."""
    if not 1 <= count <= len(found.images):
        raise ParameterError(
            f"{count} {what}, expected 1 to {len(found.images)}: so many are there",
            {"count": count, "there": len(found.images)},
        )
    return Images(found.images[:count], found.labels[:count])
