"""crenel.client, the commands and the demo against a real server."""

from __future__ import annotations

import errno
import functools
import operator
import os
import re
import signal
import stat
import subprocess
import sys
import types
import typing
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from needed import needs
from service_world import made, quiet

from crenel import client, serve
from crenel.cli import main
from crenel.errors import (
    AuthenticationError,
    FileError,
    MissingFileError,
    NotFoundError,
    ParameterError,
    SerializationError,
    StateError,
    UnavailableError,
)
from crenel.serve import schemas
from crenel.serve.settings import Settings


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """One server for the module, with alice's token."""
    quiet()
    folder = tmp_path_factory.mktemp("live")
    settings = Settings(data=str(folder / "data"), allow_insecure=True, min_free_bytes=0, lease_seconds=2.0)
    with serve.running([made().servable], settings, device="cpu") as service:
        yield service


@pytest.fixture
def key_file(tmp_path):
    """Keys of a new client, as it writes them."""
    file = tmp_path / "keys"
    made().spec.keygen("cpu").evaluation_keys(made().spec).save(file)
    return file


def test_three_lines(live):
    m = made()
    told: list[tuple[int, int, str]] = []
    session = client.connect(live.url, live.token).open(
        "toy", allow_insecure=True, progress=lambda *row: told.append(row)
    )
    found = session.run(m.samples[:10])
    assert np.abs(found - m.program.simulate(m.samples[:10], noise=False)).max() < 2**-10
    assert session.run(m.samples[0]).shape == (2,)
    assert told[0][0] == 0 and told[-1][0] == told[-1][1] and {row[2] for row in told} == {"sending keys"}


def test_progress_of_jobs(live):
    """Every sample counts twice, when it is sent and when its result is here; between, what the job does."""
    m = made()
    session = client.connect(live.url, live.token).open("toy", allow_insecure=True)
    told: list[tuple[int, int, str]] = []
    found = session.run(m.samples[:10], timeout=60, progress=lambda *row: told.append(row))
    assert np.abs(found - m.program.simulate(m.samples[:10], noise=False)).max() < 2**-10
    done = [row[0] for row in told]
    assert done == sorted(done) and done[0] == 0 and {row[1] for row in told} == {20}
    assert [row[0] for row in told if row[2] == "sent"] == [4, 8, 10]
    assert [row[0] for row in told if row[2].endswith("is here")] == [14, 18, 20]
    states = {row[2] for row in told if row[2].startswith("job 1 of 3 ")}
    assert any(re.fullmatch("job 1 of 3 (queued behind \\d+|running|done)", state) for state in states)
    told.clear()
    assert session.run(m.samples[0], progress=lambda *row: told.append(row)).shape == (2,)
    assert told[-1] == (2, 2, "job 1 of 1 is here")
    newest = session.service.jobs()
    assert len(newest) >= 4 and newest[0]["state"] == "done" and newest[0]["key"] == session.key

    with pytest.raises(ParameterError):
        session.run(m.samples[:0])
    with pytest.raises(TypeError, match="progress must be a bool or a function, got str"):
        session.run(m.samples[:2], progress="bar")


class Stopped(Exception):
    """What no library raises."""


def stops_at(call: int, told: list[tuple[int, int, str]]):
    """At this report, counted from 1; 0: at the last."""

    def progress(done: int, total: int, what: str) -> None:
        told.append((done, total, what))
        if len(told) == call or (call == 0 and done == total):
            raise Stopped(call)

    return progress


def test_a_progress_function_of_jobs_that_raises(live):
    """At whatever report: its error comes, nothing of the call is left waiting, and the next one is whole."""
    m = made()
    session = client.connect(live.url, live.token).open("toy", allow_insecure=True)
    key = session.key
    for call in (1, 2, 3, 4, 0):
        before, told = {job["job"] for job in session.service.jobs()}, []
        with pytest.raises(Stopped):
            session.run(m.samples[:8], progress=stops_at(call, told))
        new = [job for job in session.service.jobs() if job["job"] not in before]
        assert len(new) == {1: 0, 2: 1}.get(call, 2) and session.key == key
        assert all(client.Job(session, job["job"]).state(20)["state"] != "queued" for job in new)
    found = session.run(m.samples[:8])
    assert np.abs(found - m.program.simulate(m.samples[:8], noise=False)).max() < 2**-10


