"""Timing and files of results, in the form of bench/harness."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import crenel

_SECONDS = 10.0  # spent on a timing when the number of runs is left open
_LEAST_RUNS, _MOST_RUNS = 3, 50


@dataclass(frozen=True)
class Timing:
    """Seconds a call, over runs that each waited for the device."""

    median: float
    q1: float
    q3: float
    least: float
    runs: int


def timed(call: Callable[[], object], synchronize: Callable[[], object], runs: int = 0) -> Timing:
    """Times `call`, warmed up twice; 0 runs: as many as fit a few seconds, at least three."""
    for _ in range(2):
        call()
    synchronize()
    samples: list[float] = []
    while len(samples) < (runs or _MOST_RUNS):
        begin = time.perf_counter()
        call()
        synchronize()
        samples.append(time.perf_counter() - begin)
        if not runs and len(samples) >= _LEAST_RUNS and sum(samples) > _SECONDS:
            break
    q1, median, q3 = np.quantile(samples, [0.25, 0.5, 0.75])
    return Timing(float(median), float(q1), float(q3), min(samples), len(samples))


def log2(value: float) -> float | None:
    return float(np.log2(value)) if value > 0 else None


def provenance(device: crenel.DeviceInfo, command: str) -> dict[str, object]:
    """Time, commit, compiler and processors; what is not known is absent or None."""
    built = crenel.build_info()
    commit, dirty = _commit()
    facts: dict[str, object] = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": command,
        "version": crenel.__version__,
        "commit": commit,
        "dirty": dirty,
        "compiler": built["compiler"],
        "build_type": built["build_type"],
        "device": device.name,
        "device_description": device.description,
        "host_processor": _host_processor(),
        "host_threads": os.environ.get("OMP_NUM_THREADS", str(os.cpu_count())),
    }
    if device.kind == "cuda":
        query = "--query-gpu=driver_version,clocks.sm,clocks.mem,clocks.max.sm"
        facts["cuda_toolkit"] = built["cuda_toolkit"]
        facts["cuda_architectures"] = built["cuda_architectures"]
        facts["driver_and_clocks"] = _first_line("nvidia-smi", query, "--format=csv,noheader")
    return facts


def write(path: Path, suite: str, facts: dict[str, object], results: list[dict[str, object]]) -> None:
    """One file of results."""
    record = {"kind": "crenel-bench", "format": 1, "suite": suite, "provenance": facts, "results": results}
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _first_line(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.splitlines()[0].strip() if done.stdout.strip() else None


def _commit() -> tuple[str | None, bool | None]:
    """Of the checkout that this is run in, when it is one of Crenel; CRENEL_COMMIT says it otherwise."""
    if commit := os.environ.get("CRENEL_COMMIT"):
        return commit, None
    if not Path("python/crenel/ckks.py").is_file():
        return None, None
    changes = _first_line("git", "status", "--porcelain", "--untracked-files=no")
    commit = _first_line("git", "rev-parse", "HEAD")
    return commit, None if commit is None else changes is not None


def _host_processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)
