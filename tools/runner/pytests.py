"""Runs of pytest, counted out of their reports."""

from __future__ import annotations

import os

from runner import env
from runner.counts import Counts, from_pytest
from runner.shell import ROOT, run_logged, say

# Of a process: what a test's own threads need. Fewer cores than two such run one process.
CORES = 2


def workers() -> list[str]:
    """Arguments that spread the files of tests over processes, where there are cores for them."""
    count = (os.cpu_count() or 1) // CORES
    return ["-n", str(count), "--dist", "loadfile"] if count > 1 else []


def run(name: str, arguments: list, extra: dict[str, str], total: Counts) -> None:
    """pytest with these arguments; log and report are build/logs/<name>.log and build/<name>.xml."""
    report = ROOT / "build" / f"{name}.xml"
    report.unlink(missing_ok=True)
    command = [env.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += [*workers(), *arguments]
    settings = {"OMP_WAIT_POLICY": "passive", **env.tool_path(), **extra}  # other tests share the cores
    code = run_logged(command, name, env=settings, check=False)
    log = f"build/logs/{name}.log"
    counts = from_pytest(report)
    if code not in (0, 5) and not counts.failed:
        counts.add_one(f"{name} itself ({log})", passed=False)
    tell(name, counts, log)
    total.merge(counts)


def tell(name: str, counts: Counts, log: str) -> None:
    """The counts, and the end of the log where something failed."""
    say(f"   {name}: {counts.passed} pass, {counts.failed} fail, {counts.skipped} skip")
    if counts.failed:
        tail = (ROOT / log).read_text(errors="replace").splitlines()[-150:]
        say("\n".join(tail))
        say(f"   whole output: {log}")
