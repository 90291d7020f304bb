"""Verilog cell models for gate-level simulation, generated from function, ff and latch groups of liberty.

The library's own simulation models are not used: what is simulated is what synthesis and timing believe. Zero
delay, two-valued; cells that have a statetable (clock gates) are left out and must not be in a netlist.
usage: liberty_cells.py LIBRARY.lib[.gz] OUT.v
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TOKEN = re.compile(r'/\*.*?\*/|\\\n|"([^"]*)"|([{}();:,])|([^\s{}();:,"]+)', re.DOTALL)


class LibertyError(ValueError):
    """The file is not liberty, or a cell cannot be modelled; the text names the cell and what is missing."""


@dataclass
class Group:
    """`kind (names) { attributes; groups }`."""

    kind: str
    names: list[str]
    attributes: dict[str, str] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def children(self, kind: str) -> list[Group]:
        return [group for group in self.groups if group.kind == kind]


def read(path: Path) -> Group:
    """The library group of a file."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    tokens = _tokens(text)
    group = _statement(next(tokens, ""), tokens)
    if not isinstance(group, Group) or group.kind != "library":
        raise LibertyError(f"{path}: expected a library group at the start")
    return group


def _tokens(text: str) -> Iterator[str]:
    for found in TOKEN.finditer(text):
        string, mark, word = found.groups()
        if string is not None:
            yield string
        elif mark or word:
            yield mark or word


def _statement(name: str, tokens: Iterator[str]) -> Group | tuple[str, str]:
    """One attribute or group that starts with `name`."""
    mark = next(tokens, "")
    if mark == ":":
        value = []
        for token in tokens:
            if token == ";":
                return name, " ".join(value)
            value.append(token)
    if mark == "(":
        names = []
        for token in tokens:
            if token == ")":
                break
            if token != ",":
                names.append(token)
        after = next(tokens, "")
        if after == ";":
            return name, ", ".join(names)
        if after == "{":
            group = Group(name, names)
            for token in tokens:
                if token == "}":
                    return group
                if token == ";":
                    continue
                part = _statement(token, tokens)
                if isinstance(part, Group):
                    group.groups.append(part)
                else:
                    group.attributes[part[0]] = part[1]
    raise LibertyError(f"statement {name!r} does not end as an attribute or a group")


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
    name = cell.names[0]
    if cell.children("statetable"):
        return None
    pins = [(pin.names[0], pin.attributes.get("direction", ""), pin) for pin in cell.children("pin")]
    inputs = [pin for pin, direction, _ in pins if direction == "input"]
    outputs = [(pin, group) for pin, direction, group in pins if direction == "output"]
    ports = [*(f"input {pin}" for pin in inputs), *(f"output {pin}" for pin, _ in outputs)]
    body: list[str] = []
    for group in cell.children("ff") + cell.children("latch"):
        body += _state(name, group)
    for pin, group in outputs:
        function = group.attributes.get("function")
        if function is None:
            raise LibertyError(f"cell {name}: output {pin} has no function")
        body.append(f"assign {pin} = {expression(function)};")
    lines = [f"module {name} ({', '.join(ports)});", *(f"    {line}" for line in body), "endmodule", ""]
    return "\n".join(lines)


def _state(cell: str, group: Group) -> list[str]:
    """A flip-flop or latch: its two state variables are complementary except for both clear and preset."""
    state, inverse = group.names
    attributes = group.attributes
    clear, preset = attributes.get("clear"), attributes.get("preset")
    forced = [(clear, 0), (preset, 1)]
    lines = [f"reg {state};", f"wire {inverse} = ~{state};"]
    if group.kind == "latch":
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
    for cell in library.children("cell"):
        if wanted is None or cell.names[0] in wanted:
            text = model(cell)
            if text is not None:
                models[cell.names[0]] = text
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
