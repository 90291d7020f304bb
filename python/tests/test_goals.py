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
FOUR = {"suite": "pool", "value": "times_one_device", "unit": "times", "higher": True, "gpus": 4, "must": 3.8}
FOUR |= {"title": "t", "where": {"name": "x"}}


def test_the_newest_record_of_the_goals_gpu(goals):
    files = {
        "old": record(HERE, "1", {"name": "x", "latency_us": 1000.0}),
        "new": record(HERE, "2", {"name": "x", "latency_us": 3000.0}, {"name": "y", "latency_us": 1.0}),
        "newer elsewhere": record("NVIDIA H100", "3", {"name": "x", "latency_us": 500.0}),
        "newer, wrong": record(HERE, "4", {"name": "x", "latency_us": 1.0, "correct": False}),
        "newer, half a card": record(
            f"{HERE}, 66 of its 132 multiprocessors", "6", {"name": "x", "latency_us": 1.0}
        ),
        "newer, a processor": record("AMD EPYC", "5", {"name": "x", "latency_us": 1.0}),
    }
    cells = goals.row(GOAL | {"must": 3, "aim": 2}, files, HERE)
    assert cells[1:4] == ["3.00 ms", "3: yes", "2: **no**"] and cells[-1] == "`new`"


def test_another_card_is_shown_and_never_met(goals):
    files = {"a": record("NVIDIA H100", "3", {"name": "x", "latency_us": 500.0})}
    cells = goals.row(GOAL | {"must": 3}, files, HERE)
    assert cells[1] == "0.50 ms (NVIDIA H100)" and cells[2] == "3"
    assert goals.row(GOAL | {"must": 3}, {}, HERE)[1:] == ["not recorded", "3", "", "", ""]
    assert goals.row(GOAL | {"must": 3, "not_yet": "no card"}, {}, HERE)[-1] == "no card"
    files["b"] = record("AMD EPYC", "4", {"name": "x", "latency_us": 400.0})
    assert goals.row(GOAL | {"must": 3, "anywhere": True}, files, HERE)[1:3] == ["0.40 ms", "3: yes"]


def test_rates_sizes_and_what_words_say(goals):
    rate = GOAL | {"value": "per_second", "unit": "a second", "higher": True, "must": 390, "where": {}}
    row = {"what": "200 transfers of uint64", "seconds": 0.5}
    files = {"a": record(HERE, "1", row)}
    assert goals.row(rate | {"at_least": {"count": 100}}, files, HERE)[1:3] == ["400 a second", "390: yes"]
    assert goals.row(rate | {"at_least": {"count": 201}}, files, HERE)[1] == "not recorded"
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


def test_what_is_only_reported_and_powers_of_two(goals):
    energy = GOAL | {"value": "energy.joules_per_bootstrap", "unit": "J", "aim": 4.5}
    error = GOAL | {"value": "precision.mean_max_error_log2", "unit": "log2", "must": -20.4, "aim": -22,
                    "anywhere": True, "at_least": {"precision.runs": 100}}  # fmt: skip
    energies = {"joules_per_bootstrap": 5.25}
    precision = {"runs": 100, "mean_max_error_log2": -21.96}
    files = {"a": record(HERE, "1", {"name": "x"}, energy=energies, precision=precision)}
    assert goals.row(energy, files, HERE)[1:4] == ["5.25 J", "reported", "4.5: **no**"]
    assert goals.row(error, files, HERE)[1:4] == ["2^-22.0", "2^-20.4: yes", "2^-22.0: **no**"]
    # newer: of fewer, which do not count; of errors alone, on a processor
    files["b"] = record(HERE, "2", {"name": "x"}, precision=precision | {"runs": 99})
    assert goals.row(error, files, HERE)[-1] == "`a`"
    files["c"] = record("AMD EPYC", "3", configuration={"name": "x"}, precision=precision)
    assert goals.row(error, files, HERE)[-1] == "`c`"


def test_counters_and_comparisons(goals):
    of = {"device": f"{HERE}, 139 GiB", "params": "p", "operation": "bootstrap"}
    rows = [{"dram_bytes": 9e9}, {"dram_bytes": 8.125e9}]
    counted = {"kind": "crenel-ncu-account", "rows": rows, "provenance": of}
    dram = {"title": "t", "suite": "counters", "where": {"operation": "bootstrap", "params": "p"},
            "value": "dram_bytes", "unit": "GB", "must": 17.2, "aim": 16}  # fmt: skip
    assert goals.row(dram, {"a": counted}, HERE)[1:4] == ["17.1 GB", "17.2: yes", "16: **no**"]
    other = counted | {"provenance": of | {"operation": "each"}}
    assert goals.row(dram, {"a": other}, HERE)[1] == "not recorded"
    compared = {"kind": "crenel-boot-comparison", "threads": 2, "ratio": 9.5, "crenel": [{"params": "p"}],
                "provenance": {"device_description": "AMD EPYC"}}  # fmt: skip
    cpu = {"title": "t", "suite": "boot-comparison", "where": {"threads": 2, "params": "p"},
           "value": "ratio", "unit": "times", "must": 9, "aim": 12, "higher": True,
           "anywhere": True}  # fmt: skip
    files = {"a": compared, "b": counted}
    assert goals.row(cpu, files, HERE)[1:4] == ["9.50 times", "9: yes", "12: **no**"]
    assert goals.problems({"device": HERE, "sections": [{"goals": [dram, cpu]}]}, files) == []


