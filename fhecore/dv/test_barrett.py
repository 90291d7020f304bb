"""Reduction: estimates of both forms, for every q' and p at small widths and aimed products at 32 bits."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fhecore.dv import benches, stimulus

HERE = Path(__file__).resolve().parent


def compiled(folder, source):
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler: g++ is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "exhaustive"
    subprocess.run([compiler, "-O2", "-std=c++20", "-o", str(program), str(source)], check=True)
    return program


@pytest.fixture(scope="module")
def program(work):
    return compiled(work / "barrett", HERE / "exhaustive.cpp")


def count(program, *arguments):
    """(moduli, products, error 0, error 1); AssertionError with the counterexample."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    print(f"W = {arguments[0]}: {done.stdout.strip()}")
    return [int(field) for field in done.stdout.split()[1:]]


@pytest.mark.parametrize("width", [6, 7, 8, pytest.param(9, marks=pytest.mark.long)])
def test_every_modulus_and_product(program, width):
    moduli, products, exact, off = count(program, width)
    assert moduli == (1 << width) - (1 << (width - 4)) - 1
    assert products == moduli << (2 * width) == exact + off and off > 0


@pytest.mark.parametrize("products", [2_000_000, pytest.param(300_000_000, marks=pytest.mark.long)])
def test_aimed_products_at_32_bits(program, products):
    _, checked, exact, off = count(program, 32, products, stimulus.run_seed())
    assert checked == products and exact and off


MUTATIONS = {
    "mu one too small": ("mu = (Wide(1) << (2 * w + 1)) / q;", "mu = (Wide(1) << (2 * w + 1)) / q - 1;"),
    "mu one too large": ("mu = (Wide(1) << (2 * w + 1)) / q;", "mu = (Wide(1) << (2 * w + 1)) / q + 1;"),
    "one more bit of p cut": ("((p >> (w - 5)) * mu) >> (w + 6)", "((p >> (w - 4)) * mu) >> (w + 5)"),
    "moduli below the range": ("<< (w - 4)) + 1, end", "<< (w - 5)) + 1, end"),
    "more columns left out": ("<< (w + 2);", "<< (w + 5);"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_count_notices(work, name):
    folder = work / "mutants" / "exhaustive" / re.sub(r"\W", "_", name)
    (copy,) = benches.mutate(folder, [HERE / "exhaustive.cpp"], {"exhaustive.cpp": [MUTATIONS[name]]})
    with pytest.raises(AssertionError, match="estimate off by"):
        count(compiled(folder, copy), 8)
