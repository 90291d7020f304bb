"""Which workers a cluster is asked for: so many of each GPU, and each with its own part of one."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from service_world import made

from crenel.errors import DeviceError, ParameterError, UnavailableError, UnsupportedError
from crenel.serve import hosting, running
from crenel.serve.placing import GRAINS, placed
from crenel.serve.settings import Settings


@pytest.mark.parametrize("workers", [1, 2, 3, 7, GRAINS])
@pytest.mark.parametrize("gpus", [1, 4, 8])
def test_every_gpu_has_as_many_workers_as_were_asked_for(workers: int, gpus: int):
    for device in ("cuda", "auto"):
        found = placed(device, workers, gpus)
        assert (found.device, found.replicas) == ("cuda:0", workers * gpus)
        assert workers * found.gpu <= 1 + 1e-9 < (workers + 1) * found.gpu, "no more and no fewer fit"


def test_without_a_gpu():
    assert placed("auto", 3, 0) == placed("cpu", 3, 5) and placed("ref", 1, 0).gpu == 0
    with pytest.raises(DeviceError, match="no GPU"):
        placed("cuda", 1, 0)
    for device in ("cuda:1", "cuda:dry", "gpu", ""):
        with pytest.raises(ParameterError, match="auto, cpu, ref or cuda"):
            placed(device, 1, 4)
    for workers in (0, -1, GRAINS + 1):
        with pytest.raises(ParameterError, match="workers"):
            placed("cuda", workers, 4)


def test_the_engine_of_one_machine_takes_every_gpu(monkeypatch):
    here = [SimpleNamespace(name=n, kind=n.partition(":")[0]) for n in ("cpu", "cuda:0", "cuda:1", "ref")]
    monkeypatch.setattr(hosting.crenel, "devices", lambda: here)
    for device in ("auto", "cuda"):
        assert hosting.devices_of(device, 2) == ["cuda:0", "cuda:1"] * 2
    monkeypatch.setattr(hosting.crenel, "devices", lambda: here[:1])
    assert hosting.devices_of("auto", 2) == ["cpu"] * 2


@pytest.fixture
def deployment(monkeypatch):
    pytest.importorskip("ray", reason="needs Ray: pip install 'crenel[serve]'")
    from crenel.serve import deployment

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv(deployment.VISIBLE, raising=False)
    yield deployment
    if deployment.ray.is_initialized():
        deployment.serve.shutdown()
        deployment.ray.shutdown()


def _stub(folder: str) -> type:
    """A replica that says where it is, as of Ray: it has no GPU to compute on. A class of a function travels
    by value."""

    class Stub:
        def __init__(self, _settings: str, _programs: list, device: str) -> None:
            with open(f"{folder}/{os.getpid()}", "w") as file:
                file.write(f"{device} {os.environ.get('CUDA_VISIBLE_DEVICES')}")

        def __call__(self) -> int:
            return os.getpid()

    return Stub


def _seen(folder, count: int) -> Counter:
    """What replicas said, once there are so many and for a moment no more."""
    end = time.monotonic() + 60
    while len(list(folder.iterdir())) < count and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.3)
    return Counter(file.read_text() for file in folder.iterdir())


def test_ray_gives_every_gpu_its_workers(deployment, monkeypatch, tmp_path):
    """Four GPUs that Ray is told of."""
    monkeypatch.setattr(deployment, "Computing", _stub(str(tmp_path)))
    deployment.ray.init(num_cpus=10, num_gpus=4, include_dashboard=False, configure_logging=False)
    made_ = deployment.applications(Settings(allow_insecure=True), [made().servable], device="cuda")
    deployment.serve.run(made_[deployment.WORKERS], name=deployment.WORKERS, route_prefix=None)
    assert _seen(tmp_path, 4) == Counter({f"cuda:0 {k}": 1 for k in range(4)})


def test_ray_takes_the_one_gpu_that_is_named(deployment, monkeypatch, tmp_path):
    """Of those that are seen here, and no other; a cluster that is joined is not told which."""
    (tmp_path / "seen").mkdir()
    monkeypatch.setattr(deployment, "Computing", _stub(str(tmp_path / "seen")))
    monkeypatch.setattr(deployment, "_await", lambda *_: None)
    monkeypatch.setattr(hosting.crenel, "device_info", lambda name: name)
    monkeypatch.setenv(deployment.VISIBLE, "4,6,7")
    settings = Settings(data=str(tmp_path / "data"), allow_insecure=True)
    with deployment.running([made().servable], settings, device="cuda:1", port=0, workers=2):
        assert _seen(tmp_path / "seen", 2) == Counter({"cuda:0 6": 2})
    assert os.environ[deployment.VISIBLE] == "4,6,7"
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with (
        pytest.raises(ParameterError, match="chooses GPUs itself"),
        deployment.running([made().servable], settings, device="cuda:1"),
    ):
        pass


def test_what_ray_is_not_started_for(deployment, tmp_path):
    settings = Settings(data=str(tmp_path), allow_insecure=True)
    for wrong in ({"workers": 0}, {"workers": -5}, {"port": 99999}, {"port": -1}):
        with pytest.raises(ParameterError), deployment.running([made().servable], settings, **wrong):
            pass
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(UnsupportedError, match=f"cannot listen at 127.0.0.1:{port}"),
            deployment.running([made().servable], settings, port=port),
        ):
            pass
    assert not deployment.ray.is_initialized()


def test_ray_that_gives_up_is_said(deployment, monkeypatch, tmp_path):
    """Its error of 30 s has no class of its own; others pass as they are."""

    def slow(**_options: object) -> None:
        raise Exception("The current node timed out during startup. This could happen because ...")

    def wrong(**_options: object) -> None:
        raise RuntimeError("something else")

    for begin, error, text in ((slow, UnavailableError, "Ray waited 30 s"), (wrong, RuntimeError, "else")):
        monkeypatch.setattr(deployment.ray, "init", begin)
        settings = Settings(data=str(tmp_path / "data"), allow_insecure=True)
        with (
            pytest.raises(error, match=text),
            deployment.running([made().servable], settings, port=0),
        ):
            pass


def test_a_device_that_is_not_there_is_refused(tmp_path):
    with (
        pytest.raises((DeviceError, ParameterError)),
        running([made().servable], Settings(data=str(tmp_path), allow_insecure=True), device="cuda:77"),
    ):
        pass
