"""Runs of `crenel workload`, each a process of its own: peaks of memory and first calls do not mix."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One process: what it is called in the summary, and its command."""

    title: str
    arguments: list[str]


def execute(run: Run, timeout_s: float) -> dict | str:
    """The document of a run, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "record.json"
        command = [sys.executable, "-m", "crenel", "workload", *run.arguments, "--json", str(target)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired:
            return f"stopped after {timeout_s:g} s"
        if target.is_file():
            return json.loads(target.read_text())
        last = (done.stderr or done.stdout).strip().splitlines()
        return f"exit status {done.returncode}: {last[-1] if last else 'no output'}"


def collect(runs: Iterable[Run], title: str, command: str, timeout_s: float) -> tuple[dict | None, list[str]]:
    """One document of all runs, whose provenance has `command`; and lines of what failed."""
    document, failed = None, []
    for run in runs:
        found = execute(run, timeout_s)
        if isinstance(found, str):
            failed.append(f"{title}, {run.title}: {found}")
            print(failed[-1], flush=True)
            continue
        result = found["results"][0]
        verdict = "" if result["correct"] else ", WRONG"
        print(f"{title}, {run.title}: {result['total_s']:.3f} s{verdict}", flush=True)
        if document is None:
            document = found
            document["provenance"]["command"] = command
        else:
            document["results"].append(result)
    return document, failed
