"""Which rows of which records stand beside a paper: batches, images, polynomials, parts, provenance."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

import crenel
from crenel import reproduce, tfhe
from crenel.cli import main
from crenel.reproduce import growth, page, render
from crenel.reproduce.builders import bolt, common, theodosian
from crenel.reproduce.results import Results

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
H100, H200 = (f"NVIDIA {name}, compute capability 9.0" for name in ("H100 80GB HBM3", "H200"))
SEED = random.SystemRandom().randrange(1 << 32)
RNG = random.Random(SEED)


@pytest.fixture(scope="module")
def kept():
    return Results(render.with_model([RESULTS]))


@pytest.fixture
def records(tmp_path):
    """Writes records: write(file, suite, rows, day) -> the folder's results."""

    def write(name, suite, rows, day=1, device=H200, **facts):
        of = {
            "date": f"2026-01-{day:02}T00:00:00",
            "commit": f"{day:040}",
            "command": "x",
            "device": "cuda:0",
        }
        of["device_description"] = device
        document = {"kind": "crenel-bench", "format": 1, "suite": suite, "provenance": of, **facts}
        (tmp_path / name).write_text(json.dumps({**document, "results": rows}))
        return Results([tmp_path])

    return write


def outcome(results, paper, kind, number):
    return reproduce.outcome(reproduce.find(paper, kind, number), results)


def operation(batch, us, name="hmult", limbs=11, **more):
    own = {
        "name": name,
        "params": "boot40",
        "graph": True,
        "timing": "queued",
        "inputs": "same",
        "batch": batch,
    }
    return {**own, "limbs": limbs, "latency_us": us, "amortised_us": us / batch, "log_n": 16, **more}


@pytest.mark.parametrize(("number", "name", "title"), [(5, "hmult", "HMult"), (7, "hrot", "HRot")])
def test_a_batch_is_compared_with_another_size(records, number, name, title):
    """A newer record of one size displaces none of several, and is no comparison by itself."""
    one = [operation(4, RNG.uniform(50, 90), name)]
    found = outcome(records("new.json", "ckks", one, 9), "theodosian", "figure", number)
    assert not [t for t in found.tables if title in t.title], SEED
    assert "batches" in {lack.command for lack in found.lacks}
    several = [operation(b, 80.0 + 10 * b, name) for b in (1, 4, 8)] + [operation(2, 9.0, name, limbs=9)]
    found = outcome(records("old.json", "ckks", several, 2), "theodosian", "figure", number)
    (table,) = [t for t in found.tables if title in t.title]
    ((_, cells),) = table.rows  # 9 limbs have one size
    assert cells == (11, 90.0, 30.0, 20.0, 4.5)
    assert "old.json" in found.sources and "new.json" not in found.sources
    other = [operation(b, 40.0 * b, name) for b in (2, 3)]
    found = outcome(records("h100.json", "ckks", other, 1, H100), "theodosian", "figure", number)
    assert len([t for t in found.tables if title in t.title]) == 2  # a table a device


def network(us, batch, images, accuracy, polynomials="relu 63 x 19", **more):
    return {
        "name": "network", "network": "resnet20", "params": "boot35", "log_n": 16, "log_pq": 1740.9,
        "security_bits": 128.5, "batch": batch, "latency_us": us, "steps": images, "accuracy": accuracy,
        "float_accuracy": accuracy, "graph": False, "correct": True, "activation": polynomials,
        "weights": "trained", "bootstraps": 9, "stages": [], **more,
    }  # fmt: skip


def test_accuracy_is_of_the_most_images_and_polynomials_stand_apart(records):
    composed = "relu 15,15,27 x 19"
    rows = [
        network(150_000, 1, 8, 1.0), network(140_000, 1, 8, 1.0, graph=True), network(9e6, 32, 500, 0.914),
        network(230_000, 1, 8, 0.875, composed, bootstraps=18), network(8e6, 32, 900, 0.5, weights="others"),
    ]  # fmt: skip
    results = records("workload-x.json", "workload", rows)
    found = outcome(results, "cheddar", "table", 6)
    own = [cells for ours, cells in found.tables[0].rows if ours]
    assert [cells[3:5] for cells in own] == [(0.14, "91.4 of 500 images"), (0.23, "87.5 of 8 images")]
    assert own[0][0].endswith("relu 63 x 19") and own[1][0].endswith(composed)
    (said,) = [text for text in found.remarks if "14 levels a ReLU" in text]
    assert f"relu 63 x 19, 9 bootstraps; {composed}, 18 bootstraps" in said
    assert said in page.markdown_page([found], [], "")
    found = outcome(results, "cheddar", "table", 5)
    assert [cells[3] for ours, cells in found.tables[0].rows if ours] == [0.14, 0.23]
    assert "Crenel, " + composed not in str(outcome(results, "theodosian", "table", 2).tables)  # boot40's


