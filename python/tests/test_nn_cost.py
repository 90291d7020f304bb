"""Tables of costs, sizes, measuring, and ResNet-20's shape placed with them."""

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import device_names, open_context, toy
from test_nn_place import element_runs, flat, keep, ways_down

from crenel import ckks
from crenel.errors import ParameterError, SerializationError, UnsupportedError
from crenel.nn import measure as measuring
from crenel.nn import sizes
from crenel.nn.cost import OPERATIONS, BootRow, CostModel, Row, packaged_documents
from crenel.nn.passes import priced
from crenel.nn.passes.place import Bootstrap, Cut, Op, Parallel, Series, place
from crenel.nn.plan import Boot

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
H200 = "NVIDIA H200"


@pytest.fixture
def rng():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    return np.random.default_rng(seed)


def table(rows, boots=(), log_n=11, alpha=12):
    return CostModel("somewhere", log_n, alpha, tuple(Row(*r, "here") for r in rows), tuple(boots))


def cut_of(name, params, costs, slots, penalty=0.0):
    """A place for a bootstrap to the highest level."""
    level = priced.output_level(params)
    return Cut(name, (Bootstrap(f"to {level}", costs.bootstrap(params, slots, level).us, level),), penalty)


def op_of(name, depth, top, price):
    """An operation whose price by the level of its inputs is a function."""
    return Op(name, depth, (0.0,) * depth + tuple(float(price(level)) for level in range(depth, top + 1)))


# ---- look-ups


def test_between_measured_levels(rng):
    """Linear between the two nearest rows of the operation and the batch, and those rows themselves."""
    limbs = sorted(int(v) for v in rng.choice(np.arange(1, 60), 6, replace=False))
    us = [float(v) for v in rng.uniform(1, 100, 6)]
    others = [("add", n, 2, 1000.0) for n in limbs] + [("rescale", n, 1, 1000.0) for n in limbs]
    costs = table([("add", n, 1, t) for n, t in zip(limbs, us, strict=True)] + others)
    for n in range(limbs[0], limbs[-1] + 1):
        assert costs.at_limbs("add", n).us == pytest.approx(np.interp(n, limbs, us))
    assert costs.at_limbs("add", limbs[1]).how == f"add at {limbs[1]} limbs (here)"


def test_absent_rows():
    costs = table([("add", 5, 1, 10.0), ("add", 9, 1, 20.0)])
    for limbs, batch, measured in [(4, 1, [5, 9]), (10, 1, [5, 9]), (7, 2, [])]:
        with pytest.raises(
            UnsupportedError, match=f"no time of add at {limbs} limbs, batch {batch}"
        ) as error:
            costs.at_limbs("add", limbs, batch=batch)
        assert error.value.fields == {
            "operation": "add",
            "limbs": limbs,
            "batch": batch,
            "measured": measured,
        }
    with pytest.raises(UnsupportedError, match="no time of rescale .* measured nowhere"):
        costs.with_stand_ins().at_limbs("rescale", 5)
    with pytest.raises(UnsupportedError, match="at 10 limbs"):
        costs.with_stand_ins().at_limbs("add", 10)


def test_stand_ins_say_so():
    costs = table([("add", 5, 1, 10.0), ("add", 9, 1, 20.0)]).with_stand_ins()
    assert costs.at_limbs("add", 2).us == 10.0 and "for 2 limbs" in costs.at_limbs("add", 2).how
    assert costs.at_limbs("add", 7, batch=3).us == 45.0
    assert costs.at_limbs("add", 7, batch=3).how.startswith("3 times 7 limbs, between add at 5")
    assert costs.at_limbs("add", 7).how == "7 limbs, between add at 5 limbs (here) and add at 9 limbs (here)"


