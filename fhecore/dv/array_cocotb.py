"""cocotb bench of the systolic array; test_array.py builds and starts it.

Every word of d_bus and every bit of d_valid is compared before every rising edge: an element must stand there
in exactly the cycle that the specification names (fhecore/doc/microarchitecture.md), and never else.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from fhecore import config
from fhecore.dv import golden, stimulus
from fhecore.dv.golden import Column, Matrix

SHAPE = replace(
    config.load()[os.environ.get("FHECORE_SHAPE", "paper")],
    **json.loads(os.environ.get("FHECORE_CHANGES", "{}")),
)
W, R, C, K = SHAPE.word_bits, SHAPE.rows, SHAPE.cols, SHAPE.depth
LEVELS = int(
    os.environ.get("FHECORE_LEVELS", config.LEVELS)
)  # registers from an element's operands to its result
SPACING = int(os.environ.get("FHECORE_SPACING", "1"))  # edges from a step to the next: steps stand on a grid
LATENCY = SHAPE.latency + LEVELS - config.LEVELS + (K - 1) * (SPACING - 1)


@dataclass
class Step:
    """What enters the array in one cycle. `c_rows` are driven in the cycles from the first step on."""

    a: list[int]
    b: list[int]
    first: bool
    last: bool
    bank: int


def pack(words: list[int], width: int = W) -> int:
    return sum(word << (n * width) for n, word in enumerate(words))


class Bench:
    """Drives the array at falling edges; `now` numbers the rising edge that samples what is driven next."""

    def __init__(self, dut, name: str) -> None:
        self.dut = dut
        self.rng = stimulus.rng(name)
        self.now = 0
        self.steps: dict[int, Step] = {}
        self.c_rows: dict[int, list[int]] = {}
        self.due: dict[int, dict[int, int]] = {}  # edge -> column -> word
        self.banks: list[list[Column]] = [[], []]
        self.busy_until = [0, 0]
        self.free = 0  # earliest edge for the next tile's step 0
        self.last_due = 0

    async def start(self) -> None:
        Clock(self.dut.clk, 2, unit="step").start()
        await FallingEdge(self.dut.clk)
        for bank in range(2):
            self.load(bank, self.columns())
        await self.reset(2)

    async def reset(self, cycles: int) -> None:
        """Reset now; nothing that is in flight may come out any more."""
        self.dut.rst.value = 1
        self.steps, self.c_rows, self.due = {}, {}, {}
        for n in range(cycles):
            await self.cycle(check=n > 0)
        self.dut.rst.value = 0
        self.busy_until, self.free = [self.now, self.now], self.now

    def columns(self) -> list[Column]:
        """Constants of C columns, each its own edge or random modulus, the datapath's view (no shift)."""
        return [Column.of(stimulus.any_shifted(self.rng, W), W) for _ in range(C)]

    def load(self, bank: int, columns: list[Column]) -> None:
        assert self.now >= self.busy_until[bank], "bench: bank rewritten while in use"
        self.banks[bank] = columns
        q, mu = (self.dut.q1, self.dut.mu1) if bank else (self.dut.q0, self.dut.mu0)
        q.value = pack([c.shifted for c in columns])
        mu.value = pack([c.mu for c in columns], W + 5)

    def matrix(self, rows: int, cols: int) -> list[list[int]]:
        near = [column.shifted for column in self.banks[0]]
        return [[stimulus.word(self.rng, W, near[n % C]) for n in range(cols)] for _ in range(rows)]

    def tile(self, bank: int = 0, gaps: list[int] | None = None, c: Matrix | None = None) -> int:
        """Queue a random tile; `gaps[k]` idle places of a step before step k. Returns the edge of step 0."""
        a, b = self.matrix(R, K), self.matrix(K, C)
        c = self.matrix(R, C) if c is None else c
        d = golden.tile(a, b, c, self.banks[bank]).d
        gaps = gaps or [0] * K
        edge = begin = SPACING * (-(-max(self.free, self.now) // SPACING) + gaps[0])
        for k in range(K):
            edge += SPACING * gaps[k] if k else 0
            self.steps[edge] = Step([row[k] for row in a], b[k], k == 0, k == K - 1, bank)
            edge += SPACING
        final = edge - SPACING
        # First steps and last steps of two tiles are R apart: a row of C, a row of D at a time in a column.
        self.free = max(final + SPACING, begin + R, final + SPACING + R - K * SPACING)
        for i in range(R):
            self.c_rows[begin + i] = list(c[i])
            for j in range(C):
                self.due.setdefault(final + i + j + LEVELS + 1, {})[j] = d[i][j]
        self.last_due = self.busy_until[bank] = final + R + C - 2 + LEVELS + 1
        return begin

    async def cycle(self, check: bool = True) -> None:
        """Drive one cycle and compare the outputs of the cycle before, in which edge `now` samples them."""
        dut, r = self.dut, self.rng
        if check:
            self.compare()
        step = self.steps.pop(self.now, None)
        junk = [r.getrandbits(W) for _ in range(max(R, C))]
        dut.a_col.value = pack(step.a if step else junk[:R])
        dut.b_row.value = pack(step.b if step else junk[:C])
        dut.c_row.value = pack(self.c_rows.pop(self.now, junk[:C]))
        dut.valid_in.value = int(step is not None)
        dut.first_in.value = int(step.first if step else r.random() < 0.5)
        dut.last_in.value = int(step.last if step else r.random() < 0.5)
        dut.bank_in.value = step.bank if step else r.randrange(2)
        await FallingEdge(dut.clk)
        self.now += 1

    def compare(self) -> None:
        want = self.due.pop(self.now, {})
        valid, bus = int(self.dut.d_valid.value), int(self.dut.d_bus.value)
        expected = sum(1 << j for j in want)
        assert valid == expected, f"edge {self.now}: d_valid = {valid:b}, expected {expected:b}"
        for j in range(C):
            word = bus >> (j * W) & ((1 << W) - 1)
            assert word == want.get(j, 0), (
                f"edge {self.now}, column {j}: {word:#x}, expected {want.get(j, 0):#x}"
            )

    async def drain(self) -> None:
        while self.now <= max(self.last_due, self.free) + 2:
            await self.cycle()
        assert not self.due and not self.steps


async def begin(dut, name: str) -> Bench:
    bench = Bench(dut, name)
    await bench.start()
    return bench


@cocotb.test()
async def latency(dut):
    """One tile: its last element can be sampled `latency` edges after step 0 (44 for the paper's unit)."""
    bench = await begin(dut, "latency")
    edge = bench.tile()
    await bench.drain()
    assert bench.last_due - edge == LATENCY == SPACING * (K - 1) + R + C - 1 + LEVELS
    if SHAPE.name == "paper" and LEVELS == config.LEVELS and SPACING == 1:
        assert LATENCY == 44


@cocotb.test()
async def back_to_back(dut):
    """Tiles as near as steps and rows allow, columns of different moduli, two sets of constants in turn."""
    bench = await begin(dut, "back to back")
    edges = [bench.tile(bank=n % 2) for n in range(8)]
    interval = max(SPACING * K, SPACING * -(-R // SPACING))
    assert all(later - edge == interval for edge, later in zip(edges, edges[1:], strict=False))
    await bench.drain()


@cocotb.test()
async def bubbles(dut):
    """Idle cycles before and between the steps of a tile, junk on every input while idle."""
    bench = await begin(dut, "bubbles")
    for n in range(6):
        bench.tile(bank=n % 2, gaps=[bench.rng.choice((0, 0, 1, 3)) for _ in range(K)])
    await bench.drain()


@cocotb.test()
async def new_constants(dut):
    """A bank is rewritten as soon as the specification allows: when its last element is on d_bus."""
    bench = await begin(dut, "constants")
    for n in range(4):
        bench.tile(bank=n % 2)
        while bench.now < bench.busy_until[n % 2]:
            await bench.cycle()
        bench.load(n % 2, bench.columns())
    await bench.drain()


@cocotb.test()
async def extreme_words(dut):
    """All ones and zeros everywhere, with and without C, then ones in some steps; moduli whose mu loses most,
    so that estimates are as low as they can be."""
    bench = await begin(dut, "extreme")

    def worst() -> Column:
        moduli = (stimulus.any_shifted(bench.rng, W) for _ in range(400))
        return Column.of(max(moduli, key=lambda q: (1 << (2 * W + 1)) % q / q), W)

    bench.load(0, [worst() for _ in range(C)])
    ones = (1 << W) - 1
    for word in (ones, 0):
        bench.matrix = lambda rows, cols, word=word: [[word] * cols for _ in range(rows)]
        for c in (0, ones):
            bench.tile(c=[[c] * C for _ in range(R)])
    # So many steps of ones: a reduction that takes 8q, 4q, 2q and q in turn needs each of them alone.
    for steps in (3 * K // 4, 3 * K // 8, 3 * K // 16):
        bench.matrix = lambda rows, cols, steps=steps: [
            [ones if cols != K or k < steps else 0 for k in range(cols)] for _ in range(rows)
        ]
        bench.tile(c=[[ones] * C for _ in range(R)])
    await bench.drain()


@cocotb.test()
async def reset_in_flight(dut):
    """Reset at several moments of a tile: its elements never appear, the next tile is right."""
    bench = await begin(dut, "reset")
    for moment in (1, K - 1, K + 3, LATENCY - 3):
        bench.tile()
        bench.tile(bank=1)
        for _ in range(moment):
            await bench.cycle()
        await bench.reset(1)
        for _ in range(LATENCY + 4 if moment == K - 1 else 0):
            await bench.cycle()
        bench.tile()
        await bench.drain()
