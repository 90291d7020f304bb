"""A network that bootstraps behind a server: its keys resident, and staged in host memory."""

from __future__ import annotations

import secrets
from contextlib import nullcontext

import numpy as np
import pytest
from nn_world import quiet_compile, residual
from service_world import quiet

from crenel import ckks, client, serve
from crenel.errors import KeyMissingError, ParameterError
from crenel.nn.plan import Refresh
from crenel.serve.programs import NnProgram, Programs
from crenel.serve.settings import Settings
from crenel.serve.worker import Worker


@pytest.fixture(scope="module")
def network():
    """Four activations, more levels than there are; the program, as it is served, and samples."""
    quiet()
    seed = secrets.randbits(32)
    print("seed", seed)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 1, 4, 4))
    model = residual(rng, 1)
    params = ckks.preset("toy-boot35", allow_insecure=True)
    program = quiet_compile(model, x, params=params, degree=31, batch=4, device="cpu")
    assert any(isinstance(step, Refresh) for step in program.plan.steps)
    return program, NnProgram("boots", program.to_bytes(), allow_insecure=True), x, model


def _device_bytes(servable: NnProgram, staged: bool) -> int:
    """Room for all keys, or for all but a twentieth: some are always brought."""
    return servable.key_memory * 19 // 20 if staged else 2 * servable.key_memory


@pytest.mark.parametrize("staged", [False, True], ids=["resident", "staged"])
def test_a_network_that_bootstraps(network, tmp_path, staged):
    program, servable, x, model = network
    settings = Settings(
        data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0,
        device_bytes=_device_bytes(servable, staged),
    )  # fmt: skip
    with serve.running([servable], settings, device="cpu") as service:
        connected = client.connect(service.url, service.token or "")
        session = connected.open("boots", allow_insecure=True, secret_key=tmp_path / "alice.key")
        assert session.spec.bootstraps
        (stored,) = connected.keys()
        assert stored["state"] == "ready"
        assert 0 < stored["bytes"] - servable.key_memory // 2 < 1 << 20
        found = session.run(x[:6], timeout=300)
        again = session.submit(x[0]).result(300)
        seconds = connected.jobs()[0]["seconds"]
        assert seconds["keys"] == 0  # they are there, resident or staged
    assert np.abs(found - program.simulate(x[:6], noise=False)).max() < 0.05
    np.testing.assert_allclose(found, model(x[:6]), atol=0.1)
    np.testing.assert_allclose(again, found[0], atol=0.02)


def test_staged_keys_take_the_budget_and_no_more(network, tmp_path):
    """What the worker counts is what lies on the device; both ways give one result."""
    program, servable, x, _ = network
    spec = program.client
    user = spec.keygen("cpu")
    file = tmp_path / "keys"
    user.evaluation_keys(spec).save(file)
    sent, answers = user.encrypt(x[:2], spec).to_bytes(), []
    for staged in (False, True):
        budget = _device_bytes(servable, staged)
        settings = Settings(
            data=str(tmp_path / f"data{staged}"), allow_insecure=True, min_free_bytes=0, device_bytes=budget
        )
        worker = Worker(settings, Programs([servable]), "cpu")
        worker._blobs.write("keys/" + "a" * 64, [file.read_bytes()])
        with worker.tiers.prepared(servable.program, "a" * 64) as prepared:
            assert prepared.nbytes <= budget
            assert (prepared.nbytes == servable.key_memory) is not staged
            answers.append(prepared.run(sent, lambda: None, nullcontext))
        worker.close()
    found = [user.decrypt(user.tensor_from_bytes(a), spec) for a in answers]
    assert (found[0] == found[1]).all()


def test_keys_without_those_of_bootstraps_are_refused(network, tmp_path):
    program, servable, _, _ = network
    spec = program.client
    holder = spec.keygen("cpu")
    holder.ckks_client.evaluation_keys(rotations=dict(spec.rotations), max_level=spec.relinearisation).save(
        tmp_path / "without"
    )
    settings = Settings(data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0)
    with serve.running([servable], settings, device="cpu") as service:
        connected = client.connect(service.url, service.token or "")
        with pytest.raises(KeyMissingError):
            connected.upload(tmp_path / "without", program.fingerprint)


def test_a_budget_for_less_than_two_keys_is_refused(network, tmp_path):
    _, servable, _, _ = network
    settings = Settings(
        data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0, device_bytes=1 << 16
    )
    with pytest.raises(ParameterError, match="device_bytes") as found:
        Worker(settings, Programs([servable]), "cpu")
    assert found.value.fields["name"] == "device_bytes"
