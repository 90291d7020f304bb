"""What several GPUs would bring: the model against the account of simulated ones, and its own laws."""

from __future__ import annotations

import json

import pytest
from conftest import toy
from pool_world import require, seeded
from tfhe_world import quiet

import crenel
from crenel import _crenel, analyze, ckks, gpus, tfhe
from crenel.cli import gpus as command
from crenel.cli import gpus_gates, main
from crenel.launch_times import LaunchTimes, load_launch_times, work

CEILINGS, LINKS, TIMES = analyze.load_ceilings(), gpus.load_links(), load_launch_times()
FREE = LaunchTimes({}, (0.0, 1.0), 0.0)  # launches that take what their work does


def record(**fields):
    sums = ("read_bytes", "written_bytes", "streamed_bytes", "multiply_adds", "butterflies")
    empty = dict.fromkeys(sums, 0)
    return {"kernel": "k", "work": "ntt", "stage": "", "limbs": 8, "polys": 1, **empty, **fields}


def several(*launches):
    """As several GPUs queue them; what one does is not asked for."""
    return gpus.Accounts([], launches)


@pytest.fixture(scope="module")
def one():
    """A bootstrap of one dry GPU: records, N, bytes in and out."""
    require(["cuda:dry"])
    context = ckks.Context(toy("toy-boot40"), device="cuda:dry")
    client = context.keygen()
    boot = context.bootstrapper(client.evaluation_keys(bootstrap=True))
    a = client.encrypt([0.5], level=boot.levels.input)
    result = boot(a)
    with crenel.profile(context) as account:
        boot(a)
    return account.records(), 2 * context.params.slots, a.nbytes, result.nbytes


@pytest.mark.parametrize("count", [2, 3, 8])
def test_simulated_gpus_move_and_compute_what_the_model_says(one, count):
    records, _, bytes_in, bytes_out = one
    pool = ckks.DevicePool(toy("toy-boot40"), [f"cuda:dry:{i}" for i in range(count)])
    client = pool.context.keygen()
    boot = pool.evaluator(client.evaluation_keys(bootstrap=True)).bootstrapper()
    inputs = [client.encrypt([0.5], level=boot.levels.input) for _ in range(2 * count)]
    boot(inputs)
    accounts = [crenel.Account() for _ in pool.contexts]
    for account, context in zip(accounts, pool.contexts, strict=True):
        account.attach(context)
    boot(inputs)
    moved, alone = (
        0,
        [r for r in records if r["work"] != "copy"],
    )  # of those into graphs there may be one less
    for account in accounts:
        found = account.records()
        copies = [r for r in found if r["kernel"] == "copy_peer"]
        moved += sum(r["written_bytes"] for r in copies)
        work = [r for r in found if r["work"] != "copy"]
        assert len(work) == 2 * len(alone)
        bound = analyze.total(work, CEILINGS).bound
        # The second one finds in the caches what the first one left there.
        assert bound == pytest.approx(2 * analyze.total(alone, CEILINGS).bound, rel=0.05)
        account.detach()
    bound = analyze.total(records, CEILINGS).bound
    model = gpus.spread(bound, bytes_in, bytes_out, count, 2, LINKS)
    assert (model.batch, model.peer_bytes) == (2 * count, moved)
    assert model.compute == pytest.approx(2 * bound)
    assert 1 < model.speedup < count and model.rate == pytest.approx(model.speedup / bound)


def test_rates_of_links_are_those_measured_and_between():
    for curve, seconds in ((LINKS.copies, LINKS.copied), (LINKS.stores, LINKS.stored)):
        for size, rate in curve:
            assert seconds(size) == pytest.approx(size / rate)
        assert [rate for _, rate in curve] == sorted(rate for _, rate in curve)
        assert seconds(curve[0][0] / 4) == pytest.approx(curve[0][0] / 4 / curve[0][1])
        assert seconds(curve[-1][0] * 4) == pytest.approx(curve[-1][0] * 4 / curve[-1][1])
        assert seconds(0) == 0
        rng = seeded()
        sizes = sorted(rng.uniform(1e4, 1e9, 100))
        assert [seconds(s) for s in sizes] == sorted(seconds(s) for s in sizes)