def test_the_floor_of_an_addition(goals):
    """By hand: 4 x 23 x 2^16 words are 24.1 MB, and the events of this record take 3 us."""
    from crenel import analyze

    row = {"name": "x", "params": "p", "limbs": 23, "batch": 1, "graph": False, "log_n": 16}
    rows = [
        row | {"timing": timing, "inputs": inputs, "latency_us": us}
        for timing, inputs, us in (("queued", "same", 5.0), ("each", "same", 8.0), ("each", "rotating", 14.0))
    ]
    goal = GOAL | {"unit": "us", "must": 8, "floor": "addition", "where": {"name": "x", "inputs": "rotating"}}
    files = {
        "a.json": record(HERE, "1", *rows),
        "goals.json": {"kind": "crenel-goals", "device": HERE,
                       "sections": [{"title": "A", "about": "B", "goals": [goal]}]},
    }  # fmt: skip
    text = goals.goals_section(files)
    rates = analyze.load_ceilings()
    least = 1e6 * (24117248 / rates.dram_read + 12058624 / rates.dram_write) + 3
    assert "24.1 MB" in text and "12.1 MB" in text and "add 3.00 us" in text
    assert f": {least:.1f} to " in text and "What must be, 8 us, is below it." in text
    goal["must"] = 14
    assert "below it" not in goals.goals_section(files)


def pool(card, date, devices, times, **row):
    found = {"name": "x", "devices": devices, "times_one_device": times, "same_bits": True} | row
    return record(card, date, found) | {"suite": "pool", "devices": ["cuda:0"] * devices}


def test_another_number_of_gpus_is_shown_and_never_met(goals):
    files = {"two": pool(HERE, "1", 2, 3.99), "elsewhere": pool("NVIDIA H100", "2", 2, 1.9)}
    assert goals.row(FOUR, files, HERE)[1:3] == ["1.90 times (2 x NVIDIA H100)", "3.8"]
    files["four elsewhere"] = pool("NVIDIA H100", "0", 4, 3.9)
    assert goals.row(FOUR, files, HERE)[1:3] == ["3.90 times (4 x NVIDIA H100)", "3.8"]
    files["four"] = pool(HERE, "0", 4, 3.7)
    assert goals.row(FOUR, files, HERE)[1:3] == ["3.70 times", "3.8: **no**"]
    files["newer"] = pool(HERE, "1", 4, 3.85)
    assert goals.row(FOUR, files, HERE)[1:3] == ["3.85 times", "3.8: yes"]
    files["wrong bits"] = pool(HERE, "2", 4, 4.0, same_bits=False)
    assert goals.row(FOUR, files, HERE)[1:3] == ["3.85 times", "3.8: yes"]
    assert goals.row(FOUR, {}, HERE)[1:3] == ["not recorded", "3.8"]


def test_what_several_gpus_did_is_no_figure_of_one(goals):
    rows = [{"name": "x", "batch": 1, "latency_us": 3000.0, "graph": graph} for graph in (True, False)]
    rows[1]["latency_us"] = 2000.0
    several = {"name": "x", "batch": 1, "latency_us": 1000.0, "device": "cuda:0+1"}
    files = {"a": record(HERE, "1", *rows, several)}
    assert goals.row(GOAL | {"must": 1.5}, files, HERE)[1:3] == ["2.00 ms", "1.5: **no**"]
    faster = FOUR | {"suite": "s", "gpus": 2}
    assert goals.row(faster | {"must": 1.5}, files, HERE)[1:3] == ["2.00 times", "1.5: yes"]  # than its best
    assert goals.row(FOUR | {"suite": "s", "must": 1.5}, files, HERE)[1:3] == [
        "2.00 times (2 x NVIDIA H200)",
        "1.5",
    ]


def test_keys_of_the_gpu_that_has_most(goals):
    def part(bytes_in_use):
        steps = {"context": {"in_use": 5}, "keys": {"in_use": 5 + bytes_in_use}}
        return {"part": "cuda:0", "steps": steps}

    devices = [{"device": "cuda:0", "parts": [part(1000)]}]
    devices.append({"device": "cuda:0+1+2+3", "parts": [part(b) for b in (200, 260, 250, 290)]})
    model = "model of an NVIDIA H200 that executes nothing"
    files = {"a": record(model, "1") | {"suite": "boot_memory", "params": "p", "devices": devices}}
    goal = {"title": "t", "suite": ["boot", "boot_memory"], "where": {"name": "memory", "params": "p"}}
    goal |= {"value": "key_share", "unit": "%", "gpus": 4, "must": 33.3}
    assert goals.row(goal, files, HERE)[1] == "not recorded"
    told = goals.row(goal | {"also": ["models"]}, files, HERE)
    assert told[1:3] == ["29.0 % (4 x model of an NVIDIA H200)", "33.3"]
    files["a"]["provenance"]["device_description"] = HERE
    assert goals.row(goal, files, HERE)[1:3] == ["29.0 %", "33.3: yes"]


