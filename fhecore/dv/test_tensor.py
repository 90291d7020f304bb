"""The tensor core's element with the modular one beside it, against the host's fused multiply-add."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fhecore.dv import benches, stimulus, tools

HERE = Path(__file__).resolve().parent
KINDS = ("subnormal", "overflow", "NaN", "vanished", "rounded once")


def build(work, name, files, single_m=23, cells=0):
    tool = tools.verilator(work)
    if not tool:
        pytest.skip(tool.reason)
    folder = work / "tensor_pe" / f"{name}-{single_m}-{cells}"
    command = [
        *(str(tool.path), "--cc", "--exe", "-Mdir", str(folder)),
        *(f"-I{tools.RTL}", "-Wno-fatal", "-Wno-lint", "-CFLAGS", "-std=c++20 -ffp-contract=off"),
        *("-o", "tensor_pe", "--top-module", "tensor_pe_fhe"),
        *(f"-GSINGLE_M={single_m}", f"-GCELLS={cells}"),
        *(str(path) for path in (*files, HERE / "tensor_pe.cpp")),
    ]
    tools.compile_bench(command, folder, work, () if cells else ("OPT_FAST=-O0", *tools.ONE_FILE))
    return folder / "tensor_pe"


def simulate(program, steps, single_m=23):
    """Every result compared; how many of each kind there were. AssertionError at the first difference."""
    command = [str(program), str(steps), str(stimulus.run_seed()), str(single_m)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}; repeat with CRENEL_SEED={stimulus.run_seed()}"
    ran, tiles, *kinds = map(int, done.stdout.split())
    print(f"{ran} steps in {tiles} tiles: {dict(zip(KINDS, kinds, strict=True))}")
    assert ran >= steps
    return dict(zip(KINDS, kinds, strict=True))


@pytest.mark.parametrize(
    ("single_m", "cells", "steps"),
    [
        (23, 0, 60_000),
        pytest.param(10, 0, 5_000_000, marks=pytest.mark.long),
        pytest.param(23, 1, 5_000_000, marks=pytest.mark.long),
    ],
)
def test_against_the_hosts_arithmetic(work, single_m, cells, steps):
    """Kinds of results are 1 % of the steps and more: below a sixth of that the stimulus has changed."""
    seen = simulate(build(work, "rtl", benches.sources("tensor_pe_fhe"), single_m, cells), steps, single_m)
    rare = {kind: count for kind, count in seen.items() if count < 100}
    assert not rare, f"kinds of results that hardly occurred: {rare}"


MUTATIONS = {
    "ties away from even": ("tensor_fma.v", "guard & (sticky | normal[FW-MA])", "guard"),
    "what is shifted out is lost": ("tensor_fma.v", "|moved[P-1:0]}", "1'b0}"),
    "subnormal sums are normalised": ("tensor_fma.v", "enough ? zeros : spare[N-1:0]", "zeros"),
    "no infinity": ("tensor_fma.v", "inf5 | over ", "inf5 "),
    "zero times infinity": ("tensor_fma.v", " | (a_top & b_zero) | (b_top & a_zero)", ""),
    "sign of a sum that vanishes": ("tensor_fma.v", "sign3 & (inf3 | any | ~sub3)", "sign3"),
    "a zero product moves c": ("tensor_fma.v", "none1 | shift1[EW-1]", "hold1 | shift1[EW-1]"),
    "places for subnormal products": ("tensor_fma.v", "(EA > E) ? P + 1 ", "(EA > E) ? P + 2 - PI "),
    "magnitude one off": ("tensor_fma.v", "less ? ~sum[FW:0]", "less ? ~plus_one[FW:0]"),
    "format of every step": ("tensor_pe.v", "valid_in & first_in ? format_in : format6", "format_in"),
    "unsigned bytes": ("tensor_int8.v", "$signed(a) * $signed(b)", "a * b"),
    "both units step": ("tensor_pe_fhe.v", "valid_in & ~modular_in", "valid_in"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_noticed(work, name):
    file, old, new = MUTATIONS[name]
    tag = name.replace(" ", "_")
    folder = work / "mutants" / "tensor" / tag
    files = benches.mutate(folder, benches.sources("tensor_pe_fhe"), {file: [(old, new)]})
    with pytest.raises(AssertionError, match="cycle"):
        simulate(build(work, tag, files), 200_000)
