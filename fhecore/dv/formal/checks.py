"""The proofs: what is proved on which sources, in which mode, and the mutations that each must refuse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fhecore.dv import benches, tools
from fhecore.dv.formal.engine import HERE, ProofError, Query, Verdict, prove

FREE = {"modmul_pe": ("r5",), "modmul_pe_cs": ("r5s", "r5c")}  # registers that hold r2


@dataclass(frozen=True)
class Mutation:
    """A fault put into a copy of one file."""

    name: str
    file: str
    old: str
    new: str
    long: bool = True


@dataclass(frozen=True)
class Check:
    query: Query
    long: bool
    mutations: tuple[Mutation, ...] = ()


def observe(*names: str) -> tuple[str, ...]:
    """Tie wires of the property module to registers of the element."""
    return tuple(f"connect -nounset -nomap -set {name} dut.{name}" for name in names)


def cut(*names: str) -> tuple[str, ...]:
    """Let registers of the element take any value in any cycle."""
    return tuple(f"cutpoint w:dut.{name}" for name in names)


def element(form: str, width: int) -> tuple[Path, ...]:
    """Sources of one form; adders by their meaning (proved apart), and trees too where the words are too wide
    for the solver to go through theirs: the product of 8 bits."""
    names = ("prefix_adder", "csatree") if width == 8 else ("prefix_adder",)
    stand_ins = {name: HERE / f"{name}_abstract.v" for name in names}
    return tuple(stand_ins.get(path.stem, path) for path in benches.sources(form))


def of_element(form: str, top: str, width: int, steps: int, after: tuple[str, ...], **more: int) -> Query:
    defines = {"FORM": form}
    if form == "modmul_pe_cs":
        defines |= {"CARRY_SAVE": "1", "PARAMETERS": ",.CELLS(0)"}
    split = "".join(f" {name}={value}" for name, value in more.items())
    name = f"{top} {form} W={width}{split}"
    return Query(name, top, element(form, width), {"W": width, **more}, steps, defines, after)


def checks() -> list[Check]:
    """All proofs whose sources exist."""
    found: list[Check] = []
    for width in (6, 7):  # 8 gave no verdict in 15 minutes; exhaustive.cpp counts every case there
        query = Query(f"barrett_lemma W={width}", "barrett_lemma", (), {"W": width}, 0, limit=1800)
        found.append(Check(query, width > 6, LEMMA if width == 6 else ()))
    for form in ("modmul_pe", "modmul_pe_cs"):
        if benches.sources(form):
            found += of_form(form)
    found += of_array()
    found += of_control()
    if benches.sources("prefix_adder"):
        for width in (8, 34, 40, 64):
            query = Query(
                f"adder_sum W={width}", "adder_sum", tuple(benches.sources("prefix_adder")), {"W": width}, 0
            )
            found.append(Check(query, width == 64, ADDER if width == 8 else ()))
    if benches.sources("csatree"):
        for rows, cells in ((4, 0), (4, 1), (7, 1)):
            parameters = {"W": 3, "N": rows, "CELLS": cells}
            name = f"csatree_sum N={rows} CELLS={cells}"
            query = Query(name, "csatree_sum", tuple(benches.sources("csatree")), parameters, 0)
            found.append(Check(query, (rows, cells) != (4, 0), TREE if (rows, cells) == (4, 0) else ()))
    return found


def of_form(form: str) -> list[Check]:
    mine = BEHAVIOURAL if form == "modmul_pe" else CARRY_SAVE
    free = FREE[form]
    multipliers = ("cutpoint t:$mul",) if form == "modmul_pe" else cut("sum1", "p2", "sum3", "r5s", "r5c")
    found = [
        Check(of_element(form, "pe_product", 6, 2, observe("p2")), False, mine["product"]),
        Check(of_element(form, "pe_control", 32, 7, multipliers), False, mine["control"]),
    ]
    for width in (12, 32):
        query = of_element(form, "pe_accumulate", width, 6, cut(*free) + observe(*free))
        found.append(
            Check(replace(query, limit=1800), width == 32, mine["accumulate"] if width == 12 else ())
        )
    found.append(Check(replace(of_element(form, "pe_product", 8, 2, observe("p2")), limit=1800), True))
    if form == "modmul_pe":  # the carry-save form gave no verdict in 100 s
        found.append(Check(of_element(form, "pe_value", 6, 6, (), Q0=43, Q1=53), True, mine["accumulate"]))
    # Case split: every q' at W = 6, each in both banks (bank 1 has the mirrored list).
    moduli = list(range((1 << 2) + 1, 1 << 6))
    for low, high in zip(moduli, reversed(moduli), strict=True):
        query = of_element(form, "pe_reduce", 6, 5, cut("p2") + observe("p2", *free), Q0=low, Q1=high)
        quick = low in (5, 43)
        found.append(Check(query, not quick, mine["reduce"] if low == 43 else ()))
    return found


def of_array() -> list[Check]:
    """Movement through the array of behavioural elements, a small one quick and one of more rows."""
    if not benches.sources("fhecore_array"):
        return []
    files = tuple(path for path in benches.sources("fhecore_array") if path.stem not in CARRY_SAVE_ONLY)
    after = ("cutpoint t:$mul", *observe("a_net", "b_net", "ctl_net", "c_edge"))
    found = []
    for rows, cols in ((3, 2), (5, 4)):
        name = f"array_control {rows}x{cols}"
        parameters = {"W": 6, "R": rows, "C": cols}
        query = Query(name, "array_control", files, parameters, rows + cols + 5, after_flatten=after)
        found.append(Check(query, rows > 3, ARRAY if rows == 3 else ()))
    return found


def of_control() -> list[Check]:
    """Constants found ahead of a tile's start, and the order of commands that this relies on."""
    lookup = Query(
        "constants_lookup", "constants_lookup", (tools.RTL / "fhecore_constants.v",), {}, 6,
        after_flatten=observe("found", "entry", "loaded", "miss"),
    )  # fmt: skip
    found = [Check(lookup, False, LOOKUP)]
    for beats, edges in (((1, 1, 1), 11), ((1, 1, 1), 14), ((2, 1, 1), 16), ((1, 2, 2), 18)):
        names = dict(zip(("SET_BEATS", "AB_BEATS", "C_BEATS"), beats, strict=True))
        query = Query(
            f"collect_order {beats[0]} {beats[1]} {beats[2]}, {edges} edges", "collect_order",
            (tools.RTL / "fhecore_collect.v",), {**names, "EDGES": edges}, edges,
        )  # fmt: skip
        found.append(Check(query, edges > 11, ORDER if edges == 11 else ()))
    return found


