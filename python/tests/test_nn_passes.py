"""Calibration, approximation, lowering and levels: before and after."""

import warnings

import numpy as np
import pytest
from nn_world import quiet_compile, rng, small_cnn, toy, weights  # noqa: F401

from crenel import nn
from crenel.errors import ParameterError, StateError, UnsupportedError
from crenel.nn.approximation import Histogram, fit, interpolated, minimax, quality
from crenel.nn.functions import FUNCTIONS
from crenel.nn.passes.calibrate import Calibrate
from crenel.nn.passes.levels import Levels
from crenel.nn.passes.lower import Lower
from crenel.nn.passes.scales import Scales
from crenel.nn.plan import Evaluate, Plan, Quadratic, Sum, Transform
from crenel.nn.trace import trace


def lowered(model, shape, samples, capacity=1024):
    graph = trace(model, shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nn.CalibrationWarning)
        ranges = Calibrate()(graph, samples)
    return Lower(capacity)(graph, Scales(2.0)(graph, ranges))


def test_ranges_are_those_of_all_samples(rng):  # noqa: F811
    graph = trace(nn.Sequential(nn.Linear(weights(rng, 3, 5)), nn.ReLU()), (5,))
    x = rng.standard_normal((130, 5))
    ranges = Calibrate(chunk=50)(graph, x)
    for found, value in zip(ranges, graph.values(x), strict=True):
        assert (found.least, found.largest) == (value.min(), value.max())
        assert found.mean == pytest.approx(value.mean(), abs=1e-12)
        assert found.rms == pytest.approx(np.sqrt(np.mean(value**2)))
        assert found.histogram.counts.sum() == value.size


def test_a_range_that_one_sample_decides_is_named(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(np.eye(4)), nn.ReLU(), nn.Linear(np.ones((1, 4))))
    x = rng.uniform(0.5, 1.0, (50, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Calibrate()(trace(model, (4,)), x)
    x[7] = -100.0  # what ReLU cuts off
    with pytest.warns(nn.CalibrationWarning, match=r"fewer than 5 of 50 samples: input, 0\. "):
        Calibrate()(trace(model, (4,)), x)


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_fits_follow_the_density_and_improve_with_the_degree(rng, function):  # noqa: F811
    values = rng.standard_normal(5000)
    seen = Histogram.of(values)
    errors = []
    for degree in (7, 15, 31, 63):
        weighted = quality(fit(function, 8.0, degree, seen), seen)
        plain = quality(interpolated(function, 8.0, degree), seen)
        errors.append(weighted.rms)
        assert weighted.rms <= plain.rms * 1.05 + 1e-12
        assert weighted.worst < 20 * plain.worst + 1e-9  # the ends stay bounded
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_an_interpolation_meets_the_function_in_its_nodes(rng, function):  # noqa: F811
    """A truncated expansion does not: of ReLU it would miss them by a hundredth."""
    for degree in (3, int(rng.integers(4, 63)), 127):
        bound = float(rng.uniform(0.5, 9.0))
        nodes = bound * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
        np.testing.assert_allclose(
            interpolated(function, bound, degree)(nodes), FUNCTIONS[function](nodes), atol=1e-12 * bound
        )


def test_a_composite_is_close_to_relu_everywhere():
    series = minimax(3.0, "15,15,15")
    x = np.linspace(-3, 3, 20001)
    assert np.abs(series(x) - np.maximum(x, 0)).max() < 3.0 * 2.0**-9
    with pytest.raises(ParameterError, match="comparator '9,9', expected one of"):
        minimax(3.0, "9,9")


def test_degrees_out_of_range_are_refused():
    seen = Histogram.of(np.ones(3))
    for degree in (0, 128):
        with pytest.raises(ParameterError, match=f"degree {degree}, expected 1 to 127"):
            fit("relu", 1.0, degree, seen)
    with pytest.raises(ParameterError, match="bound inf"):
        fit("relu", float("inf"), 3, seen)


def test_linear_operations_in_a_row_are_one_step(rng):  # noqa: F811
    model = nn.Sequential(
        nn.Conv2d(weights(rng, 4, 1, 3, 3)),
        nn.AvgPool2d(2),
        nn.Square(),
        nn.Flatten(),
        nn.Linear(weights(rng, 2, 36)),
    )
    plan = lowered(model, (1, 8, 8), rng.standard_normal((20, 1, 8, 8)))
    assert [type(step) for step in plan.steps] == [Transform, Quadratic, Transform]
    assert [op.name for op in plan.steps[0].chains[0]] == ["conv2d", "avg_pool2d"]
    assert [op.name for op in plan.steps[2].chains[0]] == ["flatten", "linear"]


def test_sums_are_additions_or_share_a_transform(rng):  # noqa: F811
    x = rng.standard_normal((20, 4, 6, 6))
    conv = nn.Conv2d(weights(rng, 4, 4, 3, 3), padding=1)
    plan = lowered(nn.Residual(conv), (4, 6, 6), x)
    assert [type(step) for step in plan.steps] == [Transform, Sum]
    plan = lowered(nn.Add(conv, nn.Conv2d(weights(rng, 4, 4, 1, 1))), (4, 6, 6), x)
    assert [type(step) for step in plan.steps] == [Transform] and len(plan.steps[0].inputs) == 2
    # Behind the pool channels interleave in planes, behind the dense layer they do not.
    branch = nn.Sequential(nn.Flatten(), nn.Linear(weights(rng, 36, 36)))
    model = nn.Sequential(nn.AvgPool2d(2), nn.Square(), nn.Add(branch, nn.Flatten()))
    plan = lowered(model, (4, 6, 6), x)
    assert len(plan.steps[-1].inputs) == 2 and isinstance(plan.steps[-1], Transform)
    assert any("operands lie in other slots" in decision.reason for decision in plan.decisions)


def test_a_value_that_is_read_twice_is_computed_once(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 4, 4)), nn.Add(nn.Linear(weights(rng, 4, 4)), nn.Square()))
    plan = lowered(model, (4,), rng.standard_normal((20, 4)))
    assert sum(isinstance(step, Transform) for step in plan.steps) == 2
    # Whichever form the square takes: that depends on the ranges of what was drawn.
    assert [step.inputs for step in plan.steps if isinstance(step, Evaluate | Quadratic)] == [(1,)]


