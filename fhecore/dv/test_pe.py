"""Processing element, both forms, against the cycle model: cocotb on Verilator, coverage, mutations."""

from __future__ import annotations

import pytest

from fhecore.dv import benches, coverage

FORMS = ["modmul_pe", "modmul_pe_cs"]
CELLS = {"modmul_pe": None, "modmul_pe_cs": 0}  # quick run
INPUTS = ["clk", "rst", "a_in", "b_in", "c_in", "valid_in", "first_in", "last_in", "bank_in"]
CONSTANTS = ["q0", "q1", "mu0", "mu1"]
OUTPUTS = ["a_out", "b_out", "valid_out", "first_out", "last_out", "bank_out", "acc", "done"]
PORTS = INPUTS + CONSTANTS + OUTPUTS


def files_of(form):
    files = benches.sources(form)
    if not files:
        pytest.skip(f"fhecore/rtl/{form}.v does not exist")
    return files


def run(work, form, files, width=32, scale=1, name=None, cells=None):
    table = work / "coverage" / f"{name or form}-{width}.json"
    table.unlink(missing_ok=True)
    parameters = {"W": width} | ({} if cells is None else {"CELLS": cells})
    env = {
        "FHECORE_PE_WIDTH": str(width),
        "FHECORE_PE_SCALE": str(scale),
        "FHECORE_PE_NAME": f"{name or form} W={width}",
        "FHECORE_PE_COVERAGE": str(table),
    }
    passed = benches.simulate(work, "pe_bench", form, files, parameters, env, PORTS)
    return passed, coverage.load(table)


@pytest.mark.parametrize("form", FORMS)
def test_against_the_cycle_model(work, form):
    """The carry-save form with adders as equations (CELLS = 0), which compile much faster than one cell a
    bit; the long test takes the cells."""
    benches.need_cocotb(work)
    passed, bins = run(work, form, files_of(form), scale=5, cells=CELLS[form])
    print(bins.table())
    assert passed == 7
    assert not bins.holes(), f"bins never hit: {bins.holes()}"


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [6, 8, 17, 32])
def test_against_the_cycle_model_at_length(work, form, width):
    benches.need_cocotb(work)
    _, bins = run(work, form, files_of(form), width, scale=20, name=f"{form}_long")
    print(bins.table())
    assert not bins.holes(), f"bins never hit: {bins.holes()}"


# Faults in the behavioural form; the bench must fail on each. The proofs keep their own list.
MUTATIONS = {
    "estimate shifted too far": ("t2[2*W+7:W+6]", "t2[2*W+8:W+7]"),
    "three bits of p cut off": ("{{(W+5){1'b0}}, p2[2*W-1:W-5]} *", "{{(W+5){1'b0}}, p2[2*W-1:W-2], 3'b0} *"),
    "second subtraction missing": ("!sum2[W+1] ? sum2[W-1:0] : ", ""),
    "mu of the other bank": ("bank[2] ? mu1 : mu0", "bank[2] ? mu0 : mu1"),
    "q of the step behind": ("bank[5] ? q1 : q0", "bank[4] ? q1 : q0"),
    "c in every step": ("first_in ? c_in : {W{1'b0}}", "c_in"),
    "first ignored": ("(first[5] ?", "(1'b0 ?"),
    "done one edge early": ("valid[5] && last[5]", "valid[4] && last[4]"),
    "done for bubbles": ("!rst && valid[5] && last[5]", "!rst && last[5]"),
    "steps survive reset": ("rst ? 4'b0 : {valid", "1'b0 ? 4'b0 : {valid"),
    "last not forwarded": ("last_out  <= last_in", "last_out  <= first_in"),
}


def check_mutation(work, name):
    benches.need_cocotb(work)
    folder = work / "mutants" / name.replace(" ", "_")
    files = benches.mutate(folder, files_of("modmul_pe"), {"modmul_pe.v": [MUTATIONS[name]]})
    with pytest.raises(AssertionError, match="failed; repeat with"):
        run(folder, "modmul_pe", files, scale=5, name="mutant")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if i == 0 else [pytest.mark.long]) for i, n in enumerate(MUTATIONS)]
)
def test_mutation_is_caught(work, name):
    check_mutation(work, name)
