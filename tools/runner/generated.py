"""Files that are made of the code or of bench/results: all of them are compared in ./run lint, and ./run lint
--fix writes them.

Each has a program, a test of Python marked `generated` or a test of C++ that renders it: without --check the
program writes, a test where CRENEL_UPDATE_DOCS=1. Python computes with the installed extension and the Python
of this tree, so that a change of Python needs no build; what is of other sources than the tree's is said.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from runner import env, package, typed
from runner.shell import ROOT, Stop, remember, run, say

SITE = ROOT / "build" / "generated" / "site"
MARK = "mark.generated"
TESTS = ("python/tests", "fhecore")
PACKAGES = ("demo", "test", "service")  # of requirements/: what these tests import
REPRODUCTION = ("--page", "docs/reference/reproduction.md", "--figures", "docs/assets/reproduction")


class Made(NamedTuple):
    """One program: its arguments to Python, and what is added to compare or to write."""

    what: str
    command: tuple[str, ...]
    check: tuple[str, ...] = ("--check",)
    write: tuple[str, ...] = ()


# In an order in which each has what it is made of.
MADE = (
    Made("vectors of the independent model", ("tests/golden/generate.py",)),
    Made("headers of FHECore's shapes", ("fhecore/config.py",), write=("--write",)),
    Made("records of the dry device", ("tools/gen_dry.py",)),
    Made("times of nn's operations", ("tools/gen_costs.py",)),
    Made("times of TFHE's look-ups", ("tools/gen_lookups.py",)),
    Made("tables of errors and parameter sets", ("tools/gen_reference.py",)),
    Made("guide of integers", ("tools/gen_integers.py",)),
    Made("pages of FHECore's model", ("-m", "fhecore.sim", "docs")),
    Made("pages of the benchmarks", ("bench/report.py",)),
    Made("page of the reproduction", ("-m", "crenel", "reproduce", "all", *REPRODUCTION)),
)

# GoogleTest's programs in the folder of the build, with their filters.
COMPILED = {"integration_tests": "TheoryPages.*", "unit_tests": "TfheParams.ReferencePageIsCurrent"}


def stage_package() -> Path | None:
    """A folder with the installed extension and the Python of this tree; None where none is installed. Stop
    where the folder cannot be written."""
    stub = typed.installed_stub()
    if stub is None or not any(stub.parent.glob("_crenel*.so")):
        return None
    try:
        shutil.rmtree(SITE, ignore_errors=True)
        source = ROOT / "python" / "crenel"
        shutil.copytree(source, SITE / "crenel", ignore=shutil.ignore_patterns("_crenel*"))
        for file in stub.parent.glob("_crenel*"):
            (SITE / "crenel" / file.name).symlink_to(file)
    except OSError as error:
        raise Stop(f"generated files: {SITE} cannot be written, remove it: {error}") from None
    return SITE


def marked(root: Path = ROOT) -> list[str]:
    """The test files that hold a test marked `generated`."""
    files = [f for folder in TESTS for f in (root / folder).rglob("test_*.py")]
    return sorted(f.relative_to(root).as_posix() for f in files if MARK in f.read_text(encoding="utf-8"))


def commands(fix: bool) -> list[tuple[str, list[str]]]:
    """Name and command of each."""
    python = str(env.PYTHON)
    found = [(m.what, [python, "-B", *m.command, *(m.write if fix else m.check)]) for m in MADE]
    name = "tables that Python's tests compute"
    try:
        env.pip_install(*PACKAGES)
        tests = [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "generated", *marked()]
        found.append((name, tests))
    except Stop as stop:
        remember(f"{name}: left out, {str(stop).splitlines()[0]}")
    for name, tests_of_it in COMPILED.items():
        program = package.BUILD / "tests" / name
        if program.exists():
            command = [str(program), "--gtest_brief=1", f"--gtest_filter={tests_of_it}"]
            found.append((f"tables that {name} compute", command))
        else:
            remember(f"tables that {name} compute: left out, it is not built (./run test builds it)")
    return found


def check(fix: bool = False) -> list[str]:
    """The names of what is stale; with `fix` of what could not be written."""
    site = stage_package()
    if site is None:
        remember("generated files: left out, the package is not built (./run demo)")
        return []
    if not package.is_of_these_sources():
        remember("generated files: compared by a build of other C++ sources than these; ./run demo builds it")
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(p for p in paths if p), "OMP_WAIT_POLICY": "passive"}
    settings |= {"CRENEL_UPDATE_DOCS": "1"} if fix else {}
    failed = []
    for what, command in commands(fix):
        if run(command, env=settings, check=False):
            failed.append(what)
    if failed:
        say(f"   not what they should be: {', '.join(failed)}; ./run lint --quick --fix writes them")
    return failed