def test_no_accuracy_of_a_few_images_stands_as_a_percentage(kept):
    """Of the records that are kept: every accuracy beside the paper's says of how many images it is."""
    rows = outcome(kept, "cheddar", "table", 6).tables[0].rows
    said = [cells[4] for ours, cells in rows if ours and cells[3] is not None]
    assert said and all(isinstance(cell, str) and " of " in cell for cell in said)


def test_the_footprint_is_the_papers_at_its_limbs():
    for row in reproduce.find("theodosian", "table", 3).rows:
        limbs, alpha, _ = map(int, str(row[0]).split(", "))
        held = theodosian.footprints(limbs, alpha, 1 << 16)
        assert [b / 1e6 for b in held] == [pytest.approx(printed, abs=0.06) for printed in row[1:3]]


def test_cards_that_the_paper_has_stand_side_by_side(kept):
    (said,) = [t for t in outcome(kept, "theodosian", "table", 2).remarks if "same GPUs" in t]
    assert "H100 SXM 17.8 ms there" in said and "H200 SXM 16.1 ms there" in said


def test_the_noise_of_gates_is_the_papers_but_for_its_key_term():
    """Within a tenth where rounding and the key switch decide; M6's key term is three times ours."""
    for row in reproduce.find("bolt-fhe", "table", 7).rows:
        name, r, printed = str(row[0]), int(row[1]), float(row[2])
        own = bolt.total_noise(tfhe.preset(name, allow_insecure=True).with_slots(r))
        least = 0.66 if name == "M6" else 0.89
        assert least < own / printed < 1.02, (name, r, own, printed)


def boot(us, slots=1 << 15, **more):
    return {
        "name": "bootstrap", "params": "boot40", "keys": "hoisted", "batch": 1, "graph": True, "log_n": 16,
        "message": "complex", "slots": slots, "latency_us": us, **more,
    }  # fmt: skip


def test_bootstraps_of_another_kind_are_not_the_newest(records, tmp_path):
    """SlotToCoeff first leaves other levels; a run without keys for aligned levels tells what these bring."""
    whole = {"slot_level_ns": 20.0}
    records("with.json", "boot", [boot(8e3, order="coeff_to_slot_first", **whole)], 1)
    turned = records("turned.json", "boot", [boot(7e3, order="slot_to_coeff_first", **whole)], 8)
    assert common.boots(turned, "boot40")["NVIDIA H200"].file == "with.json"
    results = records("plain.json", "boot", [boot(9e3, **whole)], 9)
    assert common.boots(results, "boot40")["NVIDIA H200"].file == "plain.json"
    document = json.loads((tmp_path / "plain.json").read_text())
    document["provenance"]["command"] = "crenel_bench_boot --plain-keys --runs 1"
    (tmp_path / "plain.json").write_text(json.dumps(document))
    assert common.boots(Results([tmp_path]), "boot40")["NVIDIA H200"].file == "with.json"


def curve(results, name):
    return next((each for each in growth.curves(results) if each.name == name), None)


def test_a_curve_is_of_one_record_and_one_device(records):
    single = {"graph": False}
    old = [operation(1, float(k), limbs=k, **single) for k in (11, 23, 47)]
    records("a.json", "ckks", old, 1)
    records("b.json", "ckks", [operation(1, 1000.0, limbs=47, **single)], 9)  # newer, of one point
    split = [{**row, "device": "cuda:0+1", "latency_us": 7.0} for row in old]
    results = records("c.json", "ckks", split, 3)
    found = curve(results, "limbs")
    assert dict(found.chart.series) == {
        "hmult, NVIDIA H200": [(11, 11.0), (23, 23.0), (47, 47.0)],
        "hmult, 2 parts, NVIDIA H200": [(11, 7.0), (23, 7.0), (47, 7.0)],
    }
    assert found.sources == ("a.json", "c.json")
    slots = [boot(5e3, 1 << 12), boot(9e3), boot(6e3, device="cuda:0+1")]
    found = curve(records("d.json", "boot", slots, 4), "slots")
    assert dict(found.chart.series) == {"complex, NVIDIA H200": [(1 << 12, 5.0), (1 << 15, 9.0)]}


def test_a_curve_by_scale_is_of_one_day(records):
    """A set that was measured later, by another program, is no point between those of before."""

    def of(params, bits, ns):
        return [boot(9e3, scale_bits=bits, slot_level_ns=ns) | {"params": params}]

    records("boot35.json", "boot", of("boot35", 35, 20.0), 1)
    records("boot45.json", "boot", of("boot45", 45, 30.0), 1)
    found = curve(records("boot40.json", "boot", of("boot40", 40, 9.0), 5), "slot-levels")
    assert dict(found.chart.series) == {"NVIDIA H200, 2026-01-01": [(35, 20.0), (45, 30.0)]}
    assert found.sources == ("boot35.json", "boot45.json")


