"""Training in the clear: the packed program is the recursion it stands for, and refuses what it cannot do."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import toy
from regression_world import leveled, model, rms, seeded, table, tumours

from crenel import ckks
from crenel.errors import ParameterError
from crenel.workloads.regression import HELR, LogisticRegression, Noise, Sigmoid, least_squares
from crenel.workloads.regression.layout import Layout
from crenel.workloads.regression.schedule import blocks_seen, momenta


def recursion(X, y, iterations, *, batch, rate, sigmoid, order="cyclic", seed=0):
    """Nesterov's momentum as HELR writes it, on rows: no packing, no scaling, no change of state."""
    Z = np.concatenate([np.ones((len(X), 1)), X], axis=1) * y[:, None]
    blocks = [Z[k : k + batch] for k in range(0, len(Z), batch)]
    seen = blocks_seen(order, seed, len(blocks), iterations)
    w = v = np.zeros(Z.shape[1])
    found, largest = [], []
    for t, eta in enumerate(momenta(iterations)):
        z = blocks[seen[t]]
        new = v + rate / batch * sigmoid(z @ v) @ z
        largest.append(np.abs(z @ v).max())
        v, w = (1 - eta) * new + eta * w, new
        found.append(w)
    return np.array(found), np.array(largest)


@pytest.mark.parametrize("variant", ["crenel", "paper"])
@pytest.mark.parametrize(
    "features, batch, order",
    [
        (1, 1, "cyclic"),
        (2, 7, "random"),
        (3, 16, "cyclic"),
        (30, 32, "random"),
        (13, 200, "cyclic"),
        (67, 64, "random"),
    ],
)
def test_the_packed_program_is_the_recursion(features, batch, order, variant):
    seed, rng = seeded()
    X, y = table(rng, 150, features)
    sigmoid = least_squares(float(rng.uniform(8, 20)))
    m = model(
        "toy-boot35", features, batch, rate=0.7, order=order, seed=seed, variant=variant, sigmoid=sigmoid
    )
    expected, largest = recursion(X, y, 11, batch=batch, rate=0.7, sigmoid=sigmoid, order=order, seed=seed)
    trace = m.simulate(X, y, 11)
    scale = np.abs(expected).max()
    assert np.abs(trace.weights - expected).max() < 1e-11 * scale
    assert np.abs(trace.largest_inner - largest).max() < 1e-11 * max(largest.max(), 1)


def test_rows_that_pad_a_block_do_not_count():
    _, rng = seeded()
    X, y = table(rng, 37, 5)
    m = model("toy-boot35", 5, 20)
    assert m.layout.rows == 32
    expected, _ = recursion(X, y, 6, batch=20, rate=1.0, sigmoid=HELR)
    assert np.abs(m.simulate(X, y, 6).weights - expected).max() < 1e-12


def test_an_iteration_costs_what_it_should():
    """Images of 196 pixels: four vectors."""
    from crenel.workloads.regression.describe import operations

    m = LogisticRegression(ckks.preset("boot35"), features=196)
    assert (m.layout.rows, m.layout.columns, m.layout.ciphertexts) == (1024, 32, 4)
    counts = operations(m)
    assert (counts["products"], counts["key switches"]) == (13, 61)
    assert counts["plain products"] <= 18


def test_levels_of_a_training():
    m = LogisticRegression(ckks.preset("boot35"), features=196)
    parts = m.plan.segments(32)
    assert [p.count for p in parts] == [5] + [3] * 9 and sum(p.refreshed for p in parts) == 9
    for iterations in range(1, 40):
        parts = m.plan.segments(iterations)
        assert sum(p.count for p in parts) == iterations
        assert all(p.start - 4 * (p.count - (p.first == 0)) >= 0 for p in parts)
    trace = model("toy-boot40", 3, 8).simulate(*table(np.random.default_rng(1), 20, 3), 12)
    assert min(trace.levels) == 0 and trace.counts["refreshes"] == 3


