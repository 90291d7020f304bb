"""Reader of liberty files: groups (for dv/liberty_cells.py, too) and the non-linear delay tables that the
sizer (sizing.py) needs. OpenSTA, not this reader, gives the times that are reported.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

TOKEN = re.compile(r'/\*.*?\*/|\\\n|"[^"]*"|[{}();:,]|[^\s{}();:,"]+', re.S)

# Hold buffers and clock inverters never serve in data paths; DFFHQx4 is a quarter larger than DFFHQNx1, whose
# inverted output costs nothing in front of logic.
DONT_USE = ("HB*", "CKINVDC*", "DFFHQx4*", "DFFLQ*", "DFFASRHQN*", "DHL*", "DLL*", "SDF*", "ICG*", "TIE*")


class LibertyError(ValueError):
    """The text is no liberty file, or a cell lacks what is needed; the message names it."""


@dataclass
class Group:
    """`name (args) { attributes; groups }`."""

    name: str
    args: list[str]
    attrs: dict[str, str] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def all(self, name: str) -> list[Group]:
        return [g for g in self.groups if g.name == name]


@dataclass(frozen=True)
class Table:
    """Values over slew (rows, ps) and load (columns, fF) or clock slew (ps)."""

    slew: np.ndarray  # [7]
    load: np.ndarray  # [7]
    values: np.ndarray  # [7, 7]


@dataclass(frozen=True)
class Arc:
    """Delay from an edge of `pin` to an edge of `out`; edges: 0 rise, 1 fall."""

    pin: str
    pin_edge: int
    out: str
    out_edge: int
    delay: Table
    slew: Table


@dataclass
class Cell:
    name: str
    area: float  # um2
    caps: dict[str, float]  # input pin -> fF
    functions: dict[str, str]  # output pin -> liberty function
    arcs: list[Arc]
    setup: dict[str, tuple[Table, Table]]  # data pin -> tables for its rise and fall
    clock: str | None  # clock pin of a flip-flop
    next_state: str | None

    @property
    def family(self) -> tuple:
        """Cells of one family are drop-in replacements of each other."""
        return tuple(sorted(self.caps)), tuple(sorted(self.functions.items())), self.next_state


def read_text(path: Path) -> str:
    """Text of a liberty file, gzip or plain. OSError when it cannot be read."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def parse(text: str) -> Group:
    """The library group. LibertyError where the text is none, or ends early."""
    tokens = [t for t in TOKEN.findall(text) if not t.startswith(("/*", "\\"))]
    root = Group("", [])
    stack, i = [root], 0

    def find(mark: str) -> int:
        try:
            return tokens.index(mark, i)
        except ValueError:
            raise LibertyError(f"token {i}, {tokens[i]!r}: no {mark!r} follows") from None

    while i < len(tokens):
        name, after = tokens[i], tokens[i + 1] if i + 1 < len(tokens) else ""
        if name == "}" and len(stack) > 1:
            stack.pop()
            i += 1
        elif name == ";":
            i += 1
        elif after == ":":
            end = find(";")
            stack[-1].attrs[name] = " ".join(tokens[i + 2 : end]).strip('"')
            i = end + 1
        elif after == "(":
            end = find(")")
            args = [t.strip('"') for t in tokens[i + 2 : end] if t != ","]
            if end + 1 < len(tokens) and tokens[end + 1] == "{":
                group = Group(name, args)
                stack[-1].groups.append(group)
                stack.append(group)
                i = end + 2
            else:
                stack[-1].attrs[name] = ",".join(args)
                i = end + 1
        else:
            raise LibertyError(f"token {i}, {name!r}: expected an attribute or a group")
    if len(stack) > 1:
        raise LibertyError(f"group {stack[-1].name!r} does not end")
    libraries = root.all("library")
    if not libraries:
        raise LibertyError("no library group")
    return libraries[0]


def _numbers(text: str) -> np.ndarray:
    return np.array([float(x) for x in text.replace(",", " ").split()])


def _table(group: Group) -> Table:
    rows, cols = _numbers(group.attrs["index_1"]), _numbers(group.attrs["index_2"])
    return Table(rows, cols, _numbers(group.attrs["values"]).reshape(len(rows), len(cols)))


# timing_sense or timing_type -> pairs (edge of the input, edge of the output)
EDGES = {
    "positive_unate": ((0, 0), (1, 1)),
    "negative_unate": ((0, 1), (1, 0)),
    "non_unate": ((0, 0), (1, 0), (0, 1), (1, 1)),
    "rising_edge": ((0, 0), (0, 1)),
}


def _cell(group: Group) -> Cell:
    cell = Cell(group.args[0], float(group.attrs["area"]), {}, {}, [], {}, None, None)
    for ff in group.all("ff"):
        cell.next_state = ff.attrs["next_state"]
    for pin in group.all("pin"):
        name = pin.args[0]
        if pin.attrs["direction"] == "input":
            cell.caps[name] = float(pin.attrs["capacitance"])
            if pin.attrs.get("clock") == "true" and group.all("ff"):
                cell.clock = name
        else:
            cell.functions[name] = pin.attrs.get("function", "")
        for timing in pin.all("timing"):
            kind = timing.attrs.get("timing_type", "combinational")
            tables = {g.name: g for g in timing.groups if "values" in g.attrs}
            if kind == "setup_rising":
                cell.setup[name] = (_table(tables["rise_constraint"]), _table(tables["fall_constraint"]))
            if kind not in ("combinational", "rising_edge") or not tables:
                continue
            edges = EDGES[kind if kind == "rising_edge" else timing.attrs["timing_sense"]]
            for pin_edge, out_edge in edges:
                word = ("rise", "fall")[out_edge]
                delay, slew = _table(tables[f"cell_{word}"]), _table(tables[f"{word}_transition"])
                cell.arcs.append(Arc(timing.attrs["related_pin"], pin_edge, name, out_edge, delay, slew))
    return cell


def cells(text: str) -> dict[str, Cell]:
    """All cells of a library by name. LibertyError when the text does not parse."""
    return {g.args[0]: _cell(g) for g in parse(text).all("cell")}