def test_an_upload_goes_on_where_its_progress_function_raised(live, tmp_path, monkeypatch):
    m = made()
    monkeypatch.setattr("crenel.client_uploads.CHUNK", 1 << 16)
    service = client.connect(live.url, live.token)
    sent = live.service.metrics.received.labels("/keys/uploads/{upload}")._value

    def stopped(call, act):
        told, before = [], sent.get()
        with pytest.raises(Stopped):
            act(stops_at(call, told))
        assert told[-1][2] == "sending keys"
        return told[-1][1], sent.get() - before

    session = client.Session(service, m.spec, m.spec.keygen("cpu"))
    for act in (session.send_keys, session.rotate_keys):
        old = session.key
        size, first = stopped(3, lambda progress, act=act: act(progress=progress))
        assert 0 < first < size and session.key == old
        told, before = [], sent.get()
        act(progress=lambda *row, told=told: told.append(row))
        assert sent.get() - before == size - first and session.key != old  # no byte twice
        assert told[0][0] == 0 and told[1][0] == first and told[-1] == (size, size, "sending keys")
    session.run(m.samples[:1])
    # At the last report the keys are there: the session has them, whoever stops it.
    old = session.key
    size, whole = stopped(0, lambda progress: session.rotate_keys(progress=progress))
    assert whole == size and session.key != old
    held = service.keys()
    assert [session.key in {k["key"] for k in held}, old in {k["key"] for k in held}] == [True, False]
    session.run(m.samples[:1])


def test_an_upload_whose_time_was_over_begins_anew(live, key_file, monkeypatch):
    m = made()
    monkeypatch.setattr("crenel.client_uploads.CHUNK", 1 << 16)
    service = client.connect(live.url, live.token)
    with pytest.raises(Stopped):
        service.upload(key_file, m.spec.program, progress=stops_at(2, []))
    (place,) = service._places.values()
    service.request("DELETE", place, headers={"Tus-Resumable": "1.0.0"})
    told = []
    key = service.upload(key_file, m.spec.program, progress=lambda *row: told.append(row))
    assert told[1][0] == 1 << 16 and told[-1][0] == key_file.stat().st_size and not service._places
    service.delete_keys(key)


def test_a_key_file_that_changes_while_it_is_sent(live, key_file, monkeypatch):
    """Cut: the call ends, and the whole file goes on from there. What is added behind is not sent."""
    m = made()
    monkeypatch.setattr("crenel.client_uploads.CHUNK", 1 << 16)
    service = client.connect(live.url, live.token)
    whole = key_file.read_bytes()

    def becomes(data: bytes):
        return lambda done, total, what: key_file.write_bytes(data) if done >= 2 << 16 else None

    with pytest.raises(SerializationError, match=rf"ends before byte \d+, expected {len(whole)} bytes"):
        service.upload(key_file, m.spec.program, progress=becomes(whole[: 1 << 16]))
    key_file.write_bytes(whole)
    key = service.upload(key_file, m.spec.program, progress=becomes(whole + bytes(1 << 17)))
    assert not service._places
    service.delete_keys(key)


def test_files_that_the_system_refuses(live, key_file, tmp_path, monkeypatch):
    """The library's error and Python's, with the name; keys that wait to be sent are left where they are."""
    m = made()
    service = client.connect(live.url, live.token)
    session = client.Session(service, m.spec, m.spec.keygen("cpu"))
    missing, inside, below = tmp_path / "missing", key_file / "inside", tmp_path / "folder" / "secret"

    def kept(path):
        return service.open("toy", secret_key=path, allow_insecure=True)

    for call, path, kind, named in [
        (service.upload, missing, MissingFileError, missing),
        (service.upload, str(missing), FileNotFoundError, missing),
        (service.upload, inside, NotADirectoryError, inside),
        (service.upload, tmp_path, IsADirectoryError, tmp_path),
        (service.upload, "a\0b", FileError, "a\0b"),
        (kept, tmp_path, IsADirectoryError, tmp_path),
        (kept, below, MissingFileError, below),
    ]:
        with pytest.raises(kind) as caught:
            call(path, m.spec.program) if call == service.upload else call(path)
        assert isinstance(caught.value, SerializationError) and isinstance(caught.value, OSError)
        assert caught.value.filename == str(named) == caught.value.fields["filename"]
    other = session._unsent("next")
    other.write_bytes(key_file.read_bytes())
    refused = FileError("cannot read it", {"errno": errno.EMFILE, "filename": str(other)})
    with monkeypatch.context() as patched:
        patched.setattr("crenel.client_connection.opened", Mock(side_effect=refused))
        with pytest.raises(FileError):
            session.rotate_keys()
    assert other.read_bytes() == key_file.read_bytes()
    key = service.upload(str(key_file), m.spec.program)
    held = service.keys()
    assert key in {k["key"] for k in held}
    service.delete_keys(key)


