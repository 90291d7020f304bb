"""Many tenants in turn on a worker whose device holds the keys of a few, and the library alone.

In turn: one request after the other, each waits for its result. Queue full: all jobs wait already when the
worker goes on, until the last is done; clients fetch afterwards, and the library alone computes as many, in
rounds of both. On a CPU worker and library have a core and a thread, server and clients the other cores; on a
GPU all run where they want. Clients and the library alone are this process, the server is one of its own.

python bench/service/tenants.py --json bench/results/service-tenants-cpu.json
python bench/service/tenants.py --network lenet --params leveled-n14-s30 --batch 1 --device cuda --jobs 240
python bench/service/tenants.py --network resnet20 --params boot35 --batch 1 --device cuda --weights FILE \\
    --data FOLDER --tenants 8 --resident 6 --alone 1 --rounds 2 --jobs 24 --full-rounds 3
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
import uuid
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

import common  # noqa: E402
import started  # noqa: E402

import crenel  # noqa: E402
from crenel import client, nn  # noqa: E402
from crenel.serve import NnProgram  # noqa: E402
from crenel.serve.presence import alive  # noqa: E402
from crenel.serve.programs import Programs  # noqa: E402
from crenel.serve.service import Service  # noqa: E402


def measure(given: argparse.Namespace) -> dict[str, Any]:
    program, images = common.network(given)
    served = NnProgram("digits", program.to_bytes(), allow_insecure=True)
    limits = {"device_bytes": given.resident * served.key_memory, "host_bytes": given.host_mib << 20}
    cores = sorted(os.sched_getaffinity(0))
    pinned = given.device == "cpu" and len(cores) > 1
    inner = {cores[-1]} if pinned else set(cores)
    if pinned:
        os.sched_setaffinity(0, set(cores) - inner)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = started.serving(program, Path(folder), given.port, given.device, **limits)
        with run as (url, _token, pid):
            worker = started.await_worker(pid)
            started.pin(worker, inner)
            service = Service(common.settings(folder), Programs([served]))
            own = nn.Program.from_bytes(program.to_bytes(), given.device, allow_insecure=True)
            one = partial(_tenant, service, url, program, given, images)
            made = [one(f"tenant-{k}") for k in range(given.tenants)]
            tenants = [(t.session, t.tensor) for t in made]
            few = tenants[: given.resident]
            own_keys = [t.keys for t in made if t.keys]
            alone = started.Alone(own, tenants[: len(own_keys)], own_keys)
            _checked(made)
            prepared = time.perf_counter() - start
            _turns(few, 1, given.batch)
            found = {"resident": _turns(few, given.rounds, given.batch)}
            rounds = max(1, given.rounds * given.resident // given.tenants)
            found["all_in_turn"] = _turns(tenants, rounds, given.batch)
            _turns(few, 1, given.batch)
            alone.run(len(own_keys), inner)
            found |= _full(few, alone, worker, inner, given, Path(folder))
            lease = common.settings(folder, lease_seconds=started.LIMITS["lease_seconds"])
            tiers = alive(service.database, lease)[0]["use"]
            service.close()
    return found | {
        "device": _described(given.device),
        "key_bytes_on_device": served.key_memory,
        "key_file_bytes": made[0].size,
        "input_bytes": len(made[0].tensor),
        "keys_resident": given.resident,
        "prepared_s": round(prepared, 1),
        "tiers": tiers,
    }


def _described(device: str) -> str:
    return crenel.device_info(device).description


@dataclass
class Tenant:
    """A session whose keys the service has, a tensor ready to send, its keys where the library needs them."""

    session: client.Session
    tensor: bytes
    size: int
    keys: bytes | None


def _tenant(
    service: Service, url: str, program: nn.Program, given: argparse.Namespace, images: Any, name: str
) -> Tenant:
    """Keys go into the storage as an upload would leave them: uploads are upload.py's to measure."""
    token = service.auth.add(name)
    tenant, spec = service.auth.tenant(f"Bearer {token}"), program.client
    session = client.Session(client.connect(url, token), spec, spec.keygen(given.device))
    keys = session.client.evaluation_keys(spec).to_bytes()
    session.key, blob = hashlib.sha256(keys).hexdigest(), f"incoming/{uuid.uuid4().hex}"
    service.blobs.write(blob, [keys])
    service.keys.add(tenant, spec.program, session.key, len(keys), blob)
    tensor = session.client.encrypt(images[: given.batch], spec).to_bytes()
    few = min(given.resident, given.alone or given.resident)
    return Tenant(session, tensor, len(keys), keys if int(name.rpartition("-")[2]) < few else None)


