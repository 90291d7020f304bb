"""Per-warp instruction sequences from a function's control flow and executed counts; the model's trace
text.

Executed counts (warp level, one number an instruction, as Nsight Compute's source page has them) say how
often the warps of a launch went through each block, not which warp did. The kernels' control flow depends
on shapes only, so the gap is small: a block that a fraction f of the visits of its surroundings executes is
given to visits spread evenly (whole CTAs where the counts allow it), and blocks with fractions f and 1 - f
to complementary ones. Sums over the launch are exact by construction; `Walk.total` recomputes them and
`check` compares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .sass import CONSTANT_LINE, Function, Loop, conditional, constant_offset, unit_of


class TraceError(ValueError):
    """Counts that the control flow cannot have; the message names block and value."""


@dataclass
class Access:
    """What one request of a memory instruction moves, mean over the launch."""

    sectors: float = 0.0  # of 32 bytes, global memory
    wavefronts: float = 1.0
    l1_hit: float = 0.0
    l2_hit: float = 1.0
    line: int | None = None  # of constants, where the operand does not tell


@dataclass
class Launch:
    kernel: str
    grid: int  # CTAs
    warps: int  # of a CTA
    registers: int  # of a thread
    shared_bytes: int  # of a CTA, static and dynamic
    accesses: dict[int, Access] = field(default_factory=dict)  # by instruction index

    @property
    def all_warps(self) -> int:
        return self.grid * self.warps


def block_counts(function: Function, executed: Sequence[int]) -> list[int]:
    """Executions of every block. An EXIT in mid-block splits blocks, so all instructions of one agree;
    TraceError where they differ by more than the 0.1 % that a count taken in another pass may."""
    if len(executed) < len(function.code):
        raise TraceError(f"{len(executed)} counts for {len(function.code)} instructions")
    counts = []
    for n, block in enumerate(function.blocks):
        own = list(executed[block.first : block.last])
        if max(own) - min(own) > max(own) * 1e-3:
            raise TraceError(f"{function.name}: block {n} has counts from {min(own)} to {max(own)}")
        counts.append(own[0])
    return counts


def edge_counts(function: Function, counts: Sequence[int]) -> dict[tuple[int, int], int]:
    """Flow along the edges, as far as conservation determines it; the rest bounded by the blocks' counts.
    Where the lanes of a warp part, both sides count and conservation fails: flows are clipped at 0."""
    blocks = function.blocks
    flow: dict[tuple[int, int], int] = {}
    unknown = {(n, s) for n, b in enumerate(blocks) for s in b.successors}
    changed = True
    while changed and unknown:
        changed = False
        for n, b in enumerate(blocks):
            last = function.code[b.last - 1]
            sides = [[(p, n) for p in b.predecessors] if n else []]
            if not (last.base in ("EXIT", "RET") and conditional(last)):
                sides.append([(n, s) for s in b.successors])
            for side in sides:
                open_ = [e for e in side if e in unknown]
                if len(open_) == 1:
                    known = sum(flow[e] for e in side if e in flow)
                    flow[open_[0]] = max(0, counts[n] - known)
                    unknown.discard(open_[0])
                    changed = True
    for a, b in unknown:
        flow[a, b] = min(counts[a], counts[b])
    return flow


@dataclass
class Region:
    """The blocks of a loop body, or of the function, in address order; loops inside are regions."""

    loop: Loop | None
    items: list[int | Region]
    visits: int = 0  # executions of the header, over the launch
    entries: int = 0  # times the loop was entered


def regions(function: Function, counts: Sequence[int], warps: int) -> Region:
    flow = edge_counts(function, counts)
    remaining = list(function.loops)

    def build(loop: Loop | None, first: int, last: int) -> Region:
        region = Region(loop, [])
        n = first
        while n <= last:
            inner = next((x for x in remaining if x.header == n and x is not loop), None)
            if inner is not None:
                remaining.remove(inner)
                child = build(inner, inner.header, inner.latch)
                region.items.append(child)
                n = inner.latch + 1
            else:
                region.items.append(n)
                n += 1
        if loop is None:
            region.visits = region.entries = warps
        else:
            region.visits = counts[loop.header]
            outside = [
                p for p in function.blocks[loop.header].predecessors if not loop.header <= p <= loop.latch
            ]
            region.entries = min(sum(flow[p, loop.header] for p in outside), region.visits)
            if region.visits and not region.entries:
                raise TraceError(f"{function.name}: loop at block {loop.header} runs but is never entered")
        return region

    return build(None, 0, len(function.blocks) - 1)


def later(fraction: Fraction, second: bool) -> bool:
    """Whether a fraction counts its visits rounded up (it leaves out the last visit of a period: a loop's
    body is skipped when the loop ends) or down. Opposite for f and 1 - f, and for the two sides of an even
    branch."""
    return second if fraction == Fraction(1, 2) else fraction > Fraction(1, 2)


def chosen_before(fraction: Fraction, visit: int, second: bool) -> int:
    """How many visits before this one are of the fraction."""
    product = visit * min(max(fraction, Fraction(0)), Fraction(1))
    return math.ceil(product) if later(fraction, second) else math.floor(product)


def chosen(fraction: Fraction, visit: int, second: bool = False) -> bool:
    """Whether this visit is one of the fraction; those of f and 1 - f are complementary."""
    return chosen_before(fraction, visit + 1, second) > chosen_before(fraction, visit, second)


def times(fraction: Fraction, visit: int) -> int:
    """How often a chosen visit executes a block. More than once where the lanes of a warp parted: a BSYNC
    counts for each side that comes to it."""
    return max(1, math.floor((visit + 1) * fraction) - math.floor(visit * fraction))


def second_sides(function: Function) -> list[bool]:
    """Of every block: it is reached only by the jumping side of a branch."""
    blocks = function.blocks
    second = [False] * len(blocks)
    for n, b in enumerate(blocks):
        second[n] = bool(b.predecessors) and all(
            p < n and (second[p] if len(blocks[p].successors) == 1 else n != p + 1) for p in b.predecessors
        )
    return second


class Walk:
    """Paths of the warps of a launch."""

    def __init__(self, function: Function, counts: Sequence[int], launch: Launch) -> None:
        self.function, self.counts, self.launch = function, list(counts), launch
        if counts[0] != launch.all_warps:
            raise TraceError(
                f"{function.name}: first block executed {counts[0]} times, but {launch.all_warps} warps"
                f" ({launch.grid} CTAs of {launch.warps}) were launched"
            )
        self.root = regions(function, counts, launch.all_warps)
        self.second = second_sides(function)

    def path(self, warp: int) -> tuple[int, ...]:
        """Blocks that warp number `warp` (over the whole launch) executes, in order."""
        out: list[int] = []
        self._walk(self.root, warp, 0, out)
        return tuple(out)

    def _walk(self, region: Region, visit: int, depth: int, out: list[int]) -> None:
        size = self.launch.warps
        for item in region.items:
            count = self.counts[item] if isinstance(item, int) else item.entries
            fraction = Fraction(count, region.visits) if region.visits else Fraction(0)
            # Whole CTAs take a branch together where the count is a multiple of their warps.
            together = depth == 0 and count % size == 0
            index = visit // size if together else visit
            second = self.second[item if isinstance(item, int) else item.loop.header]
            if not chosen(fraction, index, second):
                continue
            if isinstance(item, int):
                out += [item] * times(fraction, index)
                continue
            trips = Fraction(item.visits, item.entries)
            before = chosen_before(fraction, index, second)
            if together:
                before = before * size + visit % size
            for k in range(math.floor(before * trips), math.floor((before + 1) * trips)):
                self._walk(item, k, depth + 1, out)

    def total(self) -> list[int]:
        """Executions of every block over all warps, from the paths."""
        sums = [0] * len(self.function.blocks)
        for warp in range(self.launch.all_warps):
            for block in self.path(warp):
                sums[block] += 1
        return sums

    def check(self, tolerance: float = 1e-3) -> None:
        """TraceError where the paths' sums miss the counts by more than `tolerance`."""
        for n, (got, wanted) in enumerate(zip(self.total(), self.counts, strict=True)):
            if abs(got - wanted) > max(tolerance * wanted, self.launch.warps):
                raise TraceError(
                    f"{self.function.name}: block {n} {got} times in the trace, {wanted} counted"
                )


