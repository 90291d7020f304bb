"""The command line, in this process and through python -m."""

import json
import os
import subprocess
import sys

import pytest
from needed import needs

import crenel
from crenel.cli import main
from crenel.cli.bench_energy import EnergyMeter
from crenel.workloads import energy

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
        (["demo", "--plot", "plot.xyz"], "plot.xyz ends in '.xyz', expected one of .png, .pdf, .svg"),
        (["bench", "ablation", "--plot", "plot.xyz"], "plot.xyz ends in '.xyz', expected one of .png"),
        (["bench", "ablation", "--plot", "no-such-folder/plot.png"], "expected a new file in a folder"),
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
        (["bench", "boot", "--values", "even"], "expected unknown, centred, non_negative or constant"),
        (["bench", "boot", "--kinds", "--runs", "0"], "--kinds with --runs 0"),
        (["bench", "boot", "--no-latency", "--runs", "0"], "--no-latency with --runs 0"),
        (
            ["bench", "boot", "toy-boot40", "--device", "cpu", "--energy", "9"],
            "no counter of energy is read on cpu",
        ),
    ],
)
def test_errors_are_one_line_and_status_2(run, arguments, part):
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith("crenel: ") and err.count("\n") == 1 and part in err


def test_a_figure_that_is_there_is_kept(run, tmp_path):
    file = tmp_path / "plot.png"
    file.write_text("mine")
    for command in (["demo"], ["bench", "ablation"], ["workload", "helr"], ["workload", "sort"]):
        code, _, err = run(*command, "--plot", str(file))
        assert code == 2 and f"--plot: {file} exists, expected a new file" in err
    assert file.read_text() == "mine"


@pytest.mark.parametrize("number", ["99999999999999999999", "-1"])
@pytest.mark.parametrize("option", ["--log-n", "--scale-bits", "--depth", "--alpha"])
def test_numbers_of_a_generated_set(run, option, number):
    given = {"--log-n": "13", "--scale-bits": "40", "--depth": "3", "--alpha": "0"} | {option: number}
    code, _, err = run("params", "generate", *(word for pair in given.items() for word in pair))
    assert code == 2
    assert err == f"crenel: ParameterError: {option} is {number}, expected 0 to 2^32 - 1\n"


@pytest.mark.parametrize(
    "words",
    [
        ["demo", "tfhe", "--blocks"],
        ["bench", "bridge", "--slots"],
        ["bench", "pool", "--devices", "cpu", "--each"],
        ["bench", "pool", "--devices", "cpu", "--size"],
        ["workload", "mlp", "--batch"],
        ["workload", "bert-tiny", "--images"],
        ["workload", "bert-tiny", "--tokens"],
        ["workload", "minilm", "--tokens"],
        ["workload", "minilm", "--length"],
    ],
    ids=" ".join,
)
def test_numbers_beyond_any_machine_are_refused(run, words):
    code, _, err = run(*words, "99999999999999999999")
    assert code == 2 and words[-1] in err and "Traceback" not in err


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


FEW = ("--minimal", "--slots", "64", "--batch", "2", "--kinds", "--values", "centred")


def test_bench_boot_of_errors_alone(run, tmp_path):
    file = tmp_path / "boot.json"
    start = ("bench", "boot", "toy-boot40", "--device", "cpu", "--slots", "64", "--minimal", "--stc-first")
    code, _, err = run(*start, "--no-latency", "--kinds", "--runs", "1", "--json", str(file))
    assert code == 0, err
    data = json.loads(file.read_text())
    assert data["results"] == [] and "memory" not in data and data["precision"]["runs"] == 1
    of = data["configuration"]
    assert (of["params"], of["order"], of["keys"]) == ("toy-boot40", "slot_to_coeff_first", "minimal")
    assert of["ratio_chosen"] and of["values"] == "unknown" and of["input_level"] == 3
    for name, kind in data["precision_by_message"].items():
        assert kind["worst_error_log2"] < kind["expected_max_log2"] + 3, name


def test_bench_boot_refuses_options_that_would_be_ignored(run):
    """Each mode with each option that it leaves out, before or behind it; both are named."""
    values = {
        "--sizes": "64", "--tenants": "2", "--resident": "100", "--beside": "cpu", "--energy": "9",
        "--exchange": "events", "--runs": "1", "--slots": "64", "--json": "new.json",
    }  # fmt: skip
    timed = {"--tenants", "--resident", "--beside", "--energy"}
    left_out = {
        "--memory": {*timed, "--sizes", "--kinds", "--no-latency", "--once", "--runs", "--quick"}
        - {"--beside"},
        "--once": {*timed, "--sizes", "--kinds", "--no-latency", "--runs", "--quick", "--json"},
        "--sizes": {*timed, "--slots", "--runs", "--kinds", "--no-latency"},
        "--no-latency": {*timed, "--quick"},
    }
    pairs = [(mode, other) for mode, others in left_out.items() for other in sorted(others)]
    for number, pair in enumerate(pairs):
        words = [[word for word in (option, values.get(option)) if word] for option in pair]
        first, second = words if number % 2 else reversed(words)
        code, out, err = run("bench", "boot", "toy-boot40", "--device", "cpu", *first, *second)
        assert code == 2 and "{} with {}, which it leaves out".format(*pair) in err and "keys" not in out, (
            pair
        )
    words = ["--memory", "--beside", "cpu", "--exchange", "events"]
    code, _, err = run("bench", "boot", "toy-boot40", "--device", "cpu", *words)
    assert code == 2 and "--memory with --exchange" in err
    code, _, err = run("bench", "boot", "toy-boot40", "--device", "cpu", "--exchange", "events")
    assert code == 2 and "--exchange without --beside" in err


