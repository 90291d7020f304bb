"""The command line, in this process and through python -m."""

import json
import subprocess
import sys

import pytest
from needed import needs

import crenel
from crenel.cli import main

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    tomllib = needs("test", "tomli")


@pytest.fixture
def run(capfd):  # benchmarks print from C++
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


def test_version(run):
    assert run("version") == (0, crenel.__version__ + "\n", "")


def test_devices(run):
    code, out, _ = run("devices")
    assert code == 0 and "ref" in out and "cpu" in out
    if reason := crenel.cuda_unavailable_reason():
        assert reason in out


def test_params_list(run):
    code, out, _ = run("params", "list")
    assert code == 0
    for name in crenel.ckks.preset_names():
        assert name in out
    assert "INSECURE" in out


@pytest.mark.parametrize("name", ["boot40", "leveled-n15-s40", "toy-boot40"])
def test_params_show_and_explain(run, name):
    code, out, err = run("params", "show", name)
    assert code == 0 and err == ""
    assert "log PQ" in out and "security" in out and "log rescale ratio" in out
    code, out, _ = run("params", "explain", name)
    assert code == 0 and "Levels:" in out


def test_params_generate(run):
    code, out, _ = run("params", "generate", "--log-n", "14", "--scale-bits", "40", "--depth", "4")
    assert code == 0 and "levels        4 to consume" in out


def test_generated_toml_is_the_generated_set(run):
    code, out, _ = run("params", "generate", "--log-n", "13", "--scale-bits", "30", "--depth", "3", "--toml")
    fields = tomllib.loads(out)
    expected = crenel.ckks.Params(log_n=13, scale_bits=30, depth=3)
    assert code == 0 and fields["name"] == "leveled-n13-s30-d3"
    keys = ("log_n", "log_scale", "main", "terminal", "auxiliary", "normal_top_level", "hamming_weight")
    given = {key: fields[key] for key in keys}
    levels = [tuple(level) for level in fields["levels"]]
    assert crenel.ckks.Params.from_primes(**given, levels=levels) == expected


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["params", "show", "boot41"], "boot41"),
        (["params", "generate", "--log-n", "12", "--scale-bits", "40", "--depth", "8"], "log PQ"),
        (["demo", "--device", "abacus"], "abacus"),
        (["demo", "--patients", "0"], "patients"),
        (["demo", "--plot", "no-such-folder/plot.png"], "no-such-folder"),
        (["bench", "boot", "--params", "leveled-n14-s40"], "bootstrapping needs"),
        (["bench", "boot", "--params", "boot41"], "boot41"),
        (["bench", "boot", "boot41"], "known:"),
        (["bench", "boot", "boot41"], "toy-boot40"),
        (["bench", "tfhe", "bool129"], "bool128"),
        (["bench", "boot", "toy-boot40", "toy-boot45"], "'toy-boot45'"),
        (["bench", "bot"], "boot, tfhe"),
        (["bench", "boot", "--device", "abacus"], "abacus"),
        (["bench", "boot", "--slots", "3", "--params", "toy-boot40"], "3"),
        (["bench", "boot", "--runs", "-1"], "runs"),
        (["bench", "boot", "--json", "no-such-folder/boot.json"], "no-such-folder"),
        (["bench", "boot", "--patience", "3"], "unknown option '--patience'"),
        (["bench", "boot", "--batch"], "--batch takes a value"),
    ],
)
def test_errors_are_one_line_and_status_2(run, arguments, part):
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith("crenel: ") and err.count("\n") == 1 and part in err


def test_debug_shows_the_error(run):
    for arguments in (["--debug", "params", "show", "x"], ["params", "show", "x", "--debug"]):
        with pytest.raises(crenel.ParameterError):
            run(*arguments)


def test_usage_errors(run):
    assert run("nonsense")[0] == 2
    assert run("params", "generate")[0] == 2


def test_bench_alone_says_where_the_others_are(run):
    code, _, err = run("bench")
    assert code == 2 and "./run bench" in err and "crenel bench boot" in err


