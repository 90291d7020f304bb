"""The main job: agreement, what the server may hold, the plot, refusals."""

import ast
import gc
import inspect
import re

import numpy as np
import pytest
from conftest import open_context, toy
from needed import needs

import crenel
from crenel import ckks
from crenel.cli import main
from crenel.workloads.prediction import client, layout, model, run, server

needs("demo", "sklearn")
pytestmark = pytest.mark.filterwarnings("ignore::crenel.InsecureParametersWarning")


def test_demo_on_every_device(device, capsys, tmp_path):
    """Toy parameters, two ciphertexts: 48 patients, 32 in each."""
    open_context(toy(), device)  # skips where there is no GPU
    plot = tmp_path / "plot.png" if device == "cpu" else None
    if plot:
        needs("demo", "matplotlib")
    assert run(device=device, plot=plot, patients=48, params=toy()) == 0
    out = capsys.readouterr().out
    assert "within 2^-15" in out and "INSECURE" in out
    assert re.search(rf"server computes on +{device}", out)
    assert float(re.search(r"accuracy, encrypted +([\d.]+)%", out)[1]) > 90
    for fact in ("evaluation keys", "encrypted features", "security", "total time", "why not on a GPU"):
        assert fact in out or (fact.startswith("why") and device.startswith("cuda"))
    if plot:
        assert plot.read_bytes().startswith(b"\x89PNG")


def test_the_command_with_real_parameters(capsys):
    assert main(["demo", "--device", "cpu", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    bits = float(re.search(r"about (\d+) bits", out)[1])
    assert bits >= 128 and "INSECURE" not in out
    error = float(re.search(r"error of encryption +at most ([\d.e+-]+)", out)[1])
    assert error < 2**-15
    assert "same verdict for 256 patients" in out


def test_disagreement_is_a_failure(monkeypatch, capsys):
    """A server that computes something else is noticed: exit status 1."""
    honest = server.PredictionServer.__init__

    def wrong(self, weights, bias, *rest, **named):
        honest(self, weights, bias + 0.01, *rest, **named)

    monkeypatch.setattr(server.PredictionServer, "__init__", wrong)
    assert run(device="cpu", patients=8, params=toy()) == 1
    assert "EXCEEDS" in capsys.readouterr().out


def test_a_device_that_is_missing_says_why(capsys):
    reason = crenel.cuda_unavailable_reason()
    if not reason:
        pytest.skip("there is such a device: nothing to refuse")
    assert main(["demo", "--device", "cuda"]) == 2
    assert reason in capsys.readouterr().err


def test_the_server_source_names_no_secret():
    tree = ast.parse(inspect.getsource(server))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imported = {a.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for a in node.names}
    for name in names | imported:
        assert not re.search(r"keygen|decrypt|encrypt|secret|client", name, re.IGNORECASE), name


def test_the_server_reaches_no_client_object():
    """Everything reachable from a server that has served: no client, no secret key."""
    hospital = client.HospitalClient(toy(), "cpu")
    secret = hospital._client.export_secret_key()[-1024:]  # of coefficients, at the end of the file
    service = server.PredictionServer(np.ones(30) / 60, 0.0, np.array([0.5, 0.4]), "cpu", allow_insecure=True)
    with pytest.warns(ckks.InsecureParametersWarning):
        service.connect(hospital.params_bytes(), hospital.evaluation_key_bytes())
    seen: set[int] = set()
    waiting: list[object] = [service.__dict__]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or inspect.ismodule(thing) or isinstance(thing, type):
            continue
        seen.add(id(thing))
        assert not isinstance(thing, ckks.Client | client.HospitalClient)
        waiting += gc.get_referents(thing)
    for sent in (
        hospital.params_bytes(),
        hospital.evaluation_key_bytes(),
        hospital.encrypt(np.ones((2, 30))),
    ):
        assert isinstance(sent, bytes) and secret not in sent and secret[:64] not in sent


@pytest.mark.parametrize("slots", [1024, 8192, 16384])
def test_layout_sums_each_patient(slots):
    row = layout.row_length(slots)
    x = np.random.default_rng(2).normal(size=(layout.FEATURES, row))
    sums = sum(np.roll(x.ravel(), -s) for s in layout.baby_steps(slots))
    sums = sum(np.roll(sums, -s) for s in layout.giant_steps(slots))
    assert np.allclose(sums, np.tile(x.sum(axis=0), layout.FEATURES))
    assert 0 not in layout.rotations(slots) and len(layout.rotations(slots)) == 10


@pytest.mark.parametrize("seed", range(5))
def test_the_model_is_sound(seed):
    split = model.load(seed, 256)
    assert len(split.labels) == 256 and len(split.train_labels) == 313
    trained = model.train(split)
    assert np.abs(trained.logits(split.features)).max() < trained.bound
    exact, polynomial = trained.exact(split.features), trained.approximate(split.features)
    assert ((exact > 0.5) == split.labels).mean() > 0.93
    assert np.abs(exact - polynomial).max() < 0.06
    assert np.array_equal(exact > 0.5, polynomial > 0.5)