@pytest.mark.parametrize("extra", [(), FEW])
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
    # The library's choice: of what is unknown the largest that q0 allows.
    assert row["ratio_chosen"] and (
        row["message_ratio"] in range(1, 11) if extra else row["message_ratio"] == 10
    )
    assert (row["values"], row["order"]) == ("centred" if extra else "unknown", "coeff_to_slot_first")
    assert row["q1_us"] <= row["latency_us"] <= row["q3_us"] and row["groups"] >= 3
    expected = row["latency_us"] * 1e3 / (batch * slots * (row["output_level"] - row["input_level"]))
    assert row["slot_level_ns"] == pytest.approx(expected, rel=1e-4)
    memory, precision = data["memory"], data["precision"]
    assert memory["workspace_bytes_peak"] > 0 and memory["key_bytes"] > 0 and "driver_bytes" in memory
    assert precision["runs"] == 2 and precision["failures"] == 0
    assert ("precision_by_message" in data) == bool(extra)
    assert all(kind["runs"] == 2 for kind in data.get("precision_by_message", {}).values())
    assert "energy" not in data


FAKE_POWER = """#!/bin/sh
case "$*" in
  *loop-ms*) while :; do echo "400.0, 1000, {0}"; sleep 0.02; done;;
  *) echo "400.0, 1000, {0}";;
esac
"""


def test_bench_boot_counts_energy(run, tmp_path, monkeypatch):
    """By the samples of a nvidia-smi; a processor passes for a GPU here."""
    monkeypatch.setattr(energy, "COUNTED", frozenset({"cpu"}))
    program = tmp_path / "nvidia-smi"
    program.write_text(FAKE_POWER.format(crenel.Device("cpu").description))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    file = tmp_path / "boot.json"
    start = ("bench", "boot", "toy-boot40", "--device", "cpu", "--quick", "--runs", "0", "--slots", "64")
    code, out, err = run(*start, "--ratio", "5", "--energy", "150", "--json", str(file))
    assert code == 0, err
    data = json.loads(file.read_text())
    found = data["energy"]
    assert found["bootstraps"] == 150 and found["samples"] >= 10 and "whole board" in found["note"]
    assert found["mean_watts"] == pytest.approx(400, rel=1e-3)
    assert found["joules"] == pytest.approx(400 * found["seconds"], rel=0.05)
    assert found["joules_per_bootstrap"] == pytest.approx(found["joules"] / 150, rel=1e-4)
    row = data["results"][0]
    assert (row["message_ratio"], row["ratio_chosen"]) == (5, False)
    # Too few samples are no measurement.
    meter = EnergyMeter()
    few = meter.measure(crenel.Device("cpu"), 2, lambda: None)
    assert few["joules"] is None and few["joules_per_bootstrap"] is None and "more repetitions" in few["note"]


def test_energy_is_refused_before_keys_are_made(run, tmp_path, monkeypatch):
    monkeypatch.setattr(energy, "COUNTED", frozenset({"cpu"}))
    start = ("bench", "boot", "toy-boot40", "--device", "cpu", "--energy", "5")
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = run(*start)
    assert code == 2 and "nvidia-smi is not installed" in err and "keys" not in out
    program = tmp_path / "nvidia-smi"
    program.write_text(FAKE_POWER.format("Another Card"))
    program.chmod(0o755)
    code, out, err = run(*start)
    assert code == 2 and "it calls this one Another Card" in err and "UnsupportedError" in err


@pytest.mark.parametrize("devices", [("cpu", "cpu+cpu"), ("cuda:dry:0", "cuda:dry:0+1+2")])
def test_bench_boot_counts_memory_by_part(run, tmp_path, devices):
    """Each part has its share of the keys, to within a limb; by the driver's count where there is one."""
    try:
        parts = len(crenel.Device(devices[1]).parts)
    except crenel.DeviceError as error:
        pytest.skip(str(error))
    path = tmp_path / "memory.json"
    words = ("--params", "toy-boot40", "--device", devices[0], "--beside", devices[1], "--memory")
    code, out, err = run("bench", "boot", *words, "--json", str(path))
    assert code == 0, err
    data = json.loads(path.read_text())
    assert (data["suite"], data["results"], data["params"]) == ("boot_memory", [], "toy-boot40")
    one, several = (found["parts"] for found in data["devices"])
    assert (len(one), len(several)) == (1, parts)
    steps = ["before", "context", "keys", "plaintexts", "bootstraps"]
    assert all(list(part["steps"]) == steps for part in (*one, *several))

    def keys(part, count):
        return part["steps"]["keys"][count] - part["steps"]["context"][count]

    for count in ("in_use", "driver"):
        if several[0]["steps"]["keys"][count] is None:  # host memory: nobody counts
            assert devices[0] == "cpu" and count == "driver"
            continue
        whole = keys(one[0], count)
        assert sum(keys(part, count) for part in several) == pytest.approx(whole, rel=0.05)
        for part in several:
            assert keys(part, count) == pytest.approx(whole / parts, rel=0.2)
            assert part["peak"] >= part["steps"]["plaintexts"]["in_use"]


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