CARRY_SAVE_ONLY = {"csa", "csatree", "full_adder", "prefix_adder", "booth_rows", "booth_recode"} | {
    "modular_accumulate",
    "modmul_pe_cs",
}
LEMMA = (
    Mutation("shift one too far", "barrett_lemma.v", "product[2*W+9:W+6]", "product[2*W+9:W+7]", long=False),
    Mutation("no correction", "barrett_lemma.v", "less[W+1] ? r2 : less", "r2"),
    Mutation("mu one too large", "barrett_lemma.v", "(left < wide_q)", "(left + wide_q < wide_q)"),
    Mutation("three bits of p cut", "barrett_lemma.v", "p[2*W-1:W-5]}", "p[2*W-1:W-2], 3'b0}"),
)
ADDER = (Mutation("carry in always", "prefix_adder.v", "half[0] & carry_in", "half[0]"),)
ARRAY = (
    Mutation("b skewed by the row", "fhecore_array.v", ".CYCLES(j)) b_line", ".CYCLES(j+1)) b_line"),
    Mutation("a of the row above", "fhecore_array.v", "a_edge[i*W +: W];", "a_edge[(i ? i-1 : 0)*W +: W];"),
    Mutation("reset misses the skew", "fhecore_array.v", ".clear(rst)", ".clear(1'b0)"),
    Mutation("a column without its first row", "fhecore_array.v", "|dones", "|dones[R-1:1]"),
    Mutation("input register misses reset", "fhecore_array.v", "valid_in & ~rst", "valid_in"),
)
LOOKUP = (
    Mutation("slot not watched", "fhecore_constants.v", "(slot == entry_slot) & ", "", long=False),
    Mutation("set not watched", "fhecore_constants.v", "entry_slot) & ~set &", "entry_slot) &"),
    Mutation("load not watched", "fhecore_constants.v", "& ~load & ~start", "& ~start"),
    Mutation("start not watched", "fhecore_constants.v", "& ~load & ~start", "& ~load"),
    Mutation("reset not watched", "fhecore_constants.v", "& ~start & ~rst;", "& ~start;"),
    Mutation("entry not awaited", "fhecore_constants.v", "entry_current & still", "still"),
    Mutation("hit not awaited", "fhecore_constants.v", "hit_current & still", "still"),
    Mutation("verdict kept", "fhecore_constants.v", "hit_current & still", "hit_current"),
    Mutation("bank loaded while in use", "fhecore_constants.v", "(|hit) | ~bank_busy[choice]", "1'b1"),
    Mutation("bank not loaded", "fhecore_constants.v", "start & miss", "1'b0"),
    Mutation("mu not compared", "fhecore_constants.v", "{entry_q, entry_mu} == {q1, mu1}", "entry_q == q1"),
)
ORDER = (
    Mutation("setc overtakes a tile", "fhecore_collect.v", "(~(is_set & last) | all_started)", "1'b1", False),
    Mutation("set overwritten", "fhecore_collect.v", "(head_setc | ~full[next_fill])", "1'b1"),
    Mutation("slot of the tile before", "fhecore_collect.v", "held0 <= {use_c, s", "held0 <= {use_c, held_s"),
    Mutation("slot shown late", "fhecore_collect.v", "tile_ready ? held_slot : slot", "held_slot"),
)
TREE = (Mutation("carry row off by one", "csa.v", "{carry[W-2:0], 1'b0}", "{carry[W-2:0], 1'b1}"),)
BEHAVIOURAL = {
    "product": (Mutation("c in every step", "modmul_pe.v", "first_in ? c_in : {W{1'b0}}", "c_in"),),
    "reduce": (
        Mutation("q of the step behind", "modmul_pe.v", "bank[3] ? q1 : q0", "bank[2] ? q1 : q0"),
        Mutation("mu banks swapped", "modmul_pe.v", "bank[2] ? mu1 : mu0", "bank[2] ? mu0 : mu1"),
        Mutation("shift one too far", "modmul_pe.v", "t2[2*W+7:W+6]", "t2[2*W+8:W+7]"),
    ),
    "accumulate": (
        Mutation("second subtraction missing", "modmul_pe.v", "!sum2[W+1] ? sum2[W-1:0] : ", ""),
        Mutation("q of the step behind", "modmul_pe.v", "bank[5] ? q1 : q0", "bank[4] ? q1 : q0"),
        Mutation("first ignored", "modmul_pe.v", "(first[5] ?", "(1'b0 ?"),
    ),
    "control": (
        Mutation("steps survive reset", "modmul_pe.v", "rst ? 4'b0 : {valid", "1'b0 ? 4'b0 : {valid"),
        Mutation("done one early", "modmul_pe.v", "valid[5] && last[5]", "valid[4] && last[4]"),
        Mutation("bubbles accumulate", "modmul_pe.v", "if (valid[5]) acc", "if (1'b1) acc"),
        Mutation("bank not forwarded", "modmul_pe.v", "bank_out <= bank_in", "bank_out <= bank_out"),
    ),
}
CARRY_SAVE = {
    "product": (Mutation("c in every step", "modmul_pe_cs.v", "c_in & {W{first_in}}", "c_in"),),
    "reduce": (
        Mutation("q of the step behind", "modmul_pe_cs.v", "bank[3] ? q1 : q0", "bank[2] ? q1 : q0"),
        Mutation("mu banks swapped", "modmul_pe_cs.v", "bank_out ? mu1 : mu0", "bank_out ? mu0 : mu1"),
        Mutation("quotient one bit off", "modmul_pe_cs.v", "qh_next[Q-1:Q-R]", "qh_next[Q-2:Q-R-1]"),
    ),
    "accumulate": (
        Mutation("second subtraction missing", "modular_accumulate.v", "valid & ~sum2[R-1]", "1'b0"),
        Mutation("first ignored", "modular_accumulate.v", "acc & ~{W{first}}", "acc"),
    ),
    "control": (
        Mutation("steps survive reset", "modmul_pe_cs.v", "rst ? 4'b0 : {valid", "1'b0 ? 4'b0 : {valid"),
        Mutation("done one early", "modmul_pe_cs.v", "valid[5] && last[5]", "valid[4] && last[4]"),
        Mutation("bubbles accumulate", "modmul_pe_cs.v", ".valid(valid[5])", ".valid(1'b1)"),
    ),
}


def run(check: Check, work: Path) -> Verdict:
    return prove(check.query, work)


def run_mutation(check: Check, mutation: Mutation, work: Path) -> Verdict:
    """Prove the same property of the mutated sources: the verdict should be a counterexample."""
    query = check.query
    name = f"{query.name} mutant {mutation.name}"
    folder = work / "formal" / name.replace(" ", "_") / "rtl"
    patch = {mutation.file: [(mutation.old, mutation.new)]}
    if mutation.file == f"{query.top}.v":
        (copy,) = benches.mutate(folder, [HERE / mutation.file], patch)
        return prove(replace(query, name=name, property_file=copy), work)
    files = tuple(benches.mutate(folder, list(query.files), patch))
    return prove(replace(query, name=name, files=files), work)


__all__ = ["Check", "Mutation", "ProofError", "checks", "run", "run_mutation", "tools"]
