"""Both forms of the element in one simulation, random steps at full speed; test_formal.py has the proofs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fhecore.dv import benches, stimulus, tools

HERE = Path(__file__).resolve().parent


def rtl_files():
    files = benches.sources("modmul_pe") + benches.sources("modmul_pe_cs")
    if not benches.sources("modmul_pe_cs"):
        pytest.skip("fhecore/rtl/modmul_pe_cs.v does not exist")
    return files


def build(work, name, files, width, cells, options=()):
    """Compile pe_pair with `files`; returns the program."""
    tool = tools.verilator(work)
    if not tool:
        pytest.skip(tool.reason)
    folder = work / "pe_pair" / f"{name}-W{width}-CELLS{cells}"
    command = [
        *(str(tool.path), "--cc", "--exe", "-Mdir", str(folder)),
        *options,
        *(f"-I{tools.RTL}", "-Wno-fatal", "-Wno-lint", "-CFLAGS", "-std=c++20", "-o", "pe_pair"),
        *("--top-module", "pe_pair", f"-GW={width}", f"-GCELLS={cells}"),
        *(str(path) for path in (HERE / "pe_pair.v", *files, HERE / "pe_pair.cpp")),
    ]
    tools.compile_bench(command, folder, work, () if cells else tools.ONE_FILE)
    return folder / "pe_pair"


def simulate(program, steps, width):
    command = [str(program), str(steps), str(stimulus.run_seed()), str(width)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}; repeat with CRENEL_SEED={stimulus.run_seed()}"
    ran, tiles = map(int, done.stdout.split())
    print(f"W = {width}: {ran} steps in {tiles} tiles")
    return ran


@pytest.mark.parametrize(
    ("width", "cells", "steps"),
    [
        (32, 0, 200_000),
        pytest.param(32, 1, 5_000_000, marks=pytest.mark.long),
        pytest.param(6, 1, 5_000_000, marks=pytest.mark.long),
        pytest.param(19, 1, 2_000_000, marks=pytest.mark.long),
    ],
)
def test_forms_agree(work, width, cells, steps):
    assert simulate(build(work, "rtl", rtl_files(), width, cells), steps, width) >= steps


MUTATIONS = {
    "adder cell": ("csa.v", "(x & y) | (x & z) | (y & z)", "(x & y) | (x & z)"),
    "quotient one bit off": ("modmul_pe_cs.v", "qh_next[Q-1:Q-R]", "qh_next[Q-2:Q-R-1]"),
    "bank of q": ("modmul_pe_cs.v", "bank[3] ? q1 : q0", "bank[2] ? q1 : q0"),
    "no second subtraction": ("modular_accumulate.v", "valid & ~sum2[R-1]", "1'b0"),
    "both forms: c always": ("modmul_pe.v", "first_in ? c_in : {W{1'b0}}", "c_in"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_noticed(work, name):
    file, old, new = MUTATIONS[name]
    tag = name.replace(" ", "_").replace(":", "")
    files = benches.mutate(work / "mutants" / "pair" / tag, rtl_files(), {file: [(old, new)]})
    with pytest.raises(AssertionError, match="cycle"):
        simulate(build(work, tag, files, 32, 0), 200_000, 32)
