"""The traffic account: aggregation, `crenel analyze`, and the comparison with hardware counters."""

import importlib.util
import json
import os
import random
import sys
from pathlib import Path

import pytest
from conftest import toy
from needed import needs

import crenel
from crenel import analyze, ckks, counters, dram, ncu, sweep
from crenel.cli import main
from crenel.errors import ParameterError, SerializationError

ROOT = Path(__file__).resolve().parents[2]
COUNTED = ROOT / "bench/results/ncu-account-h200.json"
CEILINGS = analyze.Ceilings("test", l2=100.0, l2_write=10.0, dram_read=20.0, dram_write=10.0, dram=16.0,
                            butterfly=4.0, multiply_add=8.0, launch=1.0, launch_queued=6.0)  # fmt: skip


def record(work="ntt", stage="", limbs=5, read=0, written=0, streamed=0, repeated=0, products=0,
           butterflies=0, **more):  # fmt: skip
    return {"kernel": "k", "work": work, "stage": stage, "limbs": limbs, "polys": 1, "read_bytes": read,
            "written_bytes": written, "streamed_bytes": streamed, "repeated_bytes": repeated,
            "multiply_adds": products, "butterflies": butterflies, "replayed": True, "overlapped": True,
            **more}  # fmt: skip


@pytest.fixture(scope="module")
def dry():
    try:
        return ckks.Context(toy(), device="cuda:dry")
    except ckks.DeviceError as error:
        assert "built without CUDA" in str(error)
        pytest.skip(str(error))


def test_times_at_each_ceiling():
    r = record(read=150, written=50, streamed=100, products=24, butterflies=8)
    assert analyze.times(r, CEILINGS, (100.0, 0.0)) == (5.0, 5.0, 2.0 + 2.0)  # 200 / 100 < 50 / 10
    assert analyze.times(record(read=190, written=10), CEILINGS, (0.0, 0.0))[0] == 2.0
    # 30 read alone, 10 both ways, nothing written alone.
    assert analyze.times(r, CEILINGS, (40.0, 10.0))[1] == 30 / 20 + 20 / 16
    assert analyze.times(r, CEILINGS, (0.0, 10.0))[1] == 1.0


CURVE = dram.CacheCurve(((100, 100.0), (200, 60.0), (400, 40.0)), memory=30.0)


def test_what_stays_in_the_cache():
    rates = [CURVE.rate(n) for n in (0, 100, 150, 200, 300, 400, 401)]
    assert rates == [100, 100, 80, 60, 50, 40, 30]
    assert CURVE.hit_share(100) == 1.0 and CURVE.hit_share(401) == 0.0
    # A byte takes 1/100 where it hits and 1/30 where it misses, 1/60 on average.
    assert CURVE.hit_share(200) == pytest.approx((1 / 30 - 1 / 60) / (1 / 30 - 1 / 100))
    shares = [CURVE.hit_share(n) for n in range(0, 500, 10)]
    assert shares == sorted(shares, reverse=True)


def test_small_data_never_reach_the_memory_before_the_end():
    chain = [record(written=20), record(read=20, written=20), record(read=20, written=20)]
    for r in chain:
        r["kernel"] = "column_forward"  # in place
    assert dram.dram_bytes(chain, CURVE) == [(0.0, 0.0), (0.0, 0.0), (0.0, 20.0)]
    apart = [{**r, "kernel": "k"} for r in chain]
    assert dram.dram_bytes(apart, CURVE) == [(0.0, 0.0), (0.0, 0.0), (0.0, 60.0)]
    assert dram.dram_bytes([], CURVE) == []


def test_large_data_and_what_keys_push_out():
    large = [record(written=1000), record(read=1000, written=8)]
    assert dram.dram_bytes(large, CURVE) == [(0.0, 0.0), (1000.0, 1000.0 + 8.0)]
    keys = [record(written=50), record(read=900, streamed=900), record(read=50)]
    assert dram.dram_bytes(keys, CURVE) == [(0.0, 0.0), (900.0, 50.0), (50.0, 0.0)]
    # Tables and what is read again are in the cache.
    assert dram.dram_bytes([record(read=70, repeated=70)], CURVE) == [(0.0, 0.0)]