def test_divided_limbs_on_one_gpu_are_its_launches(one):
    records, ring_dim, _, _ = one
    both = gpus.Accounts(records, [])
    for way in ("gathered", "aggregated"):
        alone = gpus.divided(both, ring_dim, 1, way, CEILINGS, LINKS, TIMES)
        least = sum(TIMES.seconds(r, CEILINGS) for r in records)
        assert alone.latency == alone.overlapped == alone.least == pytest.approx(least)
        assert alone.exchanges == alone.peer_bytes == 0


def test_divided_limbs_of_launches_counted_by_hand():
    inverse = record(kernel="column_inverse", stage="x/mod_up", limbs=10, written_bytes=10 * 4096)
    convert = record(kernel="base_convert", work="base_conversion", stage="x/mod_up", limbs=13, polys=3)
    keys = record(kernel="key_switch_rows", work="key_multiply", stage="x/key_switch", limbs=13, polys=2)
    down = record(kernel="column_inverse", stage="x/divide", limbs=3, polys=2)
    launches = [inverse, convert, keys, down]
    queued = several(*launches)
    gathered = gpus.divided(queued, 1024, 4, "gathered", CEILINGS, LINKS, FREE)
    sent = [10 * 4096 * 3 // 4, 6 * 4096 * 3 // 4]
    assert (gathered.exchanges, gathered.peer_bytes) == (2, sum(sent))
    assert gathered.links == pytest.approx(sum(LINKS.stored(s) + LINKS.barrier for s in sent))
    assert gathered.compute == pytest.approx(4 * CEILINGS.launch)  # they are so small
    constant = LaunchTimes({"base_convert": (4e-6, 1.0)}, (3e-6, 1.0), 1e-6)  # which do not divide
    slower = gpus.divided(queued, 1024, 4, "gathered", CEILINGS, LINKS, constant)
    needs = sum(work(r, CEILINGS) for r in launches)
    assert 3 * 2e-6 + 3e-6 < slower.compute < 3 * 2e-6 + 3e-6 + needs
    aggregated = gpus.divided(queued, 1024, 4, "aggregated", CEILINGS, LINKS, FREE)
    assert (aggregated.exchanges, aggregated.peer_bytes) == (2, 26 * 4096 * 3 // 4 + sent[1])


def test_parts_of_evalmod_lie_apart():
    """Each on half of the GPUs: half of the work, the same keys, own exchanges, and a way there and back."""
    sums = {"read_bytes": 10 << 20, "streamed_bytes": 4 << 20, "written_bytes": 8 << 20}
    before = record(kernel="column_inverse", stage="coeff_to_slot/mod_up", limbs=10, written_bytes=40960)
    inside = [record(kernel="column_inverse", stage="eval_mod/mod_up", limbs=8, polys=2, **sums)] * 2
    queued = [before, *inside]

    def found(gpu_count, apart):
        accounts = gpus.Accounts([], queued, apart=apart)
        return gpus.launches(accounts, 1024, gpu_count, "gathered", CEILINGS, FREE)

    two, four = found(2, True), found(4, True)
    assert [(x.group, x.whole, x.moved) for x in two] == [
        (2, 40960, 0), (1, 8 * 4096, 0), (1, 8 * 4096, 0), (2, 0, 8 * 4096), (2, 0, 8 * 4096),
    ]  # fmt: skip
    assert [x.sent for x in two] == [20480, 0, 0, 32768, 32768]
    assert [(x.group, x.sent) for x in four[1:]] == [(2, 16384), (2, 16384), (4, 16384), (4, 16384)]
    half = dict(inside[0], polys=1, read_bytes=7 << 20, written_bytes=4 << 20)
    assert two[1].seconds == pytest.approx(FREE.seconds(half, CEILINGS))
    for counts, apart in (((3, 5), True), ((2, 4), False)):
        for count in counts:
            assert [(x.group, x.moved) for x in found(count, apart)] == [(count, 0)] * 3
    assert (
        len(gpus.launches(gpus.Accounts([], [before], apart=True), 1024, 2, "gathered", CEILINGS, FREE)) == 1
    )


def test_two_gpus_queue_evalmod_as_one_does():
    """Each has a part of it by itself; four have pairs, which exchange what a division drops."""
    before, after = record(stage="coeff_to_slot"), record(stage="slot_to_coeff")
    alone = [record(kernel=name, stage="eval_mod/divide") for name in ("a", "b")]
    again = [record(kernel=name, stage="eval_mod/divide") for name in ("d", "e")]
    together = [record(kernel=name, stage="eval_mod/divide") for name in ("a", "b", "c")]
    one = [*alone, after, *again]  # EvalMod twice, as with two iterations
    accounts = gpus.Accounts(one, [before, *together, after, *together, after], apart=True, alone=True)
    assert accounts.of(1, True) == one
    assert accounts.of(2, True) == [before, *alone, after, *again, after]
    assert accounts.of(4, True) == accounts.of(2, False) == accounts.several
    assert gpus.Accounts(one, accounts.several, apart=True).of(2, True) == accounts.several
    # aggregated sums lay nothing apart
    queued = gpus.launches(accounts, 1024, 2, "aggregated", CEILINGS, FREE)
    assert len(queued) == len(accounts.several)


def test_divided_work_rounds_up():
    """13 limbs on 4 GPUs take as long as 16 do; 3 digits on 2 GPUs as long as 4."""
    big = {"read_bytes": 1 << 30, "written_bytes": 0}

    def taken(launch, share):
        return TIMES.seconds(dict(launch, read_bytes=int((1 << 30) * share)), CEILINGS)

    thirteen = record(kernel="column_forward", limbs=13, **big)
    found = gpus.divided(several(thirteen), 1024, 4, "gathered", CEILINGS, LINKS, TIMES).compute
    assert found == pytest.approx(taken(thirteen, 4 / 13))
    convert = record(kernel="base_convert", work="base_conversion", stage="mod_up", polys=3)
    keys = record(kernel="key_switch_rows", work="key_multiply", stage="key_switch", limbs=12, **big)
    found = gpus.divided(several(convert, keys), 1024, 2, "aggregated", CEILINGS, LINKS, TIMES).compute
    alone = gpus.divided(several(convert), 1024, 2, "aggregated", CEILINGS, LINKS, TIMES).compute
    assert found - alone == pytest.approx(taken(keys, 2 / 3))


def test_more_gpus_are_no_slower_where_links_cost_nothing(one):
    records, ring_dim, _, _ = one
    both = gpus.Accounts(records, records)
    for way in ("gathered", "aggregated"):
        found = [gpus.divided(both, ring_dim, n, way, CEILINGS, LINKS, TIMES) for n in (1, 2, 4, 8, 16)]
        least = [row.least for row in found]
        assert least == sorted(least, reverse=True)
        for row in found:
            assert row.least <= row.overlapped <= row.latency
            assert row.latency == pytest.approx(row.compute + row.links)


def test_the_command_prints_and_writes(tmp_path, capfd):
    require(["cuda:dry"])
    file = tmp_path / "gpus.json"
    call = ["gpus", "toy-boot40", "--gpus", "1,4", "--each", "8", "--json", str(file)]
    assert main([*call, "--measured-ms", "2.5"]) == 0
    out = capfd.readouterr().out
    assert "2.50 ms (measured)" in out and "gathered" in out and "aggregated" in out
    written = json.loads(file.read_text())
    assert [row["gpus"] for row in written["spread"]] == [1, 4]
    assert written["spread"][1]["batch"] == 32 and written["one"]["seconds"] == pytest.approx(0.0025)
    assert "planned" not in written and written["one"]["model"] > written["one"]["bound"]
    plan = tmp_path / "plan.json"
    assert main(["gpus", "toy-boot40", "--domain", "2,72", "--hosts", "1,3", "--json", str(plan)]) == 0
    assert "72" in capfd.readouterr().out
    rows = json.loads(plan.read_text())["planned"]["rows"]
    assert [(r["domain"], r["hosts"], r["assumed"]) for r in rows] == [
        *[(2, 1, False), (2, 3, True), (72, 1, True), (72, 3, True)],
    ]
    assert main(call) == 2 and "expected a new file" in capfd.readouterr().err
    for wrong in (["--gpus", "0"], ["--gpus", "two"], ["--measured-ms", "-1"]):
        assert main(["gpus", "toy-boot40", *wrong]) == 2
        assert "expected" in capfd.readouterr().err
    for option, most in (("--gpus", 72), ("--each", 1 << 20), ("--hosts", 1024), ("--domain", 72)):
        for count in (most + 1, 10**18):
            assert main(["gpus", "toy-boot40", "--domain", "8", option, str(count)]) == 2
            assert f"{count}, expected at most {most}" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["toy-boot40", "bool128"])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--measured-ms", "1e-320"], "--measured-ms 1e-320, expected 0.001 to 1e+09"),
        (["--measured-ms", "0.0009"], "expected 0.001 to 1e+09"),
        (["--measured-ms", "1e300"], "expected 0.001 to 1e+09"),
        (["--measured-ms", "nan"], "expected 0.001 to 1e+09"),
        (["--hosts", "1,2,4,8"], "--hosts 1,2,4,8 without --domain, expected both"),
        (["--link", "infiniband"], "--link infiniband without --domain, expected both"),
    ],
)
def test_options_that_mean_nothing_are_refused(name, words, says, tmp_path, capfd):
    file = tmp_path / "x.json"
    assert main(["gpus", name, *words, "--json", str(file)]) == 2
    assert says in capfd.readouterr().err and not file.exists()