def test_leveled_parameters_train_as_far_as_they_go():
    m = LogisticRegression(leveled(10), features=3, batch=16)
    assert m.bootstrap is None and m.plan.most == 3
    X, y = table(np.random.default_rng(2), 30, 3)
    assert m.simulate(X, y, 3).levels == [8, 4, 0]
    with pytest.raises(ParameterError, match="depth=14 would do") as caught:
        m.simulate(X, y, 4)
    assert caught.value.fields["max_iterations"] == 3


@pytest.mark.parametrize("features, batch, width", [(1, 1, 2), (7, 5, 2), (30, 64, 1), (196, 64, 2)])
def test_layout_packs_and_unpacks(features, batch, width):
    _, rng = seeded()
    layout = Layout.fitting(1024, features, batch, width)
    weights = rng.standard_normal(features + 1)
    state = layout.state(weights)
    assert state.shape == (layout.ciphertexts, layout.columns) and layout.slots <= 1024
    assert np.array_equal(layout.weights(state), weights)
    assert np.allclose(layout.weights(np.tile(state, layout.rows)), weights, rtol=1e-14)
    rows = rng.standard_normal((batch, features))
    packed = layout.block(rows)
    inner = sum((np.conj(packed[c]) * np.tile(state[c], layout.rows)).real for c in range(layout.ciphertexts))
    sums = inner.reshape(layout.rows, layout.columns).sum(1)
    assert np.allclose(sums[:batch], weights[0] + rows @ weights[1:]) and np.all(sums[batch:] == 0)


def test_fitted_sigmoid_is_the_least_squares_one():
    fit = least_squares(16)
    x = np.linspace(-16, 16, 20001)
    target = 1 / (1 + np.exp(x)) - 0.5
    best = np.sum((fit(x) - 0.5 - target) ** 2)
    for da, db in ((1e-4, 0), (-1e-4, 0), (0, 1e-6), (0, -1e-6)):
        other = Sigmoid(fit.linear + da, fit.cubic + db, 16.0)
        assert np.sum((other(x) - 0.5 - target) ** 2) > best
    assert abs(fit.linear + 0.084264) < 1e-6 and abs(fit.cubic - 0.000247) < 1e-6
    u = fit.mu * x
    assert np.allclose(u * (u * u + fit.b) + 0.5, fit(x), atol=1e-13)
    assert abs(fit(fit.limit) - 0.5) < 1e-12 and 15 < fit.limit < 20
    assert HELR.limit > 20 and fit.error < 0.25


@pytest.mark.parametrize(
    "change",
    [
        {"features": 0}, {"batch": 0}, {"batch": 257}, {"rate": 0.0}, {"rate": float("nan")},
        {"order": "backwards"}, {"variant": "other"}, {"weight_range": -1.0}, {"feature_range": float("inf")},
    ],
)  # fmt: skip
def test_arguments_out_of_range(change):
    with pytest.raises(ParameterError) as caught:
        LogisticRegression(toy("toy-boot35"), **({"features": 3, "batch": 16} | change))
    assert set(change) <= set(caught.value.fields)


@pytest.mark.parametrize(
    "bad", [(0.1, 0.2, 8.0), (-0.1, 0.0, 8.0), (-0.1, 0.1, 0.0), (float("nan"), 0.1, 8.0)]
)
def test_polynomials_that_are_no_sigmoid(bad):
    with pytest.raises(ParameterError):
        Sigmoid(*bad)


def test_too_few_levels():
    with pytest.raises(ParameterError, match="the first iteration takes 2"):
        LogisticRegression(leveled(1), features=2, batch=8)


def test_a_short_interval_diverges_in_the_clear():
    """The trap of fits on [-8, 8]: inner products leave the interval, and the cubic drives them away."""
    X, y = tumours()
    steep = model("toy-boot35", 30, 128, sigmoid=least_squares(2.5), rate=8.0)
    trace = steep.simulate(X, y, 30)
    assert not trace.largest_inner.max() <= steep.sigmoid.limit  # infinite, or not a number any more