def test_bootstraps():
    params = toy("toy-boot40")
    boots = [
        BootRow(params.id, 1024, 0, 13, 1, 900.0, "here", "real"),
        BootRow(params.id, 256, 0, 13, 1, 700.0, "here", "real"),
        BootRow(params.id, 1024, 0, 13, 4, 2000.0, "here", "real"),
        BootRow("other", 64, 0, 13, 1, 1.0, "here", "real"),
    ]
    costs = table([], boots)
    assert costs.bootstrap(params, 256, 13).us == 700.0
    for slots, output, batch in [(512, 13, 1), (256, 9, 1), (256, 13, 4), (256, 14, 1)]:
        with pytest.raises(
            UnsupportedError, match=f"{slots} slots to level {output}, batch {batch}"
        ) as error:
            costs.bootstrap(params, slots, output, batch=batch)
        assert error.value.fields["measured"] == [256, 1024]
    loose = costs.with_stand_ins()
    assert loose.bootstrap(params, 512, 13).us == 900.0
    assert loose.bootstrap(params, 64, 9).us == 700.0
    assert loose.bootstrap(params, 256, 13, batch=4).us == 2000.0  # the batch of many slots, not 4 * 700
    assert loose.bootstrap(params, 256, 13, batch=2).us == 1400.0
    with pytest.raises(UnsupportedError, match="level 14"):
        loose.bootstrap(params, 256, 14)


def test_complex_bootstraps_stand_in_for_real_ones():
    """With the conjugation that takes the real part; without stand-ins a row of another kind is none."""
    params = toy("toy-boot40")
    limbs = sizes.limbs_at(params, 13)
    boots = [BootRow(params.id, 256, 0, 13, 1, 700.0, "here", kind) for kind in ("complex", "pair")]
    costs = table([("conjugation", limbs, 1, 5.0)], boots)
    assert costs.bootstrap(params, 256, 13, message="complex").us == 700.0
    with pytest.raises(UnsupportedError, match="message 'real'; measured: bootstrap of 256 slots, complex"):
        costs.bootstrap(params, 256, 13)
    found = costs.with_stand_ins().bootstrap(params, 256, 13)
    assert found.us == 705.0 and "and conjugation at" in found.how
    real = table([], [*boots, BootRow(params.id, 256, 0, 13, 1, 690.0, "here", "real")])
    assert real.bootstrap(params, 256, 13).us == 690.0
    with pytest.raises(ParameterError, match="no row of a cost table"):
        table([], [BootRow(params.id, 256, 0, 13, 1, 700.0, "here", "imaginary")])