@pytest.mark.parametrize("name", ["toy-boot40", "bool128"])
def test_records_have_finite_numbers_alone(name, tmp_path, capfd):
    require(["cuda:dry"])

    def refuse(word):
        raise AssertionError(word)

    for measured in ("0.001", "1e9"):
        file = tmp_path / f"{measured}.json"
        assert main(["gpus", name, "--gpus", "2", "--measured-ms", measured, "--json", str(file)]) == 0
        json.loads(file.read_text(), parse_constant=refuse)


def test_the_accounts_of_the_command_are_of_one_and_of_several_gpus(one):
    """On several GPUs divisions read what a key switch wrote: both passes follow it, which one GPU saves, as
    does each of two in EvalMod, where nothing is exchanged."""

    def passes(records):
        return sum(r["kernel"] == "row_inverse" for r in records)

    found = command._account("toy-boot40").accounts
    assert passes(found.several) > passes(found.one) == passes(one[0])
    assert list(found.of(1, True)) == list(found.one) and list(found.of(4, True)) == list(found.several)
    assert passes(found.one) < passes(found.of(2, True)) < passes(found.several)


def test_the_command_of_gates(tmp_path, capfd):
    require(["cuda:dry"])
    file = tmp_path / "gates.json"
    assert main(["gpus", "bool128", "--gpus", "1,2,8", "--json", str(file)]) == 0
    assert "tfhe.DevicePool" in capfd.readouterr().out
    written = json.loads(file.read_text())
    known = analyze.data()["gates"]["sets"]["bool128"]
    one, two, eight = written["spread"]
    assert (one["rate"], one["speedup"]) == (pytest.approx(known["rate"]), pytest.approx(1))
    assert (two["batch"], two["peer_bytes"]) == (2 * known["size"], 3 * written["one"]["nbytes"])
    assert eight["peer_bytes"] == 7 * two["peer_bytes"] and 1 < two["speedup"] < 2 < eight["speedup"] < 8
    call = ["gpus", "toy-lut4", "--gpus", "2", "--each", "7"]
    assert main([*call, "--measured-ms", "3"]) == 0 and "7 gates in 3.00 ms" in capfd.readouterr().out
    assert main(call) == 2 and "expected --measured-ms, or a set of bool128" in capfd.readouterr().err
    assert main(["gpus", "bool128", "--domain", "8"]) == 2
    assert "--domain 8, expected none with a set of TFHE" in capfd.readouterr().err
    assert main(["gpus", "bool128", "--json", str(file)]) == 2
    assert "expected a new file" in capfd.readouterr().err


