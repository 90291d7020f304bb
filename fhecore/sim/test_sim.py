"""The SM model against hand-made traces whose cycle counts are worked out in the comments. No GPU needed."""

from __future__ import annotations

import pytest

from fhecore.sim import engine, params

# Pipes of a paper machine: no launch delays, so that the first instruction issues in cycle 0.
PLAIN = {
    "cta_launch": 0, "cta_interval": 0, "alu_interval": 2, "alu_latency": 4, "fma_interval": 2,
    "fmawide_interval": 4, "mio_latency": 4, "mio_interval": 2, "mio_depth": 8, "lsu_cycles_per_wavefront":
    1, "lds_latency": 20, "bar_latency": 20, "read_release": 4, "l1_latency": 30, "l2_latency": 200,
    "dram_latency": 600, "dram_bytes_per_cycle": 8, "l2_bytes_per_cycle": 64, "l2_write_bytes_per_cycle":
    16, "sm_fill_bytes_per_cycle": 64, "l1_sectors_per_cycle": 4,
    "bank_interval": 1, "dram_write_bytes_per_cycle": 1000, "l2_read_on_write": 0, "bank_queue": 0,
    "tensor_interval": 2, "tensor32_interval": 4, "fhec_interval": 16,
    "fhec_latency": 44, "fhec_extra_latency": 0, "fhec_port_registers": 1, "fhec_banks": 2, "setc_cycles":
    1, "branch_cycles": 8, "scheduler": 0, "fmawide_latency": 9, "wide_stall": 2, "wide_alu_cycles": 2,
    "constant_miss": 70, "ldc_latency": 30,
}  # fmt: skip


@pytest.fixture(scope="session")
def program():
    return engine.build()


@pytest.fixture
def model(program):
    def run(code, *ctas, warps=1, paths=None, registers=32, shared=0, grid=None, **overrides):
        """`code`: instruction lines; the last path element is the exit. One path over all of it by
        default."""
        lines = [*code, "exit st=1"]
        paths = paths or [f"0:{len(lines)}"]
        ctas = ctas or ([0] * warps,)
        text = [f"kernel t\nlaunch {len(ctas[0])} {registers} {shared} {grid or len(ctas)}"]
        text += ["i " + line for line in lines] + [f"path {p}" for p in paths]
        text += ["cta " + " ".join(map(str, c)) for c in ctas]
        values = params.of_engine(params.start("h200"))
        return engine.run("\n".join(text) + "\n", {**values, **PLAIN, **overrides}, program)

    return run


def test_stall_counts_pace_one_warp(model):
    # Issues at 0, 4, ..., 36, the exit at 40: 41 cycles.
    r = model(["alu st=4"] * 10)
    assert (r["cycles"], r["issued"]) == (41, 11)


def test_pipe_interval_bounds_two_warps_of_a_subcore(model):
    # Eight warps, two a sub-core: 20 multiplies every second cycle, 0..38, the last exit at 39.
    r = model(["fma st=1"] * 10, warps=8)
    assert r["cycles"] == 40
    assert r["by_unit"]["fma"] == 80


def test_four_subcores_issue_independently(model):
    # The same work a warp, one warp a sub-core: 0..18, exit at 19.
    assert model(["fma st=1"] * 10, warps=4)["cycles"] == 20


def test_wide_multiplies_share_the_pipe_of_the_narrow(model):
    # 0 (wide: pipe until 4), 4 (narrow: until 6), 6, 10: exit at 11.
    assert model(["fmawide st=1", "fma st=1", "fmawide st=1", "fma st=1"])["cycles"] == 12
    # ALU and multiplier run side by side: 0, 1, 2, 3, exit at 4.
    assert model(["fma st=1", "alu st=1", "fma st=1", "alu st=1"])["cycles"] == 5


def test_wide_multiplies_hold_their_warp_and_the_alu(model):
    # 0, wide at 1: the ALU, free at 2, is theirs until 4; the addition at 4, exit at 5.
    assert model(["alu st=1", "fmawide st=1", "alu st=1"])["cycles"] == 6
    assert model(["alu st=1", "fmawide st=1", "alu st=1"], wide_stall=0)["cycles"] == 6
    assert model(["alu st=1", "fmawide st=1", "alu st=1"], wide_stall=0, wide_alu_cycles=0)["cycles"] == 4
    # Alone they add 2 to the stall count: 0, 5, exit at 6.
    assert model(["fmawide st=3 d=1:1", "alu st=1 s=1:1"])["cycles"] == 7


