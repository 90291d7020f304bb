"""The wrapper: C++ bench on Verilator (random tiles, exact timing, mutations) and cocotb."""

from __future__ import annotations

import json
import shutil

import pytest

from fhecore import config
from fhecore.dv import benches, stimulus, tools, unit

SHAPES = config.load()
PORTS = [
    "clk",
    "rst",
    "cmd_valid",
    "cmd_ready",
    "cmd_setc",
    "cmd_slot",
    "cmd_use_c",
    "cmd_tag",
    "rf_valid",
    "rf_ready",
    "rf_data",
    "res_valid",
    "res_ready",
    "res_tag",
    "res_fault",
    "res_data",
    "res_last",
]


def need_verilator(work):
    tool = tools.verilator(work)
    if tool.path is None:
        pytest.skip(tool.reason)
    return tool.path


def bench(work, name, tiles, carry_save=False, require=False):
    verilator = need_verilator(work)
    build = unit.Build(SHAPES[name], carry_save, work)
    code, text = unit.run(build, verilator, tiles, stimulus.run_seed(), require)
    print(text)
    assert code == 0, text
    return json.loads((build.folder / "result.json").read_text())


def check_figures(result, shape):
    """The bench asserts its own formulas; these are the numbers of the specification, by hand."""
    figures = result["figures"]
    if shape == "paper":
        assert figures["array_latency_with_c"] == figures["array_latency_without_c"] == 44
        assert figures["command_to_first_beat_with_c"] == 55
        assert figures["command_to_last_beat_with_c"] == 64
        assert figures["command_to_last_beat_without_c"] == 60
        for sets in (1, 2):
            for form in ("with_c", "without_c"):
                assert figures[f"interval_x2_{sets}_sets_{form}"] == 2 * 16
        assert figures["interval_x2_3_sets_with_c"] == 44
        assert figures["setc_to_start"] == 13
    else:
        assert figures["array_latency_with_c"] == 14
        assert figures["interval_x2_1_sets_with_c"] == 2 * 8


@pytest.mark.parametrize("name", ["paper", "small"])
def test_random_tiles(work, name):
    result = bench(work, name, unit.QUICK_TILES)
    check_figures(result, name)
    assert result["tiles_random"] >= unit.QUICK_TILES


@pytest.mark.long
@pytest.mark.parametrize("name", ["paper", "small"])
def test_random_tiles_at_length(work, name):
    result = bench(work, name, unit.LONG_TILES, require=True)
    check_figures(result, name)
    assert result["tiles_random"] >= unit.LONG_TILES


@pytest.mark.long
def test_with_carry_save_elements(work):
    check_figures(bench(work, "small", 20_000, carry_save=True, require=True), "small")


# K > R, K < R, R and C that are no powers of two, many and few beats of constants and of results; one beat an
# operand and two steps: there a tile has to wait for the lookup of its constants.
HASTY = (2, 2, 2, 4, 4)
ODD = [
    HASTY,
    (2, 4, 4, 8, 2),
    (4, 2, 2, 4, 2),
    (6, 3, 4, 6, 4),
    (3, 5, 15, 15, 8),
    (8, 4, 2, 4, 16),
    (2, 2, 16, 4, 2),
]


@pytest.mark.long
@pytest.mark.parametrize("values", ODD, ids=lambda v: "x".join(map(str, v)))
def test_odd_shapes(work, values):
    """Rows, columns, steps, lanes, slots."""
    build = unit.Build(odd(*values), False, work)
    code, text = unit.run(build, need_verilator(work), unit.QUICK_TILES, stimulus.run_seed(), False)
    print(text)
    assert code == 0, text


def test_cocotb(work):
    assert cocotb(work, "small") == 5


@pytest.mark.long
def test_cocotb_of_the_paper(work):
    assert cocotb(work, "paper") == 5


def cocotb(work, name, files=None):
    benches.need_cocotb(work)
    values = {macro: getattr(SHAPES[name], field) for macro, field in config.MACROS.items()}
    files, env = files or benches.sources("fhecore"), {"FHECORE_SHAPE": name}
    return benches.simulate(work, "unit_cocotb", "fhecore", files, values, env, PORTS)