def instruction_line(function: Function, index: int, access: Access | None) -> str:
    i = function.code[index]
    unit = unit_of(i.opcode, i.operands)
    c = i.control
    words = ["i", unit, f"st={c.stall}"]
    if i.dst and i.dst[0] + i.dst[1] <= 256:
        words.append(f"d={i.dst[0]}:{i.dst[1]}")
    words += [f"s={first}:{count}" for first, count in i.sources if first + count <= 256]
    words += [f"r{bank}={n}" for bank, n in enumerate(function.bank_reads[index]) if n]
    words += [f"m{bank}={n}" for bank, n in enumerate(function.bank_lost[index]) if n]
    offset = constant_offset(i.operands)
    if offset is not None:
        words.append(f"c={access.line if access and access.line is not None else offset // CONSTANT_LINE}")
    if c.yield_:
        words.append("y=1")
    if c.write_bar != 7:
        words.append(f"wb={c.write_bar}")
    if c.read_bar != 7:
        words.append(f"rb={c.read_bar}")
    if c.wait:
        words.append(f"w={c.wait}")
    if unit == "depbar":
        words += [f"sb={int(i.operands[0].removeprefix('SB'))}", f"arg={int(i.operands[1], 16)}"]
    if unit == "tensor" and i.opcode.startswith(("IMMA.16832", "HMMA.16816")):
        words.append("arg=2")  # twice the products of a 16816 int8 instruction
    if unit in ("ldg", "stg", "ldgsts", "lds", "sts"):
        a = access or Access(sectors=4.0 if unit in ("ldg", "stg", "ldgsts") else 0.0)
        words.append(f"wf={a.wavefronts:.6g}")
        if unit in ("ldg", "stg", "ldgsts"):
            words += [f"sec={a.sectors:.6g}", f"l1={a.l1_hit:.6g}", f"l2={a.l2_hit:.6g}"]
    return " ".join(words)


