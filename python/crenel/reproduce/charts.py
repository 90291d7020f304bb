"""Pictures as data: what is plotted, in the forms that the papers use. ``draw`` makes SVG of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Bars:
    """Groups of bars, one of each series in a group. None: no bar."""

    title: str
    unit: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    ours: Sequence[str] = ()
    """Series or groups that are this library's: drawn in its colours."""
    log: bool = False


@dataclass(frozen=True)
class Stacks:
    """Lying bars made of parts, as shares of a whole or as they are."""

    title: str
    unit: str
    bars: Sequence[str]
    parts: Mapping[str, Sequence[float]]
    shares: bool = False


@dataclass(frozen=True)
class Lines:
    """Curves of points (x, y)."""

    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    logx: int = 0
    """Base of a logarithmic axis; 0: a linear one."""
    logy: bool = False
    zero: bool = True
    """A linear y axis begins at zero."""


@dataclass(frozen=True)
class Roofline:
    """Points of (operations a byte, operations a second) under roofs of memories and a peak."""

    title: str
    roofs: Mapping[str, float]
    """Bytes a second."""
    peaks: Mapping[str, float]
    """Operations a second."""
    points: Mapping[str, tuple[float, float]]


Chart = Bars | Stacks | Lines | Roofline


def _rounded(value: object) -> object:
    """Numbers to six digits: sums may differ in the last bit from machine to machine."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


def digest(chart: Chart) -> str:
    """Of all that is plotted: the same data, the same digest, whatever draws it."""
    text = json.dumps([type(chart).__name__, _rounded(asdict(chart))], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
