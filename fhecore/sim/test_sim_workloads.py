"""Workloads from their schedules, the paper's counts through the model: made-up launches, and the records."""

from __future__ import annotations

import json
import random

import pytest

from fhecore.sim import bootstrapping, pages, paper, params, reference, report, schedules, validate, workloads

SMALL = {"instructions": 0.5, "us": 0.8}


def csv(launches):
    lines = ['"ID","Kernel Name","Metric Name","Metric Value"']
    for k, (kernel, instructions, ns) in enumerate(launches):
        lines.append(f'"{k}","{kernel}(int)","smsp__inst_executed.sum","{instructions}"')
        lines.append(f'"{k}","{kernel}(int)","gpu__time_duration.sum","{ns}"')
    return "\n".join(lines)


def record(kernel, limbs, multiply_adds=0, work="ntt"):
    return {
        "kernel": kernel, "limbs": limbs, "polys": 1, "multiply_adds": multiply_adds, "work": work,
        "read_bytes": 100 * limbs, "written_bytes": 100 * limbs,
    }  # fmt: skip


def test_lines_are_found_again():
    rng = random.Random(7)
    for _ in range(50):
        base, rate = rng.uniform(1, 9), rng.uniform(0.1, 2)
        points = [(x, base + rate * x) for x in rng.sample(range(1, 200), 6)]
        found = workloads.fitted(points)
        assert (found.base, found.rate) == (pytest.approx(base, rel=1e-6), pytest.approx(rate, rel=1e-6))
        assert found.worst < 1e-6


def test_no_line_goes_below_zero():
    falling = workloads.fitted([(1, 10.0), (10, 1.0)])
    assert falling.base >= 0 and falling.rate >= 0
    steep = workloads.fitted([(10, 1.0), (20, 4.0)])  # the line through both has a base below 0
    assert steep.base == 0 and steep.rate > 0
    assert workloads.fitted([(5, 3.0)])(5) == pytest.approx(3.0)


def test_costs_need_the_same_launches():
    launches = [("row_inverse", 1000 * k, 1e3 * (3 + k)) for k in (1, 2, 3)]
    records = [record("row_inverse", k) for k in (1, 2, 3)]
    own = workloads.costs(csv(launches), [record("copy", 0, work="copy"), *records])["row_inverse"]
    assert own.us(10) == pytest.approx(13.0) and own.instructions(10) == pytest.approx(10_000)
    with pytest.raises(bootstrapping.ComposeError, match="not those that were profiled"):
        workloads.costs(csv(launches), records[:2])


def test_composition():
    flat = workloads.Affine(2.0, 1.0, 0.0)
    cost = {
        "row_inverse": workloads.Cost(flat, flat, flat, flat),
        "tensor": workloads.Cost(flat, flat, flat, flat),
    }
    cost["linear_combination"] = cost["tensor"]
    by_limbs = {47: {"row_inverse": SMALL}, 23: {"row_inverse": {"instructions": 0.25, "us": 0.5}}}
    launches = [["row_inverse", 50, 1, 0, 0, 2], ["row_inverse", 10, 1, 0, 0, 1], ["tensor", 5, 3, 0, 0, 1]]
    found = workloads.composed({"name": "x", "launches": launches}, cost, by_limbs)
    inverse = found["classes"]["INTT"]
    assert (inverse["launches"], inverse["base"]) == (3, 2 * 52 + 12)
    assert inverse["with"] == pytest.approx(52 + 3) and inverse["with_us"] == pytest.approx(0.8 * 104 + 6)
    other = found["classes"]["element-wise and other"]
    assert other["base"] == other["with"] == 17 and found["stands_in"] == 0
    plain = workloads.composed({"name": "x", "launches": [["plain_sums", 5, 2, 9, 400, 1]]}, cost, by_limbs)
    assert plain["stands_in"] == 1 and plain["classes"]["element-wise and other"]["us"] == 402
    with pytest.raises(bootstrapping.ComposeError, match="no cost of unheard"):
        workloads.composed({"name": "x", "launches": [["unheard", 1, 1, 0, 0, 1]]}, cost, by_limbs)


def test_schedules_count_launches_and_no_copies():
    records = [record("tensor", 4), record("tensor", 4), record("tensor", 5), record("fill", 0, work="copy")]
    assert schedules.counted(records) == [["tensor", 4, 1, 0, 800, 2], ["tensor", 5, 1, 0, 1000, 1]]


@pytest.mark.parametrize("target", ["h200", "a100"])
def test_the_record_is_what_the_schedules_give(target):
    """Committed figures can be computed again from what is committed."""
    kept = json.loads((params.DATA / f"workloads-{target}.json").read_text())
    again = workloads.workloads(target)
    assert [w["name"] for w in kept["workloads"]] == [w["name"] for w in again["workloads"]]
    for a, b in zip(kept["workloads"], again["workloads"], strict=True):
        for name, sums in a["classes"].items():
            shared = set(sums) & set(b["classes"][name])  # a new measurement may refuse times
            assert {"base", "with", "launches"} <= shared
            assert {k: sums[k] for k in shared} == pytest.approx({k: b["classes"][name][k] for k in shared})


