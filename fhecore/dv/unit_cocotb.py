"""cocotb bench of the wrapper; test_unit.py builds and starts it.

The bulk of random tiles is in the C++ bench (verilator_unit.cpp); this one drives the ports from Python and
compares with golden.py.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from fhecore import config
from fhecore.dv import fragments, golden, stimulus
from fhecore.dv.golden import Column, Matrix

SHAPE = config.load()[os.environ.get("FHECORE_SHAPE", "small")]
W, R, C, K, LANES = SHAPE.word_bits, SHAPE.rows, SHAPE.cols, SHAPE.depth, SHAPE.lanes
PTX = (R, C, K, LANES) == (16, 8, 16, 32)
INTERVAL = max(K, R, (R * K + K * C + R * C) // LANES)
Beats = list[list[int]]


def beats_of(matrix: Matrix) -> Beats:
    """Row-major words in beats: the order of every shape but 16 x 8 x 16."""
    words = [word for row in matrix for word in row]
    return [words[n : n + LANES] for n in range(0, len(words), LANES)]


def pack_a(matrix: Matrix) -> Beats:
    return fragments.pack_a(matrix) if PTX else beats_of(matrix)


def pack_b(matrix: Matrix) -> Beats:
    return fragments.pack_b(matrix) if PTX else beats_of(matrix)


def pack_d(matrix: Matrix) -> Beats:
    return fragments.pack_cd(matrix) if PTX else beats_of(matrix)


def pack_constants(columns: list[Column]) -> Beats:
    if PTX:
        return [fragments.encode_constants(columns)]
    high = [c.mu >> W | c.shift << 8 for c in columns]
    words = [*(c.shifted for c in columns), *(c.mu & ((1 << W) - 1) for c in columns), *high]
    words += [0] * (-len(words) % LANES)
    return [words[n : n + LANES] for n in range(0, len(words), LANES)]


@dataclass
class Result:
    tag: int
    fault: int
    beats: Beats
    edge: int = 0  # that took the last beat


class Bench:
    """Three channels, one queue each; outputs are read and inputs driven at falling edges."""

    def __init__(self, dut, name: str) -> None:
        self.dut = dut
        self.rng = stimulus.rng(name)
        self.now = 0
        self.willing = {"cmd": 1.0, "rf": 1.0, "res": 1.0}  # probability that a side is ready in a cycle
        self.commands: list[tuple[int, int, int, int]] = []
        self.beats: list[list[int]] = []
        self.expected: list[Result] = []
        self.finished: list[Result] = []
        self.accepted: list[int] = []  # edges that took a command
        self.got: Beats = []
        self.sets: dict[int, list[Column]] = {}
        self.tag = 0

    async def start(self) -> None:
        self.dut.clk.value = 0
        Clock(self.dut.clk, 2, unit="step").start()
        await FallingEdge(self.dut.clk)
        await self.reset()

    async def reset(self, edges: int = 2) -> None:
        for name in ("cmd_valid", "rf_valid", "res_ready"):
            getattr(self.dut, name).value = 0
        self.dut.rst.value = 1
        for _ in range(edges):
            await FallingEdge(self.dut.clk)
            self.now += 1
        self.dut.rst.value = 0
        self.commands, self.beats, self.expected, self.got, self.sets = [], [], [], [], {}
        self.accepted, self.finished = [], []

    def setc(self, slot: int, columns: list[Column]) -> None:
        self.sets[slot] = columns
        self.commands.append((1, slot, 0, 0))
        self.beats += pack_constants(columns)

    def fhec(self, slot: int, a: Matrix, b: Matrix, c: Matrix | None) -> None:
        self.tag = (self.tag + 1) % 256
        self.commands.append((0, slot, int(c is not None), self.tag))
        self.beats += pack_a(a) + pack_b(b) + (pack_d(c) if c is not None else [])
        columns = self.sets.get(slot)
        want = golden.tile(a, b, c, columns) if columns else golden.Tile([[0] * C] * R, (1 << C) - 1)
        self.expected.append(Result(self.tag, want.fault, pack_d(want.d)))

    def moduli(self) -> list[Column]:
        """Every column another kind of modulus: any size, small, 1, a power of two."""
        r = self.rng
        kinds = (lambda: stimulus.any_shifted(r, W), lambda: r.randint(2, 1 << r.randint(2, 28)), lambda: 1,
                 lambda: 1 << r.randint(1, W - 1))  # fmt: skip
        return [Column.of(kinds[n % 4](), W) for n in r.sample(range(C * 4), C)]

    def operand(self, rows: int, slot: int) -> list[list[int]]:
        """B or C: half of the words below q, half anything that survives the shift."""
        r = self.rng
        return [
            [r.randrange(c.q) if r.random() < 0.5 else r.getrandbits(W) >> c.shift for c in self.sets[slot]]
            for _ in range(rows)
        ]

    def tile(self, slot: int, use_c: bool = True) -> None:
        a = [[self.rng.getrandbits(W) for _ in range(K)] for _ in range(R)]
        self.fhec(slot, a, self.operand(K, slot), self.operand(R, slot) if use_c else None)

    async def cycle(self) -> None:
        dut, r = self.dut, self.rng
        cmd = bool(self.commands) and r.random() < self.willing["cmd"]
        rf = bool(self.beats) and r.random() < self.willing["rf"]
        res = r.random() < self.willing["res"]
        if cmd:
            dut.cmd_setc.value, dut.cmd_slot.value, dut.cmd_use_c.value, dut.cmd_tag.value = self.commands[0]
        dut.rf_data.value = sum(w << (n * W) for n, w in enumerate(self.beats[0])) if rf else 0
        dut.cmd_valid.value, dut.rf_valid.value, dut.res_ready.value = int(cmd), int(rf), int(res)
        # No ready or valid depends on an input of its own cycle, so they can be read before the edge.
        if cmd and int(dut.cmd_ready.value):
            self.commands.pop(0)
            self.accepted.append(self.now)
        if rf and int(dut.rf_ready.value):
            self.beats.pop(0)
        if res and int(dut.res_valid.value):
            self.take()
        await FallingEdge(dut.clk)
        self.now += 1

    def take(self) -> None:
        dut = self.dut
        assert self.expected, f"edge {self.now}: a result that nobody asked for"
        want, data = self.expected[0], int(dut.res_data.value)
        assert int(dut.res_tag.value) == want.tag
        assert int(dut.res_fault.value) == want.fault, f"tile {want.tag}: fault {int(dut.res_fault.value):b}"
        beat = [data >> (n * W) & ((1 << W) - 1) for n in range(LANES)]
        assert beat == want.beats[len(self.got)], f"tile {want.tag}, beat {len(self.got)}"
        self.got.append(beat)
        assert int(dut.res_last.value) == int(len(self.got) == len(want.beats))
        if len(self.got) == len(want.beats):
            want.edge, self.got = self.now, []
            self.finished.append(self.expected.pop(0))

    async def drain(self) -> None:
        for _ in range(20000):
            if not (self.commands or self.beats or self.expected):
                break
            await self.cycle()
        assert not self.expected, f"{len(self.expected)} results are missing"
        for _ in range(3):
            await self.cycle()


async def begin(dut, name: str) -> Bench:
    bench = Bench(dut, name)
    await bench.start()
    return bench


@cocotb.test()
async def latency(dut):
    """One tile on an idle unit: from the edge of the command to that of the last beat, with and without C."""
    for use_c in (True, False):
        bench = await begin(dut, f"latency {use_c}")
        bench.setc(0, bench.moduli())
        await bench.drain()
        bench.tile(0, use_c)
        await bench.drain()
        operands = (R * K + K * C + (R * C if use_c else 0)) // LANES
        assert bench.finished[0].edge - bench.accepted[-1] == operands + SHAPE.latency + 4


@cocotb.test()
async def back_to_back(dut):
    """Tiles of two warps in turn, columns of mixed moduli: one every INTERVAL edges (16 for the paper's)."""
    bench = await begin(dut, "back to back")
    for slot in range(2):
        bench.setc(slot, bench.moduli())
    await bench.drain()
    for n in range(8):
        bench.tile(n % 2)
    await bench.drain()
    edges = [result.edge for result in bench.finished]
    assert {later - edge for edge, later in zip(edges, edges[1:], strict=False)} == {INTERVAL}


@cocotb.test()
async def bubbles(dut):
    """Reluctant sides of every channel, constants renewed between tiles, all warps' slots."""
    bench = await begin(dut, "bubbles")
    for _ in range(16):
        slot = bench.rng.randrange(SHAPE.warp_slots)
        if slot not in bench.sets or bench.rng.random() < 0.4:
            bench.setc(slot, bench.moduli())
        bench.tile(slot, bench.rng.random() < 0.7)
        bench.willing = {name: bench.rng.choice((1.0, 0.5, 0.1)) for name in bench.willing}
        for _ in range(20):
            await bench.cycle()
    await bench.drain()


@cocotb.test()
async def faults(dut):
    """Refused constants, words that lose bits in the shift, a slot that was never set; then a clean tile."""
    bench = await begin(dut, "faults")
    good = bench.moduli()
    bench.fhec(1, [[1] * K for _ in range(R)], [[1] * C for _ in range(K)], None)
    bad = list(good)
    bad[C - 1] = Column(0, 0, 0, W)
    bench.setc(0, bad)
    bench.fhec(0, [[3] * K for _ in range(R)], [[0] * C for _ in range(K)], None)
    small = list(good)
    small[0] = Column.of(17, W)
    bench.setc(2, small)
    for where in ("b", "c"):
        b, c = bench.operand(K, 2), bench.operand(R, 2)
        (b if where == "b" else c)[-1][0] = 1 << (W - small[0].shift)
        bench.fhec(2, [[5] * K for _ in range(R)], b, c)
    bench.tile(2)
    await bench.drain()
    assert [result.fault for result in bench.finished] == [(1 << C) - 1, 1 << (C - 1), 1, 1, 0]


@cocotb.test()
async def reset_in_flight(dut):
    """Reset of one edge at every moment of the first two tiles: no stale result, no stale constants."""
    bench = await begin(dut, "reset")
    for moment in range(1, 3 * INTERVAL + SHAPE.latency + 8):
        bench.setc(0, bench.moduli())
        for _ in range(4):
            bench.tile(0)
        for _ in range(moment):
            await bench.cycle()
        await bench.reset(edges=1)
        bench.fhec(0, [[1] * K for _ in range(R)], [[1] * C for _ in range(K)], None)
        bench.setc(0, bench.moduli())
        bench.tile(0)
        await bench.drain()
        assert bench.finished[0].fault == (1 << C) - 1
