"""Programs that need bootstraps: where they stand, what they cost, and what comes out."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from nn_digits import convolutional, digits
from nn_world import quiet_compile, residual, rng, toy, weights  # noqa: F401
from test_nn_program import DEVICES, ran, usable

from crenel import ckks, nn
from crenel.errors import KeyMissingError, ParameterError, StateError, UnsupportedError
from crenel.nn.cost import OPERATIONS, BootRow, CostModel, Row
from crenel.nn.counting import Counted, Counting
from crenel.nn.interpret import prepared, walk
from crenel.nn.layout import Layout
from crenel.nn.linear import SlotTransform, slot_transform, sparse_map
from crenel.nn.ops import Conv2d, Series
from crenel.nn.passes.priced import adjusting_levels, output_level
from crenel.nn.passes.prices import MeasuredPrices, products, split
from crenel.nn.plan import Quadratic, Refresh, Transform


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("batch", "rows", "shared"), [(5, 1, 1), (37, 3, 2)])
def test_a_residual_network_with_bootstraps(rng, device, batch, rows, shared):  # noqa: F811
    """Six activations of five levels, nine transforms: 18 levels are too few."""
    x = rng.standard_normal((40, 1, 4, 4))
    model = residual(rng, 2)
    params = toy("toy-boot35")
    program = quiet_compile(model, x, params=params, degree=31, batch=batch, device=usable(device))
    refreshes = [step for step in program.plan.steps if isinstance(step, Refresh)]
    assert refreshes and all(step.level == 0 for step in refreshes)
    read = {k: max(s.level for s in program.plan.steps if k in s.inputs)
            for k in (step.out for step in refreshes)}  # fmt: skip
    for kind in {step.boot for step in refreshes}:
        mine = [step.out for step in refreshes if step.boot == kind]
        assert kind.target == max(read[k] for k in mine) <= output_level(params)
        assert {program.plan.values[k].level for k in mine} == {kind.target}
        assert kind.vectors == shared
    assert program.plan.rows(batch) == rows
    assert f"{len(refreshes) * -(-rows // shared)} bootstraps" in program.describe()
    again = nn.Program.from_bytes(program.to_bytes(), device, allow_insecure=True)
    assert again.explain() == program.explain()
    for count in (2, batch):
        found, ratio = ran(again, x[:count], device)
        assert 0.03 < ratio < 4.0
        np.testing.assert_allclose(found, model(x[:count]), atol=0.1)


@pytest.mark.parametrize("device", DEVICES)
def test_a_footprint_is_what_a_gpu_takes(rng, device):  # noqa: F811
    """Counted by a dry run; a GPU's own count is compared, other devices hold no such tables."""
    x = rng.standard_normal((40, 1, 4, 4))
    program = quiet_compile(
        residual(rng, 1), x, params=toy("toy-boot35"), degree=31, batch=5, device=usable(device)
    )
    found, demand = nn.footprint(program), program.demand
    assert (found.keys, found.weights) == (demand.key_bytes, demand.plaintext_bytes)
    assert found.keys + found.weights < found.peak <= found.held
    if device.startswith("cuda"):
        context = ckks.Context(program.params, device)
        program = replace(program, device=context.device)
        client, spec = nn.Client(context.keygen()), program.client
        server = program.bind(client.evaluation_keys(spec))
        for _ in range(2):
            server.run(client.encrypt(x[:5], spec))
        assert found.peak == pytest.approx(context.device.pools().peak, rel=0.15)


@pytest.mark.parametrize("device", DEVICES)
def test_a_recorded_run_is_the_same_bits(rng, device):  # noqa: F811
    x = rng.standard_normal((40, 1, 4, 4))
    program = quiet_compile(
        residual(rng, 1), x, params=toy("toy-boot35"), degree=31, batch=37, device=usable(device)
    )
    spec = program.client
    client = spec.keygen(device)
    server = program.bind(client.evaluation_keys(spec))
    for count in (37, 20, 37):  # the third time a recording is replayed on other numbers
        sent = client.encrypt(x[rng.permutation(40)[:count]], spec)
        results = [server.run(sent, graph=graph) for graph in (False, True)]
        eager, replayed = ([c.to_bytes() for c in made.ciphertexts] for made in results)
        assert eager == replayed and results[1].samples == count
    with pytest.raises(ParameterError, match="not watched"):
        server.run(sent, watch=lambda number, made: None, graph=True)


