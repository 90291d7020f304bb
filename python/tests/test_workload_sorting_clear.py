"""Sorting without ciphertexts: comparators, networks, levels, and the simulation."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import open_context, toy

from crenel import ckks, workloads
from crenel.errors import ParameterError
from crenel.workloads.sorting import calls, circuit, clear, comparator, levels, network
from crenel.workloads.sorting.values import MARGIN, PADDING, SPAN, Scale

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

PARAMS = toy("toy-boot40")


@pytest.fixture
def rng():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    return np.random.default_rng(seed)


# ---- comparators


@pytest.mark.parametrize("name", workloads.comparator_names())
def test_factors_are_minimax(name):
    """Chebyshev's theorem: m + 1 extrema of alternating sign and equal size, for m coefficients, prove
    that no
    odd polynomial of the degree is closer."""
    found = comparator(name)
    assert [f.degree for f in found.factors] == [int(d) for d in name.split(",")]
    assert found.levels == sum(ckks.polynomial_depth(f.degree) for f in found.factors)
    for place, factor in enumerate(found.factors):
        assert not factor.chebyshev[::2].any()
        grid = np.unique(
            np.concatenate(
                [np.geomspace(factor.interval, 1, 200001), np.linspace(factor.interval, 1, 200001)]
            )
        )
        last = place + 1 == len(found.factors)
        unscaled = 1 if last else (1 + factor.error) / (1 - found.margin)
        error = 1 - unscaled * np.polynomial.chebyshev.chebval(grid, factor.chebyshev)
        parts = np.split(error, np.flatnonzero(np.diff(np.sign(error))) + 1)
        peaks = np.array([np.abs(part).max() for part in parts])
        assert len(peaks) == len(factor.coefficients) + 1
        np.testing.assert_allclose(peaks, factor.error, rtol=1e-4)
        if not last:  # the next factor's interval is what comes out, and leaves room for errors
            assert found.factors[place + 1].interval == pytest.approx((1 - factor.error) / unscaled)
            assert (1 + factor.error) / unscaled == pytest.approx(1 - found.margin)


@pytest.mark.parametrize("name", workloads.comparator_names())
def test_errors_of_exchanges_are_as_stated(name):
    found = comparator(name)
    d = np.unique(np.concatenate([np.geomspace(1e-9, 1, 300001), np.linspace(0, 1, 300001)]))
    error = d * np.abs(1 - found(d)) / 2
    assert error.max() == pytest.approx(found.exchange_error, rel=1e-2)
    assert (
        np.abs(1 - found(d[d >= found.interval])).max() <= found.factors[-1].error * 1.25
    )  # slopes of thousands, between points
    assert np.array_equal(found(-d), -found(d))


def test_arguments_may_be_wrong_by_the_margin(rng):
    """Errors of a quarter of the margin, at every factor, leave no interval; and small ones turn no sign."""
    for name in workloads.comparator_names():
        found = comparator(name)
        d = rng.uniform(-SPAN - MARGIN / 4, SPAN + MARGIN / 4, 100000)
        for size in (MARGIN / 4, 2.0**-14):
            s = d
            for factor in found.factors:
                s = s + rng.choice([-1, 1], s.size) * size
                assert np.abs(s).max() <= 1
                s = factor(s)
        far = np.abs(d) > 0.25
        assert np.abs(s - np.sign(d))[far].max() < 0.1


def test_one_stored_comparator_is_what_the_generator_finds():
    import gen_comparators

    made = gen_comparators.best([7, 15])
    assert made["exchange_error"] == pytest.approx(comparator("7,15").exchange_error, rel=1e-6)
    coefficients, error = gen_comparators.minimax(7, 0.25)
    x = np.linspace(0.25, 1, 1001)
    for _ in range(100):  # nothing near is better
        other = coefficients + np.random.default_rng().normal(size=4) * 1e-4
        assert np.abs(1 - gen_comparators.basis(7, x) @ other).max() > error * (1 - 1e-6)


def test_unknown_comparators_are_refused():
    with pytest.raises(ckks.ParameterError, match="15,15,27") as caught:
        workloads.Sorting(PARAMS, 16, comparator="15,16")
    assert caught.value.fields["comparator"] == "15,16"


# ---- networks


@pytest.mark.parametrize("radix", [2, 4])
@pytest.mark.parametrize("log_size", range(1, 9))
def test_networks_sort(radix, log_size, rng):
    size = 1 << log_size
    for descending in (False, True):
        values = rng.permutation(size).astype(float)
        order = np.sort(values)[:: -1 if descending else 1]
        assert np.array_equal(network.apply(network.sort(size, radix, descending), values), order)
        for count in {1, 2, size // 2, size // 2 + 1, int(rng.integers(1, size + 1))} - {0}:
            kept = network.apply(network.top(size, count, radix, descending), values)[:count]
            assert np.array_equal(kept, order[:count]), (size, count, descending)


def test_sizes_of_networks():
    assert len(network.sort(2**14, 2)) == 105
    assert len(network.sort(2**14, 4)) == 56
    assert len(network.top(2**14, 1, 4)) == 14  # a tournament
    assert len(network.top(2**14, 16, 4)) < 40


@pytest.mark.parametrize("radix", [2, 4])
def test_rounds_on_slots_are_those_of_the_network(radix, rng):
    """With numbers whose gaps a comparator resolves, the polynomials do what exact comparisons do.

    A round compares every number with radix - 1 others. Each comparison moves it by the comparator's exchange
    error at most, and what travels with it by half the sign's error times the largest difference of those.
    """
    size, sharp = 64, comparator("15,15,27,27")
    slots = size * radix // 2
    values = rng.permutation(np.linspace(-SPAN / 2, SPAN / 2, size))
    machine = clear.ClearMachine(13)
    columns = [machine.vector(np.tile(v, slots // size), 16) for v in (values, values[::-1] / 2)]
    parts = circuit.Parts(machine, sharp)
    exact, follows = values, values[::-1] / 2
    rounds = network.sort(size, radix)
    comparisons = len(rounds) * (radix - 1)
    for round_ in rounds:
        columns = circuit.run_round(parts, columns, round_, circuit.masks(round_, slots))
        after = network.apply([round_], exact)
        follows = follows[[int(np.flatnonzero(exact == v)[0]) for v in after]]
        exact = after
        moved = np.abs(columns[0].values - np.tile(exact, slots // size)).max()
        assert moved < comparisons * sharp.exchange_error
        moved = np.abs(columns[1].values - np.tile(follows, slots // size)).max()
        assert moved < comparisons * sharp.factors[-1].error / 2 * np.ptp(follows)
    assert machine.largest < 1


# ---- plans


@pytest.mark.parametrize("name", ["boot30", "boot35", "boot40", "boot48dr", "boot50"])
def test_levels_follow_from_parameters(name):
    params = ckks.preset(name)
    plan = workloads.Sorting(params, 2**10)
    report = plan.report
    # At 30 bits of scale the roundings of radix 4 cost more than a bit.
    assert (plan.radix, report.rounds) == ((2, 55) if name == "boot30" else (4, 30)) and report.stages == 55
    assert report.converges
    levels_of_all = report.rounds * report.levels[0]
    assert (
        levels_of_all / report.levels[1] * 0.8 < report.bootstraps <= 2.6 * levels_of_all / report.levels[1]
    )
    assert f"{report.rounds} rounds" in plan.describe() and "boot" in plan.describe()


def test_sorting_of_2_14_values_keeps_12_bits():
    """The precision that the two-way network of Cheddar (2026) reports with 48 bits of scale less a bit,
    by simulation."""
    plan = workloads.Sorting(ckks.preset("boot40"), 2**14)
    assert plan.report.expected_error < 2**-12.0
    paper = workloads.Sorting(ckks.preset("boot40"), 2**14, variant="paper")
    assert (paper.radix, paper.report.rounds, paper.comparator.levels + 1) == (2, 105, 14)
    assert paper.report.expected_error > plan.report.expected_error


def test_more_noise_is_less_precision(rng):
    plan = workloads.Sorting(PARAMS, 128)
    values = rng.random(128)
    errors = [
        np.abs(
            plan.simulate(values, noise=clear.Noise(2.0**-bits, 2.0**-40, None)).values - np.sort(values)
        ).max()
        for bits in (30, 16, 13, 11)  # 2^-10 and above leave the polynomials' intervals now and then
    ]
    errors = np.nan_to_num(errors, nan=np.inf)  # so much noise may leave every interval
    assert errors[0] < errors[1] * 1.5 and errors[1] < errors[2] < errors[3]
    exact = plan.simulate(values)
    assert np.abs(exact.values - np.sort(values)).max() < 40 * plan.comparator.exchange_error
    again = plan.simulate(values, noise=plan.noise(3)), plan.simulate(values, noise=plan.noise(3))
    assert np.array_equal(again[0].values, again[1].values)


def test_imaginary_errors_are_taken_away_where_they_would_explode():
    """At 30 bits of scale, where all four factors follow each other without a bootstrap between, with errors
    of divisions that round the parts of 14 primes (one rounding leaves them just short of it)."""
    plan = workloads.Sorting(ckks.preset("boot30"), 2**14, radix=2)
    values = np.random.default_rng(0).random(2**14)
    assert plan.comparator.real
    once = plan.noise()
    loud = replace(once, operation=14**0.5 * once.operation)
    trace = plan.simulate(values, noise=loud)
    assert trace.largest < 1 and np.abs(trace.values - np.sort(values)).max() < 2**-7.5
    plan.comparator = replace(plan.comparator, real=frozenset())
    assert not plan.simulate(values, noise=loud).largest < 1.05
    for name in ("boot35", "boot40", "boot48dr"):  # not at a cost where it is not needed
        real = workloads.Sorting(ckks.preset(name), 2**14, radix=2).comparator.real
        assert real <= ({2} if name == "boot35" else set())  # behind which is a bootstrap


def test_radix_4_is_taken_where_it_costs_little():
    """Of 2^14 numbers it keeps 12 bits at 40 bits of scale, loses two at 35, and diverges at 30."""
    for name, count, radix in (("boot40", 2**14, 4), ("boot35", 2**14, 2), ("boot30", 2**14, 2)):
        plan = workloads.Sorting(ckks.preset(name), count)
        assert plan.radix == radix, name
    params = ckks.preset("boot35")
    assert workloads.Sorting(params, 2**14, top=3, payload=2, descending=True).radix == 2
    assert workloads.Sorting(params, 2**14, radix=4).radix == 4
    assert workloads.Sorting(params, 2**6).radix == 4
    assert workloads.Sorting(params, params.slots).radix == 2  # radix 4 has no room


@pytest.mark.parametrize("radix", [2, 4])
def test_demand_is_that_of_a_run(radix, rng):
    plan = workloads.Sorting(PARAMS, 100, payload=1, radix=radix)
    trace = plan.simulate(rng.random(100), [rng.random(100)])
    assert plan.demand.bootstraps == trace.bootstraps == plan.report.bootstraps
    assert "recordings" in plan.describe() and f"{plan.key_bytes() / 2**20:.0f} MiB" in plan.describe()


def test_errors_too_large_for_the_comparator_are_refused(monkeypatch):
    plan = workloads.Sorting(PARAMS, 128)
    assert plan.report.converges
    noisy = workloads.Sorting(PARAMS, 128)
    monkeypatch.setattr(noisy, "noise", lambda seed=0: clear.Noise(2.0**-6, 2.0**-12, 10, seed))
    assert noisy.report.expected_error == np.inf and "without bound" in noisy.describe()
    client = open_context(PARAMS, "cpu").keygen()
    with pytest.raises(ckks.ParameterError, match="diverges") as caught:
        noisy.keys(client)
    assert caught.value.fields["count"] == 128


def test_ties_padding_and_payload(rng):
    values = np.array([0.5, 1.0, 0.25, 0.5, 1.0, 0.0, 0.75])  # 7: one of padding, next to the range's end
    payload = np.arange(7) / 7
    plan = workloads.Sorting(PARAMS, 7, payload=1)
    trace = plan.simulate(values, [payload], noise=plan.noise())
    assert np.abs(trace.values - np.sort(values)).max() < 1e-3
    alone = trace.payload[0][[0, 1, 4]]
    assert np.abs(alone - payload[[5, 2, 6]]).max() < 1e-3
    for a, b, both in ((2, 3, [0, 3]), (5, 6, [1, 4])):  # ties share theirs; padding takes no part
        assert trace.payload[0][a] + trace.payload[0][b] == pytest.approx(payload[both].sum(), abs=1e-3)
    down = workloads.Sorting(PARAMS, 7, payload=1, descending=True).simulate(values, [payload])
    assert np.abs(down.values - np.sort(values)[::-1]).max() < 1e-3


def test_the_sine_of_a_bootstrap_is_that_of_its_coefficients(rng):
    values = rng.uniform(-1, 1, 32) + 1j * rng.uniform(-1, 1, 32)
    c = clear.coefficients(values)
    roots = np.exp(2j * np.pi * np.array([pow(5, j, 128) for j in range(32)]) / 128)
    assert np.abs(np.polyval(c[::-1], roots) - values).max() < 1e-12
    assert np.abs(clear.slots_of(c) - values).max() < 1e-12
    # A constant is one coefficient: 6.6 c^3 / 4^rho in every slot, as the guide says.
    error = clear.sine_error(np.full(32, 1 + 0j), 6)
    assert np.allclose(error, -((2 * np.pi) ** 2) / 6 / 4**6, rtol=1e-2)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 16, 100, 128])
def test_one_set_of_keys_serves_every_call(count):
    for payload in (0, 1):
        everything = calls.needs_of_all(workloads.Sorting(PARAMS, count, payload=payload)).rotation_levels
        for k in {1, 2, 3, 5, count // 2, count // 2 + 1, count} & set(range(1, count + 1)):
            for largest in (False, True):
                one = workloads.Sorting(PARAMS, count, payload=payload, top=k, descending=largest)
                assert all(everything[step] >= level for step, level in one.rotations.items())
    assert calls.index_digits(count) == 1


# ---- refusals


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": 2**11}, "count"),
        ({"count": 1024, "radix": 4}, "slots"),
        ({"count": 16, "radix": 3}, "radix"),
        ({"count": 16, "payload": -1}, "payload"),
        ({"count": 16, "top": 17}, "top"),
        ({"count": 16, "top": 0}, "top"),
        ({"count": 16, "message_ratio": 11}, "highest"),
        ({"count": 16, "variant": "other"}, "variant"),
    ],
)
def test_what_cannot_be_sorted_is_refused(arguments, field):
    with pytest.raises(ckks.ParameterError) as caught:
        workloads.Sorting(PARAMS, **arguments)
    assert field in caught.value.fields


@pytest.mark.parametrize(
    ("values", "payload", "field"),
    [
        ([0.5], [[0.5] * 5], "expected"),  # one number is not five equal ones
        ([[0.5] * 5], [[0.5] * 5], "expected"),
        ([0.5] * 5, [], "payload"),
        ([0.5] * 5, [[0.5] * 5] * 2, "payload"),
        ([0.5] * 5, [[0.5]], "expected"),
    ],
)
def test_simulations_refuse_what_encryption_refuses(values, payload, field):
    plan = workloads.Sorting(PARAMS, 5, payload=1)
    client = open_context(PARAMS, "cpu").keygen()
    for refused in (plan.simulate, lambda *data: plan.encrypt(client, *data)):
        with pytest.raises(ckks.ParameterError) as caught:
            refused(values, payload)
        assert field in caught.value.fields


@pytest.mark.parametrize("name", workloads.comparator_names())
def test_padding_takes_payload_where_comparators_are_coarse(name):
    """As the guide says: from 13 levels on not even numbers at the range's end lose payload to padding."""
    plan = workloads.Sorting(PARAMS, 5, payload=1, comparator=name)
    trace = plan.simulate([1.0, 0.2, 0.4, 0.6, 0.8], [[1.0, 0, 0, 0, 0]])
    lost = abs(trace.payload[0][4] - 1)
    assert lost < 2**-9 if plan.comparator.levels >= 13 else lost > 2**-9, lost


