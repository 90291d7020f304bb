"""./run demo: from a bare machine to an encrypted prediction."""

from __future__ import annotations

from runner import cuda, package
from runner.env import pip_install, tool
from runner.shell import run, say, stage


def main(arguments: list[str]) -> int:
    with stage("set up"):
        toolchain = package.prepare(install_cuda=False)
        pip_install("demo", *(["serve"] if arguments[:1] == ["serve"] else []))
    with stage("build and install"):
        package.install(toolchain)
    gpus = cuda.gpus()
    built = "built" if toolchain.nvcc else f"not built ({cuda.absence()})"
    say(f"   CUDA backend: {built}; GPU: {gpus[0]['name'] if gpus else 'none seen by nvidia-smi'}")
    return run([tool("crenel"), "demo", *arguments], check=False)
