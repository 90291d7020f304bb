"""Tables and lists of numbers in CSV, npz and npy files; what is malformed is named by row and column."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crenel.errors import CrenelError, ParameterError, SerializationError
from crenel.workloads.checked import number_in
from crenel.workloads.files import opened

ARRAYS = (b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY")  # first bytes of .npz, one without arrays, .npy


@dataclass(frozen=True)
class Columns:
    """A table as it was read: features, one label a row as text, and the names of the features."""

    features: np.ndarray
    labels: list[str]
    names: tuple[str, ...]


def _number(cell: str) -> float | None:
    if "_" in cell:  # Python's own way of writing numbers, and no one's data
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """(number of the line where it ends, cells) of all rows that are not empty, equally long."""
    with opened(path) as file:
        data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SerializationError(
            f"{path}: byte {error.start} is no UTF-8", {"path": str(path), "byte": error.start}
        ) from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if rows and len(cells) != len(rows[0][1]):
                raise SerializationError(
                    f"{path}, row {reader.line_num}: {len(cells)} columns, the first row has "
                    f"{len(rows[0][1])}",
                    {"path": str(path), "row": reader.line_num, "columns": len(cells)},
                )
            rows.append((reader.line_num, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise SerializationError(
            f"{path}, row {reader.line_num}: {error}", {"path": str(path), "row": reader.line_num}
        ) from None
    if not rows:
        raise SerializationError(f"{path}: no rows", {"path": str(path)})
    return rows


def _finite(path: Path, row: int, name: str, cell: str) -> float:
    value = _number(cell)
    if value is None or not math.isfinite(value):
        what = "is no number" if value is None else "is not finite"
        raise SerializationError(
            f"{path}, row {row}, column {name}: {cell!r} {what}",
            {"path": str(path), "row": row, "column": name, "value": cell},
        )
    return value


def _place(path: Path, label: str | int | None, names: list[str], has_header: bool) -> int:
    """The index of the column of labels."""
    width = len(names)
    if isinstance(label, str):
        if has_header and label in names:
            if names.count(label) > 1:
                # The other one would be trained on: what is to be found, given as a feature.
                raise ParameterError(
                    f"{path}: {names.count(label)} columns are named '{label}'; say which by its number",
                    {"path": str(path), "label": label, "columns": names.count(label)},
                )
            return names.index(label)
        number = number_in(label)
        if number is None:
            known = f"the columns are {', '.join(names)}" if has_header else "the file has no header"
            raise ParameterError(
                f"{path}: no column is named '{label}'; {known}", {"path": str(path), "label": label}
            )
        label = number
    index = -1 if label is None else label
    if not -width <= index < width:
        raise ParameterError(
            f"{path}: label column {index}, expected {-width} to {width - 1}",
            {"path": str(path), "label": index, "columns": width},
        )
    return index % width


def read_csv(path: Path, label: str | int | None) -> Columns:
    """Comma, semicolon or tab; a first row that holds no number is a header. UTF-8.

    Parameters
    ----------
    label : the column of labels by name or by number from 0 (negative: from the end); None: the last
    """
    rows = _rows(path)
    header = all(_number(cell) is None for cell in rows[0][1])
    names = rows[0][1] if header else [str(i) for i in range(len(rows[0][1]))]
    at = _place(path, label, names, header)
    body = rows[1:] if header else rows
    if not body or len(names) < 2:
        raise SerializationError(
            f"{path}: {len(body)} rows of {len(names)} columns, expected features and a label",
            {"path": str(path), "rows": len(body), "columns": len(names)},
        )
    chosen = [i for i in range(len(names)) if i != at]
    features = [[_finite(path, row, names[i], cells[i]) for i in chosen] for row, cells in body]
    for row, cells in body:
        if cells[at].lower() in ("", "nan", "na"):
            raise SerializationError(
                f"{path}, row {row}, column {names[at]}: no label",
                {"path": str(path), "row": row, "column": names[at]},
            )
    return Columns(np.array(features), [cells[at] for _, cells in body], tuple(names[i] for i in chosen))


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an npz file, or that of an npy file as ``{"": array}``; no pickled objects."""
    try:
        with opened(path) as file:
            content = file.read()
        if not content.startswith(ARRAYS):  # NumPy would speak of pickled objects
            raise SerializationError(
                f"{path}: no arrays of numbers: expected a file .npz or .npy", {"path": str(path)}
            )
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        arrays = {name: loaded[name] for name in loaded.files}
    except CrenelError:
        raise
    # NumPy, zipfile and each of its decompressors have errors of their own for bytes that are something else.
    except Exception as error:
        found = "Python objects" if "allow_pickle" in str(error) else error  # no advice to load them
        raise SerializationError(f"{path}: no arrays of numbers: {found}", {"path": str(path)}) from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # the bytes of a member that is no npy file
            raise SerializationError(
                f"{path}: {name} is no array of numbers", {"path": str(path), "array": name}
            )
    return arrays


def numbers(path: Path, name: str, array: np.ndarray, axes: int) -> np.ndarray:
    """As float64; SerializationError names array and place of what is not a finite real number."""
    where = f"{path}, array {name}" if name else f"{path}"
    if array.ndim != axes or array.dtype.kind not in "biuf" or not array.size:
        raise SerializationError(
            f"{where}: {array.dtype} of shape {array.shape}, expected real numbers with {axes} "
            f"{'axis' if axes == 1 else 'axes'}",
            {"path": str(path), "array": name, "shape": list(array.shape), "dtype": str(array.dtype)},
        )
    values = array.astype(np.float64)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        at = [int(i) for i in bad[0]]
        place = f"row {at[0]}" + (f", column {at[1]}" if axes == 2 else "")
        fields: dict[str, str | int] = {"path": str(path), "array": name, "row": at[0]}
        if axes == 2:
            fields["column"] = at[1]
        raise SerializationError(f"{where}, {place}: {values[tuple(at)]} is not finite", fields)
    return values


def read_values(path: Path, column: str | int | None = None) -> np.ndarray:
    """Numbers of an npy file, of the array "values" or the only one of an npz file, of a CSV file's column.

    Parameters
    ----------
    column : of a CSV file, by name or number; may be left out where there is one
    """
    if path.suffix in (".npy", ".npz"):
        arrays = read_npz(path)
        name = next(iter(arrays)) if len(arrays) == 1 else "values"
        if name not in arrays:
            raise ParameterError(
                f"{path}: arrays {', '.join(arrays)}; expected one, or one named values", {"path": str(path)}
            )
        return numbers(path, name, arrays[name], 1)
    rows = _rows(path)
    header = all(_number(cell) is None for cell in rows[0][1])
    names = rows[0][1] if header else [str(i) for i in range(len(rows[0][1]))]
    if column is None and len(names) > 1:
        raise ParameterError(
            f"{path}: {len(names)} columns, {', '.join(names)}; say which one holds the values "
            "(column=, --column)",
            {"path": str(path), "columns": len(names)},
        )
    at = _place(path, column, names, header)
    body = rows[1:] if header else rows
    if not body:
        raise SerializationError(f"{path}: no rows", {"path": str(path), "rows": 0})
    return np.array([_finite(path, row, names[at], cells[at]) for row, cells in body])
