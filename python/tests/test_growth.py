"""Growth curves: every point is timed and judged, a wrong result is told, and records become curves."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import toy

import crenel
from crenel import growth
from crenel.cli import main
from crenel.reproduce import growth as curves
from crenel.reproduce.results import Results

SMALL = ["--params", "toy-leveled-n13-s40", "--boot", "toy-boot40", "--seconds", "0", "--repeats", "1"]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Of the CPU, all axes."""
    path = tmp_path_factory.mktemp("growth") / "growth-cpu.json"
    words = [
        "bench",
        "growth",
        "--device",
        "cpu",
        *SMALL,
        "--log-n",
        "10,11",
        "--batches",
        "1,3",
        "--steps",
        "2",
    ]
    assert main([*words, "--log-slots", "3,5,20", "--threads", "1,2,4096", "--json", str(path)]) in (0, None)
    return path


def test_every_point_is_timed_and_right(record):
    rows = json.loads(record.read_text())["results"]
    points = {(row["axis"], row["name"], row["x"]) for row in rows}
    operations = set(growth.OPERATIONS)
    assert {(name, x) for axis, name, x in points if axis == "log_n"} == {
        (n, x) for n in operations for x in (10, 11)
    }
    assert {x for axis, _, x in points if axis == "batch"} == {1, 3}
    assert {x for axis, _, x in points if axis == "slots"} == {8, 32}
    assert {x for axis, _, x in points if axis == "threads"} >= {1}
    assert len({x for axis, _, x in points if axis == "limbs"}) == 2
    assert all(row["correct"] and row["latency_us"] > 0 and row["error"] < 2**-8 for row in rows)
    chains = {(row["limbs"], row["special"]) for row in rows if row["axis"] == "log_n"}
    assert len(chains) == 1  # the same chain on every ring
    assert {row["limbs"] for row in rows if row["axis"] == "batch"} == {
        row["limbs"] for row in rows if row["axis"] == "threads"
    }


def test_what_is_left_out_is_recorded_with_its_reason(record):
    left_out = json.loads(record.read_text())["left_out"]
    why = {(each["axis"], each["x"], each["name"]): each["why"] for each in left_out}
    assert why["slots", 1 << 20, "bootstrap"] == f"toy-boot40 has {toy('toy-boot40').slots} slots"
    assert why["threads", 4096, ""].startswith("this process may use ")
    lowest = min(x for axis, x, _ in why if axis == "limbs")
    assert {name for axis, x, name in why if (axis, x) == ("limbs", lowest)} == {"hmult", "rescale"}
    rows = json.loads(record.read_text())["results"]
    assert not {(row["axis"], row["x"], row["name"]) for row in rows} & set(why)


def test_no_point_is_begun_after_the_limit(capfd):
    words = ["--axes", "batch", "--batches", "1,3", "--limit", "0"]
    assert main(["bench", "growth", "--device", "cpu", *SMALL, *words]) in (0, None)
    assert "ciphertexts of one call 3: 0 s of all were over (--limit)" in capfd.readouterr().out


def test_memory_that_ends_while_an_axis_begins_keeps_the_others(monkeypatch, capfd, tmp_path):
    """Nothing measured is lost, every place says why, and what failed is not tried again for each."""
    errors = [crenel.OutOfMemoryError("no room for keys"), MemoryError()]
    honest = growth.World

    def making(params, device, plan):
        if params.name:  # not the rings of the first axis
            raise errors.pop()
        return honest(params, device, plan)

    monkeypatch.setattr(growth, "World", making)
    words = [
        "bench",
        "growth",
        "--device",
        "cpu",
        *SMALL,
        "--log-n",
        "10",
        "--batches",
        "1,2",
        "--steps",
        "2",
    ]
    path = tmp_path / "growth.json"
    assert main([*words, "--axes", "limbs,batch,log_n", "--json", str(path)]) in (0, None)
    found = json.loads(path.read_text())
    assert [row["axis"] for row in found["results"]] == ["log_n"] * len(growth.OPERATIONS)
    left = [(each["axis"], each["why"]) for each in found["left_out"] if not each["name"]]
    assert sorted(left) == [("batch", "no room for keys")] * 2 + [("limbs", "out of memory")] * 2
    assert not errors
    assert "no room for keys" in capfd.readouterr().out


