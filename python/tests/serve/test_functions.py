"""Functions of CKKS and TFHE behind a server: their clients make the keys, send inputs and read results."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import secrets
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import served_functions
from service_world import made, quiet

from crenel import ckks, client, serve
from crenel.client_functions import FunctionSpec
from crenel.errors import (
    KeyMissingError,
    NotFoundError,
    ParameterError,
    SerializationError,
    StateError,
    UnsupportedError,
)
from crenel.nn import archive
from crenel.nn.client import EncryptedTensor
from crenel.serve import forms
from crenel.serve.health import Health
from crenel.serve.programs import read
from crenel.serve.settings import Settings


@pytest.fixture
def rng() -> np.random.Generator:
    seed = secrets.randbits(32)
    print("seed", seed)
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """One server for the module."""
    quiet()
    folder = Path(__file__).parent
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
        data = tmp_path_factory.mktemp("functions") / "data"
        settings = Settings(data=str(data), allow_insecure=True, min_free_bytes=0)
        programs = [*served_functions.functions().values(), made().servable]
        with serve.running(programs, settings, device="cpu") as service:
            yield client.connect(service.url, service.token or "")


def opened(live: client.Service, name: str, **more) -> client.FunctionSession:
    found = live.open(name, allow_insecure=True, **more)
    assert isinstance(found, client.FunctionSession)
    return found


def test_masked_inputs_are_refused(live):
    session = opened(live, "rotated")
    with pytest.raises(ParameterError, match="input 0 has masked places, expected numbers in all of them"):
        session.submit(np.ma.array([1.0, 2.0], mask=[0, 1]))


def test_a_ciphertext_and_numbers_that_it_encrypts(live, rng):
    session = opened(live, "rotated")
    values = rng.uniform(-1, 1, 1024)
    expected = np.roll(values**2, -1)
    assert np.abs(session.run(values, timeout=60) - expected).max() < 2**-10
    sent = session.client.encrypt(values[:8], slots=8)
    assert np.abs(session.run(sent) - np.roll(values[:8] ** 2, -1)).max() < 2**-10
    several = session.client.encrypt(values.reshape(128, 8), slots=8)  # a ciphertext of several vectors
    assert np.abs(session.run(several) - np.roll(values.reshape(128, 8) ** 2, -1, axis=1)).max() < 2**-10
    job = session.submit(values)
    assert job.state(wait=30)["state"] == "done"
    assert np.abs(job.result() - expected).max() < 2**-10
    job.delete()
    with pytest.raises(NotFoundError):
        job.result()


def test_arrays_and_keys_that_are_found(live, rng):
    session = opened(live, "score")
    values = rng.uniform(-1, 1, 60)
    expected = values @ served_functions.WEIGHTS + 1
    found = session.run(values)
    assert found.shape == () and abs(found - expected) < 2**-10
    assert abs(session.run(ckks.encrypt(session.client, values)) - expected) < 2**-10
    # Exactly those keys were sent, and at their levels: a full set is larger.
    needs = served_functions.functions()["score"].needs
    stored = {k["key"]: k["bytes"] for k in live.request("GET", "/keys").json()["keys"]}
    whole = session.spec.params.key_bytes(rotations=needs.rotations)
    assert 0 < stored[session.key] - needs.key_bytes(session.spec.params) // 2 < 1 << 16
    assert needs.key_bytes(session.spec.params) < whole


def test_several_inputs_and_results(live, rng):
    session = live.function("both", allow_insecure=True)
    a, b = rng.uniform(-1, 1, (2, 2, 3))
    product, total = session.run(a, b)
    assert np.abs(product - a * b).max() < 2**-10 and np.abs(total - (a + b)).max() < 2**-10
    product, total = session.run(ckks.encrypt(session.client, a), b)
    assert np.abs(product - a * b).max() < 2**-10


def test_a_transfer_of_integers(live, rng):
    """A circuit of TFHE, whose results are integers and bits."""
    session = opened(live, "settle")
    payer, payee, amount = rng.integers(0, 256, (3, 4), dtype=np.uint8)
    left, grown, enough = session.run(payer, payee, amount, timeout=120)
    moved = np.where(payer >= amount, amount, 0).astype(np.uint8)
    assert (left == payer - moved).all() and (grown == payee + moved).all()
    assert enough.dtype == np.bool_ and (enough == (payer >= amount)).all()
    again = session.run(session.client.encrypt(payer), payee, amount)
    assert (again[0] == left).all()


def test_integers_of_another_type_beside_bits(live, rng):
    session = opened(live, "doubled")
    values, bits = rng.integers(-1000, 1000, 2), rng.integers(0, 2, 2).astype(bool)
    found = session.run(values, bits)
    assert (found == np.where(bits, 2 * values, values)).all()
    facts = {p["name"]: p for p in live.programs()}["doubled"]
    assert (facts["kind"], facts["insecure"], facts["input_shape"]) == ("function", True, [2])
    full = live.request("GET", f"/programs/{facts['program']}").json()
    assert full["client"]["scheme"] == "tfhe" and full["packing"] is None


def test_a_bootstrap(live, rng):
    """Keys of bootstraps are uploaded, checked, and used."""
    session = opened(live, "refreshed")
    values = rng.uniform(-1, 1, served_functions.SLOTS)
    found = session.run(values, timeout=120)
    assert np.abs(found - values**2).max() < 2**-8
    assert session.spec.needs.bootstraps and session.spec.inputs == (serve.Vector(16, level=0),)


def test_a_secret_key_that_is_kept(live, rng, tmp_path):
    """A later session is of the same key and sends nothing."""
    values, name = rng.uniform(-1, 1, 60), tmp_path / "alice.key"
    first = opened(live, "score", secret_key=name)
    sent = first.submit(values).encrypted()
    told = []
    second = opened(live, "score", secret_key=name, progress=lambda *row: told.append(row))
    assert second.key == first.key and not told
    assert abs(second.decrypted(sent) - (values @ served_functions.WEIGHTS + 1)) < 2**-10
    third = opened(live, "settle", secret_key=tmp_path / "other.key")
    before = third.key
    assert third.rotate_keys() != before and third.run(*np.uint8([[9], [1], [4]]))[0] == 5
    with pytest.raises((StateError, SerializationError)):
        third.decrypted(sent)


def test_keys_that_the_service_forgot_are_sent_again(live, rng):
    session, values = opened(live, "score"), rng.uniform(-1, 1, 60)
    live.delete_keys(session.key)
    assert abs(session.run(values) - (values @ served_functions.WEIGHTS + 1)) < 2**-10


def test_the_client_refuses_what_the_function_does_not_take(live):
    session = opened(live, "both")
    ones, holder = np.ones((2, 3)), session.client
    with pytest.raises(ParameterError, match="1 inputs, expected 2") as found:
        session.run(ones)
    assert found.value.fields == {"inputs": 1, "expected": 2}
    with pytest.raises(ParameterError, match=r"shape \(3, 2\), expected \(2, 3\)"):
        session.run(np.ones((3, 2)), ones)
    with pytest.raises(StateError, match="level") as level:
        session.run(ones, ckks.encrypt(holder, ones))
    assert level.value.fields["expected"] == "3"
    with pytest.raises(StateError, match="packing"):
        session.run(ckks.encrypt(holder, ones, "columns"), ones)
    stranger = ckks.Context(session.spec.params, device="cpu").keygen()
    with pytest.raises(StateError, match="secret key") as key:
        session.run(ckks.encrypt(stranger, ones), ones)
    assert key.value.fields["expected"] == holder.secret_key_id
    integers = opened(live, "doubled")
    with pytest.raises(ParameterError, match="expected bits"):
        integers.run([1, 2], [0, 1])
    with pytest.raises(ParameterError):
        integers.run([1 << 30, 2], [True, False])
    with pytest.raises(StateError, match="shape"):
        integers.run([1, 2, 3], [True, False, True])
    with pytest.raises(StateError, match="type"):
        integers.run(integers.client.encrypt(np.array([1, 2], dtype=np.uint8)), [True, False])
    with pytest.raises(NotFoundError):
        live.function("nothing")
    with pytest.raises(StateError):
        live.function("toy", allow_insecure=True)
    with pytest.raises(StateError):
        live.spec("both", allow_insecure=True)
    with pytest.raises(SerializationError, match="insecure|allow"):
        live.function("both")
    with pytest.raises(SerializationError):
        live.function("settle")


def test_the_service_refuses_what_the_function_does_not_take(live):
    """Other clients may send anything: each job fails with the library's error, the worker goes on."""
    session = opened(live, "both")
    holder, spec, ones = session.client, session.spec, np.ones((2, 3))
    low = ckks.encrypt(holder, ones, level=3)
    bad = {
        "one too few": forms.packed(spec.program, [low], result=False, single=False),
        "level": forms.packed(spec.program, [low, ckks.encrypt(holder, ones)], result=False, single=False),
        "kind": forms.packed(spec.program, [holder.encrypt([1.0]), low], result=False, single=False),
        "program": forms.packed("0" * 64, [ckks.encrypt(holder, ones), low], result=False, single=False),
        "direction": forms.packed(spec.program, [ckks.encrypt(holder, ones), low], result=True, single=False),
        "bare": holder.encrypt([1.0]).to_bytes(),
        "damaged": session.spec.encrypt(holder, ones, ones)[:-1] + b"\0",
        "nothing": b"x",
    }
    for what, body in bad.items():
        with pytest.raises((StateError, SerializationError)):
            print(what, session._submitted(body).result(60))
    assert np.abs(session.run(ones, ones)[1] - 2).max() < 2**-10


