"""mypy, pyright, and the completeness of public signatures: in ./run test on the package that was built, in
./run lint where there is one."""

from __future__ import annotations

import contextlib
from pathlib import Path

from runner import env
from runner.counts import Counts
from runner.shell import Stop, remember, run

SIGNATURES = "tools/check_signatures.py"
DOCSTRINGS = "tools/check_docstrings.py"
TYPES = "tools/check_types.py"  # mypy and pyright: half a minute


def installed_stub() -> Path | None:
    """The stub of the extension module that .venv has."""
    return next(iter(sorted(env.VENV.glob("lib/python3*/site-packages/crenel/_crenel.pyi"))), None)


def install() -> None:
    """mypy and pyright into .venv, where they can be had."""
    with contextlib.suppress(Stop):  # check() says so
        env.pip_install("typing")


def check(checks: tuple[str, ...]) -> dict[str, bool]:
    """Whether each of these found nothing. What cannot run is left out aloud; CRENEL_REQUIRE=types makes
    that a failure."""
    stub = installed_stub()
    try:
        if stub is None:
            raise Stop("the package is not built (./run demo)")
        if TYPES in checks:
            env.pip_install("typing")
    except Stop as stop:
        remember(f"{', '.join(checks)}: left out, {str(stop).splitlines()[0]}")
        return dict.fromkeys(checks, False) if env.required("types") else {}
    return {name: run([env.PYTHON, "-B", name, "--stub", stub], check=False) == 0 for name in checks}


def count(total: Counts) -> None:
    """A test for each check that ran; a test of Python's own has the docstrings."""
    for name, passed in check((SIGNATURES, TYPES)).items():
        total.add_one(name, passed=passed)
