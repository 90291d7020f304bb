"""crenel.distributed on a real Ray of this machine: slow and killed workers, order, GPUs, a large task."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from crenel import ckks, distributed, nn
from crenel.errors import DeviceError, FileError, OutOfMemoryError, ParameterError, UnavailableError

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'crenel[serve]'")


@pytest.fixture(scope="module")
def joined():
    """Ray with four processors and, as it believes, two GPUs; `map` finds it and leaves it."""
    os.environ.pop("RAY_ADDRESS", None)
    ray.init(num_cpus=4, num_gpus=2, include_dashboard=False, object_store_memory=100 << 20,
             configure_logging=False, log_to_driver=False)  # fmt: skip
    yield
    ray.shutdown()


def naming(_device):
    """The process that computed, with its input."""
    import os

    return lambda data: data + b" %d" % os.getpid()


def test_order_and_a_slow_worker(joined, tmp_path):
    slow = tmp_path / "slow"

    def make(_device):
        import os
        import time

        def run(data):
            try:
                slow.touch(exist_ok=False)  # who comes first is the slow one
                slow.write_text(str(os.getpid()))
            except FileExistsError:
                pass
            mine = slow.read_text() == str(os.getpid())
            time.sleep(1.0 if mine else 0.01)
            return data + b" %d" % os.getpid()

        return run

    sent = [b"%d" % k for k in range(60)]
    found = [answer.split() for answer in distributed.map(distributed.Task(make), iter(sent), workers=3)]
    assert [number for number, _ in found] == sent
    by = [pid for _, pid in found]
    assert by.count(slow.read_bytes()) <= 10, by  # in turn it would have 20
    assert ray.is_initialized()


def test_a_killed_worker(joined, tmp_path):
    def make(_device):
        import os
        import time

        def run(data):
            (tmp_path / f"{os.getpid()}").touch()
            time.sleep(0.05)
            return data

        return run

    sent = [b"%d" % k for k in range(40)]
    found = distributed.map(distributed.Task(make), sent, workers=2)
    answers = [next(found)]
    for _ in range(2):
        killed = max(tmp_path.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        os.kill(int(killed.name), signal.SIGKILL)
        answers += [next(found) for _ in range(8)]
    assert answers + list(found) == sent
    assert len(list(tmp_path.iterdir())) >= 3  # somebody came in the place of the first


def test_an_input_that_kills_its_workers_ends(joined):
    def make(_device):
        import os

        return lambda data: os._exit(1) if data == b"poison" else data

    found = distributed.map(distributed.Task(make), [b"good", b"poison", b"behind"])
    assert next(found) == b"good"
    with pytest.raises(UnavailableError, match="died at input 1"):
        next(found)


def test_each_worker_has_a_gpu_that_ray_chose(joined, tmp_path):
    def make(device):
        import os
        import time

        def run(data):
            (tmp_path / f"{os.getpid()}").touch()
            end = time.monotonic() + 60
            while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < end:
                time.sleep(0.01)  # one that begins late has its share all the same
            return f"{device} {os.environ['CUDA_VISIBLE_DEVICES']}".encode()

        return run

    found = set(distributed.map(distributed.Task(make), [b""] * 20, workers=2, device="cuda"))
    assert found == {b"cuda:0 0", b"cuda:0 1"}
    with pytest.raises(DeviceError, match="3 workers need a GPU each, Ray has 2"):
        next(distributed.map(distributed.Task(make), [b""], workers=3, device="cuda"))


def test_errors(joined, monkeypatch, tmp_path):
    task = distributed.Task(naming)
    for wrong in ({"device": "cuda:0"}, {"workers": 0}, {"ahead": 0}, {"waiting": -1}):
        with pytest.raises(ParameterError):
            distributed.map(task, [], **wrong)
    for wrong in ({"device": 5}, {"workers": "2"}, {"workers": 1.5}, {"ahead": 1.5}, {"waiting": 0.5}):
        with pytest.raises(TypeError, match=f"{next(iter(wrong))}: expected"):
            distributed.map(task, [], **wrong)
    with pytest.raises(TypeError, match="expected crenel.distributed.Task, got function"):
        distributed.map(naming, [])
    with pytest.raises(TypeError, match="inputs: expected several, got int"):
        distributed.map(task, 5)
    assert list(distributed.map(task, [])) == []
    for first in (None, 5):
        with pytest.raises(ParameterError, match="input 0 is a .*, expected bytes"):
            list(distributed.map(distributed.Task(lambda _: bytes), [first, b""]))
    for make, said in ((lambda _: None, "gave NoneType"), (lambda _: lambda _: 5, "function gave int")):
        with pytest.raises(ParameterError, match=said):
            list(distributed.map(distributed.Task(make), [b""]))
    with pytest.raises(ParameterError, match="on_nodes"):
        distributed.program(b"", "keys", on_nodes=True)
    with pytest.raises(FileError):
        distributed.program(tmp_path / "nothing", b"")
    missing = distributed.program(tmp_path / "nothing", tmp_path / "keys", on_nodes=True)
    with pytest.raises(FileError):  # at the worker
        next(distributed.map(missing, [b""]))

    monkeypatch.setattr(distributed, "START_S", 0.5)
    monkeypatch.setattr(distributed, "LOOK_S", 0.1)
    others = ray.remote(num_cpus=4)(naming_actor()).remote()
    ray.get(others.ready.remote())
    with pytest.raises(UnavailableError, match="no worker found a place"):
        next(distributed.map(task, [b""]))
    ray.kill(others)


def naming_actor():
    class Occupied:
        def ready(self):
            return True

    return Occupied


def test_programs(joined, tmp_path, rng):
    """Sent or read where workers are: the same bytes as here."""
    params = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
    samples = rng.normal(size=(50, 3))
    layers = nn.Linear(rng.normal(0, 0.5, (4, 3))), nn.Square(), nn.Linear(rng.normal(0, 0.5, (2, 4)))
    made = nn.compile(nn.Sequential(*layers), samples, params=params, batch=4, device="cpu")
    user = made.client.keygen("cpu")
    made.save(tmp_path / "program")
    user.evaluation_keys(made.client).save(tmp_path / "keys")
    sent = [user.encrypt(samples[k : k + 4], made.client).to_bytes() for k in range(0, 16, 4)]
    server = made.bind(tmp_path / "keys")
    expected = [server.run(server.tensor_from_bytes(data)).to_bytes() for data in sent]
    for on_nodes in (False, True):
        task = distributed.program(
            tmp_path / "program", tmp_path / "keys", on_nodes=on_nodes, allow_insecure=True
        )
        assert list(distributed.map(task, sent, workers=2)) == expected


def test_a_task_larger_than_rays_store_is_by_default(monkeypatch):
    """Keys of a bootstrap have gigabytes: the store is as large as what is sent; without memory for it
    nothing begins."""
    ray.shutdown()  # of the tests before
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    blob = np.random.default_rng().bytes(300 << 20)

    def make(_device, blob=blob):
        return lambda data: blob[int(data) : int(data) + 8]

    start = time.monotonic()
    task = distributed.Task(make)
    assert list(distributed.map(task, [b"0", b"%d" % (len(blob) - 8)])) == [blob[:8], blob[-8:]]
    print(f"{time.monotonic() - start:.1f} s")
    assert not ray.is_initialized()
    with pytest.raises(ParameterError, match="input 0 is a int"):  # whose size the store is made for
        next(distributed.map(distributed.Task(lambda _device: bytes), [5]))

    class Full:
        def __init__(self, name):
            self.available_bytes = 400 << 20

    monkeypatch.setattr(distributed.crenel, "Device", Full)
    with pytest.raises(OutOfMemoryError, match="on_nodes=True") as error:
        next(distributed.map(task, [b"0"]))
    assert error.value.fields["needed"] > 428 << 20 and not ray.is_initialized()
