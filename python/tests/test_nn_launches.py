"""Times by launches: the model against measured runs of whole networks, and against what a dry run counts."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401

from crenel import nn
from crenel.errors import UnsupportedError
from crenel.nn import machine
from crenel.nn.launches import counted, of_steps
from crenel.nn.machine import Machine, kind_of, machine_of, machines

RESULTS = Path(__file__).resolve().parents[2] / "bench/results"
AGREED = 0.15  # of a run's time


def kept(part):
    """(file of the machine, what was measured) of all that are kept: of "operations" or "networks"."""
    files = sorted(RESULTS.glob("machine-*.json"))
    return [(file, run) for file in files for run in json.loads(file.read_text())[part]]


def launches(elementwise, moved, count):
    """As many of a kind, as accounts state them."""
    work = "elementwise" if elementwise else "ntt"
    return [{"work": work, "read_bytes": moved - moved // 3, "written_bytes": moved // 3}] * count


def of_file(file):
    (machine,) = (known for known in machines() if known.source == file.name)
    return machine


@pytest.mark.skipif(not RESULTS.is_dir(), reason="no bench/results beside the tests")
@pytest.mark.parametrize(
    ("file", "run"),
    kept("networks"),
    ids=lambda each: each["record"] if isinstance(each, dict) else each.stem,
)
def test_the_stated_time_is_that_of_measured_runs(file, run):
    """Of each network within 15 %, also replayed as one recording; no rate was taken from any."""
    machine = of_file(file)
    steps = [(bool(boot), launches(*of_kind)) for boot, *of_kind in run["launches"]]
    found = of_steps(steps, machine)
    stated = 1e3 * (found.recorded_ms if run["recorded"] else found.ms)
    assert stated == pytest.approx(run["model_us"], rel=1e-4)
    record = json.loads((RESULTS / run["record"]).read_text())["results"][0]
    assert (record["latency_us"], record["graph"]) == (run["us"], run["recorded"])
    assert (
        machine.device
        in json.loads((RESULTS / run["record"]).read_text())["provenance"]["device_description"]
    )
    assert abs(stated / run["us"] - 1.0) < AGREED


@pytest.mark.skipif(not RESULTS.is_dir(), reason="no bench/results beside the tests")
def test_rates_are_those_of_recorded_operations():
    """Single ones within 25 %, which find their keys in the cache; bootstraps within 10."""
    for file, row in kept("operations"):
        records = [launch for of_kind in row["launches"] for launch in launches(*of_kind)]
        stated = of_file(file).us(records, recorded=True)
        assert stated == pytest.approx(row["model_us"], rel=1e-4)
        found = [r for r in json.loads((RESULTS / row["record"]).read_text())["results"] if r["graph"]]
        assert (row["name"], row["us"]) in {(r["name"], r["latency_us"]) for r in found}
        assert abs(stated / row["us"] - 1.0) < (0.1 if row["name"] == "bootstrap" else 0.25), row["name"]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="no bench/results beside the tests")
def test_no_network_is_among_what_was_fitted():
    networks = {run["record"] for _, run in kept("networks")}
    operations = {row["record"] for _, row in kept("operations")}
    assert len(networks) >= 8 and operations and not networks & operations
    assert {True, False} == {run["recorded"] for _, run in kept("networks")}


def test_the_longer_of_host_and_device_counts(rng):  # noqa: F811
    launch, empty, kernel, cached, beyond = (float(v) for v in rng.uniform(1, 9, 5))
    cache = 200_000_000
    machine = Machine("somewhere", launch, empty, kernel, 1e6 * cached, 1e6 * beyond, cache)
    small = {"work": "elementwise", "read_bytes": 10, "written_bytes": 10}
    other = small | {"work": "copy"}
    fitting = {"work": "ntt", "read_bytes": 100_000_000, "written_bytes": 100_000_000}
    large = {"work": "elementwise", "read_bytes": 300_000_000, "written_bytes": 20_000_000}
    assert kind_of(large) == (True, 320_000_000) and kind_of(fitting) == (False, cache)
    assert machine.us([small] * 5, recorded=True) == pytest.approx(5 * empty, rel=1e-4)
    assert machine.us([other] * 5, recorded=True) == pytest.approx(5 * kernel, rel=1e-4)
    assert machine.us([small] * 5, recorded=False) == pytest.approx(5 * max(launch, empty), rel=1e-4)
    assert machine.us([fitting], recorded=True) == pytest.approx(kernel + 200 / cached)
    assert machine.us([large], recorded=False) == pytest.approx(max(launch, empty + 320 / beyond))
    found = of_steps([(False, [small, large]), (True, [other, small])], machine)
    boot, device = kernel + empty, empty + 320 / beyond
    assert found.recorded_ms == pytest.approx(1e-3 * (empty + device + boot), rel=1e-4)
    assert found.ms == pytest.approx(1e-3 * (max(launch, empty) + max(launch, device) + boot), rel=1e-4)
    assert found.launches == 4


def test_a_program_says_its_time_on_a_known_machine(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 8, 8)), nn.SiLU(), nn.Linear(weights(rng, 3, 8)))
    params = toy("toy-leveled-n14-s40")
    program = quiet_compile(model, rng.normal(size=(50, 8)), params=params, degree=7, device="cpu")
    steps = counted(program)
    assert len(steps) == len(program.plan.steps) and all(len(records) for _, records in steps)
    assert not any(boot for boot, _ in steps)
    known = machine_of("NVIDIA H100")
    found = nn.duration(program, "NVIDIA H100 80GB HBM3, compute capability 9.0, 79 GiB")
    assert found.launches == sum(len(records) for _, records in steps) and found.machine == known.device
    # So small a ring: nearly each launch is the host's time.
    assert found.ms == pytest.approx(1e-3 * known.launch_us * found.launches, rel=0.05)
    assert found.recorded_ms < found.ms
    text = program.describe(found)
    assert (
        f"time              {found}" in text
        and "time              not known: compile(costs=" in program.describe()
    )
    with pytest.raises(UnsupportedError, match="a toaster: nothing is known of its launches; .* NVIDIA H100"):
        nn.duration(program, "a toaster")


@pytest.mark.parametrize(
    "name", ["", "N", "NVIDIA", "NVIDIA H", "NVIDIA H1", "nvidia h100", "H100", "NVIDIA H100 8"]
)
def test_machines_have_names_of_whole_words(name):
    """No beginning of a name is taken for it, nor a maker for a model."""
    with pytest.raises(UnsupportedError, match="maker and model at least, of NVIDIA H100 80GB HBM3") as error:
        machine_of(name)
    assert error.value.fields["device"] == name


def test_words_that_several_machines_begin_with(monkeypatch):
    (known,) = machines()
    other = replace(known, device="NVIDIA H100 NVL")
    monkeypatch.setattr(machine, "machines", lambda: (known, other))
    assert machine_of("NVIDIA H100 NVL, compute capability 9.0, 93 GiB") == other
    assert machine_of(known.device) == known == machine_of("NVIDIA H100 80GB")
    with pytest.raises(UnsupportedError, match="NVIDIA H100: several are called so"):
        machine_of("NVIDIA H100")
    for name, kind in ((None, "NoneType"), (5, "int"), (b"NVIDIA H100", "bytes")):
        with pytest.raises(TypeError, match=f"machine: expected a string, got {kind}"):
            machine_of(name)


def test_bootstraps_replay_recordings(rng):  # noqa: F811
    model = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(weights(rng, 4, 4)), nn.SiLU())])
    program = quiet_compile(
        model, rng.normal(size=(50, 4)), params=toy("toy-boot50"), degree=15, device="cpu"
    )
    steps = counted(program)
    boots = [k for k, (boot, _) in enumerate(steps) if boot]
    assert len(boots) == program.demand.operations["bootstraps"] > 0
    machine = Machine("m", 7.0, 0.5, 0.5, 1e30, 1e30, 1)
    launched = sum(len(records) for _, records in steps)
    replayed = sum(len(steps[k][1]) for k in boots)
    assert 1e3 * of_steps(steps, machine).ms == pytest.approx(7.0 * (launched - replayed) + 0.5 * replayed)
    assert replayed > launched // 4 and np.isfinite(nn.duration(program, "NVIDIA H100").ms)