def test_keys_that_two_threads_rotate(live):
    """One after the other: the session has what the service has."""
    m = made()
    session = client.Session(client.connect(live.url, live.token), m.spec, m.spec.keygen("cpu"))
    first = session.send_keys()
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: session.rotate_keys(), range(2)))
    assert len({first, *found}) == 3 and session.key in found
    held = session.service.keys()
    assert {session.key} == {k["key"] for k in held} & {first, *found}
    session.service.delete_keys(session.key)


def test_what_the_client_says_is_what_the_service_sends():
    """The client's types of JSON have the members of the service's models, of the same types."""
    pairs = {
        client.Digest: schemas.Digest, client.Problem: schemas.Problem, client.Limits: schemas.Limits,
        client.Protocol: schemas.Protocol, client.ProgramFacts: schemas.ProgramModel,
        client.KeyFacts: schemas.KeyModel, client.Seconds: schemas.Seconds, client.JobFacts: schemas.JobModel,
    }  # fmt: skip
    called = {model: facts for facts, model in pairs.items()}
    for facts, model in pairs.items():
        hints = typing.get_type_hints(facts)
        assert set(hints) == set(model.model_fields), facts
        for name, hint in typing.get_type_hints(model).items():
            assert plain(hint, called) == hints[name], (facts, name)


