"""Checkpoints of workloads: whole, of one program, and nothing else is taken for one."""

from __future__ import annotations

import os

import numpy as np
import pytest
from conftest import open_context, toy

from crenel.errors import FileError, SerializationError, StateError
from crenel.workloads import checkpoint

BELONGS = {"data": "d", "params": "p", "rate": 1.0}


@pytest.fixture(scope="module")
def made():
    context = open_context(toy(), "cpu")
    client = context.keygen()
    return (
        context,
        client,
        {"a": client.encrypt([1.0, -2.0], slots=2), "b": client.encrypt(np.ones((3, 4)), slots=4)},
    )


def written(made, path):
    checkpoint.save(path, "thing", BELONGS, {"iteration": 7}, made[2])
    return path


def test_what_was_written_comes_back(made, tmp_path):
    context, client, parts = made
    progress, found = checkpoint.load(written(made, tmp_path / "c"), context, "thing", BELONGS)
    assert progress == {"iteration": 7}
    assert {n: c.to_bytes() for n, c in found.items()} == {n: c.to_bytes() for n, c in parts.items()}
    checkpoint.same_key(tmp_path / "c", found, client.secret_key_id)


def test_no_file_is_no_checkpoint(made, tmp_path):
    assert checkpoint.load(tmp_path / "none", made[0], "thing", BELONGS) is None


@pytest.mark.parametrize("what, other", [("data", "e"), ("params", "q"), ("rate", 2.0)])
def test_another_program_is_refused_by_name(made, tmp_path, what, other):
    with pytest.raises(StateError, match=f"another {what}") as caught:
        checkpoint.load(written(made, tmp_path / "c"), made[0], "thing", BELONGS | {what: other})
    assert caught.value.fields == {"what": what, "found": BELONGS[what], "expected": other}


def test_another_kind_and_another_key_are_refused(made, tmp_path):
    with pytest.raises(StateError, match="is of thing"):
        checkpoint.load(written(made, tmp_path / "c"), made[0], "sort", BELONGS)
    with pytest.raises(StateError) as caught:
        checkpoint.same_key(tmp_path / "c", made[2], made[0].keygen().secret_key_id)
    assert caught.value.fields["what"] == "secret key"


def test_every_damage_is_found(made, tmp_path, rng):
    path = written(made, tmp_path / "c")
    whole = path.read_bytes()
    places = [0, 8, 12, 19, 25, *rng.integers(20, len(whole), 40).tolist(), len(whole) - 1]
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(SerializationError):
            checkpoint.load(path, made[0], "thing", BELONGS)
    for length in (0, 7, 19, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(SerializationError):
            checkpoint.load(path, made[0], "thing", BELONGS)


def test_ciphertexts_of_other_parameters_are_refused(made, tmp_path):
    other = open_context(toy("toy-leveled-n13-s40"), "cpu")
    with pytest.raises((SerializationError, StateError)):
        checkpoint.load(written(made, tmp_path / "c"), other, "thing", BELONGS)


def test_a_folder_in_its_place_is_the_systems_error(made, tmp_path):
    with pytest.raises(FileError) as caught:
        checkpoint.load(tmp_path, made[0], "thing", BELONGS)
    assert isinstance(caught.value, (IsADirectoryError, PermissionError))


def test_a_file_that_cannot_be_written_leaves_the_one_before(made, tmp_path, monkeypatch):
    path = written(made, tmp_path / "c")
    before = path.read_bytes()
    with pytest.raises(ValueError):
        checkpoint.save(path, "thing", BELONGS, {"loss": float("nan")}, made[2])
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["c"]


def test_fingerprints_tell_where_parts_end():
    assert checkpoint.fingerprint("ab", "c") != checkpoint.fingerprint("a", "bc")
    assert checkpoint.fingerprint(b"ab") == checkpoint.fingerprint("ab")


def test_what_cannot_become_a_checkpoint_is_refused_before_the_work(made, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")  # reading it would never end
    for name in ("link", "pipe"):
        with pytest.raises(SerializationError, match="expected a regular file"):
            checkpoint.load(tmp_path / name, made[0], "thing", BELONGS)
    with pytest.raises(FileNotFoundError) as caught:
        checkpoint.load(tmp_path / "none" / "c", made[0], "thing", BELONGS)
    assert isinstance(caught.value, FileError)
    with pytest.raises(FileError):
        checkpoint.load("a\0b", made[0], "thing", BELONGS)
