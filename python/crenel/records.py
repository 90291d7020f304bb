"""Records of measurements: JSON in the form of ``bench/results``, with where and of what each was made."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import crenel
from crenel._crenel import build_info, write_file

KIND, FORMAT = "crenel-bench", 1
Json: TypeAlias = dict[str, Any]


def record(suite: str, where: Mapping[str, object], results: Sequence[Any], **facts: Any) -> Json:
    """The document of one run: `results` are dictionaries or dataclasses, `facts` are of all of them.

    where : what `provenance` gives
    """
    return {
        "kind": KIND,
        "format": FORMAT,
        "suite": suite,
        "provenance": dict(where),
        **facts,
        "results": [dataclasses.asdict(r) if dataclasses.is_dataclass(r) else dict(r) for r in results],  # type: ignore[arg-type]
    }


def write_record(path: Path, document: Mapping[str, Any], *, finite: bool = False) -> None:
    """Write a document; the file is whole or not there. Raises FileError.

    finite : its numbers are, or ValueError is raised: JSON has no others
    """
    write_file(path, (json.dumps(document, indent=1, allow_nan=not finite) + "\n").encode())


def command_line() -> str:
    """The command that this process runs, as a record has it."""
    return shlex.join(["crenel", *sys.argv[1:]])


def made(command: str) -> Json:
    """When, by which command and of which commit a record is made, whatever it is of."""
    commit, dirty = _commit()
    found = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command,
        "version": crenel.__version__,
        "commit": commit,
        "dirty": dirty,
    }
    return {name: value for name, value in found.items() if value is not None}


def provenance(device: crenel.Device | crenel.DeviceInfo, command: str) -> Json:
    """Where and of what a record was made."""
    found = {
        **made(command),
        **{name: text for name, text in build_info().items() if text},
        "device": device.name,
        "device_description": device.description,
        "host_processor": _host_processor(),
        "host_threads": str(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ),
        "python": platform.python_version(),
    }
    if device.name.startswith("cuda"):  # one GPU, or several
        found["driver_and_clocks"] = _driver()
    return {name: value for name, value in found.items() if value is not None}


def _commit() -> tuple[str | None, bool | None]:
    """Of the clone that the package lies in; a clone of something else says nothing about it."""
    if named := os.environ.get("CRENEL_COMMIT"):
        return named, None
    here = Path(crenel.__file__).resolve().parent
    top = _line(["git", "rev-parse", "--show-toplevel"], here)
    if not top or not (Path(top) / "python/crenel/__init__.py").is_file():
        return None, None
    changed = _line(["git", "status", "--porcelain", "--untracked-files=no"], Path(top))
    return _line(["git", "rev-parse", "HEAD"], Path(top)), changed is not None


def _line(command: list[str], folder: Path | None = None) -> str | None:
    """The first line of what a program prints; None where there is no such program, or nothing."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


def _host_processor() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or None
    named = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return named[0] if named else None


def _driver() -> str | None:
    fields = "driver_version,clocks.sm,clocks.mem,clocks.max.sm"
    return _line(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"])
