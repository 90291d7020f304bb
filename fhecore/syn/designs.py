"""What can be synthesised: sources, parameters, and how each design meets its surroundings."""

from __future__ import annotations

from dataclasses import dataclass, field

BLOCKS = ("csa.v", "csatree.v", "prefix_adder.v", "booth_recode.v", "booth_rows.v")
WRAPPER = (
    *("fhecore.v", "fhecore_collect.v", "fhecore_constants.v", "fhecore_staging.v"),
    *("fhecore_operand.v", "fhecore_or.v", "fhecore_results.v", "fhecore_array.v"),
)
LEAST_WIDTH = {
    "fhecore": 16,
    "lazy_pe": 16,
    "lazy_reduce": 16,
    "lazy_array": 16,
    "tensor_pe": 32,
    "tensor_pe_fhe": 32,
}  # fhecore: Config.need_wrapper
ARRAY = ("fhecore_array.v", "fhecore_delay.v", "fhecore_or.v")
TENSOR = (*BLOCKS, "leading_zeros.v", "compound_adder.v", "tensor_fma.v", "tensor_int8.v")
NEIGHBOURS = tuple((f"{n}_in", f"{n}_out") for n in ("a", "b", "valid", "first", "last", "bank"))
LAZY = (*ARRAY[1:], "lazy_array.v", "lazy_pe.v", "lazy_reduce.v")
CONSTANTS = ("q0", "q1", "mu0", "mu1")
DEEP = {"G": 5}  # sums over 2^5 steps
TENSOR_NEIGHBOURS = tuple((f"{n}_in", f"{n}_out") for n in ("a", "b", "valid", "first", "last", "format"))
TENSOR_PERIOD = 640  # below the 709 ps of the A100's boost clock
SEQUENTIAL_PERIOD = 640


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


def _elements(w: dict[str, int], rows: int, cols: int) -> tuple[Design, ...]:
    """The element, in three forms, and what is around it."""
    return (
        Design(
            "modmul_pe_cs", "modmul_pe_cs", (*BLOCKS, "modular_accumulate.v", "modmul_pe_cs.v"), w,
            NEIGHBOURS, CONSTANTS, 540, note="the element, balanced by hand",
        ),
        Design(
            "modmul_pe", "modmul_pe", ("modmul_pe.v",), w, NEIGHBOURS, CONSTANTS, 800,
            behavioural=True, note="the same element from `*` and `+`",
        ),
        Design(
            "modmul_pe_seq", "modmul_pe_seq", (*BLOCKS, "modular_accumulate.v", "modmul_pe_seq.v"), w,
            NEIGHBOURS, CONSTANTS, SEQUENTIAL_PERIOD,
            note="the element with one multiplier for its three products",
        ),
        Design(
            "array_periphery", "fhecore_array", (*ARRAY, "modmul_pe_cs.v"),
            {**w, "R": rows, "C": cols, "CARRY_SAVE": 1}, still=CONSTANTS, blocks=("modmul_pe_cs",),
            note=f"{rows}x{cols} array without its elements: input and skew registers, column buses",
        ),
    )  # fmt: skip


def _lazy(w: dict[str, int], rows: int, cols: int) -> tuple[Design, ...]:
    """Elements that only add, and columns that reduce."""
    return (
        Design(
            "lazy_pe", "lazy_pe", (*BLOCKS, "lazy_pe.v"), w, NEIGHBOURS, period=540,
            note="element that only adds, its column reduces",
        ),
        Design(
            "lazy_reduce", "lazy_reduce", (*BLOCKS, "lazy_reduce.v"), w, still=CONSTANTS, period=540,
            note="the reduction of a column",
        ),
        Design(
            "lazy_periphery", "lazy_array", LAZY, {**w, "R": rows, "C": cols}, still=CONSTANTS,
            blocks=("lazy_pe", "lazy_reduce"),
            note=f"{rows}x{cols} array of these, without elements and reductions",
        ),
        Design(
            "lazy_pe_32", "lazy_pe", (*BLOCKS, "lazy_pe.v"), {**w, **DEEP}, NEIGHBOURS, period=540,
            note="lazy_pe for sums over 32 steps",
        ),
        Design(
            "lazy_reduce_32", "lazy_reduce", (*BLOCKS, "lazy_reduce.v"), {**w, **DEEP}, still=CONSTANTS,
            period=540, note="the reduction of a column of these",
        ),
        Design(
            "lazy_periphery_32", "lazy_array", LAZY, {**w, **DEEP, "R": rows, "C": cols}, still=CONSTANTS,
            blocks=("lazy_pe", "lazy_reduce"),
            note=f"{rows}x{cols} array for sums over 32 steps, without elements and reductions",
        ),
    )  # fmt: skip


def _halves(w: dict[str, int], rows: int, cols: int) -> tuple[Design, ...]:
    """Peripheries of arrays of half as many rows."""
    return tuple(
        Design(
            f"{name}_half", top, sources, {**w, "R": rows // 2, "C": cols, **more}, still=CONSTANTS,
            blocks=blocks, note=f"{name} of {rows // 2}x{cols}",
        )
        for name, top, sources, more, blocks in (
            ("array_periphery", "fhecore_array", (*ARRAY, "modmul_pe_cs.v"), {"CARRY_SAVE": 1},
             ("modmul_pe_cs",)),
            ("lazy_periphery", "lazy_array", LAZY, {}, ("lazy_pe", "lazy_reduce")),
        )
    )  # fmt: skip


def _tensor() -> tuple[Design, ...]:
    """Elements of a tensor core."""
    return (
        Design(
            "tensor_pe", "tensor_pe", (*TENSOR, "tensor_pe.v"), {}, TENSOR_NEIGHBOURS,
            period=TENSOR_PERIOD, note="element of a tensor core, assumed: FP64, FP32, FP16, INT8",
        ),
        Design(
            "tensor_pe_fhe", "tensor_pe_fhe",
            (*TENSOR, "tensor_pe.v", "modular_accumulate.v", "modmul_pe_cs.v", "tensor_pe_fhe.v"), {},
            (*TENSOR_NEIGHBOURS, ("modular_in", "modular_out"), ("bank_in", "bank_out")), CONSTANTS,
            TENSOR_PERIOD, note="the same with the modular element beside it",
        ),
    )  # fmt: skip


def designs(width: int = 32, rows: int = 16, cols: int = 8) -> dict[str, Design]:
    """By name, those that can be so wide."""
    w = {"W": width}
    wrapper = (
        Design(
            "wrapper_periphery", "fhecore", WRAPPER, {**w, "R": rows, "C": cols},
            blocks=("fhecore_array",), memory=True,
            note="unit without its array: operand and result buffers, constants, control",
        ),
    )  # fmt: skip
    found = (*_elements(w, rows, cols), *_lazy(w, rows, cols), *_halves(w, rows, cols), *wrapper, *_tensor())
    return {d.name: d for d in found if width >= LEAST_WIDTH.get(d.top, 0)}
