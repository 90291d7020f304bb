"""The traffic account: aggregation, `crenel analyze`, and the comparison with hardware counters."""

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import pytest
from conftest import toy

import crenel
from crenel import analyze, ckks
from crenel.cli import main

ROOT = Path(__file__).resolve().parents[2]
CEILINGS = analyze.Ceilings("test", l2=100.0, l2_write=10.0, dram_read=20.0, butterfly=4.0, multiply_add=8.0,
                            launch=1.0)  # fmt: skip


def record(work="ntt", stage="", limbs=5, read=0, written=0, streamed=0, products=0, butterflies=0, **more):
    return {"kernel": "k", "work": work, "stage": stage, "limbs": limbs, "polys": 1, "read_bytes": read,
            "written_bytes": written, "streamed_bytes": streamed, "multiply_adds": products,
            "butterflies": butterflies, **more}  # fmt: skip


@pytest.fixture(scope="module")
def dry():
    try:
        return ckks.Context(toy(), device="cuda:dry")
    except ckks.DeviceError as error:
        assert "built without CUDA" in str(error)
        pytest.skip(str(error))


def test_times_at_each_ceiling():
    r = record(read=150, written=50, streamed=100, products=24, butterflies=8)
    assert analyze.times(r, CEILINGS) == (5.0, 5.0, 2.0 + 2.0)  # 200 / 100 < 50 / 10
    assert analyze.times(record(read=190, written=10), CEILINGS)[0] == 2.0


def test_a_launch_on_more_than_the_cache_holds_is_slower():
    curve = ((100, 100.0), (200, 60.0), (400, 40.0))
    ceilings = dataclasses.replace(CEILINGS, l2_curve=curve)
    assert [ceilings.l2_at(n) for n in (0, 100, 150, 200, 300, 400, 10**9)] == [100, 100, 80, 60, 50, 40, 40]
    assert CEILINGS.l2_at(10**9) == 100.0  # without a curve
    in_place = record(read=300, written=1)
    assert analyze.working_set(in_place) == 300
    assert analyze.times(in_place, ceilings)[0] == 301 / 50
    keys = record(read=900, written=1, streamed=800)  # what is read once lies in no cache
    assert analyze.working_set(keys) == 100 and analyze.times(keys, ceilings)[0] == 901 / 100
    row = analyze.total([in_place, keys], ceilings)
    assert row.l2_time == pytest.approx(301 / 50 + 9.01) and row.best_l2_time == pytest.approx(3.01 + 9.01)


def test_the_measured_curve_falls():
    ceilings = analyze.load_ceilings()
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
    pytest.importorskip("matplotlib")
    path = tmp_path / "traffic.png"
    assert main(["analyze", "toy-leveled-n14-s40", "--operation", "hmult", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_analyze_says_what_is_wrong(capsys):
    assert main(["analyze", "toy-leveled-n14-s40", "--operation", "hmult", "--device", "cpu"]) == 2
    assert "states no traffic" in capsys.readouterr().err
    assert main(["analyze", "toy-leveled-n14-s40", "--operation", "hmult", "--level", "99"]) == 2
    assert "level 99" in capsys.readouterr().err


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
    functions = [comparison.FUNCTION.get(k, k) for k in KERNELS]
    ncu = tmp_path / "ncu.csv"
    ncu.write_text(profiler_output([(f, 32_000_000, 0) for f in functions], factor))
    written = tmp_path / "out.json"
    assert comparison.main([str(account), str(ncu), "--json", str(written)]) == status
    assert f"{6 if status == 0 else 0} of 6 kernels" in capsys.readouterr().out
    rows = json.loads(written.read_text())["rows"]
    assert rows[0]["read"] == 32_000_000 * factor and rows[0]["lts_bytes"] == 48_000_000


def test_other_launches_are_refused(comparison, tmp_path):
    account, ncu = tmp_path / "account.json", tmp_path / "ncu.csv"
    account.write_text(json.dumps({"records": [record(kernel="tensor", read=32)]}))
    ncu.write_text(profiler_output([("row_inverse", 32, 0)]))
    with pytest.raises(SystemExit, match="launch 0"):
        comparison.main([str(account), str(ncu)])
