"""Table and picture of docs/guide/integers.md are what the circuits are; the benchmark of integers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import gen_integers  # noqa: E402
from tfhe_world import tfhe_world  # noqa: E402

import crenel  # noqa: E402
from crenel import _crenel  # noqa: E402
from crenel.cli import main  # noqa: E402


def test_the_page_is_up_to_date(capsys):
    assert gen_integers.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "bits", "lean", "fast"), [("add", 64, (32, 32), (93, 7)), ("less", 64, (32, 32), (47, 4))]
)
def test_stated_costs(name, bits, lean, fast):
    """The figures of the picture, by name: a carry that ripples takes a bootstrap a block."""
    for form, expected in (("lean", lean), ("fast", fast)):
        count, depth, rounds = gen_integers.cost(name, bits, form)
        assert (count, depth) == expected
        assert (sum(rounds), len(rounds)) == expected


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
        stated, _, _, _ = _crenel.tfhe_integer_cost(name, 6, dtype[0] == "i", form)
        assert bootstraps(run) == stated, name
    condition = ev.less(a, b)
    assert bootstraps(lambda: ev.select(condition, a, b)) == _crenel.tfhe_integer_cost("select", 6, False)[0]


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
    assert "limit" in rows["divmod", "uint128"]["skipped"]


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        (["--operations", "root"], "root"),
        (["--types", "int8"], "unsigned"),
        (["--types", "uint7"], "even number"),
        (["--set", "lut5"], "lut5"),
        (["--circuits", "wide"], "lean, fast"),
        (["--json", "README.md"], "exists"),
    ],
)
def test_bench_integers_refuses(extra, text, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["bench", "integers", *ARGUMENTS, *extra]) == 2
    assert text in capsys.readouterr().err
