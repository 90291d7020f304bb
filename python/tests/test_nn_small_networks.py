"""The small networks of the comparison: 16 bits on their parameters, and the model of errors agrees."""

import numpy as np
import pytest
from nn_world import quiet_compile, rng, same_bits, toy, weights  # noqa: F401

from crenel import ckks, nn
from crenel.workloads.networks import small


@pytest.mark.parametrize(("network", "name"), [("mlp", "leveled-n13-s28"), ("lenet", "leveled-n14-s30")])
def test_sixteen_bits_on_a_cpu(rng, network, name):  # noqa: F811
    seed = int(rng.integers(1 << 30))
    model, calibration = getattr(small, network)(seed)
    program = quiet_compile(model, calibration[:32], params=ckks.preset(name), device="cpu")
    spec = program.client
    client = spec.keygen("cpu")
    server = program.bind(client.evaluation_keys(spec))
    samples = rng.random((8, *calibration.shape[1:]))
    found = np.stack([client.decrypt(server.run(client.encrypt(x, spec)), spec) for x in samples])
    errors = found - model(samples)
    assert np.abs(errors).max() <= 2.0**-16
    clear = program.simulate(samples, noise=False)
    np.testing.assert_allclose(clear, model(samples), atol=1e-12)
    drawn = program.simulate(np.repeat(samples, 20, axis=0)) - np.repeat(clear, 20, axis=0)
    ratio = np.sqrt(np.mean(errors**2) / np.mean(drawn**2))
    assert 0.3 < ratio < 3.0


@pytest.mark.parametrize("name", ["toy-leveled-n13-s28", "toy-leveled-n14-s30"])
def test_devices_compute_the_same_bits_of_short_vectors(rng, name):  # noqa: F811
    """Plaintexts that repeat, of every power of two up to the slots: `ref` is the specification."""
    sizes = [1 << int(k) for k in rng.permutation(range(2, 7))[:3]]
    first, second = (weights(rng, b, a) for a, b in zip(sizes, sizes[1:], strict=False))
    model = nn.Sequential(nn.Linear(first), nn.Square(), nn.Linear(second))
    samples = rng.standard_normal((30, sizes[0]))
    program = quiet_compile(model, samples, params=toy(name), device="cpu")
    found = same_bits(program, samples[0])
    limit = 8.0 * program.expected.noise + 1e-12
    np.testing.assert_allclose(found, program.simulate(samples[:1], noise=False)[0], atol=limit)