def _checked(made: list[Tenant]) -> None:
    """Until the worker has read all keys."""
    for tenant in made:
        while (found := tenant.session.service.keys()[0])["state"] == "received":
            time.sleep(0.05)
        if found["state"] != "ready":
            raise SystemExit(f"keys are {found['state']}")


def _turns(sessions: list, rounds: int, batch: int) -> dict[str, float]:
    """One after the other, each waits for its encrypted result."""
    times, seconds = [], []
    start = time.perf_counter()
    for _ in range(rounds):
        for session, data in sessions:
            began = time.perf_counter()
            job = common.submitted(session, data)
            job.encrypted(300)
            times.append(time.perf_counter() - began)
            seconds.append(job.state()["seconds"])
    took = time.perf_counter() - start
    keys = [s["keys"] for s in seconds]
    return {
        "jobs": len(times),
        "samples_a_second": round(batch * len(times) / took, 2),
        **common.percentiles(times),
        "share_with_keys_prepared_anew": round(sum(k > 0 for k in keys) / len(keys), 3),
        "keys_ms": round(1000 * max(keys), 1),
        "computing_p50_ms": common.percentiles([s["run"] for s in seconds])["p50_ms"],
    }


def _full(
    few: list, alone: started.Alone, worker: int, cores: set[int], given: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """Rounds of jobs that all wait already, and of as many by the library alone; shares are of one round."""
    each = max(1, given.jobs // len(few))
    done, service, library = each * len(few), [], []
    times: list[float] = []
    for _ in range(given.full_rounds):
        service.append(started.full(few, each, worker, folder, fetched=False))
        library.append(alone.run(done, cores, times)[0])
    shares = sorted(a / b.seconds for a, b in zip(library, service, strict=True))
    columns = [s.seconds for s in service], library, [s.cpu for s in service]
    middle = [sorted(found)[len(found) // 2] / done for found in columns]
    return {
        "full_resident": {
            "jobs": done,
            "samples_a_second": round(given.batch / middle[0], 2),
            "share_of_the_library": common.spread(shares),
            "worker_cpu_ms": round(1000 * middle[2], 2),
            "rounds": [round(s.seconds / done, 6) for s in service],
        },
        "library_alone": {
            "samples_a_second": round(given.batch / middle[1], 2),
            **common.percentiles(times),
            "rounds": [round(s / done, 6) for s in library],
        },
    }


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--network", choices=common.NETWORKS, default="dense")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tenants", type=int, default=32)
    parser.add_argument("--resident", type=int, default=8)
    parser.add_argument(
        "--alone",
        type=int,
        default=0,
        help="tenants whose keys the library alone has as well; 0: as resident",
    )
    parser.add_argument("--program", type=Path, help="the network compiled already, for these parameters")
    for name in ("weights", "data", "calibration"):
        parser.add_argument(f"--{name}", type=Path, help="of resnet20")
    parser.add_argument("--rounds", type=int, default=8, help="of those whose keys are resident, in turn")
    parser.add_argument("--jobs", type=int, default=480, help="a round where all wait already")
    parser.add_argument("--full-rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--host-mib", type=int, default=256)
    parser.add_argument("--port", type=int, default=8461)
    parser.add_argument("--params", default="leveled-n13-s28")


if __name__ == "__main__":
    common.main("tenants", measure, options)
