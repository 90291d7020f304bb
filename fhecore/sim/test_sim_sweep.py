"""FFT iterations as the library states them, runs beside composed times, and whose kernels were traced."""

from __future__ import annotations

import gzip
import json

import pytest

from fhecore.sim import archive, bootstrapping, ingest, pages, params, report, schedules, sweep, workloads


@pytest.fixture(scope="module")
def stated():
    """Of a toy ring; boot40's takes minutes."""
    crenel = pytest.importorskip("crenel")
    try:
        crenel.Device(schedules.DEVICE)
    except crenel.DeviceError as error:
        pytest.skip(str(error))
    return sweep.sweep("toy-boot40", ((2, 2), (3, 3), (5, 3)))


def test_every_kernel_of_a_sweep_has_a_cost(stated, tmp_path):
    """A fusion that comes later is one to leave off: its kernels are in no profile."""
    folder = archive.unpack(archive.COMMITTED, tmp_path)
    with gzip.open(folder / "bootstrap.csv.gz", "rt") as file:
        text = file.read()
    records = json.loads((folder / "bootstrap.account.json").read_text())["records"]
    rows = bootstrapping.sweep(stated, bootstrapping.costs(text, records), {})
    assert [(r["coeff_to_slot"], r["slot_to_coeff"]) for r in rows] == [(2, 2), (3, 3), (5, 3)]
    assert all(r["base"] == r["with"] > 0 and r["us"] > 0 for r in rows)
    assert stated["off"] == list(schedules.LATER)
    assert rows[0]["levels_left"] > rows[1]["levels_left"]  # a factor out of the slots is a level


def test_more_factors_than_the_library_has_are_refused(stated):
    from crenel.errors import ParameterError

    with pytest.raises(ParameterError, match="6 factors, expected .* in at most 5"):
        sweep.sweep("toy-boot40", ((6, 3),))
    assert {row["coeff_to_slot"] for row in json.loads(sweep.FILE.read_text())["sweep"]} == {2, 3, 4, 5}


def test_stages_are_all_in_some_factor():
    for log_slots in (9, 14, 15):
        for factors in range(1, 6):
            own = sweep.parts(log_slots, factors)
            assert sum(own) == log_slots and len(own) == factors and max(own) - min(own) <= 1


def test_a_sweep_is_kept_as_it_is(tmp_path):
    found = {"kind": "fhecore-fft-sweep", "sweep": [{"kernels": sweep.summed([
        {"kernel": "b", "work": "ntt", "limbs": 3, "polys": 2, "multiply_adds": 5},
        {"kernel": "a", "work": "copy", "limbs": 3, "polys": 2, "multiply_adds": 0},
        {"kernel": "b", "work": "ntt", "limbs": 1, "polys": 2, "multiply_adds": 6},
    ])}]}  # fmt: skip
    assert found["sweep"][0]["kernels"] == {"b": [2, 8, 11]}
    assert json.loads(sweep.text(found)) == found


def run(params_name, date, us, device="NVIDIA H100, compute capability 9.0", **more):
    row = {"name": "network", "network": "resnet20", "batch": 1, "graph": False, "correct": True,
           "activation": "relu 63 x 19", "params": params_name, "latency_us": us} | more  # fmt: skip
    of = {"device_description": device, "date": date, "commit": f"c{date}"}
    return {"provenance": of, "results": [row]}


def test_runs_on_other_cards_stand_beside_composed_times(tmp_path):
    """The newest with the composed set, whatever is newer of another; none of the H200, which judges."""
    files = [
        run("boot35", "1", 5.0), run("boot35", "2", 6.0), run("boot40", "3", 7.0),
        run("boot35", "4", 1.0, "NVIDIA H200, compute capability 9.0"),
        run("boot35", "5", 2.0, correct=False),
        run("boot35", "6", 3.0, activation="relu 15,15,27 x 19"), run("boot35", "7", 4.0, simulated=True),
        run("boot35", "8", 8.0, "AMD EPYC"), run("boot35", "9", 9.0, graph=True),
    ]  # fmt: skip
    for k, file in enumerate(files):
        (tmp_path / f"workload-{k}.json").write_text(json.dumps(file))
    found = workloads.elsewhere("resnet20", "boot35", tmp_path)
    assert found == {"us": 6.0, "device": "NVIDIA H100", "params": "boot35", "commit": "c2"}
    assert workloads.elsewhere("resnet20", "boot50", tmp_path)["us"] == 7.0  # the newest of another set
    assert workloads.elsewhere("lr", "boot35", tmp_path) is None
    assert "6.0 on an NVIDIA H100, boot35, commit c2 (composed +50.0 %)" in report.beside_run(
        {**found, "us": 6e3}, 9e3, "boot35"
    )
    assert "(another set)" in report.beside_run(found, 9.0, "boot30")


def test_the_traces_say_of_which_commit_they_are(tmp_path):
    """By what the collection wrote, else by the commit that its archive came with."""
    before = tmp_path / "session.json"
    old = {"sha256": "x", "archived": {"commit": "a" * 40, "date": "2026-01-02"}, "facts": {"gpu": "G, 1"}}
    before.write_text(json.dumps(old))
    assert ingest.session("x", {"facts": {}}, before)["archived"] == old["archived"]
    assert "archived" not in ingest.session("another", {"facts": {}}, before)
    assert "archived" not in ingest.session("x", {"facts": {"commit": "b"}}, before)
    assert "came with commit `aaaaaaaaaa` of 2026-01-02 (G)" in pages.BLOCKS["traced"](tmp_path)
    facts = {"gpu": "G, 1", "commit": "b" * 40, "date": "2026-03-04T05:06:07"}
    before.write_text(json.dumps(ingest.session("x", {"facts": facts}, before)))
    assert "are of commit `bbbbbbbbbb` of 2026-03-04 (G)" in pages.BLOCKS["traced"](tmp_path)
    assert pages.BLOCKS["traced"](tmp_path / "none") == f"{report.NOT}\n"
    kept = json.loads((params.DATA / "session.json").read_text())
    assert kept["kind"] == "fhecore-session" and kept["archived"]["commit"][:10] in pages.BLOCKS["traced"](
        params.DATA
    )
