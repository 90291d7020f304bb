"""Importing is quick and loads nothing that a program does not need."""

import os
import subprocess
import sys

import crenel
from crenel import ckks

HEAVY = ["typer", "rich", "sklearn", "scipy", "matplotlib"]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_adds_little_to_that_of_numpy():
    def seconds(code: str) -> float:
        """Of processor time, which other work does not lengthen much, or of the clock, which the threads
        that NumPy starts on a large machine do not."""
        before = os.times()
        python(code)
        after = os.times()
        user = after.children_user - before.children_user
        busy = user + after.children_system - before.children_system
        return min(busy, after.elapsed - before.elapsed)

    # A busy machine may take longer for NumPy alone than an idle one for everything.
    numpy = min(seconds("import numpy") for _ in range(3))
    assert min(seconds("from crenel import ckks") for _ in range(3)) - numpy < 0.15


def test_nothing_heavy_is_loaded():
    loaded = python("import sys; from crenel import ckks; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_every_public_name_exists_and_is_documented():
    for module in (crenel, ckks):
        assert module.__doc__
        for name in module.__all__:
            value = getattr(module, name)
            assert name.startswith("__") or value.__doc__, name


def test_every_method_is_documented():
    kinds = [value for value in vars(ckks).values() if isinstance(value, type)]
    assert {ckks.Operand, ckks.EvaluationKeys, ckks.Graph} <= set(kinds)
    for kind in (*kinds, crenel.Device, crenel.MemoryUse):
        for name in vars(kind):
            if not name.startswith("_"):
                assert getattr(kind, name).__doc__, f"{kind.__name__}.{name}"


def test_stubs_are_installed():
    from pathlib import Path

    folder = Path(crenel.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "_crenel.pyi").read_text()
    assert "class Evaluator" in stub and "def multiply_rescale" in stub
