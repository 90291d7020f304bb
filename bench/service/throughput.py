"""One worker beside the library alone, keys resident: samples a second, and whose CPU a request takes.

Server and clients run on one core, the worker on another, and computes with one thread; the library alone
has the worker's core and one thread, too. Then once more with worker and library free to run on both: what
the worker reads and writes then goes on beside what it computes. Rounds of all take turns, so that other work
on the machine meets all. CPU seconds are the processes' own: other work changes them little.

python bench/service/throughput.py --json bench/results/service-throughput-cpu.json
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

import common  # noqa: E402

from crenel import client  # noqa: E402
from crenel.serve import NnProgram  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def measure(given: argparse.Namespace) -> dict[str, Any]:
    program, images = common.digits(given.params, given.batch)
    served = NnProgram("digits", program.to_bytes(), allow_insecure=True)
    cores = sorted(os.sched_getaffinity(0))
    outer, inner = {cores[0]}, {cores[-1]}
    os.sched_setaffinity(0, outer)
    with (
        tempfile.TemporaryDirectory() as folder,
        _serving(program, served, Path(folder), given) as (url, token, pid),
    ):
        worker = _await_worker(pid)
        _pin(worker, inner)
        sessions = []
        for _ in range(given.tenants):
            session = client.Session(client.connect(url, token), program.client, program.client.keygen("cpu"))
            session.send_keys()
            tensor = session.client.encrypt(images[: given.batch], program.client)
            sessions.append((session, tensor.to_bytes()))
        alone = _Alone(program, sessions)
        _piped(sessions, 1)
        alone.run(2, inner)
        result = len(common.submitted(*sessions[0]).encrypted(300))
        key_file = int(sessions[0][0].service.keys()[0]["bytes"])
        rounds = []
        for _ in range(given.rounds):
            found = _round(sessions, alone, inner, given.jobs, pid, worker)
            _pin(worker, outer | inner)
            found |= _free(sessions, alone, outer | inner, given.jobs, worker)
            _pin(worker, inner)
            rounds.append(found)
    return _summary(rounds, given) | {
        "input_bytes": len(sessions[0][1]),
        "result_bytes": result,
        "key_file_bytes": key_file,
        "key_bytes_on_device": served.key_memory,
    }


def _round(
    sessions: list, alone: _Alone, core: set[int], jobs: int, server: int, worker: int
) -> dict[str, float]:
    """Jobs by the service, then as many by the library, on the worker's core."""
    cpu = {"client": time.process_time, "server": lambda: _cpu(server), "worker": lambda: _cpu(worker)}
    before = {name: read() for name, read in cpu.items()}
    start = time.perf_counter()
    _piped(sessions, max(1, jobs // len(sessions)))
    seconds = time.perf_counter() - start
    done = max(1, jobs // len(sessions)) * len(sessions)
    found = {f"{name}_cpu": (read() - before[name]) / done for name, read in cpu.items()}
    wall, used = alone.run(done, core)
    full, worked = _full(sessions, max(1, jobs // len(sessions)), worker)
    found |= {"full_seconds": full / done, "full_worker_cpu": worked / done}
    return found | {"seconds": seconds / done, "library_seconds": wall / done, "library_cpu": used / done}


def _free(sessions: list, alone: _Alone, cores: set[int], jobs: int, worker: int) -> dict[str, float]:
    """Jobs that all wait already, by the service and by the library, on whatever core there is."""
    each = max(1, jobs // len(sessions))
    full, _ = _full(sessions, each, worker)
    done = each * len(sessions)
    wall, _ = alone.run(done, cores)
    return {"free_seconds": full / done, "free_library_seconds": wall / done}


def _summary(rounds: list[dict[str, float]], given: argparse.Namespace) -> dict[str, Any]:
    """Medians over rounds; the share is of one round, where both met the same other work."""
    middle = {name: sorted(r[name] for r in rounds)[len(rounds) // 2] for name in rounds[0]}
    shares = sorted(r["library_seconds"] / r["seconds"] for r in rounds)
    full = sorted(r["library_seconds"] / r["full_seconds"] for r in rounds)
    free = sorted(r["free_library_seconds"] / r["free_seconds"] for r in rounds)
    return {
        "samples_a_second": round(given.batch / middle["seconds"], 2),
        "free": {
            "samples_a_second": round(given.batch / middle["free_seconds"], 2),
            "library_samples_a_second": round(given.batch / middle["free_library_seconds"], 2),
            "share_of_the_library": common.spread(free),
        },
        "library_samples_a_second": round(given.batch / middle["library_seconds"], 2),
        "share_of_the_library": common.spread(shares),
        "queue_full": {
            "samples_a_second": round(given.batch / middle["full_seconds"], 2),
            "share_of_the_library": common.spread(full),
            "worker_cpu_ms": round(1000 * middle["full_worker_cpu"], 2),
            "library_over_worker_cpu": round(middle["library_cpu"] / middle["full_worker_cpu"], 3),
        },
        "cpu_ms_a_request": {
            name: round(1000 * middle[f"{name}_cpu"], 2) for name in ("client", "server", "worker", "library")
        },
        "library_over_worker_cpu": round(middle["library_cpu"] / middle["worker_cpu"], 3),
        "rounds": [{name: round(value, 5) for name, value in r.items()} for r in rounds],
    }  # fmt: skip


class _Alone:
    """The library, bytes to bytes, keys ready, in one thread."""

    def __init__(self, program: Any, sessions: list) -> None:
        self._ready = [(program.bind(s.client.evaluation_keys(s.spec)), data) for s, data in sessions]

    def run(self, jobs: int, cores: set[int]) -> tuple[float, float]:
        """Seconds, and CPU seconds, of so many, on one of these cores at a time."""
        found: list[float] = []

        def work() -> None:
            os.sched_setaffinity(0, cores)
            wall, cpu = time.perf_counter(), time.thread_time()
            for k in range(jobs):
                server, data = self._ready[k % len(self._ready)]
                server.run(server.tensor_from_bytes(data)).to_bytes()
            found.extend((time.perf_counter() - wall, time.thread_time() - cpu))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[0], found[1]


@contextmanager
def _serving(
    program: Any, served: NnProgram, folder: Path, given: argparse.Namespace
) -> Iterator[tuple[str, str, int]]:
    """`crenel serve`, as users start it: its address, a token, its process."""
    file = folder / "digits.crn"
    program.save(file)
    settings = {
        "allow_insecure": "true", "requests_per_second": 1e5, "burst": 10**6, "jobs": 10_000,
        "waiting": 10_000,
        "device_bytes": given.tenants * served.key_memory, "min_free_bytes": 0,
        "lease_seconds": 300,
    }  # fmt: skip
    command = [sys.executable, "-m", "crenel", "serve", str(file), "--engine", "local", "--device", "cpu"]
    command += ["--port", str(given.port), "--data", str(folder / "data")]
    command += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            url = _read(process, r"crenel serve: (\S+)")
            token = _read(process, r"token of .*: (\S+)")
            yield url, token, process.pid
        finally:
            process.terminate()
            process.wait(30)


def _read(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found[1]
    raise SystemExit("the service did not start")


def _await_worker(server: int) -> int:
    """The process of the one worker."""
    for _ in range(600):
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for child in children:
            if b"crenel.serve.local" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        time.sleep(0.1)
    raise SystemExit("no worker began")


def _pin(pid: int, core: set[int]) -> None:
    """All threads of a process."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), core)


def _cpu(pid: int) -> float:
    """CPU seconds of a process so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _piped(sessions: list, rounds: int) -> None:
    """All submitted, by a thread a tenant, then all fetched: the worker never waits for a client."""

    def tenant(session: client.Session, data: bytes) -> None:
        jobs = [common.submitted(session, data) for _ in range(rounds)]
        for job in jobs:
            job.encrypted(300)

    with ThreadPoolExecutor(len(sessions)) as pool:
        for done in [pool.submit(tenant, s, d) for s, d in sessions]:
            done.result()


def _full(sessions: list, rounds: int, worker: int) -> tuple[float, float]:
    """Seconds and the worker's CPU seconds of jobs that all wait already when the worker goes on."""
    os.kill(worker, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(len(sessions)) as pool:
            jobs = list(pool.map(lambda s: [common.submitted(*s) for _ in range(rounds)], sessions))
        before = _cpu(worker)
        start = time.perf_counter()
    finally:
        os.kill(worker, signal.SIGCONT)
    with ThreadPoolExecutor(len(sessions)) as pool:
        list(pool.map(lambda some: [job.encrypted(300) for job in some], jobs))
    return time.perf_counter() - start, _cpu(worker) - before


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenants", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=120, help="a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--port", type=int, default=8451)
    parser.add_argument("--params", default="leveled-n14-s40")


if __name__ == "__main__":
    common.main("throughput", measure, options)
