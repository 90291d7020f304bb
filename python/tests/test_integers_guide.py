"""Table and picture of docs/guide/integers.md are what the circuits are; the benchmark of integers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import gen_integers  # noqa: E402
import gen_lookups  # noqa: E402
from tfhe_world import tfhe_world  # noqa: E402

import crenel  # noqa: E402
from crenel import _crenel  # noqa: E402
from crenel.cli import main  # noqa: E402
from crenel.tfhe import lookup_times  # noqa: E402


def test_the_page_is_up_to_date(capsys):
    assert gen_integers.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "norm2", "lean", "fast"),
    [
        ("add", 25, (32, 32), (109, 4)),
        ("add", 34, (32, 32), (100, 4)),
        ("add", 88, (32, 32), (97, 4)),
        ("less", 25, (32, 32), (43, 4)),
        ("less", 34, (21, 3), (21, 3)),
        ("equal", 34, (23, 3), (23, 3)),
    ],
)
def test_stated_costs(name, norm2, lean, fast):
    """Of 64 bits: a carry that ripples takes a bootstrap a block; more room in sums takes fewer."""
    for form, expected in (("lean", lean), ("fast", fast)):
        count, _, depth, rounds = _crenel.tfhe_integer_cost(name, 64, False, form, 1, 1, norm2)
        assert (count, depth) == expected
        assert (sum(rounds), len(rounds)) == expected
    with pytest.raises(crenel.errors.ParameterError, match="at least 25"):
        _crenel.tfhe_integer_cost(name, 64, False, "lean", 1, 1, 24.9)


def bootstraps(run) -> int:
    """How many an operation announces, which is what it runs: it counts them up to that number."""
    totals, last = [], []

    def note(done, total, what):
        totals.append(total)
        last.append(done)

    with crenel.progress(note):
        run()
    assert last[-1] == totals[-1] == max(totals)
    return totals[-1]


@pytest.mark.parametrize("dtype", ["uint6", "int6"])
@pytest.mark.parametrize("form", ["lean", "fast"])
def test_counts_are_what_runs(dtype, form):
    world = tfhe_world("toy-lut4", "cpu")
    ev = world.context.evaluator(world.keys, max_p_fail_log2=0, circuits=form)
    a, b = (world.client.encrypt([v], dtype=dtype) for v in (13, 3))
    many = world.client.encrypt([[v] for v in range(16)], dtype=dtype)
    count = world.client.encrypt([5], dtype="uint8")
    norm2 = world.context.params.max_norm2
    runs = {
        **{
            n: (lambda n=n: getattr(ev, n)(a, b))
            for n in ("add", "sub", "mul", "div", "divmod", "less", "equal")
        },
        **{n: (lambda n=n: getattr(ev, n)(a, b)) for n in ("max", "min_max", "bit_and")},
        **{f"{n}_overflow": (lambda n=n: getattr(ev, f"{n}_overflow")(a, b)) for n in ("add", "sub", "mul")},
        **{n: (lambda n=n: getattr(ev, n)(a)) for n in ("neg", "leading_zeros", "count_ones")},
        "mul by 10": lambda: ev.mul(a, 10),
        "shift by 1": lambda: ev.shift_left(a, 1),
        "shift": lambda: ev.shift_right(a, count),
        "rotate": lambda: ev.rotate_left(a, count),
        "sum of 16": lambda: ev.sum(many, 0),
        "dot of 16": lambda: ev.dot(many, many[::-1], 0),
    }
    if dtype[0] == "i":
        runs["abs"] = lambda: ev.abs(a)
    for name, run in runs.items():
        stated, _, _, _ = _crenel.tfhe_integer_cost(name, 6, dtype[0] == "i", form, 1, 1, norm2)
        assert bootstraps(run) == stated, name
    condition = ev.less(a, b)
    assert bootstraps(lambda: ev.select(condition, a, b)) == _crenel.tfhe_integer_cost("select", 6, False)[0]
    assert bootstraps(lambda: ev.select(condition, a, 0)) == 3  # one a block beside a public one


def test_times_of_look_ups(capsys):
    """lookups.json is what bench/results says; no batch takes less than a smaller one."""
    assert gen_lookups.main(["--check"]) == 0, capsys.readouterr().err
    gpu = lookup_times.measured()
    counts = [count for count, _ in gpu.batches]
    assert counts == sorted(counts)
    times = [gpu.seconds(n) for n in range(1, 2 * counts[-1], 97)]
    assert times == sorted(times) and times[0] > 0
    for count, seconds in gpu.batches:
        assert gpu.seconds(count) == seconds
    assert gpu.seconds(3 * counts[-1]) == pytest.approx(3 * gpu.batches[-1][1])
    assert [step for step, _ in gpu.steps] == [2, 4]
    for step, rows in gpu.steps:
        one = gpu.of_step(step)
        assert one.batches == rows and all(gpu.seconds(n) <= one.seconds(n) for n, _ in rows)
    with pytest.raises(KeyError):
        gpu.of_step(3)
    assert gpu.circuit([1, 4, 2], 5) == pytest.approx(sum(gpu.seconds(5 * n) for n in (1, 4, 2)))


ARGUMENTS = ["--set", "toy-lut4", "--allow-insecure", "--device", "cpu", "--repeats", "1"]


def test_bench_integers(tmp_path, capsys):
    file = tmp_path / "integers.json"
    chosen = [
        "--types",
        "uint4,uint128",
        "--operations",
        "add,divmod,less",
        "--size",
        "3",
        "--json",
        str(file),
    ]
    assert main(["bench", "integers", *ARGUMENTS, *chosen, "--limit", "0.4"]) == 0
    out = capsys.readouterr().out
    assert "uint128" in out and "exact" in out and "WRONG" not in out
    found = json.loads(file.read_text(encoding="utf-8"))
    assert (found["kind"], found["format"], found["suite"]) == ("crenel-bench", 1, "integers")
    assert found["provenance"]["device"] == "cpu"
    rows = {(r["name"], r["type"]): r for r in found["results"]}
    assert set(rows) == {(n, t) for n in ("add", "divmod", "less") for t in ("uint4", "uint128")}
    add = rows["add", "uint4"]
    assert (add["bootstraps"], add["depth"], add["correct"], add["size"]) == (2, 2, True, 3)
    assert add["latency_us"] >= add["amortised_us"] > 0
    # the GPU's prediction: rounds of the circuit that it would be given, by the batches that were measured
    gpu = lookup_times.measured()
    _, _, _, rounds = _crenel.tfhe_integer_cost(
        "add", 4, False, "automatic", 1, gpu.processors, found["max_norm2"]
    )
    assert set(add["gpu"]["by_step"]) == {"2", "4"} and found["step_table"] == []
    assert min(add["gpu"]["by_step"].values()) >= add["gpu"]["latency_us"] * (1 - 1e-9)
    assert add["gpu"]["latency_us"] == pytest.approx(1e6 * sum(map(gpu.seconds, rounds)))
    assert add["gpu"]["per_second"] > rows["divmod", "uint4"]["gpu"]["per_second"] > 0
    assert found["predicted_by"]["source"] == gpu.source
    assert "limit" in rows["divmod", "uint128"]["skipped"]


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        (["--operations", "root"], "root"),
        (["--types", "int8"], "unsigned"),
        (["--types", "uint7"], "even number"),
        (["--set", "lut5"], "lut5"),
        (["--circuits", "wide"], "lean, fast"),
        (["--steps", "two"], "integers by commas"),
        (["--steps", "2"], "groups"),
        (["--json", "README.md"], "exists"),
    ],
)
def test_bench_integers_refuses(extra, text, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["bench", "integers", *ARGUMENTS, *extra]) == 2
    assert text in capsys.readouterr().err


def test_the_page_of_benchmarks_has_them(tmp_path, capsys, monkeypatch):
    """Rows that were measured, rows that were not, and programs; a wrong result is told."""
    sys.path.insert(0, str(ROOT / "bench"))
    from report.integers import integer_sections

    file, run = tmp_path / "integers.json", tmp_path / "transfer.json"
    chosen = ["--types", "uint4", "--operations", "add,mul", "--json", str(file)]
    assert main(["bench", "integers", *ARGUMENTS, *chosen]) == 0
    assert main(["workload", "transfer", "--pairs", "2", "--bits", "4", "--json", str(run)]) == 0
    capsys.readouterr()
    files = {f.name: json.loads(f.read_text(encoding="utf-8")) for f in (file, run)}
    rows = files["integers.json"]["results"]
    rows[1] |= {"latency_us": None, "amortised_us": None, "correct": None, "skipped": "limit"}
    text = integer_sections(files)
    assert "| add | uint4 | 2 / 2 | " in text and "| mul | uint4 | 5 / 2 |  |  |  | 5 / 2 | " in text
    assert "2 transfers of uint4" in text and "WRONG" not in text and text.count("; 1) | ") == 1
    program = files["transfer.json"]["results"][0]
    program |= {"seconds": 2.0, "warm_seconds": 0.02, "warm_q1_seconds": 0.01, "warm_q3_seconds": 0.03}
    assert " | 2,000.0 | 20.0 (10.0 to 30.0; 1) | " in integer_sections(files)
    for field in [name for name in program if name.startswith("warm_")]:  # as records of before are
        del program[field]
    assert " | 2,000.0 |  | " in integer_sections(files)
    rows[0]["correct"] = files["transfer.json"]["results"][0]["correct"] = False
    assert integer_sections(files).count("WRONG") == 2