def test_wide_multiplies_read_late(model):
    # A sum of cycle 0 at 7, the high half of a product at 9, its low half at 7 (6 + 2 is later); exits +3.
    assert model(["alu st=4 d=1:1", "fmawide st=1 s=1:1"])["cycles"] == 11
    assert model(["fmawide st=6 d=2:2", "fmawide st=1 s=3:1"])["cycles"] == 13
    assert model(["fmawide st=6 d=2:2", "fmawide st=1 s=2:1"])["cycles"] == 12


def test_first_use_of_constants(model):
    # The first reader goes on when the line is there, at 70; later ones do not wait: 0, 70, exit at 71.
    assert model(["uni st=1 c=3", "uni st=1 c=3"])["cycles"] == 72
    # A load gets it at 4 + 70 + 30; exit at 105. In the next line the same again, one at hand in 30.
    assert model(["ldc st=1 wb=0 c=3", "alu st=1 w=1"])["cycles"] == 106
    assert model(["uni st=1 c=3", "ldc st=1 wb=0 c=3", "alu st=1 w=1"])["cycles"] == 70 + 36


def test_scoreboard_waits_where_the_stall_count_does_not(model):
    # The second reads R1, ready at 4; exit at 5.
    assert model(["alu st=1 d=1:1", "alu st=1 s=1:1"])["cycles"] == 6


def test_shared_load_barrier(model):
    # Issue 0, leaves the queue at 4, data stage 4..5, done 25: the consumer issues at 25, exit 26.
    assert model(["lds st=1 wb=0 wf=1", "alu st=1 w=1"])["cycles"] == 27
    # 32-way conflict: data stage 4..36, done 56.
    assert model(["lds st=1 wb=0 wf=32", "alu st=1 w=1"])["cycles"] == 58


def test_subcores_share_the_data_stage(model):
    # Four warps, 4 wavefronts each: served 4..20 one after another; the last is done at 40, exit 41.
    assert model(["lds st=1 wb=0 wf=4", "alu st=1 w=1"], warps=4)["cycles"] == 42


def test_full_queue_holds_back_the_warp(model):
    # Depth 1: the second cannot issue before the first leaves at 4; it leaves at 8, done 8 + 1 + 20.
    code = ["lds st=1 wb=0 wf=1"] * 2 + ["alu st=1 w=1"]
    assert model(code, mio_depth=1)["cycles"] == 31
    assert model(code)["cycles"] == 29  # queued: leaves at 6 (interval 2), done 27, exit 28


def test_read_barrier_frees_operands_early(model):
    # The store's operands are read at 4 + 4; its bytes (128 at 16 a cycle) drain until 5 + 8 = 13.
    r = model(["stg st=1 rb=1 sec=4 wf=1", "alu st=1 w=2"])
    assert r["cycles"] == 13
    assert r["bytes_l2"] == 128


def test_dram_bandwidth_queue(model):
    # 100 requests of 128 bytes at 8 bytes a cycle: the first leaves the LSU at 5, the last byte comes at
    # 5 + 1600, its latency 600: consumer at 2205, exit 2206.
    r = model(["ldg st=1 wb=0 sec=4 l1=0 l2=0"] * 100 + ["alu st=1 w=1"])
    assert r["cycles"] == 2207
    assert r["bytes_dram"] == 12800


def test_caches(model):
    # L1 hit: 5 + 1 (4 sectors a cycle) + 30. L2 hit: 5 + 2 (64 bytes a cycle) + 200.
    assert model(["ldg st=1 wb=0 sec=4 l1=1", "alu st=1 w=1"])["cycles"] == 38
    assert model(["ldg st=1 wb=0 sec=4 l1=0 l2=1", "alu st=1 w=1"])["cycles"] == 209


def test_bandwidth_is_shared_by_the_busy_multiprocessors(model):
    code = ["ldg st=1 wb=0 sec=4 l1=0 l2=0"] * 10 + ["alu st=1 w=1"]
    # Two CTAs in the grid, one of them here: half of the bandwidth, 10 * 128 / 4.
    assert model(code, grid=2)["cycles"] - model(code)["cycles"] == 10 * 16


