"""Power-up in four-valued simulation (Yosys): noise in registers must not reach what steers the unit. In the
two-valued Verilator these faults do not show: a bank whose noise equals a set may as well be used for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fhecore.dv import benches, tools
from fhecore.dv.formal import engine

HERE = Path(__file__).resolve().parent
MUTATIONS = {
    "bank used before it is loaded": ("hit <= loaded & {", "hit <= {"),
    "slot never set reads noise": ("{(ENTRY-C){1'b0}}}", "table_sets[slot][ENTRY-C-1:0]}"),
}


def simulate(file: Path, folder: Path) -> subprocess.CompletedProcess:
    folder.mkdir(parents=True, exist_ok=True)
    commands = [
        f"read_verilog -sv {HERE / 'unknowns.v'}",
        f"read_verilog {file}",
        "hierarchy -check -top unknowns",
        "proc",
        "flatten",
        "async2sync",
        "chformal -lower",
        f"sim -clock clk -reset rst -rstlen 2 -n 48 -assert -vcd {folder / 'trace.vcd'}",
    ]
    child = HERE / "formal" / "yosys_child.py"
    return subprocess.run([sys.executable, str(child), *commands], capture_output=True, text=True)


@pytest.fixture(autouse=True)
def _tools():
    reason = engine.missing()
    if reason:
        pytest.skip(reason)


def test_no_unknown_after_reset(work):
    done = simulate(tools.RTL / "fhecore_constants.v", work / "unknowns")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_noticed(work, name):
    folder = work / "unknowns" / name.replace(" ", "_")
    file = tools.RTL / "fhecore_constants.v"
    (copy,) = benches.mutate(folder, [file], {file.name: [MUTATIONS[name]]})
    done = simulate(copy, folder)
    assert done.returncode != 0 and "assert" in (done.stdout + done.stderr).lower(), done.stdout + done.stderr
