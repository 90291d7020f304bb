"""Records that "cuda:dry" made are of today's code: launches, bytes and all that follows from them."""

import copy
import dataclasses
import importlib.util
import json
import random
import sys
from pathlib import Path

import pytest

import crenel
from crenel import boot_levels, ckks, growth
from crenel.reproduce.builders import common
from crenel.reproduce.results import Results

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
HINT = "tools/gen_dry.py writes it"

spec = importlib.util.spec_from_file_location("gen_dry", ROOT / "tools/gen_dry.py")
gen_dry = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gen_dry)
QUICK = gen_dry.records()


@pytest.fixture(scope="module")
def device():
    try:
        return crenel.Device(gen_dry.DEVICE)
    except crenel.DeviceError as error:
        assert "built without CUDA" in str(error)
        pytest.skip(str(error))


@pytest.mark.parametrize("name", QUICK)
def test_what_a_record_says_is_so_today(device, name):
    new = gen_dry.made(gen_dry.words_of(name, QUICK[name]))
    assert not gen_dry.differences(QUICK[name], new), HINT


def test_which_records_are_compared():
    """Accounts, ablations, levels and growth; and no page has figures of an account that is not compared."""
    every = gen_dry.records(every=True)
    assert {"traffic-boot40-dry.json", "traffic-boot35-h1024-dry.json"} <= QUICK.keys()
    assert {"ablation-boot40-dry.json", "levels-boot40-dry.json", "growth-h200-dry.json"} <= every.keys()
    results = Results([RESULTS])
    accounts = results.of_kind("crenel-traffic")
    for _, data in accounts:
        found = common.traffic(results, data["params"], data["operation"], data["level"])
        assert found is not None and found[0] in QUICK
    for name, document in every.items():
        assert f"bench/results/{name}" in gen_dry.words_of(name, document)


@pytest.fixture
def chosen():
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    return random.Random(seed)


def levels():
    return [n for n, d in gen_dry.records(every=True).items() if d.get("suite") == "levels"]


@pytest.mark.parametrize("name", levels())
def test_a_bootstrap_of_the_records_by_levels(device, chosen, name):
    """One row of each: all of them take a minute."""
    document = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    row = chosen.choice(document["results"])
    words = gen_dry.words_of(name, document)
    values = words[words.index("--values") + 1] if "--values" in words else "unknown"
    params = ckks.preset(document["params"])
    plan = boot_levels.Plan(
        slots=[0 if row["slots"] == params.slots else row["slots"]],
        targets=[row["target"]], orders=[row["order"]], short=[row["short_raise"]],
        messages=[row["message"]], symmetry=[row["real_symmetry"]], values=values,
    )  # fmt: skip
    (new,) = boot_levels.measure(params, device, plan, lambda text: None)
    assert not gen_dry.differences(row, json.loads(json.dumps(new)), "row"), HINT


def test_a_point_of_the_record_of_growth(device, chosen):
    """One place of each axis."""
    name = "growth-h200-dry.json"
    rows = json.loads((RESULTS / name).read_text(encoding="utf-8"))["results"]
    plan = growth.Plan()
    for axis in dict.fromkeys(row["axis"] for row in rows):
        x = chosen.choice([row["x"] for row in rows if row["axis"] == axis])
        small = {"log_n": {"log_n": (x,)}, "limbs": {}, "batch": {"batches": (x,)},
                 "slots": {"log_slots": (x.bit_length() - 1,)}}[axis]  # fmt: skip
        made = growth.measure(device, [axis], dataclasses.replace(plan, **small)).rows
        old = [row for row in rows if (row["axis"], row["x"]) == (axis, x)]
        new = [json.loads(json.dumps(row)) for row in made if row["x"] == x]
        assert old and not gen_dry.differences(old, new, axis), HINT


def test_a_stale_record_is_told_and_written_again(device, monkeypatch, tmp_path, capsys):
    """One launch more in the smallest record, then the right one."""
    name = "traffic-boot40-rescale-11-dry.json"
    wrong = copy.deepcopy(QUICK[name])
    wrong["total"]["launches"] += 1
    file = tmp_path / name
    file.write_text(json.dumps(wrong))
    monkeypatch.setattr(gen_dry, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["gen_dry.py", "--check"])
    assert gen_dry.main() == 1
    launches = QUICK[name]["total"]["launches"]
    told = f"{name} is not of today's code (/total/launches: {launches + 1}, now {launches}"
    assert told in capsys.readouterr().out
    assert json.loads(file.read_text()) == wrong
    monkeypatch.setattr(sys, "argv", ["gen_dry.py"])
    assert gen_dry.main() == 0
    new = json.loads(file.read_text())
    assert not gen_dry.differences(QUICK[name], new) and gen_dry.differences(wrong, new)
    assert new["provenance"]["command"] == QUICK[name]["provenance"]["command"]
    before = file.read_bytes()
    assert gen_dry.main() == 0 and file.read_bytes() == before  # what is right stays as it is
    monkeypatch.setattr(sys, "argv", ["gen_dry.py", "none.json"])
    with pytest.raises(SystemExit, match=f"none.json: expected some of {name}"):
        gen_dry.main()


def test_differences():
    old = {"seed": 1, "provenance": {"date": 1}, "a": [{"launches": 3, "us": 1.0}], "b": None}
    assert gen_dry.differences(old, {**old, "seed": 2, "provenance": {}}) == []
    assert gen_dry.differences(old, {**old, "a": [{"launches": 3, "us": 1.0 + 1e-12}]}) == []
    for change, told in (
        ({"a": [{"launches": 4, "us": 1.0}]}, "/a/0/launches: 3, now 4"),
        ({"a": [{"launches": 3, "us": 1.01}]}, "/a/0/us: 1.0, now 1.01"),
        ({"a": []}, "/a: "),
        ({"a": [{"us": 1.0}]}, "/a/0/launches: only in one"),
        ({"b": 0}, "/b: None, now 0"),
        ({"c": 1}, "/c: only in one"),
    ):
        (line,) = gen_dry.differences(old, {**old, **change})
        assert line.startswith(told)
    assert gen_dry.differences({"x": {"seed": 1}}, {"x": {"seed": 2}}) == ["/x/seed: 1, now 2"]
