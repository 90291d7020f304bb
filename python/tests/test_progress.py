"""Progress: who is told what, when, and what a function that is told may do."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from tfhe_world import tfhe_world

import crenel
from crenel import StateError
from crenel.progress_bar import Bar, _Notebook


class Told:
    """Keeps what it is told, and holds what every operation promises."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, str]] = []
        self.times: list[float] = []
        self.threads: set[int] = set()

    def __call__(self, done, total, what):
        self.calls.append((done, total, what))
        self.times.append(time.monotonic())
        self.threads.add(threading.get_ident())

    def check(self, what: str, total: int | None = None) -> None:
        done = [call[0] for call in self.calls]
        assert done == sorted(done) and done[0] == 0 and len(done) >= 2
        (one,) = {call[1:] for call in self.calls}
        assert done[-1] == one[0] and one[1] == what
        if total is not None:
            assert one[0] == total
        assert self.threads == {threading.get_ident()}
        between = np.diff(self.times[:-1])
        assert len(between) <= 2 + 25 * (self.times[-1] - self.times[0])  # about 20 a second


def test_keys(world):
    told = Told()
    keys = world.client.evaluation_keys(rotations=[1, 2, 2, 3], conjugate=True, progress=told)
    told.check("evaluation keys", 5)  # as many as are made
    assert keys.count == 5


def test_files(world, tmp_path):
    path = tmp_path / "keys"
    keys = world.client.evaluation_keys(rotations=[1, 2, 3])
    saved, loaded, staged, some = Told(), Told(), Told(), Told()
    keys.save(path, progress=saved)
    saved.check("saving keys")
    world.context.load_evaluation_keys(path, progress=loaded)
    loaded.check("loading keys", 4)
    world.context.load_evaluation_keys(path, rotations=[2], progress=some)
    some.check("loading keys", 2)
    keys.staged(keys.nbytes, progress=staged)
    staged.check("staging keys", 4)
    as_bytes = Told()
    with crenel.progress(as_bytes):
        data = keys.to_bytes()
    as_bytes.check("saving keys")
    read = Told()
    with crenel.progress(read):
        world.context.evaluation_keys_from_bytes(data)
    read.check("loading keys", 8)


def test_transforms(world):
    told = Told()
    matrix = {k: np.ones(world.slots) for k in (0, 1, 5)}
    world.context.linear_transform(matrix, progress=told)
    told.check("diagonals", 3)


def test_bootstraps(boot_world):
    made, told = Told(), Told()
    # Other options than those of other tests: a bootstrapper that is there is shared.
    boot = boot_world.context.bootstrapper(slots=8, progress=made)
    made.check("bootstrapper")
    keys = boot_world.client.evaluation_keys(bootstrap=boot.options)
    a = boot_world.client.encrypt(np.zeros(8), level=boot.levels.input, slots=8)
    boot(a, boot_world.context.evaluator(keys), progress=told)
    told.check("bootstrap")


def test_bits_and_integers(device):
    w = tfhe_world("toy-lut4", device)
    a, b = (w.client.encrypt(np.arange(3, dtype=np.uint8)) for _ in range(2))
    told = Told()
    with crenel.progress(told):
        product = w.ev.mul(a, b)
    told.check("bootstraps")
    assert product.shape == (3,)
    keys = Told()
    w.client.evaluation_keys(progress=keys)
    keys.check("evaluation keys")


@pytest.mark.parametrize("count", [1, 130])
def test_gates(device, count):
    w = tfhe_world("toy-gadget", device)
    a, b = (w.client.encrypt(np.ones(count, dtype=bool)) for _ in range(2))
    quiet, told = w.ev.and_(a, b), Told()
    with crenel.progress(told):
        loud = w.ev.and_(a, b)
    told.check("bootstraps", count)
    assert quiet.to_bytes() == loud.to_bytes()  # in pieces, the same bits
    if count > 64:
        assert len(told.calls) >= 2


def test_what_it_raises_stops_the_work(world):
    class Stop(Exception):
        pass

    before = world.context.bytes_in_use

    def stop(done, total, what):
        if done:
            raise Stop

    with pytest.raises(Stop):
        world.client.evaluation_keys(rotations=ROTATIONS, progress=stop)
    assert world.context.bytes_in_use == before
    told = Told()
    world.client.evaluation_keys(rotations=[1], progress=told)
    told.check("evaluation keys", 2)


