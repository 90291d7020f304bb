"""crenel workload: runs, records, figures, resumption, refusals, and that a wrong result is a failure."""

import dataclasses
import json
import re

import numpy as np
import pytest
import typer
from conftest import NEGATIVE_SEED, device_names, open_context, toy
from needed import needs

import crenel
from crenel.cli import workload, workload_options
from crenel.workloads import data, records

needs("demo", "sklearn")
regression = pytest.importorskip("crenel.workloads.regression")
from crenel.workloads.regression import measure as training  # noqa: E402

LEVELED = "toy-leveled-n14-s40"  # two iterations, no bootstrap: seconds


@pytest.fixture(params=[name for name in device_names() if name != "ref"])
def device(request) -> str:
    """Not ref, which takes minutes."""
    open_context(toy(LEVELED), request.param)  # or skips
    return request.param


def number(text: str, out: str) -> float:
    found = re.search(rf"{text} +([\d.e+-]+)", out)
    assert found, out
    return float(found[1])


def test_a_divergence_in_the_clear_is_told_before_keys_are_made(invoke, tmp_path):
    """Two columns that are nearly parted: weights grow beyond their range with the default rate."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (200, 2))
    rows = [f"{a:.3f},{b:.3f},{int(a + 2 * b > 0)}" for a, b in x]
    file = tmp_path / "own.csv"
    file.write_text("\n".join(["age,bmi,ill", *rows]))
    code, out, err = invoke("helr", "--device", "cpu", "--data", str(file))
    assert code != 0 and "in the clear already" in err and "--rate" in err
    assert "evaluation keys" not in out
    code, out, err = invoke("helr", "--device", "cpu", "--data", str(file), "--rate", "0.1")
    assert code == 0, err


def test_a_weight_range_of_ones_own(invoke, tmp_path):
    """The same rows and rate diverge in a narrow range and not in a wide one, whose results are coarser."""
    seed = int(np.random.default_rng().integers(1000))
    print(f"seed {seed}")
    options = ["helr", "--device", "cpu", "--params", LEVELED, "--iterations", "2", "--seed", str(seed)]
    code, out, err = invoke(*options, "--weight-range", "0.05")
    assert code != 0 and "--weight-range" in err and "the range of weights, 0.05" in err
    assert "evaluation keys" not in out
    bounds = []
    for size in (8, 512):
        path = tmp_path / f"{size}.json"
        code, out, err = invoke(*options, "--weight-range", str(size), "--json", str(path))
        assert code == 0, out + err
        bounds.append(records.read(path)[0][0].bound)
    assert bounds[1] > 8 * bounds[0]
    code, _, err = invoke(*options, "--weight-range", "-1")
    assert code == 2 and "weight_range must be positive" in err


@pytest.mark.parametrize("name", ["helr", "sort"])
def test_a_command_has_the_options_of_all_workloads(name):
    """Before its own, each once, with the defaults of `Common`."""
    command = typer.main.get_command(workload.app).commands[name]
    shared = dataclasses.fields(workload_options.Common)
    names = [parameter.name for parameter in command.params]
    assert names[: len(shared)] == [field.name for field in shared] and len(set(names)) == len(names)
    assert "common" not in names and "json" in names
    for parameter, field in zip(command.params, shared, strict=False):
        assert parameter.default == field.default and parameter.help, field.name


@pytest.mark.parametrize("name", ["x.foo", "x"])
def test_a_figure_of_another_kind_is_refused_before_the_run(invoke, tmp_path, name):
    needs("demo", "matplotlib")
    code, out, err = invoke("sort", "--device", "cpu", "--plot", str(tmp_path / name))
    assert code != 0 and "expected one of .png, .pdf, .svg" in err and "server" not in out


def test_training_and_its_record(invoke, device, tmp_path):
    needs("demo", "matplotlib")
    seed = int(np.random.default_rng().integers(1000))
    print(f"seed {seed}")
    code, out, err = invoke(
        "helr", "--device", device, "--params", LEVELED, "--iterations", "2", "--seed", str(seed), "--energy",
        "--json", str(tmp_path / "h.json"), "--plot", str(tmp_path / "h.png"),
    )  # fmt: skip
    assert code == 0, out + err
    assert "INSECURE" in out and "a toy set, so that" not in out
    (result,), where = records.read(tmp_path / "h.json")
    assert where["command"].startswith("crenel workload helr ") and where["device"].startswith(device)
    assert result.correct and result.insecure and result.params == LEVELED and result.seed == seed
    assert [i.iteration for i in result.iterations] == [1, 2]
    last = result.iterations[-1]
    assert last.error == result.error <= result.bound and last.accuracy == pytest.approx(
        number("accuracy, encrypted", out) / 100, abs=1e-4
    )
    # The accuracies are those of the recursion, not of anything that the run says of itself.
    table = data.load_table(seed=seed)
    model = regression.LogisticRegression(toy(LEVELED), features=30, batch=result.batch, seed=seed)
    clear = model.simulate(table.X_train, table.y_train, 2).weights[-1]
    scores = table.X_test @ clear[1:] + clear[0]
    assert last.clear_accuracy == np.mean((scores > 0) == (table.y_test > 0))
    assert last.clear_loss == pytest.approx(
        np.mean(np.log1p(np.exp(-table.y_train * (table.X_train @ clear[1:] + clear[0]))))
    )
    assert {s.name for s in result.stages} >= {"gradient", "row sums"} and result.stages_timed
    assert sum(s.seconds for s in result.stages) <= result.total_s * 1.05
    assert result.memory.library_peak >= result.memory.keys > 0 and result.wire_bytes > 0
    if device == "cpu":
        assert result.energy.joules is None and "no counter of energy is read on cpu" in out
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")


def test_a_stopped_run_goes_on(invoke, tmp_path):
    options = [
        "helr",
        "--device",
        "cpu",
        "--params",
        LEVELED,
        "--no-stages",
        "--checkpoint",
        str(tmp_path / "run"),
    ]
    assert invoke(*options, "--iterations", "1", "--json", str(tmp_path / "1.json"))[0] == 0
    # Without the rows that were sent, nothing could go on: they and the key are those of before.
    before = {f.name: f.read_bytes() for f in (tmp_path / "run").iterdir()}
    code, out, _ = invoke(*options, "--iterations", "2", "--json", str(tmp_path / "2.json"))
    assert code == 0 and "of what an earlier run had left" in out
    (second,), _ = records.read(tmp_path / "2.json")
    assert second.resumed and second.correct and not second.stages and not second.stages_timed
    for name, content in before.items():
        assert (tmp_path / "run" / name).read_bytes() == content or name == "checkpoint.crn", name
    code, _, err = invoke(*options, "--iterations", "2", "--rate", "2")
    assert code == 2 and "is of a run with model" in err
    code, _, err = invoke(*options, "--iterations", "2", "--seed", "5")
    assert code == 2 and "StateError" in err


def test_a_wrong_result_is_a_failure(invoke, monkeypatch):
    honest = regression.LogisticRegression.decrypt

    def wrong(self, client, state):
        return honest(self, client, state) + 1e-2

    monkeypatch.setattr(regression.LogisticRegression, "decrypt", wrong)
    code, out, _ = invoke("helr", "--device", "cpu", "--params", LEVELED, "--iterations", "1")
    assert code == 1 and "EXCEEDS" in out


def test_own_data(invoke, tmp_path):
    seed = int(np.random.default_rng().integers(2**32))
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 3))
    y = np.where(x @ [1.0, -2.0, 0.5] > 0, "yes", "no")
    path = tmp_path / "t.csv"
    path.write_text(
        "a,b,c,said\n"
        + "\n".join(",".join(map(repr, r.tolist())) + f",{t}" for r, t in zip(x, y, strict=True))
    )
    options = ["helr", "--device", "cpu", "--params", LEVELED, "--iterations", "2", "--data", str(path)]
    code, out, err = invoke(*options, "--label", "said", "--batch", "64")
    assert code == 0, err
    assert number("accuracy, encrypted", out) == number("accuracy, clear", out)
    assert "2 iterations of 64 rows, 3 features" in out and "of 50 test rows" in out
    code, _, err = invoke(*options, "--label", "unsaid")
    assert code == 2 and "a, b, c, said" in err


def test_recorded_runs_say_so(invoke, tmp_path):
    found = []
    for number, options in enumerate((["--graph"], ["--warm", "--no-stages"])):
        path = tmp_path / f"{number}.json"
        code, out, err = invoke("sort", "--device", "cpu", "--count", "4", *options, "--json", str(path))
        assert code == 0, out + err
        (result,), _ = records.read(path)
        found.append(result.graph)
    assert found == [True, False]


def test_refused_before_any_work(invoke, tmp_path, monkeypatch):
    there = tmp_path / "there.json"
    there.write_text("{}")
    monkeypatch.setattr(crenel, "Device", None)  # whatever opens a device fails otherwise
    cases = [
        (["--json", str(there)], "name a new file"),
        (["--json", str(tmp_path / "no" / "a.json")], "there is no folder"),
        (["--plot", str(tmp_path / "no" / "a.png")], "there is no folder"),
        (["--data", str(tmp_path / "none.csv")], "none.csv"),
        (["--digits", "3"], "two digits"),
        (["--digits", "3,8"], "--digits 3,8 without --data, expected both"),
        (["--label", "ill"], "--label ill without --data, expected both"),
        (["--device", "abacus"], "abacus"),
        (["--params", "boot41"], "boot41"),
    ]
    for arguments, text in cases:
        code, _, err = invoke("helr", *arguments)
        assert code == 2 and text in err, (arguments, err)
    assert json.loads(there.read_text()) == {}


def test_a_column_of_no_file_is_refused(invoke):
    code, out, err = invoke("sort", "--device", "cpu", "--column", "v")
    assert code == 2 and "--column v without --data, expected both" in err and not out


def test_suitable_batches():
    assert training.suitable_batch(1024, 427) == 256
    assert training.suitable_batch(32768, 11982) == 1024
    assert training.suitable_batch(1024, 100) == 64
    assert training.suitable_batch(8, 1) == 1


def test_sorting_and_its_record(invoke, tmp_path):
    pytest.importorskip("crenel.workloads.sorting.measure")
    values = np.random.default_rng().uniform(-3, 5, 7)
    np.save(tmp_path / "v.npy", values)
    code, out, err = invoke(
        "sort", "--device", "cpu", "--data", str(tmp_path / "v.npy"), "--descending",
        "--comparator", "7,7,15", "--radix", "2", "--low", "-4", "--high", "6",
        "--json", str(tmp_path / "s.json"), "--checkpoint", str(tmp_path / "run"),
    )  # fmt: skip
    assert code == 0, out + err
    (result,), _ = records.read(tmp_path / "s.json")
    assert (
        result.correct and result.descending and result.count == 7 and result.steps == len(result.rounds) == 6
    )
    np.testing.assert_allclose(result.expected, np.sort(values)[::-1])
    np.testing.assert_allclose(result.found, result.expected, atol=10 * result.bound)
    assert result.error == pytest.approx(np.abs(np.array(result.found) - result.expected).max() / 10)
    assert max(r.error for r in result.rounds) < 2**-10
    assert number("precision", out) == pytest.approx(result.error_bits, abs=0.06)
    code, _, err = invoke("sort", "--device", "cpu", "--count", "2", "--checkpoint", str(tmp_path / "run"))
    assert code == 2 and "StateError" in err


@pytest.mark.parametrize("name", ["p", "p.xyz", "folder.png"])
def test_a_figure_that_cannot_be_drawn_is_refused_before_the_work(invoke, tmp_path, name):
    needs("demo", "matplotlib")
    (tmp_path / "folder.png").mkdir()
    code, out, err = invoke("sort", "--plot", str(tmp_path / name))
    assert code == 2 and "ParameterError: --plot" in err and "tables" not in out


@pytest.mark.parametrize("arguments", [("helr", "--seed", "-1"), ("sort", "--seed", "-1")])
def test_seeds_below_zero(invoke, arguments):
    code, _, err = invoke(*arguments)
    assert code == 2 and re.search(NEGATIVE_SEED, err)
