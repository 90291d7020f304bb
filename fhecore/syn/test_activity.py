"""Counts of what switches: a netlist whose changes can be told by hand, and what cannot be simulated."""

from __future__ import annotations

import pytest

from fhecore.syn import activity, tools

LIBRARY = """
library (small) {
  cell (AND) { area : 1; pin (Y) { direction : output; function : "A * B"; }
    pin (A) { direction : input; capacitance : 1.5; } pin (B) { direction : input; capacitance : 2; } }
  cell (FF) { pin (QN) { direction : output; function : "IQN"; }
    pin (D) { direction : input; capacitance : 0.5; } pin (CLK) { direction : input; capacitance : 0.25; }
    ff (IQN,IQNN) { clocked_on : "CLK"; next_state : "!D"; } }
}
"""
NETLIST = r"""
module top(clk, a, \\q );
  input clk;
  wire clk;
  input [1:0] a;
  output q;
  wire \state[0] ;
  assign \unused.name [0] = a[0];
  AND both (
    .A(a[0]),
    .B(a[1]),
    .Y(\state[0] )
  );
  FF \flop$1 (
    .CLK(clk),
    .D(\state[0] ),
    .QN(q)
  );
  AND fed (
    .A(q),
    .B(1'h1),
    .Y(loose)
  );
endmodule
"""


@pytest.fixture
def files(tmp_path):
    library, netlist = tmp_path / "small.lib", tmp_path / "top.v"
    library.write_text(LIBRARY)
    netlist.write_text(NETLIST.replace("\\\\", "\\"))
    return netlist, library


def test_changes_are_weighted_by_the_pins_on_a_net(files):
    run = activity.Run(activity.Netlist(*files), lanes=2)
    run.edge({"a": [0, 0]}, count=False)
    assert run.read("q") == [1, 1] and run.clock == 0.25
    run.edge({"a": [3, 1]}, count=True)  # lane 0: both bits, the AND, q falls; lane 1: one bit
    assert run.read("q") == [0, 1]
    first = 1.5 + 2 + 0.5 + 1.5  # a[0] and a[1] on a gate, its result on the flip-flop, q on a gate
    assert run.switched == pytest.approx((first + 1.5) / 2)
    run.edge({"a": [3, 1]}, count=True)
    assert run.switched == pytest.approx((first + 1.5) / 2)  # nothing changed


def test_what_cannot_be_simulated_is_refused(files):
    netlist, library = files
    text = netlist.read_text()
    netlist.write_text(text.replace(".D(\\state[0] )", ".D(nobody)"))
    with pytest.raises(tools.FlowError, match="1 nets are read and not driven"):
        activity.Netlist(netlist, library)
    netlist.write_text(text.replace("AND fed", "XOR fed"))
    with pytest.raises(tools.FlowError, match="no model of cells"):
        activity.Netlist(netlist, library)
