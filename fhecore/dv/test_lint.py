"""Verilator -Wall on the RTL, in every configuration; waivers with their reasons are in rtl/waivers.vlt."""

from __future__ import annotations

import subprocess

import pytest

from fhecore import config
from fhecore.dv import tools

SHAPES = config.load()
WAIVERS = tools.RTL / "waivers.vlt"


def lint(work, arguments, waivers=True):
    tool = tools.verilator(work)
    if tool.path is None:
        pytest.skip(tool.reason)
    command = [str(tool.path), "--lint-only", "-Wall", "--language", "1364-2005", f"-I{tools.RTL}"]
    command += [str(WAIVERS)] * waivers + arguments
    return subprocess.run(command, capture_output=True, text=True, env=tools.environment(work))


def parameters(shape):
    return {macro: getattr(shape, field) for macro, field in config.MACROS.items()}


@pytest.mark.parametrize("name", ["paper", "small"])
def test_unit(work, name):
    arguments = [f"-G{k}={v}" for k, v in parameters(SHAPES[name]).items()]
    done = lint(work, [*arguments, str(tools.RTL / "fhecore.v")])
    assert done.returncode == 0, done.stderr


def test_unit_of_carry_save_elements(work):
    """The least array, and equations instead of cells: 16 x 8 of the cells take Verilator beyond 11 GB."""
    values = {"R": 2, "C": 2, "K": 2, "LANES": 2, "SLOTS": 2, "CARRY_SAVE": 1, "CELLS": 0}
    done = lint(work, [f"-G{k}={v}" for k, v in values.items()] + [str(tools.RTL / "fhecore.v")])
    assert done.returncode == 0, done.stderr


# K > R, K < R, several beats of constants, one beat of everything: paths that generate blocks choose.
ODD = [
    {"R": 2, "C": 4, "K": 4, "LANES": 8, "SLOTS": 2},
    {"R": 4, "C": 2, "K": 2, "LANES": 4, "SLOTS": 2},
    {"W": 16, "R": 2, "C": 2, "K": 2, "LANES": 2, "SLOTS": 2},
    {"R": 8, "C": 4, "K": 8, "LANES": 32, "SLOTS": 8},
]


@pytest.mark.parametrize("values", ODD, ids=lambda v: "x".join(str(v[k]) for k in "RCK"))
def test_odd_shapes(work, values):
    done = lint(work, [f"-G{k}={v}" for k, v in values.items()] + [str(tools.RTL / "fhecore.v")])
    assert done.returncode == 0, done.stderr


# What the unit refuses, with the name of the module that does not exist for it.
REFUSED = [
    ({"W": 15}, "fhecore_needs_w_of_16_to_32"),
    ({"W": 33}, "fhecore_needs_w_of_16_to_32"),
    ({"SLOTS": 12}, "fhecore_needs_slots_a_power_of_two"),
    ({"SLOTS": 1}, "fhecore_needs_slots_a_power_of_two"),
    ({"LANES": 24}, "fhecore_needs_lanes_that_divide"),
]


@pytest.mark.parametrize(("values", "module"), REFUSED, ids=lambda v: str(v))
def test_impossible_parameters_are_refused(work, values, module):
    shape = {**parameters(SHAPES["small"]), **values}
    done = lint(work, [f"-G{k}={v}" for k, v in shape.items()] + [str(tools.RTL / "fhecore.v")])
    assert done.returncode != 0 and module in done.stderr, done.stderr


# Where cells are many, in the least shape, and with equations for cells; tensor_pe with the one around it.
LEAST = {
    "lazy_array": {"R": 2, "C": 2, "CELLS": 0},
    "tensor_fma": {"E": 5, "M": 10, "EA": 8, "MA": 23},
    "tensor_pe_fhe": {"CELLS": 0},
}
TOPS = [path.stem for path in sorted(tools.RTL.glob("*.v")) if path.stem not in (*LEAST, "tensor_pe")]


@pytest.mark.parametrize("top", TOPS)
def test_module_alone(work, top):
    """With its default parameters: nothing depends on how the unit instantiates it."""
    done = lint(work, ["--top-module", top, str(tools.RTL / f"{top}.v")])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("top", LEAST)
def test_module_alone_in_its_least_shape(work, top):
    parameters = [f"-G{name}={value}" for name, value in LEAST[top].items()]
    done = lint(work, ["--top-module", top, *parameters, str(tools.RTL / f"{top}.v")])
    assert done.returncode == 0, done.stderr


def test_array_of_the_formal_shape(work):
    shape = SHAPES["formal"]
    values = {"W": shape.word_bits, "R": shape.rows, "C": shape.cols}
    done = lint(work, [f"-G{k}={v}" for k, v in values.items()] + [str(tools.RTL / "fhecore_array.v")])
    assert done.returncode == 0, done.stderr


def test_lint_is_not_blind(work):
    """Without the waivers it must complain about what they name."""
    done = lint(work, [str(tools.RTL / "fhecore.v")], waivers=False)
    assert done.returncode != 0 and "UNUSEDSIGNAL" in done.stderr
