"""Many tenants in turn on a worker whose device holds the keys of a few, and the library alone.

python bench/service/tenants.py --tenants 32 --resident 8 --json bench/results/service-tenants.json
"""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

import common

from crenel import client
from crenel.serve import NnProgram, running
from crenel.serve.worker import alive


def measure(given: argparse.Namespace) -> dict[str, Any]:
    program, images = common.digits(given.params, given.batch)
    served, spec = NnProgram("digits", program.to_bytes(), allow_insecure=True), program.client
    batch = images[: given.batch]
    with tempfile.TemporaryDirectory() as folder:
        settings = common.settings(
            folder,
            jobs=10_000,
            device_bytes=given.resident * served.key_memory,
            host_bytes=given.host_mib << 20,
        )
        with running([served], settings) as service:
            sessions = []
            for k in range(given.tenants):
                token = service.service.auth.add(f"tenant-{k}")
                session = client.Session(client.connect(service.url, token), spec, spec.keygen("cpu"))
                session.send_keys()
                sessions.append((session, session.client.encrypt(batch, spec)))
            few = sessions[: given.resident]
            _turns(few, spec, 1)
            resident = _turns(few, spec, given.rounds)
            in_turn = _turns(sessions, spec, max(1, given.rounds * given.resident // given.tenants))
            piped = _piped(few, given.rounds)
            use = alive(service.service.database, settings)[0]["use"]
            alone = _alone(program, few, given.rounds)
    direct = given.batch * len(alone) / sum(alone)
    return {
        "key_bytes_on_device": served.key_memory,
        "keys_resident": given.resident,
        "resident": resident,
        "all_in_turn": in_turn,
        "piped_resident": piped | {"share_of_the_library": round(piped["samples_a_second"] / direct, 3)},
        "library_alone": {"samples_a_second": round(direct, 2), **common.percentiles(alone)},
        "tiers": use,
    }


def _turns(sessions: list, spec: Any, rounds: int) -> dict[str, float]:
    """One after the other, each waits for its encrypted result."""
    times, keys, start, samples = [], [], time.perf_counter(), 0
    for _ in range(rounds):
        for session, tensor in sessions:
            began = time.perf_counter()
            job = common.submitted(session, tensor.to_bytes())
            job.encrypted(300)
            times.append(time.perf_counter() - began)
            keys.append(job.state()["seconds"]["keys"])
            samples += tensor.samples
    seconds = time.perf_counter() - start
    return {
        "jobs": len(times),
        "samples_a_second": round(samples / seconds, 2),
        **common.percentiles(times),
        "share_with_keys_prepared_anew": round(sum(k > 0 for k in keys) / len(keys), 3),
    }


def _piped(sessions: list, rounds: int) -> dict[str, float]:
    """All submitted, then all fetched: the worker never waits for a client."""
    start = time.perf_counter()
    sent = [(t.samples, common.submitted(s, t.to_bytes())) for _ in range(rounds) for s, t in sessions]
    for _, job in sent:
        job.encrypted(300)
    seconds = time.perf_counter() - start
    return {"jobs": len(sent), "samples_a_second": round(sum(n for n, _ in sent) / seconds, 2)}


def _alone(program: Any, sessions: list, rounds: int) -> list[float]:
    """The library in this process, bytes to bytes, keys ready."""
    ready = [(program.bind(s.client.evaluation_keys(s.spec)), t.to_bytes()) for s, t in sessions[:2]]
    times = []
    for k in range(rounds * len(sessions)):
        server, data = ready[k % len(ready)]
        began = time.perf_counter()
        server.run(server.tensor_from_bytes(data)).to_bytes()
        times.append(time.perf_counter() - began)
    return times


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenants", type=int, default=32)
    parser.add_argument("--resident", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--host-mib", type=int, default=256)
    parser.add_argument("--params", default="leveled-n13-s28")


if __name__ == "__main__":
    common.main("tenants", measure, options)