def test_quadratics_take_one_level_and_other_polynomials_theirs(rng):  # noqa: F811
    def levels(*modules):
        model = nn.Sequential(nn.Linear(weights(rng, 3, 3)), *modules)
        return quiet_compile(model, rng.standard_normal((20, 3)), params=toy(), degree=7).plan.input_level

    assert levels(nn.Square()) == 2
    assert levels(nn.Polynomial([0.3, -0.1, -2.0])) == 2
    assert levels(nn.Polynomial([0.0, 50.0, 1.0])) == 3  # the shift is far beyond the values
    assert levels(nn.Polynomial([0.0, 1.0, 0.0, 1.0])) == 3
    assert levels(nn.Tanh()) == 4
    assert levels(nn.Polynomial([0.5, 2.0])) == 1  # a norm
    # The bound of a sum's or a fit's operand is not the square's to choose.
    assert levels(nn.Residual(nn.Square())) == 3
    assert levels(nn.Square(), nn.Tanh()) == 3 + 3
    assert levels(nn.Square(), nn.Linear(weights(rng, 3, 3)), nn.Tanh()) == 2 + 1 + 3


def test_the_degree_is_the_least_with_which_the_network_agrees(rng):  # noqa: F811
    model = nn.Sequential(
        nn.Linear(weights(rng, 30, 8)),
        nn.ReLU(),
        nn.Linear(weights(rng, 30, 30)),
        nn.ReLU(),
        nn.Linear(weights(rng, 10, 30)),
    )
    x = rng.standard_normal((300, 8))
    exact = model(x)

    def found(**options):
        program = quiet_compile(model, x, params=toy(), device="cpu", **options)
        (degree,) = {len(s.series.factors[0]) - 1 for s in program.plan.steps if isinstance(s, Evaluate)}
        simulated = program.simulate(x, noise=False)
        return degree, np.mean(exact.argmax(axis=1) == simulated.argmax(axis=1))

    slack = 1.5 / len(x)  # a tie that rounding decides
    for wanted in (0.5, 0.9, 0.98):
        degree, share = found(agreement=wanted)
        assert share >= wanted - slack or degree == 127
        if degree > 3:
            assert found(degree=degree // 2)[1] < wanted + slack
    assert degree > 3


def test_agreement_that_no_degree_reaches_is_said(rng):  # noqa: F811
    """A kink is no polynomial: of a single output 1 - the relative error is judged."""
    model = nn.Sequential(nn.Linear([[1.0]]), nn.ReLU())
    with pytest.warns(
        nn.AgreementWarning, match="degree 127 the agreement is .*relative to the output.*, 1 was asked for"
    ):
        nn.compile(model, rng.uniform(-1, 1, (200, 1)), params=toy(), agreement=1.0, device="cpu")


def test_decisions_say_what_was_asked_for(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 4, 4)), nn.ReLU(), nn.Linear(weights(rng, 4, 4)), nn.SiLU())
    x = rng.standard_normal((30, 4))

    def said(**options):
        program = quiet_compile(model, x, params=toy(), **options)
        return {d.origin: (d.reason, d.instead) for d in program.plan.decisions}

    found = said(degree={"1": 15}, agreement=0.01)
    assert found["1"][0].startswith("the degree was asked for; agreement ")
    assert found["3"][0].endswith(", asked for 0.01") and found["3"][1] == "a lower degree: there is none"
    composite = said(activation="minimax", degree={"3": 7})
    assert composite["1"][0].startswith("activation 'minimax' was asked for")
    assert "asked for 0.99" not in "".join(reason for reason, _ in composite.values())
    single = nn.Sequential(nn.Linear([[1.0]]), nn.ReLU())
    (decision,) = quiet_compile(
        single, rng.uniform(-1, 1, (50, 1)), params=toy(), agreement=1.0
    ).plan.decisions
    assert decision.reason.endswith("asked for 1: no degree reaches it")
    assert decision.instead.startswith("degree 3: agreement ")


