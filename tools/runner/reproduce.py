"""./run reproduce: tables and figures of four papers beside this library's."""

from __future__ import annotations

from runner import env, package
from runner.shell import ROOT, run, stage

RESULTS = ROOT / "bench" / "results"
OUT = ROOT / "out" / "reproduction"


def main(arguments: list[str]) -> int:
    """Without arguments: all of them from bench/results, into out/reproduction."""
    with stage("set up"):
        toolchain = package.prepare(install_cuda=False)
        env.pip_install("demo")  # has matplotlib
    with stage("build and install"):
        package.install(toolchain)
    default = ["all", "--from", str(RESULTS), "--out", str(OUT)]
    return run([env.tool("crenel"), "reproduce", *(arguments or default)], check=False)
