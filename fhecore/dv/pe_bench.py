"""cocotb bench of the processing element; test_pe.py builds and starts it.

Every output is compared after every edge with the cycle model, every finished tile with the sum of its
products. Inputs change at the falling edge, so outputs are stable when read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from fhecore.dv import golden, stimulus
from fhecore.dv.coverage import Coverage
from fhecore.dv.golden import Column
from fhecore.dv.pe_coverage import BINS, observe
from fhecore.dv.pe_model import LEVELS, Element, Inputs, Outputs

WIDTH = int(os.environ.get("FHECORE_PE_WIDTH", "32"))
SCALE = int(os.environ.get("FHECORE_PE_SCALE", "1"))  # of the random parts
COVERAGE = Coverage(os.environ.get("FHECORE_PE_NAME", "pe"), BINS)
TOP = (1 << WIDTH) - 1


@dataclass
class Tile:
    """One tile: steps of (a, b), c, constants, idle cycles before each step."""

    steps: list[tuple[int, int]]
    c: int
    column: Column
    gaps: list[int] = field(default_factory=list)


class Bench:
    """Drives one element and checks it."""

    def __init__(self, dut, name: str) -> None:
        self.dut = dut
        self.rng = stimulus.rng(name)
        self.model = Element(WIDTH)
        first = Column.of(TOP, WIDTH)
        self.columns = [first, first]
        self.bank = 0
        self.now = 0
        self.expected_results: list[tuple[int, int]] = []  # (cycle in which done is 1, value)
        self.results = 0
        self.tally: dict[str, int] = {}

    async def start(self) -> None:
        Clock(self.dut.clk, 2, unit="step").start()
        await FallingEdge(self.dut.clk)
        self.load(0, self.columns[0])
        self.load(1, self.columns[1])
        for _ in range(2):
            await self.cycle(Inputs(rst=True))

    def load(self, bank: int, column: Column) -> None:
        """Set a bank's constants. A bank with steps in flight is a fault of the bench."""
        assert not self.model.in_flight(bank), "bench: bank rewritten while in use"
        self.columns[bank] = column
        (self.dut.q1 if bank else self.dut.q0).value = column.shifted
        (self.dut.mu1 if bank else self.dut.mu0).value = column.mu

    async def cycle(self, given: Inputs) -> None:
        """Apply inputs at the falling edge, let the rising edge pass, compare at the next falling edge."""
        d = self.dut
        d.rst.value, d.valid_in.value = int(given.rst), int(given.valid)
        d.first_in.value, d.last_in.value, d.bank_in.value = int(given.first), int(given.last), given.bank
        d.a_in.value, d.b_in.value, d.c_in.value = given.a, given.b, given.c
        observe(COVERAGE, self.model, given, TOP, (self.columns[0], self.columns[1]))
        want = self.model.tick(given, (self.columns[0], self.columns[1]))
        await FallingEdge(d.clk)
        self.now += 1
        self.compare(want)

    def compare(self, want: Outputs) -> None:
        d = self.dut
        pairs = (
            ("valid_out", d.valid_out, want.valid),
            ("done", d.done, want.done),
            ("a_out", d.a_out, want.a),
            ("b_out", d.b_out, want.b),
            ("first_out", d.first_out, want.first),
            ("last_out", d.last_out, want.last),
            ("bank_out", d.bank_out, want.bank),
            ("acc", d.acc, want.acc),
        )
        for name, handle, value in pairs:
            if value is not None:
                got = int(handle.value)
                assert got == value, f"cycle {self.now}: {name} = {got:#x}, expected {int(value):#x}"
        if want.done:
            cycle, value = self.expected_results.pop(0)
            assert (self.now, int(d.acc.value)) == (cycle, value), f"result due in cycle {cycle}: {value:#x}"
            self.results += 1

    def idle(self) -> Inputs:
        """A cycle without a step: every other input is junk."""
        r = self.rng
        junk = [r.randint(0, TOP) for _ in range(3)]
        return Inputs(*junk, valid=False, first=r.random() < 0.5, last=r.random() < 0.5, bank=r.randrange(2))

    async def tile(self, tile: Tile) -> None:
        """Feed a tile back to back with the former one, on the other bank if its constants differ."""
        if self.columns[self.bank] != tile.column:
            self.bank ^= 1
            waited = 0
            while self.columns[self.bank] != tile.column:
                if not self.model.in_flight(self.bank):
                    COVERAGE.hit("bank rewritten in its first free cycle", waited > 0)
                    self.load(self.bank, tile.column)
                    break
                waited += 1
                await self.cycle(self.idle())
        final = len(tile.steps) - 1
        for k, (a, b) in enumerate(tile.steps):
            for _ in range(tile.gaps[k] if tile.gaps else 0):
                COVERAGE.hit("bubble between steps of a tile", k > 0)
                await self.cycle(self.idle())
            junk = self.rng.randint(1, TOP)
            given = Inputs(a, b, tile.c if k == 0 else junk, True, k == 0, k == final, self.bank)
            if k == final:
                value = golden.element(tile.steps, tile.c, tile.column)
                self.expected_results.append((self.now + LEVELS, value))
            await self.cycle(given)

    async def drain(self, tiles: int) -> None:
        for _ in range(LEVELS + 2):
            await self.cycle(self.idle())
        assert not self.expected_results and self.results == tiles, f"{self.results} results of {tiles} tiles"

    def random_tile(self, depth: int, column: Column | None = None, gaps: bool = False) -> Tile:
        r = self.rng
        column = column or Column.of(stimulus.any_shifted(r, WIDTH), WIDTH)
        q = column.shifted
        steps = [(stimulus.word(r, WIDTH, q), stimulus.word(r, WIDTH, q)) for _ in range(depth)]
        idle = [r.choice((0, 0, 1, 2, 7)) for _ in range(depth)] if gaps else []
        return Tile(steps, stimulus.word(r, WIDTH, q), column, idle)


