"""Rows of an encrypted table where a condition holds: which, how many, and the sum of a column over them."""

from __future__ import annotations

import csv
import io
import keyword
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crenel.errors import ParameterError, StateError
from crenel.tfhe import Ciphertext, Integers, IntegerType
from crenel.workloads.files import opened
from crenel.workloads.integers.condition import Comparison, Condition

if TYPE_CHECKING:
    from crenel.tfhe import Evaluator


@dataclass(frozen=True)
class Table:
    """Columns of integers by name, all of one length."""

    columns: dict[str, np.ndarray]

    @property
    def rows(self) -> int:
        """How many."""
        return len(next(iter(self.columns.values())))

    def column(self, name: str) -> np.ndarray:
        """Raises ParameterError for names that are not there."""
        if name not in self.columns:
            raise ParameterError(
                f"the table has no column '{name}', expected one of {', '.join(self.columns)}",
                {"column": name},
            )
        return self.columns[name]


@dataclass(frozen=True)
class Answer:
    """What a query gives, all encrypted."""

    rows: Ciphertext
    """Bits, 1 where the condition holds."""
    count: Integers
    """How many rows."""
    total: Integers | None
    """The sum of a column over them, of as many bits as it may need; None where none was asked for."""


def read_csv(path: Path) -> Table:
    """Columns of a CSV file with a header, each of the smallest type that holds its integers.

    Raises FileError where the file cannot be read, ParameterError for no rows, rows of other lengths
    and fields that are no integers of 64 bits, naming line and column.
    """
    with opened(path) as file:
        try:
            lines = list(csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline="")))
        except (UnicodeDecodeError, csv.Error) as error:
            raise ParameterError(f"{path}: no CSV file in UTF-8: {error}", {"path": str(path)}) from None
    if len(lines) < 2:
        raise ParameterError(f"{path}: no rows under a header", {"path": str(path)})
    names = [name.strip() for name in lines[0]]
    if len(set(names)) != len(names) or not all(map(_is_name, names)):
        raise ParameterError(
            f"{path}: header {', '.join(map(repr, names))}, expected different names of letters, digits, _",
            {"path": str(path)},
        )
    values: list[list[int]] = [[] for _ in names]
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        if len(line) != len(names):
            raise ParameterError(
                f"{path}, line {number}: {len(line)} fields, expected {len(names)}",
                {"path": str(path), "line": number},
            )
        for name, field, column in zip(names, line, values, strict=True):
            column.append(_integer(path, number, name, field))
    if not values[0]:
        raise ParameterError(f"{path}: no rows under a header", {"path": str(path)})
    return Table({name: narrow(column) for name, column in zip(names, values, strict=True)})


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _integer(path: Path, line: int, name: str, field: str) -> int:
    # what is in the file stays out of the message: rows may be anybody's
    try:
        value = int(field)
    except ValueError:
        value = 1 << 64
    if not -(1 << 63) <= value < 1 << 63:
        raise ParameterError(
            f"{path}, line {line}, column {name}: no integer of 64 bits",
            {"path": str(path), "line": line, "column": name},
        )
    return value


def narrow(values: list[int]) -> np.ndarray:
    """An array of NumPy's smallest type of integers that holds all."""
    low, high = min(values), max(values)
    kinds = (
        (np.int8, np.int16, np.int32, np.int64) if low < 0 else (np.uint8, np.uint16, np.uint32, np.uint64)
    )
    kind = next(k for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return np.array(values, dtype=kind)


def constants(condition: Condition, table: Table) -> list[np.ndarray]:
    """The condition's numbers, each of its column's type. Raises ParameterError for one out of its range."""
    found = []
    for name, number in condition.numbers:
        kind = table.column(name).dtype
        if not np.iinfo(kind).min <= number <= np.iinfo(kind).max:
            raise ParameterError(
                f"condition {condition.text!r}: {number} is no {kind} as column {name} has",
                {"condition": condition.text, "column": name, "number": number},
            )
        found.append(np.array([number], dtype=kind))
    return found


def select_rows(
    ev: Evaluator,
    columns: Mapping[str, Integers],
    condition: Condition,
    numbers: list[Integers] | None = None,
    total: str | None = None,
) -> Answer:
    """The server's side.

    columns : integers of shape (rows,); those that are compared with each other of one type
    numbers : the condition's numbers encrypted, of shape (1,) and their columns' types: then the server sees
        the condition's form alone. None: those of the condition
    total : a column to add up where the condition holds

    Raises KeyError for columns that are not there, StateError for columns of different lengths and for types
    that do not go together.
    """
    shapes = {name: columns[name].shape for name in [*sorted(condition.columns), *([total] if total else [])]}
    if len(set(shapes.values())) > 1:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise StateError(f"select_rows: columns of shapes {found}, expected one shape", {"found": found})

    def compare(c: Comparison) -> Ciphertext:
        other: Any = columns[c.other] if isinstance(c.other, str) else c.other
        if numbers is not None and c.number is not None:
            other = numbers[c.number]
        found: Ciphertext = getattr(ev, c.operation)(columns[c.column], other)
        return found

    rows = condition.evaluate(compare, {"and": ev.and_, "or": ev.or_, "not": ev.not_})
    count = ev.sum(rows, dtype="uint16" if rows.size < 1 << 16 else "uint32")
    if total is None:
        return Answer(rows, count, None)
    column = columns[total]
    bits = column.bits + math.ceil(math.log2(rows.size))
    wide = IntegerType(bits + bits % 2, column.type.signed)
    return Answer(rows, count, ev.sum(ev.select(rows, column, 0), dtype=wide))


def select_rows_clear(
    table: Table, condition: Condition, total: str | None = None
) -> tuple[np.ndarray, int, int | None]:
    """The same in the clear: bits, count, sum."""

    def compare(c: Comparison) -> np.ndarray:
        # Python's integers: NumPy would turn pairs of int64 and uint64 into floats
        column = table.column(c.column).astype(object)
        other = table.column(c.other).astype(object) if isinstance(c.other, str) else c.other
        return np.asarray(getattr(np, c.operation)(column, other), dtype=bool)

    rows = condition.evaluate(compare, {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not})
    found = None if total is None else int(table.column(total).astype(object)[rows].sum())
    return rows, int(rows.sum()), found
