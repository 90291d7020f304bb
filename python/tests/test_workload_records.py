"""Records of workloads as JSON and back, figures of them, and the energy of a GPU."""

import dataclasses
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import toy
from needed import needs

import crenel
from crenel.errors import FileError, SerializationError, UnsupportedError
from crenel.records import provenance
from crenel.workloads import energy, plots, records
from crenel.workloads.records import Energy, Iteration, Memory, Round, Sort, Stage, Training
from crenel.workloads.stages import Stopwatch

pytestmark = pytest.mark.filterwarnings("ignore::crenel.InsecureParametersWarning")


def common(name: str) -> dict[str, object]:
    params = toy()
    return {
        "name": name,
        **records.facts_of(params),
        "variant": "crenel",
        "data": "random",
        "data_digest": "d",
        "digest": "e",
        "seed": 3,
        "steps": 4,
        "total_s": 2.5,
        "latency_us": 625e3,
        "batch": 1,
        "bootstraps": 1,
        "correct": True,
        "error": 1e-4,
        "bound": 1e-2,
        "bound_note": "stated",
        "setup_s": 0.1,
        "warm": False,
        "graph": False,
        "resumed": False,
        "keys_s": 1.0,
        "encrypt_s": 0.5,
        "decrypt_s": 0.1,
        "wire_bytes": 77,
        "stages_timed": True,
        "memory": Memory(1, 2, None, "host", 3),
        "energy": Energy(None, None, None, 0, "no GPU"),
        "stages": tuple(Stage(f"stage {i}", 0.1 + i, i + 1) for i in range(15)),
    }


def training() -> Training:
    steps = tuple(
        Iteration(t, 0.5 + t / 10, 1 / t, *((0.5 + t / 10, 1 / t, 1e-5) if t % 2 == 0 else ()))
        for t in range(1, 5)
    )
    return Training(**common("helr"), rows=10, features=3, test_rows=4, iterations=steps)


def sort(count: int = 8) -> Sort:
    values = np.sort(np.random.default_rng().random(count))
    return Sort(
        **common("sort"),
        count=count,
        comparator="7,7,15",
        rounds=tuple(Round(r, 1e-5 * r, 0.5) for r in range(1, 5)),
        expected=tuple(values.tolist()),
        found=tuple((values + 1e-5).tolist()),
    )


def test_a_record_is_read_as_it_was_written(tmp_path):
    results = [training(), sort()]
    where = provenance(crenel.Device("cpu"), "crenel workload helr")
    records.write(tmp_path / "r.json", results, where)
    again, read_where = records.read(tmp_path / "r.json")
    assert again == results and read_where == where
    data = json.loads((tmp_path / "r.json").read_text())
    assert (data["kind"], data["suite"]) == ("crenel-bench", "workload")
    assert data["results"][0]["insecure"] is True and data["results"][0]["params_id"] == toy().id


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("kind"),
        lambda d: d.update(suite="boot"),
        lambda d: d.update(format=2),
        lambda d: d["results"][0].pop("memory"),
        lambda d: d["results"][0].update(name="other"),
        lambda d: d["results"][0]["stages"][0].update(extra=1),
        lambda d: d["results"].append(3),
    ],
)
def test_other_documents_are_refused(tmp_path, change):
    path = tmp_path / "r.json"
    records.write(path, [training()], {})
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(SerializationError, match=r"r\.json"):
        records.read(path)
    path.write_bytes(b"\xff{")
    with pytest.raises(SerializationError):
        records.read(path)
    with pytest.raises(FileError):
        records.read(tmp_path / "none.json")


def test_provenance_says_where_and_of_what(monkeypatch):
    monkeypatch.setenv("CRENEL_COMMIT", "abc")
    found = provenance(crenel.Device("cpu"), "a command")
    assert found["commit"] == "abc" and found["command"] == "a command" and found["device"] == "cpu"
    assert found["version"] == crenel.__version__ and found["compiler"]
    monkeypatch.delenv("CRENEL_COMMIT")
    monkeypatch.setattr(crenel, "__file__", "/nowhere/crenel/__init__.py")
    monkeypatch.setattr(
        crenel.records, "_line", lambda command, folder=None: "/" if "--show-toplevel" in command else "x"
    )
    assert "commit" not in provenance(crenel.Device("cpu"), "")  # "/" is a clone of something else