def test_transforms_add_up():
    rows = [
        ("transform", 5, 1, 100.0),
        ("baby_step", 5, 1, 10.0),
        ("giant_step", 5, 1, 50.0),
        ("diagonal", 5, 1, 1.0),
    ]
    params = toy("toy-boot40")
    level = next(at for at in range(20) if sizes.limbs_at(params, at) == 5)
    found = table(rows).transform(params, level, babies=4, giants=3, diagonals=2.5)
    assert found.us == 100 + 3 * 10 + 2 * 50 + 2.5
    assert "3 baby_step: baby_step at 5 limbs" in found.how
    with pytest.raises(ParameterError, match="0 baby steps"):
        table(rows).transform(params, level, babies=0, giants=1, diagonals=1)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda c, p: c.us("multiply", p, 1), "operation 'multiply', expected one of add, "),
        (lambda c, p: c.us("add", p, 99), "level 99, expected 0 to "),
        (lambda c, p: c.us("add", toy("toy-leveled-n13-s30"), 0), "says nothing of N = 2"),
        (lambda c, p: table([("addition", 5, 1, 1.0)]), "no row of a cost table"),
        (lambda c, p: table([("add", 5, 1, math.nan)]), "no row of a cost table"),
        (lambda c, p: table([("add", 5, 1, 1.0), ("add", 5, 1, 2.0)]), "two rows of add at 5 limbs, batch 1"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(ParameterError, match=match):
        call(table([("add", 5, 1, 1.0)]), toy("toy-boot40"))


def test_documents_come_back():
    costs = CostModel.packaged(ckks.preset("boot35"), H200)
    again = CostModel.of_document(json.loads(json.dumps(costs.document())))
    assert again == costs
    for spoilt in ({}, costs.document() | {"format": 1}, costs.document() | {"rows": [["add"]]}):
        with pytest.raises(SerializationError):
            CostModel.of_document(spoilt)


# ---- the tables that come with Crenel


def test_package_data_is_rendered_from_results():
    results = Path(__file__).resolve().parents[2] / "bench/results"
    if not results.is_dir():
        pytest.skip("no bench/results beside the tests")
    import gen_costs

    assert gen_costs.FILE.read_text(encoding="utf-8") == gen_costs.rendered(), "run tools/gen_costs.py"
    suite = json.loads((results / "boot40-h200.json").read_text())
    measured = next(r for r in suite["results"] if (r["name"], r["limbs"], r["graph"]) == ("hrot", 35, True))
    costs = CostModel.packaged(ckks.preset("boot35"), H200)
    assert costs.at_limbs("rotation", 35).us == measured["latency_us"]
    assert costs.sources["boot40-h200.json"]["commit"] == suite["provenance"]["commit"]


def test_measured_tables_go_before_others():
    import gen_costs

    out = gen_costs.tables()
    before = CostModel.of_document(out[0])
    rows = [["rotation", 3, 1, 5.0, "measured", ""], ["rotation", 35, 1, 6.0, "measured", ""]]
    boots = [[before.bootstraps[0].params_id, 4096, 0, 18, 1, 7.0, "measured", "real"]]
    said = {"measured": {"date": "today"}}
    document = {
        "device": H200 + ", 139 GiB",
        "log_n": 16,
        "alpha": 12,
        "rows": rows,
        "bootstraps": boots,
        "sources": said,
    }
    gen_costs.merge(out, document, "costs-h200.json")
    after = CostModel.of_document(out[0])
    assert [r.limbs for r in after.rows if (r.operation, r.batch) == ("rotation", 1)] == [3, 35]
    assert after.at_limbs("rescale", 35) == before.at_limbs("rescale", 35)
    assert len(after.bootstraps) == len(before.bootstraps) + 1
    assert after.sources["costs-h200.json"] == {"file": "bench/results/costs-h200.json", "date": "today"}


def test_packaged_tables_are_whole():
    """Of every table and batch an operation has no times or those of all limbs but for conjugations, which
    the suite of few limbs does not time, and every row's source is said."""
    for document in packaged_documents():
        costs = CostModel.of_document(document)
        limbs = {row.limbs for row in costs.rows}
        for batch in {row.batch for row in costs.rows}:
            there = {row.limbs for row in costs.rows if row.batch == batch}
            for name in set(OPERATIONS) - {"conjugation", "add"}:
                found = {r.limbs for r in costs.rows if (r.operation, r.batch) == (name, batch)}
                assert found in (set(), there)
        assert {r.source for r in (*costs.rows, *costs.bootstraps)} == set(costs.sources)
        for row in costs.rows:
            assert row.us > 0
        ordered = [costs.at_limbs("rotation", n).us for n in sorted(limbs)]
        assert ordered == sorted(ordered)
    with pytest.raises(UnsupportedError, match=r"no table of costs for Abacus .* NVIDIA H200 at N = 2\^16"):
        CostModel.packaged(ckks.preset("boot35"), "Abacus")


def test_double_hoisting_as_its_kernels_were_timed():
    """Eight baby steps and sixteen diagonals at 47 limbs, from bytes: what the one kernel of them takes."""
    results = Path(__file__).resolve().parents[2] / "bench/results/fitted/ncu-account-h200.json"
    if not results.is_file():
        pytest.skip("no bench/results beside the tests")
    rows = json.loads(results.read_text())["rows"]
    us = next(r["us"] for r in rows if r["kernel"] == "hoisted_sums")
    costs = CostModel.packaged(ckks.preset("boot40"), H200)
    derived = 8 * costs.at_limbs("baby_step", 47).us + 16 * costs.at_limbs("diagonal", 47).us
    print(f"derived {derived:.0f} us, measured {us:.0f} us")
    assert derived == pytest.approx(us, rel=0.15)


# ---- sizes


def test_sizes_are_those_of_the_objects(rng):
    params = toy("toy-boot40")
    context = open_context(params, "cpu")
    client = context.keygen()
    for level in (0, 3, params.normal_top_level):
        keys = client.evaluation_keys(rotations={1: level}, relinearisation=False)
        assert sizes.rotation_key_bytes(params, level) == keys.nbytes
    for period in (params.slots, 16):
        values = np.tile(rng.uniform(-1, 1, (8, period)), (1, params.slots // period))
        made = context.linear_transform({k: values[k] for k in range(8)}, level=4, baby_steps=4)
        diagonals = made.baby_steps * made.giant_steps
        each = sizes.plaintext_bytes(params, 4, period=period, extended=True)
        assert diagonals * each == made.plaintext_bytes
    with pytest.raises(ParameterError, match="period 3, expected a power of two"):
        sizes.plaintext_bytes(params, 1, period=3)
    with pytest.raises(ParameterError, match="level 99"):
        sizes.rotation_key_bytes(params, 99)


# ---- measuring


def undisturbed(measure: Callable[[], CostModel], holds: Callable[[CostModel], bool]) -> CostModel:
    """Times of which `holds` is true: other work on this machine disturbs one measurement, not eight."""
    for _ in range(8):
        found = measure()
        if holds(found):
            return found
    raise AssertionError(f"times out of order in eight measurements, the last: {found.rows}")


@pytest.mark.parametrize("device", [d for d in device_names() if d != "ref"] or ["cpu"])
def test_measuring(device):
    """A table of this machine: every operation at the levels asked for, ordered as on any machine, and
    enough to place a program."""
    params = toy("toy-boot40")
    context = open_context(params, device)
    begin = time.perf_counter()
    low, high = sizes.limbs_at(params, 1), sizes.limbs_at(params, 16)

    def ordered(costs: CostModel) -> bool:
        us = {(r.operation, r.limbs): r.us for r in costs.rows}
        return (
            us["add", high] < us["product", high]
            and us["product", low] < us["product", high]
            and us["rotation", high] < costs.bootstrap(params, 64, 13).us
        )

    costs = undisturbed(
        lambda: measuring.measure(context, levels=[0, 1, 16], seconds=0.002, slots=[64]), ordered
    )
    print(f"{len(costs.rows)} rows in {time.perf_counter() - begin:.1f} s on {costs.device}")
    rows = {(r.operation, r.limbs): r.us for r in costs.rows}
    assert {name for name, limbs in rows if limbs == high} == set(OPERATIONS)
    assert {name for name, limbs in rows if limbs == sizes.limbs_at(params, 0)} == {
        "add", "rotation", "conjugation", "hoisted_rotation",
    }  # fmt: skip
    assert {r.operation for r in costs.rows if r.how} == set(measuring.DERIVED)
    assert [r.message for r in costs.bootstraps] == [Boot(64).options().message] == ["real"]
    assert CostModel.of_document(json.loads(json.dumps(costs.document()))) == costs
    chain = priced.chain(params, costs)
    cut = cut_of("cut", params, costs, 64)
    conv = op_of("conv", 9, 16, lambda at: costs.us("product", params, at))
    again = op_of("again", 9, 16, lambda at: costs.us("product", params, at))
    assert [s.name for s in place(Series((conv, cut, again)), chain).bootstraps] == ["cut"]


def test_measured_from_the_command_line(tmp_path, monkeypatch):
    """A table that the tool writes is one that the other tool takes in."""
    import gen_costs
    import measure_costs

    results = tmp_path / "bench"
    results.mkdir()
    said = ["toy-boot40", "--insecure", "--device", "cpu", "--levels", "0,3", "--seconds", "0.001"]
    with pytest.warns(ckks.InsecureParametersWarning):
        assert measure_costs.main([*said, "--to", str(results / "costs-here.json")]) == 0
    monkeypatch.setattr(gen_costs, "RESULTS", results)
    monkeypatch.setattr(gen_costs, "SOURCES", {})
    (made,) = gen_costs.tables()
    costs = CostModel.of_document(made)
    assert {r.source for r in costs.rows} == {"costs-here.json"} == set(costs.sources)
    assert costs.at_limbs("rotation", sizes.limbs_at(toy("toy-boot40"), 3)).us > 0


def test_measuring_batches():
    context = open_context(toy("toy-boot40"), "cpu")
    limbs = sizes.limbs_at(context.params, 4)
    costs = undisturbed(
        lambda: measuring.measure(context, levels=[4], batches=(4, 1), seconds=0.001),
        lambda found: found.at_limbs("product", limbs, batch=4).us > found.at_limbs("product", limbs).us,
    )
    assert {r.batch for r in costs.rows} == {1, 4}


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ({"levels": [99]}, r"levels \[99\]"),
        ({"batches": [1, 0]}, r"batches \[1, 0\]"),
        ({"seconds": 0.0}, "0.0 seconds"),
    ],
)
def test_measuring_refuses(kind, match):
    with pytest.raises(ParameterError, match=match):
        measuring.measure(open_context(toy(), "cpu"), **kind)


def test_least_squares_without_negative_times(rng):
    counts = np.array(
        [[1, d[1] - 1, math.ceil(max(d[0]) / d[1]), len(d[0])] for d in measuring.SPLITS], float
    )
    truth = rng.uniform(1, 10, 4)
    np.testing.assert_allclose(measuring._non_negative(counts, counts @ truth), truth, rtol=1e-6)
    for zero in range(4):
        some = np.where(np.arange(4) == zero, 0.0, truth)
        found = measuring._non_negative(counts, counts @ some * rng.uniform(0.99, 1.01, len(counts)))
        assert min(found) >= 0


# ---- prices of a parameter set


@pytest.mark.parametrize("name", ["toy-boot30", "toy-boot35", "toy-boot40"])
def test_adjusting_as_the_evaluator_does(name, rng):
    """Step by step, at the levels of the list, are the same bits as at once."""
    params = toy(name)
    context = open_context(params, "cpu")
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys())
    counts = set()
    for _ in range(20):
        level = int(rng.integers(1, params.normal_top_level + 1))
        target = int(rng.integers(0, level))
        at = priced.adjusting_levels(params, level, target)
        assert at == sorted(at, reverse=True) and target < at[-1] and at[0] <= level
        x = y = client.encrypt(rng.uniform(-1, 1, 8), level=level)
        for step in at[:-1]:
            y = ev.adjust_level(y, step - 1)
        y = ev.adjust_level(y, at[-1] - 1, params.scale(target))
        y = ev.adjust_level(y, target)
        assert y.level == target and y.to_bytes() == ev.adjust_level(x, target).to_bytes()
        assert priced.adjusting_levels(params, level, level) == []
        counts.add(len(at))
    print("steps", sorted(counts))


