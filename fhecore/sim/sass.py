"""SASS as cuobjdump prints it: instructions with registers and control codes, basic blocks, loops.

The 128-bit encoding of compute capability 7.0 and later carries, for the scheduler, in bits 105..125: stall
cycles (4 bits), yield (1 bit, active low), write and read barrier (3 bits each, 7 = none), wait mask (6
bits), reuse flags (4 bits). Layout: published dissections of Volta and Turing; unchanged in what nvcc 13
makes for sm_90, which test_sim.py checks on code whose control codes follow from its text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from .registers import FHEC_WIDTHS, bank_reads, registers_of


class SassError(ValueError):
    """Text that is no SASS listing, or a tool that is missing; the message names it."""


@dataclass(frozen=True)
class Control:
    """What the compiler tells the scheduler about one instruction."""

    stall: int  # cycles until the warp's next issue, 0..15
    yield_: bool  # prefer another warp next
    write_bar: int  # barrier that the result releases, 7 = none
    read_bar: int  # barrier that reading the operands releases, 7 = none
    wait: int  # mask of barriers that must be clear before the issue
    reuse: int  # operand slots kept in the reuse cache

    @staticmethod
    def decode(encoding: int) -> Control:
        """Of a 128-bit encoding."""
        bits = encoding >> 105
        return Control(
            bits & 15, not bits >> 4 & 1, bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63, bits >> 17 & 15
        )


@dataclass(frozen=True)
class Instruction:
    pc: int  # byte offset in the function
    predicate: str  # "" or like "!P0"
    opcode: str  # with modifiers, like "IMAD.WIDE.U32"
    operands: tuple[str, ...]
    control: Control
    dst: tuple[int, int] | None  # first register and number
    sources: tuple[tuple[int, int], ...]

    @property
    def base(self) -> str:
        return self.opcode.split(".")[0]

    @property
    def target(self) -> int | None:
        """Byte offset that a branch goes to."""
        if self.base not in ("BRA", "BSSY", "CALL", "JMP"):
            return None
        found = re.search(r"0x([0-9a-f]+)\s*$", self.operands[-1]) if self.operands else None
        return int(found.group(1), 16) if found else None


@dataclass
class Block:
    """Instructions [first, last) of the function, executed together."""

    first: int
    last: int
    successors: list[int] = field(default_factory=list)
    predecessors: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Loop:
    """Blocks [header, latch] of a natural loop; blocks lie in address order."""

    header: int
    latch: int


@dataclass
class Function:
    name: str
    code: list[Instruction]

    def __post_init__(self) -> None:
        # The padding after the last EXIT is never executed.
        while self.code and (
            self.code[-1].base == "NOP"
            or (self.code[-1].base == "BRA" and self.code[-1].target == self.code[-1].pc)
        ):
            self.code.pop()
        self.blocks = basic_blocks(self.code)
        self.bank_reads: list[tuple[int, int]] = []  # of every instruction
        self.bank_lost: list[tuple[int, int]] = []  # more, where another warp issued in between
        kept: dict[int, int] = {}
        starts = {b.first for b in self.blocks}
        for k, i in enumerate(self.code):
            reads, kept = bank_reads(i.opcode, i.operands, {} if k in starts else kept)
            self.bank_reads.append(reads)
            even, odd = bank_reads(i.opcode, i.operands, {})[0]
            self.bank_lost.append((even - reads[0], odd - reads[1]))
        self.loops = loops(self.blocks)


USUAL, PROFILER = Path("/usr/local/cuda/bin"), Path("/opt/nvidia/nsight-compute")


def find_tool(name: str) -> str | None:
    """Path of a CUDA tool: $CUDA_HOME, PATH, beside nvcc, /usr/local/cuda, Nsight Compute's folders, or the
    PyPI package of its name."""
    folders = []
    if os.environ.get("CUDA_HOME"):
        folders.append(Path(os.environ["CUDA_HOME"]) / "bin")
    for found in (shutil.which(name), shutil.which("nvcc")):
        if found:
            folders += [Path(found).parent, Path(found).resolve().parent]
    folders += [USUAL, PROFILER, *sorted(PROFILER.glob("*"), reverse=True)]
    for site in dict.fromkeys((sysconfig.get_path("platlib"), sysconfig.get_path("purelib"))):
        folders += sorted(Path(site).glob("nvidia/*/bin"), reverse=True)
    for folder in folders:
        if (folder / name).is_file() and os.access(folder / name, os.X_OK):
            return str(folder / name)
    return None


def cuobjdump(path: Path, *options: str) -> subprocess.CompletedProcess:
    """A run of the tool. SassError where it is not installed."""
    tool = find_tool("cuobjdump")
    if tool is None:
        raise SassError("cuobjdump is not installed (CUDA toolkit, or the package nvidia-cuda-cuobjdump)")
    return subprocess.run([tool, *options, str(path)], capture_output=True, text=True)


def disassemble(path: Path, function: str | None = None) -> str:
    """cuobjdump's listing of an object, archive, program or cubin. SassError without device code."""
    done = cuobjdump(path, "-sass", *(["-fun", function] if function else []))
    if done.returncode or "Function :" not in done.stdout:
        raise SassError(f"{path}: no device code that cuobjdump lists: {done.stderr.strip()[:200]}")
    return done.stdout


