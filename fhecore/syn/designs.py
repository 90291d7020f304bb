"""What can be synthesised: sources, parameters, and how each design meets its surroundings."""

from __future__ import annotations

from dataclasses import dataclass, field

BLOCKS = ("csa.v", "csatree.v", "prefix_adder.v", "booth_recode.v", "booth_rows.v")
WRAPPER = (
    *("fhecore.v", "fhecore_collect.v", "fhecore_constants.v", "fhecore_staging.v"),
    *("fhecore_operand.v", "fhecore_or.v", "fhecore_results.v", "fhecore_array.v"),
)
WRAPPER_WIDTH = 16  # least, see Config.need_wrapper
ARRAY = ("fhecore_array.v", "fhecore_delay.v", "fhecore_or.v")
NEIGHBOURS = tuple((f"{n}_in", f"{n}_out") for n in ("a", "b", "valid", "first", "last", "bank"))


@dataclass(frozen=True)
class Design:
    """One netlist to make.

    join: (input, output) pairs wired together for timing, as neighbours in the array are.
    still: inputs that stand still while they are used, so that no path starts there.
    period: ps that sizing aims at; 0: no sizing.
    blocks: modules kept as black boxes.
    """

    name: str
    top: str
    sources: tuple[str, ...]
    parameters: dict[str, int] = field(default_factory=dict)
    join: tuple[tuple[str, str], ...] = ()
    still: tuple[str, ...] = ()
    period: int = 0
    blocks: tuple[str, ...] = ()
    behavioural: bool = False  # `*` left to yosys (Booth, Kogge-Stone)
    memory: bool = False  # arrays of words, mapped to flip-flops
    note: str = ""


def designs(width: int = 32, rows: int = 16, cols: int = 8) -> dict[str, Design]:
    constants = ("q0", "q1", "mu0", "mu1")
    w = {"W": width}
    return {
        d.name: d
        for d in (
            Design(
                "modmul_pe_cs", "modmul_pe_cs", (*BLOCKS, "modular_accumulate.v", "modmul_pe_cs.v"), w,
                NEIGHBOURS, constants, 540, note="the element, balanced by hand",
            ),
            Design(
                "modmul_pe", "modmul_pe", ("modmul_pe.v",), w, NEIGHBOURS, constants, 800,
                behavioural=True, note="the same element from `*` and `+`",
            ),
            Design(
                "array_periphery", "fhecore_array", (*ARRAY, "modmul_pe_cs.v"),
                {**w, "R": rows, "C": cols, "CARRY_SAVE": 1}, still=constants, blocks=("modmul_pe_cs",),
                note=f"{rows}x{cols} array without its elements: input and skew registers, column buses",
            ),
            Design(
                "wrapper_periphery", "fhecore", WRAPPER, {**w, "R": rows, "C": cols},
                blocks=("fhecore_array",), memory=True,
                note="unit without its array: operand and result buffers, constants, control",
            ),
        )
        if d.top != "fhecore" or width >= WRAPPER_WIDTH
    }  # fmt: skip
