"""Several GPUs as measured, beside the model; and what GPUs beyond one host would do, by its own laws."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from pool_world import require, seeded

from crenel import analyze, gpus, hosts, tfhe
from crenel.cli import gpus as command
from crenel.cli import main
from crenel.errors import ParameterError
from crenel.launch_times import fitted, load_launch_times, records_of, rows, work

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from report import gpus as measured  # noqa: E402
from report import gpus_plan  # noqa: E402

GUIDE = ROOT / "docs/guide/gpus.md"
PLAN = ROOT / "docs/reference/gpus-beyond-a-host.md"
DECISION = ROOT / "docs/design/0016-several-devices.md"
COUNTED = ROOT / "bench/results/launches-boot40-h200.json"
CEILINGS, TIMES = analyze.load_ceilings(), load_launch_times()


def counted():
    data = json.loads(COUNTED.read_text())
    us = data["columns"].index("us")
    return data, records_of(data["columns"], data["launches"]), [1e-6 * row[us] for row in data["launches"]]


def test_no_record_is_farther_from_the_model_than_stated():
    found = measured.compared()
    for c in found:
        off = "" if c.deviation is None else f"{100 * c.deviation:+.2f} %"
        print(
            f"{c.file}: {c.gpus} x {c.card}, {c.what}: {c.measured} {c.unit}, model {c.model}{off}{c.why_not}"
        )
    for unit, most in measured.AT_MOST.items():
        assert 0 < measured.worst(found, unit) <= most


def test_every_record_of_several_gpus_is_compared_or_says_why_not():
    found = measured.compared()
    files = {
        f.name for pattern in ("pool-*.json", "split-*.json") for f in (ROOT / "bench/results").glob(pattern)
    }
    assert {c.file for c in found} == {
        f for f in files if not f.startswith("pool-") or not measured.of_parts(f)
    }
    assert all((c.model is None) == bool(c.why_not) for c in found)
    assert [c.date for c in found] == sorted((c.date for c in found), reverse=True)
    assert any(c.gpus == 2 and c.what.startswith("bootstrap, by") and c.model for c in found)
    # Every record of several GPUs has a figure beside it: of another card than the counted one how many times
    # faster it is than one of its own.
    several = [c for c in found if c.what.startswith("bootstrap") and c.gpus > 1]
    without = {c.file for c in several if "events" in c.what or "together" in c.what}
    assert {c.file for c in several if c.model} | without == {c.file for c in several}
    assert {c.gpus for c in found if c.what.startswith("gates")} == {2, 4}


def test_the_newest_of_each_card_is_told(monkeypatch):
    def record(file, date, card, two, model, of="us"):
        head = (file, date, card)
        yield measured.Compared(*head, 1, "bootstrap", "us", 8000.0, None, "elsewhere")
        yield measured.Compared(*head, 2, "bootstrap, by kernels", "us", two, model, "" if model else "why")
        yield measured.Compared(*head, 2, "bootstrap, by kernels", "faster", 8000.0 / two, 1.3)

    found = [
        *record("old.json", "2026-01-01T09:00", "NVIDIA H200", 4000.0, 4100.0),
        *record("new.json", "2026-02-03T09:00", "NVIDIA H200", 5000.0, 5100.0),
        *record("newest.json", "2026-03-03T09:00", "NVIDIA H100", 6400.0, None),
        *record("slower.json", "2026-03-03T11:00", "NVIDIA H100", 6600.0, None),
    ]
    found.sort(key=lambda c: (c.date, c.file), reverse=True)
    monkeypatch.setattr(measured, "compared", lambda: found)
    first, second = measured.newest().split("\n\n")
    assert first.startswith("Newest: a bootstrap of `boot40` on 2 x NVIDIA H100") and "`newest.json`" in first
    assert "**1.25 times**" in first.replace("\n", " ") and "as timed on the NVIDIA H200" in first.replace(
        "\n", " "
    )
    assert second.startswith("Newest of 2 x NVIDIA H200") and "`new.json`" in second and "old" not in second


def test_the_rate_of_gates_is_that_of_its_record():
    for name, known in analyze.data()["gates"]["sets"].items():
        record = json.loads((ROOT / known["source"]).read_text())
        row = next(
            r for r in record["results"] if (r["name"], r["params"], r.get("devices")) == ("nand", name, 1)
        )
        assert record["provenance"]["device_description"].startswith(analyze.load_ceilings().device)
        assert row["params_id"] == tfhe.preset(name).id
        assert known["rate"] == pytest.approx(row["rate"], rel=1e-6) and known["size"] == row["things"]


def test_the_counted_launches_are_of_the_earlier_forms():
    """What the times of kernels are fitted to, and what records of before are compared with."""
    data, records, _ = counted()
    assert list(measured.accounts("bootstrap", "earlier").one) == records


def test_accounts_of_today_are_those_of_the_command():
    """They are renewed with the library: what pages say of today's launches is of today's."""
    require(["cuda:dry"])
    found = command._account("boot40").accounts
    kept = measured.accounts("bootstrap")
    for mine, theirs in ((found.one, kept.one), (found.several, kept.several)):
        assert rows(mine) == rows(theirs), "run tools/fit_launches.py accounts, and crenel gpus"


def test_launch_times_are_those_of_the_counted_launches():
    data, records, took = counted()
    found = fitted(records, took, 1e-6 * data["whole_us"], CEILINGS)
    assert set(found.by_kernel) == set(TIMES.by_kernel)
    for kernel, (fixed, factor) in found.by_kernel.items():
        assert TIMES.by_kernel[kernel] == (pytest.approx(fixed, abs=1e-9), pytest.approx(factor, abs=1e-4))
        assert fixed > 0 and factor >= 0
    assert TIMES.rest == (pytest.approx(found.rest[0], abs=1e-9), pytest.approx(found.rest[1], abs=1e-4))
    assert pytest.approx(found.ahead, abs=1e-9) == TIMES.ahead
    whole = sum(gpus.shares(records, 1, "gathered", CEILINGS, TIMES))
    assert whole == pytest.approx(1e-6 * data["whole_us"], rel=2e-3)
    # Kernel by kernel: what they were counted at, all together.
    by_kernel = {}
    for record, seconds in zip(records, took, strict=True):
        sums = by_kernel.setdefault(record["kernel"], [0.0, 0.0])
        sums[0] += TIMES.seconds(record, CEILINGS) + TIMES.ahead
        sums[1] += seconds
    for kernel, (model, seconds) in by_kernel.items():
        assert model == pytest.approx(seconds, rel=0.03), kernel


def test_a_fit_finds_what_launches_were_made_of():
    rng = seeded()
    empty = dict.fromkeys(("streamed_bytes", "repeated_bytes", "multiply_adds", "butterflies"), 0)
    records, took = [], []
    truth = {name: (rng.uniform(3e-6, 9e-6), rng.uniform(0.5, 3)) for name in "ab"}
    for kernel, (fixed, factor) in truth.items():
        for size in 1e5 * 4.0 ** np.append(rng.uniform(0, 3, 18), [0, 3]):  # the memory is no limit
            record = {"kernel": kernel, "work": "ntt", "stage": "", "limbs": 1, "polys": 1, **empty}
            record |= {"read_bytes": int(size), "written_bytes": int(size)}
            records.append(record)
            took.append(fixed + factor * work(record, CEILINGS))
    one = dict(records[0], kernel="seldom", read_bytes=1 << 20, written_bytes=0)
    records.append(one)
    took.append(2e-5)
    found = fitted(records, took, sum(took) - 41 * 5e-7, CEILINGS)
    for kernel, line in truth.items():
        assert found.by_kernel[kernel] == pytest.approx(line, rel=1e-6)
    assert found.rest[0] == pytest.approx((truth["a"][0] + truth["b"][0]) / 2)
    fixed, factor = found.by_kernel["seldom"]
    assert fixed + factor * work(one, CEILINGS) == pytest.approx(2e-5)
    assert found.ahead == pytest.approx(5e-7, rel=1e-3)
    spread = dict(one, kernel="a_spread")
    assert found.seconds(spread, CEILINGS) == found.seconds(dict(one, kernel="a"), CEILINGS)
    keys = found.seconds(dict(one, streamed_bytes=int(1e9)), CEILINGS)
    assert keys == pytest.approx(1e9 / CEILINGS.dram_read - found.ahead)


def computed(name: str, text: str, page: Path = GUIDE) -> None:
    head, rest = page.read_text().split(f"<!-- computed {name} -->\n")
    wanted = f"{head}<!-- computed {name} -->\n\n{text}\n{rest[rest.index('<!-- /computed -->') :]}"
    if os.environ.get("CRENEL_UPDATE_DOCS"):
        page.write_text(wanted)
    assert page.read_text() == wanted, "run this test with CRENEL_UPDATE_DOCS=1"


@pytest.mark.generated
def test_tables_of_the_guide():
    computed("predictions", measured.predicted_table())
    computed("gates", measured.gates_table())
    computed("parts", measured.parts_table())
    computed("measured", f"{measured.newest()}\n{measured.measured_table()}")


@pytest.mark.generated
def test_page_of_gpus_beyond_a_host():
    text = gpus_plan.page()
    if os.environ.get("CRENEL_UPDATE_DOCS"):
        PLAN.write_text(text)
    assert PLAN.read_text() == text, "run this test with CRENEL_UPDATE_DOCS=1"
    computed("across", gpus_plan.across(), DECISION)


def test_the_model_of_the_pages_is_of_the_rates_that_are_loaded():
    """After a change of ceilings.json the record has to be made again."""
    data = json.loads((ROOT / "bench/results" / gpus_plan.MODEL).read_text())
    assert data["links"] == analyze.data()["links"]
    network = hosts.load_network(data["planned"]["link"])
    one = data["one"]
    for row in data["planned"]["rows"]:
        sizes = one["model"], one["bytes_in"], one["bytes_out"], row["domain"], row["hosts"]
        assert row["rate"] == pytest.approx(hosts.throughput(*sizes, data["planned"]["each"], network))
    kept = measured.accounts("bootstrap")
    assert [len(kept.one), len(kept.several)] == [one["launches"], one["launches_of_several"]]
    again = gpus.divided(kept, one["ring_dim"], 2, "gathered", CEILINGS, gpus.load_links(), TIMES).latency
    two = next(r for r in data["divided"] if (r["gpus"], r["way"]) == (2, "gathered"))
    assert again == pytest.approx(two["latency"], rel=1e-6)


def plan(domain, count, network="infiniband"):
    data = measured._loaded(measured.ACCOUNTS)
    rest = 32, hosts.load_network(network), CEILINGS, TIMES
    return hosts.plan(
        measured.accounts("bootstrap"), data["ring_dim"], measured.BYTES, (domain, count), *rest
    )


def test_one_domain_is_the_model_of_one_host():
    for count in (1, 2, 4, 8):
        found = plan(count, 1)
        same = measured.latency("bootstrap", "today", count)
        assert 1e6 * found.latency == pytest.approx(same) and found.latency == found.nccl
        assert found.network == 0 and not found.assumed and found.gpus == count
    assert plan(72, 1).assumed and plan(2, 2).assumed


def test_of_more_domains():
    for domain in (1, 2, 8, 72):
        found = [plan(domain, count) for count in (1, 2, 4, 16)]
        assert [p.compute for p in found] == sorted((p.compute for p in found), reverse=True)
        assert [p.network for p in found] == sorted(p.network for p in found)
        one, *more = found
        assert {p.nvlink for p in more} == {more[0].nvlink}
        assert one.nvlink <= more[0].nvlink  # halves of one domain exchange less than all of it
        assert all(p.latency == pytest.approx(p.compute + p.nvlink + p.network) for p in found)
        assert all(p.nccl > p.latency for p in found[1:])
        assert all(0.9 * p.gpus < p.speedup <= p.gpus for p in found)
        faster = plan(domain, 2, "infiniband-800")
        assert faster.latency < found[1].latency and faster.rate > found[1].rate
    # By hand: one GPU a domain, all bytes of the other's limbs through one adapter; of EvalMod a part there
    # and one back.
    two, network = plan(1, 2), hosts.load_network("infiniband")
    records = measured.accounts("bootstrap").several
    inside = [r for r in records if r["stage"].startswith("eval_mod")]
    whole = [gpus.gathered_bytes(r, "gathered", 65536) for r in records if r not in inside]
    whole += [2 * r["limbs"] * 65536 * 4 for r in (inside[0], inside[-1])]
    exchanges = sum(1 for w in whole if w)
    assert two.network == pytest.approx(sum(whole) / 2 / network.rate + exchanges * network.meeting)


def test_what_no_plan_is_made_of(capfd):
    with pytest.raises(ParameterError, match="expected at most 72"):
        hosts.load_domain(73)
    with pytest.raises(ParameterError, match="infiniband"):
        hosts.load_network("nvlink")
    for wrong in (
        ["--domain", "73"],
        ["--domain", "0"],
        ["--domain", "8", "--hosts", "no"],
        ["--link", "string"],
    ):
        assert main(["gpus", "toy-boot40", *wrong]) == 2
        assert "expected" in capfd.readouterr().err


def test_every_class_of_links_has_its_source():
    for name, found in analyze.data()["links"]["classes"].items():
        assert found["source"] and isinstance(found["assumed"], bool), name
        assert "nominal" not in found or (
            found["nominal"] > 0 and 0 < found["reached"] <= 1 and found["unit"]
        )
