"""Times by launches: the model against measured runs of whole networks, and against what a dry run counts."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401

from crenel import nn
from crenel.errors import UnsupportedError
from crenel.nn.launches import counted, of_steps
from crenel.nn.machine import Machine, device_bytes, machine_of, machines

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
RESULTS = Path(__file__).resolve().parents[2] / "bench/results"
AGREED = 0.15  # of a run's time


def runs():
    """(file of the machine, run) of all that are kept."""
    files = sorted(RESULTS.glob("machine-*.json"))
    return [(file, run) for file in files for run in json.loads(file.read_text())["runs"]]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="no bench/results beside the tests")
@pytest.mark.parametrize(
    ("file", "run"), runs(), ids=lambda each: each["record"] if isinstance(each, dict) else each.stem
)
def test_the_stated_time_is_that_of_measured_runs(file, run):
    """Of each, within 15 %, also of one from which no rate was taken."""
    (machine,) = (known for known in machines() if known.source == file.name)
    steps = [
        (
            bool(boot),
            [{"read_bytes": moved + streamed, "written_bytes": 0, "streamed_bytes": streamed}] * count,
        )
        for boot, moved, streamed, count in run["launches"]
    ]
    stated = 1e3 * of_steps(steps, machine).ms
    assert stated == pytest.approx(run["model_us"], rel=1e-4)
    record = json.loads((RESULTS / run["record"]).read_text())["results"][0]
    measured = record["latency_us"] - run["lost_us"]
    assert abs(stated / measured - 1.0) < AGREED
    boots = [layer["seconds"] for layer in record["layers"] if layer["kind"] == "bootstrap"]
    again = sum(s - min(boots) for s in boots if s > 1.5 * min(boots)) if record["batch"] == 1 else 0.0
    assert run["lost_us"] == pytest.approx(1e6 * again)  # of recordings made anew, which later ones are not


def test_a_machine_is_judged_by_a_run_that_it_was_not_fitted_to():
    fits = [run["fitted"] for _, run in runs()]
    assert True in fits and False in fits


def test_the_longer_of_host_and_device_counts(rng):  # noqa: F811
    launch, replay, cached, streamed = (float(v) for v in rng.uniform(1, 9, 4))
    machine = Machine("somewhere", launch, replay, 1e6 * cached, 1e6 * streamed)
    small = {"read_bytes": 10, "written_bytes": 10, "streamed_bytes": 0}
    large = {"read_bytes": 300_000_000, "written_bytes": 20_000_000, "streamed_bytes": 100_000_000}
    device = 220 / cached + 100 / streamed
    assert device_bytes(large) == (220_000_000, 100_000_000)
    assert machine.us([small] * 5, recorded=False) == pytest.approx(5 * launch)
    assert machine.us([small] * 5, recorded=True) == pytest.approx(5 * replay)
    assert machine.us([large, small], recorded=False) == pytest.approx(device + launch)
    found = of_steps([(False, [small, large]), (True, [small, small])], machine)
    assert found.ms == pytest.approx(1e-3 * (launch + device + 2 * replay))
    assert found.recorded_ms == pytest.approx(1e-3 * (3 * replay + device))
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
    # So small a ring: each launch is the host's time.
    assert found.ms == pytest.approx(1e-3 * known.launch_us * found.launches)
    assert found.recorded_ms < found.ms
    text = program.describe(found)
    assert f"time              {found}" in text and "time " not in program.describe()
    with pytest.raises(UnsupportedError, match="launches on a toaster, only on NVIDIA H100"):
        nn.duration(program, "a toaster")
    with pytest.raises(UnsupportedError, match="an unnamed device"):
        nn.duration(program, "")


def test_bootstraps_replay_recordings(rng):  # noqa: F811
    model = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(weights(rng, 4, 4)), nn.SiLU())])
    program = quiet_compile(
        model, rng.normal(size=(50, 4)), params=toy("toy-boot50"), degree=15, device="cpu"
    )
    steps = counted(program)
    boots = [k for k, (boot, _) in enumerate(steps) if boot]
    assert len(boots) == program.demand.operations["bootstraps"] > 0
    machine = Machine("m", 7.0, 0.5, 1e30, 1e30)
    launched = sum(len(records) for _, records in steps)
    replayed = sum(len(steps[k][1]) for k in boots)
    assert 1e3 * of_steps(steps, machine).ms == pytest.approx(7.0 * (launched - replayed) + 0.5 * replayed)
    assert replayed > launched // 4 and np.isfinite(nn.duration(program, "NVIDIA H100").ms)