def test_degrees_by_origin_and_unknown_origins(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 4, 4)), nn.ReLU(), nn.Linear(weights(rng, 4, 4)), nn.SiLU())
    x = rng.standard_normal((30, 4))
    program = quiet_compile(model, x, params=toy(), degree={"1": 15, "3": 7})
    assert [len(s.series.factors[0]) - 1 for s in program.plan.steps if isinstance(s, Evaluate)] == [15, 7]
    with pytest.raises(ParameterError, match="degrees for 2, 9: no such activations; there are 1, 3"):
        quiet_compile(model, x, params=toy(), degree={"9": 7, "2": 7})
    for wrong in ({"activation": "spline"}, {"agreement": 0.0}, {"margin": 0.5}, {"batch": 0}):
        with pytest.raises(ParameterError):
            quiet_compile(model, x, params=toy(), **wrong)


def test_too_few_levels_say_what_would_do_and_where(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 4, 4)), nn.ReLU(), nn.Linear(weights(rng, 4, 4)), nn.ReLU())
    with pytest.raises(
        UnsupportedError, match="needs 8 levels and the parameters have 6: none is left in 3"
    ) as found:
        quiet_compile(model, rng.standard_normal((30, 4)), params=toy("toy-leveled-n14-s40"), degree=7)
    assert (found.value.fields["needed"], found.value.fields["available"]) == (8, 6)


def test_every_step_stands_as_low_as_its_readers_allow(rng):  # noqa: F811
    plan = lowered(
        nn.Sequential(nn.Linear(weights(rng, 4, 4)), nn.Residual(nn.Sequential(nn.Square(), nn.Square()))),
        (4,),
        rng.standard_normal((20, 4)),
    )
    plan = Levels(9)(plan)
    assert plan.values[plan.output].level == 0
    users = {k: [s.level for s in plan.steps if k in s.inputs] for k in range(len(plan.values))}
    assert all(plan.values[k].level == max(levels) for k, levels in users.items() if levels)


def test_a_wrong_plan_is_named(rng):  # noqa: F811
    model = nn.Sequential(nn.Linear(weights(rng, 4, 4)), nn.Square())
    plan = Levels(9)(lowered(model, (4,), rng.standard_normal((20, 4))))
    first, second = plan.steps
    with pytest.raises(StateError, match="after test: %2 = quadratic.*not made before"):
        Plan(plan.values, (second, first), plan.output, (4,), ()).verify("test")
    with pytest.raises(StateError, match="levels do not fit"):
        moved = Quadratic(second.out, second.inputs, second.coefficients, 0)
        Plan(plan.values, (first, moved), plan.output, (4,), ()).verify("test")


