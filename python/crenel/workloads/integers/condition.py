"""Conditions on columns of numbers, as ``40 <= age < 65 and (city == 3 or not income > 900)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crenel.errors import ParameterError

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


@dataclass(frozen=True)
class Comparison:
    """A column against a number or another column."""

    operation: str
    """Of the evaluator: equal, less, ..."""
    column: str
    other: str | int
    number: int | None
    """Which of the condition's numbers `other` is, counted from 0; None of a column."""


@dataclass(frozen=True)
class Condition:
    """What `parse` made of a text."""

    text: str
    tree: Any
    """Comparison, or ("and" or "or" or "not", trees)."""
    numbers: tuple[tuple[str, int], ...]
    """(column, number) of every comparison with a number, in order."""

    @property
    def columns(self) -> set[str]:
        """Names of all columns."""
        return _columns(self.tree)

    def evaluate(
        self, compare: Callable[[Comparison], Any], combine: Mapping[str, Callable[..., Any]]
    ) -> Any:
        """The condition by what compares and by what combines bits: "and" and "or" of two, "not" of one."""

        def value(tree: Any) -> Any:
            if isinstance(tree, Comparison):
                return compare(tree)
            name, parts = tree
            first, *rest = (value(part) for part in parts)
            if name == "not":
                return combine["not"](first)
            for part in rest:
                first = combine[name](first, part)
            return first

        return value(self.tree)


MOST = 4096  # characters of a condition


def parse(text: str) -> Condition:
    """A condition in Python's syntax: names of columns, integers, comparisons, ``and``, ``or``, ``not``.

    Raises ParameterError for anything else.
    """
    if "#" in text or len(text) > MOST:  # of a comment Python would drop what follows
        raise _refused(text[:80], f"it has a comment or more than {MOST} characters")
    numbers: list[tuple[str, int]] = []
    try:
        found = _tree(text, ast.parse(text, mode="eval").body, numbers)
    except (SyntaxError, ValueError):
        raise _refused(text, "it is no expression") from None
    except (RecursionError, MemoryError):
        raise _refused(text[:80], "it is too deep") from None
    return Condition(text, found, tuple(numbers))


def _refused(text: str, why: str) -> ParameterError:
    return ParameterError(
        f"condition {text!r}: {why}; expected comparisons of columns with integers or columns, and, or, not",
        {"condition": text},
    )


def _tree(text: str, node: ast.expr, numbers: list[tuple[str, int]]) -> Any:
    if isinstance(node, ast.BoolOp):
        joined = "and" if isinstance(node.op, ast.And) else "or"
        return joined, tuple(_tree(text, part, numbers) for part in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return "not", (_tree(text, node.operand, numbers),)
    if not isinstance(node, ast.Compare):
        raise _refused(text, f"{ast.unparse(node)!r} is no comparison")
    sides = [_side(text, side) for side in (node.left, *node.comparators)]
    parts = []
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        name = _COMPARISONS.get(type(operator))
        if name is None or (isinstance(left, int) and isinstance(right, int)):
            raise _refused(text, f"{ast.unparse(node)!r} compares no column")
        if isinstance(left, int):
            left, right = right, left
            name = _MIRRORED.get(name, name)
        number = None
        if isinstance(right, int):
            number = len(numbers)
            numbers.append((str(left), right))
        parts.append(Comparison(name, str(left), right, number))
    return parts[0] if len(parts) == 1 else ("and", tuple(parts))


def _side(text: str, node: ast.expr) -> str | int:
    if isinstance(node, ast.Name):
        return node.id
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    value = node.operand if negative else node  # type: ignore[attr-defined]
    if isinstance(value, ast.Constant) and type(value.value) is int:
        return -value.value if negative else value.value
    raise _refused(text, f"{ast.unparse(node)!r} is neither a column's name nor an integer")


def _columns(tree: Any) -> set[str]:
    if isinstance(tree, Comparison):
        return {tree.column} | ({tree.other} if isinstance(tree.other, str) else set())
    return set().union(*(_columns(part) for part in tree[1]))
