"""Timing graph of a mapped netlist: arrival, slew and slack of every net, recomputed in some 30 ms.

Same delay model as OpenSTA (table look-up, worst slew, ideal clock), used to guide sizing only.
Times in ps, loads in fF. A node is 2 * net + edge, edge 0 for rise.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fhecore.syn.liberty import Cell, Table

CLOCK_SLEW = 0.0
FAR = 1e6  # ps: slack of what no path limits


class Tables:
    """All tables of a library stacked for look-up. Axes double from entry to entry, as ASAP7's do."""

    def __init__(self) -> None:
        self.values: list[np.ndarray] = []
        self.base: list[tuple[float, float]] = []

    def add(self, table: Table) -> int:
        for axis in (table.slew, table.load):
            if len(axis) != 7 or not np.allclose(axis[1:] / axis[:-1], 2):
                raise ValueError(f"table axis {axis}: expected 7 entries, each twice the one before")
        self.values.append(table.values)
        self.base.append((table.slew[0], table.load[0]))
        return len(self.values) - 1

    def freeze(self) -> None:
        self.stack = np.stack(self.values).reshape(-1)
        self.axes = np.array(self.base)

    def look(self, index: np.ndarray, slew: np.ndarray, load: np.ndarray) -> np.ndarray:
        """Bilinear, extrapolated outside the axes."""
        parts = []
        for k, value in ((0, slew), (1, load)):
            unit = np.maximum(value, 1e-3) / self.axes[index, k]
            low = np.clip(np.floor(np.log2(unit)), 0, 5)
            step = np.exp2(low)
            parts.append((low.astype(np.int64), (np.maximum(value, 0) / self.axes[index, k] - step) / step))
        (i, u), (j, v) = parts
        at = index * 49 + i * 7 + j
        s = self.stack
        return (1 - u) * ((1 - v) * s[at] + v * s[at + 1]) + u * ((1 - v) * s[at + 7] + v * s[at + 8])


class Library:
    """Cells as numbers: arcs of a cell stand at arc0[cell] + k, in the same order within a family."""

    def __init__(self, cells: dict[str, Cell]) -> None:
        self.cells = list(cells.values())
        self.number = {c.name: i for i, c in enumerate(self.cells)}
        self.tables = Tables()
        self.arcs: list[list[tuple[str, int, str, int]]] = []
        arc0, delay, slew = [], [], []
        self.setup: dict[int, dict[str, tuple[int, int]]] = {}
        for number, cell in enumerate(self.cells):
            arc0.append(len(delay))
            arcs = sorted(cell.arcs, key=lambda a: (a.out, a.pin, a.pin_edge, a.out_edge))
            self.arcs.append([(a.pin, a.pin_edge, a.out, a.out_edge) for a in arcs])
            delay += [self.tables.add(a.delay) for a in arcs]
            slew += [self.tables.add(a.slew) for a in arcs]
            self.setup[number] = {
                p: (self.tables.add(r), self.tables.add(f)) for p, (r, f) in cell.setup.items()
            }
        self.tables.freeze()
        self.arc0, self.delay, self.slew = np.array(arc0), np.array(delay), np.array(slew)
        self.area = np.array([c.area for c in self.cells])


