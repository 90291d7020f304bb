"""Runs of ctest, counted out of its report and of those of the GoogleTest programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from runner import env, pytests
from runner.counts import Counts, from_ctest
from runner.shell import Stop, capture, run_logged

TIMEOUT = 900


def run(
    build: Path, expression: str, extra: dict[str, str], total: Counts, programs: str = "", log: str = "ctest"
) -> None:
    """`programs`: a regular expression of ctest's names; else all, or those that hold `expression`."""
    report = build / "ctest.xml"
    report.unlink(missing_ok=True)
    details = build / "googletest-reports"
    shutil.rmtree(details, ignore_errors=True)
    command = [env.tool("ctest"), "--test-dir", build, "--output-junit", report, "-j", env.jobs()]
    command += ["--timeout", TIMEOUT, "--output-on-failure", "--no-tests=ignore"]
    command += ["--test-output-size-passed", 1 << 24, "--test-output-size-failed", 1 << 24]
    # Several test programs share the cores; each writes a report of its own name.
    extra = {"OMP_WAIT_POLICY": "passive", "GTEST_OUTPUT": f"xml:{details}/", **extra}
    if programs:
        command += ["-R", programs]
    elif expression and any(expression in name for name, _ in entries(build)):
        command += ["-R", expression]
    elif expression:
        extra["GTEST_FILTER"] = f"*{expression}*"
    code = run_logged(command, log, env=extra, check=False)
    counts = from_ctest(report, details)
    if code and not counts.failed:
        counts.add_one(f"{log} itself (build/logs/{log}.log)", passed=False)
    pytests.tell(log, counts, f"build/logs/{log}.log")
    total.merge(counts)


def entries(build: Path) -> list[tuple[str, str]]:
    """Name and program of every test that ctest knows."""
    listing = capture([env.tool("ctest"), "--test-dir", build, "--show-only=json-v1"])
    if listing is None:
        raise Stop("ctest could not list the tests")
    return [
        (test["name"], test["command"][0]) for test in json.loads(listing)["tests"] if test.get("command")
    ]