def test_copies_and_their_groups(model):
    copy = "ldgsts st=1 sec=4 l1=0 l2=1"
    # The copies are done at 207 and, 2 queue and fill cycles later, 209. Waiting for all but the last group
    # goes on at 207, for all at 209.
    groups = [copy, "ldgdepbar st=1 wb=0", copy, "ldgdepbar st=1 wb=0"]
    assert model([*groups, "depbar st=1 sb=0 arg=1"])["cycles"] == 209
    assert model([*groups, "depbar st=1 sb=0 arg=0"])["cycles"] == 211


def test_barrier_waits_for_the_slowest_warp(model):
    code = ["alu st=1"] * 20 + ["bar st=1"]
    # Warp 0 skips 15 of the additions. Warp 1: 0..38, barrier at 39, released at 59: exits at 59.
    r = model(code, [0, 1], paths=["15:7", "0:22"])
    assert r["cycles"] == 60


def test_barrier_does_not_wait_for_warps_that_left(model):
    code = ["alu st=1", "bar st=1"]
    # Warp 0 goes to the exit at once (issues at 0); warp 1 is alone: barrier at 1, released at 21.
    assert model(code, [0, 1], paths=["2:1", "0:3"])["cycles"] == 22


def test_ctas_in_waves(model):
    # Two fit; each starts 100 cycles after it was admitted and exits after 40: 140. The third is admitted at
    # 141, starts at 241, exits at 281.
    r = model(["alu st=4"] * 10, [0], [0], [0], cta_launch=100, max_ctas=2)
    assert (r["cycles"], r["ctas_resident"]) == (282, 2)


def test_occupancy_limits(model):
    assert model(["alu st=1"], [0] * 8, registers=64)["ctas_resident"] == 4  # 65536 / (64 * 32 * 8)
    assert model(["alu st=1"], [0] * 8, shared=50 * 1024)["ctas_resident"] == 4  # 228 KiB / 51 KiB
    assert model(["alu st=1"], [0] * 32)["ctas_resident"] == 2  # 64 warps
    with pytest.raises(engine.EngineError, match="does not fit"):
        model(["alu st=1"], shared=300 * 1024)


FHEC = "fhec st=1 s=32:8 s=40:4 s=44:4 d={0}:4"


@pytest.mark.parametrize("interval", [16, 32, 44])
def test_fhec_interval(model, interval):
    # Independent: 0, II, 2 II; the exit follows a cycle later.
    code = [FHEC.format(4 * k) for k in range(3)]
    assert model(code, fhec_interval=interval)["cycles"] == 2 * interval + 2


def test_fhec_latency(model):
    # A chain of three through R0..3 and a consumer: 0, 44, 88, 132, exit at 133.
    code = ["fhec st=1 s=32:8 s=40:4 s=0:4 d=0:4"] * 3 + ["alu st=1 s=0:1"]
    assert model(code)["cycles"] == 134
    assert model(code, fhec_extra_latency=16)["cycles"] == 134 + 3 * 16


def test_fhec_operands_need_the_register_ports(model):
    code = [FHEC.format(4 * k) for k in range(3)]
    # 16 operand registers at one a cycle bound the interval even of a faster array; two a cycle: 8.
    assert model(code, fhec_interval=4)["cycles"] == 34
    assert model(code, fhec_interval=4, fhec_port_registers=2)["cycles"] == 18


def test_fhec_and_tensor_instructions_share_ports(model):
    # FHEC 0..16, IMMA at 16 (ports for 2), FHEC at 18: exit 19.
    assert model([FHEC.format(0), "tensor st=1 d=8:4", FHEC.format(4)])["cycles"] == 20
    # IMMA of twice the products: ports for 4.
    assert model([FHEC.format(0), "tensor st=1 d=8:4 arg=2", FHEC.format(4)])["cycles"] == 22
    # The ALU is not held up: issues at 1.
    assert model([FHEC.format(0), "alu st=1"])["cycles"] == 3


def test_register_banks(model):
    # Two registers of the even bank each: the second instruction's reads begin at 2. Odd ones are free at 1.
    assert model(["fma st=1 r0=2", "alu st=1 r0=2"])["cycles"] == 4
    assert model(["fma st=1 r0=2", "alu st=1 r1=2"])["cycles"] == 3
    assert model(["fma st=1 r0=2", "alu st=1 r0=2"], bank_queue=1)["cycles"] == 3


