"""How long threads wait spinning: what libgomp was told when the extension was loaded (crenel._openmp)."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from crenel import _openmp

PROGRAM = "import os; before = dict(os.environ); import crenel; assert dict(os.environ) == before, 'changed'"


def told(settings: dict[str, str]) -> dict[str, str]:
    """Settings of libgomp in a process that imports the package and finds its environment as it was."""
    environment = {k: v for k, v in os.environ.items() if k not in _openmp.TOLD}
    environment |= {"OMP_DISPLAY_ENV": "verbose", **settings}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = dict(re.findall(r"(\w+) = '(\w+)'", done.stderr))
    if "GOMP_SPINCOUNT" not in shown:
        pytest.skip("this build's OpenMP is not libgomp, or it has none")
    return shown


def test_threads_spin_for_a_moment_unless_told():
    assert told({})["GOMP_SPINCOUNT"] == _openmp.SPINS


@pytest.mark.parametrize(("name", "value"), [("GOMP_SPINCOUNT", "77"), ("OMP_WAIT_POLICY", "PASSIVE")])
def test_who_starts_the_process_decides(name, value):
    shown = told({name: value})
    assert shown[name] == value
    assert shown["GOMP_SPINCOUNT"] != _openmp.SPINS
