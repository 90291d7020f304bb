"""The small networks of the comparison: 16 bits on their parameters, and the model of errors agrees."""

import numpy as np
import pytest
from nn_world import quiet_compile, rng  # noqa: F401

from crenel import ckks
from crenel.workloads.networks import small


@pytest.mark.parametrize(
    ("network", "name", "count"), [("mlp", "leveled-n13-s28", 20), ("lenet", "leveled-n14-s30", 4)]
)
def test_sixteen_bits_on_a_cpu(rng, network, name, count):  # noqa: F811
    seed = int(rng.integers(1 << 30))
    model, calibration = getattr(small, network)(seed)
    program = quiet_compile(model, calibration[:32], params=ckks.preset(name), device="cpu")
    assert program.plan.input_level == program.params.normal_top_level or network == "lenet"
    spec = program.client
    client = spec.keygen("cpu")
    server = program.bind(client.evaluation_keys(spec))
    samples = rng.random((count, *calibration.shape[1:]))
    found = np.stack([client.decrypt(server.run(client.encrypt(x, spec)), spec) for x in samples])
    errors = found - model(samples)
    assert np.abs(errors).max() <= 2.0**-16
    clear = program.simulate(samples, noise=False)
    np.testing.assert_allclose(clear, model(samples), atol=1e-12)
    drawn = program.simulate(np.repeat(samples, 8, axis=0)) - np.repeat(clear, 8, axis=0)
    ratio = np.sqrt(np.mean(errors**2) / np.mean(drawn**2))
    assert 0.3 < ratio < 3.0