def test_a_workload_that_is_off_is_refused(tmp_path):
    """Against a measured time that is half of the composed one."""
    sample = {
        "name": "helr", "batch": schedules.ROWS, "features": schedules.FEATURES,
        "steps": schedules.ITERATIONS,
        "params": schedules.SET, "graph": False, "correct": True, "stages_timed": False, "total_s": 0.1,
    }  # fmt: skip
    document = {"provenance": {"device_description": "NVIDIA H200"}, "results": [sample]}
    (tmp_path / "workload-x.json").write_text(json.dumps(document))
    found = next(w for w in workloads.workloads("h200", results=tmp_path)["workloads"] if w["name"] == "lr")
    assert "off" in found["refused"] and all("us" not in c for c in found["classes"].values())
    assert report.REFUSED in report.workloads_table({"workloads": [found]})
    other = {w["name"]: w for w in workloads.workloads("a100", results=tmp_path)["workloads"]}
    assert "on the H200" in other["lr"]["refused"] and other["lr"]["measured_us"] is None
    assert all("us" not in c and "base" in c for c in other["lr"]["classes"].values())
    assert all("us" in c for c in other["resnet20"]["classes"].values())


def operation(name, us):
    return {"name": name, "rows": [{"kernel": kernel, "base_us": time} for kernel, time in us]}


def test_times_of_another_gpu_are_the_models_ratio():
    here = {
        "operations": [operation("hemult_47", [("tensor", 2.0), ("row_divide", 1.0), ("row_divide", 3.0)])]
    }
    there = {
        "operations": [operation("hemult_47", [("tensor", 5.0), ("row_divide", 4.0), ("row_divide", 4.0)])]
    }
    found = workloads.slower(there, here)
    assert found == {47: {"tensor": 2.5, "row_divide": 2.0, "row_forward": 2.0}}
    assert workloads.slower_at(found, "row_forward", 20) == 2.0
    assert workloads.slower_at(found, "unheard", 20) == 2.5  # as what only moves data
    flat = workloads.Affine(0.0, 1.0, 0.0)
    cost = {"row_divide": workloads.Cost(flat, flat, flat, flat)}
    by_limbs = {47: {"row_divide": SMALL}}
    launches = {"name": "x", "launches": [["row_divide", 10, 1, 0, 0, 1]]}
    one, two = (workloads.composed(launches, cost, by_limbs, t)["classes"] for t in (None, found))
    (one,), (two,) = one.values(), two.values()
    assert two["us"] == 2 * one["us"] and two["with_us"] == 2 * one["with_us"] and two["base"] == one["base"]
    there["operations"][0]["rows"][0]["kernel"] = "other"
    with pytest.raises(bootstrapping.ComposeError, match="other is not tensor"):
        workloads.slower(there, here)


def test_the_a100_has_its_own_bootstrapping():
    """Slower without the unit than the measured one, by no more than the slowest kernel."""
    kept, h200 = (json.loads((params.DATA / f"{name}.json").read_text())
                  for name in ("workloads-a100", "predictions-h200"))  # fmt: skip
    own = kept["workloads"][0]
    factor = (
        sum(c["us"] for c in classes.values()) for classes in (own["classes"], h200["bootstrap"]["classes"])
    )
    there, here = factor
    assert own["name"] == "bootstrap" and 1.5 < there / here < 3


def test_where_a_variant_reaches_the_papers_time():
    wanted = paper.PRIMITIVES_US["HEMult"][0]

    def row(changed, factor, without):
        return {
            "changed": changed,
            "factor": factor,
            "us": {k: [without, 0.5 * without] for k in reference.PAPER},
        }

    rows = [row("nothing", 1, wanted - 100), row("slower", 2, wanted + 100), row("other", 2, wanted - 50)]
    factor, ups = reference.matched(rows, "slower")
    assert factor == pytest.approx(1.5) and ups["rotate"] == pytest.approx(2.0)
    assert reference.matched(rows, "other") is None


def test_changes_point_the_right_way():
    values = {"alu_interval": 2.0, "max_warps": 64.0, "clock_ghz": 1.0, "sms": 100.0}
    assert reference.changed(values, ("max_warps",), 4)["max_warps"] == 16
    own = reference.changed({**dict.fromkeys(reference.ARITHMETIC, 2.0)}, reference.ARITHMETIC, 3)
    assert set(own.values()) == {6.0}
    assert reference.ipc(1e5, 1.0, values) == pytest.approx(1.0)


def test_pages_show_records_of_the_model_that_is(tmp_path):
    kept = json.loads(reference.FILE.read_text())
    assert kept["fingerprint"] == validate.require("h200")["fingerprint"]
    assert "model, A100" in pages.BLOCKS["reference"](params.DATA)
    assert pages.BLOCKS["reference"](tmp_path) == f"{report.NOT}\n"
    assert pages.BLOCKS["workloads"](tmp_path) == f"{report.NOT}\n"
