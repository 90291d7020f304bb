"""Keys for the levels up to one: what is asked for, what it takes, and what programs need of which level."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import World, open_context, toy

from crenel import ckks


def test_keys_serve_the_levels_asked_for(world, rng):
    low, high = sorted(int(level) for level in rng.choice(world.top, 2, replace=False))
    asked = {"rotations": {1: low, -2: high}, "conjugate": True, "max_level": low}
    keys = world.client.evaluation_keys(**asked)
    assert (keys.level_of(1), keys.level_of(-2), keys.level_of(3)) == (low, high, None)
    assert keys.level_of("conjugate") == keys.level_of("relinearisation") == low
    assert keys.nbytes == world.params.key_bytes(**asked)
    assert keys.nbytes <= world.params.key_bytes(rotations=[1, -2], conjugate=True)
    whole = world.client.evaluation_keys(rotations=[1, -2])
    assert whole.level_of(1) == world.params.max_level and whole.level_of("conjugate") is None
    ev, reference = world.context.evaluator(keys), world.context.evaluator(whole)
    x = rng.uniform(-1, 1, 8)
    for step, limit in ((1, low), (-2, high)):
        for level in range(world.top + 1):
            c = world.client.encrypt(x, level=level, slots=8)
            if level <= limit:
                found, expected = ev.rotate(c, step), reference.rotate(c, step)
                assert np.abs(world.client.decrypt(found) - world.client.decrypt(expected)).max() < 2**-10
                continue
            with pytest.raises(ckks.KeyMissingError, match=f"serves levels up to {limit}, the operand") as e:
                ev.rotate(c, step)
            assert e.value.fields["rotations"] == [step]
            assert (e.value.fields["level"], e.value.fields["max_level"]) == (level, limit)
            made = eval(str(e.value).rsplit(": ", 1)[1], {"client": world.client})  # the call that it names
            assert made.level_of(step) == level
            world.context.evaluator(made).rotate(c, step)


def test_levels_that_are_none_are_refused(world):
    top = world.params.max_level
    for asked in (
        {"max_level": top + 1},
        {"rotations": {1: top + 1}},
        {"max_level": -1},
        {"rotations": {1: -1}},
    ):
        for ask in (world.client.evaluation_keys, world.params.key_bytes):
            with pytest.raises(ckks.ParameterError):
                ask(**asked)
    for rotations in ({1: "2"}, {"a": 1}, [1.5], 3, {1: None}, ["a"]):
        with pytest.raises(TypeError):
            world.client.evaluation_keys(rotations=rotations)
    for key in ("encapsulation", None, 1.5):
        with pytest.raises(TypeError):
            world.keys.level_of(key)


def test_files_keep_levels(world, tmp_path):
    keys = world.client.evaluation_keys(rotations={1: 2, 5: 0}, max_level=1)
    keys.save(tmp_path / "keys")
    loaded = (
        world.context.load_evaluation_keys(tmp_path / "keys"),
        world.context.evaluation_keys_from_bytes(keys.to_bytes()),
        world.context.load_evaluation_keys(tmp_path / "keys", staged_bytes=keys.nbytes),
    )
    for each in loaded:
        levels = [each.level_of(key) for key in (1, 5, "relinearisation", "conjugate")]
        assert levels == [2, 0, 1, None] and each.nbytes == keys.nbytes


def without(found: ckks.Needs, **changes) -> ckks.Needs:
    fields = ("rotation_levels", "conjugation_level", "relinearisation_level", "bootstraps", "depth")
    return ckks.Needs(**({name: getattr(found, name) for name in fields} | changes))


def test_programs_need_each_key_at_its_level_and_no_higher(world, rng):
    def program(a):
        b = (a * 0.5).rotate(1) * a
        return (b.square().rotate(1) + b.rotate(-3)).conjugate()

    x = rng.uniform(-1, 1, 16)
    a = world.client.encrypt(x, slots=16)
    found = ckks.needs(program, world.params, a)
    top = world.top
    assert found.rotation_levels == {-3: top - 2, 1: top - 1}
    assert (found.relinearisation_level, found.conjugation_level) == (top - 1, top - 3)
    keys = ckks.keys_for(world.client, program, a)
    assert (keys.level_of(1), keys.level_of(-3)) == (top - 1, top - 2)
    assert keys.nbytes == found.key_bytes(world.params)
    assert keys.nbytes < world.params.key_bytes(rotations=[1, -3], conjugate=True)
    b = np.roll(x / 2, -1) * x
    expected = np.roll(b**2, -1) + np.roll(b, 3)
    result = program(world.context.evaluator(keys)(a))
    assert np.abs(world.client.decrypt(result) - expected).max() < 2**-8
    for step, level in found.rotation_levels.items():
        lower = without(found, rotation_levels=found.rotation_levels | {step: level - 1})
        with pytest.raises(ckks.KeyMissingError):
            program(world.context.evaluator(lower.keys(world.client))(a))
    lower = without(found, relinearisation_level=top - 2)
    with pytest.raises(ckks.KeyMissingError, match="relinearisation"):
        program(world.context.evaluator(lower.keys(world.client))(a))


def test_the_union_of_needs_serves_both(world, rng):
    def first(a):
        return a.rotate(1) * a

    def second(a):
        return (a * 0.5 * a).rotate(1) + a.rotate(2).conjugate()

    a = world.client.encrypt(rng.uniform(-1, 1, 8), slots=8)
    one, two = (ckks.needs(f, world.params, a) for f in (first, second))
    for both in (one | two, two | one):
        assert both.rotation_levels == {1: world.top, 2: world.top} and both.rotations == [1, 2]
        assert both.relinearisation_level == world.top and both.conjugation_level == world.top
        assert both.depth == two.depth and both.bootstrap is None
    assert one | one == one
    keys = (one | two).keys(world.client)
    ev = world.context.evaluator(keys)
    first(ev(a)), second(ev(a))
    with pytest.raises(TypeError):
        one | 3


def test_bootstrappers_of_several_options_share_keys():
    world = World(open_context(toy("toy-boot40"), "cpu"))
    boots = [world.context.bootstrapper(slots=slots) for slots in (world.params.slots, 64)]

    def program(a, b):
        return boots[0](a).rotate(3), boots[1](b), boots[0](a)

    inputs = [world.client.encrypt([0.5], level=b.levels.input, slots=b.options.slots) for b in boots]
    found = ckks.needs(program, world.params, *inputs)
    assert isinstance(found.bootstrap, tuple) and len(found.bootstrap) == 2
    assert found.rotation_levels == {3: boots[0].levels.output}
    keys = found.keys(world.client)
    for boot in boots:
        world.context.bootstrapper(keys, boot.options)  # every key is there
    assert keys.nbytes == found.key_bytes(world.params)
    assert keys.nbytes < sum(world.params.key_bytes(bootstrap=b.options) for b in boots)
    alone = [ckks.needs(boot, world.params, c) for boot, c in zip(boots, inputs, strict=True)]
    assert set(map(repr, (alone[0] | alone[1]).bootstraps)) == set(map(repr, found.bootstraps))
    assert alone[0].bootstrap is not None and (alone[0] | alone[0]).bootstrap is not None
    few = world.client.evaluation_keys(bootstrap=boots[1].options)
    with pytest.raises(ckks.KeyMissingError):
        world.context.bootstrapper(few, boots[0].options)
