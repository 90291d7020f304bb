"""Gate sizing after mapping: least area at a given period, or the least period.

Logic synthesis cannot see through the full-adder cells and so sizes for the wrong paths; this pass sees the
whole netlist. Greedy, after TILOS (Fishburn and Dunlop, 1985), many gates a round: gates on late paths grow
where that shortens the path most per area, gates with time to spare shrink. Functions and wiring stay; only
the drive strength in a cell's name changes.
"""

from __future__ import annotations

import fnmatch

import numpy as np

from fhecore.syn.graph import Graph
from fhecore.syn.liberty import DONT_USE


def families(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Cell number of the next larger and the next smaller drop-in, or -1. Ordered by area, then drive (pin
    capacitance)."""
    lib = graph.lib
    groups: dict[tuple, list[int]] = {}
    for number, cell in enumerate(lib.cells):
        if not any(fnmatch.fnmatch(cell.name, p) for p in DONT_USE):
            groups.setdefault((cell.family, len(lib.arcs[number])), []).append(number)
    larger, smaller = np.full(len(lib.cells), -1), np.full(len(lib.cells), -1)
    for members in groups.values():
        members.sort(key=lambda n: (lib.area[n], sum(lib.cells[n].caps.values())))
        larger[members[:-1]] = members[1:]
        smaller[members[1:]] = members[:-1]
    return larger, smaller


class Sizer:
    def __init__(self, graph: Graph) -> None:
        self.g = graph
        self.larger, self.smaller = families(graph)

    def effect(self, to: np.ndarray, period: float, window: float) -> np.ndarray:
        """Estimated change of the latest path through each gate, ps, if it became cell to[gate] (-1: none).
        Counts its own arcs and the slow-down of what drives it; ignores arcs with slack above `window`."""
        g, lib = self.g, self.g.lib
        look = lib.tables.look
        use = to[g.gate] >= 0
        gate, out, k, source = g.gate[use], g.out[use], g.k[use], g.source[use]
        slew_in = np.where(source < 0, 0.0, g.slew[source])
        load = g.load[out // 2]
        new = look(lib.delay[lib.arc0[to[gate]] + k], slew_in, load) - g.delay[use]
        # A sharper edge also helps the gates after it; a quarter of the change of slew is typical here.
        arc_new, arc_old = lib.arc0[to[gate]] + k, lib.arc0[g.cell[gate]] + k
        new += 0.25 * (look(lib.slew[arc_new], slew_in, load) - look(lib.slew[arc_old], slew_in, load))
        at = np.where(source < 0, 0.0, g.arrival[source])
        late = at + g.delay[use] + (g.late[out] - g.arrival[out])
        near = late > period - window
        change = np.full(len(g.cell), -np.inf)
        np.maximum.at(change, gate[near], new[near])
        change[np.isneginf(change)] = 0.0
        # Drivers: slope of their delay over load.
        arc = lib.arc0[g.cell[g.gate]] + g.k
        all_slew = np.where(g.source < 0, 0.0, g.slew[g.source])
        slope = look(lib.delay[arc], all_slew, g.load[g.out // 2] + 1.0) - g.delay
        node_slope = np.zeros(2 * g.count)
        np.maximum.at(node_slope, g.out, slope)
        net_late = np.maximum(g.late[0::2], g.late[1::2])
        net_slope = np.maximum(node_slope[0::2], node_slope[1::2]) * (net_late > period - window)
        swap = to[g.pin_gate] >= 0
        pin_gate, pin_k = g.pin_gate[swap], g.pin_k[swap]
        extra = g.caps[to[pin_gate], pin_k] - g.caps[g.cell[pin_gate], pin_k]
        cost = np.zeros(len(g.cell))
        np.maximum.at(cost, pin_gate, 1.25 * extra * net_slope[g.pin_net[swap]])
        if (extra < 0).any():
            relief = np.zeros(len(g.cell))
            np.minimum.at(relief, pin_gate, extra * net_slope[g.pin_net[swap]])
            cost += relief
        return change + cost

    def gate_late(self) -> np.ndarray:
        late = np.full(len(self.g.cell), -np.inf)
        np.maximum.at(late, self.g.gate, self.g.late[self.g.out])
        return late

    def cost(self, period: float) -> float:
        """ps by which endpoints miss the period, worst counted most."""
        g = self.g
        late = np.maximum(g.late[2 * g.end_net], g.late[2 * g.end_net + 1])
        miss = np.maximum(late - period, 0)
        return float(miss.sum() + 50 * miss.max())

    def grow(self, period: float, rounds: int = 600) -> None:
        """Larger cells on the latest paths until the period is met or nothing helps."""
        g = self.g
        share, idle = 0.10, 0
        resting = np.zeros(len(g.cell), dtype=int)
        for turn in range(rounds):
            worst = g.period()
            if worst <= period or idle > 30:
                return
            floor = max(period, 0.97 * worst)
            to = self.larger[g.cell]
            step2 = np.where(to >= 0, self.larger[to], -1)
            gain = -self.effect(to, worst, worst - floor)
            gain2 = -self.effect(step2, worst, worst - floor)
            two = (step2 >= 0) & (gain2 > 1.5 * np.maximum(gain, 0))
            to, gain = np.where(two, step2, to), np.where(two, gain2, gain)
            able = (to >= 0) & (gain > 0.05) & (self.gate_late() > floor) & (resting <= turn)
            chosen = np.flatnonzero(able)
            if not len(chosen):
                return
            price = np.maximum(g.lib.area[to[chosen]] - g.lib.area[g.cell[chosen]], 0.01)
            chosen = chosen[np.argsort(-gain[chosen] / price)][: max(1, int(share * len(chosen)))]
            old, before = g.cell[chosen].copy(), self.cost(floor)
            g.cell[chosen] = to[chosen]
            g.update()
            if self.cost(floor) < before:
                idle, share = 0, min(0.2, share * 1.3)
            else:
                g.cell[chosen] = old
                g.update()
                resting[chosen] = turn + 10
                share, idle = max(0.01, share / 2), idle + 1

    def shrink(self, period: float, rounds: int = 60) -> None:
        """Smaller cells where slack allows; the period is kept."""
        g = self.g
        limit = max(period, g.period())
        share, resting = 0.3, np.zeros(len(g.cell), dtype=int)
        for turn in range(rounds):
            to = self.smaller[g.cell]
            loss = self.effect(to, limit, 1e9)
            slack = limit - self.gate_late()
            able = (to >= 0) & (loss < 0.35 * slack) & (resting <= turn)
            chosen = np.flatnonzero(able)
            if not len(chosen):
                return
            saved = g.lib.area[g.cell[chosen]] - g.lib.area[to[chosen]] + 1e-3
            order = np.argsort(np.maximum(loss[chosen], 0) / slack[chosen] / saved)
            chosen = chosen[order][: max(1, int(share * len(chosen)))]
            old = g.cell[chosen].copy()
            g.cell[chosen] = to[chosen]
            g.update()
            if g.period() > limit + 1e-6:
                g.cell[chosen] = old
                g.update()
                resting[chosen] = turn + 8
                share = max(0.02, share / 2)

    def run(self, period: float) -> None:
        """Meets `period` with little area where it can, else comes as near as it can. Goes there in steps of
        3 %: from far away the greedy moves spend themselves on paths that do not matter in the end."""
        target = max(period, 0.93 * self.g.period())
        while True:
            for _ in range(3):  # giving back area opens moves that were blocked
                self.shrink(target)
                self.grow(target)
            self.shrink(target)
            if target == period or self.g.period() > target + 2:
                return
            target = max(period, 0.97 * target)
