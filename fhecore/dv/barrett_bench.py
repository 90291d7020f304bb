"""cocotb bench of barrett.v: p, q and mu change at every edge, r comes STAGES edges later."""

from __future__ import annotations

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from fhecore.dv import stimulus
from fhecore.dv.golden import Column

WIDTH = int(os.environ.get("FHECORE_BARRETT_WIDTH", "32"))
COUNT = int(os.environ.get("FHECORE_BARRETT_COUNT", "2000"))
STAGES = int(os.environ["FHECORE_BARRETT_STAGES"])


async def check(dut, products) -> int:
    """Feed (p, column) pairs back to back and compare; returns how many results were compared."""
    Clock(dut.clk, 2, unit="step").start()
    await FallingEdge(dut.clk)
    due: list[int] = []
    compared = 0
    for p, column in [*products, *([(0, Column.of(1, WIDTH))] * STAGES)]:
        dut.p.value, dut.q.value, dut.mu.value = p, column.shifted, column.mu
        due.append(p % column.shifted)
        await FallingEdge(dut.clk)
        if len(due) == STAGES:
            want, got = due.pop(0), int(dut.r.value)
            assert got == want, f"result {compared}: r = {got:#x}, expected {want:#x}"
            compared += 1
    return compared


@cocotb.test()
async def edges(dut):
    """Every edge modulus with the extreme products and those beside the first and last multiples."""
    products = []
    top = (1 << (2 * WIDTH)) - 1
    for q in stimulus.edge_shifted(WIDTH):
        column = Column.of(q, WIDTH)
        last = top // q * q
        products += [(p, column) for p in (0, 1, q - 1, q, q + 1, 2 * q - 1, last - 1, last, top)]
    assert await check(dut, products) > len(products)


@cocotb.test()
async def aimed(dut):
    """Random moduli, another at every edge; products where the estimate errs."""
    rng = stimulus.rng("barrett unit")
    products = []
    for _ in range(COUNT):
        column = Column.of(stimulus.any_shifted(rng, WIDTH), WIDTH)
        aimed_at = stimulus.adversarial_product(rng, WIDTH, column.shifted)
        products.append((aimed_at if rng.random() < 0.8 else rng.randrange(1 << (2 * WIDTH)), column))
    assert await check(dut, products) > len(products)
