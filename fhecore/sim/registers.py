"""Which registers an instruction reads and writes, and which unit executes it (sm_80, sm_90).

Register numbers and widths matter to the model where results take a fixed time (the scoreboard) and for the
operands of tensor instructions; loads are ordered by the barriers of their control codes.
"""

from __future__ import annotations

import re

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
