"""`crenel serve` as it is by default, on Ray, from the command to the answers; replicas that are killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from needed import lacking
from service_world import made, quiet

from crenel import client
from crenel.serve.database import Database
from crenel.serve.presence import alive
from crenel.serve.settings import Settings

if find_spec("ray") is None:
    lacking("ray", "needs Ray: pip install 'crenel[serve]'")

START_S, ANSWER_S, END_S = 480.0, 180.0, 120.0  # Ray begins nine processes, slowly where cores are busy
TRIES, GAVE_UP = 4, "UnavailableError: Ray waited"
SET = {"lease_seconds": "1", "attempts": "20", "min_free_bytes": "0"}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _started(command: list[str], written: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The command's process once it serves, and the token that it prints. Ray gives itself 30 s to start:
    where cores are too busy for that it is tried again, and in the end there is nothing to be tested."""
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    environment.pop("RAY_ADDRESS", None)  # a cluster of somebody's
    for _ in range(TRIES):
        with open(written, "w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        end = time.monotonic() + START_S
        while process.poll() is None and time.monotonic() < end:
            if found := re.search(r"^token of the tenant local.* (\S+)$", written.read_text(), re.M):
                return process, found.group(1)
            time.sleep(0.2)
        ended = process.poll()
        _end(process)
        assert ended == 2 and GAVE_UP in written.read_text(), f"{ended}: {written.read_text()[-4000:]}"
    lacking("ray", f"Ray gave up {TRIES} times: it did not start within the 30 s that it gives itself")
    raise AssertionError


def _end(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.fixture(scope="module")
def live(tmp_path_factory) -> Iterator[SimpleNamespace]:
    """The command with no engine named, two workers, and the processes that it says compute."""
    quiet()
    folder, port = tmp_path_factory.mktemp("ray"), _free_port()
    (folder / "toy.crn").write_bytes(made().servable.data)
    command = [sys.executable, "-m", "crenel", "serve", f"toy={folder / 'toy.crn'}", "--device", "cpu"]
    command += ["--port", str(port), "--workers", "2", "--data", str(folder / "data"), "--allow-insecure"]
    for name, value in SET.items():
        command += ["--set", f"{name}={value}"]
    settings = Settings(data=str(folder / "data"), allow_insecure=True, lease_seconds=1.0)
    process, token = _started(command, folder / "written")
    try:
        database = Database(settings.database_url)
        connected = client.connect(f"http://127.0.0.1:{port}", token)

        def workers() -> dict[str, int]:
            return {str(w["id"]): int(str(w["pid"])) for w in alive(database, settings)}

        yield SimpleNamespace(
            connected=connected, workers=workers, process=process, written=folder / "written", port=port
        )
        database.close()
    finally:
        _end(process)


def _until(condition, what: str) -> None:
    end = time.monotonic() + ANSWER_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def _session(live: SimpleNamespace, which: int) -> client.Session:
    session = client.Session(live.connected, made().spec, made().clients[which])
    session.send_keys()
    return session


def _right(which: int, samples: np.ndarray, data: bytes) -> None:
    holder, spec = made().clients[which], made().spec
    values = holder.decrypt(holder.tensor_from_bytes(data), spec)
    clear = made().program.simulate(samples, noise=False)
    assert np.abs(values[: len(clear)] - clear).max() < 2**-10


def test_jobs_are_answered(live):
    """Two clients with keys of their own; each reads its answers, of numbers that nobody chose."""
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for which in (0, 1):
        session = _session(live, which)
        samples = made().samples[rng.integers(0, 100, 3)]
        _right(which, samples, session.submit(samples).encrypted(timeout=ANSWER_S))


def test_replicas_that_are_killed(live):
    """SIGKILL of each of the first two replicas while jobs wait: every job is answered, and right; Ray
    begins others in their places."""
    session, m = _session(live, 0), made()
    _until(lambda: len(live.workers()) == 2, "two workers")
    jobs, killed = [], set()
    for k in range(12):
        jobs.append(session.submit(m.samples[:2]))
        if k in (3, 7):
            _until(lambda: set(live.workers().values()) - killed, "a worker that was not killed")
            pid = min(set(live.workers().values()) - killed)
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    for job in jobs:
        _right(0, m.samples[:2], job.encrypted(timeout=ANSWER_S))
    assert {job.state()["state"] for job in jobs} == {"done"}
    _until(lambda: len(set(live.workers().values()) - killed) == 2, "two workers again")


def test_the_end(live):
    """Ctrl-C ends the service and its workers; its port is free then."""
    pids = set(live.workers().values())
    live.process.send_signal(signal.SIGINT)
    assert live.process.wait(END_S) == 0, live.written.read_text()[-4000:]
    _until(lambda: not any(_runs(pid) for pid in pids), "workers that end")
    socket.create_server(("127.0.0.1", live.port)).close()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.is_file() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