def service(suite, settings, results):
    host = {"machine": "x86_64"}
    return {"kind": "crenel-service", "suite": suite, "date": "1", "host": host} | {
        "settings": settings,
        "results": results,
    }


def test_figures_of_a_service(goals):
    base = {"title": "t", "where": {}, "anywhere": True}
    ended = {"states": {"done": 990, "failed": 8}, "jobs_in_database": 1001, "right": 980}
    files = {"k": service("kills", {"requests": 1000, "engine": "ray"}, ended)}
    for value, unit, must, expected in (
        ("right_share", "%", 95, ["98.0 %", "95: yes"]),
        ("lost_count", "of them", 0, ["2", "0: **no**"]),
        ("twice_count", "of them", 0, ["1", "0: **no**"]),
    ):
        goal = base | {
            "suite": "kills",
            "value": value,
            "unit": unit,
            "must": must,
            "where": {"engine": "ray"},
        }
        assert goals.row(goal | {"higher": unit == "%"}, files, HERE)[1:3] == expected
        assert goals.row(goal | {"where": {"engine": "local"}}, files, HERE)[1] == "not recorded"
    hostile = {"worker_died": True, "honest_client_right_afterwards": True, "errors_500": 2, "leaks": 0}
    files = {"h": service("hostile", {}, hostile), "u": service("upload", {}, {"equal_hash": False})}
    for suite, value, expected in (
        ("hostile", "crash_count", ["3", "0: **no**"]),
        ("hostile", "leak_count", ["0", "0: yes"]),
        ("upload", "unequal_count", ["1", "0: **no**"]),
    ):
        goal = base | {"suite": suite, "value": value, "unit": "of them", "must": 0}
        assert goals.row(goal, files, HERE)[1:3] == expected


def test_a_share_of_a_processors_throughput_is_no_gpus(goals):
    found = {"device": "Some CPU, 1 thread", "full_resident": {"share_of_the_library": {"median": 0.93}}}
    found |= {"p50_ms": 4.5}
    files = {"t": service("tenants", {"tenants": 32}, found)}
    goal = {"title": "t", "suite": "tenants", "where": {"tenants": 32}, "value": "full_library_share"}
    goal |= {"unit": "%", "higher": True, "must": 90, "beside": {"p50": "results.p50_ms"}}
    assert goals.row(goal, files, HERE)[1] == "not recorded"
    cells = goals.row(goal | {"also": ["processors"]}, files, HERE)
    assert cells[1:3] == ["93.0 % (Some CPU); p50 4.5 ms", "90"]
    files["t"]["results"]["device"] = f"{HERE}, 139 GiB"
    assert goals.row(goal, files, HERE)[1:3] == ["93.0 %; p50 4.5 ms", "90: yes"]


def test_goals_of_the_project_fit_the_records(goals):
    folder = ROOT / "bench" / "results"
    from report.sets import under_present_names

    files = {p.name: under_present_names(json.loads(p.read_text())) for p in sorted(folder.glob("*.json"))}
    assert goals.problems(files["goals.json"], files) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"peer": "1 (others)"}, ""),
        ({"not_yet": "never"}, "`not_yet` says 'never', and a fits"),
        ({"where": {"name": "z"}, "not_yet": "never"}, ""),
        ({"wanted": 3}, "fields wanted are missing or unknown"),
        ({"unit": None}, "fields unit are missing or unknown"),
        ({"must": None}, ""),
        ({"aim": None}, ""),
        ({"must": None, "aim": None}, "neither must nor aim"),
        ({"floor": "tiles"}, "floor tiles, expected one of addition"),
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
        ({"also": ["models"]}, ""),
        ({"also": ["abacus"]}, "also abacus, expected of models, processors"),
        ({"beside": {"p50": "results.p50_ms"}}, "no record has results.p50_ms in ms"),
        ({"gpus": 2}, "no record fits, and `not_yet` does not say why"),
        ({"where": {"name": "z"}}, "no record fits, and `not_yet` does not say why"),
    ],
)
def test_problems_of_goals(goals, change, problem):
    goal = {key: value for key, value in (GOAL | {"must": 3, "aim": 2} | change).items() if value is not None}
    files = {"a": record(HERE, "1", {"name": "x", "latency_us": 1000.0, "what": "2 of them", "seconds": 1.0})}
    found = goals.problems({"device": HERE, "sections": [{"goals": [goal]}]}, files)
    assert bool(found) == bool(problem) and any(problem in text for text in [*found, ""]), found