def test_keys_of_bootstraps_are_asked_for(rng):  # noqa: F811
    x = rng.standard_normal((30, 1, 4, 4))
    program = quiet_compile(residual(rng, 2), x, params=toy("toy-boot35"), degree=31, device="cpu")
    spec = nn.ClientSpec.from_bytes(program.client.to_bytes(), allow_insecure=True)
    client = spec.keygen("cpu")
    keys = client.evaluation_keys(spec)
    assert spec.bootstraps == program.demand.bootstraps != ()
    assert keys.nbytes == program.demand.key_bytes
    without = client.ckks_client.evaluation_keys(
        rotations=dict(spec.rotations), max_level=spec.relinearisation
    )
    with pytest.raises(KeyMissingError):
        program.bind(without)


def test_there_is_no_bootstrap_where_levels_suffice():
    images, _ = digits()
    model = convolutional(True)
    program = quiet_compile(model, images[:100], params=toy("toy-boot35"), device="cpu")
    assert not any(isinstance(step, Refresh) for step in program.plan.steps)
    assert program.demand.bootstraps == ()


def test_a_step_deeper_than_all_levels_is_named(rng):  # noqa: F811
    x = rng.standard_normal((30, 3))
    model = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(weights(rng, 3, 3)), nn.ReLU())])
    with pytest.raises(UnsupportedError, match=r"^1 consumes 17 levels, the parameters have 12") as error:
        quiet_compile(model, x, params=toy("toy-boot50"), activation="minimax", composite="15,15,15,15")
    assert error.value.fields["origin"] == "1"


def table(params: ckks.Params, bootstrap: float) -> CostModel:
    """A table whose numbers are made up: every operation a microsecond a limb."""
    limbs = range(1, 60)
    rows = tuple(Row(name, n, 1, float(n), "made up") for name in OPERATIONS for n in limbs)
    output = output_level(params)
    boots = tuple(
        BootRow(params.id, 1 << k, 0, output, 1, bootstrap, "made up", "real")
        for k in range(params.slots.bit_length())
    )
    return CostModel("a device", params.log_n, params.alpha, rows, boots)


def test_measured_costs_place_bootstraps_and_state_the_time(rng):  # noqa: F811
    params = toy("toy-boot35")
    x = rng.standard_normal((30, 1, 4, 4))
    model = residual(rng, 4)
    programs = {
        price: quiet_compile(model, x, params=params, degree=31, device="cpu", costs=table(params, price))
        for price in (0.0, 1e6)
    }
    counts = {
        price: sum(isinstance(step, Refresh) for step in program.plan.steps)
        for price, program in programs.items()
    }
    # For nothing, bootstraps stand wherever they let operations run lower.
    assert counts[0.0] > counts[1e6] >= 2
    time = programs[1e6].expected.milliseconds
    assert time is not None and counts[1e6] * 1e3 < time < counts[1e6] * 1e3 * 1.1
    assert "ms a run" in programs[1e6].describe()
    again = nn.Program.from_bytes(programs[1e6].to_bytes(), allow_insecure=True)
    assert again.expected == programs[1e6].expected


def test_squares_leave_the_unit_interval_as_far_as_is_said(rng):  # noqa: F811
    """At the largest shift and constant that become squares values reach 1.25^2 + 1, and not more."""
    model = nn.Sequential(nn.Polynomial([1.0625, 0.5, 1.0]))  # (x + 1/4)^2 + 1
    x = np.vstack([np.ones((1, 3)), rng.uniform(-1, 1, (20, 3))])
    program = quiet_compile(model, x, params=toy("toy-boot50"), device="cpu", margin=1.0)
    (step,) = program.plan.steps
    assert isinstance(step, Quadratic)
    largest = np.abs(model(x)).max() / program.plan.values[step.out].bound
    assert largest == pytest.approx(2.5625)


@pytest.mark.parametrize("_", range(5))
def test_splits_are_those_of_transforms(rng, _):  # noqa: F811
    """Baby and giant steps as the library makes them, found from offsets and rotations."""
    shape = (int(rng.integers(1, 5)), 8, 8)
    op = Conv2d(weights(rng, 4, shape[0], 3, 3), np.zeros(4), (1, 1), (1, 1), (1, 1), 1)
    layout = Layout.of(shape, 1024)
    ready = slot_transform([sparse_map(op, shape)], [layout], layout.after(op), [1.0], 1.0)
    context = ckks.Context(toy("toy-leveled-n14-s40"), device="cpu")
    made = ckks.BlockTransform(context, ready.blocks, level=1, slots=ready.slots)
    babies, giants = split(ready.offsets, made.rotations, ready.slots)
    assert (babies, giants) == (made.baby_steps, made.giant_steps)


def test_products_of_a_series_grow_with_the_root_of_the_degree():
    counts = [products(degree) for degree in (1, 3, 7, 15, 31, 63, 127)]
    assert counts == sorted(counts) and counts[0] <= 1 and counts[-1] < 30


