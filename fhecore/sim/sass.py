"""SASS as cuobjdump prints it: instructions with registers, units and control codes, basic blocks, loops, and
what a launch executes of them where its shape tells, without a GPU.

The 128-bit encoding of compute capability 7.0 and later carries, for the scheduler, in bits 105..125: stall
cycles (4 bits), yield (1 bit, active low), write and read barrier (3 bits each, 7 = none), wait mask (6
bits), reuse flags (4 bits). Register numbers and widths matter to the model where results take a fixed time
(the scoreboard) and for the operands of tensor instructions; loads are ordered by the barriers of their
control codes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


class SassError(ValueError):
    """Text that is no SASS listing, or a tool that is missing; the message names it."""


# ---- registers and units of an instruction (sm_80, sm_90)
_REGISTER = re.compile(r"\bR(\d+)\b")
_NO_DST = {
    "STG", "STS", "STL", "ST", "LDGSTS", "LDGDEPBAR", "DEPBAR", "BAR", "BRA", "EXIT", "RET", "BSSY",
    "BSYNC", "NOP", "RED", "REDG", "WARPSYNC", "ACQBULK", "PREEXIT", "ISETP", "PLOP3", "FSETP", "DSETP",
    "MEMBAR", "ERRBAR", "CCTL", "R2P", "CALL", "NANOSLEEP", "YIELD", "R2UR", "VOTEU", "UTMALDG", "SYNCS",
}  # fmt: skip
_WIDE = {"DADD", "DMUL", "DFMA", "DSETP"}
# Consecutive registers of each operand of the proposed instructions (doc/isa.md): D, A, B, C; constants.
FHEC_WIDTHS = {"FHEC.16816.U32": (4, 8, 4, 4), "FHEC.SETC": (1,)}


def memory_width(opcode: str) -> int:
    """Registers that a load or store moves a thread."""
    for suffix, count in ((".128", 4), (".64", 2)):
        if suffix in opcode:
            return count
    return 1


def _matrix_widths(opcode: str) -> tuple[int, int, int, int]:
    """(D, A, B, C) of the integer and half-precision tensor instructions that this project uses."""
    if opcode.startswith("IMMA.16832"):
        return 4, 4, 2, 4
    if opcode.startswith(("IMMA.16816", "HMMA.16816")):
        return (4, 2, 1, 4) if opcode.startswith("IMMA") else (4, 4, 2, 4)
    if opcode.startswith("IMMA.8816"):
        return 2, 1, 1, 2
    if opcode.startswith("DMMA"):
        return 4, 2, 2, 4
    return 4, 4, 2, 4


def _numbers(operand: str) -> list[int]:
    return [int(n) for n in _REGISTER.findall(operand)]


def registers_of(
    opcode: str, operands: tuple[str, ...]
) -> tuple[tuple[int, int] | None, tuple[tuple[int, int], ...]]:
    """((first, count) written or None, all (first, count) read); RZ, uniform and predicate registers left
    out."""
    base = opcode.split(".")[0]
    if opcode == "FHEC.SETC":
        return None, tuple((number, 1) for number in _numbers(operands[0]))
    if base in ("IMMA", "HMMA", "DMMA", "FHEC"):
        widths = FHEC_WIDTHS[opcode] if base == "FHEC" else _matrix_widths(opcode)
        places = [_numbers(o) for o in operands[:4]]
        spans = [(p[0], n) for p, n in zip(places, widths, strict=True) if p]
        dst = spans[0] if places[0] else None
        return dst, tuple(spans[1:] if places[0] else spans)
    sources: list[tuple[int, int]] = []
    dst = None
    rest = list(operands)
    if base not in _NO_DST and rest:
        # A carry or predicate may come before or after the register written.
        while rest and re.fullmatch(r"U?P[0-9T]", rest[0]):
            rest.pop(0)
        if rest and (own := _numbers(rest[0])) and "[" not in rest[0]:
            dst = (own[0], _dst_width(opcode, base))
        rest = rest[1:]
    for place, operand in enumerate(rest):
        for number in _numbers(operand):
            sources.append((number, _source_width(opcode, base, operand, place)))
    return dst, tuple(sources)


def _dst_width(opcode: str, base: str) -> int:
    if base in ("LDG", "LDS", "LDL", "LDC", "LD"):
        return memory_width(opcode)
    if base == "LDSM":
        return {"4": 4, "2": 2}.get(opcode.rsplit(".", 1)[-1], 1)
    wide = base in _WIDE or ".WIDE" in opcode or (base == "CS2R" and ".32" not in opcode)
    return 2 if wide else 1


def _source_width(opcode: str, base: str, operand: str, place: int) -> int:
    if "[" in operand:
        is_global = base in ("LDG", "STG", "LD", "ST", "RED", "ATOMG", "LDGSTS") and not operand.startswith(
            "[UR"
        )
        if base == "LDGSTS":
            return 2 if place > 0 or "desc" in operand else 1
        return 2 if is_global else 1
    if base in ("STG", "STS", "STL", "ST"):
        return memory_width(opcode)
    if base in _WIDE or (".WIDE" in opcode and base in ("IMAD", "UIMAD") and place == 2):
        return 2
    return 1


def by_bank(spans: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    """(even, odd registers) of spans."""
    words = [w for first, count in spans for w in range(first, first + count)]
    odd = sum(w % 2 for w in words)
    return len(words) - odd, odd


def bank_reads(
    opcode: str, operands: tuple[str, ...], cached: dict[int, int]
) -> tuple[tuple[int, int], dict[int, int]]:
    """((even, odd registers read from the file), registers kept for the warp's next instruction by operand
    slot). `cached`: what the instruction before kept: its operands marked .reuse, each for its own slot.
    A register named twice is read once; products of twice the width read their factors twice (probes)."""
    base = opcode.split(".")[0]
    counts, kept = [0, 0], {}
    if base in ("IMMA", "HMMA", "DMMA", "FHEC"):
        return by_bank(registers_of(opcode, operands)[1]), kept
    rest = [o for o in operands if not re.fullmatch(r"!?U?P[0-9T]", o)]
    if base not in _NO_DST and rest and _numbers(rest[0]) and "[" not in rest[0]:
        rest = rest[1:]
    wide = unit_of(opcode, operands) == "fmawide"
    seen: set[int] = set()
    for slot, operand in enumerate(rest):
        for number in _numbers(operand):
            if cached.get(slot) != number:
                for word in range(number, number + _source_width(opcode, base, operand, slot)):
                    counts[word % 2] += (2 if wide and slot < 2 else 1) * (word not in seen)
                    seen.add(word)
            if ".reuse" in operand:
                kept[slot] = number
    return (counts[0], counts[1]), kept


# VIADD is with the multipliers: hardware counters by pipe say so, and two microbenchmarks from either side
# (among the ALU's it would make butterfly_mix 8 % too fast and cta_waves 10 % too slow).
_UNITS = {
    "alu": "IADD3 VIADDMNMX IMNMX VIMNMX LOP3 SHF LEA ISETP SEL PRMT PLOP3 SGXT BMSK FMNMX FSETP FSEL "
    "IABS MOV P2R R2P ISCADD LOP ICMP I2FP I2IP VABSDIFF FADD_ALU CSEL VOTE UNIFORM_ALU",
    "fma": "IMAD VIADD",
    "fmalite": "FFMA FMUL FADD HFMA2 HADD2 HMUL2 IDP IDP4A FSWZADD",
    "mufu": "MUFU I2F F2I F2F POPC FLO BREV FRND I2FX F2IP",
    "fp64": "DADD DMUL DFMA DSETP",
    "tensor": "IMMA HMMA DMMA BMMA",
    "fhec": "FHEC",
    "ldg": "LDG LD LDL ATOM ATOMG ATOMS",
    "stg": "STG ST STL RED REDG",
    "lds": "LDS LDSM",
    "sts": "STS",
    "ldgsts": "LDGSTS",
    "shfl": "SHFL REDUX MATCH",
    "ldc": "LDC",
    "s2r": "S2R S2UR",
    "bar": "BAR",
    "depbar": "DEPBAR",
    "ldgdepbar": "LDGDEPBAR",
    "bra": "BRA BSYNC BRX JMP CALL RET BREAK",
    "exit": "EXIT",
    "nop": "NOP BSSY WARPSYNC ACQBULK PREEXIT MEMBAR ERRBAR CCTL YIELD NANOSLEEP BMOV SYNCS DEPBARX",
}
_OF_BASE = {base: unit for unit, bases in _UNITS.items() for base in bases.split()}


def unit_of(opcode: str, operands: tuple[str, ...]) -> str:
    """Unit of sm_model.h. KeyError names an opcode that is not known."""
    base = opcode.split(".")[0]
    if opcode == "FHEC.SETC":
        return "setc"
    if base == "IMAD":
        return "fmawide" if ".WIDE" in opcode or ".HI" in opcode else "fma"
    if base == "CS2R":
        return "clock" if any("CLOCK" in o for o in operands) else "alu"
    if base == "S2R" and any("CLOCK" in o for o in operands):
        return "clock"
    if base == "R2UR" or (base.startswith("U") and base not in _OF_BASE) or base == "VOTEU":
        return "uni"
    if base not in _OF_BASE:
        raise KeyError(f"opcode {opcode}: not in the table of units")
    return _OF_BASE[base]


CONSTANT_LINE = 64  # bytes: microbenchmarks constants_near and constants_far
_CONSTANT = re.compile(r"c\[0x([0-9a-f]+)\]\[(?:U?R\w+)?\+?(?:0x([0-9a-f]+))?")


def constant_offset(operands: Sequence[str]) -> int | None:
    """Byte, bank included, that an instruction reads constants from, its index register taken for 0."""
    found = next((m for o in operands if (m := _CONSTANT.search(o))), None)
    return int(found.group(1), 16) << 16 | int(found.group(2) or "0", 16) if found else None


# ---- listings
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


# ---- what cuobjdump says of a file
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


# Listed with every kernel that uses shared memory at all; the model adds it to every CTA (shared_reserved).
RESERVED = 1024


@dataclass(frozen=True)
class Usage:
    registers: int  # of a thread
    shared_bytes: int  # static, of a CTA
    stack_bytes: int  # of a thread


_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)")


def parse_usage(text: str) -> dict[str, Usage]:
    out, name = {}, None
    for line in text.splitlines():
        if "Function " in line:
            name = line.split("Function ")[1].strip().rstrip(":")
        found = _USAGE.search(line)
        if found and name:
            registers, stack, shared = map(int, found.groups())
            out[name] = Usage(registers, max(0, shared - RESERVED), stack)
            name = None
    return out


def read_usage(program: Path) -> dict[str, Usage]:
    """By mangled name. SassError without cuobjdump or without device code."""
    done = cuobjdump(program, "-res-usage")
    out = parse_usage(done.stdout + done.stderr)
    if not out:
        raise SassError(f"{program}: no resource usage: {done.stderr.strip()[:200]}")
    return out


# ---- blocks and loops
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


# ---- executed counts without a GPU
def static_counts(
    function: Function, warps: int, trips: Sequence[float] = (), skipped: Sequence[int] = ()
) -> list[int]:
    """Executions of every block by a launch of so many warps, without a GPU. `trips`: of each loop, in the
    order of their headers, rounds an entry, mean over warps; `skipped`: blocks that no warp executes. All
    other branches are taken as going on (a guard that lets every warp pass). SassError when a loop has no
    trip count."""
    if len(trips) != len(function.loops):
        raise SassError(f"{function.name}: {len(function.loops)} loops, {len(trips)} trip counts")
    out = []
    for n in range(len(function.blocks)):
        rounds = float(warps)
        for loop, trip in zip(function.loops, trips, strict=True):
            if loop.header <= n <= loop.latch:
                rounds *= trip
        out.append(0 if n in skipped else round(rounds))
    return out


def instructions(function: Function, block_counts: Sequence[int]) -> int:
    """Warp instructions, of executions of every block."""
    return sum((b.last - b.first) * n for b, n in zip(function.blocks, block_counts, strict=True))
