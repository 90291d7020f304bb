"""Data for the workloads: a table with two classes, or a list of values, of files that the user has.

Nothing is downloaded. Without a file there is scikit-learn's breast-cancer data, or values drawn with a seed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from crenel.errors import ParameterError, SerializationError, UnsupportedError
from crenel.workloads import idx, tables
from crenel.workloads.checked import seed_of

Scale = Literal["standard", "largest", "none"]
TEST_SHARE = 0.25
MOST_VALUES = 2**24  # more than the slots of any parameters
DEVIATIONS = 2.0  # of a standardised feature that are kept; they become 1


@dataclass(frozen=True)
class Scaling:
    """``clip((x - offset) / width, -1, 1)`` a column: found on training rows, applied to all others."""

    offset: np.ndarray
    width: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Rows of features as the training rows were scaled, in [-1, 1]."""
        scaled: np.ndarray = np.clip((features - self.offset) / self.width, -1.0, 1.0)
        return scaled


@dataclass(frozen=True)
class Table:
    """Rows of features with a label of -1 or +1 each, split into those that train and those that test.

    ``X_train`` (rows, features) and ``X_test`` are float64, ``y_train`` and ``y_test`` float64 of -1 and +1;
    ``classes`` says what -1 and +1 were in the file; ``scaling`` is what was applied, None where nothing was.
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    feature_names: tuple[str, ...]
    classes: tuple[str, str]
    scaling: Scaling | None = None

    @property
    def features(self) -> int:
        """Columns, without a constant one."""
        return int(self.X_train.shape[1])


def load_table(
    path: str | Path | None = None,
    label: str | int | None = None,
    *,
    labels: str | Path | None = None,
    digits: tuple[int, int] = (3, 8),
    block: int = 2,
    scale: Scale | None = None,
    seed: int = 1,
) -> Table:
    """A table with two classes.

    Parameters
    ----------
    path : a folder with MNIST's files, or its file of images (IDX, also .gz); a .csv, .tsv or .txt file; an
        .npz file with X_train, y_train (and X_test, y_test), or X and y; None: scikit-learn's breast cancer
    label : of CSV files, the column of labels by name or number; default the last
    labels : of an IDX file of images, the file of labels; default the one that MNIST's naming puts beside it
    digits : of IDX files, the labels that become -1 and +1; other rows are left out
    block : of IDX files, squares of so many pixels a side are summed up into one feature
    scale : "standard": every column less its mean, over twice its deviation, clipped to [-1, 1]; "largest":
        over the largest magnitude of the table; "none". Found on the training rows. Default: "largest" for
        integers of .npz files and for IDX files (there the largest sum that a square can have), otherwise
        "standard"
    seed : of the split, where the file has no test rows: a quarter of the rows tests

    Raises FileError (no such file, ...), SerializationError (malformed: path, row, column named),
    ParameterError (not two classes, an option that does not fit), UnsupportedError (no scikit-learn).
    """
    if scale not in (None, "standard", "largest", "none"):
        raise ParameterError(
            f"scale must be 'standard', 'largest' or 'none', got {scale!r}", {"scale": str(scale)}
        )
    if path is None:
        return _split("breast cancer", *_breast_cancer(), scale, seed)
    path = Path(path)
    if idx.is_idx(path):
        return _of_idx(path, None if labels is None else Path(labels), digits, block, scale, seed)
    if path.suffix == ".npz":
        return _of_npz(path, scale, seed)
    if os.path.isdir(path):
        raise ParameterError(
            f"{path}: a folder without MNIST's files (train-{idx.IMAGES}, with .gz or without)",
            {"path": str(path)},
        )
    read = tables.read_csv(path, label)
    signs, classes = _two_classes(path, read.labels)
    return _split(path.name, read.features, signs, read.names, classes, scale, seed)


def load_values(
    path: str | Path | None = None,
    count: int | None = None,
    seed: int = 1,
    *,
    column: str | int | None = None,
) -> np.ndarray:
    """Values to sort, float64: the first `count` of a file, or `count` drawn uniformly from [0, 1).

    Parameters
    ----------
    path : an .npy or .npz file with one axis, or a CSV file
    count : at least 1; None: all of the file, 64 without a file
    seed : of the draw
    column : of a CSV file, by name or number; needed where it has several

    Raises FileError, SerializationError (malformed: row named), ParameterError (fewer values than `count`).
    """
    if count is not None and not 1 <= count <= MOST_VALUES:
        raise ParameterError(f"count must be 1 to {MOST_VALUES}, got {count}", {"count": count})
    if path is None:
        return np.random.default_rng(seed_of(seed)).random(64 if count is None else count)
    values = tables.read_values(Path(path), column)
    if count is not None and len(values) < count:
        raise ParameterError(
            f"{path} has {len(values)} values, {count} were asked for",
            {"path": str(path), "values": len(values), "count": count},
        )
    return values if count is None else values[:count]


def _breast_cancer() -> tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[str, str]]:
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise UnsupportedError(
            "without a file of data this needs scikit-learn: pip install 'crenel[demo]'"
        ) from None
    data = cast("Mapping[str, ArrayLike]", load_breast_cancer())
    malignant = np.where(np.asarray(data["target"]) == 0, 1.0, -1.0)
    names = tuple(str(name) for name in np.asarray(data["feature_names"]))
    return np.asarray(data["data"], np.float64), malignant, names, ("benign", "malignant")


def _two_classes(path: Path, found: list[str]) -> tuple[np.ndarray, tuple[str, str]]:
    """Labels to -1 and +1, the smaller one (as numbers, where all are numbers) to -1."""
    try:
        classes = sorted(set(found), key=float)
        equal = len({float(c) for c in classes}) != len(classes)  # "1" and "1.0" are one class
        if equal:
            found = [repr(float(c)) for c in found]
            classes = sorted(set(found), key=float)
    except ValueError:
        classes = sorted(set(found))
    if len(classes) != 2:
        shown = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
        raise ParameterError(
            f"{path}: {len(classes)} classes ({shown}), expected two",
            {"path": str(path), "classes": len(classes)},
        )
    signs = np.where(np.array(found) == classes[1], 1.0, -1.0)
    return signs, (classes[0], classes[1])


def _of_npz(path: Path, scale: Scale | None, seed: int) -> Table:
    arrays = tables.read_npz(path)
    split = "X_train" in arrays
    pairs = [("X_train", "y_train"), ("X_test", "y_test")] if split else [("X", "y")]
    if split and "X_test" not in arrays and "y_test" not in arrays:
        pairs = pairs[:1]
    missing = [name for pair in pairs for name in pair if name not in arrays]
    if missing:
        there = ", ".join(arrays) or "no arrays"
        raise SerializationError(
            f"{path}: no array {missing[0]}; expected X_train and y_train (X_test and y_test), or X "
            f"and y; it has {there}",
            {"path": str(path), "array": missing[0]},
        )
    parts: list[tuple[np.ndarray, list[str]]] = []
    for x_name, y_name in pairs:
        x = tables.numbers(path, x_name, arrays[x_name], 2)
        y = arrays[y_name]
        if y.dtype.kind not in "US":
            tables.numbers(path, y_name, y, 1)
        if y.shape != (len(x),):
            raise SerializationError(
                f"{path}: {x_name} has {len(x)} rows, {y_name} the shape {y.shape}",
                {"path": str(path), "rows": len(x), "shape": list(y.shape)},
            )
        if parts and x.shape[1] != parts[0][0].shape[1]:
            raise SerializationError(
                f"{path}: {x_name} has {x.shape[1]} columns, {pairs[0][0]} {parts[0][0].shape[1]}",
                {"path": str(path), "columns": x.shape[1], "expected": parts[0][0].shape[1]},
            )
        parts.append((x, [str(v) for v in y.tolist()]))
    signs, classes = _two_classes(path, [v for _, y in parts for v in y])
    integers = all(arrays[x_name].dtype.kind in "biu" for x_name, _ in pairs)
    chosen: Scale = scale or ("largest" if integers else "standard")
    names = tuple(str(i) for i in range(parts[0][0].shape[1]))
    if len(parts) == 1:
        return _split(path.name, parts[0][0], signs, names, classes, chosen, seed)
    rows = len(parts[0][0])
    return _scaled(path.name, parts[0][0], signs[:rows], parts[1][0], signs[rows:], names, classes, chosen)


def _of_idx(
    path: Path, labels: Path | None, digits: tuple[int, int], block: int, scale: Scale | None, seed: int
) -> Table:
    if digits[0] == digits[1] or not all(0 <= d <= 255 for d in digits):
        raise ParameterError(
            f"digits must be two different labels from 0 to 255, got {digits[0]} and {digits[1]}",
            {"digits": list(digits)},
        )
    sets = idx.folder(path) if path.is_dir() else [idx.images_and_labels(path, labels)]
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for images, tags in sets:
        for digit in digits:
            if not (tags == digit).any():
                raise ParameterError(
                    f"{path}: no image is labelled {digit}", {"path": str(path), "digit": digit}
                )
        kept = np.isin(tags, digits)
        signs = np.where(tags[kept] == digits[1], 1.0, -1.0)
        parts.append((idx.block_sums(images[kept], block).astype(np.float64), signs))
    height, width = (n // block for n in sets[0][0].shape[1:])
    names = tuple(f"{row},{column}" for row in range(height) for column in range(width))
    classes = (str(digits[0]), str(digits[1]))
    given = 255.0 * block * block if scale is None else None
    chosen: Scale = scale or "largest"
    name = f"{path.name}, {digits[0]} against {digits[1]}"
    if len(parts) == 1:
        return _split(name, *parts[0], names, classes, chosen, seed, given)
    return _scaled(name, *parts[0], *parts[1], names, classes, chosen, given)


def _split(
    name: str,
    features: np.ndarray,
    signs: np.ndarray,
    names: tuple[str, ...],
    classes: tuple[str, str],
    scale: Scale | None,
    seed: int,
    largest: float | None = None,
) -> Table:
    """A quarter of the rows, drawn with the seed, tests."""
    order = np.random.default_rng(seed_of(seed)).permutation(len(features))
    tests = round(TEST_SHARE * len(order))
    if not 0 < tests < len(order):
        raise ParameterError(f"{name}: {len(order)} rows cannot be split", {"rows": len(order)})
    test, train = order[:tests], order[tests:]
    return _scaled(
        name, features[train], signs[train], features[test], signs[test], names, classes, scale, largest
    )


def _scaled(
    name: str,
    x_train: np.ndarray,
    y_train: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    names: tuple[str, ...],
    classes: tuple[str, str],
    scale: Scale | None,
    largest: float | None = None,
) -> Table:
    """The table, scaled by its training rows; both classes must train."""
    if len(set(y_train.tolist())) != 2:
        raise ParameterError(f"{name}: the training rows have one class only", {"rows": len(y_train)})
    if scale == "none":
        return Table(name, x_train, y_train, x_test, y_test, names, classes)
    count = x_train.shape[1]
    if scale == "largest":
        most = float(np.abs(x_train).max()) if largest is None else largest
        scaling = Scaling(np.zeros(count), np.full(count, most or 1.0))
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            offset, deviation = x_train.mean(axis=0), DEVIATIONS * x_train.std(axis=0)
        # A column that never varies says nothing; it becomes 0 wherever it is as it was. Its mean is rounded,
        # and so its deviation is not 0: what is left would be stretched to the whole range.
        same = (x_train == x_train[0]).all(axis=0)
        offset = np.where(same, x_train[0], offset)
        width = np.where(same | (deviation == 0), 1.0, deviation)
        large = np.flatnonzero(~(np.isfinite(offset) & np.isfinite(width)))
        if large.size:
            raise ParameterError(
                f"{name}: column {names[large[0]]} holds numbers too large to be standardised, {large.size} "
                "columns in all",
                {"column": names[large[0]], "count": int(large.size)},
            )
        scaling = Scaling(offset, width)
    return Table(name, scaling(x_train), y_train, scaling(x_test), y_test, names, classes, scaling)
