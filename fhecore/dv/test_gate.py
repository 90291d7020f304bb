"""Gate level: the synthesised element's netlist, with cell models made from the liberty file, beside the
behavioural form and against sums of products (pe_pair.cpp). Not under cocotb: with VPI each of the 9,000
cells becomes a scope, and the model compiles for longer than this whole suite. Zero delay: function, not
timing (OpenSTA has that)."""

from __future__ import annotations

import itertools
import re
import shutil

import pytest

from fhecore.dv import benches, liberty_cells, test_equivalence

LIBRARY = """
library (small) {
  /* a comment ; { */
  cell (MAJ) { area : 1; pin (Y) { direction : output; function : "(!A * !B) + (!A * !C) + (!B * !C)";
    timing () { related_pin : "A"; values ("1, 2", "3, 4"); } }
    pin (A) { direction : input; } pin (B) { direction : input; } pin (C) { direction : input; } }
  cell (FF) { pin (Q) { direction : output; function : "IQN"; } pin (D) { direction : input; }
    pin (CLK) { direction : input; } ff (IQN,IQNN) { clocked_on : "CLK"; next_state : "!D"; } }
  cell (GATE) { pin (Q) { direction : output; state_function : "CLK & IQ"; }
    statetable ("CLK ENA", "IQ") { table : "x"; } }
}
"""


def evaluate(expression, **pins):
    text = re.sub(r"\b[A-Z]\w*\b", lambda m: str(int(pins[m[0]])), expression)
    return eval(re.sub(r"1'b([01])", r"\1", text)) & 1


@pytest.mark.parametrize(
    ("function", "meaning"),
    [
        ("(A * B * !C) + (!A)", lambda a, b, c: (a and b and not c) or not a),
        ("!A B + C", lambda a, b, c: (not a and b) or c),
        ("!(A + B) C", lambda a, b, c: not (a or b) and c),
        ("A | B&C", lambda a, b, c: a or (b and c)),
    ],
)
def test_functions_keep_their_meaning(function, meaning):
    expression = liberty_cells.expression(function)
    for a, b, c in itertools.product((False, True), repeat=3):
        assert evaluate(expression, A=a, B=b, C=c) == bool(meaning(a, b, c)), (expression, a, b, c)


@pytest.mark.parametrize("function", ["A ^ B", "A'", "A - B"])
def test_other_operators_are_refused(function):
    with pytest.raises(liberty_cells.LibertyError, match="expected names"):
        liberty_cells.expression(function)


def test_models_of_a_small_library(tmp_path):
    path = tmp_path / "small.lib"
    path.write_text(LIBRARY)
    text = liberty_cells.verilog(liberty_cells.read(path), {"MAJ", "FF"})
    assert "assign Y = ( ~ A & ~ B ) | ( ~ A & ~ C ) | ( ~ B & ~ C );" in text
    assert "always @(posedge CLK) IQN <= ~ D;" in text and "assign Q = IQN;" in text
    with pytest.raises(liberty_cells.LibertyError, match="no model of cells .'GATE'"):
        liberty_cells.verilog(liberty_cells.read(path), {"GATE"})


@pytest.mark.parametrize(
    "text", ["", "cell (A) { }", "library (x) { cell (y) { area ", "library (x) { stray }"]
)
def test_broken_libraries_are_refused(tmp_path, text):
    path = tmp_path / "broken.lib"
    path.write_text(text)
    with pytest.raises(liberty_cells.LibertyError):
        liberty_cells.read(path)


# -- the netlist ----------------------------------------------------------------------------------------


def element_files(work):
    """Netlist of the carry-save element at 32 bits and models of its cells. Skips when it cannot be made."""
    flow = pytest.importorskip("fhecore.syn.flow")
    from fhecore.syn import tools as syn_tools

    try:
        netlist, cells = flow.netlist("modmul_pe_cs", work=work / "gate" / "syn")
        library = syn_tools.find_liberty("gate-level simulation", None)
    except syn_tools.Skipped as reason:
        pytest.skip(str(reason))
    models = work / "gate" / "cells.v"
    models.write_text(liberty_cells.verilog(liberty_cells.read(library), set(cells)))
    return netlist, models


def run(work, netlist, models, name, steps):
    """Steps through the netlist and the behavioural form side by side, and tiles against their sums."""
    files = [*benches.sources("modmul_pe"), netlist, models]
    program = test_equivalence.build(work, name, files, 32, 1, ["-DNETLIST"])
    return test_equivalence.simulate(program, steps, 32)


@pytest.mark.long
def test_netlist(work):
    netlist, models = element_files(work)
    assert run(work, netlist, models, "gate", 500_000) >= 500_000


@pytest.mark.long
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_one_wrong_cell_is_noticed(work, place):
    """Sum and carry of one full adder swapped, at three places of the netlist."""
    netlist, models = element_files(work)
    copy = work / "gate" / f"wrong-{place}.v"
    shutil.copyfile(netlist, copy)
    text = copy.read_text()
    adders = list(re.finditer(r"FAx1_ASAP7_75t_R .*?;", text, re.DOTALL))
    assert adders, "no full adder in the netlist"
    found = adders[int(place * len(adders))]
    wrong = found[0].replace(".CON(", ".X(").replace(".SN(", ".CON(").replace(".X(", ".SN(")
    assert wrong != found[0]
    copy.write_text(text[: found.start()] + wrong + text[found.end() :])
    with pytest.raises(AssertionError, match="cycle"):
        run(work, copy, models, f"gate-wrong-{place}", 100_000)