def plain(hint, called):
    """As the client writes it: texts of a pattern and of a list of words are texts."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return str
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return functools.reduce(operator.or_, (plain(a, called) for a in arguments))
    return called.get(hint, hint)


def test_a_kept_secret_key_is_found_again(live, tmp_path):
    m, path = made(), tmp_path / "alice.key"
    with client.connect(live.url, live.token) as service:
        first = service.open("toy", secret_key=path, allow_insecure=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        told = []
        again = service.open(
            "toy", secret_key=path, allow_insecure=True, progress=lambda *row: told.append(row)
        )
        assert again.key == first.key and not told  # nothing was sent
        data = first.submit(m.samples[:2]).encrypted(60)
        values = again.client.decrypt(again.client.tensor_from_bytes(data), m.spec)
        assert np.abs(values - m.program.simulate(m.samples[:2], noise=False)).max() < 2**-10


def test_keys_are_rotated_and_sent_again(live):
    m = made()
    service = client.connect(live.url, live.token)
    session = service.open("toy", allow_insecure=True)
    old = session.key
    assert session.rotate_keys() != old
    held = service.keys()
    assert [session.key in {k["key"] for k in held}, old in {k["key"] for k in held}] == [True, False]
    session.run(m.samples[:2])
    service.delete_keys(session.key)
    session.run(m.samples[:2])  # the service says that it needs them


def test_jobs(live):
    m = made()
    session = client.connect(live.url, live.token).open("toy", allow_insecure=True)
    job = session.submit(m.samples[:1])
    assert [s["state"] for s in job.states(60)][-1] == "done" and job.cancel()["state"] == "done"
    job.delete()
    with pytest.raises(NotFoundError):
        job.state()
    with pytest.raises(ParameterError):
        session.submit(m.samples[:5])


def test_errors_are_the_librarys(live, tmp_path):
    m = made()
    with pytest.raises(AuthenticationError):
        client.connect(live.url, "crenel_wrong").programs()
    service = client.connect(live.url, live.token)
    with pytest.raises(NotFoundError):
        service.spec("nothing")
    with pytest.raises(SerializationError):  # insecure parameters
        service.spec("toy")
    bad = tmp_path / "bad"
    bad.write_bytes(b"no keys" * 100)
    with pytest.raises(SerializationError):
        service.upload(bad, m.spec.program)
    with pytest.raises(UnavailableError, match="ConnectError"):
        client.Service.request(service, "GET", "http://127.0.0.1:1/", tries=1)
    with (
        pytest.raises(Exception, match="cannot listen"),
        serve.running([m.servable], live.service.settings, port=int(live.url.rsplit(":", 1)[1])),
    ):
        pass


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8400",
        "localhost:8400",
        "ftp://x",
        "",
        "http://",
        "http://:8400",
        "http://a b",
        "http://\ud800",
    ],
)
def test_addresses_that_are_no_services(url, monkeypatch):
    """Refused at once: they were tried for eleven seconds."""
    monkeypatch.setattr("time.sleep", Mock(side_effect=AssertionError))
    with pytest.raises(ParameterError, match="^url is '.*', expected http:// or https:// and a host$"):
        client.connect(url, "token")
    with pytest.raises(ParameterError) as caught:
        client.connect("ftp://user:secret@host", "token")
    assert "secret" not in str(caught.value) + str(caught.value.fields)


@pytest.mark.parametrize("token", ["", "hidden\n", "hidden é", "hid den", "\x7f"])
def test_tokens_that_no_service_has(token, monkeypatch):
    """Refused at once, and no message shows any of it."""
    monkeypatch.setattr("time.sleep", Mock(side_effect=AssertionError))
    with pytest.raises(ParameterError) as caught:
        client.connect("http://127.0.0.1:1", token)
    error = caught.value
    assert str(error).endswith(", expected printable ASCII without spaces")
    assert "hid" not in str(error) and "\\" not in ascii(str(error)) and error.fields == {"name": "token"}
    assert error.__context__ is None
    with pytest.raises(TypeError, match="token: expected a string, got NoneType"):
        client.connect("http://127.0.0.1:1", None)


@pytest.mark.parametrize("broken", [httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.ConnectError])
def test_requests_that_no_further_try_helps(broken, monkeypatch):
    """Once; where nobody answers, eight times. The error shows no password of the URL."""
    monkeypatch.setattr("time.sleep", Mock())
    send = Mock(side_effect=broken("no"))
    http = httpx.Client(base_url="http://user:secret@host", transport=Mock(handle_request=send))
    with pytest.raises(UnavailableError, match=f"^http://host/?: {broken.__name__}$"):
        client.Service(http)
    assert send.call_count == (8 if broken is httpx.ConnectError else 1)


def test_samples_that_are_none():
    """Refused before anything is sent, in the words of `nn.Client.encrypt`."""
    m = made()
    session = client.Session(Mock(), m.spec, m.clients[0])
    masked = np.ma.array(np.ones((2, 3)), mask=[[0, 0, 0], [0, 1, 0]])
    for samples, wrong in (
        (np.ones((1, 3)) * 1j, "numbers of type complex128, expected an array of real numbers"),
        ("abc", "numbers of type <U3, expected an array of real numbers"),
        (masked, "masked places, expected numbers in all of them"),
        (3.0, r"samples of shape \(\), expected \(3,\), or one or more of these"),
        (np.ones((2, 4)), r"samples of shape \(2, 4\), expected \(3,\), or one or more of these"),
        (np.ones((0, 3)), r"samples of shape \(0, 3\), expected \(3,\), or one or more of these"),
    ):
        with pytest.raises(ParameterError, match=wrong):
            session.run(samples)
    with pytest.raises(ParameterError, match=r"samples of shape \(\), expected \(3,\), or 1 to 4 of these"):
        session.submit(3.0)
    session.service.request.assert_not_called()


def test_settings():
    found = Settings.of(["jobs=3", "origins=https://a,https://b", "allow_insecure=true", "key_ttl=2.5"])
    assert (found.jobs, found.origins, found.allow_insecure, found.key_ttl) == (
        3,
        ("https://a", "https://b"),
        True,
        2.5,
    )
    assert Settings.from_json(found.to_json()) == found
    for bad in (
        "jobs",
        "jobs=x",
        "nothing=1",
        "jobs=0",
        "allow_insecure=maybe",
        "lease_seconds=nan",
        "data=s3://b/x",
    ):
        with pytest.raises(ParameterError):
            Settings.of([bad])


def test_the_default_of_device_bytes():
    """A third of a GPU's memory, shared by its workers; what is typed wins; 4 GiB of a host."""
    found = Settings()
    assert found.device_bytes == 0
    assert found.for_device(80 << 30).device_bytes == (80 << 30) // 3
    assert found.for_device(80 << 30, 2).device_bytes == (80 << 30) // 6
    assert found.for_device(0, 3).device_bytes == 4 << 30
    typed = Settings.of(["device_bytes=4294967296"])
    assert typed.for_device(80 << 30) == typed
    with pytest.raises(ParameterError, match="device_bytes"):
        Settings(device_bytes=-1)


