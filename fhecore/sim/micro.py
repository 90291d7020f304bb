"""The microbenchmarks of micro/micro.cu as the model sees them: traces, what is expected in their SASS,
spans."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path

from . import engine, sass, trace

WORDS, SECTOR = 4096, 32
FIRST_CONSTANT = 8  # bytes before the table in the parameters of cold_constants
PROGRAM = "micro.cu"


@dataclass(frozen=True)
class Bench:
    """One line of micro.cu's table. `opcode`: what the loop must consist of, at least `ops` times."""

    name: str
    symbol: str  # in the mangled name
    blocks: int  # a multiprocessor; 0: one on the whole GPU
    threads: int
    rounds: int
    opcode: str
    ops: int
    access: dict[str, trace.Access] = field(default_factory=dict)  # by opcode without modifiers
    shared: int = WORDS * 4  # bytes a block
    warm: int = 4  # rounds before the clock
    first_end: bool = False  # until the first warp's end, not the last's
    stride: int = 0  # bytes between the constants of a chain; no loops, no warm-up


def _load(sectors: float, wavefronts: float, l1: float, l2: float) -> dict[str, trace.Access]:
    return {"LDG": trace.Access(sectors, wavefronts, l1, l2)}


def _shared(wavefronts: float, opcode: str = "LDS") -> dict[str, trace.Access]:
    return {opcode: trace.Access(0, wavefronts)}


def _copy(l2: float) -> dict[str, trace.Access]:
    return {"LDG": trace.Access(16, 4, 0, l2), "STG": trace.Access(16, 4, 0, l2)}


BENCHES = (
    Bench("alu_chain", "Lop3ILi1E", 1, 32, 64, "LOP3", 64),
    Bench("alu_throughput", "Lop3ILi8E", 1, 512, 64, "LOP3", 64),
    Bench("addmin_throughput", "MinAddILi8E", 1, 512, 64, "VIADDMNMX", 64),
    Bench("add3_throughput", "Add3ILi8E", 1, 512, 64, "IADD3", 64),
    Bench("shift_throughput", "ShiftILi8E", 1, 512, 64, "SHF", 64),
    Bench("imad_chain", "3MadILi1E", 1, 32, 64, "IMAD", 64),
    Bench("imad_throughput", "3MadILi8E", 1, 512, 64, "IMAD", 64),
    Bench("wide_throughput", "MadWideILi8E", 1, 512, 64, "IMAD.WIDE", 64),
    Bench("hi_chain", "MulHiILi1E", 1, 32, 64, "IMAD.HI", 64),
    Bench("hi_throughput", "MulHiILi8E", 1, 512, 64, "IMAD.HI", 64),
    Bench("butterfly_mix", "Butterfly", 1, 512, 64, "IMAD", 16),
    Bench("butterfly_full", "Butterfly", 1, 1024, 64, "IMAD", 16),
    Bench("dual_issue", "DualIssue", 1, 512, 64, "LOP3", 32),
    Bench("high_mix", "HighMix", 1, 512, 64, "SHF", 48),
    Bench("warp_order", "Butterfly", 1, 1024, 64, "IMAD", 16, first_end=True),
    Bench("phases_one", "Phases", 1, 256, 64, "IMAD", 32, _load(1, 1, 0, 1)),
    Bench("phases_four", "Phases", 4, 256, 64, "IMAD", 32, _load(1, 1, 0, 1)),
    Bench("mufu_chain", "RootMufuILi1E", 1, 32, 64, "MUFU", 32),
    Bench("mufu_throughput", "RootMufuILi8E", 1, 512, 64, "MUFU", 32),
    Bench("ldc_chain", "ConstantChain", 1, 32, 64, "LDC", 32),
    Bench("constants_far", "cold_constants", 1, 32, 1, "LDC", 7, shared=0, stride=256),
    Bench("constants_near", "cold_constants", 1, 32, 1, "LDC", 7, shared=0, stride=16),
    Bench("imma_chain", "Imma16816ILi1E", 1, 32, 64, "IMMA.16816", 16),
    Bench("imma_throughput", "Imma16816ILi2E", 1, 1024, 64, "IMMA.16816", 16),
    Bench("imma32_throughput", "Imma16832ILi2E", 1, 1024, 64, "IMMA.16832", 16),
    Bench("imma_alu", "ImmaMixILb0E", 1, 1024, 64, "IMMA.16816", 16),
    Bench("imma_mad", "ImmaMixILb1E", 1, 1024, 64, "IMMA.16816", 16),
    Bench("lds_chain", "SharedChain", 1, 32, 64, "LDS", 32, _shared(1)),
    Bench("lds_throughput", "SharedLoads", 1, 512, 64, "LDS", 32, _shared(1)),
    Bench("lds_conflict", "SharedLoads", 1, 512, 16, "LDS", 32, _shared(8)),
    Bench("lds_wide", "SharedWideLoads", 1, 512, 64, "LDS", 16, _shared(4)),
    Bench("sts_throughput", "SharedStores", 1, 512, 64, "STS", 32, _shared(1, "STS")),
    Bench("l1_chain", "L1Chain", 0, 32, 64, "LDG", 16, _load(1, 1, 1, 1)),
    Bench("l2_chain", "L2Chain", 0, 32, 64, "LDG", 16, _load(1, 1, 0, 1)),
    Bench("dram_chain", "L2Chain", 0, 32, 64, "LDG", 16, _load(1, 1, 0, 0)),
    Bench("l1_bandwidth", "StreamILb1E", 1, 512, 64, "LDG", 8, _load(16, 4, 1, 1)),
    Bench("l2_bandwidth", "StreamILb0E", 4, 256, 64, "LDG", 8, _load(16, 4, 0, 1)),
    Bench("dram_bandwidth", "StreamILb0E", 4, 256, 64, "LDG", 8, _load(16, 4, 0, 0)),
    Bench("dram_cold", "StreamILb0E", 4, 256, 2, "LDG", 8, _load(16, 4, 0, 0), warm=0),
    Bench("l2_write", "StreamWrite", 4, 256, 64, "STG", 8, {"STG": trace.Access(16, 4, 0, 1)}),
    Bench("l2_copy", "StreamCopy", 4, 256, 64, "STG", 4, _copy(1)),
    Bench("dram_copy", "StreamCopy", 4, 256, 64, "STG", 4, _copy(0)),
    Bench("bar_throughput", "Barrier", 1, 256, 64, "BAR", 16),
    Bench("branch_chain", "6Branch", 1, 32, 256, "BRA", 1),
    Bench("cta_waves", "6Branch", 64, 256, 16, "BRA", 1),
    Bench("cta_serial", "6Branch", 16, 256, 16, "BRA", 1, shared=196608),
)
BY_NAME = {b.name: b for b in BENCHES}