def test_one_bootstrap_divided_is_a_curve_by_devices(records):
    """Beside the one card of the same run; of several ways to exchange, the fastest."""
    divided = {"beside": {"device": "cuda:0+1"}}
    records("x.json", "boot", [boot(8e3), boot(6e3, device="cuda:0+1")], 1, **divided)
    records("y.json", "boot", [boot(7e3), boot(5e3, device="cuda:0+1")], 2, **divided)
    four = {"beside": {"device": "cuda:0+1+2+3"}}
    records("four.json", "boot", [boot(6e3), boot(4e3, device="cuda:0+1+2+3")], 2, **four)
    results = records("z.json", "boot", [boot(1e3)], 3)
    found = curve(results, "gpus")
    assert dict(found.chart.series) == {"one bootstrap divided, NVIDIA H200": [(1, 1.0), (2, 1.4), (4, 1.5)]}
    assert found.sources == ("y.json", "four.json") or found.sources == ("four.json", "y.json")


def test_what_growth_left_out_is_said(records):
    rows = [
        {
            "axis": "threads",
            "name": "hadd",
            "x": x,
            "latency_us": 9.0 / x,
            "security_bits": 128.0,
            "log_n": 15,
        }
        for x in (1, 2)
    ]
    left = [{"axis": "threads", "x": x, "name": "", "why": "this process may use 2"} for x in (4, 8)]
    left += [{"axis": "threads", "x": 1, "name": n, "why": "too slow"} for n in ("hmult", "hrot")]
    left += [{"axis": "limbs", "x": 2, "name": "hmult", "why": "no level"}]
    found = curve(records("growth-x.json", "growth", rows, left_out=left), "threads")
    assert found.left_out == (
        "`growth-x.json`: threads 4, 8 (this process may use 2)",
        "`growth-x.json`: threads 1 of hmult and hrot (too slow)",
    )
    text = page.markdown_page([], [found], "")
    assert "Left out: `growth-x.json`: threads 4, 8 (this process may use 2); " in text
    assert "threads 4, 8 (this process may use 2)" in page.html_page([], [found], {})


@pytest.mark.parametrize(
    "provenance", [{}, {"commit": "c" * 40, "date": "2026-05-06T01:02:03", "command": "run"}]
)
def test_accounts_have_a_source_line_with_and_without_a_commit(tmp_path, provenance):
    name = "traffic-boot40-dry.json"
    kept = json.loads((RESULTS / name).read_text())
    kept.pop("provenance", None)
    (tmp_path / name).write_text(json.dumps(kept | ({"provenance": provenance} if provenance else {})))
    counted = json.loads((RESULTS / "ncu-account-h200.json").read_text())
    counted["provenance"] |= provenance
    (tmp_path / "ncu.json").write_text(json.dumps(counted))
    sources = outcome(Results([tmp_path]), "theodosian", "table", 3).sources
    sources |= outcome(Results([tmp_path]), "theodosian", "figure", 6).sources
    for file in (name, "ncu.json"):
        assert ("commit cccccccccc, 2026-05-06: `run`" in sources[file]) == bool(provenance), sources[file]


def test_an_analysis_says_when_and_of_which_commit_it_was(tmp_path, monkeypatch):
    try:
        crenel.Device("cuda:dry")
    except crenel.DeviceError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("CRENEL_COMMIT", "d" * 40)
    path = tmp_path / "traffic.json"
    words = ["analyze", "toy-leveled-n13-s40", "--operation", "hadd", "--device", "cuda:dry"]
    assert main([*words, "--json", str(path)]) == 0
    of = json.loads(path.read_text())["provenance"]
    assert of["commit"] == "d" * 40 and of["date"] and of["device"] == "cuda:dry" and of["command"]


def test_composed_workloads_stand_beside_runs(kept):
    found = outcome(kept, "fhecore", "table", 8)
    (table,) = [t for t in found.tables if "as a check" in t.title]
    by = {cells[0]: cells for _, cells in table.rows}
    assert by["ResNet-20"][4].startswith("NVIDIA H100") and by["ResNet-20"][2] == by["ResNet-20"][5]
    assert by["ResNet-20"][-1] == by["ResNet-20"][1] / by["ResNet-20"][3]
    assert by["BERT-Tiny"][-1] is None  # of another set: no quotient
    for number in (6, 7, 8):
        assert any(
            "kernels are those of the traces" in t for t in outcome(kept, "fhecore", "table", number).remarks
        )


def test_the_elements_latency_is_what_the_tile_leaves(kept):
    for number, at in ((4, 1), (9, 1)):
        found = outcome(kept, "fhecore", "table", number)
        (own,) = [
            cells for t in found.tables for ours, cells in t.rows if ours and cells[0].startswith("latency")
        ]
        assert own[at] == 6


def test_switches_that_texts_name_are_there():
    """A word of the library in a remark is a switch that it has; others are the papers' symbols."""
    symbols = {"sigma_tot", "p_fail"}
    named = set()
    for item in reproduce.items():
        text = " ".join((*item.remarks, item.leaves_out))
        named |= set(re.findall(r"(?<![/\w])[a-z]+(?:_[a-z]+)+(?![\w./])", text)) - symbols
    assert "held_sources" in named
    assert all(isinstance(getattr(crenel.Optimisations(), name), bool) for name in named)
