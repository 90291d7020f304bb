"""Compositions of modules: one after the other, sums, concatenations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crenel.errors import ParameterError
from crenel.nn import ops
from crenel.nn.trace import Module, Tracer


def _within(place: str, name: str | int) -> str:
    return f"{place}.{name}" if place else str(name)


@dataclass(frozen=True, eq=False, init=False)
class Sequential(Module):
    """Modules one after the other; none: the identity. Places are counted from 0."""

    modules: tuple[Module, ...]

    def __init__(self, *modules: Module) -> None:
        object.__setattr__(self, "modules", modules)

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        for number, module in enumerate(self.modules):
            value = tracer.module(module, value, _within(place, number))
        return value


def _branches(branches: tuple[Module, ...], what: str) -> tuple[Module, ...]:
    if len(branches) < 2:
        raise ParameterError(
            f"{what} of {len(branches)} branches, expected two or more", {"branches": len(branches)}
        )
    return branches


@dataclass(frozen=True, eq=False, init=False)
class Add(Module):
    """The sum of what branches make of one tensor: ``Add(a, b)(x) = a(x) + b(x)``."""

    branches: tuple[Module, ...]

    def __init__(self, *branches: Module) -> None:
        """Raises ParameterError for fewer than two."""
        object.__setattr__(self, "branches", _branches(branches, "a sum"))

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        values = [
            tracer.module(branch, value, _within(place, number))
            for number, branch in enumerate(self.branches)
        ]
        return tracer.add(ops.Add(), values, place or "add")


@dataclass(frozen=True, eq=False, init=False)
class Residual(Module):
    """``branch(x) + shortcut(x)``; without a shortcut ``branch(x) + x``."""

    branch: Module
    shortcut: Module

    def __init__(self, branch: Module, shortcut: Module | None = None) -> None:
        """Both make tensors of one shape: a call and `compile` raise ParameterError where they do not, and
        UnsupportedError for what is no module."""
        object.__setattr__(self, "branch", branch)
        object.__setattr__(self, "shortcut", Sequential() if shortcut is None else shortcut)

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        branch = tracer.module(self.branch, value, _within(place, "branch"))
        shortcut = tracer.module(self.shortcut, value, _within(place, "shortcut"))
        return tracer.add(ops.Add(), [branch, shortcut], place or "residual")


@dataclass(frozen=True, eq=False, init=False)
class Concat(Module):
    """The channels (first axis of a sample) of what branches make of one tensor, one after the other."""

    branches: tuple[Module, ...]

    def __init__(self, *branches: Module) -> None:
        """Raises ParameterError for fewer than two."""
        object.__setattr__(self, "branches", _branches(branches, "a concatenation"))

    def _trace(self, tracer: Tracer, value: int | None, place: str) -> int | None:
        found = [
            tracer.module(branch, value, _within(place, number))
            for number, branch in enumerate(self.branches)
        ]
        return concatenated(tracer, found, place or "concat")


def concatenated(tracer: Tracer, values: Sequence[int | None], name: str) -> int | None:
    """The channels of values one after the other: the sum of what lies among zeros."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    counts = [tracer.shape(value)[0] for value in known]
    placed = [
        tracer.add(ops.Place(sum(counts), sum(counts[:k])), [value], name) for k, value in enumerate(known)
    ]
    return tracer.add(ops.Add(), placed, name)