def only(params: ckks.Params, **us: float) -> CostModel:
    """A table of times that are all zero but for some operations' times a limb."""
    limbs = range(1, 60)
    rows = tuple(Row(name, n, 1, us.get(name, 0.0) * n, "made up") for name in OPERATIONS for n in limbs)
    return replace(table(params, 0.0), rows=rows)


@dataclass
class Adjusting(Counting):
    """Levels given up by one ciphertext, multiplications each."""

    times: int = 0

    def at(self, a: Counted, level: int) -> Counted:
        self.times += len(adjusting_levels(self.params, a.level, level))
        return super().at(a, level)


def test_the_stated_time_counts_levels_given_up(rng):  # noqa: F811
    """Of a table where nothing else takes time, it is what a walk gives up."""
    params = toy("toy-boot35")
    x = rng.standard_normal((30, 1, 4, 4))
    plan = quiet_compile(residual(rng, 4), x, params=params, degree=31, device="cpu").plan
    transforms = {s.out: prepared(plan, s) for s in plan.steps if isinstance(s, Transform)}
    costs = only(params, adjust_level=1.0)
    flat = replace(costs, rows=tuple(replace(r, us=min(r.us, 1.0)) for r in costs.rows))
    walked = Adjusting(plan, params)
    layout = plan.values[0].layout
    walk(plan, walked, [Counted(plan.input_level, layout.slots)] * layout.ciphertexts)
    assert walked.times > 0
    assert MeasuredPrices(params, 1, flat).total(plan, transforms) == walked.times


def test_factors_of_a_composite_are_priced_at_their_own_levels():
    params = toy("toy-boot35")
    prices = MeasuredPrices(params, 1, only(params, product_rescale=1.0))
    one = Series("sign", 1.0, (np.ones(16),), gated=False)
    two = replace(one, factors=(np.ones(16), np.ones(16)))
    needed, top = ckks.polynomial_depth(15), params.normal_top_level
    first, second = prices.series(one, top), prices.series(one, top - needed)
    assert first > second
    assert prices.series(two, top) == first + second
    gate = prices.product(top - needed)
    assert prices.series(replace(one, gated=True), top) == first + gate


def test_inputs_outputs_and_constants_of_a_transform_are_priced(rng):  # noqa: F811
    params = toy("toy-boot35")
    slots, level = params.slots, 5
    diagonals = {0: np.ones(slots)}

    def made(outputs: int, inputs: int) -> SlotTransform:
        return SlotTransform([[diagonals] * inputs] * outputs, slots, 1, np.zeros((outputs, slots)))

    base = MeasuredPrices(params, 1, only(params, transform=1.0))
    once = base.transform(made(1, 1), level)
    assert once > 0 and base.transform(made(2, 2), level) == 2 * once
    assert base.transform(made(1, 3), level) == base.transform(made(3, 1), level) == 2 * once
    sums = MeasuredPrices(params, 1, only(params, add=1.0))
    assert sums.transform(made(3, 1), level) == 3 * sums.addition(level - 1) > 0
    with pytest.raises(StateError, match="no matrix was given"):
        base.of(Transform(4, (0,), ((),), level), None, 1, level)


def test_no_bootstrap_stands_behind_a_square_that_may_leave_the_unit_interval(rng):  # noqa: F811
    """Fourteen squares in twelve levels: without a shift a bootstrap helps, with one it has no place."""

    def bootstraps(linear: float) -> int:
        model = nn.Sequential(*[nn.Polynomial([0.0, linear, 1.0]) for _ in range(14)])
        x = rng.uniform(0.999, 1.001, (40, 4))
        program = quiet_compile(model, x, params=toy("toy-boot50"), device="cpu", margin=1.0)
        return sum(isinstance(step, Refresh) for step in program.plan.steps)

    assert bootstraps(0.0) == 1
    with pytest.raises(UnsupportedError):
        bootstraps(0.01)


def test_squares_of_what_may_leave_the_unit_interval_take_no_bootstrap_either(rng):  # noqa: F811
    """One square with a shift, thirteen without; a linear layer behind the first has a bound of its own."""
    x = rng.uniform(0.999, 1.001, (40, 4))
    squares = [nn.Polynomial([0.0, 0.01, 1.0]), *[nn.Polynomial([0.0, 0.0, 1.0]) for _ in range(13)]]
    with pytest.raises(UnsupportedError):
        quiet_compile(nn.Sequential(*squares), x, params=toy("toy-boot50"), device="cpu", margin=1.0)
    squares.insert(1, nn.Linear(np.eye(4)))
    plan = quiet_compile(nn.Sequential(*squares), x, params=toy("toy-boot50"), device="cpu", margin=1.0).plan
    assert sum(isinstance(step, Refresh) for step in plan.steps) == 1