class Graph:
    """A flat netlist (yosys JSON) of library cells.

    join: pairs (input port, output port) that a neighbour of the same kind connects: the input is then
    driven, and the output loaded, as in an array of such elements. arrive: ps at which other inputs come.
    still: inputs that do not switch. clock: name of the clock port.
    """

    def __init__(
        self, path: Path, top: str, library: Library, *, join=(), arrive=60.0, still=(), clock="clk"
    ):
        self.lib = library
        module = json.loads(path.read_text())["modules"][top]
        alias = {}
        for source, sink in join:
            alias.update(zip(module["ports"][source]["bits"], module["ports"][sink]["bits"], strict=True))
        nets: dict[object, int] = {}

        def net(bit: object) -> int:
            return nets.setdefault(alias.get(bit, bit), len(nets))

        self.names = [n for n, c in module["cells"].items() if c["type"] in library.number]
        if len(self.names) != len(module["cells"]):
            bad = {c["type"] for c in module["cells"].values()} - set(library.number)
            raise ValueError(f"{top}: cells {sorted(bad)[:4]} are not in the library")
        cells = [module["cells"][n] for n in self.names]
        self.cell = np.array([library.number[c["type"]] for c in cells])
        pins = [{p: net(bits[0]) for p, bits in c["connections"].items()} for c in cells]
        self._pins(pins)
        self._edges(pins)
        count = len(nets)
        self.port_load = np.zeros(count)
        self.start = np.full(2 * count, -FAR)
        for name, port in module["ports"].items():
            for bit in port["bits"]:
                if port["direction"] == "output":
                    if bit not in alias.values() and isinstance(bit, int):
                        self.port_load[net(bit)] += 2.0
                elif bit not in alias and name != clock and name not in still:
                    self.start[2 * net(bit) : 2 * net(bit) + 2] = arrive
        self.count = count
        self.update()

    def _pins(self, pins: list[dict[str, int]]) -> None:
        """Input pins: gate, net and position, for loads."""
        rows = []
        for gate, (number, nets) in enumerate(zip(self.cell, pins, strict=True)):
            rows += [
                (gate, nets[p], k) for k, p in enumerate(sorted(self.lib.cells[number].caps)) if p in nets
            ]
        self.pin_gate, self.pin_net, self.pin_k = np.array(rows).T
        width = max(len(c.caps) for c in self.lib.cells)
        self.caps = np.zeros((len(self.lib.cells), width))
        for i, cell in enumerate(self.lib.cells):
            self.caps[i, : len(cell.caps)] = [cell.caps[p] for p in sorted(cell.caps)]

    def _edges(self, pins: list[dict[str, int]]) -> None:
        """Arcs in order of level; flip-flops launch at level 0 and end at their data pins."""
        lib, driver = self.lib, {}
        for gate, (number, nets) in enumerate(zip(self.cell, pins, strict=True)):
            for out in lib.cells[number].functions:
                if out in nets:
                    driver[nets[out]] = gate
        level: dict[int, int] = {}

        def depth(gate: int) -> int:
            todo = [gate]
            while todo:
                g = todo[-1]
                cell = lib.cells[self.cell[g]]
                before = [] if cell.clock else [driver[pins[g][p]] for p in cell.caps if pins[g][p] in driver]
                missing = [b for b in before if b not in level]
                if missing:
                    todo += missing
                    continue
                level[g] = 1 + max((level[b] for b in before), default=-1)
                todo.pop()
            return level[gate]

        rows, ends = [], []
        for gate, nets in enumerate(pins):
            cell = lib.cells[self.cell[gate]]
            for k, (pin, pin_edge, out, out_edge) in enumerate(lib.arcs[self.cell[gate]]):
                if out in nets:
                    source = -1 if pin == cell.clock else 2 * nets[pin] + pin_edge
                    rows.append((depth(gate), 2 * nets[out] + out_edge, source, gate, k))
            if cell.clock:
                ends += [(gate, nets[p], i) for i, p in enumerate(sorted(cell.setup))]
        rows.sort()
        levels, self.out, self.source, self.gate, self.k = np.array(rows).T
        cuts = [0, *(np.flatnonzero(np.diff(levels)) + 1), len(rows)]
        self.levels = []
        for a, b in zip(cuts[:-1], cuts[1:], strict=True):
            first = np.flatnonzero(np.r_[True, np.diff(self.out[a:b]) != 0])
            self.levels.append((slice(a, b), first, self.out[a:b][first]))
        self.end_gate, self.end_net, _ = np.array(ends).T
        self.setup = {n: next(iter(s.values())) for n, s in lib.setup.items() if s}

    def loads(self) -> np.ndarray:
        load = self.port_load.copy()
        np.add.at(load, self.pin_net, self.caps[self.cell[self.pin_gate], self.pin_k])
        return load

    def area(self) -> float:
        return float(self.lib.area[self.cell].sum())

    def update(self) -> None:
        """Arrival, slew, delay and the arrival that each node must meet for period 0: self.late."""
        lib, look = self.lib, self.lib.tables.look
        self.load = self.loads()
        self.arrival = self.start.copy()
        self.slew = np.where(self.start > -FAR, 20.0, CLOCK_SLEW)
        self.delay = np.empty(len(self.out))
        arc = lib.arc0[self.cell[self.gate]] + self.k
        for part, first, nodes in self.levels:
            source = self.source[part]
            clocked = source < 0
            slew_in = np.where(clocked, CLOCK_SLEW, self.slew[source])
            at = np.where(clocked, 0.0, self.arrival[source])
            load = self.load[self.out[part] // 2]
            self.delay[part] = look(lib.delay[arc[part]], slew_in, load)
            self.arrival[nodes] = np.maximum.reduceat(at + self.delay[part], first)
            self.slew[nodes] = np.maximum.reduceat(look(lib.slew[arc[part]], slew_in, load), first)
        required = np.full(2 * self.count, FAR)
        for edge in (0, 1):
            node = 2 * self.end_net + edge
            table = np.array([self.setup[n][edge] for n in self.cell[self.end_gate]])
            np.minimum.at(required, node, -look(table, self.slew[node], np.full(len(node), CLOCK_SLEW)))
        for part, _, _ in reversed(self.levels):
            real = self.source[part] >= 0
            np.minimum.at(
                required, self.source[part][real], (required[self.out[part]] - self.delay[part])[real]
            )
        self.late = self.arrival - required  # the period that the worst path through a node needs

    def period(self) -> float:
        return float(self.late.max())