@pytest.mark.parametrize("extra", [(), ("--minimal", "--slots", "64", "--batch", "2", "--kinds")])
def test_bench_boot(run, tmp_path, extra):
    path = tmp_path / "boot.json"
    arguments = ("--params", "toy-boot40", "--device", "cpu", "--quick", "--runs", "2", "--json", str(path))
    code, out, err = run("bench", "boot", *arguments, *extra)
    assert code == 0, err
    for part in ("INSECURE", "13 out", "median us", "mean_max_error_log2", "workspace_bytes_peak"):
        assert part in out
    data = json.loads(path.read_text())
    assert (data["kind"], data["format"], data["suite"]) == ("crenel-bench", 1, "boot")
    assert {"date", "commit", "compiler", "device_description", "host_processor"} <= set(data["provenance"])
    assert data["provenance"]["command"].startswith("crenel bench boot --params toy-boot40")
    (row,) = data["results"]
    assert row["correct"] and row["error_log2"] < row["bound_log2"] and len(row["digest"]) == 64
    slots, batch = (64, 2) if extra else (1024, 1)
    assert (row["keys"], row["slots"], row["batch"]) == ("minimal" if extra else "hoisted", slots, batch)
    assert row["q1_us"] <= row["latency_us"] <= row["q3_us"] and row["groups"] >= 3
    expected = row["latency_us"] * 1e3 / (batch * slots * (row["output_level"] - row["input_level"]))
    assert row["slot_level_ns"] == pytest.approx(expected, rel=1e-4)
    memory, precision = data["memory"], data["precision"]
    assert memory["workspace_bytes_peak"] > 0 and memory["key_bytes"] > 0 and "driver_bytes" in memory
    assert precision["runs"] == 2 and precision["failures"] == 0
    assert ("precision_by_message" in data) == bool(extra)


def test_bench_never_overwrites(run, tmp_path):
    path = tmp_path / "boot.json"
    path.write_text("precious")
    for suite in ("boot", "tfhe"):
        code, _, err = run("bench", suite, "--json", str(path))
        assert code == 2 and "there already" in err and err.count("\n") == 1
    assert path.read_text() == "precious"


@pytest.mark.parametrize("suite", ["boot", "tfhe"])
def test_bench_helps(run, suite):
    code, out, _ = run("bench", suite, "--help")
    assert code == 0 and f"crenel bench {suite} [" in out and "] [options]" in out and "--json" in out


def test_python_m(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "crenel", "params", "show", "x"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    done = subprocess.run([sys.executable, "-m", "crenel", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "demo" in done.stdout


def test_fhecore_asks_for_a_source_tree(run, tmp_path):
    code, _, err = run("fhecore", "syn", "--root", str(tmp_path))
    assert code == 2
    assert "UnsupportedError" in err
    assert str(tmp_path) in err
    assert "configs.toml" in err


def test_fhecore_hands_over_to_the_tree(run, tmp_path):
    (tmp_path / "fhecore").mkdir()
    (tmp_path / "fhecore" / "configs.toml").touch()
    script = tmp_path / "run"
    script.write_text('#!/bin/sh\necho "$@" > said\nexit 77\n')
    script.chmod(0o755)
    assert run("fhecore", "syn", "--root", str(tmp_path), "--out", "x.json")[0] == 77
    assert (tmp_path / "said").read_text() == "fhecore-syn --out x.json\n"
    assert run("fhecore", "test", "--root", str(tmp_path), "--full")[0] == 77
    assert (tmp_path / "said").read_text() == "fhecore-full\n"


def test_fhecore_takes_a_tree_that_it_finds_only_if_no_stranger_can_write_to_it(run, tmp_path, monkeypatch):
    (tmp_path / "fhecore").mkdir()
    (tmp_path / "fhecore" / "configs.toml").touch()
    script = tmp_path / "run"
    script.write_text("#!/bin/sh\nexit 77\n")
    monkeypatch.chdir(tmp_path / "fhecore")
    for mode, code in ((0o775, 77), (0o777, 2), (0o757, 2)):  # a umask of 002 leaves 775
        script.chmod(mode)
        assert run("fhecore", "syn")[0] == code, oct(mode)
    script.chmod(0o755)
    tmp_path.chmod(0o777)
    assert run("fhecore", "syn")[0] == 2
