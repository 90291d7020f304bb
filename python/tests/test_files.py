"""Files that are complete or not there: crenel.write_file and EvaluationKeys.save."""

import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import crenel
from crenel import ckks


@pytest.fixture(scope="module")
def keys(world) -> ckks.EvaluationKeys:
    return world.client.evaluation_keys(rotations=[1])


@pytest.fixture(params=["write_file", "save"])
def save(request, keys):
    """Both ways to a file, as (path) -> bytes that it holds then."""

    def write(path):
        data = secrets.token_bytes(1000)
        crenel.write_file(path, data)
        return data

    def by_key(path):
        keys.save(path)
        return keys.to_bytes()

    return write if request.param == "write_file" else by_key


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refused(save, path: Path, match: str) -> None:
    before = sorted(path.parent.iterdir())
    with pytest.raises(ckks.SerializationError, match=match) as caught:
        save(path)
    assert {"where", "found", "expected"} <= set(caught.value.fields)
    assert sorted(path.parent.iterdir()) == before


def test_a_new_file_and_one_that_is_replaced(save, tmp_path):
    path = tmp_path / "file"
    for _ in range(2):
        data = save(path)
        assert path.read_bytes() == data
        assert list(tmp_path.iterdir()) == [path]


def test_the_name_of_the_unfinished_file_cannot_be_prepared(save, tmp_path):
    """The attack: a link under the name that the writer will open."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("file.partial", "file.tmp", ".file.partial", "file~"):
        (tmp_path / name).symlink_to(victim)
    save(tmp_path / "file")
    assert victim.read_text() == "precious"
    assert (tmp_path / "file.partial").is_symlink()


def test_a_symbolic_link_is_neither_followed_nor_replaced(save, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = tmp_path / "link"
    for target in (victim, tmp_path / "nothing"):
        link.symlink_to(target)
        refused(save, link, "symbolic link")
        assert link.is_symlink() and victim.read_text() == "precious"
        assert not (tmp_path / "nothing").exists()
        link.unlink()
    folder = tmp_path / "folder"
    folder.mkdir()
    link.symlink_to(folder)  # to a folder, on the way, is fine
    assert save(link / "file") == (folder / "file").read_bytes()


def test_devices_pipes_and_directories_stay_what_they_are(save, tmp_path):
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    refused(save, pipe, "a pipe")
    refused(save, folder, "a directory")
    for name in (f"{tmp_path}/", f"{tmp_path}/no/file", f"{tmp_path}/{'x' * 300}"):
        with pytest.raises(ckks.SerializationError):
            save(name)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and folder.is_dir()
    try:
        os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("device nodes want privileges; the pipe was refused")
    refused(save, tmp_path / "null", "a device")
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)


def test_permissions(save, tmp_path):
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        save(path)
        assert mode(path) == 0o640
        path.chmod(0o600)
        save(path)  # a file that its owner closed stays closed
        assert mode(path) == 0o600
    finally:
        os.umask(before)


def test_secrets_are_their_owner_s(tmp_path):
    path = tmp_path / "secret"
    path.write_text("")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        crenel.write_file(path, b"key", secret=True)
        assert mode(path) == 0o600
        crenel.write_file(tmp_path / "new", bytearray(b"key"), secret=True)
        assert mode(tmp_path / "new") == 0o600
    finally:
        os.umask(before)


SCRIPT = """
    import os, random, resource, signal, sys, threading, time, warnings
    import crenel
    from crenel import ckks
    path, action = sys.argv[1:3]
    def world():
        warnings.simplefilter("ignore")
        context = ckks.Context(ckks.preset("toy-leveled-n13-s30", allow_insecure=True), device="cpu")
        return context, context.keygen()
"""


def run(code: str, path: Path, *, wait: bool = True, **environment: str):
    program = textwrap.dedent(SCRIPT) + textwrap.dedent(code)
    command = [sys.executable, "-c", program, str(path), "x"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, **environment})  # fmt: skip
    if not wait:
        return child
    out, err = child.communicate(timeout=120)
    return child.returncode, out, err


def test_no_space(tmp_path):
    """A file that may not grow, as on a full disk: the old one stays, the new one goes."""
    path = tmp_path / "file"
    path.write_text("old")
    code, out, err = run(
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        context, client = world()
        keys = client.evaluation_keys(rotations=[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for save in (lambda: keys.save(path), lambda: crenel.write_file(path, bytes(200_000))):
            try:
                save()
            except ckks.SerializationError as error:
                print(error)
        """,
        path,
    )
    assert code == 0 and out.count("File too large") == 2, err
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    path = tmp_path / "file"
    size, unfinished = 3_000_000, 0
    for _ in range(8):
        path.write_bytes(b"o" * size)
        child = run(
            """
            for number in range(10**6):
                crenel.write_file(path, b"abcdefgh"[number % 8:][:1] * 3_000_000, secret=True)
            """,
            path,
            wait=False,
        )
        while path.read_bytes()[:1] == b"o":  # the first of its files is there: it is in its loop
            assert child.poll() is None, child.communicate()
        time.sleep(secrets.randbelow(30) / 1000)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        found = path.read_bytes()
        assert found == found[:1] * size
        for rest in set(tmp_path.iterdir()) - {path}:
            assert rest.name.startswith(".crenel-") and rest.name.endswith(".partial")
            assert mode(rest) == 0o600
            unfinished += 1
            rest.unlink()
    print(f"{unfinished} of 8 were killed while they wrote")


SHIM = r"""
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int fsync(int file) {
  struct stat about;
  fstat(file, &about);
  const char *text = S_ISDIR(about.st_mode) ? "directory\n" : "file\n";
  if (write(2, text, S_ISDIR(about.st_mode) ? 10 : 5) < 0) return -1;
  if (!getenv("FAIL")) return 0;
  errno = EIO;
  return -1;
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory) -> str:
    """A library that says on stderr what is brought to the disk, and fails on request."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("wants a C compiler and LD_PRELOAD")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c"], check=True)
    return str(folder / "shim.so")


def test_file_and_directory_come_to_the_disk(tmp_path, shim):
    path = tmp_path / "keys"
    code = """
        context, client = world()
        client.evaluation_keys(rotations=[1]).save(path)
        """
    status, _, err = run(code, path, LD_PRELOAD=shim)
    assert status == 0 and err.split() == ["file", "directory"], err
    data = path.read_bytes()
    status, _, err = run(code, path, LD_PRELOAD=shim, FAIL="1")
    assert status == 1 and "FileError" in err and "Input/output error" in err
    assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]


def test_a_key_file_that_is_shortened_meanwhile_kills_nobody(tmp_path):
    path = tmp_path / "keys"
    status, out, err = run(
        """
        context, client = world()
        client.evaluation_keys(rotations=range(1, 9)).save(path)
        whole = open(path, "rb").read()
        stop = threading.Event()
        def cut():
            while not stop.is_set():
                os.truncate(path, 4096 * random.randrange(1, 9))
                time.sleep(0.004)
                with open(path, "r+b") as file:
                    file.write(whole)
                time.sleep(random.random() * 0.03)
        thread = threading.Thread(target=cut)
        thread.start()
        refused = 0
        for _ in range(100):
            try:
                keys = context.load_evaluation_keys(path)
                assert keys.to_bytes() == whole
            except ckks.SerializationError:
                refused += 1
        stop.set()
        thread.join()
        print("refused", refused)
        """,
        path,
    )
    assert status == 0, f"{status} {err}"
    assert int(out.split()[1]) > 0
