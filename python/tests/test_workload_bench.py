"""The table of workloads at several scales: its runs, and the page that is rendered of them."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from needed import needs

needs("demo", "sklearn")
BENCH = Path(__file__).resolve().parents[2] / "bench"
if not BENCH.is_dir():
    pytest.skip("the benchmarks are not part of an installation", allow_module_level=True)
LEVELED = "toy-leveled-n14-s40"


def load(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def scale_table(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH / "workload"))
    return load("scale_table", BENCH / "workload/scale_table.py")


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return load("report_workloads", BENCH / "report/workloads.py").workloads_page


def run(scale_table, tmp_path, *more: str) -> int:
    common = ["--device", "cpu", "--workloads", "helr", "--folder", str(tmp_path), "--label", "cpu"]
    return scale_table.main([*common, "--seeds", "2", *more])


def test_runs_and_page(scale_table, page, tmp_path, capsys):
    assert run(scale_table, tmp_path, "--params", LEVELED, "--iterations", "2") == 0
    name = f"workload-{LEVELED}-cpu.json"
    data = json.loads((tmp_path / name).read_text())
    assert [r["stages_timed"] for r in data["results"]] == [False, False, True]
    assert [r["seed"] for r in data["results"]] == [1, 2, 1] and all(r["warm"] for r in data["results"])
    assert "scale_table.py" in data["provenance"]["command"]
    text = page({name: data})
    lines = [line for line in text.splitlines() if line.startswith(f"| {LEVELED}")]
    assert len(lines) == 1 and "(INSECURE)" in lines[0] and "| within |" in lines[0]
    header = next(line for line in text.splitlines() if line.startswith("| parameters"))
    assert header.count("|") == lines[0].count("|")
    assert "### Stages" in text and "| row sums | 2 |" in text
    data["results"][1]["correct"] = False
    assert "**1 of 2 beyond**" in page({name: data})
    assert "No run is recorded yet" in page({}) and "No run" not in text


def test_networks_and_their_page(page, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCH / "workload"))
    table = load("networks_table", BENCH / "workload/networks_table.py")
    common = ["--device", "cpu", "--network", "mlp", "--programs", str(tmp_path), "--folder", str(tmp_path)]
    common += [
        "--params",
        LEVELED,
        "--activations",
        "fit",
        "--batches",
        "1,2",
        "--images",
        "2",
        "--label",
        "cpu",
        "--clear",
    ]
    assert table.main([*common, "--compile"]) == 0
    programs = sorted(p.name for p in tmp_path.iterdir())
    assert programs == [
        f"mlp-{LEVELED}-fit-{batch}.{end}" for batch in (1, 2) for end in (f"{2 * batch}.npz", "crn")
    ]
    assert table.main(common) == 0
    name = f"workload-{LEVELED}-cpu-mlp-fit.json"
    data = json.loads((tmp_path / name).read_text())
    assert [(r["batch"], r["steps"], r["compile_s"]) for r in data["results"]] == [(1, 2, None), (2, 4, None)]
    text = page({name: data})
    lines = [line for line in text.splitlines() if line.startswith("| mlp")]
    assert len(lines) == 2 and all("| within |" in line and "quadratic x 2" in line for line in lines)
    header = next(line for line in text.splitlines() if line.startswith("| network"))
    assert {line.count("|") for line in lines} == {header.count("|")}
    assert f"### Stages, mlp, quadratic x 2, batch 2, {LEVELED}" in text
    data["results"][0]["predicted_us"] = 123e6
    assert "| 123 s |" in page({name: data}) or "| 123.00 s |" in page({name: data})
    data["results"][0]["simulated"] = True  # of the clear: no time to show
    assert page({name: data}).count("| mlp") == 1
    # What cannot be compiled leaves a line, and no file.
    assert table.main([*common, "--params", "toy-leveled-n13-s40", "--label", "none"]) == 1
    assert "toy-leveled-n13-s40, fit, batch 1: " in capsys.readouterr().err
    assert not list(tmp_path.glob("*none*"))


def sort_row(comparator: str) -> dict:
    """A record of a sort with its file's fields."""
    return {
        "name": "sort", "params": "boot40", "insecure": False, "variant": "crenel", "count": 16384,
        "comparator": comparator, "radix": 4, "steps": 56, "bootstraps": 93, "latency_us": 1.5e6,
        "total_s": 1.5, "error_bits": 12.4, "rms_bits": 14.5, "correct": True, "stages_timed": False,
        "stages": [], "error": 1e-4, "data": "uniform", "energy": {"joules_per_step": 9.5},
        "memory": {"keys": 1 << 30, "library_peak": 3 << 30, "driver_peak": 4 << 30},
    }  # fmt: skip


def document(*rows: dict) -> dict:
    where = {"device_description": "NVIDIA H200", "command": "c", "date": "2026-11-23"}
    return {"kind": "crenel-bench", "suite": "workload", "provenance": where, "results": list(rows)}


def test_a_sort_has_its_row(page):
    row = sort_row("15,15,15,15")
    data = document(row, {**row})
    line = next(line for line in page({"w.json": data}).splitlines() if line.startswith("| boot40"))
    for cell in ("16,384", "1.50 s", "12.40", "9.50 J", "4,096 MiB", "| 2 |"):
        assert cell in line, line


def test_recorded_runs_are_rows_of_their_own(page):
    row = sort_row("15,15,15,27")
    staged = row | {"stages_timed": True, "latency_us": 3e6, "graph": False}
    recorded = row | {"graph": True, "latency_us": 1.2e6}
    data = document(row, recorded, recorded, staged)
    lines = [line for line in page({"w.json": data}).splitlines() if line.startswith("| boot40")]
    assert len(lines) == 2 and "| 1 | 1.50 s |" in lines[0] and "| 2, recorded | 1.20 s |" in lines[1]


def test_both_workloads_with_files(scale_table, page, tmp_path):
    """Values and rows of one's own, recordings asked for, on a set that ends soon."""
    rng = np.random.default_rng()
    x = rng.normal(size=(64, 3))
    np.savez(tmp_path / "rows.npz", X=x, y=np.where(x[:, 0] > 0, 1, -1))
    np.save(tmp_path / "values.npy", rng.random(8))
    options = [
        "--device", "cpu", "--folder", str(tmp_path), "--label", "cpu", "--seeds", "1", "--graph",
        "--params", "toy-boot40", "--data", str(tmp_path / "rows.npz"), "--iterations", "2",
        "--values", str(tmp_path / "values.npy"), "--count", "0",
    ]  # fmt: skip
    assert scale_table.main(options) == 0
    name = "workload-toy-boot40-cpu.json"
    data = json.loads((tmp_path / name).read_text())
    found = [(r["name"], r["graph"], r["stages_timed"]) for r in data["results"]]
    assert found == [
        ("helr", True, False), ("helr", False, True), ("sort", True, False), ("sort", False, True)
    ]  # fmt: skip
    assert all(r["correct"] for r in data["results"]) and data["results"][2]["count"] == 8
    assert "recorded" in page({name: data})
    with pytest.raises(SystemExit):
        scale_table.parse(["--values", str(tmp_path / "none.npy")])


def test_what_fails_is_said(scale_table, tmp_path, capsys):
    assert run(scale_table, tmp_path, "--params", LEVELED, "--iterations", "9", "--seeds", "1") == 1
    said = capsys.readouterr().err
    assert "no result: " + LEVELED in said and "ParameterError" in said
    assert not list(tmp_path.iterdir())
    with pytest.raises(SystemExit):
        scale_table.parse(["--workloads", "resnet"])
