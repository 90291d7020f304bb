"""Arguments at the edges of the Python interface."""

from __future__ import annotations

import numpy as np
import pytest

from crenel import ckks


def test_powers_take_numpy_integers(world):
    a = world.ev(world.client.encrypt([0.5, -0.25]))
    assert world.error(a ** np.int64(2), np.pad([0.25, 0.0625], (0, world.slots - 2))) < 2**-18
    with pytest.raises(ckks.ParameterError):
        a ** np.float64(2)


def test_a_huge_batch_is_refused(world):
    with pytest.raises(ckks.ParameterError) as caught:
        world.context.encode(np.broadcast_to(0.0, (2**33, 1)))
    assert caught.value.fields["batch"] == 2**33


def test_huge_steps(world):
    x = np.linspace(-1, 1, world.slots)
    a = world.client.encrypt(x)
    assert world.error(world.ev.rotate(a, -(2**63) + 1), np.roll(x, -1)) < 2**-18
    assert world.error(world.ev.sum_slots(a, 2, -(2**63) + 1), x + np.roll(x, -1)) < 2**-18


def test_the_power_basis_has_no_interval(world):
    with pytest.raises(ckks.ParameterError, match="interval"):
        world.ev.polynomial(world.client.encrypt([0.5]), [0, 1], interval=(0, 2))


def test_a_graph_of_real_slots_refuses_complex_ones(world):
    graph = ckks.Graph(world.ev, world.ev.negate, world.client.encrypt([0.5]))
    with pytest.raises(ckks.StateError, match="complex"):
        graph(world.client.encrypt([0.5j]))


def test_the_exported_secret_key_comes_back(world):
    secret = world.client.export_secret_key()
    again = world.context.client_from_secret_key(secret)
    assert again.export_secret_key() == secret and any(secret)
    with pytest.raises(ckks.SerializationError):
        world.context.client_from_secret_key(bytes(len(secret)))