def text(walk: Walk, sms: int, lines: Sequence[str] | None = None) -> str:
    """The trace of the busiest SM of `sms`: it gets CTAs 0, sms, 2 sms, ... `lines`: instructions to use in
    place of the function's own, same number (the FHEC rewriter's); an empty line drops the instruction."""
    function, launch = walk.function, walk.launch
    own = lines or [instruction_line(function, k, launch.accesses.get(k)) for k in range(len(function.code))]
    place, kept = {}, []
    for k, line in enumerate(own):
        place[k] = len(kept)
        if line:
            kept.append(line)
    place[len(own)] = len(kept)
    out = [
        f"kernel {launch.kernel}",
        f"launch {launch.warps} {launch.registers} {launch.shared_bytes} {launch.grid}",
    ]
    out += kept
    known: dict[tuple[int, ...], int] = {}
    ctas = []
    for cta in range(0, launch.grid, sms):
        ids = []
        for w in range(launch.warps):
            blocks = walk.path(cta * launch.warps + w)
            if blocks not in known:
                known[blocks] = len(known)
                out.append("path " + " ".join(_ranges(function, blocks, place)))
            ids.append(known[blocks])
        ctas.append("cta " + " ".join(map(str, ids)))
    return "\n".join(out + ctas) + "\n"


def _ranges(function: Function, blocks: Sequence[int], place: dict[int, int]) -> list[str]:
    merged: list[list[int]] = []
    for b in blocks:
        first, last = place[function.blocks[b].first], place[function.blocks[b].last]
        if first == last:
            continue
        if merged and merged[-1][1] == first:
            merged[-1][1] = last
        else:
            merged.append([first, last])
    return [f"{a}:{b - a}" for a, b in merged]