ROTATIONS = [1, 2, 3]


def test_it_does_not_compute(world):
    errors = []

    def compute(done, total, what):
        try:
            world.client.encrypt([1.0])
        except StateError as error:
            errors.append(error)

    world.client.evaluation_keys(rotations=ROTATIONS, progress=compute)
    assert errors and errors[0].fields["found"] == "an operation under way"
    world.client.encrypt([1.0])


def test_blocks_nest_and_end(world):
    outer, inner = Told(), Told()
    with crenel.progress(outer):
        with crenel.progress(inner):
            world.client.evaluation_keys(rotations=[1])
        world.client.evaluation_keys(rotations=[1], progress=False)
        with crenel.progress(False):
            world.client.evaluation_keys(rotations=[1])
        assert not outer.calls
        world.client.evaluation_keys(rotations=[1, 2])
    outer.check("evaluation keys", 3)
    inner.check("evaluation keys", 2)
    world.client.evaluation_keys(rotations=[1])
    assert len(inner.calls) < 10 and outer.calls[-1] == (3, 3, "evaluation keys")


def test_a_block_is_of_its_thread(world):
    told = Told()
    with crenel.progress(told):
        thread = threading.Thread(target=lambda: world.client.evaluation_keys(rotations=[1]))
        thread.start()
        thread.join()
    assert not told.calls


@pytest.mark.parametrize("wrong", ["yes", 1, 0.5, []])
def test_wrong_types(world, wrong):
    with pytest.raises(TypeError):
        world.client.evaluation_keys(rotations=[1], progress=wrong)
    with pytest.raises(TypeError):
        crenel.progress(wrong)


SCRIPT = """
import time, crenel
from crenel import ckks, progress_bar
progress_bar.SHOWN_AFTER_S, progress_bar.WRITTEN_AFTER_S = 0.0, {written}
context = ckks.Context(ckks.preset("leveled-n14-s40"), device="cpu")
context.keygen().evaluation_keys(rotations=range(1, 9), progress=True)
print("made")
"""


def test_a_terminal_gets_a_bar():
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", SCRIPT.format(written=0.0)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, env=environment)
    os.close(follower)
    drawn = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            break
        if not piece:
            break
        drawn += piece
    assert child.communicate()[0] == b"made\n" and child.returncode == 0
    os.close(leader)
    text = drawn.decode()
    assert "evaluation keys" in text and "9/9" in text and "━" in text


@pytest.mark.parametrize(("written", "lines"), [(0.0, 1), (1e9, 0)])
def test_elsewhere_a_line_at_most(written, lines):
    command = [sys.executable, "-c", SCRIPT.format(written=written)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "made\n" and done.returncode == 0
    assert len(done.stderr.splitlines()) == lines
    assert all("evaluation keys: 9 of 9" in line for line in done.stderr.splitlines())


def test_a_notebook_gets_html(monkeypatch):
    """What is displayed, by a stand-in for IPython: a real notebook is run by test_notebook.py."""
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    class Module:
        HTML = str

        @staticmethod
        def display(html, display_id):
            shown.append(html)
            return Handle()

    monkeypatch.setitem(sys.modules, "IPython", Module)
    monkeypatch.setitem(sys.modules, "IPython.display", Module)
    bar = _Notebook(9, "evaluation keys")
    for done in (3, 9):
        bar.update(done, "evaluation keys")
    bar.close()
    assert len(shown) == 2 and "3/9" in shown[0] and "9/9" in shown[1]
    assert "<pre" in shown[1] and "evaluation keys" in shown[1]


def test_a_bar_survives_what_never_ends():
    """An operation that was stopped: the next one begins anew."""
    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    bar = Bar(console)
    bar(0, 10, "first")
    bar._began -= 10
    bar(5, 10, "first")
    bar(0, 3, "second")
    bar._began -= 10
    bar(3, 3, "second")
    bar.close()
    text = console.file.getvalue()
    assert "5/10" in text and "3/3" in text
