"""Systolic array: cocotb on Verilator."""

from __future__ import annotations

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


def run(work, name, carry_save=0):
    benches.need_cocotb(work)
    shape = config.load()[name]
    parameters = {"W": shape.word_bits, "R": shape.rows, "C": shape.cols}
    if carry_save:
        parameters |= {"CARRY_SAVE": 1, "CELLS": 0}
    files = benches.sources("fhecore_array")
    env = {"FHECORE_SHAPE": name}
    return benches.simulate(work, "array_cocotb", "fhecore_array", files, parameters, env, PORTS)


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
