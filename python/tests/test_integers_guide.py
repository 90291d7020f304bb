"""Table and picture of docs/guide/integers.md are what the circuits are; the benchmark of integers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import gen_integers  # noqa: E402

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
