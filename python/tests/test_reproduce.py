"""The registry of four papers' tables and figures: what it lists, what it renders, what it runs."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import pytest
from needed import needs
from pool_world import require

from crenel import reproduce
from crenel.cli import main
from crenel.errors import ParameterError, SerializationError
from crenel.reproduce import charts, draw, growth, page, registry, render, running, text
from crenel.reproduce.commands import COMMANDS
from crenel.reproduce.outcome import BUILDERS, NOT_APPLICABLE, NOT_YET
from crenel.reproduce.results import Results

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
PAGE, FIGURES = ROOT / "docs/reference/reproduction.md", ROOT / "docs/assets/reproduction"
# Every numbered table and figure that is reproduced, or has a reason why not.
LISTED = {
    "theodosian": (range(1, 5), range(1, 9)),
    "cheddar": (range(1, 9), range(1, 9)),
    "bolt-fhe": (range(1, 13), range(5, 9)),
    "fhecore": (range(4, 11), (1, 7, 8, 9, 10)),
}
COUNT = 56
DIAGRAMS = {
    "theodosian/figure-4", "cheddar/table-1", "cheddar/figure-4", "cheddar/figure-5",
    "cheddar/figure-6", "bolt-fhe/table-2", "bolt-fhe/table-3", "bolt-fhe/table-5",
}  # fmt: skip


@pytest.fixture(scope="module")
def results() -> Results:
    return Results(render.with_model([RESULTS]))


@pytest.fixture(scope="module")
def outcomes(results):
    return reproduce.outcomes(results)


def test_the_list():
    wanted = {
        f"{paper}/{kind}-{number}"
        for paper, numbers in LISTED.items()
        for kind, own in zip(("table", "figure"), numbers, strict=True)
        for number in own
    }
    keys = [item.key for item in reproduce.items()]
    assert len(keys) == len(set(keys)) == COUNT
    assert set(keys) == wanted


def test_every_item_has_a_result_or_a_reason(outcomes):
    for o in outcomes:
        if o.status == NOT_APPLICABLE:
            assert len(o.item.not_applicable) > 10, o.item.key
        elif o.found:
            assert o.sources and (o.tables or o.charts), o.item.key
        else:
            assert o.status == NOT_YET and o.lacks, o.item.key
    assert {o.item.key for o in outcomes if o.status == NOT_APPLICABLE} == DIAGRAMS


def test_what_has_results_keeps_them(outcomes):
    """39 items and more: a record that is renamed, or a query that finds nothing, shows here."""
    found = {o.item.key for o in outcomes if o.found}
    assert len(found) >= 39
    assert {"theodosian/table-2", "cheddar/table-7", "bolt-fhe/table-9", "fhecore/table-6"} <= found


def test_builders_are_those_of_the_items():
    wanted = {item.key for item in reproduce.items() if not item.not_applicable}
    assert set(BUILDERS) == wanted


def test_without_records_every_item_says_by_which_command(tmp_path):
    for o in reproduce.outcomes(Results([tmp_path])):
        if o.item.not_applicable or o.found:
            continue  # parameter sets need no record
        assert o.status == NOT_YET, o.item.key
        for lack in o.lacks:
            assert page.lack_text(lack).count("`") == 2


def test_the_papers_data():
    for item in reproduce.items():
        assert item.place.startswith("section ") and item.shows and item.title
        assert set(item.commands) <= set(COMMANDS), item.key
        if item.kind == "table" and not item.not_applicable:
            assert item.rows, item.key
    bibliography = (ROOT / "docs/bibliography.bib").read_text()
    assert all(f"{{{paper.cite}," in bibliography for paper in reproduce.papers())


def test_some_numbers_of_the_papers():
    """Spot checks of what was copied: sums that the papers print, too."""
    times = {row[0]: row[1:] for row in reproduce.find("fhecore", "table", 8).rows}
    base, after, ratios = times.values()
    for a, b, printed in zip(base, after, ratios, strict=True):
        assert a / b == pytest.approx(printed, abs=0.006)
    counts = reproduce.find("fhecore", "table", 6).rows
    assert all(row[1] / row[2] == pytest.approx(row[3], abs=0.006) for row in counts)
    cpu = reproduce.find("bolt-fhe", "table", 9).rows
    assert all(row[3] * row[4] / 1e3 == pytest.approx(row[5], rel=1e-3) for row in cpu)
    velo = {row[0]: row[1:] for row in reproduce.find("bolt-fhe", "table", 11).rows}
    assert velo["G2, r = 1"][0] / velo["G2, r = 1"][2] == pytest.approx(2.92, abs=0.01)
    theodosian = {(row[0], row[1]): row[2:] for row in reproduce.find("theodosian", "table", 2).rows}
    for at, printed in enumerate((1.45, 1.83, 1.54)):
        cheddar, own = (theodosian["RTX 5090", name][at] for name in ("Cheddar", "Theodosian"))
        assert cheddar / own == pytest.approx(printed, abs=0.011)
    fastest = {row[0]: row[1] for row in reproduce.find("cheddar", "table", 5).rows}
    assert fastest["WarpDrive (A100 80GB)"] / fastest["Cheddar (A100 80GB)"] == pytest.approx(3.03, abs=0.01)


def test_ours_is_read_and_not_typed(tmp_path, results):
    """Another number in the record is another number in the table."""
    file = "boot40-h200-boot.json"
    record = json.loads((RESULTS / file).read_text())
    for row in record["results"]:
        row["latency_us"] = 4321.5
    (tmp_path / file).write_text(json.dumps(record))
    (found,) = reproduce.outcomes(Results([tmp_path]), [reproduce.find("theodosian", "table", 2)])
    own = [cells for ours, cells in found.tables[0].rows if ours]
    assert own == [("NVIDIA H200", "Crenel", 4.3215, None, None)]
    assert found.status == "measured, in part"
    assert {lack.command for lack in found.lacks} == {"helr:boot40", "resnet20:boot40"}


SAME = "boot35-h1024"  # the set of Theodosian's Table IV


def of_table_iv(folder):
    found = reproduce.outcome(reproduce.find("theodosian", "table", 4), Results([folder]))
    return [cells for ours, cells in found.tables[0].rows if ours], found


def test_the_same_set_is_simulated_until_it_is_measured(tmp_path):
    """By the account alone, with the errors that any device recorded, then by a record of times."""
    account = json.loads((RESULTS / f"traffic-{SAME}-dry.json").read_text())
    account["total"]["bound"] = 4.25e-3
    (tmp_path / "traffic-x.json").write_text(json.dumps(account))
    (row,), found = of_table_iv(tmp_path)
    assert "simulated" in row[0] and SAME in row[0] and found.status == "simulated and computed"
    assert row[1:] == (pytest.approx(1711, abs=0.5), None, 35, 1024, 32, None, pytest.approx(4.25))
    errors = json.loads((RESULTS / f"{SAME}-cpu-errors.json").read_text())
    errors["precision"]["mean_max_error_log2"] = -20.25
    (tmp_path / "errors.json").write_text(json.dumps(errors))
    (row,), found = of_table_iv(tmp_path)
    assert row[2] == -20.25 and row[6] == 15 and found.status == "measured and simulated and computed"
    assert not any(SAME in name for chart in found.charts for name in chart.groups)
    boot = json.loads((RESULTS / "boot35-h200-boot.json").read_text())
    for result in boot["results"]:
        result |= {"params": SAME, "latency_us": 6543.0}
    boot["precision"]["mean_max_error_log2"] = -20.5
    (tmp_path / f"{SAME}-h200-boot.json").write_text(json.dumps(boot))
    (row,), found = of_table_iv(tmp_path)
    assert row[0] == f"Crenel, {SAME}, NVIDIA H200" and row[7] == pytest.approx(6.543) and row[2] == -20.5
    assert any(SAME in name for chart in found.charts for name in chart.groups)


def test_the_newest_account_counts(tmp_path):
    """Of several of an operation; and its source says of what code and when."""
    account = json.loads((RESULTS / "traffic-boot40-dry.json").read_text())
    item = reproduce.find("theodosian", "figure", 3)
    for name, date, launched in (("a", "2026-11-25", 5e9), ("c", "2026-11-27", 7e9), ("b", "", 6e9)):
        account["provenance"] = {"date": date, "commit": 12 * name} if date else {}
        account["total"]["bytes"] = launched
        (tmp_path / f"{name}.json").write_text(json.dumps(account))
    found = reproduce.outcome(item, Results([tmp_path]))
    (table,) = [t for t in found.tables if t.title == "ours"]
    assert ("bytes at L2, GB", 7.0) in [cells for _, cells in table.rows]
    assert "commit cccccccccc, 2026-11-27" in found.sources["c.json"] and len(found.sources) == 1


def test_stages_of_a_key_switch_by_todays_kernels(tmp_path):
    """Conversions that go with a column pass are of the first stage; the newest record counts."""
    at = {"us": 2.0, "read": 3e6, "written": 1e6, "dram_bytes": 1e6}
    stages = {"key_switch": ("row_inverse", "convert_columns", "key_switch_rows"),
              "divide": ("convert_columns", "row_divide"), "": ("tensor",)}  # fmt: skip
    kernels = [(kernel, stage) for stage, own in stages.items() for kernel in own]
    rows = [{"kernel": k, "stage": f"hmult/{s}".rstrip("/"), **at} for k, s in kernels]
    record = {"kind": "crenel-ncu-account", "tolerance": 0.05, "kernels": {}, "rows": rows}
    for name, date, kept in (("old", "2026-11-21", rows[:1]), ("new", "2026-11-27", rows)):
        facts = {"date": date, "params": "boot40", "operation": "each", "device": "NVIDIA H200"}
        (tmp_path / f"{name}.json").write_text(json.dumps({**record, "provenance": facts, "rows": kept}))
    found = reproduce.outcome(reproduce.find("theodosian", "figure", 6), Results([tmp_path]))
    (table,) = [t for t in found.tables if t.title == "ours"]
    assert [cells[1] for _, cells in table.rows] == [4.0, 2.0, 4.0]
    assert list(found.sources) == ["new.json"] and "2026-11-27" in found.sources["new.json"]


def test_wrong_results_and_toys_are_no_results(tmp_path):
    record = json.loads((RESULTS / "boot40-h200-boot.json").read_text())
    item = reproduce.find("theodosian", "table", 2)
    for name, change in {"wrong": {"correct": False}, "toy": {"params": "toy-boot40"}}.items():
        folder = tmp_path / name
        folder.mkdir()
        changed = {**record, "results": [{**row, **change} for row in record["results"]]}
        (folder / "x.json").write_text(json.dumps(changed))
        assert reproduce.outcome(item, Results([folder])).status == NOT_YET
    shown = reproduce.outcome(item, Results([tmp_path / "toy"], toy=True))
    ((_, cells),) = [row for row in shown.tables[0].rows if row[0]]
    assert "INSECURE" in cells[0]


def test_networks_are_found_when_they_are_measured(tmp_path):
    """Rows as `crenel workload resnet20` writes them; what was only simulated has no time."""
    record = json.loads((RESULTS / "workload-boot40-h200.json").read_text())
    row = {
        "name": "network", "network": "resnet20", "params": "boot40", "log_n": 16, "log_pq": 1745.85,
        "batch": 1,
        "security_bits": 128.1, "latency_us": 345678.0, "simulated": False, "graph": True, "correct": True,
        "activation": "relu 63 x 19", "accuracy": 0.915, "steps": 32, "stages": [],
    }  # fmt: skip
    others = [{**row, "latency_us": 1.0, "simulated": True}, {**row, "latency_us": 4e5, "graph": False}]
    (tmp_path / "workload-x.json").write_text(json.dumps({**record, "results": [row, *others]}))
    found = Results([tmp_path])
    (table,) = reproduce.outcome(reproduce.find("theodosian", "table", 2), found).tables
    assert table.rows[-1] == (True, ("NVIDIA H200", "Crenel, relu 63 x 19", None, None, 345.678))
    scales = reproduce.outcome(reproduce.find("cheddar", "table", 6), found)
    (own,) = [cells for ours, cells in scales.tables[0].rows if ours]
    assert own[3:5] == (0.345678, "91.5 of 32 images")
    assert [len(t.rows) for t in scales.tables if "ResNet" in t.title] == [2]


def test_predictions_count_only_with_their_validation(tmp_path, results):
    item = reproduce.find("fhecore", "table", 7)
    data = results.documents["predictions-h200.json"]
    (tmp_path / "predictions-h200.json").write_text(json.dumps(data))
    assert reproduce.outcome(item, Results([tmp_path])).status == NOT_YET
    validation = results.documents["validation-h200.json"]
    (tmp_path / "validation-h200.json").write_text(json.dumps(validation))
    assert reproduce.outcome(item, Results([tmp_path])).found
    (tmp_path / "validation-h200.json").write_text(json.dumps({**validation, "fingerprint": "another"}))
    assert not reproduce.outcome(item, Results([tmp_path])).found


def test_records_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(SerializationError, match="broken.json"):
        Results([tmp_path])
    with pytest.raises(ParameterError, match="expected a folder"):
        Results([tmp_path / "nowhere"])


def test_the_page_is_what_the_records_say(results):
    old = reproduce.stale(results, PAGE, FIGURES)
    assert not old, f"crenel reproduce all --page {PAGE} --figures {FIGURES} writes {old[0]} and more"


def test_a_stale_page_and_stale_pictures_are_told(tmp_path, results):
    needs("demo", "matplotlib")
    target, figures = tmp_path / "the page", tmp_path / "pictures"
    figures.mkdir()
    names = list(page.figures(reproduce.outcomes(results), growth.curves(results)))
    for name in names:
        (figures / name).write_text((FIGURES / name).read_text())
    (figures / names[0]).write_text("<svg>data:another</svg>")
    (figures / "left-over.svg").write_text("<svg/>")
    target.write_text("old")
    assert {p.name for p in reproduce.stale(results, target, figures)} == {
        "the page",
        names[0],
        "left-over.svg",
    }


def test_pictures_carry_their_data():
    needs("demo", "matplotlib")
    bars = charts.Bars("a & b", "ms", ["x", "y"], {"ours": [1.0, None], "theirs": [20000.0, 2.0]}, ["ours"])
    forms = [
        bars,
        charts.Bars(
            "many", "ms", [f"bar {k}" for k in range(12)], {"": [float(k + 1) for k in range(12)]}, log=True
        ),
        charts.Stacks("shares", "%", ["one"], {"a": [1.0], "b": [3.0]}, shares=True),
        charts.Lines("line", "x", "y", {"s": [(1, 2.0), (4, 3.0)], "s, paper": [(1, 1.0), (4, 2.0)]}, logx=2),
        charts.Roofline("roof", {"L2": 8e12}, {"madd": 8e12, "butterfly": 3e12}, {"ntt": (0.4, 2e12)}),
    ]
    for chart in forms:
        svg = draw.svg(chart)
        assert draw.drawn_from(svg) == charts.digest(chart)
        assert svg == draw.svg(chart)  # nothing of the day, nothing at random
    assert charts.digest(bars) != charts.digest(charts.Bars("a & b", "s", bars.groups, bars.series))


def test_all_are_rendered_in_seconds(tmp_path):
    needs("demo", "matplotlib")
    assert main(["reproduce", "all", "--from", str(RESULTS), "--out", str(tmp_path)]) in (0, None)
    html, markdown = ((tmp_path / name).read_text() for name in ("index.html", "reproduction.md"))
    for item in reproduce.items():
        assert f"id='{item.file}'" in html
        assert f"### {item.label}: {item.title}" in markdown
    for link in re.findall(r"\]\((figures/[^)]+)\)", markdown):
        assert (tmp_path / link).is_file()
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))  # of pictures that lie in one page
    assert "http" not in re.sub(
        r"https?://(www\.w3\.org|purl\.org|creativecommons\.org|matplotlib\.org)\S*", "", html
    )


@pytest.mark.parametrize(
    ("value", "ours", "shown"),
    [
        (None, True, "-"), ("text", False, "text"), (36129286144, False, "36,129,286,144"), (5, True, "5"),
        (786.97, False, "786.97"), (1523.7, True, "1524"), (10.0646, True, "10.1"),
        (0.004321, True, "0.00432"), (-20.4333, True, "-20.4"), (0.0, True, "0"),
    ],
)  # fmt: skip
def test_cells(value, ours, shown):
    assert text.cell(value, ours) == shown


def test_commands_are_filled():
    boot = COMMANDS["boot:boot40"]
    words = boot.filled("cpu", "out", "cpu", {})
    assert words[:6] == ["crenel", "bench", "boot", "--device", "cpu", "--params"]
    assert "toy-boot40" in boot.filled("cpu", "out", "cpu", {}, toy=True)
    helr = COMMANDS["helr:boot40"]
    assert "--data" not in helr.filled("cuda", "o", "l", {})
    assert "mine.npz" in helr.filled("cuda", "o", "l", {"data": "mine.npz"})
    for name, command in COMMANDS.items():
        assert "{" not in command.text(), name


def plans(tmp_path, device, **more):
    items = [reproduce.find("theodosian", "table", 2), reproduce.find("theodosian", "figure", 3)]
    asked = running.Asked(device, tmp_path, **more)
    return asked, {plan.name: plan for plan in running.plans(items, asked)}


def test_what_runs_where(tmp_path):
    asked, found = plans(tmp_path, "cuda:dry")
    assert not found["traffic:boot40"].reason and "cuda:dry" in found["traffic:boot40"].words
    assert "does not run on cuda:dry" in found["boot:boot40"].reason
    assert "weights" in found["resnet20:boot40"].reason
    asked, found = plans(tmp_path, "cpu", toy=True)
    assert not found["boot:boot40"].reason and "cuda:dry" in found["traffic:boot40"].words
    (tmp_path / "boot40-cpu-boot.json").write_text("{}")
    asked, found = plans(tmp_path, "cpu", toy=True)
    assert "is kept" in found["boot:boot40"].reason
    with pytest.raises(ParameterError, match="expected cuda"):
        plans(tmp_path, "tpu")
    assert [p.reason for p in running.plans([reproduce.find("cheddar", "table", 7)], asked)] != [""]


def test_a_command_that_fails_is_told_and_the_others_run(tmp_path):
    asked, found = plans(tmp_path / "new", "cpu", toy=True)
    said: list[str] = []
    ran: list[tuple[str, ...]] = []

    def execute(words, root, lines):
        ran.append(words)
        return 3 if "boot" in words else 0

    failed = running.run(list(found.values()), asked, said.append, execute)
    assert [p.name for p in failed] == ["boot:boot40"]
    assert len(ran) == sum(not p.reason for p in found.values()) > 1
    assert any("exit status 3" in line for line in said)
    assert any(line.startswith("not run: resnet20:boot40") for line in said)


def test_what_is_there_is_used(tmp_path, monkeypatch):
    """Weights, a profiler, a simulator: a command runs where all that it needs is, and says what is not."""
    every = dict.fromkeys(name for item in reproduce.items() for name in item.commands)
    asked = running.Asked("cuda", tmp_path / "out")
    monkeypatch.setattr(running.shutil, "which", lambda name: None)
    monkeypatch.setattr(running, "find_spec", lambda name: None)
    monkeypatch.delenv("FHECORE_VERILATOR", raising=False)
    bare = {p.name: p.reason for p in running.plans(reproduce.items(), asked)}
    assert set(bare) == set(every)
    assert "no --weights" in bare["resnet20:boot40"] and "no --images" in bare["resnet20:boot40"]
    assert (
        "no ncu" in bare["ncu-rotation"] and "no nvcc" in bare["ncu-account"] and "clone" in bare["kernels"]
    )
    assert "verilator" in bare["fhecore-unit"] and "by hand" in bare["ceilings"]
    assert "fhecore/sim/data" in bare["fhecore-sim"]
    weights, images, root = tmp_path / "w.npz", tmp_path / "images", tmp_path / "clone"
    weights.touch()
    images.mkdir()
    root.mkdir()
    asked = running.Asked("cuda", tmp_path / "out", root=root, weights=weights, images=images)
    monkeypatch.setattr(running.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(running, "find_spec", lambda name: object())
    driver = tmp_path / "params"
    monkeypatch.setattr(running, "COUNTERS", driver)
    driver.write_text("RmProfilingAdminOnly: 0\n")
    found = {p.name: p for p in running.plans(reproduce.items(), asked)}
    assert {name for name, p in found.items() if p.reason} == {"ceilings", "fhecore-sim"}
    assert str(weights) in found["resnet20:boot40"].words and str(images) in found["resnet20:boot40"].words
    assert found["ncu-rotation"].then[:2] == ("python", "bench/compare/ncu_counters.py")
    assert found["kernels"].lines == tmp_path / "out" / "kernels-cuda.jsonl"
    driver.write_text("RmProfilingAdminOnly: 1\n")
    monkeypatch.setattr(running.os, "geteuid", lambda: 1000)
    found = {p.name: p for p in running.plans(reproduce.items(), asked)}
    assert "root alone" in found["stalls"].reason
    images.rmdir()
    found = {p.name: p for p in running.plans(reproduce.items(), asked)}
    assert f"--images {images}: not there" in found["resnet20:boot40"].reason


def test_records_of_what_prints_and_of_what_makes_files(tmp_path):
    """As they are run: lines of JSON are kept, a second command makes the record, 77 is no failure."""
    out = tmp_path / "out"
    script = "import sys; print('building'); print('{\"a\": 1}'); print('{\"a\": 2}')"
    lines = out / "kernels.jsonl"
    made = out / "made.json"
    write = f"open({str(made)!r}, 'w').write('{{}}')"
    planned = [
        running.Plan("lines", ("python", "-c", script), lines=lines),
        running.Plan("both", ("python", "-c", "pass"), then=("python", "-c", write)),
        running.Plan(
            "lacks", ("python", "-c", "raise SystemExit(77)"), then=("python", "-c", "raise SystemExit(5)")
        ),
        running.Plan("fails", ("python", "-c", "print('{}'); raise SystemExit(3)"), lines=out / "no.jsonl"),
    ]
    said: list[str] = []
    failed = running.run(planned, running.Asked("cpu", out), said.append)
    assert [p.name for p in failed] == ["fails"] and not (out / "no.jsonl").exists()
    assert [json.loads(line) for line in lines.read_text().splitlines()] == [{"a": 1}, {"a": 2}]
    assert made.exists() and any(line.startswith("not run: lacks") for line in said)


def test_measuring_on_the_dry_device(tmp_path, capfd):
    """The whole way: a command is run, its record is read, the item has its numbers."""
    require(["cuda:dry"])
    arguments = ["reproduce", "cheddar", "--figure", "1", "--device", "cuda:dry", "--from", str(tmp_path)]
    out = tmp_path / "out"
    needs("demo", "matplotlib")
    assert main([*arguments, "--out", str(out)]) in (0, None)
    seen = capfd.readouterr().out
    assert "cheddar, Fig. 1" in seen and "32-RR" in seen
    assert len(list((out / "results").glob("traffic-*.json"))) == 6
    assert (out / "index.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["theodosian", "--table", "9"], "expected one of 1, 2, 3, 4"),
        (["all", "--table", "1"], "are of one paper"),
        (["cheddar", "--table", "1", "--figure", "1"], "one of them"),
        (["all", "--check"], "--page FILE"),
        (["cheddar", "--page", "x", "--figures", "y"], "of all papers"),
        (["cheddar", "--data", "x.npz"], "of --device"),
    ],
)
def test_refusals(arguments, said, capfd):
    assert main(["reproduce", *arguments, "--from", str(RESULTS)]) not in (0, None)
    assert said in capfd.readouterr().err


def test_outside_of_a_clone_records_are_named(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRENEL_ROOT", raising=False)
    assert main(["reproduce", "cheddar"]) not in (0, None)
    assert "--from FOLDER" in capfd.readouterr().err


def test_one_item_is_printed(capfd):
    assert main(["reproduce", "theodosian", "--table", "2", "--from", str(RESULTS)]) in (0, None)
    seen = capfd.readouterr().out
    assert "Theodosian" in seen and "Crenel" in seen and "Like for like" in seen


def test_without_matplotlib_pages_are_refused_and_tables_are_not(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ["reproduce", "theodosian", "--table", "2", "--from", str(RESULTS)]
    assert main(arguments) in (0, None)
    assert main([*arguments, "--out", str(tmp_path)]) not in (0, None)
    assert "crenel[plot]" in capfd.readouterr().err


def test_growth_curves(results):
    found = {curve.name: curve for curve in growth.curves(results)}
    assert {"slots", "slot-levels", "limbs", "batches"} <= set(found)
    for curve in found.values():
        assert all(len(points) > 1 for points in curve.chart.series.values()) and curve.sources
    assert growth.curves(Results([])) == []


def test_peers_are_labelled_as_measured_here():
    assert "this project" in registry.peers()["measured_by"]


def compared(monkeypatch):
    """The program that makes records of a profiler's output."""
    monkeypatch.syspath_prepend(str(ROOT / "bench" / "compare"))
    return importlib.import_module("ncu_counters")


