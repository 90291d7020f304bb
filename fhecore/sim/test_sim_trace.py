"""SASS front end, trace reconstruction, rewriting. No GPU; what needs nvcc or cuobjdump is skipped, by name,
where they are not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from fhecore.sim import (
    calibrate,
    compose,
    engine,
    micro,
    params,
    profiles,
    rewrite,
    sass,
    trace,
)

HERE = Path(__file__).resolve().parent
CUDA = shutil.which("nvcc") and sass.find_tool("cuobjdump")
needs_cuda = pytest.mark.skipif(not CUDA, reason="nvcc or cuobjdump is not installed")


def encode(stall=1, stay=1, write=7, read=7, wait=0, reuse=0) -> int:
    return (stall | stay << 4 | write << 5 | read << 8 | wait << 11 | reuse << 17) << 105


def listing(*lines, name="f") -> str:
    """A listing as cuobjdump prints it; a line is text or (text, control fields)."""
    out = [f"\t\tFunction : {name}"]
    for k, line in enumerate(lines):
        text, control = line if isinstance(line, tuple) else (line, {})
        code = encode(**control) | 0x7947
        pc = f"/*{16 * k:04x}*/"
        out.append(f"        {pc}   {text} ;   /* 0x{code & (1 << 64) - 1:016x} */")
        out.append(f"        /* 0x{code >> 64:016x} */")
    return "\n".join(out)


def function(*lines) -> sass.Function:
    return sass.parse(listing(*lines))["f"]


# ---- SASS
# ---------------------------------------------------------------------------------------------------
def test_control_codes():
    c = sass.Control.decode(encode(stall=13, stay=0, write=2, read=5, wait=0b100101, reuse=3))
    assert (c.stall, c.yield_, c.write_bar, c.read_bar, c.wait, c.reuse) == (13, True, 2, 5, 0b100101, 3)


def test_registers_and_units():
    f = function(
        "IMAD.WIDE.U32 R4, R8, R9.reuse, R6", "@!P0 LDG.E.128 R12, desc[UR4][R2.64+0x10]",
        "STS.64 [R3+0x8], R10",
        "IADD3 R1, P0, R2, R5, RZ", "IMMA.16832.U8.U8 R44, R40.ROW, R8.COL, RZ", "S2UR UR5, SR_CTAID.X",
        "CS2R R2, SR_CLOCKLO", "ISETP.GE.U32.AND P0, PT, R6, 0x10, PT", "EXIT",
    )  # fmt: skip
    spans = [(i.dst, i.sources) for i in f.code]
    assert spans[0] == ((4, 2), ((8, 1), (9, 1), (6, 2)))
    assert spans[1] == ((12, 4), ((2, 2),)) and f.code[1].predicate == "!P0"
    assert spans[2] == (None, ((3, 1), (10, 2)))
    assert spans[3] == ((1, 1), ((2, 1), (5, 1)))
    assert spans[4] == ((44, 4), ((40, 4), (8, 2)))
    assert spans[7] == (None, ((6, 1),))
    units = [sass.unit_of(i.opcode, i.operands) for i in f.code]
    assert units == ["fmawide", "ldg", "sts", "alu", "tensor", "s2r", "clock", "alu", "exit"]
    with pytest.raises(KeyError, match="FROB"):
        sass.unit_of("FROB.X", ())


NESTED = (  # 0 | 1: outer header | 2: inner | 3: end of outer | 4
    "MOV R0, 0x1", "@P0 BRA 0x20", "IADD3 R1, R1, 0x1, RZ", "IADD3 R2, R2, 0x1, RZ", "@P1 BRA 0x30",
    "@P2 BRA 0x20", "EXIT", "BRA 0x70", "NOP",
)  # fmt: skip


def test_blocks_and_loops():
    f = function(*NESTED)
    assert len(f.code) == 7  # the padding is gone
    assert [(b.first, b.last) for b in f.blocks] == [(0, 2), (2, 3), (3, 5), (5, 6), (6, 7)]
    assert f.loops == [sass.Loop(1, 3), sass.Loop(2, 2)]
    assert f.blocks[2].successors == [2, 3] and f.blocks[0].successors == [1]


def test_bad_listings_are_refused():
    with pytest.raises(sass.SassError, match="no function"):
        sass.parse("nothing here")
    with pytest.raises(sass.SassError, match="second half"):
        sass.parse("\n".join(listing("NOP", "EXIT").splitlines()[:-1]))


# ---- traces from counts
# -------------------------------------------------------------------------------------
def walk_of(f, counts, grid, warps) -> trace.Walk:
    launch = trace.Launch("f", grid, warps, 32, 0)
    return trace.Walk(f, counts, launch)


def test_nested_loops_are_rebuilt_from_counts():
    f = function(*NESTED)
    # 6 warps, 2 outer rounds, 3 inner rounds each.
    w = walk_of(f, [6, 12, 36, 12, 6], 3, 2)
    assert w.path(4) == (0, 1, 2, 2, 2, 3, 1, 2, 2, 2, 3, 4)
    w.check()
    text = trace.text(w, 2)
    assert "path 0:2 2:1" not in text and text.count("\ncta ") == 2  # CTAs 0 and 2 of three, on two SMs
    assert text.count("\npath ") == 1


def test_uneven_trips_still_add_up():
    f = function(*NESTED)
    counts = [8, 8, 30, 8, 8]  # inner rounds: 3 or 4
    w = walk_of(f, counts, 2, 4)
    w.check()
    assert w.total() == counts
    assert {w.path(k).count(2) for k in range(8)} == {3, 4}


BRANCH = ("ISETP.NE.AND P0, PT, R0, RZ, PT", "@P0 BRA 0x40", "IADD3 R1, R1, R2, RZ", "BRA 0x50",
          "IMAD R1, R1, R2, RZ", "EXIT")  # fmt: skip


def test_branches_are_complementary_and_whole_ctas_take_them():
    f = function(*BRANCH)
    # 4 CTAs of 2 warps: two CTAs go each way.
    w = walk_of(f, [8, 4, 4, 8], 4, 2)
    w.check()
    paths = [w.path(k) for k in range(8)]
    assert sorted(set(paths)) == [(0, 1, 3), (0, 2, 3)]
    assert all(paths[2 * c] == paths[2 * c + 1] for c in range(4))
    # 3 of 8 warps, 5 of 8: no CTA as a whole.
    w = walk_of(f, [8, 3, 5, 8], 4, 2)
    w.check()
    assert all(len(w.path(k)) == 3 for k in range(8))


def test_divergent_warps_execute_both_sides():
    w = walk_of(function(*BRANCH), [8, 8, 8, 8], 4, 2)
    assert w.path(0) == (0, 1, 2, 3)
    assert w.total() == [8, 8, 8, 8]


def test_counts_that_do_not_fit_are_refused():
    f = function(*NESTED)
    with pytest.raises(trace.TraceError, match="first block executed 5"):
        walk_of(f, [5, 5, 5, 5, 5], 3, 2)
    with pytest.raises(trace.TraceError, match="block 1 has counts|block 2 has counts"):
        trace.block_counts(f, [6, 6, 6, 12, 13, 6, 6])
    with pytest.raises(sass.SassError, match="2 loops, 1 trip"):
        sass.static_counts(f, 1, [2])


def test_static_counts():
    f = function(*NESTED)
    counts = sass.static_counts(f, 6, [2, 3])
    assert counts == [6, 12, 36, 12, 6]
    assert sass.instructions(f, counts) == 2 * 6 + 12 + 2 * 36 + 12 + 6


# ---- rewriting
# ----------------------------------------------------------------------------------------------
PAIR = ("NANOSLEEP R50", ("IMMA.16832.U8.U8 R44, R8.ROW, R32.COL, RZ", {"wait": 4}), "IADD3 R1, R2, R3, RZ",
        ("IMMA.16832.U8.U8 R44, R12.ROW, R34.COL, R44", {"wait": 1, "stall": 5}), "EXIT")  # fmt: skip


def test_marks_become_one_instruction_with_all_operands():
    f = function(*PAIR)
    launch = trace.Launch("f", 1, 1, 64, 0)
    done = rewrite.rewrite(f, launch)
    assert done.lines[1] == "" and done.fhec == [3] and done.setc == [0]
    assert done.lines[3] == "i fhec st=5 s=8:4 s=12:4 s=32:2 s=34:2 r0=6 r1=6 d=44:4 w=5"
    assert done.lines[0].startswith("i setc")
    # R8 and R12, R32 and R34 follow each other: the instruction can have them.
    assert rewrite.listing(f, done) == [
        "/*0000*/ FHEC.SETC R50 ;",
        "/*0030*/ FHEC.16816.U32 R44, R8, R32, RZ ;",
    ]
    apart = [
        line if isinstance(line, str) else (line[0].replace("R12.ROW", "R20.ROW"), line[1]) for line in PAIR
    ]
    far = function(*apart)
    assert rewrite.listing(far, rewrite.rewrite(far, launch))[1] == (
        "// FHEC.16816.U32 needs moves: 0x30: R8 and R20 are not consecutive"
    )
    with_sum = [*PAIR[:1], "IMMA.16832.U8.U8 R44, R8.ROW, R32.COL, R20", *PAIR[2:]]
    assert "s=20:4" in rewrite.rewrite(function(*with_sum), launch).lines[3]
    with pytest.raises(rewrite.RewriteError, match="alone"):
        rewrite.rewrite(function(*PAIR[:3], "EXIT"), launch)


def test_register_reads_by_bank():
    reads, kept = sass.bank_reads("IMAD", ("R6", "R2", "R6", "R9.reuse"), {})
    assert reads == (2, 1) and kept == {2: 9}
    # R9 is at hand for the same slot of the next instruction, not for another slot.
    assert sass.bank_reads("LOP3.LUT", ("R20", "R20", "R2", "R9", "0xe8", "!PT"), kept) == ((2, 0), {})
    assert sass.bank_reads("LOP3.LUT", ("R20", "R20", "R9", "R2", "0xe8", "!PT"), kept)[0] == (2, 1)
    # The sum of a wide product has two words, and its factors are read twice; uniform registers and RZ are
    # none.
    assert sass.bank_reads("IMAD.WIDE.U32", ("R4", "R2", "UR4", "R6"), {})[0] == (3, 1)
    assert sass.bank_reads("IMAD.HI.U32", ("R4", "R2", "R3", "RZ"), {})[0] == (2, 2)
    # A register named twice is read once.
    assert sass.bank_reads("VIADDMNMX.U32", ("R4", "R2", "R3", "R2", "PT"), {})[0] == (1, 1)
    assert sass.bank_reads("IADD3", ("R12", "P0", "P1", "R24", "R38", "RZ"), {})[0] == (2, 0)
    assert sass.bank_reads("IMMA.16816.U8.U8", ("R4", "R8.ROW", "R11.COL", "R4"), {})[0] == (3, 4)
    f = function("IMAD R6, R2, R6, R9.reuse", "IMAD R7, R2, R6, R9", "EXIT")
    assert f.bank_reads == [(2, 1), (2, 0), (0, 0)]
    assert f.bank_lost == [(0, 0), (0, 1), (0, 0)]  # R9, where another warp issued in between


def test_hits_go_to_shared_words_then_tables_then_data():
    code = function(
        "LDG.E R1, [R2]", "LDG.E.CONSTANT R3, [R2]", "LDG.E R4, [R2]", "STG.E [R2], R4", "EXIT"
    ).code
    moved = {0: trace.Access(1, 1), 1: trace.Access(4, 1), 2: trace.Access(5, 1), 3: trace.Access(4, 1)}
    executed = dict.fromkeys(range(4), 10.0)
    out = profiles.with_hits(code, executed, moved, (0.3, 0.5, 0.9))
    # 100 sectors loaded, 30 hit: 10 of the shared word, 20 of the table's 40. Of 70 that miss, 35 are in L2.
    assert [out[k].l1_hit for k in range(4)] == [1.0, 0.5, 0.0, 0.0]
    assert [out[k].l2_hit for k in range(4)] == pytest.approx([0.0, 1.0, 15 / 50, 0.9])


def test_a_block_that_parted_lanes_reach_twice():
    assert [trace.times(Fraction(2), v) for v in range(3)] == [2, 2, 2]
    assert sum(trace.times(Fraction(3, 2), v) for v in range(4)) == 6
    assert trace.times(Fraction(1, 3), 0) == 1


def test_text_of_the_proposed_instructions_round_trips():
    text = [
        rewrite.render(0x400, "", True, None, ((7, 1),)),
        rewrite.render(0x410, "!P0", False, (40, 4), ((8, 4), (12, 4), (32, 2), (34, 2), (40, 4))),
        rewrite.render(0x420, "", False, (248, 4), ((240, 8), (32, 4))),
    ]
    assert text[1] == "/*0410*/ @!P0 FHEC.16816.U32 R40, R8, R32, R40 ;"
    setc, full, zero = sass.parse_fhec("\n".join(["// a trace", *text]))
    assert [sass.unit_of(i.opcode, i.operands) for i in (setc, full, zero)] == ["setc", "fhec", "fhec"]
    assert (setc.pc, setc.dst, setc.sources) == (0x400, None, ((7, 1),))
    assert (full.predicate, full.dst, full.sources) == ("!P0", (40, 4), ((8, 8), (32, 4), (40, 4)))
    assert (zero.dst, zero.sources) == ((248, 4), ((240, 8), (32, 4)))
    spans = [(i.pc, i.predicate, i.opcode == "FHEC.SETC", i.dst, i.sources) for i in (setc, full, zero)]
    assert [rewrite.render(*s) for s in spans] == text
    assert [i.pc for i in sass.parse_fhec("FHEC.SETC R3 ; // first\nFHEC.SETC R4.reuse;")] == [0, 16]
    for bad in ("FHEC.SETC R1", "FHEC.SETC RZ ;", "FHEC.16816 R0, R8, R16, RZ ;", "IMAD R1, R2, R3, R4 ;",
                "FHEC.16816.U32 R0, R4, R16, RZ ;", "FHEC.16816.U32 R0, R8, R18, RZ ;", "FHEC.SETC R255 ;",
                "FHEC.16816.U32 R0, R8, RZ, RZ ;", "FHEC.16816.U32 R252, R8, R16, RZ ;"):  # fmt: skip
        with pytest.raises(sass.SassError):
            sass.parse_fhec(bad)
    with pytest.raises(rewrite.RewriteError, match="aligned to 8"):
        rewrite.render(0, "", False, (0, 4), ((12, 8), (32, 4)))
    with pytest.raises(rewrite.RewriteError, match="operands"):
        rewrite.render(0, "", False, (0, 4), ((8, 8),))


def test_tools_come_from_no_predictable_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "cuobjdump"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert sass.find_tool("cuobjdump") == str(tool)
    site = tmp_path / "site"
    (site / "nvidia" / "cu13").mkdir(parents=True)
    (tmp_path / "bin").rename(site / "nvidia" / "cu13" / "bin")
    monkeypatch.setattr(sass, "USUAL", tmp_path / "none")
    monkeypatch.setattr(sass, "PROFILER", tmp_path / "none")
    monkeypatch.setattr(sass.sysconfig, "get_path", lambda _: str(site))
    assert sass.find_tool("cuobjdump") == str(site / "nvidia" / "cu13" / "bin" / "cuobjdump")
    shared = "/" + "tmp/"
    for name in ("sass.py", "collect.py", "ingest.py", "engine.py"):
        assert shared not in (HERE / name).read_text(), name


def test_counts_of_the_mapping():
    assert rewrite.ntt_fhec(16) == 2048
    assert rewrite.convert_fhec(16, 9, 27) == 16384
    assert rewrite.convert_fhec(16, 18, 12) == 4096 * 2 * 2
    with pytest.raises(rewrite.RewriteError, match="power of 16"):
        rewrite.ntt_fhec(15)


@pytest.fixture(scope="session")
def unit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unit")
    instances = [("columns", "StubUnit", "TransformArgs"), ("rows", "StubUnit", "TransformArgs"),
                 ("key_rows", "StubUnit", "KeyArgs"), ("divide_rows", "StubUnit, true", "DivideArgs"),
                 ("convert", "StubUnit, 1", "ConvertArgs")]  # fmt: skip
    lines = ['#include "fused.cuh"', "namespace crenel::fhecore::sim {"]
    lines += [f"template __global__ void {k}<{t}>(const __grid_constant__ {a});" for k, t, a in instances]
    (folder / "unit.cu").write_text("\n".join([*lines, "}"]))
    out = folder / "unit.cubin"
    command = ["nvcc", "-std=c++20", "-arch=sm_90", "-O3", f"-I{HERE}/kernels", "-cubin", "-o", str(out)]
    subprocess.run([*command, str(folder / "unit.cu")], check=True)
    return sass.parse(sass.disassemble(out)), sass.read_usage(out)


@needs_cuda
@pytest.mark.parametrize(
    ("kernel", "limbs", "polys", "trips", "fhec"),
    [
        ("columns", 3, 2, [1], 3 * 2 * 1024),
        ("rows", 3, 2, [1, 2], 3 * 2 * 1024),
        ("divide_rows", 3, 2, [2], 3 * 2 * 1024),
        ("convert", 128, 2, [1, 1, 6], 2 * rewrite.convert_fhec(16, 12, 48)),
    ],
)
def test_stub_kernels_have_the_mapping_s_counts(unit, kernel, limbs, polys, trips, fhec):
    functions, usages = unit
    name = next(n for n in functions if profiles.base_name(n) == kernel)
    f, usage = functions[name], usages[name]
    grid = limbs * polys if kernel == "convert" else 16 * limbs * polys
    launch = trace.Launch(kernel, grid, 8, usage.registers, usage.shared_bytes)
    walk = trace.Walk(f, sass.static_counts(f, launch.all_warps, trips), launch)
    walk.check()
    done = rewrite.rewrite(f, launch)
    assert rewrite.executed(walk, done.fhec) == fhec
    assert usage.stack_bytes == 0  # nothing spilled: the data movement is that of the algorithm
    for k in done.fhec:  # 8 + 4 registers read, or 16 with C; 4 written
        words = done.lines[k].split()
        assert sum(int(w.split(":")[1]) for w in words if w.startswith("s=")) in (12, 16)
        assert any(w.startswith("d=") and w.endswith(":4") for w in words)
    result = engine.run(trace.text(walk, 132, done.lines), params.of_engine(params.load("h200")))
    assert result["by_unit"]["fhec"] > 0 and "tensor" not in result["by_unit"]


@needs_cuda
@pytest.mark.parametrize(("limbs", "digits"), [(47, 4), (23, 2)])
def test_key_rows_multiplies_what_no_digit_has(unit, limbs, digits):
    functions, usages = unit
    name = next(n for n in functions if profiles.base_name(n) == "key_rows")
    f, extended = functions[name], limbs + 12
    launch = trace.Launch("key_rows", 16 * extended, 8, usages[name].registers, usages[name].shared_bytes)
    counts = sass.static_counts(f, launch.all_warps, [2, digits])
    marks = {n for n, b in enumerate(f.blocks) for i in f.code[b.first : b.last] if i.opcode == rewrite.MARK}
    (transform,) = marks
    (fork,) = f.blocks[transform].predecessors
    (own,) = set(f.blocks[fork].successors) - {transform}
    # A warp has two rows; every limb of the chain is in one digit already, a special limb in none.
    counts[own] = limbs * 16 * 8 * 2
    counts[transform] -= counts[own]
    walk = trace.Walk(f, counts, launch)
    walk.check()
    done = rewrite.rewrite(f, launch)
    assert rewrite.executed(walk, done.fhec) == compose.key_rows_fhec(f"hemult_{limbs}")


@needs_cuda
def test_microbenchmarks_compile_to_what_is_meant(tmp_path, monkeypatch):
    cubin = tmp_path / "micro.cubin"
    command = ["nvcc", "-std=c++20", "-arch=sm_90", "-O3", f"-I{HERE}/micro", "-cubin", "-o", str(cubin)]
    subprocess.run([*command, str(HERE / "micro" / "micro.cu")], check=True)
    functions, usages = micro.load(cubin)
    values = params.of_engine(params.start("h200"))
    for bench in micro.BENCHES:
        micro.check_sass(bench, functions[micro.find(functions, bench.symbol)])
    # The empty kernel is the start of a CTA and an instruction or two.
    null = micro.null_cycles(functions, usages, values)
    assert values["cta_launch"] < null < values["cta_launch"] + 50
    lines = [{"device": "test"}, {"chain": "graph", "us_each": 3.0, "overlapped_us_each": 2.0}]
    lines += [{"name": b.name, "threads": b.threads, "rounds": b.rounds, "cycles": 1} for b in micro.BENCHES]
    (tmp_path / "micro.jsonl").write_text("\n".join(map(json.dumps, lines)))
    fitted = {"fitted": {}, "errors": [{"name": "x", "fits": None, "model": 1, "measured": 1, "error": 0.0}]}
    monkeypatch.setattr(calibrate, "fit", lambda *_: fitted)
    command = [str(tmp_path / "micro.jsonl"), str(cubin), "--out", str(tmp_path / "fit.json")]
    assert calibrate.main([*command, "--null-cycles", "1980"]) == 0
    found = json.loads((tmp_path / "fit.json").read_text())["fitted"]
    assert found["kernel_cycles"] == 1980 - null and found["launch_us"] == pytest.approx(1.0)
    # A chain of 64 times 64 dependent multiply-adds takes at least their latency.
    assert (
        micro.predict(micro.BY_NAME["imad_chain"], functions, usages, values) >= 4096 * values["fma_latency"]
    )
    with pytest.raises(micro.MicroError, match="expected 64"):
        wrong = micro.Bench("x", "3MadILi1E", 1, 32, 64, "DFMA", 64)
        micro.check_sass(wrong, functions[micro.find(functions, wrong.symbol)])
