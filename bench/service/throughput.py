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
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

import common  # noqa: E402
import started  # noqa: E402

from crenel import client  # noqa: E402
from crenel.serve import NnProgram  # noqa: E402


def measure(given: argparse.Namespace) -> dict[str, Any]:
    program, images = common.digits(given.params, given.batch)
    served = NnProgram("digits", program.to_bytes(), allow_insecure=True)
    cores = sorted(os.sched_getaffinity(0))
    outer, inner = {cores[0]}, {cores[-1]}
    os.sched_setaffinity(0, outer)
    with (
        tempfile.TemporaryDirectory() as folder,
        started.serving(
            program, Path(folder), given.port, device_bytes=given.tenants * served.key_memory
        ) as (url, token, pid),
    ):
        worker = started.await_worker(pid)
        started.pin(worker, inner)
        sessions = []
        for _ in range(given.tenants):
            session = client.Session(client.connect(url, token), program.client, program.client.keygen("cpu"))
            session.send_keys()
            tensor = session.client.encrypt(images[: given.batch], program.client)
            sessions.append((session, tensor.to_bytes()))
        alone = started.Alone(program, sessions)
        started.piped(sessions, 1)
        alone.run(2, inner)
        result = len(common.submitted(*sessions[0]).encrypted(300))
        key_file = int(sessions[0][0].service.keys()[0]["bytes"])
        rounds = []
        for _ in range(given.rounds):
            found = _round(sessions, alone, inner, given.jobs, pid, worker, Path(folder))
            started.pin(worker, outer | inner)
            found |= _free(sessions, alone, outer | inner, given.jobs, worker, Path(folder))
            started.pin(worker, inner)
            rounds.append(found)
    return _summary(rounds, given) | {
        "input_bytes": len(sessions[0][1]),
        "result_bytes": result,
        "key_file_bytes": key_file,
        "key_bytes_on_device": served.key_memory,
    }


def _round(
    sessions: list, alone: started.Alone, core: set[int], jobs: int, server: int, worker: int, folder: Path
) -> dict[str, float]:
    """Jobs by the service, then as many by the library, on the worker's core."""
    cpu = {
        "client": time.process_time,
        "server": lambda: started.cpu(server),
        "worker": lambda: started.cpu(worker),
    }
    before = {name: read() for name, read in cpu.items()}
    start = time.perf_counter()
    started.piped(sessions, max(1, jobs // len(sessions)))
    seconds = time.perf_counter() - start
    done = max(1, jobs // len(sessions)) * len(sessions)
    found = {f"{name}_cpu": (read() - before[name]) / done for name, read in cpu.items()}
    wall, used = alone.run(done, core)
    full = started.full(sessions, max(1, jobs // len(sessions)), worker, folder)
    found |= {"full_seconds": full.seconds / done, "full_worker_cpu": full.cpu / done}
    alone_again, _ = alone.run(done, core)
    answered = started.full(sessions, max(1, jobs // len(sessions)), worker, folder, fetched=False)
    found |= {"answered_seconds": answered.seconds / done, "answered_worker_cpu": answered.cpu / done}
    found["answered_library_seconds"] = alone_again / done
    return found | {"seconds": seconds / done, "library_seconds": wall / done, "library_cpu": used / done}


def _free(
    sessions: list, alone: started.Alone, cores: set[int], jobs: int, worker: int, folder: Path
) -> dict[str, float]:
    """Jobs that all wait already, by the service and by the library, on whatever core there is."""
    each = max(1, jobs // len(sessions))
    full = started.full(sessions, each, worker, folder).seconds
    done = each * len(sessions)
    wall, _ = alone.run(done, cores)
    return {"free_seconds": full / done, "free_library_seconds": wall / done}


def _summary(rounds: list[dict[str, float]], given: argparse.Namespace) -> dict[str, Any]:
    """Medians over rounds; the share is of one round, where both met the same other work."""
    middle = {name: sorted(r[name] for r in rounds)[len(rounds) // 2] for name in rounds[0]}
    shares = sorted(r["library_seconds"] / r["seconds"] for r in rounds)
    full = sorted(r["library_seconds"] / r["full_seconds"] for r in rounds)
    answered = sorted(r["answered_library_seconds"] / r["answered_seconds"] for r in rounds)
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
        "fetched_afterwards": {
            "samples_a_second": round(given.batch / middle["answered_seconds"], 2),
            "share_of_the_library": common.spread(answered),
            "worker_cpu_ms": round(1000 * middle["answered_worker_cpu"], 2),
        },
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


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenants", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=120, help="a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--port", type=int, default=8451)
    parser.add_argument("--params", default="leveled-n14-s40")


if __name__ == "__main__":
    common.main("throughput", measure, options)