def test_a_worker_takes_the_default_of_its_device(tmp_path, monkeypatch):
    """Where the device says that it has memory of its own, as a GPU does."""
    from crenel.serve import worker

    quiet()
    settings = Settings(data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0)
    programs = serve.programs.Programs([made().servable])
    for memory, sharing, wanted in ((0, 1, 4 << 30), (3 << 30, 1, 1 << 30), (3 << 30, 4, 1 << 28)):
        told = types.SimpleNamespace(memory_bytes=memory)
        monkeypatch.setattr(worker.crenel, "device_info", lambda name, told=told: told)
        one = worker.Worker(settings, programs, "cpu", sharing)
        assert (one.settings.device_bytes, one.tiers.device.budget) == (wanted, wanted)
        one.close()


def test_tenants_of_the_command_line(tmp_path, capsys):
    data = ["--data", str(tmp_path / "data")]
    for words in (["list"], ["token", "alice"], ["revoke", "alice"]):  # which make no service
        assert main(["tenant", *words, *data]) == 2
        err = capsys.readouterr().err
        assert f"MissingFileError: {tmp_path / 'data'}" in err and "expected the database of a service" in err
    assert not (tmp_path / "data").exists()
    assert main(["tenant", "add", "alice", *data]) == 0
    assert capsys.readouterr().out.startswith("crenel_")
    assert main(["tenant", "add", "alice", *data]) == 2 and "StateError" in capsys.readouterr().err
    assert main(["tenant", "token", "alice", "--days", "1", *data]) == 0
    for days in ("-1", "nan"):
        assert main(["tenant", "token", "alice", "--days", days, *data]) == 2
        assert "--days" in capsys.readouterr().err
    assert main(["tenant", "revoke", "alice", *data]) == 0 and "2 tokens" in capsys.readouterr().out
    assert main(["tenant", "list", *data]) == 0 and capsys.readouterr().out == "alice\n"
    assert main(["tenant", "revoke", "bob", *data]) == 2 and "NotFoundError" in capsys.readouterr().err


def test_the_command(tmp_path):
    """crenel serve says where it answers and whose the token is, and ends at SIGTERM."""
    (tmp_path / "toy.crn").write_bytes(made().servable.data)
    command = [
        sys.executable, "-m", "crenel", "serve", str(tmp_path / "toy.crn"), "--device", "cpu", "--port", "0",
        "--engine", "local", "--data", str(tmp_path / "data"), "--allow-insecure",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    token = process.stdout.readline().split()[-1]
    names = [p["name"] for p in client.connect(url, token).programs()]
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert names == ["toy"] and process.returncode == 0
    assert token not in errors and "crenel_" not in errors  # of the log
    assert not os.path.exists(f"/proc/{process.pid}")


def test_a_function_of_an_evaluator(tmp_path):
    """Served as programs are; clients send ciphertexts."""
    from crenel import ckks
    from crenel.serve.functions import Function
    from crenel.serve.servable import Reading

    params = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
    function = Function(
        "rotated", params, lambda ev, x: ev.rotate(ev.rescale(ev.square(x)), 1), rotations=(1,)
    )
    other = Function("rotated", params, function.call, rotations=(1,), version="2")
    assert len(function.program) == 64 and function.program != other.program
    context = ckks.Context(params, device="cpu")
    user = context.keygen()
    path = tmp_path / "keys"
    user.evaluation_keys(rotations=[1]).save(path)
    prepared = function.load("cpu").prepare(path, Reading(1 << 30, 1 << 30))
    values = np.linspace(-1, 1, 8)
    answer = prepared.run(user.encrypt(values, slots=8).to_bytes(), lambda: None, nullcontext)
    found = user.decrypt(context.ciphertext_from_bytes(answer))
    assert np.abs(found - np.roll(values**2, -1)).max() < 2**-10
    assert prepared.nbytes == function.key_memory
    with pytest.raises((SerializationError, StateError)):
        prepared.run(b"x", lambda: None, nullcontext)


def test_the_demo(capsys):
    needs("demo", "sklearn")
    from crenel.workloads.networks import demo_serve

    quiet()
    from crenel import ckks

    params = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
    assert demo_serve.run(images=6, params=params) == 0
    out = capsys.readouterr().out
    assert "what the server sees" in out and "of the digits         nothing" in out and "job 2" in out