def test_keys_of_another_function_are_refused(live, tmp_path):
    """What is missing, or serves lower levels, is named before any job."""
    function = served_functions.functions()["score"]
    spec = FunctionSpec.from_bytes(function.client_file, allow_insecure=True)
    holder = spec.keygen("cpu")
    holder.evaluation_keys(rotations=spec.needs.rotations[:-1]).save(tmp_path / "fewer")
    holder.evaluation_keys(rotations=dict.fromkeys(spec.needs.rotations, 1)).save(tmp_path / "lower")
    for name in ("fewer", "lower"):
        with pytest.raises(KeyMissingError):
            live.upload(tmp_path / name, function.program)
    boot = served_functions.functions()["refreshed"]
    context = ckks.Context(boot.params, device="cpu")
    context.keygen().evaluation_keys().save(tmp_path / "none")
    with pytest.raises(KeyMissingError):
        live.upload(tmp_path / "none", boot.program)


def test_fingerprints_of_functions_without_more_stay():
    """Keys are stored under them."""
    quiet()
    params = ckks.preset("toy-leveled-n13-s28", allow_insecure=True)
    function = serve.Function("f", params, served_functions.rotated, rotations=(1, 5), conjugate=True)
    document = {
        "name": "f", "version": "1", "params": params.to_bytes().hex(), "rotations": [1, 5],
        "conjugate": True,
    }  # fmt: skip
    assert function.program == hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    spec = FunctionSpec.from_bytes(function.client_file, allow_insecure=True)
    assert (spec.rotations, spec.conjugate, spec.needs) == ((1, 5), True, None)
    assert spec.inputs == (serve.Vector(),)