def test_parameters_without_bootstraps_are_refused():
    with pytest.raises(ckks.ParameterError, match="boot"):
        workloads.Sorting(toy(), 16)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.001, -0.001])
def test_numbers_out_of_range_are_refused_by_place(bad):
    with pytest.raises(ckks.ParameterError) as caught:
        Scale(0.0, 1.0).to_slots([0.5, bad, 0.25, bad], "value")
    assert caught.value.fields["index"] == 1 and caught.value.fields["count"] == 2
    assert str(bad) not in str(caught.value)


def test_scales_are_refused_and_invert(rng):
    for low, high in ((1.0, 1.0), (-1e308, 1e308), (-np.inf, 0.0), (0.0, np.inf), (np.nan, 1.0), (2.0, 1.0)):
        with pytest.raises(ckks.ParameterError):
            Scale(low, high)
    with pytest.raises(ckks.ParameterError, match="real"):
        Scale(0.0, 1.0).to_slots([1j], "value")
    scale = Scale(-1e300, 1.5e300)
    values = rng.uniform(-1e300, 1.5e300, 100)
    slots = scale.to_slots(values, "value")
    assert np.abs(slots).max() <= SPAN / 2 < PADDING
    assert np.abs(scale.from_slots(slots) - values).max() < 1e286


