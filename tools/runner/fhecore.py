"""./run fhecore-*: verification, synthesis and model of the hardware unit (fhecore/)."""

from __future__ import annotations

import shutil

from runner import env, package
from runner.counts import Counts, from_pytest
from runner.shell import ROOT, Stop, run, run_logged, say, stage

REPORT = ROOT / "build" / "fhecore.xml"


def install_tools() -> None:
    """Simulator, synthesiser and solver from PyPI; where one cannot be had, its tests skip by name."""
    try:
        env.pip_install("fhecore")
    except Stop as stop:
        say(f"   FHECore's tools are not all here, tests that need them are skipped: {stop}")


def run_tests(expression: str, long: bool, total: Counts) -> None:
    """pytest of fhecore/; one count for each test."""
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.unlink(missing_ok=True)
    command = [env.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={REPORT}", "fhecore"]
    command += ["--long"] if long else []
    command += ["-k", expression] if expression else []
    code = run_logged(command, "fhecore", env=env.tool_path(), check=False)
    counts = from_pytest(REPORT)
    if code not in (0, 5) and not counts.failed:
        counts.add_one("pytest of fhecore itself (build/logs/fhecore.log)", passed=False)
    say(f"   {counts.passed} pass, {counts.failed} fail, {counts.skipped} skip")
    if counts.failed:
        tail = (ROOT / "build" / "logs" / "fhecore.log").read_text(errors="replace").splitlines()[-100:]
        say("\n".join(tail))
    total.merge(counts)


def test(arguments: list[str], long: bool = False) -> int:
    """./run fhecore-test [--full] [-k EXPR]"""
    long = long or "--full" in arguments
    expression = arguments[arguments.index("-k") + 1] if "-k" in arguments[:-1] else ""
    total = Counts()
    with stage("tools"):
        install_tools()
        if long:
            _timing_analyser()
    with stage("build and install the package"):
        package.install(package.prepare(install_cuda=False))
    with stage("FHECore" + (", long" if long else "")):
        run_tests(expression, long, total)
    for name in total.failures:
        say(f"FAILED {name}")
    say(total.line())
    return 1 if total.failed or not total.passed else 0


def full(arguments: list[str]) -> int:
    """./run fhecore-full: the tests that take long too."""
    return test(arguments, long=True)


def syn(arguments: list[str]) -> int:
    """./run fhecore-syn: synthesis for ASAP7; exit code 77 where its library or a tool is missing."""
    with stage("tools"):
        install_tools()
        _timing_analyser()
    return _module("fhecore.syn", arguments)


def sim(arguments: list[str]) -> int:
    """./run fhecore-sim: the model of a GPU with the unit."""
    with stage("tools"):
        install_tools()
    return _module("fhecore.sim", arguments)


def report(arguments: list[str]) -> int:
    """./run fhecore-report: tables and plots of the model."""
    with stage("tools"):
        install_tools()
    return _module("fhecore.sim.report", arguments)


def _timing_analyser() -> None:
    if shutil.which("sta") is None:
        try:
            env.apt_install(["opensta"], "OpenSTA (sta) was not found")
        except Stop as stop:
            say(f"   timing analysis is left out: {stop}")


def _module(name: str, arguments: list[str]) -> int:
    return run([env.PYTHON, "-m", name, *arguments], env=env.tool_path(), check=False)
