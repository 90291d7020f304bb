"""What plans of programs have in common: variants, whose parameters they are of, and words in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from crenel._crenel import Params
from crenel.errors import ParameterError, StateError

Variant: TypeAlias = Literal["crenel", "paper"]
Progress: TypeAlias = "bool | Callable[[int, int, str], object] | None"
MIB = 2**20


def check_variant(variant: str) -> None:
    """Raises ParameterError for another name than those of `Variant`."""
    if variant not in ("crenel", "paper"):
        raise ParameterError(f"variant {variant!r}, expected 'crenel' or 'paper'", {"variant": str(variant)})


def same_params(found: Params, expected: Params) -> None:
    """Raises StateError where a context is of other parameters than a plan."""
    if found.id != expected.id:
        raise StateError(
            f"parameters {found.id}, the plan's are {expected.id}",
            {"found": found.id, "expected": expected.id},
        )


def named(params: Params) -> str:
    """Parameters in an error's text: by their name, or by what identifies them."""
    return params.name or params.id


def columns(lines: Iterable[tuple[str, str]], width: int) -> str:
    """Names and what is said of them, a line each."""
    return "\n".join(f"{name:<{width}}{text}" for name, text in lines)