def test_message_ratio_follows_the_errors():
    assert levels.refresh(PARAMS, 16).message_ratio == 10
    wide = ckks.preset("boot35")
    assert levels.refresh(wide, 2**15).message_ratio < levels.refresh(wide, 16).message_ratio


def test_shapes_are_whole_numbers_of_any_kind():
    plan = workloads.Sorting(PARAMS, np.int64(7), top=np.int64(2), payload=np.int32(1))
    assert (type(plan.count), type(plan.top), type(plan.payload)) == (int, int, int)
    for change in ({"count": 8.0}, {"count": "8"}, {"count": None}, {"top": 1.5}, {"payload": 1.5}):
        with pytest.raises(ParameterError, match="must be an integer"):
            workloads.Sorting(PARAMS, **({"count": 4} | change))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_plan_knows_where_its_bootstraps_end(count):
    plan = workloads.Sorting(PARAMS, count)
    boot = open_context(PARAMS, "cpu").bootstrapper(options=plan.bootstrap, progress=False)
    assert plan.refresh.output_level == boot.levels.output


def test_what_is_simulated_is_checked_like_what_is_encrypted():
    plan = workloads.Sorting(PARAMS, 4)
    for values in ([0.1, 0.2], [[0.1, 0.2, 0.3, 0.4]]):
        with pytest.raises(ParameterError, match="values of shape"):
            plan.simulate(values)
    with pytest.raises(ParameterError, match="masked"):
        plan.simulate(np.ma.array([0.1, 0.2, 0.3, 0.4], mask=[0, 1, 0, 0]))
    for high in ("a", None, 10**400):
        with pytest.raises(ParameterError, match="expected two numbers"):
            plan.simulate([0.1] * 4, high=high)
