"""Bootstrapping: what is refused, and what is asked for."""

import itertools

import pytest
from conftest import Boot, toy

from crenel import ckks


@pytest.fixture(scope="module")
def world(boot_world) -> Boot:
    return boot_world


def test_ciphertexts_that_do_not_fit(world):
    encrypt = world.client.encrypt
    scale = world.params.scale(0)
    for bad, field in [
        (encrypt([1.0], level=1), "level"),
        (encrypt([1.0]), "level"),
        (encrypt([1.0], level=0, scale=2 * scale), "scale"),
        (encrypt([1.0], level=0, slots=64), "slots"),
        (world.ev.square_lazy(encrypt([1.0])), "components"),
    ]:
        for call in (world.boot, world.boot.eager):
            with pytest.raises(ckks.StateError) as caught:
                call(bad)
            assert {field, "expected"} <= set(caught.value.fields)
    other = ckks.Context(toy("toy-boot45"), "cpu").keygen()
    with pytest.raises(ckks.StateError, match=world.params.id):
        world.boot(other.encrypt([1.0], level=0))
    with pytest.raises(ckks.StateError, match="pair"):
        world.boot.pair(encrypt([1.0], level=0), encrypt([1.0], level=0))
    with pytest.raises(TypeError):
        world.boot("text")


@pytest.mark.parametrize("name", ["toy-leveled-n13-s40", "toy-leveled-n15-s40", "toy-leveled-n16-s40"])
def test_sets_without_levels_for_it(name):
    params = toy(name)
    for options in (ckks.BootstrapOptions(), ckks.BootstrapOptions(slots=64, target_level=1)):
        with pytest.raises(ckks.ParameterError, match="levels above the normal ones.*use a boot... set"):
            ckks.Context(params, "cpu").keygen().evaluation_keys(bootstrap=options)


def test_every_missing_key_is_named(world):
    server = world.client.evaluation_keys(rotations=[1], relinearisation=False)
    for keys in (None, "hoisted"):
        with pytest.raises(ckks.KeyMissingError, match="bootstrap=True") as caught:
            world.context.bootstrapper(server, keys=keys)
        needed = set(ckks.BootstrapOptions().rotations(world.params))
        assert caught.value.fields["rotations"] == sorted(needed - {1})
        assert caught.value.fields["key"] == "conjugate, relinearisation, encapsulation"
    with pytest.raises(ckks.KeyMissingError):
        world.context.bootstrapper(world.client.evaluation_keys(bootstrap="minimal"), keys="hoisted")
    without = world.client.evaluation_keys(rotations=world.keys.rotations, conjugate=True)
    with pytest.raises(ckks.KeyMissingError) as caught:
        world.context.bootstrapper(without)
    assert caught.value.fields["key"] == "encapsulation"


def test_keys_of_another_context(world):
    other = ckks.Context(toy("toy-boot45"), "cpu").keygen().evaluation_keys(rotations=[1])
    with pytest.raises(ckks.StateError, match=world.params.id):
        world.context.bootstrapper(other)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"slots": 3}, "slots"),
        ({"slots": 0}, "slots"),
        ({"slots": 2048}, "slots"),
        ({"message_ratio": 0}, "message_ratio"),
        ({"message_ratio": 11}, "message_ratio"),
        ({"message_ratio": -1}, "message_ratio"),
        ({"message": "quaternion"}, "message"),
        ({"order": "random"}, "order"),
        ({"arcsine_degree": 2}, "arcsine_degree"),
        ({"target_level": 14}, "target_level"),
        ({"iterations": 0}, "iterations"),
        ({"iterations": 3}, "iterations"),
        ({"keys": "few"}, "keys"),
        ({"coeff_to_slot_stages": [3, 3]}, "stages"),
        ({"slot_to_coeff_stages": [1] * 10}, "stages"),
        ({"message": "pair", "order": "slot_to_coeff_first"}, "order"),
        ({"message": "pair", "iterations": 2}, "iterations"),
    ],
)
def test_options_that_cannot_be(world, options, field):
    for make in (
        lambda: world.context.bootstrapper(world.keys, **options),
        lambda: world.client.evaluation_keys(bootstrap=ckks.BootstrapOptions(**options)),
    ):
        with pytest.raises(ckks.ParameterError) as caught:
            make()
        assert field in caught.value.fields


def test_parameters_without_bootstrapping_levels():
    context = ckks.Context(toy(), "cpu")
    client = context.keygen()
    for make in (
        lambda: client.evaluation_keys(bootstrap=True),
        lambda: context.bootstrapper(client.evaluation_keys()),
    ):
        with pytest.raises(ckks.ParameterError, match="boot"):
            make()


def test_arguments_of_wrong_types(world):
    options = ckks.BootstrapOptions()
    for call in (
        lambda: world.client.evaluation_keys(bootstrap=3),
        lambda: world.client.evaluation_keys(bootstrap=None),
        lambda: world.context.bootstrapper(world.client),
        lambda: world.context.bootstrapper(world.keys, "minimal"),
        lambda: world.context.bootstrapper(world.keys, options, slots=4),
        lambda: world.context.bootstrapper(world.keys, colour="red"),
        lambda: ckks.BootstrapOptions(64),
        lambda: ckks.BootstrapOptions(slots="all"),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ckks.ParameterError, match="'hoisted', 'minimal'"):
        world.client.evaluation_keys(bootstrap="few")


def test_requests_add_up(world):
    minimal = world.client.evaluation_keys(bootstrap="minimal")
    keys = world.client.evaluation_keys(rotations=[7], relinearisation=False, bootstrap="minimal")
    assert set(keys.rotations) == {7, *minimal.rotations}
    assert keys.relinearisation and keys.conjugate and keys.has_encapsulation
    for first, second in itertools.pairwise(keys.rotations):
        assert first < second
    assert not world.client.evaluation_keys(bootstrap=False).has_encapsulation
