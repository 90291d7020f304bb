"""./run fhecore-*: verification, synthesis and model of the hardware unit (fhecore/)."""

from __future__ import annotations

import argparse
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runner import env, package, pytests, verdict
from runner.counts import Counts
from runner.shell import Stop, remember, run, stage

BENCHES = tuple(f"fhecore/dv/test_{part}.py" for part in ("array", "equivalence", "pe", "unit", "worst_case"))
DEBIAN = ("make", "g++")  # packages of the same names


def install_tools() -> None:
    """Simulator, synthesiser and solver from PyPI, what they start from Debian. Where one cannot be had, its
    tests skip with that reason and the end of the run says it again, unless CRENEL_REQUIRE names fhecore."""
    needs = {program: program for program in DEBIAN}
    for install in (
        lambda: env.pip_install("fhecore"),
        lambda: env.programs(needs, "Verilator, FHECore's simulator, compiles with make and g++"),
    ):
        try:
            install()
        except Stop as stop:
            if env.required("fhecore"):
                raise
            remember(f"FHECore's tools are not all here, tests that need them are skipped: {stop}")


def run_tests(expression: str, long: bool, nvcc: str | None, total: Counts) -> None:
    """pytest of fhecore/; one count for each test. `nvcc`: for the kernels whose machine code is read.

    Nearly all of it is one thread that waits for a compiler or a solver: two processes, where there are the
    cores for them, one of which has the benches of the RTL."""
    arguments = ["--long"] if long else []
    arguments += ["-k", expression] if expression else []
    paths = {"PATH": env.tool_path()["PATH"] + (os.pathsep + str(Path(nvcc).parent) if nvcc else "")}
    rest = ["fhecore", *(f"--ignore={bench}" for bench in BENCHES)]
    parts = (("fhecore-benches", list(BENCHES), Counts()), ("fhecore", rest, Counts()))
    with ThreadPoolExecutor(min(len(parts), env.jobs())) as pool:
        runs = [pool.submit(pytests.run, n, [*files, *arguments], paths, own) for n, files, own in parts]
    for part, (_, _, own) in zip(runs, parts, strict=True):
        part.result()
        total.merge(own)


def test(arguments: list[str], long: bool = False) -> int:
    """./run fhecore-test [-k EXPR]"""
    command = "./run fhecore-" + ("full" if long else "test")
    parser = argparse.ArgumentParser(prog=command, description="Tests of the hardware unit.")
    parser.add_argument("-k", metavar="EXPR", default="", help="only tests whose name contains EXPR")
    expression = parser.parse_args(arguments).k
    total = Counts()
    with stage("tools"):
        install_tools()
        if long:
            _timing_analyser()
    with stage("build and install the package"):
        toolchain = package.prepare(install_cuda=False)
        package.install(toolchain)
    with stage("FHECore" + (", long" if long else "")):
        run_tests(expression, long, toolchain.nvcc, total)
    return verdict.close(total, "", gpu=False, whole=False)


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
            remember(f"timing analysis is left out: {stop}")


def _module(name: str, arguments: list[str]) -> int:
    return run([env.PYTHON, "-m", name, *arguments], env=env.tool_path(), check=False)
