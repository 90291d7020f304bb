"""crenel demo tfhe, crenel bench tfhe, crenel params on TFHE sets."""

import json
import re
from functools import partial

import pytest
from conftest import device_names
from tfhe_world import open_tfhe, quiet

import crenel
from crenel import tfhe
from crenel.cli import main
from crenel.workloads.ciphers import aes, present
from crenel.workloads.ciphers import run as ciphers


@pytest.fixture(params=[name for name in device_names() if name != "ref"])
def device(request) -> str:
    """Not ref, which takes minutes for a cipher."""
    return request.param


@pytest.fixture
def toy(device):
    """The demo with a small set, whose q is large enough for fresh ciphertexts."""
    params = tfhe.preset("toy-gadget", allow_insecure=True)
    open_tfhe(params, device)  # or skips
    return lambda **options: quiet(partial(ciphers.run, device=device, params=params, **options))


@pytest.mark.parametrize(("cipher", "name"), [("aes", "AES-128"), ("present", "PRESENT-80")])
def test_whole_ciphers(toy, capsys, device, cipher, name):
    assert toy(cipher=cipher) == 0
    out = capsys.readouterr().out
    vector = ciphers.CIPHERS[cipher].TEST_CIPHERTEXT.hex()
    assert re.search(rf"result +{vector}", out) and f"{vector}: agrees" in out
    assert re.search(rf"cipher +{name}\n", out) and "the test vector" in out
    assert re.search(r"gates +[\d,]+ in [\d.]+ s: [\d,]+ gates/s", out)
    assert "server: 100 %" in out and "REDUCED" not in out
    assert re.search(rf"computed on +{device}", out)


def test_fewer_rounds_and_more_blocks(toy, capsys):
    assert toy(cipher="present", rounds=2, blocks=3) == 0
    out = capsys.readouterr().out
    assert "PRESENT-80 REDUCED to 2 of 31 rounds" in out and "the same rounds in the clear" in out


def test_a_wrong_result_is_noticed(toy, capsys, monkeypatch):
    monkeypatch.setattr(present, "TEST_CIPHERTEXT", bytes(8))
    monkeypatch.setattr(present, "ROUNDS", 1)
    assert toy(cipher="present") == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_choice():
    def choose(seconds, is_gpu=False, **options):
        return ciphers.choose(options.pop("cipher", "auto"), options.pop("blocks", 1), None, seconds, is_gpu)

    fast = choose(100.0 / aes.gate_count())
    assert fast.cipher is aes and fast.complete
    slow = choose(0.01)
    assert slow.cipher is present and slow.complete and "AES-128 would take about 306 s" in slow.reason
    slower = choose(0.1)
    assert slower.cipher is present and not slower.complete and "REDUCED" in slower.name
    assert 0.1 * slower.gates <= ciphers.BUDGET < 0.1 * present.gate_count(1, slower.rounds + 1)
    assert choose(1e9).rounds == 1
    assert choose(0.1, is_gpu=True).cipher is aes
    assert choose(0.1, cipher="aes").complete
    for options in ({"cipher": "present", "rounds": 32}, {"cipher": "aes", "rounds": 0}, {"rounds": 3}):
        with pytest.raises(tfhe.ParameterError):
            ciphers.choose(options.get("cipher", "auto"), 1, options["rounds"], 0.001, False)


@pytest.fixture
def run(capfd):
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_command(run):
    code, out, _ = run("demo", "tfhe", "--device", "cpu", "--cipher", "present", "--rounds", "1")
    assert code == 0 and "bool128: a gate fails with probability 2^-1" in out and "agrees" in out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["demo", "tfhe", "--device", "abacus"], "abacus"),
        (["demo", "tfhe", "--cipher", "des"], "des"),
        (["demo", "tfhe", "--blocks", "0"], "blocks"),
        (["bench", "tfhe", "--set", "M33"], "M33"),
        (["bench", "tfhe", "--device", "abacus"], "abacus"),
        (["bench", "tfhe", "--batch", "-1"], "batch"),
        (["bench", "tfhe", "--slots", "17", "--set", "toy-raising"], "17"),
        (["bench", "tfhe", "--arithmetic", "approx", "--set", "G4"], "G4"),
        (["bench", "tfhe", "--arithmetic", "split", "--set", "STD128"], "STD128"),
        (["bench", "tfhe", "--arithmetic", "quick", "--set", "G4"], "or 'split', got 'quick'"),
        (["bench", "tfhe", "--json", "no-such-folder/tfhe.json"], "no-such-folder"),
    ],
)
def test_errors_are_one_line_and_status_2(run, arguments, part):
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith("crenel: ") and err.count("\n") == 1 and part in err