def ncu_csv(path, launches):
    """What ncu --csv writes of (function, {metric: value})."""
    lines = [
        "==PROF== Connected",
        '"ID","Kernel Name","Grid Size","Metric Name","Metric Unit","Metric Value"',
    ]
    for i, (name, metrics) in enumerate(launches):
        lines += [f'"{i}","void {name}<1>(Args)","(1, 1, 1)","{m}","%","{v:,}"' for m, v in metrics.items()]
    path.write_text("\n".join(lines) + "\n")


def launch(kernel, stage="ntt", **more):
    own = {
        "kernel": kernel,
        "work": "ntt",
        "stage": stage,
        "limbs": 48,
        "polys": 2,
        "read_bytes": 3,
        "written_bytes": 4,
    }
    return {**own, "multiply_adds": 6400, **more}


PROVENANCE = {
    "date": "2026-01-01T00:00:00Z",
    "command": "x",
    "commit": "c",
    "device_description": "GPU, compute capability 9.0",
}


def test_counters_of_kernels_become_rows(tmp_path, monkeypatch):
    """Counts are added over an operation's launches, shares weighed by time; preparations may be hidden."""
    counters = compared(monkeypatch)
    said, ncu, record = (tmp_path / name for name in ("said.json", "ncu.csv", "kernels.json"))
    records = [launch("sample_uniform", ""), launch("column_forward"), launch("row_forward")]
    said.write_text(json.dumps({"provenance": PROVENANCE, "records": records}))
    pipe, l2 = counters.COUNTS["multiply_instructions"], counters.SHARES["l2_percent"]
    ncu_csv(ncu, [("column_forward", {counters.TIME: 1000, pipe: 300, l2: 20}),
                  ("row_forward", {counters.TIME: 3000, pipe: 500, l2: 60})])  # fmt: skip
    assert counters.main([str(said), str(ncu), "--json", str(record)]) == 0
    (row,) = json.loads(record.read_text())["rows"]
    assert row["counters"] == {"us": 4.0, "multiply_instructions": 800, "l2_percent": 50}
    assert (row["operation"], row["limbs"], row["polys"]) == ("ntt", 48, 2)
    found = reproduce.outcome(reproduce.find("theodosian", "figure", 2), Results([tmp_path]))
    (table,) = [t for t in found.tables if "counted" in t.title]
    assert table.rows[0][1][-1] == 100 * 12800 / (32 * 800)
    said.write_text(json.dumps({"provenance": PROVENANCE, "records": records[:2]}))
    with pytest.raises(SystemExit, match="says 1 launches, the profiler 2"):
        counters.main([str(said), str(ncu), "--json", str(record)])


