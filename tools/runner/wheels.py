"""./run wheel: hands over to tools/release, which needs packages of .venv."""

from __future__ import annotations

from runner import env
from runner.shell import ROOT, run, stage


def main(arguments: list[str]) -> int:
    with stage("tools"):
        env.pip_install("build", "release")
    return run(
        [env.PYTHON, "-B", "-m", "release", *arguments], env={"PYTHONPATH": str(ROOT / "tools")}, check=False
    )