_LINE = re.compile(
    r"^\s*/\*(?P<pc>[0-9a-f]{4,})\*/\s+(?:@(?P<pred>!?U?P[0-9T]+)\s+)?(?P<text>[^;]*?)\s*;\s*"
    r"/\*\s*0x(?P<low>[0-9a-f]{16})\s*\*/"
)
_HIGH = re.compile(r"^\s*/\*\s*0x([0-9a-f]{16})\s*\*/\s*$")


def parse(listing: str) -> dict[str, Function]:
    """Functions of a listing by mangled name. SassError where an encoding is cut off."""
    functions: dict[str, Function] = {}
    name, code, pending = "", [], None

    def close() -> None:
        if name and code:
            functions[name] = Function(name, list(code))
        code.clear()

    for line in listing.splitlines():
        if "Function :" in line:
            close()
            name = line.split("Function :")[1].strip()
            continue
        match = _LINE.match(line)
        if match:
            if pending is not None:
                raise SassError(f"{name}: no second half of the encoding at {pending['pc']}")
            pending = match.groupdict()
            continue
        high = _HIGH.match(line)
        if high and pending is not None:
            code.append(instruction(pending, int(high.group(1), 16)))
            pending = None
    if pending is not None:
        raise SassError(f"{name}: no second half of the encoding at {pending['pc']}")
    close()
    if not functions:
        raise SassError("no function in the listing")
    return functions


def instruction(fields: dict[str, str], high: int) -> Instruction:
    opcode, _, rest = fields["text"].strip().partition(" ")
    operands = tuple(part.strip() for part in rest.split(",")) if rest.strip() else ()
    dst, sources = registers_of(opcode, operands)
    encoding = high << 64 | int(fields["low"], 16)
    return Instruction(
        int(fields["pc"], 16), fields["pred"] or "", opcode, operands, Control.decode(encoding), dst, sources
    )


# The proposed instructions in text (doc/isa.md, section 5). They have no encoding, so no control codes.
_FHEC_LINE = re.compile(
    r"^(?:/\*(?P<pc>[0-9a-fA-F]+)\*/)?\s*(?:@(?P<pred>!?(?:U?P[0-9]|PT))\s+)?"
    r"(?P<opcode>FHEC\.SETC|FHEC\.16816\.U32)\s+(?P<operands>[^;]*?)\s*;$"
)
_FHEC_REGISTER = re.compile(r"R(\d+)(?:\.reuse)?")
_NO_CONTROL = Control(0, False, 7, 7, 0, 0)