def test_what_a_client_reads_is_what_was_said():
    quiet()
    for function in served_functions.functions().values():
        spec = FunctionSpec.from_bytes(function.client_file, allow_insecure=True)
        assert (spec.program, spec.name, spec.inputs) == (function.program, function.name, function.inputs)
        if isinstance(function, serve.Function) and function.needs is not None:
            wanted = function.needs
            assert repr(spec.needs.bootstraps) == repr(wanted.bootstraps)
            assert spec.needs.key_bytes(spec.params) == wanted.key_bytes(wanted and function.params)
        assert pickle.loads(pickle.dumps(function)).program == function.program
    assert len({f.program for f in served_functions.functions().values()}) == 6


def test_client_files_that_are_none(rng):
    quiet()
    functions = served_functions.functions()
    for name, path, wrong in (
        ("score", ("needs", "rotations"), [[1, 10**6]]),
        ("score", ("needs", "bootstraps"), [{"slots": 3}]),
        ("score", ("needs", "bootstraps"), [{"what": 1}]),
        ("score", ("needs", "relinearisation"), "x"),
        ("score", ("inputs",), []),
        ("score", ("inputs",), [{"kind": "array", "shape": [0], "packing": "rows"}]),
        ("score", ("inputs",), [{"kind": "array", "shape": [3], "packing": "no"}]),
        ("score", ("inputs",), [{"kind": "integers", "type": "uint8"}]),
        ("rotated", ("rotations",), ["1"]),
        ("rotated", ("scheme",), "other"),
        ("rotated", ("params",), "zz"),
        ("settle", ("inputs",), [{"kind": "vector"}]),
        ("settle", ("inputs",), [{"kind": "integers", "type": "float"}]),
    ):
        document = json.loads(json.dumps(functions[name].document))
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = wrong
        with pytest.raises(SerializationError):
            FunctionSpec.from_bytes(archive.packed("function", document, {}), allow_insecure=True)
    data = bytearray(functions["score"].client_file)
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    with pytest.raises(SerializationError):
        FunctionSpec.from_bytes(bytes(data), allow_insecure=True)


