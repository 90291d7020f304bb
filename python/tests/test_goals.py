"""Figures to reach: which record of which row stands beside each, and what counts as met."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def goals(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from report import goals

    return goals


def record(card, date, *rows, **data):
    provenance = {"device_description": f"{card}, 139 GiB", "date": date}
    return {"kind": "crenel-bench", "suite": "s", "provenance": provenance, "results": list(rows), **data}


GOAL = {"title": "t", "suite": "s", "where": {"name": "x"}, "value": "latency_us", "unit": "ms"}
HERE = "NVIDIA H200"


def test_the_newest_record_of_the_goals_gpu(goals):
    files = {
        "old": record(HERE, "1", {"name": "x", "latency_us": 1000.0}),
        "new": record(HERE, "2", {"name": "x", "latency_us": 3000.0}, {"name": "y", "latency_us": 1.0}),
        "newer elsewhere": record("NVIDIA H100", "3", {"name": "x", "latency_us": 500.0}),
        "newer, wrong": record(HERE, "4", {"name": "x", "latency_us": 1.0, "correct": False}),
        "newer, a processor": record("AMD EPYC", "5", {"name": "x", "latency_us": 1.0}),
    }
    cells = goals.row(GOAL | {"must": 3, "aim": 2}, files, HERE)
    assert cells[1:4] == ["3.00 ms", "3: yes", "2: **no**"] and cells[-1] == "`new`"


def test_another_card_is_shown_and_never_met(goals):
    files = {"a": record("NVIDIA H100", "3", {"name": "x", "latency_us": 500.0})}
    cells = goals.row(GOAL | {"must": 3}, files, HERE)
    assert cells[1] == "0.50 ms (NVIDIA H100)" and cells[2] == "3"
    assert goals.row(GOAL | {"must": 3}, {}, HERE)[1:4] == ["", "3", ""]
    files["b"] = record("AMD EPYC", "4", {"name": "x", "latency_us": 400.0})
    assert goals.row(GOAL | {"must": 3, "anywhere": True}, files, HERE)[1:3] == ["0.40 ms", "3: yes"]


def test_rates_sizes_and_what_words_say(goals):
    rate = GOAL | {"value": "per_second", "unit": "a second", "higher": True, "must": 390, "where": {}}
    row = {"what": "200 transfers of uint64", "seconds": 0.5}
    files = {"a": record(HERE, "1", row)}
    assert goals.row(rate | {"at_least": {"count": 100}}, files, HERE)[1:3] == ["400 a second", "390: yes"]
    assert goals.row(rate | {"at_least": {"count": 201}}, files, HERE)[1] == ""
    # programs: the warm calls where the record has them, else the first
    call = GOAL | {"value": "call_seconds", "must": 450, "where": {"workload": "w"}}
    for warm, found in (
        ({}, "500 ms"),
        ({"warm_seconds": None}, "500 ms"),
        ({"warm_seconds": 0.4}, "400 ms"),
    ):
        files = {"a": record(HERE, "1", row | {"workload": "w"} | warm)}
        assert goals.row(call, files, HERE)[1] == found
        wanted = "500 a second" if found == "400 ms" else "400 a second"
        assert goals.row(rate, files, HERE)[1] == wanted
    size = GOAL | {"value": "keys.bytes", "unit": "MiB", "must": 1}
    files = {"a": record(HERE, "1", {"name": "x"}, keys={"bytes": 3 << 19})}
    assert goals.row(size, files, HERE)[1:3] == ["1.50 MiB", "1: **no**"]


def test_every_goal_of_the_project_can_be_read(goals):
    data = json.loads((ROOT / "bench" / "results" / "goals.json").read_text())
    for goal in (g for s in data["sections"] for g in s["goals"]):
        assert {"title", "suite", "where", "value", "unit", "must"} <= goal.keys()
        better = goal["aim"] if "aim" in goal else goal["must"]
        assert goals._better(goal, better, goal["must"])


def test_goals_of_the_project_fit_the_records(goals):
    folder = ROOT / "bench" / "results"
    from report.sets import under_present_names

    files = {p.name: under_present_names(json.loads(p.read_text())) for p in sorted(folder.glob("*.json"))}
    assert goals.problems(files["goals.json"], files) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"peer": "1 (others)", "not_yet": "never"}, ""),
        ({"wanted": 3}, "fields wanted are missing or unknown"),
        ({"must": None}, "fields must are missing or unknown"),
        ({"unit": "MiB"}, "latency_us in 'MiB', expected ('us', 'ms'), higher: False"),
        ({"unit": "a second"}, "latency_us in 'a second'"),
        ({"higher": True}, "higher: False"),
        ({"value": "per_second", "unit": "a second"}, "per_second in 'a second', expected ('a second',)"),
        ({"value": "latency"}, "latency in 'ms', expected ()"),
        ({"value": "median_us"}, "no record has median_us"),
        ({"value": "memory.bytes", "unit": "GiB"}, "no record has memory.bytes"),
        ({"aim": 4}, "the aim 4 is less than what must be, 3"),
        ({"where": {"name": "x", "slot": 5}}, "no row has slot"),
        ({"at_least": {"sizes": 5}}, "no row has sizes"),
        ({"where": {"name": "z"}}, "no record fits, and `not_yet` does not say why"),
    ],
)
def test_problems_of_goals(goals, change, problem):
    goal = {key: value for key, value in (GOAL | {"must": 3, "aim": 2} | change).items() if value is not None}
    files = {"a": record(HERE, "1", {"name": "x", "latency_us": 1000.0, "what": "2 of them", "seconds": 1.0})}
    found = goals.problems({"device": HERE, "sections": [{"goals": [goal]}]}, files)
    assert bool(found) == bool(problem) and any(problem in text for text in [*found, ""]), found