def test_copies_must_be_averaged():
    """With noise, refreshing one row instead of the mean is worse by far: what the trace is for."""
    from crenel.workloads.regression.clear import ClearOperations

    _, rng = seeded()
    X, y = table(rng, 64, 9)
    m = model("toy-boot35", 9, 64)
    noise, exact = Noise.everywhere(1e-4, 18, 0.0), m.simulate(X, y, 12).weights[-1]
    mean = rms(m.simulate(X, y, 12, noise).weights[-1], exact)
    kept = ClearOperations._average
    try:
        ClearOperations._average = lambda self, a: a.values[:, : self.columns]
        one = rms(m.simulate(X, y, 12, noise).weights[-1], exact)
    finally:
        ClearOperations._average = kept
    assert one > mean


@pytest.mark.parametrize(
    "preset, variant", [("toy-boot35", "crenel"), ("toy-boot40", "paper"), ("toy-boot30", "crenel")]
)
def test_expected_errors_are_those_of_the_noise(preset, variant):
    """The formula against the program with every operation's own noise: an upper estimate."""
    seed, rng = seeded()
    X, y = table(rng, 256, 20)
    m = model(preset, 20, 128, variant=variant)
    iterations = 14
    exact, noise = m.simulate(X, y, iterations).weights, m.noise()
    runs = [m.simulate(X, y, iterations, noise, seed + k).weights for k in range(4)]
    measured = np.sqrt(np.mean([(run - exact) ** 2 for run in runs], axis=(0, 2)))
    ratio = measured / np.array(m.expected_errors(iterations))
    assert np.all(ratio < 1.5) and np.all(ratio > 1 / 6), ratio


@pytest.mark.parametrize("params", ["toy-boot35", None])
def test_segments_end_where_the_simulation_does(params):
    m = model(params, 3, 32) if params else LogisticRegression(leveled(14), features=3, batch=32)
    X, y = table(np.random.default_rng(1), 40, 3)
    for iterations in range(1, 9 if params else 5):
        last = m.plan.segments(iterations)[-1]
        assert last.end == m.simulate(X, y, iterations).levels[-1]


def test_a_stated_checkpoint_is_of_the_level_where_training_ends():
    m = LogisticRegression(leveled(14), features=3, batch=32)
    sizes = [float(m.describe(k).split("checkpoint")[1].split()[0]) for k in range(1, 5)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 2 * sizes[-1]


def test_description_has_what_is_decided_beforehand():
    text = model("toy-boot35", 30, 64).describe(12)
    for part in ("12 iterations", "INSECURE", "refreshes       3", "key switches", "MiB", "expected error"):
        assert part in text


def test_shapes_and_counts_are_whole_numbers_of_any_kind():
    params = toy("toy-boot35")
    model = LogisticRegression(params, features=np.int64(4), batch=np.int64(64), seed=np.int64(3))
    assert model.fingerprint == LogisticRegression(params, features=4, batch=64, seed=3).fingerprint
    for change in ({"features": 4.0}, {"batch": 1.5}, {"batch": "4"}, {"seed": -1}, {"seed": 1.5}):
        with pytest.raises(ParameterError):
            LogisticRegression(params, **({"features": 4, "batch": 64} | change))
    for iterations in (0, 1.5, "3", None, 10**9):
        with pytest.raises(ParameterError, match="iterations must be"):
            model.describe(iterations)
        with pytest.raises(ParameterError, match="iterations must be"):
            model.simulate(np.zeros((2, 4)), [1, -1], iterations)


def test_masked_and_ragged_tables_are_refused():
    model = LogisticRegression(toy("toy-boot35"), features=2, batch=4)
    with pytest.raises(ParameterError, match="masked"):
        model.simulate(np.ma.array(np.zeros((2, 2)), mask=[[0, 1], [0, 0]]), [1, -1], 1)
    with pytest.raises(ParameterError, match="different lengths"):
        model.simulate([[1, 0], [1]], [1, -1], 1)
