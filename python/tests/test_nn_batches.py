"""Samples in neighbouring slots, and splits of transforms that share rotations."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from nn_world import quiet_compile, rng, toy, weights  # noqa: F401

from crenel import nn
from crenel.nn.layout import Layout
from crenel.nn.linear import applied, chain_map, slot_transform
from crenel.nn.ops import Conv2d
from crenel.nn.passes.splits import chosen
from crenel.nn.plan import Transform


@pytest.mark.parametrize("images", [1, 2, 8])
def test_samples_interleave(rng, images):  # noqa: F811
    """Element e of sample i of a row lies at slot images * e + i; the last sample fills the last row."""
    layout = replace(Layout.of((3, 4, 5), 1024), images=images)
    count = int(rng.integers(1, 3 * images + 1))
    x = rng.standard_normal((count, 3, 4, 5))
    packed = layout.pack(x)
    rows = -(-count // images)
    assert packed.shape == (1, rows, 64 * images) == (layout.ciphertexts, layout.rows(count), layout.slots)
    np.testing.assert_array_equal(layout.unpack(packed, count), x)
    alone = layout.alone().pack(x)[0]
    for k in range(rows * images):
        found = packed[0, k // images, k % images :: images]
        np.testing.assert_array_equal(found, alone[min(k, count - 1)])
    assert layout.alone().positions().max() < layout.alone().slots


@pytest.mark.parametrize("stride", [1, 2])
def test_a_transform_of_several_samples_is_that_of_each(rng, stride):  # noqa: F811
    """With as many diagonals, all at multiples of the number of samples."""
    op = Conv2d(
        rng.standard_normal((4, 2, 3, 3)), rng.standard_normal(4), (stride, stride), (1, 1), (1, 1), 1
    )
    given = Layout.of((2, 8, 8), 2048)
    made = given.after(op)
    matrix = slot_transform([chain_map([op], given.shape)], [given], made, [0.5], 2.0)
    x = rng.uniform(-1, 1, (7, *given.shape))
    for images in (1, 4):
        several = matrix.interleaved(images)
        assert several.diagonals == matrix.diagonals
        assert several.offsets == [images * k for k in matrix.offsets]
        wide = replace(given, images=images).pack(x)[0]
        wide = np.tile(wide, (1, several.slots // wide.shape[1]))
        (found,) = applied(several, [wide])
        found = found.reshape(len(found), several.copies, -1).sum(axis=1) + several.bias[0]
        result = replace(made, images=images).unpack(found[None], len(x)) * 2.0
        np.testing.assert_allclose(result, op(x), atol=1e-12)


def test_a_batch_takes_no_more_rotations_than_one_sample(rng):  # noqa: F811
    model = nn.Sequential(nn.Conv2d(weights(rng, 2, 1, 3, 3), padding=1), nn.Square(), nn.Flatten(),
                          nn.Linear(weights(rng, 3, 128)))  # fmt: skip
    x = rng.uniform(-1, 1, (40, 1, 8, 8))
    programs = [quiet_compile(model, x, params=toy("toy-leveled-n14-s40"), batch=b) for b in (1, 6, 100)]
    one, six, hundred = programs
    assert [p.plan.values[0].layout.images for p in programs] == [1, 8, 8]  # 1024 slots, 128 a sample
    assert hundred.plan.rows(100) == 13
    assert len(six.demand.rotations) == len(one.demand.rotations)
    np.testing.assert_allclose(six.simulate(x, noise=False), one.simulate(x, noise=False), atol=1e-9)
    for program in programs:
        assert nn.Program.from_bytes(program.to_bytes(), allow_insecure=True).explain() == program.explain()


def _random_options(rng, transforms, splits):  # noqa: F811
    return [
        [
            (1 << k, float(rng.uniform(1, 4)), frozenset(map(int, rng.choice(12, rng.integers(1, 6), False))))
            for k in range(splits)
        ]
        for _ in range(transforms)
    ]


@pytest.mark.parametrize("_", range(20))
def test_splits_are_the_cheapest_of_all(rng, _):  # noqa: F811
    """Against every choice; and where there are too many, no change of one or two improves what is chosen."""
    fixed, key = frozenset({0, 3}), float(rng.uniform(0, 1))

    def value(splits):
        return sum(s[1] for s in splits) + key * len(fixed.union(*(s[2] for s in splits)))

    options = _random_options(rng, 4, 4)
    assert value(chosen(options, fixed, key)) == min(value(s) for s in itertools.product(*options))
    options = _random_options(rng, 9, 5)
    best = chosen(options, fixed, key)
    assert value(best) <= value([one[0] for one in options])
    for i, j in itertools.combinations(range(9), 2):
        for a, b in itertools.product(options[i], options[j]):
            other = [*best]
            other[i], other[j] = a, b
            assert value(best) <= value(other) + 1e-12


def test_transforms_share_rotations(rng):  # noqa: F811
    """Of a chain of convolutions: with the splits of the plan, never more keys than of each by itself."""
    layers = [nn.Conv2d(weights(rng, c, 4, 3, 3), padding=1, stride=s) for c, s in ((4, 1), (4, 2), (4, 1))]
    model = nn.Sequential(*[m for layer in layers for m in (layer, nn.Square())])
    program = quiet_compile(model, rng.uniform(-1, 1, (30, 4, 8, 8)), params=toy("toy-leveled-n16-s40"))
    steps = [s for s in program.plan.steps if isinstance(s, Transform)]
    alone = {k for s in steps for k in program.transforms[s.out].rotations(0)}
    shared = {k for s in steps for k in program.transforms[s.out].rotations()}
    assert shared <= set(program.demand.rotations) and len(shared) <= len(alone)
    found = [(s.babies, program.transforms[s.out].babies) for s in steps]
    assert all(a == b for a, b in found)