def test_digests_tell_arrays_apart():
    a = np.arange(6.0)
    same = records.digest(a), records.digest(a.astype(np.float32)), records.digest(a.astype(">f8"))
    assert len(set(same)) == 1
    others = [records.digest(a.reshape(2, 3)), records.digest(a, a), records.digest(a + 1e-15), same[0]]
    assert len(set(others)) == 4


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def test_figures(tmp_path):
    needs("demo", "matplotlib")
    untimed = dataclasses.replace(training(), stages=(), stages_timed=False)
    unseen = dataclasses.replace(sort(), found=(), expected=())
    bare = dataclasses.replace(unseen, stages=(), stages_timed=False)
    one, row, square = (825, 600), (1650, 600), (1650, 1200)
    cases = [(training(), square), (sort(), square), (untimed, square), (unseen, row), (bare, one)]
    for number, (result, size) in enumerate(cases):
        plots.draw(tmp_path / f"{number}.png", result)
        assert png_size(tmp_path / f"{number}.png") == size


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match="matplotlib"):
        plots.draw(tmp_path / "a.png", training())
    assert not list(tmp_path.iterdir())


def test_shortest_stages_are_drawn_together():
    stages = training().stages
    shown = plots.shown_stages(stages, 5)
    assert [s.name for s in shown] == ["stage 11", "stage 12", "stage 13", "stage 14", "11 others"]
    assert sum(s.seconds for s in shown) == pytest.approx(sum(s.seconds for s in stages))
    assert plots.shown_stages(stages[:5], 5) == list(stages[:5])


def test_energy_is_the_integral_of_power():
    samples = [energy.Sample(t, 100 * t, 0) for t in (0.5, 1, 2, 3, 9)]
    # Constant 100 W before the first sample inside, then 100 t, then 300 W.
    assert energy.joules(samples, 0.75, 3.5) == pytest.approx(0.25 * 100 + (9 - 1) / 2 * 100 + 0.5 * 300)
    assert energy.joules(samples, 1.5, 2.5) is None


FAKE = """#!/bin/sh
case "$*" in
  *power.draw.instant*) echo 'Field "power.draw.instant" is not a valid field to query.'; exit 2;;
  *loop-ms*) i=0; while [ $i -lt 300 ]; do
      echo "250.0, $((1000 + i)), Toy GPU"; i=$((i+1)); sleep 0.02; done;;
  *) echo "250.0, 1000, Toy GPU";;
esac
"""


def fake_gpu(tmp_path, monkeypatch, script=FAKE, name="NVIDIA Toy GPU, compute capability 9.0"):
    program = tmp_path / "nvidia-smi"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    use = SimpleNamespace(used=5 << 20, total=1 << 40)
    return SimpleNamespace(name="cuda:0", kind="cuda", description=name, memory=lambda: use)


def test_a_gpu_is_sampled(tmp_path, monkeypatch):
    import time

    with energy.Meter(fake_gpu(tmp_path, monkeypatch)) as meter:
        begin = time.perf_counter()
        time.sleep(0.5)
        spent = time.perf_counter() - begin
    found = meter.energy(4)
    assert found.joules == pytest.approx(250 * spent, rel=0.1) and found.mean_watts == pytest.approx(250)
    assert found.joules_per_step == pytest.approx(found.joules / 4)
    assert "power.draw," in found.note and found.samples >= 3
    peak, note = meter.peak_bytes()
    assert peak > 1000 << 20 and "sampled" in note
    assert meter._process.poll() is not None


def test_where_no_energy_is_measured_the_reason_is_said(tmp_path, monkeypatch):
    device = fake_gpu(tmp_path, monkeypatch, name="NVIDIA H200")
    cases = [
        (device, True, "differently: it calls this one Toy GPU"),
        (device, False, "not asked for"),
        (crenel.Device("cpu"), True, "on cpu"),
    ]
    for where, wanted, reason in cases:
        with energy.Meter(where, wanted) as meter:
            pass
        assert meter.energy(1).joules is None and reason in meter.energy(1).note
    broken = fake_gpu(tmp_path, monkeypatch, "#!/bin/sh\necho no driver; exit 9\n")
    with energy.Meter(broken) as meter:
        pass
    assert "no driver" in meter.energy(1).note
    assert meter.peak_bytes() == (5 << 20, "the driver's count after the run")
    silent = FAKE.replace('"250.0, $((1000 + i)), Toy GPU"', '"[N/A], 7, Toy GPU"')
    with energy.Meter(fake_gpu(tmp_path, monkeypatch, silent)) as meter:
        pass
    assert "no power here: [N/A]" in meter.energy(1).note
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with energy.Meter(device) as meter:
        pass
    assert "not installed" in meter.energy(1).note


def test_the_gpu_that_cuda_sees(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert energy.selector("cuda:3") == "3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-7f, 2")
    assert energy.selector("cuda:0") == "GPU-7f" and energy.selector("cuda:1") == "2"


def test_stopwatch_stages_become_stages():
    watch = Stopwatch()
    for _ in range(3):
        with watch("a"), watch("b"):
            pass
    found = records.stages_of(watch)
    assert {s.name: s.count for s in found} == {"a": 3, "b": 3} and all(s.seconds >= 0 for s in found)
