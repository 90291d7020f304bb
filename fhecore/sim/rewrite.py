"""From marks to the proposed instructions: the trace of a kernel as it would be on a GPU with FHECore.

kernels/fragments.cuh (StubUnit) marks one FHEC.16816 by two chained IMMA.16832.U8.U8, which together have
its registers (8 of A, 4 of B, 4 of C and D), and one FHEC.SETC by NANOSLEEP with a register. The chain is
found by data flow within a block: the second takes the first's result as its C.
"""

from __future__ import annotations

from dataclasses import dataclass

from .sass import FHEC_WIDTHS, Function, Instruction, by_bank
from .trace import Launch, Walk, instruction_line

MARK, CONSTANTS_MARK = "IMMA.16832.U8.U8", "NANOSLEEP"


class RewriteError(ValueError):
    """A mark without its partner; the message names function and offset."""


@dataclass(frozen=True)
class Rewritten:
    lines: list[str]  # instruction lines of the trace; "" where a mark was dropped
    fhec: list[int]  # indices of FHEC
    setc: list[int]  # indices of FHEC.SETC
    spans: dict[int, tuple[tuple[int, int], ...]]  # by index: registers read, as (first, count)


def rewrite(function: Function, launch: Launch) -> Rewritten:
    """RewriteError where a mark has no partner in its block, or its operands are not those of the marks."""
    lines = [instruction_line(function, k, launch.accesses.get(k)) for k in range(len(function.code))]
    fhec, setc, spans = [], [], {}
    for block in function.blocks:
        first_half: dict[int, int] = {}  # by the first register of the result
        for k in range(block.first, block.last):
            i = function.code[k]
            if i.base == CONSTANTS_MARK and i.sources:
                lines[k] = _line("setc", i, i.sources, None)
                setc.append(k)
                spans[k] = i.sources
                continue
            if i.opcode != MARK:
                # A result that is overwritten otherwise ends its chain.
                continue
            addend = _addend(i)
            if addend is not None and addend in first_half:
                start = function.code[first_half.pop(addend)]
                spans[k] = _operands(function, start, i)
                lines[k] = _line("fhec", i, spans[k], i.dst, start.control.wait)
                lines[function.code.index(start)] = ""
                fhec.append(k)
            else:
                first_half[i.dst[0]] = k
        if first_half:
            raise RewriteError(
                f"{function.name}: mark at {hex(function.code[min(first_half.values())].pc)} is alone"
            )
    return Rewritten(lines, fhec, setc, spans)


def _addend(i: Instruction) -> int | None:
    """First register of C; None for RZ."""
    return i.sources[2][0] if len(i.sources) == 3 else None


def _operands(function: Function, start: Instruction, i: Instruction) -> tuple[tuple[int, int], ...]:
    a, b = (start.sources[0], i.sources[0]), (start.sources[1], i.sources[1])
    if [n for _, n in a] != [4, 4] or [n for _, n in b] != [2, 2]:
        raise RewriteError(f"{function.name}: mark at {hex(i.pc)} has operands {i.sources}")
    return (*a, *b, *start.sources[2:])


def _line(unit: str, i: Instruction, sources, dst, more_wait: int = 0) -> str:
    c = i.control
    words = ["i", unit, f"st={c.stall}", *(f"s={first}:{count}" for first, count in sources)]
    words += [f"r{bank}={n}" for bank, n in enumerate(by_bank(tuple(sources))) if n]
    if dst:
        words.append(f"d={dst[0]}:{dst[1]}")
    if c.yield_:
        words.append("y=1")
    if c.wait | more_wait:
        words.append(f"w={c.wait | more_wait}")
    return " ".join(words)


def render(pc: int, predicate: str, setc: bool, dst: tuple[int, int] | None, sources) -> str:
    """One proposed instruction in the text of doc/isa.md, section 5, which sass.parse_fhec reads.

    `sources`: register spans of A, B and, unless it is RZ, C (FHEC), or of the constants (FHEC.SETC); halves
    of A or B that follow each other are joined. RewriteError where the registers are not consecutive, or not
    aligned to their number."""
    spans: list[tuple[int, int]] = []
    for first, count in sources:
        wanted = (1,) if setc else (8, 4, 4)
        if spans and spans[-1][1] < wanted[min(len(spans), len(wanted)) - 1]:
            if sum(spans[-1]) != first:
                raise RewriteError(f"{pc:#x}: R{spans[-1][0]} and R{first} are not consecutive")
            spans[-1] = (spans[-1][0], spans[-1][1] + count)
        else:
            spans.append((first, count))
    operands = spans if setc or dst is None else [dst, *spans]
    opcode = "FHEC.SETC" if setc else "FHEC.16816.U32"
    widths = FHEC_WIDTHS[opcode]
    if len(operands) not in ((1,) if setc else (3, 4)):
        raise RewriteError(f"{pc:#x}: {len(operands)} operands of {opcode}")
    for (first, count), width in zip(operands, widths, strict=False):
        if count != width or first % width or first + width > 255:
            raise RewriteError(f"{pc:#x}: R{first}, {count} registers: expected {width}, aligned to {width}")
    names = [f"R{first}" for first, _ in operands] + ["RZ"] * (len(widths) - len(operands))
    return f"/*{pc:04x}*/ {'@' + predicate + ' ' if predicate else ''}{opcode} {', '.join(names)} ;"


def listing(function: Function, done: Rewritten) -> list[str]:
    """The proposed instructions of a rewritten function as text. Where the compiler gave the marks registers
    that the instruction cannot have, the line is a comment that says which (real code would move them)."""
    out = []
    for k in sorted((*done.fhec, *done.setc)):
        i, setc = function.code[k], k in done.setc
        try:
            out.append(render(i.pc, i.predicate, setc, None if setc else i.dst, done.spans[k]))
        except RewriteError as error:
            out.append(f"// {'FHEC.SETC' if setc else 'FHEC.16816.U32'} needs moves: {error}")
    return out


def executed(walk: Walk, indices: list[int]) -> int:
    """Executions of these instructions over the launch (warp instructions)."""
    block_of = {k: n for n, b in enumerate(walk.function.blocks) for k in range(b.first, b.last)}
    return sum(walk.counts[block_of[k]] for k in indices)


# ---- what the mapping must give (doc/mapping.md)
def ntt_fhec(log_n: int = 16, side: int = 16) -> int:
    """FHEC.16816 of a transform of 2^log_n = side^passes points: passes * N / (16 * 8) tiles, each of 16
    deep."""
    passes, left = 0, log_n
    while left > 0:
        left -= side.bit_length() - 1
        passes += 1
    if left < 0 or side != 16:
        raise RewriteError(f"2^{log_n} points are no power of {side}: expected 16^k")
    return passes * (1 << log_n) // (16 * 8)


def convert_fhec(log_n: int, sources: int, destinations: int) -> int:
    """(N/16) ceil(destinations/8) ceil(sources/16)."""
    return (1 << log_n) // 16 * -(-destinations // 8) * -(-sources // 16)
