"""The engine of one machine: worker processes beside the server, started again when they die.

For development and tests; `deployment.py` has Ray's.

A worker is a process of its own because it may die of what it computes; the server and its queue do not.
It may also stop without dying, with the lock of the database in its hands: one that was heard and is silent
for long is killed, which frees the lock, and what it ran begins again.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from crenel.errors import ParameterError
from crenel.serve.observe import log, to_stderr
from crenel.serve.programs import Programs
from crenel.serve.servable import Servable
from crenel.serve.settings import Settings
from crenel.serve.worker import Worker

LOOK_S, QUICK_S, PAUSE_S = 0.2, 5.0, 1.0
PULSE_S = 0.5
"""Between two signs of life of a worker to the process that started it."""
SILENT_S = 10.0
"""After so long without any, or a lease where that is longer, a worker is killed."""
BROKEN = 3
"""The status of a worker that gave its device up."""


@dataclass
class _Process:
    """A worker, and what is heard of it."""

    process: subprocess.Popen[bytes]
    pulse: int
    """A pipe, of which reading never waits."""
    began: float
    heard: bool = False
    looks: int = 0
    """Since the last sign of life. Looks and not seconds: where the server was stopped as well, as by Ctrl-Z,
    nobody could be heard."""

    def listen(self) -> None:
        """Takes what came since the last look."""
        self.looks += 1
        with suppress(BlockingIOError):
            while os.read(self.pulse, 4096):
                self.heard, self.looks = True, 0


class Workers:
    """So many worker processes, one on each device that is named."""

    def __init__(self, settings: Settings, programs: Sequence[Servable], devices: Sequence[str]) -> None:
        for program in programs:
            _expect_sendable(program)
        self._sent = [
            pickle.dumps((settings.to_json(), list(programs), device, devices.count(device)))
            for device in devices
        ]
        self._silent = max(settings.lease_seconds, SILENT_S)
        self._processes = [self._start(k) for k in range(len(devices))]
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._watched, daemon=True, name="workers")
        self._watch.start()

    @property
    def pids(self) -> list[int]:
        """Of the processes now."""
        return [p.process.pid for p in self._processes]

    def close(self) -> None:
        """Ends them; what they run waits for others."""
        self._stop.set()
        self._watch.join()
        for worker in self._processes:
            worker.process.terminate()
        for worker in self._processes:
            try:
                worker.process.wait(10)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            os.close(worker.pulse)

    def _start(self, k: int) -> _Process:
        """Standard input stays open: that it ends tells the worker that its server is gone."""
        began = time.monotonic()
        # Threads that wait give their core away: server, storage and other workers need it.
        environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
        ours, its = os.pipe()
        os.set_blocking(ours, False)
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(its)], stdin=subprocess.PIPE, env=environment,
                pass_fds=(its,),
            )  # fmt: skip
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(its)
        assert process.stdin is not None
        process.stdin.write(len(self._sent[k]).to_bytes(8, "little") + self._sent[k])
        process.stdin.flush()
        return _Process(process, ours, began)

    def _watched(self) -> None:
        while not self._stop.wait(LOOK_S):
            for k, worker in enumerate(self._processes):
                worker.listen()
                if worker.process.poll() is None:
                    if worker.heard and worker.looks * LOOK_S > self._silent:
                        log("worker_silent", pid=worker.process.pid, seconds=worker.looks * LOOK_S)
                        worker.process.kill()  # found dead by the next look
                    continue
                log("worker_died", pid=worker.process.pid, status=worker.process.returncode)
                if time.monotonic() - worker.began < QUICK_S and self._stop.wait(PAUSE_S):
                    return
                self._processes[k] = self._start(k)
                os.close(worker.pulse)


def _expect_sendable(program: Servable) -> None:
    """Raises ParameterError for a function that another process cannot import."""
    try:
        sent = pickle.dumps(program)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        why = str(error)
    else:
        named = {text for op, text, _ in pickletools.genops(sent) if op.name.endswith("UNICODE")}
        if "__main__" not in named:
            return
        why = "it is of the program that was started, __main__"
    raise ParameterError(
        f"{program.name} cannot be sent to workers: {why}; expected a function of a module that they import",
        {"name": program.name},
    )


def _exactly(source: io.FileIO, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = source.read(size - len(found))
        if not piece:
            raise SystemExit("the server ended before it said what to serve")
        found += piece
    return bytes(found)


def main() -> None:
    """A worker: what to serve comes on standard input, from the process that started it, and signs of life go
    to the pipe that is named."""
    pulse = int(sys.argv[1])
    with os.fdopen(0, "rb", buffering=0, closefd=False) as source:
        settings, programs, device, sharing = pickle.loads(
            _exactly(source, int.from_bytes(_exactly(source, 8), "little"))
        )
    to_stderr()
    worker = Worker(Settings.from_json(settings), Programs(programs), device, sharing)

    def ended(_number: int, _frame: object) -> None:
        worker.stop()

    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers

    def orphaned() -> None:
        os.read(0, 1)
        worker.stop()

    def alive() -> None:
        with suppress(BrokenPipeError):  # the server is gone
            while True:
                os.write(pulse, b".")
                time.sleep(PULSE_S)

    threading.Thread(target=orphaned, daemon=True, name="orphaned").start()
    threading.Thread(target=alive, daemon=True, name="pulse").start()
    worker.run()
    if worker.health.broken:  # what it has of the device cannot be given back, and must not hold the process
        os._exit(BROKEN)


if __name__ == "__main__":
    main()