@pytest.mark.parametrize(("name", "operation"), [("toy-gadget", "nand"), ("toy-lut4", "lut")])
def test_bench(run, tmp_path, name, operation):
    path = tmp_path / "tfhe.json"
    arguments = ("--set", name, "--device", "cpu", "--batch", "40", "--quick", "--json", str(path))
    code, out, err = run("bench", "tfhe", *arguments)
    assert code == 0, err
    for part in ("0.0 bits of security", "median us", "bootstraps/s", "wire_bytes"):
        assert part in out
    data = json.loads(path.read_text())
    assert (data["kind"], data["suite"]) == ("crenel-bench", "tfhe")
    assert {"date", "commit", "compiler", "device_description"} <= set(data["provenance"])
    whole, single = data["results"]
    assert (whole["operation"], whole["mode"], whole["size"]) == (operation, "resident", 40)
    assert (single["mode"], single["size"]) == ("latency", 1)
    for row in data["results"]:
        assert row["correct"] and row["failures"] == 0 and len(row["digest"]) == 64
        assert row["bootstraps_per_s"] == pytest.approx(1e6 * row["size"] / row["latency_us"], rel=1e-4)


def test_bench_of_packed_messages_in_both_arithmetics(run):
    for arithmetic in ("exact", "approx"):
        arguments = ("--set", "toy-raising-binary", "--device", "cpu", "--batch", "8", "--quick")
        code, out, err = run("bench", "tfhe", *arguments, "--slots", "2", "--arithmetic", arithmetic)
        assert code in (0, 1), err  # one fresh bit in many thousands of this set is wrong
        assert f"2 a mask, {arithmetic}" in out


def test_bench_of_digits_in_two_pieces(run):
    arguments = ("--set", "toy-gadget2", "--device", "cpu", "--batch", "8", "--quick")
    code, out, err = run("bench", "tfhe", *arguments, "--arithmetic", "split")
    assert code == 0, err
    assert "1 a mask, split" in out


def test_params_commands(run):
    code, out, _ = run("params", "list")
    assert code == 0 and "TFHE" in out
    for name in tfhe.preset_names():
        assert re.search(rf"^{re.escape(name)} ", out, re.MULTILINE)
    code, out, _ = run("params", "show", "m3")
    assert code == 0 and "BELOW THE NORM" in out and "n = 512" in out and "raising 2^18 to 2^41" in out
    code, out, _ = run("params", "explain", "bool128-classic")
    assert code == 0 and "128.8 bits" in out and "BELOW" not in out and "656 times" in out
    for name in tfhe.preset_names():
        assert run("params", "explain", name)[0] == 0
    assert crenel.tfhe is tfhe


@pytest.mark.parametrize("name, norm2", [("toy-lut4", 30), ("lut4-128", 66), ("toy-raising", 2)])
def test_failures_are_checked_at_the_sums_of_each_set(run, tmp_path, name, norm2):
    file = tmp_path / "checked.json"
    code, _, _ = run(
        *("bench", "tfhe", "--set", name, "--device", "cpu", "--batch", "16"),
        *("--once", "--verify", "40", "--json", str(file)),
    )
    found = json.loads(file.read_text(encoding="utf-8"))
    assert code == 0 and found["results"] == []  # --once times nothing, and checks all the same
    assert found["verified"]["norm2"] == norm2 and found["verified"]["operations"] >= 40
    assert found["verified"]["failures"] == 0
