"""Tables: drawn by rich when a person watches, plain columns otherwise."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from crenel.errors import ParameterError, UnsupportedError

FIGURES = (".png", ".pdf", ".svg")


def watched() -> bool:
    """Does a person look at standard output?"""
    return sys.stdout.isatty()


def expect_new(file: Path | None, option: str = "--json") -> None:
    """Refuses what the option names before anything is measured: ParameterError."""
    if file is not None and (file.exists() or not file.parent.is_dir()):
        found = f"{file} exists" if file.exists() else str(file)
        raise ParameterError(
            f"{option}: {found}, expected a new file in a folder that is there", {"path": str(file)}
        )


def expect_figure(file: Path | None, option: str = "--plot") -> None:
    """Refuses a figure that cannot be drawn there before anything is measured: ParameterError for another
    kind of file and for what `expect_new` refuses, UnsupportedError without matplotlib."""
    if file is None:
        return
    if file.suffix.lower() not in FIGURES:
        raise ParameterError(
            f"{option}: {file} ends in {file.suffix or 'nothing'!r}, expected one of {', '.join(FIGURES)}",
            {"path": str(file)},
        )
    expect_new(file, option)
    if importlib.util.find_spec("matplotlib") is None:
        raise UnsupportedError(f"{option} needs matplotlib: pip install 'crenel[plot]'")


def expect_with(other: str, is_there: bool, options: Mapping[str, object]) -> None:
    """Raises ParameterError for the first of the options that was given (is not None) without the other one,
    which alone gives it a meaning."""
    for option, value in options.items():
        if value is not None and not is_there:
            raise ParameterError(f"{option} {value} without {other}, expected both", {option: str(value)})


def expect_at_most(number: int, most: int, option: str) -> None:
    """Raises ParameterError, which names the option and its limit."""
    if number > most:
        raise ParameterError(f"{option} {number}, expected at most {most}", {option: number, "most": most})


def numbers(text: str, option: str, *, most: int | None = None) -> tuple[int, ...]:
    """What an option has, by commas: whole numbers from 1 on, up to `most`. Raises ParameterError for
    anything else."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 20 and int(word) > 0 for word in words):
        raise ParameterError(f"{option} {text}, expected numbers from 1 on, by commas", {option: text})
    found = tuple(int(word) for word in words)
    if most is not None:
        expect_at_most(max(found), most, option)
    return found


def say(text: str) -> None:
    """What is under way, in one line of the terminal that the next one overwrites; empty: nothing more."""
    if sys.stderr.isatty():
        print(f"\r{text:<78}", end="" if text else "\r", file=sys.stderr, flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print rows under a header, numbers to the right."""
    right = [all(_numeric(row[i]) for row in rows) for i in range(len(header))]
    if watched():
        from rich.console import Console
        from rich.table import Table

        drawn = Table(title=title or None, title_justify="left", header_style="bold")
        for name, is_right in zip(header, right, strict=True):
            drawn.add_column(name, justify="right" if is_right else "left")
        for row in rows:
            drawn.add_row(*row)
        Console().print(drawn)
        return
    if title:
        print(title)
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        cells = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        print("  ".join(cells).rstrip())


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    raise AssertionError


def _numeric(cell: str) -> bool:
    return cell == "-" or cell.replace(".", "", 1).replace("-", "", 1).isdigit()
