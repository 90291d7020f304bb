"""A service as users start it, beside a bench; jobs by a thread a tenant; the library alone."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import common

from crenel import client, nn

TICK = os.sysconf("SC_CLK_TCK")
LIMITS = {
    "allow_insecure": "true", "requests_per_second": 1e5, "burst": 10**6, "jobs": 10_000, "waiting": 10_000,
    "min_free_bytes": 0, "lease_seconds": 300,
}  # fmt: skip
"""Settings that no bench reaches."""


@contextmanager
def serving(
    program: nn.Program, folder: Path, port: int, device: str = "cpu", **settings: Any
) -> Iterator[tuple[str, str, int]]:
    """`crenel serve` of a program: its address, a token, its process."""
    file = folder / "digits.crn"
    program.save(file)
    settings = LIMITS | settings
    command = [sys.executable, "-m", "crenel", "serve", str(file), "--engine", "local", "--device", device]
    command += ["--port", str(port), "--data", str(folder / "data")]
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


def await_worker(server: int) -> int:
    """The process of the one worker."""
    for _ in range(600):
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for child in children:
            if b"crenel.serve.local" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        time.sleep(0.1)
    raise SystemExit("no worker began")


def pin(pid: int, core: set[int]) -> None:
    """All threads of a process."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), core)


def cpu(pid: int) -> float:
    """CPU seconds of a process so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def piped(sessions: list, rounds: int) -> None:
    """All submitted, by a thread a tenant, then all fetched: the worker never waits for a client."""

    def tenant(session: client.Session, data: bytes) -> None:
        jobs = [common.submitted(session, data) for _ in range(rounds)]
        for job in jobs:
            job.encrypted(300)

    with ThreadPoolExecutor(len(sessions)) as pool:
        for done in [pool.submit(tenant, s, d) for s, d in sessions]:
            done.result()


class Full(NamedTuple):
    """Jobs that all waited already when the worker went on."""

    seconds: float
    """Until clients, who fetch meanwhile, had all results; or until the last job was done."""
    cpu: float
    """Of the worker."""


def full(sessions: list, rounds: int, worker: int, folder: Path, fetched: bool = True) -> Full:
    """Submits while the worker is stopped, and lets it go on.

    fetched : clients fetch meanwhile, on another core, and move as much memory as the worker; else afterwards
    """
    _stop(worker, folder / "data" / "service.sqlite")
    try:
        with ThreadPoolExecutor(len(sessions)) as pool:
            jobs = list(pool.map(lambda s: [common.submitted(*s) for _ in range(rounds)], sessions))
        before = cpu(worker)
        start, clock = time.perf_counter(), time.time()
    finally:
        os.kill(worker, signal.SIGCONT)
    if not fetched:
        last = _done(folder / "data" / "service.sqlite", len(sessions) * rounds, clock)
        used = cpu(worker) - before
    with ThreadPoolExecutor(len(sessions)) as pool:
        list(pool.map(lambda some: [job.encrypted(300) for job in some], jobs))
    return Full(time.perf_counter() - start, cpu(worker) - before) if fetched else Full(last - clock, used)


def _stop(worker: int, file: Path) -> None:
    """Between two of its transactions: with the database's lock in its hands it would stop the server."""
    with contextlib.closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        os.kill(worker, signal.SIGSTOP)
        while {_state(task) for task in Path(f"/proc/{worker}/task").iterdir()} != {"T"}:
            time.sleep(0.001)  # a thread that goes on would take what is given back here
        database.execute("ROLLBACK")


def _state(process: Path) -> str:
    """The letter that Linux has for what a process or thread does."""
    return (process / "stat").read_text().rpartition(")")[2].split()[0]


def _done(file: Path, count: int, since: float) -> float:
    """When the last of so many jobs was."""
    with contextlib.closing(sqlite3.connect(file)) as database:
        while True:
            found, last = database.execute(
                "SELECT count(*), max(finished) FROM jobs WHERE state = 'done' AND finished > ?", (since,)
            ).fetchone()
            if found >= count:
                return float(last)
            time.sleep(0.05)


class Alone:
    """The library, bytes to bytes, keys ready, in one thread."""

    def __init__(self, program: nn.Program, sessions: list, keys: list[bytes] | None = None) -> None:
        """keys : their files, where they are at hand"""
        found = keys or [s.client.evaluation_keys(s.spec).to_bytes() for s, _ in sessions]
        ready = common.bound(program, found)
        self._ready = [(server, data) for server, (_, data) in zip(ready, sessions, strict=True)]

    def run(self, jobs: int, cores: set[int], times: list[float] | None = None) -> tuple[float, float]:
        """Seconds, and CPU seconds, of so many, on one of these cores at a time; `times` gets each's."""
        found: list[float] = []

        def work() -> None:
            os.sched_setaffinity(0, cores)
            wall, cpu = time.perf_counter(), time.thread_time()
            for k in range(jobs):
                server, data = self._ready[k % len(self._ready)]
                began = time.perf_counter()
                server.run(server.tensor_from_bytes(data)).to_bytes()
                if times is not None:
                    times.append(time.perf_counter() - began)
            found.extend((time.perf_counter() - wall, time.thread_time() - cpu))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[0], found[1]