# Errors that the C++ bench must find, on the small shape: file, text, replacement.
MUTATIONS: dict[str, tuple[str, str, str]] = {
    "buffer never reserved": ("fhecore_results.v", "assign free = ~active[alloc];", "assign free = 1'b1;"),
    "beat leaves before its last word": ("fhecore_results.v", "arrived > LATEST", "arrived >= LATEST"),
    "faulty column not zeroed": ("fhecore_results.v", "& {W{~res_fault[column_of(n)]}}", ""),
    "overflow forgotten": ("fhecore_results.v", "fault[u*C +: C] | overflow", "fault[u*C +: C]"),
    "result not shifted back": ("fhecore_results.v", "d_bus[j*W +: W] >> s;", "d_bus[j*W +: W];"),
    "c beats read without c": ("fhecore_staging.v", "~start_half & start_use_c}", "~start_half}"),
    "result shifted as the tile behind": ("fhecore_results.v", "shift[(next_at*C", "shift[(after(next_at)*C"),
    "overflow of c unseen": ("fhecore_staging.v", " | (|c_wide[W +: W])", ""),
    "setc overtakes a waiting tile": ("fhecore_collect.v", "(~(is_set & last) | all_started)", "1'b1"),
    "tile overwritten while it waits": ("fhecore_collect.v", "(head_setc | ~full[next_fill])", "1'b1"),
    "mu not compared in bank 0": ("fhecore_constants.v", "{entry_q, entry_mu} == {q0, mu0}", "entry_q == q0"),
    "mu not compared in bank 1": ("fhecore_constants.v", "{entry_q, entry_mu} == {q1, mu1}", "entry_q == q1"),
    "q not compared": ("fhecore_constants.v", "{entry_q, entry_mu} == {q0, mu0}", "entry_mu == mu0"),
    "bank loaded while in use": ("fhecore_constants.v", "(|hit) | ~bank_busy[choice]", "1'b1"),
    "bank never loaded": ("fhecore_constants.v", "start & miss", "1'b0"),
    "slot not shown while collecting": ("fhecore_collect.v", "tile_ready ? held_slot : slot", "held_slot"),
    "slots known after reset": ("fhecore_constants.v", "if (rst) known <= {SLOTS{1'b0}};", "if (rst) ;"),
    "modulus 2^28 accepted": ("fhecore_constants.v", " & (q != {4'd1, {(W-4){1'b0}}})", ""),
    "reserved words ignored": ("fhecore_constants.v", "(|reserved)", "(|reserved[W-1:0])"),
    "row skew off by one": ("fhecore_array.v", ".CYCLES(i)) a_line", ".CYCLES(i+1)) a_line"),
    "reset keeps the array": ("fhecore_array.v", ".clear(rst), .d(ctl_reg)", ".clear(1'b0), .d(ctl_reg)"),
}  # fmt: skip


# And on the paper's, where the small shape hides them (operands arrive too slowly, no PTX map).
PAPER_MUTATIONS = {
    "bank rewritten two edges early": ("fhecore_results.v", "DIAGONALS - 3 : 1;", "DIAGONALS - 6 : 1;"),
    "operand set released early": ("fhecore.v", "PERIOD - 3 : 0", "PERIOD - 12 : 0"),
    "registers of a fragment swapped": ("fhecore_operand.v", "2 * (at / 8) + 4 *", "4 * (at / 8) + 2 *"),
    "a result buffer too few": ("fhecore.v", "INTERVAL - 1) / INTERVAL", "INTERVAL - 1) / INTERVAL - 1"),
}  # fmt: skip


# And on a shape whose tiles are collected faster than their constants are looked up. (On the others every
# tile comes late enough by itself; that the lookup holds back always is proved: formal/constants_lookup.v.)
HASTY_MUTATIONS = {
    "slot not watched": ("fhecore_constants.v", "(slot == entry_slot) & ", ""),
    "start not watched": ("fhecore_constants.v", "& ~load & ~start", "& ~load"),
    "hit not awaited": ("fhecore_constants.v", "hit_current & still", "still"),
}


# And what a reset must stop, which random tiles meet too rarely: for the cocotb bench, which resets at every
# moment. (`run` without its reset falls an edge later by itself, and nothing sees it.)
RESET_MUTATIONS = {
    "steps survive reset": ("fhecore_staging.v", "pick_k <= {2*K{1'b0}};", ""),
    "tile stays over reset": ("fhecore.v", "if (rst) vacant <= 1'b1;\n        else vacant", "vacant"),
    "commands survive reset": (
        "fhecore_collect.v",
        "if (rst) queued <= 2'd0;\n        else queued",
        "queued",
    ),
    "operands survive reset": ("fhecore_collect.v", "            full <= 2'b00;\n", ""),
    "buffers survive reset": ("fhecore_results.v", "            active <= {BUFS{1'b0}};\n", ""),
    "beat survives reset": ("fhecore_results.v", "            beat <= {BEAT_BITS{1'b0}};\n", ""),
    "row survives reset": ("fhecore_results.v", "                    at_row <= {ROW_BITS{1'b0}};\n", ""),
}


def odd(r, c, k, lanes, slots):
    return config.Config(f"odd-{r}-{c}-{k}", 32, r, c, k, slots, lanes)


def mutant(work, mutations, name, files):
    """(folder, copies) of `files` with one error."""
    file, old, new = mutations[name]
    folder = work / "mutants" / name.replace(" ", "_")
    shutil.rmtree(folder, ignore_errors=True)
    return folder, benches.mutate(folder, files, {file: [(old, new)]})


@pytest.mark.long
@pytest.mark.parametrize("name", [*MUTATIONS, *PAPER_MUTATIONS, *HASTY_MUTATIONS])
def test_mutation_is_caught(work, name):
    shape = SHAPES["paper" if name in PAPER_MUTATIONS else "small"]
    mutations = MUTATIONS | PAPER_MUTATIONS | HASTY_MUTATIONS
    folder, _ = mutant(work, mutations, name, sorted(tools.RTL.glob("*.v")))
    build = unit.Build(odd(*HASTY) if name in HASTY_MUTATIONS else shape, False, folder, folder)
    verilator = need_verilator(build.work)
    code, text = unit.run(build, verilator, unit.QUICK_TILES, stimulus.run_seed(), False)
    print(text)
    assert code != 0 and "FAIL (seed" in text


@pytest.mark.long
@pytest.mark.parametrize("name", RESET_MUTATIONS)
def test_reset_mutation_is_caught(work, name):
    folder, files = mutant(work, RESET_MUTATIONS, name, benches.sources("fhecore"))
    with pytest.raises(AssertionError):
        cocotb(folder, "small", files)
