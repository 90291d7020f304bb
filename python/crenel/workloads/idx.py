"""Files in the IDX format, in which MNIST is published: images and labels as bytes, also gzip's."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from crenel.errors import ParameterError, SerializationError
from crenel.workloads.files import opened

UNSIGNED_BYTE = 0x08
GZIP = b"\x1f\x8b"
DEFLATE_AT_MOST = 1032  # bytes that a compressed byte can become
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"


def is_idx(path: Path) -> bool:
    """Does the name say so? A folder does where it holds MNIST's files."""
    if os.path.isdir(path):  # also of names that no file can have, where Path.is_dir raises
        return _in_folder(path, "train", IMAGES) is not None
    return path.name.removesuffix(".gz").endswith("ubyte")


def read(path: Path, axes: int) -> np.ndarray:
    """The array of one file, uint8 with `axes` axes.

    Raises SerializationError for another format, another element type, another number of axes, fewer bytes
    than the header states, or more; FileError where the file cannot be read.
    """
    with opened(path) as raw:
        packed = raw.read(2) == GZIP
        raw.seek(0, 2)
        bytes_there = raw.tell() * (DEFLATE_AT_MOST if packed else 1)
        raw.seek(0)
        try:
            return _parse(gzip.GzipFile(fileobj=raw) if packed else raw, path, axes, bytes_there)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SerializationError(f"{path}: damaged gzip data: {error}", {"path": str(path)}) from None


def _parse(stream: IO[bytes] | gzip.GzipFile, path: Path, axes: int, bytes_there: int) -> np.ndarray:
    head = stream.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] != UNSIGNED_BYTE or head[3] != axes:
        raise SerializationError(
            f"{path}: the first four bytes are {head.hex() or 'missing'}, expected 000008{axes:02x}: an IDX "
            f"file of bytes with {axes} {'axis' if axes == 1 else 'axes'}",
            {"path": str(path), "magic": head.hex(), "expected": f"000008{axes:02x}"},
        )
    sizes = stream.read(4 * axes)
    if len(sizes) < 4 * axes:
        raise SerializationError(
            f"{path}: ends within its header", {"path": str(path), "size": 4 + len(sizes)}
        )
    shape = struct.unpack(f">{axes}I", sizes)
    expected = math.prod(shape)
    # Before anything is taken: no file of this size holds what a false header states.
    body = stream.read(expected + 1) if expected <= bytes_there else b""
    if len(body) != expected:
        found = f"more than {expected}" if len(body) > expected else f"{len(body)}"
        if expected > bytes_there:
            found = f"at most {bytes_there}"
        stated = " x ".join(map(str, shape))
        raise SerializationError(
            f"{path}: the header states {stated} bytes, {found} follow it",
            {"path": str(path), "expected": expected, "size": len(body)},
        )
    return np.frombuffer(body, np.uint8).reshape(shape)


def images_and_labels(images: Path, labels: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Both files of one set; without `labels`, the file that MNIST's naming puts beside the images.

    Raises SerializationError where they differ in length, and what `read` raises.
    """
    if labels is None:
        name = images.name.replace("images", "labels").replace("idx3", "idx1")
        if name == images.name:
            raise ParameterError(
                f"{images}: the file of labels is not told by this name; give both files, images first",
                {"path": str(images)},
            )
        labels = images.with_name(name)
    x, y = read(images, 3), read(labels, 1)
    if len(x) != len(y):
        raise SerializationError(
            f"{images} has {len(x)} images, {labels} {len(y)} labels",
            {"path": str(images), "images": len(x), "labels": len(y)},
        )
    return x, y


def folder(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """MNIST's training set in a folder, and its test set where it is there too."""
    found = []
    for stem in ("train", "t10k"):
        images = _in_folder(path, stem, IMAGES)
        labels = _in_folder(path, stem, LABELS)
        if images is not None or labels is not None:
            # A file without its partner is asked for by name, and named as missing.
            found.append(
                images_and_labels(images or path / f"{stem}-{IMAGES}", labels or path / f"{stem}-{LABELS}")
            )
    return found


def _in_folder(path: Path, stem: str, kind: str) -> Path | None:
    for ending in ("", ".gz"):
        for name in (f"{stem}-{kind}{ending}", f"{stem}-{kind.replace('-idx', '.idx')}{ending}"):
            if (path / name).is_file():
                return path / name
    return None


def block_sums(images: np.ndarray, block: int) -> np.ndarray:
    """Images to rows of features: the sum of every block x block square, row by row; uint32.

    Raises ParameterError where the squares do not tile the images.
    """
    count, height, width = images.shape
    if block < 1 or height % block or width % block:
        raise ParameterError(
            f"squares of {block} x {block} do not tile images of {height} x {width}",
            {"block": block, "shape": [height, width]},
        )
    tiles = images.reshape(count, height // block, block, width // block, block)
    summed: np.ndarray = tiles.sum(axis=(2, 4), dtype=np.uint32).reshape(count, -1)
    return summed
