"""Runs the commands of items where they can run, each a process of its own, and says why others do not."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crenel.errors import ParameterError
from crenel.reproduce.commands import COMMANDS, TREE, Command
from crenel.reproduce.registry import Item

DRY = "cuda:dry"


@dataclass(frozen=True)
class Plan:
    """One command, ready to run; or the reason why it is not."""

    name: str
    words: tuple[str, ...]
    reason: str = ""
    """Why it does not run here; empty: it does."""

    @property
    def text(self) -> str:
        """For people."""
        return shlex.join(self.words)


@dataclass(frozen=True)
class Asked:
    """Where and on what to run."""

    device: str
    out: Path
    """Of the records; files that are there are kept, and their commands not run."""
    data: Path | None = None
    """HELR's table, as of ``crenel workload helr``; None: data that are there."""
    toy: bool = False
    """On toy rings and small batches."""
    root: Path | None = None
    """A clone of the repository; None: there is none."""

    @property
    def label(self) -> str:
        """Of the device, in the names of files."""
        return self.device.replace(":", "-")


def kind_of(device: str) -> str:
    """cuda:0 is a cuda device, cuda:dry one of its own."""
    kind = device if device == DRY else device.partition(":")[0]
    if kind not in ("cuda", DRY, "cpu", "ref"):
        raise ParameterError(
            f"--device {device}, expected cuda, cuda:<index>, {DRY}, cpu or ref", {"device": device}
        )
    return kind


def _reason(command: Command, asked: Asked) -> str:
    kind = kind_of(asked.device)
    stated = DRY in command.devices  # by any machine
    if not command.devices:
        return "is of no device: type it in a clone of the repository"
    if command.needs not in ("", TREE):
        return f"needs {command.needs}"
    if not stated and kind not in command.devices:
        return f"does not run on {asked.device}"
    if command.words[0] == "./run" and asked.root is None:
        return f"needs {TREE}"
    if asked.toy and not command.toy and not stated:
        return "has no toy variant"
    return ""


def plans(items: Iterable[Item], asked: Asked) -> list[Plan]:
    """Commands of items in their order, each once."""
    out = []
    for name in dict.fromkeys(name for item in items for name in item.commands):
        command = COMMANDS[name]
        data = None if asked.data is None else str(asked.data)
        words = command.filled(asked.device, str(asked.out), asked.label, data, asked.toy)
        reason = _reason(command, asked)
        target = next((Path(b) for a, b in zip(words, words[1:], strict=False) if a == "--json"), None)
        if not reason and target is not None and target.exists():
            reason = f"is kept: {target} is there"
        out.append(Plan(name, tuple(words), reason))
    return out


def _executed(words: Sequence[str], root: Path | None) -> int:
    here = [sys.executable, "-m", *words] if words[0] == "crenel" else list(words)
    return subprocess.run(here, cwd=root if words[0] == "./run" else None, check=False).returncode


def run(
    planned: Sequence[Plan], asked: Asked, say: Callable[[str], None], execute: Callable[..., int] = _executed
) -> list[Plan]:
    """Runs all that can, and goes on where one fails. Returns those that failed."""
    asked.out.mkdir(parents=True, exist_ok=True)
    failed = []
    able = [plan for plan in planned if not plan.reason]
    for plan in planned:
        if plan.reason:
            say(f"not run: {plan.name} {plan.reason}")
    for k, plan in enumerate(able, 1):
        say(f"[{k}/{len(able)}] {plan.text}")
        code = execute(plan.words, asked.root)
        if code:
            say(f"failed with exit status {code}: {plan.text}")
            failed.append(plan)
    return failed
