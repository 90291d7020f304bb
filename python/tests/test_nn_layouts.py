"""Layouts by price: every choice is the same function, the least price is taken, and costs by launches."""

import itertools

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401

from crenel import nn
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.accounted import accounted
from crenel.nn.clear import Clear
from crenel.nn.interpret import prepared, walk
from crenel.nn.passes.calibrate import Calibrate
from crenel.nn.passes.interleave import Interleave
from crenel.nn.passes.layouts import Choice, Layouts, _choices, _outlines
from crenel.nn.passes.levels import Levels
from crenel.nn.passes.lower import Lower
from crenel.nn.passes.priced import targets
from crenel.nn.passes.prices import prices_of
from crenel.nn.passes.scales import Scales
from crenel.nn.plan import Transform
from crenel.nn.trace import trace


def strided(rng):  # noqa: F811
    """Two strides, a residual branch behind the first, and planes that are no power of two."""
    branch = nn.Conv2d(weights(rng, 4, 4, 3, 3), weights(rng, 4), padding=1)
    shortcut = nn.Conv2d(weights(rng, 6, 4, 1, 1), stride=2)
    return nn.Sequential(
        nn.Conv2d(weights(rng, 4, 2, 3, 3), weights(rng, 4), stride=2, padding=1),
        nn.Square(),
        nn.Residual(branch),
        nn.Residual(nn.Conv2d(weights(rng, 6, 4, 3, 3), stride=2, padding=1), shortcut),
        nn.Square(),
        nn.Flatten(),
        nn.Linear(weights(rng, 3, 54)),
    )


def lowered(model, samples):
    ranges = Calibrate()(trace(model, samples.shape[1:]), samples)
    graph = trace(model, samples.shape[1:])
    return graph, Scales(2.0)(graph, ranges)


@pytest.mark.filterwarnings("ignore::crenel.nn.CalibrationWarning")
def test_every_layout_is_the_same_function(rng):  # noqa: F811
    """In the clear; and without its numbers a matrix has the diagonals of the whole one."""
    samples = rng.standard_normal((6, 2, 12, 12))
    model = strided(rng)
    graph, bounds = lowered(model, samples)
    plain = Lower(4096)(graph, bounds)
    choices = list(_choices(graph, plain))
    sizes = [frozenset(some) for n in range(3) for some in itertools.combinations([(6, 6), (3, 3)], n)]
    assert choices == [Choice(padded, dense) for dense in sizes for padded in (False, True)]
    wanted, seen = model(samples), set()
    for choice in choices:
        plan = Levels(16, insecure=True)(Lower(4096, choice.padded, choice.dense)(graph, bounds))
        matrices = {s.out: prepared(plan, s) for s in plan.steps if isinstance(s, Transform)}
        for out, outline in _outlines(plan, {}).items():
            assert outline.offsets == matrices[out].offsets and outline.ends == matrices[out].ends
            assert outline.diagonals == matrices[out].diagonals
        ops = Clear(matrices)
        first = plan.values[0]
        given = [ops.input(part / first.bound, first.level) for part in first.layout.pack(samples)]
        made = np.stack([a.values for a in walk(plan, ops, given)])
        last = plan.values[plan.output]
        np.testing.assert_allclose(last.layout.unpack(made) * last.bound, wanted, atol=1e-9)
        seen.add(tuple((v.layout.gap, v.layout.plane) for v in plan.values))
    assert len(seen) == len(choices)


def test_planes_without_gaps_are_taken_where_they_cost_less(rng):  # noqa: F811
    """Behind one stride: nine taps for each of 8 channels, where gaps of 4 have 49 for every 16."""
    layers = [nn.Conv2d(weights(rng, 8, 8, 3, 3), padding=1) for _ in range(6)]
    model = nn.Sequential(nn.Conv2d(weights(rng, 8, 1, 3, 3), stride=4, padding=1), *between(layers))
    samples = rng.standard_normal((20, 1, 16, 16))
    program = quiet_compile(model, samples, params=toy(), device="cpu")
    layouts = [value.layout for value in program.plan.values[1:]]
    assert {layout.gap for layout in layouts} == {(1, 1)} and {v.plane for v in layouts} == {(4, 4)}
    assert "decided layouts: planes, 4x4 without gaps; input 1x16x16" in program.explain()
    assert "instead of planes: " in program.explain()
    wanted = model(samples)
    found = program.simulate(samples, noise=False)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


def between(layers):
    """Squares between layers."""
    return [part for layer in layers for part in (nn.Square(), layer)]


@pytest.mark.filterwarnings("ignore::crenel.nn.CalibrationWarning")
def test_a_network_without_levels_is_refused_by_every_layout(rng):  # noqa: F811
    samples = rng.standard_normal((6, 2, 12, 12))
    graph, bounds = lowered(strided(rng), samples)
    params = toy("toy-leveled-n13-s30")
    prices = prices_of(params, None, 1)

    def refused(plan, matrices):
        raise UnsupportedError("no level")

    with pytest.raises(UnsupportedError, match="no level"):
        Layouts(prices, Interleave(1), refused)(graph, bounds)


def test_costs_by_launches_are_of_a_machine():
    """Each operation that there is, dearer with more limbs and as a batch; a machine that nobody knows."""
    params = toy("toy-boot40")
    costs = accounted(params, "NVIDIA H100", batches=(1, 16))
    assert costs.device.startswith("NVIDIA H100") and costs.stand_ins
    top = params.normal_top_level
    for name in ("product_rescale", "rotation", "diagonal", "add"):
        assert costs.us(name, params, top) >= costs.us(name, params, 1) > 0.0
        # a diagonal is a difference of two accounts, which share reads: not quite dearer where launches count
        assert costs.us(name, params, top, batch=16) >= 0.98 * costs.us(name, params, top)
    boots = [costs.bootstrap(params, slots, top - 3).us for slots in (params.slots // 8, params.slots)]
    assert costs.us("rotation", params, top) < boots[0] <= boots[1]
    assert costs.targets(params) == targets(params)  # and each lower one costs less
    ends = [costs.bootstrap(params, params.slots, level, batch=16).us for level in targets(params)]
    assert ends == sorted(set(ends), reverse=True)
    with pytest.raises(ParameterError, match=rf"targets \[99\], expected levels from 0 to {top - 3}"):
        accounted(params, "NVIDIA H100", targets=[99])
    with pytest.raises(UnsupportedError, match="NVIDIA H100"):
        accounted(params, "an abacus")