def test_the_memory_carries_no_more_than_the_cache():
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    records = []
    for _ in range(200):
        read, written = rng.randrange(300), rng.randrange(300)
        streamed, repeated = (rng.randrange(read // 2 + 1) for _ in range(2))
        kernel = rng.choice(["row_divide", "k"])
        records.append({**record(read=read, written=written, streamed=streamed, repeated=repeated),
                        "kernel": kernel})  # fmt: skip
    found = dram.dram_bytes(records, CURVE)
    for r, (read, _) in zip(records, found, strict=True):
        assert -1e-6 <= read - r["streamed_bytes"] <= dram.distinct(r) + 1e-6
    assert sum(back for _, back in found) <= sum(r["written_bytes"] for r in records) + 1e-3


def test_the_measured_curve_falls():
    ceilings = analyze.load_ceilings()
    assert ceilings.curve is not None and ceilings.dram < ceilings.l2_curve[-1][1]
    sizes, rates = zip(*ceilings.l2_curve, strict=True)
    assert list(sizes) == sorted(sizes) and list(rates) == sorted(rates, reverse=True)
    assert rates[0] == ceilings.l2 and rates[-1] < ceilings.l2 / 2


def test_sums_and_bounds_by_group():
    records = [
        record("ntt", "a/x", 10, read=100, written=100, butterflies=40, products=40),
        record("copy", "b", 0, read=10, written=10),
        record("ntt", "a", 11, read=300, streamed=300),
    ]
    rows = analyze.by_work(records, CEILINGS)
    assert [r.name for r in rows] == ["ntt", "copy"]  # the fixed order
    ntt = rows[0]
    assert (ntt.launches, ntt.bytes, ntt.streamed_bytes, ntt.multiply_adds) == (2, 500, 300, 40)
    assert (ntt.l2_time, ntt.dram_time, ntt.arithmetic_time) == (10.0 + 3.0, 15.0, 10.0)
    assert ntt.bound == 10.0 + 15.0  # the longest, launch by launch
    assert [r.name for r in analyze.by_stage(records, CEILINGS)] == ["a", "b"]
    assert [r.name for r in analyze.by_limbs(records, CEILINGS)] == ["none", "1-10", "11-20"]
    assert [r.name for r in analyze.by_limbs(records, CEILINGS, exact=True)] == ["0", "10", "11"]
    whole = analyze.total(records, CEILINGS)
    assert whole.bytes == sum(r.bytes for r in rows) == 520 and whole.bound == 26.0
    assert analyze.total([], CEILINGS).launches == 0
    assert json.loads(json.dumps(analyze.document(records, CEILINGS)))["total"]["bytes"] == 520


def test_key_switch_stages():
    records = [
        record("ntt", "key_switch", read=1),
        record("base_conversion", "hrot/mod_up", written=2),
        record("key_multiply", "key_switch", read=30, streamed=30),
        record("ntt", "hrot/divide", read=400),
        record("automorphism", "hrot", read=5000),
    ]
    assert analyze.key_switch_stages(records) == (3, 30, 400)


def test_the_ceilings_name_their_sources():
    data = analyze.data()
    assert all(rate["source"] and rate["unit"] and rate["value"] > 0 for rate in data["rates"].values())
    assert analyze.load_ceilings().l2 == data["rates"]["l2"]["value"]
    recorded = json.loads((ROOT / "bench/results/ceilings-h200.json").read_text())
    assert analyze.load_ceilings().l2 / 1e12 == pytest.approx(recorded["l2_read_write_tb_per_s"])


def test_profile_collects_only_inside(dry):
    client = dry.keygen()
    a = client.encrypt([1.0, 2.0])
    ev = dry.evaluator(client.evaluation_keys(rotations=[1]))
    with crenel.profile(dry) as account:
        ev.multiply(a, a)
        ev.add(a, a)
        with pytest.raises(ckks.StateError), crenel.profile(dry):
            pass
    count = len(account)
    ev.multiply(a, a)
    assert len(account) == count > 0
    records = account.records()
    assert {r["work"] for r in records} >= {"ntt", "base_conversion", "elementwise", "key_multiply"}
    assert all(r["kernel"] for r in records)
    assert all(r["limbs"] > 0 for r in records if r["work"] != "copy")
    account.clear()
    assert len(account) == 0 and "0 launches" in repr(account)
    with pytest.raises(ckks.UnsupportedError):
        client.decrypt(a)


def test_profile_of_a_device_that_states_nothing():
    context = ckks.Context(toy(), device="cpu")
    client = context.keygen()
    with crenel.profile(context) as account:
        client.encrypt([1.0])
    assert account.records() == []


@pytest.mark.parametrize("operation", ["hmult", "hrot", "rescale"])
def test_analyze_on_the_dry_device(dry, operation, capsys, tmp_path):
    path = tmp_path / "traffic.json"
    arguments = ["analyze", "toy-leveled-n14-s40", "--operation", operation, "--json", str(path), "--limbs"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    for word in (
        "operation",
        "stage",
        "limbs",
        "kernel",
        "us bound",
        "total",
        "Theodosian prints",
        "ModDown",
    ):
        assert word in out
    found = json.loads(path.read_text())
    assert found["kind"] == "crenel-traffic" and found["operation"] == operation
    assert found["total"]["bytes"] == sum(row["bytes"] for row in found["by_work"]) > 0
    assert found["total"]["launches"] == sum(row["launches"] for row in found["by_stage"])


def test_analyze_bootstrapping_on_the_dry_device(dry, capsys, tmp_path):
    path = tmp_path / "traffic.json"
    assert main(["analyze", "toy-boot40", "--json", str(path)]) == 0
    assert "ours:" in capsys.readouterr().out
    stages = {row["name"] for row in json.loads(path.read_text())["by_stage"]}
    assert {"coeff_to_slot", "eval_mod", "slot_to_coeff"} <= stages


def test_analyze_draws(dry, tmp_path):
    needs("demo", "matplotlib")
    path = tmp_path / "traffic.png"
    assert main(["analyze", "toy-leveled-n14-s40", "--operation", "hmult", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_analyze_says_what_is_wrong(capsys):
    assert main(["analyze", "toy-leveled-n14-s40", "--operation", "hmult", "--device", "cpu"]) == 2
    assert "states no traffic" in capsys.readouterr().err
    assert main(["analyze", "toy-leveled-n14-s40", "--operation", "hmult", "--level", "99"]) == 2
    assert "level 99" in capsys.readouterr().err


@pytest.mark.parametrize("sweep", [[], ["--sweep", "--batches", "1"]])
def test_files_are_refused_before_anything_is_counted(sweep, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(crenel, "Device", None)
    monkeypatch.setattr(crenel.ckks, "Context", None)  # whatever is counted fails otherwise
    there = tmp_path / "there.png"
    there.write_text("mine")
    for option, file, says in (
        ("--json", there, f"--json: {there} exists, expected a new file"),
        ("--json", tmp_path / "no" / "x.json", "expected a new file in a folder that is there"),
        ("--plot", there, f"--plot: {there} exists, expected a new file"),
        ("--plot", tmp_path / "no" / "x.svg", "expected a new file in a folder that is there"),
        ("--plot", tmp_path / "x.xyz", "x.xyz ends in '.xyz', expected one of .png, .pdf, .svg"),
        ("--plot", tmp_path / "x", "ends in 'nothing'"),
    ):
        words = ["analyze", "toy-leveled-n14-s40", "--operation", "hmult", *sweep, option, str(file)]
        assert main(words) == 2
        assert says in capsys.readouterr().err
    assert there.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--batches", "2"], "--batches 2 without --sweep, expected both"),
        (["--steps", "12"], "--steps 12 without --sweep, expected both"),
        (
            ["--counters-seconds", "9"],
            "--counters-seconds 9.0 without --counters or --counters-to, expected both",
        ),
        (["--sweep", "--level", "3"], "--level and --limbs are of one level, not of --sweep"),
        (["--sweep", "--limbs"], "--level and --limbs are of one level, not of --sweep"),
    ],
)
def test_options_of_the_other_form_are_refused(words, says, capsys):
    assert main(["analyze", "toy-leveled-n14-s40", "--operation", "hadd", *words]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"{}", "found no kind"),
        (b"[1]", "found no JSON object"),
        (b"\xff\x00\x81", "found no JSON object"),
        (b'{"kind": "crenel-bench"}', "found kind 'crenel-bench'"),
        (b'{"kind": "crenel-ncu-account"}', "found no rows"),
        (b'{"kind": "crenel-ncu-account", "rows": 5, "provenance": {}}', "found no list of rows"),
        (b'{"kind": "crenel-ncu-account", "rows": [{}], "provenance": {}}', "found no stage"),
        (b'{"kind": "crenel-ncu-account", "rows": [], "provenance": {}}', "found no operation"),
    ],
)
def test_what_is_no_record_of_counters_is_told_in_words(content, found, capsys, tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert main(["analyze", "toy-boot40", "--counters-from", str(path)]) == 2
    err = capsys.readouterr().err
    assert f"{path}: expected a record of kind crenel-ncu-account, {found}" in err and "Error(" not in err


def test_a_record_of_counters_that_is_not_there(capsys, tmp_path):
    assert main(["analyze", "toy-boot40", "--counters-from", str(tmp_path / "nope")]) == 2
    assert f"MissingFileError: cannot read {tmp_path / 'nope'}" in capsys.readouterr().err


def test_starting_launches_costs_less_in_a_graph():
    queued = {**record(), "replayed": False}
    assert analyze.total([record(), queued], CEILINGS).launch_time == 1.0 + 6.0


def test_levels_of_a_sweep():
    limbs = [2, 3, 5, 5, 7, 9, 30]
    assert sweep.levels_of(limbs, 20) == [0, 1, 2, 4, 5, 6]  # each limb count once
    assert sweep.levels_of(limbs, 2) == [0, 6]
    assert sweep.levels_of(limbs, 3) == [0, 5, 6]  # 16 is nearest to 9


@pytest.mark.parametrize("counted", [False, True])
def test_a_sweep_on_the_dry_device(dry, counted, capsys, tmp_path):
    needs("demo", "matplotlib")
    file, picture = tmp_path / "sweep.json", tmp_path / "sweep.png"
    arguments = ["analyze", "toy-leveled-n14-s40", "--operation", "hmult", "--sweep", "--batches", "1,4",
                 "--steps", "3", "--json", str(file)]  # fmt: skip
    if counted:
        arguments += ["--counters-from", str(COUNTED), "--plot", str(picture)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "% multipliers" in out and ("By hardware counters" in out) is counted
    assert not counted or picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(file.read_text())
    made = found["provenance"]
    assert made["version"] == crenel.__version__ and made["command"].startswith("crenel") and made["date"]
    assert found["kind"] == "crenel-sweep" and [p["batch"] for p in found["points"]] == [1, 1, 1, 4, 4, 4]
    for one, four in zip(found["points"][:3], found["points"][3:], strict=True):
        assert one["limbs"] == four["limbs"] and one["total"]["launches"] == four["total"]["launches"]
        # a block makes its twiddles once for several ciphertexts
        products = four["total"]["multiply_adds"] / one["total"]["multiply_adds"]
        assert 3.9 < products <= 4
        assert four["largest_bytes"] > one["largest_bytes"] > 0


def test_what_a_sweep_refuses(dry, capsys, tmp_path):
    start = ["analyze", "toy-leveled-n14-s40", "--sweep"]
    assert main([*start, "--operation", "bootstrap"]) == 2
    assert "which has one number of limbs" in capsys.readouterr().err
    assert main([*start, "--operation", "hmult", "--batches", "two"]) == 2
    assert "--batches two" in capsys.readouterr().err
    broken = tmp_path / "x.json"
    broken.write_text('{"kind": "crenel-bench"}')
    with pytest.raises(SerializationError, match="expected a record of kind crenel-ncu-account"):
        counters.read(broken, "hmult")
    with pytest.raises(ParameterError, match="has counters of hmult, .*, expected some of bootstrap"):
        counters.read(COUNTED, "bootstrap")


def test_counters_beside_the_account(dry, capsys, tmp_path):
    """Of a bootstrap's own record, kernel by kernel."""
    row = {"kernel": "tensor", "stage": "eval_mod", "us": 2.0, "read": 5e6, "written": 3e6, "dram_bytes": 4e6}
    record = {"kind": "crenel-ncu-account", "provenance": {"operation": "bootstrap"}, "rows": [row, row]}
    path = tmp_path / "counted.json"
    path.write_text(json.dumps(record))
    assert main(["analyze", "toy-boot40", "--counters-from", str(path)]) == 0
    out = capsys.readouterr().out
    line = next(
        line.split() for line in out.partition("By hardware counters")[2].splitlines() if "tensor" in line
    )
    assert line[1] == "2" and line[3] == "4.0" and line[6] == "16.0" and line[8] == "8.0"
    assert float(line[2]) > 0 and float(line[7]) > 0
    assert main(["analyze", "toy-boot40", "--operation", "hrot", "--counters-from", str(path)]) == 2
    assert "has counters of bootstrap, expected some of hrot" in capsys.readouterr().err


def test_counted_kernels():
    found = counters.read(COUNTED, "hmult")
    assert [each.us for each in found] == sorted((each.us for each in found), reverse=True)
    assert {"tensor", "key_switch_rows", "row_divide"} <= {each.kernel for each in found}
    ceilings = analyze.load_ceilings()
    for each in found:
        l2, memory = counters.utilisation(each, ceilings)
        assert 0 < l2 < 1.2 and 0 <= memory < 1.2, each.kernel


@pytest.fixture(scope="module")
def comparison():
    path = ROOT / "bench" / "compare" / "ncu_account.py"
    spec = importlib.util.spec_from_file_location("ncu_account", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def profiler_output(launches, factor=1.0):
    """What ncu --csv prints: one line a metric, between lines of its own."""
    lines = [
        "==PROF== Connected",
        '"ID","Kernel Name","Grid Size","Metric Name","Metric Unit","Metric Value"',
    ]
    for i, (kernel, read, written) in enumerate(launches):
        for name, value in (
            ("lts__t_sectors_srcunit_tex_op_read.sum", read * factor / 32),
            ("lts__t_sectors_srcunit_tex_op_write.sum", written / 32),
            ("lts__t_bytes.sum", 1.5 * (read + written)),
        ):
            lines.append(f'"{i}","{kernel}","(16, 1, 48)","{name}","sector","{value:,.0f}"')
    return "\n".join(lines) + "\n"


KERNELS = ["row_inverse", "column_inverse", "base_convert", "tensor", "add", "mul_scalar"]


@pytest.mark.parametrize("factor, status", [(1.0, 0), (1.04, 0), (1.2, 1)])
def test_counters_agree_or_not(comparison, tmp_path, capsys, factor, status):
    records = [record(kernel=k, read=32_000_000, written=0) for k in KERNELS]
    records.insert(2, record("copy", kernel="copy", read=64, written=64))
    account = tmp_path / "account.json"
    account.write_text(
        json.dumps({"version": "1", "params": "p", "operation": "each", "device": "d", "records": records})
    )
    functions = [ncu.FUNCTION.get(k, k) for k in KERNELS]
    printed = tmp_path / "ncu.csv"
    printed.write_text(profiler_output([(f, 32_000_000, 0) for f in functions], factor))
    written = tmp_path / "out.json"
    assert comparison.main([str(account), str(printed), "--json", str(written)]) == status
    assert f"{6 if status == 0 else 0} of 6 kernels" in capsys.readouterr().out
    rows = json.loads(written.read_text())["rows"]
    assert rows[0]["read"] == 32_000_000 * factor and rows[0]["lts_bytes"] == 48_000_000


def test_other_launches_are_refused(comparison, tmp_path):
    account, printed = tmp_path / "account.json", tmp_path / "ncu.csv"
    account.write_text(json.dumps({"records": [record(kernel="tensor", read=32)]}))
    printed.write_text(profiler_output([("row_inverse", 32, 0)]))
    with pytest.raises(SystemExit, match="launch 0"):
        comparison.main([str(account), str(printed)])


# A profiler: runs the program, takes from its account the launches that it was told to count, and prints them
# as ncu does. Counted are a sector more than what is stated; FAULT is what goes wrong.
FAKE_NCU = """#!{python}
import json, re, subprocess, sys
from crenel import ncu
words = sys.argv[1:]
fault = "{fault}"
if fault == "denied":
    print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters")
    sys.exit(1)
program = words[words.index(sys.executable):]
subprocess.run(program, check=True)
said = json.load(open(program[-1]))
of = dict(zip(words, words[1:]))
kernels = ncu.kernels_of(said["records"])
assert int(of["--launch-count"]) == len(kernels) and int(of["--launch-skip"]) == said["kernels_before"]
assert all(re.match(of["--kernel-name"][6:], ncu.function_of(r)) for r in kernels)
metrics = of["--metrics"].split(",")
assert metrics in [list(run) for run in ncu.RUNS]
assert tuple(words[: len(ncu.OPTIONS)]) == ncu.OPTIONS and of["--cache-control"] == "none"
print("==PROF== Connected to process 1")
if fault == "nothing":
    print("==WARNING== No kernels were profiled.")
    sys.exit(0)
print('"ID","Process ID","Kernel Name","Grid Size","Metric Name","Metric Unit","Metric Value"')
fewer = fault == "one less" or (fault == "another" and metrics == list(ncu.RUNS[1]))
for i, r in enumerate(kernels[1:] if fewer else kernels):
    values = dict.fromkeys(metrics, 2000)
    if ncu.MOVED[0][0] in values:
        values[ncu.MOVED[0][0]] = r["read_bytes"] // 32 + 1
        values[ncu.MOVED[0][1]] = r["written_bytes"] // 32
    for name, value in values.items():
        print(f'"{{i}}","1","{{ncu.function_of(r)}}","(16, 1, 48)","{{name}}","x","{{value:,}}"')
"""


def fake_ncu(tmp_path, monkeypatch, fault=""):
    """On the path, and the dry device passes for a GPU."""
    program = tmp_path / "ncu"
    program.write_text(FAKE_NCU.format(python=sys.executable, fault=fault))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(each for each in sys.path if each))
    expect = ncu.expect
    monkeypatch.setattr(ncu, "expect", lambda device: expect(device.replace("cuda:dry", "cuda")))


FEW = ["analyze", "toy-leveled-n13-s28", "--device", "cuda:dry"]


def test_the_profiler_is_run(dry, tmp_path, monkeypatch, capsys):
    fake_ncu(tmp_path, monkeypatch)
    file = tmp_path / "counted.json"
    assert main([*FEW, "--operation", "hadd", "--counters-to", str(file)]) == 0
    out = capsys.readouterr().out
    line = next(x.split() for x in out.partition("By hardware counters")[2].splitlines() if "add" in x)
    assert line[:4] == ["add", "1", "1", "2.0"]
    record = json.loads(file.read_text())
    assert (record["kind"], record["provenance"]["operation"]) == ("crenel-ncu-account", "hadd")
    (row,) = record["rows"]
    assert row["read"] == row["model_read"] + 32 and row["written"] == row["model_written"]
    assert row["dram_bytes"] == 4000 and record["kernels"]["add"] == pytest.approx(row["difference"])
    # Read back without being told of what it is; a file that is there stays.
    assert main([*FEW, "--counters-from", str(file)]) == 0
    assert "hadd, toy-leveled-n13-s28" in capsys.readouterr().out
    assert main([*FEW, "--counters-to", str(file)]) == 2
    assert "expected a new file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "fault, said",
    [
        ("denied", "ncu failed: ==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"),
        ("nothing", "ncu counted no launch: ==WARNING== No kernels were profiled."),
        ("one less", "StateError: launch 0: the account says"),
        ("another", "StateError: launch 0: one run of the profiler has"),
    ],
)
def test_what_the_profiler_refuses_is_said(dry, tmp_path, monkeypatch, capsys, fault, said):
    fake_ncu(tmp_path, monkeypatch, fault)
    assert main([*FEW, "--operation", "hrot", "--counters"]) == 2
    assert said in capsys.readouterr().err


def test_where_nothing_can_be_counted(tmp_path, monkeypatch, capsys):
    for device, said in (
        ("cuda:dry", "device cuda:dry has no counters"),
        ("cpu", "device cpu has no counters"),
    ):
        assert main(["analyze", "toy-boot40", "--counters", "--device", device]) == 2
        assert said in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["analyze", "toy-boot40", "--counters"]) == 2  # on cuda
    assert "ncu is not on the PATH" in capsys.readouterr().err
    assert main(["analyze", "toy-boot40", "--counters-to", str(tmp_path)]) == 2
    assert "--counters-to: " in capsys.readouterr().err
    assert main(["analyze", "toy-boot40", "--counters", "--counters-from", str(COUNTED)]) == 2
    assert "expected one of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [{"us": 0.0}, {"us": float("nan")}, {"us": -1}, {"us": "1"}, {"read": 10**400}, {"written": None},
     {"dram_bytes": float("inf")}, {"kernel": {}}, {"kernel": 5}, {"stage": None}, None],
)  # fmt: skip
def test_records_that_are_wrong(wrong, tmp_path):
    row = {"kernel": "tensor", "stage": "hmult", "us": 2.0, "read": 5, "written": 3, "dram_bytes": 4}
    rows = [row, row | wrong] if wrong is not None else []
    path = tmp_path / "counted.json"
    path.write_text(
        json.dumps({"kind": "crenel-ncu-account", "provenance": {"operation": "hmult"}, "rows": rows})
    )
    for read in (counters.operations, lambda path: counters.read(path, "hmult")):
        with pytest.raises(SerializationError, match=next(iter(wrong or {"no rows": 0}))):
            read(path)


def test_the_record_of_the_repository_is_read_by_default(dry, capsys):
    assert main(["analyze", "toy-boot40", "--counters-from", str(COUNTED)]) == 0
    out = capsys.readouterr().out
    assert "hmult, toy-boot40" in out and "By hardware counters" in out