def test_counters_of_rotations_become_rows(tmp_path, monkeypatch):
    counters = compared(monkeypatch)
    said, ncu, record = (tmp_path / name for name in ("said.json", "ncu.csv", "rotation.json"))
    of = {"slots": 5, "shape": "s", "rows": 4, "threads": 512}
    wait = "barrier".join(counters.STALL)
    rest = dict.fromkeys((*counters.COUNTS.values(), *counters.SHARES.values()), 25)
    for name, batches in (("M3", (3276,)), ("G2", (1, 128))):
        shapes = [{**of, "set": name, "batch": batch} for batch in batches]
        said.write_text(json.dumps({"provenance": PROVENANCE, "shapes": shapes}))
        ncu_csv(ncu, [("blind_rotate", {counters.TIME: 1e6, wait: 2.5, **rest})] * len(batches))
        (tmp_path / name).mkdir()
        assert counters.main([str(said), str(ncu), "--json", str(tmp_path / name / record.name)]) == 0
    states = {
        number: reproduce.outcome(reproduce.find("bolt-fhe", "figure", number), Results([tmp_path / name]))
        for number, name in ((6, "G2"), (7, "G2"), (8, "M3"))
    }
    assert {o.status for o in states.values()} == {"measured"}
    assert [cells[0] for _, cells in states[7].tables[1].rows] == ["5", "640"]
    assert states[8].tables[-1].rows[0][1] == ("barrier", 2.5, 100.0)
    other = reproduce.outcome(reproduce.find("bolt-fhe", "figure", 8), Results([tmp_path / "G2"]))
    assert other.status == NOT_YET
