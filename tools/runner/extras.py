"""Packages and programs that single tests need: which ./run test installs, and which it does not."""

from __future__ import annotations

import shutil
from pathlib import Path

from runner import env
from runner.shell import capture, remember

GROUPS = ("notebook", "docs", "release", "service")  # of requirements/; python/tests/needed.py knows them
POSTGRESQL = Path("/usr/lib/postgresql")  # where Debian's packages put its servers
# What tests run with where it is there, by a package of PyPI or a program: too heavy to install for them.
LEFT_OUT = {
    "torch": "PyTorch's modules: the package is larger than all others together",
    "ray": "the service's engine Ray: it gives up when it has not started after 30 s, which happens on two "
    "cores that other tests use too",
    "emcmake": "the browser's client: a compiler for WebAssembly and Chromium, a gigabyte of Debian packages",
}
# How paths of test files begin that take hardly any time where one is not here: they are skipped.
FILES = {"emcmake": "python/tests/test_browser_"}


def install() -> None:
    """Where nothing can be fetched their tests are left out with the reason, unless CRENEL_REQUIRE names
    packages. A server of PostgreSQL comes onto nobody's machine unasked: only where it does."""
    required = env.required("packages")
    if env.OFFLINE and not required:
        return
    env.pip_install(*GROUPS)
    if required and not any(POSTGRESQL.glob("*/bin/initdb")):
        env.apt_install(["postgresql"], "the service is tested on PostgreSQL too")


def missing() -> list[str]:
    """Names of LEFT_OUT that are not here."""
    present = (capture([env.PYTHON, "-c", env.LIST_INSTALLED]) or "").split()
    return [name for name in LEFT_OUT if name not in present and shutil.which(name) is None]


def tell() -> None:
    """What is not here and was not installed, for the end of the run."""
    for name in missing():
        remember(f"tests with {name} ({LEFT_OUT[name]})")