def parse_fhec(text: str) -> list[Instruction]:
    """FHEC and FHEC.SETC lines; `//` starts a comment, an address left out follows the last one. SassError
    names the line that is none, or whose registers the instruction cannot have."""
    out: list[Instruction] = []
    for line in text.splitlines():
        bare = line.split("//")[0].strip()
        if not bare:
            continue
        match = _FHEC_LINE.match(bare)
        if match is None:
            raise SassError(f"{bare!r}: no FHEC.SETC or FHEC.16816.U32")
        opcode = match["opcode"]
        operands = tuple(part.strip() for part in match["operands"].split(","))
        if len(operands) != len(FHEC_WIDTHS[opcode]):
            raise SassError(f"{bare!r}: {len(operands)} operands, expected {len(FHEC_WIDTHS[opcode])}")
        for place, (operand, width) in enumerate(zip(operands, FHEC_WIDTHS[opcode], strict=True)):
            number = _FHEC_REGISTER.fullmatch(operand)
            zero = operand == "RZ" and opcode != "FHEC.SETC" and place == 3
            if not zero and (number is None or int(number[1]) % width or int(number[1]) + width > 255):
                raise SassError(f"{bare!r}: {operand} is no R0..R254, first of {width} and a multiple of it")
        pc = int(match["pc"], 16) if match["pc"] else (out[-1].pc + 16 if out else 0)
        dst, sources = registers_of(opcode, operands)
        out.append(Instruction(pc, match["pred"] or "", opcode, operands, _NO_CONTROL, dst, sources))
    return out


ENDS = ("BRA", "EXIT", "RET", "BRX", "JMP", "CALL", "BSYNC", "BREAK")


def basic_blocks(code: list[Instruction]) -> list[Block]:
    """In address order. Barriers of convergence (BSSY) do not end a block; where BSYNC goes on, one
    begins."""
    at = {i.pc: k for k, i in enumerate(code)}
    leaders = {0}
    for k, i in enumerate(code):
        if i.target in at:
            leaders.add(at[i.target])
        if i.base in ENDS:
            leaders.add(k + 1)
    starts = sorted(x for x in leaders if x < len(code))
    blocks = [Block(a, b) for a, b in zip(starts, [*starts[1:], len(code)], strict=True)]
    index = {b.first: n for n, b in enumerate(blocks)}
    for n, b in enumerate(blocks):
        last = code[b.last - 1]
        # BRA.DIV leaves the straight line only where a warp is not converged: no edge.
        jumps = last.base in ("BRA", "JMP") and ".DIV" not in last.opcode
        if jumps and last.target in at:
            b.successors.append(index[at[last.target]])
        always = last.base in ("BRA", "JMP", "EXIT", "RET", "BRX") and not conditional(last)
        if not always and n + 1 < len(blocks) and n + 1 not in b.successors:
            b.successors.append(n + 1)
    for n, b in enumerate(blocks):
        for s in b.successors:
            blocks[s].predecessors.append(n)
    return blocks


def conditional(i: Instruction) -> bool:
    """A branch that may fall through: predicated, or with a predicate among its operands."""
    named = any(re.fullmatch(r"!?U?P[0-6]", operand) for operand in i.operands)
    return (bool(i.predicate) and i.predicate not in ("PT", "!UPT")) or named or ".DIV" in i.opcode


def loops(blocks: list[Block]) -> list[Loop]:
    """Outermost first. Loops that share a header are one; compilers lay loops out contiguously, and what
    is not laid out so raises SassError."""
    latches: dict[int, int] = {}
    for n, b in enumerate(blocks):
        for s in b.successors:
            if s <= n:
                latches[s] = max(latches.get(s, 0), n)
    found = [Loop(h, last) for h, last in latches.items()]
    for a in found:
        for b in found:
            if a.header < b.header <= a.latch < b.latch:
                raise SassError(f"loops of blocks {a} and {b} overlap: not structured")
    return sorted(found, key=lambda x: (x.header, -x.latch))