@pytest.mark.parametrize(("count", "packing"), [(2, 1), (3, 1), (5, 1), (3, 4)])
def test_a_simulated_pool_of_tfhe_moves_what_the_model_says(count, packing, monkeypatch):
    """Keys are made on the CPU: a model of a GPU computes none."""
    require(["cuda:dry"])
    each = packing * int(seeded().integers(1, 40))
    name = "toy-gadget" if packing > 1 else "toy-lut4"
    params = tfhe.preset(name, allow_insecure=True)
    client = quiet(lambda: tfhe.Context(params, "cpu", packing=packing)).keygen()
    names = [f"cuda:dry:{i}" for i in range(count)]
    pool = quiet(lambda: tfhe.DevicePool(params, names, packing=packing))
    home = pool.context
    keys = home.evaluation_keys_from_bytes(client.evaluation_keys().to_bytes())
    ev = pool.evaluator(keys, max_p_fail_log2=0)
    assert keys.nbytes == home.key_bytes() and ev.replication.nbytes == (count - 1) * keys.nbytes
    assert list(ev.replication.roads) == ["peer"] * (count - 1)
    a, b = (home.ciphertext_from_bytes(client.encrypt([True] * each * count).to_bytes()) for _ in range(2))
    moved = []
    original = _crenel.copy_to
    monkeypatch.setattr(_crenel, "copy_to", lambda to, what: moved.append(what.nbytes) or original(to, what))
    result = ev.nand(a, b)
    assert result.shape == (each * count,) and result.nbytes == a.nbytes
    gates = gpus_gates.account(params, each, packing)
    assert gates.nbytes * count == a.nbytes and gates.keys == keys.nbytes
    model = gpus.spread_gates(1e-3, gates.nbytes, count, each, LINKS, CEILINGS)
    assert moved == [gates.nbytes] * (3 * (count - 1))  # whole shares, which the model takes the rate of
    assert (model.batch, model.peer_bytes) == (each * count, sum(moved))
    assert 1 < model.speedup < count and model.compute == 1e-3
    # Every GPU has keys of its own, and what it worked on: no less than its share.
    held = [device.pools() for device in pool.devices]
    assert all(pools.peak >= keys.nbytes + 3 * gates.nbytes for pools in held)
    assert max(pools.in_use for pools in held[1:]) < held[0].in_use