def test_chains_refuse():
    costs = CostModel.packaged(ckks.preset("boot35"), H200)
    with pytest.raises(ParameterError, match="no levels for bootstraps"):
        priced.output_level(ckks.preset("leveled-n15-s40"))
    with pytest.raises(UnsupportedError, match="no time of adjust_level at 3 limbs, batch 3"):
        priced.chain(ckks.preset("boot35"), costs, batch=3)


# ---- ResNet-20's shape

# Of its convolutions: baby and giant steps, diagonals, their period; by stage, those that begin one apart.
CONVOLUTIONS = {1: (35, 3, 144, 2**14), 2: (48, 7, 392, 2**13), 3: (59, 15, 900, 2**12)}
FIRST = {2: (31, 7, 256, 2**14), 3: (80, 7, 648, 2**13)}
SLOTS = {1: 2**14, 2: 2**13, 3: 2**12}


def resnet20(params, costs, degree, centred_only=False):
    """Nineteen layers of a convolution and a polynomial in three stages, skips with a transform at stage
    changes, and a dense layer; cuts before and behind everything. Cuts behind polynomials, where no value is
    negative, have a penalty, or are left out."""
    top, depth = params.normal_top_level, math.ceil(math.log2(degree + 1))
    powers = 1 << math.ceil(depth / 2)
    products = powers - 1 + depth - math.ceil(depth / 2) + math.ceil((degree + 1) / powers) - 1

    def conv(name, shape):
        babies, giants, diagonals, period = shape
        full = diagonals * period / params.slots
        return op_of(
            name,
            1,
            top,
            lambda at: costs.transform(params, at, babies=babies, giants=giants, diagonals=full).us,
        )

    def relu(name):
        def price(level):
            levels = [max(level - 1 - k * depth // products, 1) for k in range(products)]
            return sum(costs.us("product_rescale", params, at) for at in levels)

        return op_of(name, depth, top, price)

    def cut(name, stage, positive=False):
        if positive and centred_only:
            return Series()
        return cut_of(name, params, costs, SLOTS[stage], penalty=1000.0 * positive)

    parts = [conv("stem", CONVOLUTIONS[1]), cut("behind stem", 1), relu("relu stem")]
    for stage in (1, 2, 3):
        for block in range(3):
            name, first = f"{stage}.{block}", stage > 1 and block == 0
            before = stage - 1 if first else stage
            branch = (
                conv(f"{name} conv 1", FIRST[stage] if first else CONVOLUTIONS[stage]),
                cut(f"{name} behind conv 1", stage),
                relu(f"{name} relu"),
                cut(f"{name} behind relu", stage, True),
                conv(f"{name} conv 2", CONVOLUTIONS[stage]),
                cut(f"{name} behind conv 2", stage),
            )
            skip = (
                cut(f"{name} skip", before, True),
                *([conv(f"{name} shortcut", (8, 2, 32, 2**13))] * first),
            )
            add = op_of(f"{name} add", 0, top, lambda at: costs.us("add", params, at))
            parts += [cut(f"{name} input", before, True), Parallel((Series(branch), Series(skip))), add]
            parts += [cut(f"{name} sum", stage), relu(f"{name} relu sum")]
    parts += [cut("last", 3, True), conv("classifier", (20, 6, 64, 2**14))]
    return Series(tuple(parts))


def least(structure, chain):
    """The lowest price of all executions, level by level and part by part: nothing of `place` is in it."""
    down = ways_down(chain)

    def lowered(starts):
        found = {}
        for level, price in starts.items():
            for end in range(level + 1):
                keep(found, end, price + down(level, end))
        return found

    def fork(part, level):
        branches = [through(flat(branch), {level: 0.0}) for branch in part.branches]
        for end in set.intersection(*(set(branch) for branch in branches)):
            yield end, sum(branch[end] for branch in branches), ()

    def through(parts, starts, gap=True):
        for part in parts:
            behind = {}
            for level, price in (lowered(starts) if gap else starts).items():
                runs = fork(part, level) if isinstance(part, Parallel) else element_runs(part, level)
                for end, more, _ in runs:
                    keep(behind, end, price + more)
            starts, gap = behind, not isinstance(part, Parallel)
        return lowered(starts) if gap else starts

    entries = dict.fromkeys(range(chain.first + 1), 0.0)
    ends = through(flat(structure), entries, gap=False)
    return min(price for level, price in ends.items() if level >= chain.result)


@pytest.mark.parametrize(
    ("name", "degree"), [("boot35", 59), ("boot40", 59), ("boot30", 59), ("boot35", 127)]
)
def test_resnet20(name, degree):
    """Well under a second, and the optimum."""
    params = ckks.preset(name)
    costs = CostModel.packaged(params, H200).with_stand_ins()
    program, chain = resnet20(params, costs, degree), priced.chain(params, costs)
    begin = time.perf_counter()
    found = place(program, chain)
    took = time.perf_counter() - begin
    boots = found.bootstraps
    spent = sum(s.price for s in boots)
    print(f"{name} degree {degree}: {len(boots)} bootstraps, {found.price / 1e3:.1f} ms, "
          f"{spent / 1e3:.1f} in bootstraps; placed in {took * 1e3:.0f} ms")  # fmt: skip
    print(found.why())
    assert took < 1
    assert found.price == pytest.approx(least(program, chain), rel=1e-12)
    assert found.price == pytest.approx(sum(s.price for s in found.steps), rel=1e-12)
    assert boots and found.runner_up.price >= found.price * (1 - 1e-12)  # ties add up in another order
    centred = resnet20(params, costs, degree, centred_only=True)
    assert place(centred, chain).price == pytest.approx(least(centred, chain), rel=1e-12)
