"""Systolic array: cocotb on Verilator."""

from __future__ import annotations

import dataclasses
import json

import pytest

from fhecore import config
from fhecore.dv import benches

PORTS = [
    "clk",
    "rst",
    "a_col",
    "b_row",
    "c_row",
    "valid_in",
    "first_in",
    "last_in",
    "bank_in",
    "q0",
    "q1",
    "mu0",
    "mu1",
    "d_bus",
    "d_valid",
]


SEQUENTIAL = 2  # value of CARRY_SAVE: elements with one multiplier, a step every three edges
LAZY_LEVELS = 7  # registers of a lazy element, of the column's bus and of its reduction, besides G
LAZY_STEPS_LOG2 = 4  # G of lazy_array, where it is not named


def run(work, name, carry_save=0, top="fhecore_array", files=None, steps_log2=LAZY_STEPS_LOG2, **changes):
    """`changes`: of the named shape's rows, cols and depth."""
    benches.need_cocotb(work)
    shape = dataclasses.replace(config.load()[name], **changes)
    parameters = {"W": shape.word_bits, "R": shape.rows, "C": shape.cols}
    env = {"FHECORE_SHAPE": name, "FHECORE_CHANGES": json.dumps(changes)}
    if carry_save:
        parameters |= {"CARRY_SAVE": carry_save, "CELLS": 0}
    if carry_save == SEQUENTIAL:
        env |= {"FHECORE_SPACING": "3"}
    if top == "lazy_array":
        parameters |= {"CELLS": 0, "G": steps_log2}
        env |= {"FHECORE_LEVELS": str(LAZY_LEVELS + steps_log2)}
    return benches.simulate(work, "array_cocotb", top, files or benches.sources(top), parameters, env, PORTS)


@pytest.mark.parametrize("name", ["small", "formal"])
def test_array(work, name):
    assert run(work, name) == 6


@pytest.mark.long
def test_array_of_the_paper(work):
    assert run(work, "paper") == 6


@pytest.mark.long
@pytest.mark.parametrize("name", ["small", "formal"])
def test_array_of_carry_save_elements(work, name):
    assert run(work, name, carry_save=1) == 6


SMALL = {"rows": 2, "cols": 2, "depth": 6}


def test_array_of_sequential_elements(work):
    """The same bench, with steps three edges apart."""
    assert run(work, "small", carry_save=SEQUENTIAL, **SMALL) == 6


@pytest.mark.long
def test_array_of_sequential_elements_of_the_paper(work):
    assert run(work, "paper", carry_save=SEQUENTIAL) == 6


SEQUENTIAL_MUTATIONS = {
    "c in the estimate": ("{R{fresh & first_in}}", "{R{first_in}}"),
    "a multiple added": ("{q_one, q_two, ~q_neg}", "{q_one, q_two, q_neg}"),
    "p not kept": ("if (estimates) p4", "p4"),
    "q of the other bank": ("bank[3] ? q1 : q0", "bank[3] ? q0 : q1"),
    "quotient one column off": ("resolved[TO-1:F]", "resolved[TO-2:F-1]"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SEQUENTIAL_MUTATIONS)
def test_sequential_mutation_is_noticed(work, name):
    folder = work / "mutants" / "sequential" / name.replace(" ", "_")
    patches = {"modmul_pe_seq.v": [SEQUENTIAL_MUTATIONS[name]]}
    files = benches.mutate(folder, benches.sources("fhecore_array"), patches)
    with pytest.raises(AssertionError, match="failed; repeat with"):
        run(folder, "small", carry_save=SEQUENTIAL, files=files, **SMALL)


LEAST = {"rows": 2, "cols": 2, "depth": 16}  # as many steps as its sums can hold


def test_lazy_array(work):
    """The same bench, with the same values five edges later."""
    assert run(work, "small", top="lazy_array", **LEAST) == 6


@pytest.mark.long
def test_lazy_array_of_the_paper(work):
    assert run(work, "paper", top="lazy_array") == 6


DEEP = {"rows": 2, "cols": 2, "depth": 32}


@pytest.mark.long
def test_lazy_array_of_longer_sums(work):
    """32 steps a tile: 16q is taken off first, an edge later."""
    assert run(work, "small", top="lazy_array", steps_log2=5, **DEEP) == 6


@pytest.mark.long
def test_lazy_array_of_longer_sums_of_the_paper(work):
    assert run(work, "paper", top="lazy_array", steps_log2=5, depth=32) == 6


LAZY_MUTATIONS = {
    "a sum too narrow": (
        "lazy_pe.v",
        "booth_rows #(.N(W), .D(D), .TO(A))",
        "booth_rows #(.N(W), .D(D), .TO(2*W))",
    ),
    "no eight times q": ("lazy_reduce.v", "less_first[R-1] ? whole", "1'b1 ? whole"),
    "no four times q": ("lazy_reduce.v", "less[W+n+1] ? given", "(n == 2 || less[W+n+1]) ? given"),
    "bank of the row before": ("lazy_reduce.v", "bank[4] ? q1 : q0", "bank[5] ? q1 : q0"),
    "first ignored": ("lazy_pe.v", "{(2*A){~first_out}}", "{(2*A){1'b1}}"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", LAZY_MUTATIONS)
def test_lazy_mutation_is_noticed(work, name):
    file, old, new = LAZY_MUTATIONS[name]
    folder = work / "mutants" / "lazy" / name.replace(" ", "_")
    files = benches.mutate(folder, benches.sources("lazy_array"), {file: [(old, new)]})
    with pytest.raises(AssertionError, match="failed; repeat with"):
        run(folder, "small", top="lazy_array", files=files, **LEAST)


@pytest.mark.long
def test_longer_sums_need_their_width(work):
    """Sums that hold 16 steps do not hold 32: the bench sees it."""
    with pytest.raises(AssertionError, match="failed; repeat with"):
        run(work, "small", top="lazy_array", **DEEP)
