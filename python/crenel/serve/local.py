"""The engine of one machine: worker processes beside the server, started again when they die.

For development and tests; `deployment.py` has Ray's.

A worker is a process of its own because it may die of what it computes; the server and its queue do not.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from crenel.serve.observe import log, to_stderr
from crenel.serve.programs import Programs, Servable
from crenel.serve.settings import Settings
from crenel.serve.worker import Worker

LOOK_S, QUICK_S, PAUSE_S = 0.2, 5.0, 1.0


class Workers:
    """So many worker processes, one on each device that is named."""

    def __init__(self, settings: Settings, programs: Sequence[Servable], devices: Sequence[str]) -> None:
        self._sent = [pickle.dumps((settings.to_json(), list(programs), device)) for device in devices]
        self._began = [0.0] * len(devices)
        self._processes = [self._start(k) for k in range(len(devices))]
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._watched, daemon=True, name="workers")
        self._watch.start()

    @property
    def pids(self) -> list[int]:
        """Of the processes now."""
        return [p.pid for p in self._processes]

    def close(self) -> None:
        """Ends them; what they run waits for others."""
        self._stop.set()
        self._watch.join()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, k: int) -> subprocess.Popen[bytes]:
        """Standard input stays open: that it ends tells the worker that its server is gone."""
        self._began[k] = time.monotonic()
        # Threads that wait give their core away: server, storage and other workers need it.
        environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
        process = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, env=environment)
        assert process.stdin is not None
        process.stdin.write(len(self._sent[k]).to_bytes(8, "little") + self._sent[k])
        process.stdin.flush()
        return process

    def _watched(self) -> None:
        while not self._stop.wait(LOOK_S):
            for k, process in enumerate(self._processes):
                if process.poll() is None:
                    continue
                log("worker_died", pid=process.pid, status=process.returncode)
                if time.monotonic() - self._began[k] < QUICK_S and self._stop.wait(PAUSE_S):
                    return
                self._processes[k] = self._start(k)


def _exactly(source: io.FileIO, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = source.read(size - len(found))
        if not piece:
            raise SystemExit("the server ended before it said what to serve")
        found += piece
    return bytes(found)


def main() -> None:
    """A worker: what to serve comes on standard input, from the process that started it."""
    with os.fdopen(0, "rb", buffering=0, closefd=False) as source:
        settings, programs, device = pickle.loads(
            _exactly(source, int.from_bytes(_exactly(source, 8), "little"))
        )
    to_stderr()
    worker = Worker(Settings.from_json(settings), Programs(programs), device)

    def ended(_number: int, _frame: object) -> None:
        worker.stop()

    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers

    def orphaned() -> None:
        os.read(0, 1)
        worker.stop()

    threading.Thread(target=orphaned, daemon=True, name="orphaned").start()
    worker.run()


if __name__ == "__main__":
    main()