def test_a_process_that_is_killed_leaves_a_point_out(monkeypatch):
    ended = subprocess.CompletedProcess([], -9, "", "killed")
    monkeypatch.setattr(growth.subprocess, "run", lambda *_, **__: ended)
    found = growth.measure(crenel.Device("cpu"), ["threads"], growth.Plan(threads=(1,)))
    assert not found.rows and "status -9 and no record: killed" in found.left_out[0].why


def test_memory_that_is_not_there_leaves_a_point_out(monkeypatch, capfd):
    right = growth.World.row

    def refused(self, name, level, batch):
        if batch > 1:
            raise crenel.OutOfMemoryError(f"{batch} ciphertexts do not fit")
        return right(self, name, level, batch)

    monkeypatch.setattr(growth.World, "row", refused)
    words = ["--axes", "batch", "--batches", "1,3"]
    assert main(["bench", "growth", "--device", "cpu", *SMALL, *words]) in (0, None)
    assert "ciphertexts of one call 3: 3 ciphertexts do not fit" in capfd.readouterr().out


def test_what_a_process_of_so_many_threads_leaves_out_is_told(monkeypatch):
    def run(words, **_):
        left_out = [{"axis": "batch", "x": 1, "name": "", "why": "1 ciphertexts do not fit"}]
        Path(words[words.index("--json") + 1]).write_text(json.dumps({"results": [], "left_out": left_out}))
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(growth.subprocess, "run", run)
    plan = growth.Plan(params="toy-leveled-n13-s40", threads=(1,))
    found = growth.measure(crenel.Device("cpu"), ["threads"], plan)
    assert not found.rows
    assert found.left_out == [growth.LeftOut("threads", 1, "", "1 ciphertexts do not fit")]


def test_records_become_curves(record):
    found = {curve.name: curve for curve in curves.curves(Results([record.parent], toy=True))}
    assert {"rings", "ring-limbs", "together", "few-slots"} <= set(found)
    assert "N (below 128 bits of security: 2^10, 2^11)" in found["rings"].chart.x
    assert {x for points in found["rings"].chart.series.values() for x, _ in points} == {1024, 2048}
    if "threads" in found:  # of several processors; each point has a number of its own
        assert not any(series.endswith((" thread", " threads")) for series in found["threads"].chart.series)


def test_a_wrong_result_is_told(monkeypatch, capfd):
    right = growth.World._work

    def wrong(self, name, level, batch):
        work, inputs, expected = right(self, name, level, batch)
        return work, inputs, np.roll(expected, 1, axis=-1)

    monkeypatch.setattr(growth.World, "_work", wrong)
    assert main(["bench", "growth", "--device", "cpu", *SMALL, "--axes", "batch", "--batches", "1"]) == 1
    assert "WRONG: hmult at batch 1" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--axes", "width"], "axis 'width', expected some of log_n, limbs, batch, slots, threads"),
        (["--axes", ","], "axis '', expected some of log_n"),
        (["--axes", "batch,", "--device", "ref"], "axis '', expected some of log_n"),
        (["--axes", "threads", "--device", "ref"], "threads of ref, expected the device cpu"),
        (["--batches", "1,x"], "--batches 1,x, expected numbers from 1 on, by commas"),
        (["--log-n", "0"], "--log-n 0, expected numbers from 1 on"),
        (["--log-n", "40"], "log_n"),
        (["--json", __file__], "expected a new file"),
    ],
)
def test_refusals(words, said, capfd):
    assert main(["bench", "growth", "--device", "cpu", *SMALL, *words]) not in (0, None)
    assert said in capfd.readouterr().err


def test_a_model_states_bounds(tmp_path):
    try:
        crenel.Device("cuda:dry")
    except crenel.DeviceError as error:
        pytest.skip(str(error))
    path = tmp_path / "dry.json"
    words = ["bench", "growth", "--device", "cuda:dry", *SMALL, "--axes", "batch", "--batches", "1,8"]
    assert main([*words, "--json", str(path)]) in (0, None)
    rows = json.loads(path.read_text())["results"]
    by = {(row["name"], row["x"]): row for row in rows}
    assert all(row["latency_us"] is None and row["bound_us"] > 0 and "correct" not in row for row in rows)
    assert by["hmult", 8]["bytes"] > 4 * by["hmult", 1]["bytes"]