def test_the_text_of_a_plan():
    """Golden: a change of any pass shows here."""
    eye = np.eye(4)
    model = nn.Sequential(nn.Linear(2 * eye, np.ones(4)), nn.ReLU(), nn.Residual(nn.Linear(eye)), nn.Square())
    x = np.concatenate([eye, -eye, eye, -eye])
    program = quiet_compile(model, x, params=toy(), degree=3)
    assert program.explain().splitlines() == [
        "%0 = input level 5 [4, 1 x 4 slots] bound 2",
        "%1 = transform linear(%0) level 5 -> 4 [4, 1 x 4 slots] bound 6 # 0",
        "%2 = evaluate relu of degree 3(%1) level 4 -> 2 [4, 1 x 4 slots] bound 12 # 1",
        "%3 = transform linear(%2) level 2 -> 1 [4, 1 x 4 slots] bound 12 # 2",
        "%4 = sum(%2, %3) level 1 -> 1 [4, 1 x 4 slots] bound 12 # 2",
        "%5 = quadratic(%4) level 1 -> 0 [4, 1 x 4 slots] bound 144 # 3",
        "return %5 as [4]",
        program.explain().splitlines()[-1],
    ]
    assert program.explain().splitlines()[-1].startswith("decided 1: relu as series of degree 3, 2 levels")


def test_values_that_samples_never_showed_have_a_bound(rng):  # noqa: F811
    """ReLU of negative numbers alone, weights that are zero: their polynomials and products still fit."""
    model = nn.Sequential(
        nn.Linear(-np.eye(3)),
        nn.ReLU(),
        nn.Linear(np.zeros((3, 3))),
        nn.Square(),
        nn.Linear(np.eye(3), np.ones(3)),
    )
    program = quiet_compile(model, rng.uniform(0.5, 1.0, (20, 3)), params=toy(), degree=7)
    bounds = [value.bound for value in program.plan.values]
    assert min(bounds) > 1e-6
    found = program.simulate(rng.uniform(0.5, 1.0, (5, 3)))
    np.testing.assert_allclose(found, 1.0, atol=1e-6)


def test_operands_of_very_different_size_do_not_share_a_bound(rng):  # noqa: F811
    model = nn.Sequential(
        nn.Linear(weights(rng, 4, 4)),
        nn.Add(
            nn.Sequential(),
            nn.Sequential(nn.Linear(100 * weights(rng, 4, 4)), nn.Polynomial([0.0, 0.0, 0.0, 1.0])),
        ),
        nn.Linear(weights(rng, 2, 4)),
    )
    x = rng.standard_normal((40, 4))
    program = quiet_compile(model, x, params=toy())
    assert any("differ much in size" in decision.reason for decision in program.plan.decisions)
    exact = model(x)
    np.testing.assert_allclose(program.simulate(x, noise=False), exact, atol=1e-9 * np.abs(exact).max())


def test_a_network_that_overflows_is_named():
    model = nn.Sequential(*[nn.Polynomial([0.0, 0.0, 1.0]) for _ in range(20)])
    with (
        np.errstate(over="ignore"),
        pytest.raises(ParameterError, match="^7: samples lead to values beyond 1e[+]100"),
    ):
        quiet_compile(model, np.full((8, 2), 3.0), params=toy())


def test_weights_that_no_plaintext_holds_are_named(rng):  # noqa: F811
    """Terms that cancel on the samples: `bind` could not encode the matrix."""
    x = rng.standard_normal((40, 1)) * np.array([1.0, 1.0 - 2.0**-40])

    def compiled(weight):
        model = nn.Sequential(nn.Linear([[weight, -weight], [0.0, 0.0]]), nn.Square())
        return quiet_compile(model, x, params=toy("toy-leveled-n14-s40"), device="cpu")

    with pytest.raises(ParameterError, match="^0: weights up to .* expected less than 4.19e[+]06") as found:
        compiled(float(rng.uniform(1e-3, 1e3)))
    assert found.value.fields["origin"] == "0"
    x[:, 1] = (1.0 - 2.0**-18) * x[:, 0]
    program = compiled(1.0)
    program.bind(program.client.keygen("cpu").evaluation_keys(program.client))
