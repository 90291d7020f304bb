"""Verilog cell models for gate-level simulation, generated from function, ff and latch groups of liberty.

The library's own simulation models are not used: what is simulated is what synthesis and timing believe. Zero
delay, two-valued; cells that have a statetable (clock gates) are left out and must not be in a netlist.
usage: liberty_cells.py LIBRARY.lib[.gz] OUT.v
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fhecore.syn.liberty import Group, LibertyError, parse, read_text


def read(path: Path) -> Group:
    """The library group of a file."""
    return parse(read_text(path))


def expression(function: str) -> str:
    """A liberty function as a Verilog expression: ! negates, * & and blanks are AND, + | are OR. A prime
    after an operand and ^ (which binds differently in the two languages) are refused."""
    tokens = re.findall(r"\w+|[!()*&+|]", function)
    if "".join(tokens) != re.sub(r"\s", "", function):
        raise LibertyError(f"function {function!r}: expected names and ! ( ) * & + | only")
    out: list[str] = []
    for token in tokens:
        operand = token not in "*&+|)"
        if operand and out and (out[-1] not in ("&", "|", "(", "~")):
            out.append("&")  # a blank between operands is AND
        spelling = {"*": "&", "&": "&", "+": "|", "!": "~", "0": "1'b0", "1": "1'b1"}
        out.append(spelling.get(token, token))
    return " ".join(out)


def model(cell: Group) -> str | None:
    """Verilog module of a cell; None for one that has a statetable."""
    name = cell.args[0]
    if cell.all("statetable"):
        return None
    pins = [(pin.args[0], pin.attrs.get("direction", ""), pin) for pin in cell.all("pin")]
    inputs = [pin for pin, direction, _ in pins if direction == "input"]
    outputs = [(pin, group) for pin, direction, group in pins if direction == "output"]
    ports = [*(f"input {pin}" for pin in inputs), *(f"output {pin}" for pin, _ in outputs)]
    body: list[str] = []
    for group in cell.all("ff") + cell.all("latch"):
        body += _state(name, group)
    for pin, group in outputs:
        function = group.attrs.get("function")
        if function is None:
            raise LibertyError(f"cell {name}: output {pin} has no function")
        body.append(f"assign {pin} = {expression(function)};")
    lines = [f"module {name} ({', '.join(ports)});", *(f"    {line}" for line in body), "endmodule", ""]
    return "\n".join(lines)


def _state(cell: str, group: Group) -> list[str]:
    """A flip-flop or latch: its two state variables are complementary except for both clear and preset."""
    state, inverse = group.args
    attributes = group.attrs
    clear, preset = attributes.get("clear"), attributes.get("preset")
    forced = [(clear, 0), (preset, 1)]
    lines = [f"reg {state};", f"wire {inverse} = ~{state};"]
    if group.name == "latch":
        enable, data = expression(attributes["enable"]), expression(attributes["data_in"])
        action = f"if ({enable}) {state} = {data};"
        for condition, value in forced:
            if condition:
                action = f"if ({expression(condition)}) {state} = 1'b{value}; else {action}"
        return [*lines, f"always @* {action}"]
    clock = attributes["clocked_on"]
    edge = re.fullmatch(r"\s*(!?)\s*\(?\s*(\w+)\s*\)?\s*", clock)
    if edge is None:
        raise LibertyError(f"cell {cell}: clocked_on {clock!r} is not one pin")
    events = [f"{'negedge' if edge[1] else 'posedge'} {edge[2]}"]
    action = f"{state} <= {expression(attributes['next_state'])};"
    for condition, value in forced:
        if condition:
            lines.append(f"wire force{value} = {expression(condition)};")
            events.append(f"posedge force{value}")
            action = f"if (force{value}) {state} <= 1'b{value}; else {action}"
    return [*lines, f"always @({' or '.join(events)}) {action}"]


def verilog(library: Group, wanted: set[str] | None = None) -> str:
    """Models of all cells, or of those wanted. LibertyError names wanted cells without a model."""
    models = {}
    for cell in library.all("cell"):
        if wanted is None or cell.args[0] in wanted:
            text = model(cell)
            if text is not None:
                models[cell.args[0]] = text
    if wanted is not None and wanted - set(models):
        raise LibertyError(f"no model of cells {sorted(wanted - set(models))}")
    return "\n".join(models.values())


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    Path(arguments[1]).write_text(verilog(read(Path(arguments[0]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