class MicroError(ValueError):
    """The compiled benchmark is not what it is meant to be; the message says what its loop holds."""


def check_sass(bench: Bench, function: sass.Function) -> None:
    """The timed loop, the last, holds the instructions meant, and little else that takes its pipe; without
    loops, what lies between the clocks does."""
    loops = 0 if bench.stride else 3
    if len(function.loops) != loops:
        raise MicroError(f"{bench.name}: {len(function.loops)} loops in the SASS, expected {loops}")
    if bench.stride:
        reads = [k for k, i in enumerate(function.code) if i.base == "CS2R" and "CLOCK" in i.operands[-1]]
        body = function.code[reads[0] : reads[-1]]
    else:
        loop = function.loops[-1]
        body = function.code[function.blocks[loop.header].first : function.blocks[loop.latch].last]
    found = sum(i.opcode.startswith(bench.opcode) for i in body)
    clocks = sum(i.base == "CS2R" and "CLOCK" in i.operands[-1] for i in function.code)
    if found < bench.ops or clocks != 2:
        text = " ".join(sorted({i.opcode for i in body}))
        raise MicroError(
            f"{bench.name}: {found} {bench.opcode}, expected {bench.ops}; {clocks} clocks; loop: {text}"
        )


def trace_of(bench: Bench, function: sass.Function, usage: sass.Usage, sms: int) -> str:
    blocks = bench.blocks * sms if bench.blocks else 1
    launch = trace.Launch(
        bench.name, blocks, bench.threads // 32, usage.registers, usage.shared_bytes + bench.shared
    )
    if bench.stride:
        chain = [k for k, i in enumerate(function.code) if i.base == "LDC" and "[R" in i.operands[-1]]
        start = sass.constant_offset(function.code[chain[0]].operands) + FIRST_CONSTANT
        for n, k in enumerate(chain):
            launch.accesses[k] = trace.Access(line=(start + n * bench.stride) // sass.CONSTANT_LINE)
        return trace.text(trace.Walk(function, sass.static_counts(function, launch.all_warps), launch), sms)
    loop = function.loops[-1]
    timed = range(function.blocks[function.loops[1].header].first, function.blocks[loop.latch].last)
    for k, i in enumerate(function.code):
        if k in timed and i.base in bench.access:
            launch.accesses[k] = bench.access[i.base]
        elif i.base in ("LDS", "STS"):
            launch.accesses[k] = trace.Access(0, 1)
    fill = -(-WORDS // bench.threads)
    counts = sass.static_counts(function, launch.all_warps, [fill, bench.warm, bench.rounds])
    return trace.text(trace.Walk(function, counts, launch), sms)


def span(result: dict, first_end: bool = False) -> int:
    """Cycles from the first begin to the last (or first) end on the multiprocessor."""
    ends = [c[-1] for c in result["clocks"]]
    return (min(ends) if first_end else max(ends)) - min(c[0] for c in result["clocks"])


def load(program: Path) -> tuple[dict[str, sass.Function], dict[str, sass.Usage]]:
    """SASS and resources of the compiled micro.cu, or of the listings that collect.py made of it (a
    folder)."""
    if program.is_dir():
        with gzip.open(program / "micro.sass.gz", "rt") as file:
            return sass.parse(file.read()), sass.parse_usage((program / "micro.usage.txt").read_text())
    return sass.parse(sass.disassemble(program)), sass.read_usage(program)


def predict(
    bench: Bench, functions: dict, usages: dict, values: dict[str, float], program: Path | None = None
) -> int:
    """The model's cycles of what micro.cu measures."""
    name = find(functions, bench.symbol)
    text = trace_of(bench, functions[name], usages[name], int(values["sms"]))
    return span(engine.run(text, values, program), bench.first_end)


def null_cycles(functions: dict, usages: dict, values: dict[str, float], program: Path | None = None) -> int:
    """The model's cycles of the empty kernel: one warp."""
    name = find(functions, "7nothingv")
    launch = trace.Launch("nothing", 1, 1, usages[name].registers, usages[name].shared_bytes)
    walk = trace.Walk(functions[name], sass.static_counts(functions[name], launch.all_warps), launch)
    return engine.run(trace.text(walk, int(values["sms"])), values, program)["cycles"]


def find(names, symbol: str) -> str:
    found = [n for n in names if symbol in n]
    if len(found) != 1:
        raise MicroError(f"{symbol!r} is in {len(found)} function names, expected one: {found[:3]}")
    return found[0]