async def begin(dut, name: str) -> Bench:
    bench = Bench(dut, name)
    await bench.start()
    return bench


@cocotb.test()
async def single_steps(dut):
    """Tiles of one step, alone and adjacent: forwarding 1 edge, done after 6, done in adjacent cycles."""
    bench = await begin(dut, "single")
    column = Column.of(TOP, WIDTH)
    for gap in (9, 0, 0, 1, 5, 6, 0, 0, 0):
        tile = bench.random_tile(1, column)
        await bench.tile(replace(tile, gaps=[gap]))
    await bench.drain(9)


@cocotb.test()
async def back_to_back(dut):
    """Tiles of every depth 1..20, no idle cycle, two sets of constants in turn, both banks in flight."""
    bench = await begin(dut, "back to back")
    pair = [Column.of(stimulus.any_shifted(bench.rng, WIDTH), WIDTH) for _ in range(2)]
    depths = [16] * (8 * SCALE) + list(range(1, 21)) + [1, 2, 3] * 4
    for i, depth in enumerate(depths):
        await bench.tile(bench.random_tile(depth, pair[i % 2]))
    await bench.drain(len(depths))


@cocotb.test()
async def edge_moduli(dut):
    """Every edge modulus with extreme operands; each tile rewrites the bank that the last but one used."""
    bench = await begin(dut, "edges")
    edges = stimulus.edge_shifted(WIDTH)
    for q in edges:
        column = Column.of(q, WIDTH)
        corners = [(TOP, TOP), (q - 1, q - 1), (q, TOP), (TOP, 1), (0, TOP), (1, 1), (TOP, TOP), (q - 1, TOP)]
        await bench.tile(Tile(corners, TOP, column))
        await bench.tile(bench.random_tile(4, column))
    await bench.drain(2 * len(edges))


@cocotb.test()
async def aimed_products(dut):
    """Steps whose product, found by division, is next to a multiple of q' where the estimate errs."""
    bench = await begin(dut, "aimed")
    r = bench.rng
    count = 24 * SCALE
    for _ in range(count):
        column = Column.of(stimulus.any_shifted(r, WIDTH), WIDTH)
        steps = []
        for _ in range(8):
            a = r.randint(1 << (WIDTH - 2), TOP)
            steps.append((a, min(stimulus.adversarial_product(r, WIDTH, column.shifted) // a, TOP)))
        await bench.tile(Tile(steps, r.randint(0, TOP), column))
    await bench.drain(count)


@cocotb.test()
async def bubbles(dut):
    """Idle cycles with junk on every input, also first and last, between and inside tiles."""
    bench = await begin(dut, "bubbles")
    count = 20 * SCALE
    for _ in range(count):
        await bench.tile(bench.random_tile(bench.rng.choice((1, 2, 5, 16)), gaps=True))
    await bench.drain(count)


@cocotb.test()
async def reset_in_flight(dut):
    """Reset with 1..6 steps in flight, the last step of a tile at every level: no result of them appears, the
    next tile is right."""
    bench = await begin(dut, "reset")
    for depth in (1, 2, 5, 9):
        for delay in range(LEVELS + 1):
            await bench.tile(bench.random_tile(depth))
            for _ in range(delay):
                await bench.cycle(bench.idle())
            junk = replace(bench.idle(), rst=True, valid=bool(bench.rng.randrange(2)))
            kept = [r for r in bench.expected_results if r[0] <= bench.now]
            assert not kept, "bench: results are late"
            bench.expected_results.clear()
            await bench.cycle(junk)
            before = bench.results
            await bench.tile(bench.random_tile(3))
            await bench.drain(before + 1)


@cocotb.test()
async def everything(dut):
    """Random mixture."""
    bench = await begin(dut, "mixture")
    count = 30 * SCALE
    for _ in range(count):
        r = bench.rng
        column = r.choice(bench.columns) if r.random() < 0.5 else None
        await bench.tile(bench.random_tile(r.choice((1, 3, 16)), column, gaps=r.random() < 0.3))
    await bench.drain(count)
    path = os.environ.get("FHECORE_PE_COVERAGE")
    if path:  # the last test of the file: all bins are in
        COVERAGE.save(Path(path))
