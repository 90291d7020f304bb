"""Evaluation keys in files: saved key by key, loaded by selection; encapsulation keys."""

import os
from pathlib import Path

import pytest
from conftest import World, device_names, open_context, toy

from crenel import ckks


@pytest.fixture(scope="session", params=[name for name in device_names() if name != "ref"])
def device(request) -> str:
    """Not ref: files are read and checked on the host, and what they become there takes it long."""
    return request.param


@pytest.fixture(scope="module")
def boot(device) -> World:
    """A set with encapsulation: N = 2^11."""
    return World(open_context(toy("toy-boot40"), device))


@pytest.fixture(scope="module")
def keys(boot) -> ckks.EvaluationKeys:
    return boot.client.evaluation_keys(rotations=[1, -3, 7], conjugate=True, encapsulation=True)


@pytest.fixture
def path(keys, tmp_path) -> Path:
    keys.save(tmp_path / "keys.safetensors")
    return tmp_path / "keys.safetensors"


def test_encapsulation_is_made_on_request(boot, keys):
    assert keys.has_encapsulation and "encapsulation" in repr(keys)
    assert not boot.keys.has_encapsulation and "encapsulation" not in repr(boot.keys)
    assert boot.context.evaluation_keys_from_bytes(keys.to_bytes()).has_encapsulation


def test_saved_file_is_to_bytes(boot, keys, path):
    assert path.read_bytes() == keys.to_bytes()
    assert list(path.parent.iterdir()) == [path]
    for name in (path, str(path)):
        loaded = boot.context.load_evaluation_keys(name)
        assert loaded.to_bytes() == keys.to_bytes()


def test_saving_replaces_the_file(boot, keys, path):
    mapped = boot.context.load_evaluation_keys(path)
    boot.client.evaluation_keys(rotations=[5], relinearisation=False).save(path)
    again = boot.context.load_evaluation_keys(path)
    assert (again.rotations, again.relinearisation, again.has_encapsulation) == ([5], False, False)
    assert mapped.to_bytes() == keys.to_bytes()


def test_selection(boot, path):
    load = boot.context.load_evaluation_keys
    some = load(path, rotations=[7, 1], relinearisation=False, conjugate=False, encapsulation=False)
    assert some.rotations == [1, 7]
    assert not (some.relinearisation or some.conjugate or some.has_encapsulation)
    rest = load(path, rotations=())
    assert rest.rotations == [] and rest.relinearisation and rest.conjugate and rest.has_encapsulation
    assert load(path, rotations=range(1, 2)).rotations == [1]
    x = [0.5, 0.25, 0.125]
    rotated = boot.context.evaluator(some).rotate(boot.client.encrypt(x), 1)
    assert abs(boot.client.decrypt(rotated)[0] - 0.25) < 2**-18


def test_missing_rotations_are_named(boot, path):
    with pytest.raises(ckks.KeyMissingError, match="-9, 5") as caught:
        boot.context.load_evaluation_keys(path, rotations=[1, 5, -9])
    assert caught.value.fields["rotations"] == [-9, 5]


def test_bad_files(boot, keys, path, tmp_path):
    load = boot.context.load_evaluation_keys
    blob = keys.to_bytes()
    for bad in (b"", blob[:100], blob[:-1], blob + b"\0", boot.params.to_bytes()):
        path.write_bytes(bad)
        with pytest.raises(ckks.SerializationError) as caught:
            load(path)
        assert {"where", "found", "expected"} <= set(caught.value.fields)
    for nowhere in (tmp_path / "missing", tmp_path):
        with pytest.raises(ckks.SerializationError, match=nowhere.name):
            load(nowhere)
    with pytest.raises(ckks.SerializationError, match="No such file"):
        keys.save(tmp_path / "no" / "keys")
    with pytest.raises(TypeError):
        load(3)


def test_only_the_selected_keys_are_read(boot, keys, path):
    blob = bytearray(keys.to_bytes())
    blob[-40000] ^= 1  # in the last key: of encapsulation
    path.write_bytes(blob)
    assert boot.context.load_evaluation_keys(path, encapsulation=False).rotations == [-3, 1, 7]
    with pytest.raises(ckks.SerializationError, match="encapsulation"):
        boot.context.load_evaluation_keys(path)


def test_file_of_another_context(keys, path, device):
    other = open_context(toy(), device)
    with pytest.raises(ckks.SerializationError, match="another context"):
        other.load_evaluation_keys(path)


def test_a_sparse_secret_too_weak_is_refused(device):
    client = open_context(ckks.preset("leveled-n14-s40"), device).keygen()
    with pytest.raises(ckks.ParameterError, match="sparse") as caught:
        client.evaluation_keys(relinearisation=False, encapsulation=True)
    assert caught.value.fields["log_modulus"] > caught.value.fields["bound"] == 77


def test_peak_memory_of_saving(boot, tmp_path):
    """Many keys, streamed: no buffer of the whole file. Linux only: it reads the process's peak."""
    status = Path("/proc/self/status")
    clear = Path("/proc/self/clear_refs")
    if not (status.exists() and os.access(clear, os.W_OK)):
        pytest.skip("needs /proc/self/clear_refs")
    keys = boot.client.evaluation_keys(rotations=range(1, 33))

    def kibibytes(name: str) -> int:
        line = next(x for x in status.read_text().splitlines() if x.startswith(name))
        return int(line.split()[1])

    clear.write_text("5")  # the peak starts anew
    before = kibibytes("VmRSS:")
    keys.save(tmp_path / "keys")
    grown = (kibibytes("VmHWM:") - before) * 1024
    assert grown < keys.wire_bytes / 4