def test_reused_operands_are_lost_to_another_warp(model):
    # At hand, as the warp itself issued last: 0, 1 (one read), 2, exit 3. At first, all three are read: 0, 3.
    code = ["alu st=1 r0=1 m0=2", "fma st=1 r0=1"]
    assert model(["nop st=1", *code])["cycles"] == 4
    assert model(code)["cycles"] == 5


def test_fhec_constant_banks(model):
    # Three CTAs with constants of their own on one sub-core (of twelve): tiles at 0 and 16 fill both banks,
    # the third waits for the first to be through at 44; its exit follows at 45. With a set for everyone: 32,
    # exit 33.
    three = [[0]] * 12
    assert model([FHEC.format(0)], *three)["cycles"] == 46
    assert model([FHEC.format(0)], *three, fhec_banks=0)["cycles"] == 34
    # Warps of one CTA share theirs.
    assert model([FHEC.format(0)], [0] * 12)["cycles"] == 34
    # One warp that renews its constants before every tile (SETC takes the ports for a cycle): tiles at 1, 18,
    # then 45 (the first is through) and 62; with one bank 1, 45, 89, 133; with a set for everyone 1, 18, 35,
    # 52.
    code = [line for k in range(4) for line in ("setc st=1", FHEC.format(4 * k))]
    assert [model(code, fhec_banks=n)["cycles"] for n in (1, 2, 0)] == [135, 64, 54]


def test_taken_branch_and_loop(model):
    # Three rounds of (alu, bra): each taken branch costs 8 cycles: 0, 1 | 9, 10 | 18, 19, exit at 20.
    assert model(["alu st=1", "bra st=1"], paths=["0:2 0:2 0:3"])["cycles"] == 21


def test_clock_reads_are_stamped(model):
    r = model(["clock st=2", *["alu st=4"] * 5, "clock st=2"])
    assert r["clocks"] == [[0, 22]]


def test_round_robin_and_greedy_finish_the_same_work(model):
    code = ["alu st=4", "fma st=4"] * 8
    greedy, robin = model(code, warps=16), model(code, warps=16, scheduler=1)
    assert greedy["issued"] == robin["issued"] == 16 * 17
    # Four warps a sub-core, 16 instructions of 4 cycles each: both overlap them completely.
    assert abs(greedy["cycles"] - robin["cycles"]) <= 8


def test_who_goes_first(model):
    # Four warps a sub-core want the multiplier every second cycle. Oldest first, two of them take it all and
    # end at 41, and then the others. Least recently issued first, they end together.
    code = ["clock st=2", *["fma st=4"] * 10, "clock st=2"]

    def ends(policy):
        return sorted(c[-1] for c in model(code, warps=16, scheduler=policy)["clocks"])

    oldest, recent = ends(0), ends(2)
    assert oldest[-1] - oldest[0] > 30
    assert recent[-1] - recent[0] <= 8
    assert abs(oldest[-1] - recent[-1]) <= 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel t\nlaunch 1 32 0 1\ni foo st=1\npath 0:1\ncta 0\n", "unknown unit foo"),
        ("kernel t\nlaunch 1 32 0 1\ni alu st=1\npath 0:2\ncta 0\n", "range 0:2"),
        ("kernel t\nlaunch 2 32 0 1\ni alu st=1\npath 0:1\ncta 0\n", "each of the 2 warps"),
        ("kernel t\nlaunch 1 32 0 1\ni ldg st=1 l1=1.5\npath 0:1\ncta 0\n", "hit rates"),
        ("kernel t\nlaunch 1 32 0 1\ni alu st=1\n", "no CTA"),
    ],
)
def test_bad_traces_are_refused(program, text, message):
    values = params.of_engine(params.start("h200"))
    with pytest.raises(engine.EngineError, match=message):
        engine.run(text, values, program)


def test_parameters_must_be_complete_and_known(program):
    values = params.of_engine(params.start("h200"))
    text = "kernel t\nlaunch 1 32 0 1\ni exit st=1\npath 0:1\ncta 0\n"
    with pytest.raises(engine.EngineError, match="alu_latency is missing"):
        engine.run(text, {k: v for k, v in values.items() if k != "alu_latency"}, program)
    with pytest.raises(engine.EngineError, match="magic is unknown"):
        engine.run(text, {**values, "magic": 1.0}, program)
    with pytest.raises(params.ParamsError, match="warp_speed"):
        params.load("h200", warp_speed=9)
