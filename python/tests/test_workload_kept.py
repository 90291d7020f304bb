"""Folders in which a stopped run goes on: the key, what was sent, and what they refuse."""

import stat

import pytest
from conftest import toy

from crenel import ckks
from crenel.errors import FileError, ParameterError, SerializationError, StateError
from crenel.workloads.kept import Kept

pytestmark = pytest.mark.filterwarnings("ignore::crenel.InsecureParametersWarning")


def test_a_kept_run_has_its_key_and_what_was_sent(tmp_path):
    run = {"model": "m", "data": "d"}
    folder = tmp_path / "run"
    kept = Kept(folder, run)
    context = ckks.Context(toy(), device="cpu")
    client = kept.client(context)
    sent = kept.sent("values", lambda: [client.encrypt([0.5]).to_bytes(), b""])
    secret = folder / "secret.key"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700

    again = Kept(folder, run)
    same = again.client(context)
    assert same.secret_key_id == client.secret_key_id

    def never() -> list[bytes]:
        raise AssertionError

    assert again.sent("values", never) == sent
    assert same.decrypt(context.ciphertext_from_bytes(sent[0]))[0] == pytest.approx(0.5, abs=1e-4)
    assert all(secret.read_bytes()[-512:] not in part for part in sent)

    secret.rename(tmp_path / "secret")
    with pytest.raises(StateError, match="bring the secret key back"):  # a new one would take its place
        Kept(folder, run).client(context)
    (tmp_path / "secret").rename(secret)
    assert Kept(folder, run).client(context).secret_key_id == client.secret_key_id


def test_other_runs_are_refused(tmp_path):
    run = {"model": "m", "data": "d"}
    folder = tmp_path / "run"
    Kept(folder, run)
    with pytest.raises(StateError, match="data 'd'") as caught:
        Kept(folder, {**run, "data": "other"})
    assert caught.value.fields["what"] == "data"
    with pytest.raises(StateError, match="rate"):
        Kept(folder, {**run, "rate": 2})
    (folder / "run.json").write_text("[]")
    with pytest.raises(SerializationError):
        Kept(folder, run)
    (folder / "run.json").write_text("{")
    with pytest.raises(SerializationError):
        Kept(folder, run)
    (folder / "run.json").unlink()
    (folder / "mine.txt").write_text("precious")
    with pytest.raises(ParameterError, match="holds no run"):
        Kept(folder, run)
    assert [f.name for f in folder.iterdir()] == ["mine.txt"]


def test_an_interrupted_sending_is_made_anew(tmp_path):
    kept = Kept(tmp_path / "run", {})

    def stopped() -> list[bytes]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.sent("rows", stopped)
    assert kept.sent("rows", lambda: [b"a", b"b"]) == [b"a", b"b"]
    (kept.folder / "rows-1.safetensors").unlink()
    with pytest.raises(FileError, match="rows-1"):
        kept.sent("rows", stopped)