def test_files_and_bodies_of_any_length_are_refused_before_they_are_read():
    quiet()
    functions = served_functions.functions()
    most = forms.MOST_PARTS
    for path, wrong in (
        (("needs", "bootstraps"), [{}] * (most + 1)),
        (("inputs",), [{"kind": "vector"}] * (most + 1)),
    ):
        document = json.loads(json.dumps(functions["score"].document))
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = wrong
        with pytest.raises(SerializationError, match=str(most)):
            FunctionSpec.from_bytes(archive.packed("function", document, {}), allow_insecure=True)
    with pytest.raises(ParameterError, match=str(most)):
        forms.packed("0" * 64, [], result=True, single=False)
    params = functions["score"].params
    with pytest.raises(ParameterError, match=str(most)):
        serve.Function("f", params, served_functions.rotated, inputs=(serve.Vector(),) * (most + 1))
    # A header is read into many small objects, which take far more memory than its bytes.
    large = {"program": "0" * 64, "result": False, "single": True, "kinds": ["vector"], "x": [[]] * 400_000}
    context = ckks.Context(params, device="cpu")
    for kind, read_it in (
        ("ciphertexts", lambda data: forms.unpacked(data, "0" * 64, result=False)),
        ("tensor", lambda data: EncryptedTensor.from_bytes(data, context)),
    ):
        with pytest.raises(SerializationError, match="header of"):
            read_it(archive.packed(kind, large, {"ciphertext0": b""}))


def test_functions_that_are_none():
    quiet()
    params, lut = served_functions.functions()["score"].params, served_functions.functions()["settle"].params
    call, needs = served_functions.rotated, served_functions.functions()["score"].needs
    for wrong in (
        lambda: serve.Function("f", params),
        lambda: serve.Function("f", params, call, make=lambda context: call),
        lambda: serve.Function("f", params, call, needs=needs, rotations=(1,)),
        lambda: serve.Function("f", params, call, inputs=()),
        lambda: serve.Function("f", params, call, inputs=(serve.Integers("uint8"),)),
        lambda: serve.Function("f", lut, call),
        lambda: serve.Function.of("f", params),
        lambda: serve.IntegerFunction("f", lut, call, ()),
        lambda: serve.IntegerFunction("f", lut, call, ("float32",)),
        lambda: serve.IntegerFunction("f", params, call, ("uint8",)),
        lambda: read("served_functions:WEIGHTS"),
    ):
        with pytest.raises(ParameterError):
            wrong()
    with pytest.raises(UnsupportedError):  # an explicit operation: nothing records it
        serve.Function.of("f", params, lambda a: a.evaluator.rotate_raw(a), [serve.Vector(8)])
    with pytest.raises(StateError):
        serve.Function.of("f", params, lambda a: a**4096, [serve.Vector(8, level=1)])


def test_a_function_is_named_by_its_module(monkeypatch):
    quiet()
    monkeypatch.setattr(served_functions, "settling", served_functions.functions()["settle"], raising=False)
    assert read("served_functions:settling").name == "settle"
    monkeypatch.setattr(served_functions, "made", lambda: served_functions.settling, raising=False)
    assert read("served_functions:made") is served_functions.settling


def test_what_is_no_ciphertext_does_not_travel():
    with pytest.raises(ParameterError, match="ndarray"):
        forms.packed("0" * 64, [np.ones(3)], result=True, single=True)


def test_a_function_that_workers_cannot_import_is_refused_at_once(tmp_path):
    """They would die of it, one after the other."""
    quiet()
    params = served_functions.functions()["score"].params
    settings = Settings(data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0)
    started = types.FunctionType(served_functions.rotated.__code__, {"__name__": "__main__"}, "started")
    started.__module__ = "__main__"
    for call in (lambda ev, x: x, started):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys.modules["__main__"], "started", started, raising=False)
            patched.setattr(started, "__qualname__", "started")
            function = serve.Function("f", params, call)
            with (
                pytest.raises(ParameterError, match="cannot be sent to workers"),
                serve.running([function], settings),
            ):
                pass


def test_the_guides_programs(tmp_path):
    """The module, and the client's program, as they stand there."""
    page = (Path(__file__).resolve().parents[3] / "docs/guide/serve.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```$", page, re.M | re.S)
    (module,) = [b for b in blocks if b.startswith("# mymodule.py")]
    (program,) = [b for b in blocks if b.startswith("# the client")]
    (tmp_path / "mymodule.py").write_text(module)
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_device_of_integers_is_probed():
    """After a DeviceError, by whatever scheme the worker's program is of."""
    quiet()
    for name in ("settle", "score"):
        health = Health(2)
        health.failed()
        assert not health.well
        health.probe(served_functions.functions()[name].load("cpu").context)
        assert health.well
