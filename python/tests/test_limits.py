"""Loaders say what a file would take before they take it, and use what they have checked."""

import mmap
import secrets
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import device_names
from loaders import NAMES, Loader, ckks_loaders, edited, header_bytes, tfhe_loaders
from tfhe_world import open_tfhe

from crenel import ckks, tfhe


@pytest.fixture(scope="session", params=[name for name in device_names() if name != "ref"])
def device(request) -> str:
    """Not ref: files are read and checked on the host, and what they become there takes it long."""
    return request.param


@pytest.fixture(scope="module")
def loaders(device) -> dict[str, Loader]:
    return {x.name: x for x in (*ckks_loaders(device), *tfhe_loaders(device))}


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_is_exact_and_says_what_it_wants(loaders, name):
    x = loaders[name]
    with pytest.raises(ckks.SerializationError, match="max_bytes=") as caught:
        x.load(x.data, max_bytes=1)
    needed = caught.value.fields["needed"]
    assert caught.value.fields["max_bytes"] == 1
    where, found, expected = (caught.value.fields[name] for name in ("where", "found", "expected"))
    assert f"cannot load {where}: found {found}, expected {expected} (" in str(caught.value)
    loaded = x.load(x.data, max_bytes=needed)  # the first refusal named the whole
    assert x.save(loaded) == x.data
    with pytest.raises(ckks.SerializationError, match=str(needed)):
        x.load(x.data, max_bytes=needed - 1)
    if "params" not in name:
        assert needed > len(x.data) - header_bytes(x.data)
    with pytest.raises(ckks.ParameterError, match="max_bytes"):
        x.load(x.data, max_bytes=-1)


def test_what_is_needed_is_what_the_device_gives(loaders):
    """Within the header's tables and the words that are staged."""
    for name, size in (("seeded", lambda c: c.nbytes), ("keys", lambda k: k.nbytes)):
        x = loaders[name]
        taken = size(x.load(x.data))
        with pytest.raises(ckks.SerializationError) as caught:
            x.load(x.data, max_bytes=taken)
        assert taken < caught.value.fields["needed"] < taken + 32 * header_bytes(x.data)


def test_a_small_seeded_array_does_not_become_a_large_one(device):
    """The attack: 1.6 MB that stand for a GB. The default refuses them, and no memory is taken."""
    context = open_tfhe(tfhe.preset("bool128"), device)
    small = context.keygen().encrypt([True, False])
    count = 400_000
    bodies = np.zeros((count, 1), np.uint32)
    attack = edited(
        small.to_bytes(), {"size": str(count)}, {"bodies": bodies, "shape": np.array([count], np.uint64)}
    )
    assert len(attack) < 1_700_000
    context.reset_peak()
    before = context.peak_bytes
    with pytest.raises(ckks.SerializationError, match="max_bytes=") as caught:
        context.ciphertext_from_bytes(attack)
    assert caught.value.fields["needed"] > 10**9
    assert caught.value.fields["max_bytes"] == 256 << 20
    assert context.peak_bytes == before
    count = 2_000
    honest = edited(
        small.to_bytes(),
        {"size": str(count)},
        {"bodies": bodies[:count], "shape": np.array([count], np.uint64)},
    )
    assert context.ciphertext_from_bytes(honest).shape == (count,)


def test_only_the_keys_selected_count(world, tmp_path):
    keys = world.client.evaluation_keys(rotations=[1, 2, 3])
    keys.save(tmp_path / "keys")
    load = world.context.load_evaluation_keys
    one = keys.nbytes // keys.count
    limit = 2 * one  # a key, the half that is being checked, and the tables of the header
    assert load(tmp_path / "keys", rotations=[2], relinearisation=False, max_bytes=limit).rotations == [2]
    for options in ({}, {"staged_bytes": 1 << 40}, {"rotations": [1, 2]}):
        with pytest.raises(ckks.SerializationError, match="max_bytes="):
            load(tmp_path / "keys", max_bytes=limit, **options)


def test_a_buffer_that_is_copied_counts(loaders):
    x = loaders["tfhe seeded"]
    with pytest.raises(ckks.SerializationError, match="a buffer of"):
        x.load(bytearray(x.data), max_bytes=len(x.data) - 1)


FLIPPER = """
import mmap, sys
path, at = sys.argv[1], int(sys.argv[2])
with open(path, "r+b") as file:
    pages = mmap.mmap(file.fileno(), 0)
good = pages[at]
bad = good ^ 0x80
print("ready", flush=True)
while True:
    pages[at] = bad
    pages[at] = good
"""


@pytest.mark.parametrize("name", NAMES)
def test_what_was_checked_is_what_is_used(loaders, name, tmp_path):
    """Another process changes one byte of a buffer back and forth while the loader reads it."""
    x = loaders[name]
    first, size = header_bytes(x.data), len(x.data)
    # Parameters of TFHE are all header.
    at = first + secrets.randbelow(size - first) if size > first else size - 9
    path = tmp_path / "shared"
    path.write_bytes(x.data)
    with open(path, "r+b") as file:
        pages = mmap.mmap(file.fileno(), 0)
    views = [pages, np.frombuffer(pages, np.uint8), memoryview(pages).toreadonly()]
    flipper = subprocess.Popen([sys.executable, "-c", FLIPPER, path, str(at)], stdout=subprocess.PIPE)
    loaded = 0
    try:
        flipper.stdout.readline()
        end = time.monotonic() + 2
        for number in range(3000):
            try:
                object_ = x.load(views[number % 3])
            except ckks.CrenelError:
                continue
            assert x.save(object_) == x.data, f"byte {at} changed after it was checked"
            loaded += 1
            if loaded >= 40 or (loaded >= 5 and time.monotonic() > end):
                break
    finally:
        flipper.kill()
        flipper.wait()
        flipper.stdout.close()
    assert loaded, "never seen whole"


def test_a_bytearray_that_a_thread_changes(loaders):
    x = loaders["tfhe keys"]
    buffer, stop = bytearray(x.data), threading.Event()

    def flip():
        while not stop.is_set():
            for at in range(len(buffer) - 100, len(buffer)):
                buffer[at] ^= 0x80
                buffer[at] ^= 0x80

    thread = threading.Thread(target=flip)
    thread.start()
    loaded = 0
    try:
        for _ in range(60):
            try:
                object_ = x.load(buffer)
            except ckks.CrenelError:
                continue
            assert x.save(object_) == x.data
            loaded += 1
            if loaded == 10:
                break
    finally:
        stop.set()
        thread.join()
    assert loaded


def test_a_loaded_object_holds_no_buffer(loaders):
    for x in loaders.values():
        for buffer in (bytearray(x.data), np.frombuffer(bytearray(x.data), np.uint8)):
            loaded = x.load(buffer)
            buffer[:] = bytes(len(x.data)) if isinstance(buffer, bytearray) else 0
            assert x.save(loaded) == x.data