def test_copies_of_gates_by_hand():
    found = gpus.spread_gates(0.2, 2 << 20, 4, 1000, LINKS, CEILINGS)
    assert found.copies == pytest.approx(9 * LINKS.copied(2 << 20))
    assert found.within == pytest.approx(12 * 2 * (2 << 20) / CEILINGS.dram)
    assert found.rate == pytest.approx(4000 / (0.2 + found.copies + found.within))
    alone = gpus.spread_gates(0.2, 2 << 20, 1, 1000, LINKS, CEILINGS)
    assert (alone.copies, alone.within, alone.peer_bytes, alone.rate) == (0, 0, 0, pytest.approx(5000))


def test_the_benchmark_of_pools(tmp_path, capfd):
    file = tmp_path / "pool.json"
    call = ["bench", "pool", "--devices", "cpu,cpu", "--set", "toy-boot40", "--gates", "toy-lut4"]
    call += ["--each", "1"]
    call += ["--size", "8", "--repeats", "1", "--together", "2", "--allow-insecure", "--json", str(file)]
    assert main(call) == 0
    assert "times one device" in capfd.readouterr().out
    rows = json.loads(file.read_text())["results"]
    rates = [row for row in rows if "rate" in row]
    assert [(row["name"], row["devices"]) for row in rates] == [
        *[("bootstrap", 1), ("bootstrap", 1), ("bootstrap", 2)],
        *[("nand", 1), ("nand", 2)],
    ]
    assert all(row["same_bits"] for row in rates)
    keys = [row for row in rows if "copies" in row]
    assert all(row["copies"] == 1 and row["bytes"] > 0 and len(row["memory"]) == 2 for row in keys)
    for wrong in (["--devices", ","], ["--devices", "cpu", "--together", "x"], ["--devices", "abacus"]):
        assert main(["bench", "pool", *wrong, "--set", "toy-boot40", "--allow-insecure"]) == 2
        capfd.readouterr()
