"""mypy, pyright, and the completeness of public signatures: in ./run test on the package that was built, in
./run lint where there is one."""

from __future__ import annotations

import contextlib
from pathlib import Path

from runner import env
from runner.counts import Counts
from runner.shell import Stop, remember, run

SIGNATURES = "tools/check_signatures.py"
CHECKS = (SIGNATURES, "tools/check_types.py")


def installed_stub() -> Path | None:
    """The stub of the extension module that .venv has."""
    return next(iter(sorted(env.VENV.glob("lib/python3*/site-packages/crenel/_crenel.pyi"))), None)


def install() -> None:
    """mypy and pyright into .venv, where they can be had."""
    with contextlib.suppress(Stop):  # check() says so
        env.pip_install("typing")


def check() -> dict[str, bool]:
    """Whether each check found nothing. What cannot run is left out aloud; CRENEL_REQUIRE=types makes that a
    failure."""
    stub = installed_stub()
    try:
        if stub is None:
            raise Stop("the package is not built (./run demo)")
        env.pip_install("typing")
    except Stop as stop:
        remember(f"mypy, pyright and public signatures: left out, {str(stop).splitlines()[0]}")
        return dict.fromkeys(CHECKS, False) if env.required("types") else {}
    return {name: run([env.PYTHON, "-B", name, "--stub", stub], check=False) == 0 for name in CHECKS}


def count(total: Counts) -> None:
    """A test for each check that ran."""
    for name, passed in check().items():
        total.add_one(name, passed=passed)
