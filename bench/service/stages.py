"""Where a worker's CPU goes: milliseconds a request by stage, beside the library alone in the same process.

Jobs of two tenants lie ready in the queue; one thread takes, computes and answers them. CPU seconds of that
thread alone: other work on the machine changes them little. HTTP is no part of it (throughput.py measures
that).

python bench/service/stages.py --json bench/results/service-stages-n14-cpu.json
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

import common  # noqa: E402

from crenel import nn  # noqa: E402
from crenel.serve import NnProgram, worker  # noqa: E402
from crenel.serve.blobs import Blobs  # noqa: E402
from crenel.serve.jobs import Answered, Jobs, Submission  # noqa: E402
from crenel.serve.programs import Programs  # noqa: E402
from crenel.serve.results import Results  # noqa: E402
from crenel.serve.service import Service  # noqa: E402

COMPUTING = ("read the tensor", "run", "write the tensor")
STAGES = {
    "read the tensor": (nn.Server, "tensor_from_bytes"), "run": (nn.Server, "run"),
    "write the tensor": (nn.EncryptedTensor, "to_bytes"),
    "take jobs": (Jobs, "claim"), "read inputs": (Jobs, "input"), "commit": (Jobs, "done"),
    "write results": (Results, "write"), "delete inputs": (Blobs, "delete_files"), "log": (worker, "log"),
}  # fmt: skip
"""By name, what is timed; what one calls of another is the other's."""
SPENT: Counter[str] = Counter()
_within: list[float] = []


def _timed(f: Callable[..., Any], stage: str) -> Callable[..., Any]:
    @wraps(f)
    def timed(*given: Any, **more: Any) -> Any:
        start = time.thread_time()
        _within.append(0.0)
        try:
            return f(*given, **more)
        finally:
            took = time.thread_time() - start
            SPENT[stage] += took - _within.pop()
            if _within:
                _within[-1] += took

    return timed


def measure(given: argparse.Namespace) -> dict[str, Any]:
    program, images = common.digits(given.params, given.batch)
    served = NnProgram("digits", program.to_bytes(), allow_insecure=True)
    for stage, (place, name) in STAGES.items():
        setattr(place, name, _timed(getattr(place, name), stage))
    prop = Answered.__dict__["sha256"]
    prop.func = _timed(prop.func, "hash results")
    with tempfile.TemporaryDirectory() as folder:
        settings = common.settings(folder, jobs=10_000, device_bytes=2 * served.key_memory, lease_seconds=300)
        service = Service(settings, Programs([served]))
        works = worker.Worker(settings, Programs([served]), "cpu")
        made = [_tenant(service, program, served, images[: given.batch], name) for name in ("one", "two")]
        alone = common.bound(program, [keys for *_, keys in made])
        tenants = [(*who, server) for (*who, _), server in zip(made, alone, strict=True)]
        while works.step():  # checks the keys
            pass
        _round(service, works, tenants, served.program, 8)
        rounds = [_round(service, works, tenants, served.program, given.jobs) for _ in range(given.rounds)]
        if works.tiers.device.use.evictions:
            raise SystemExit("keys were not resident")
        works.close()
        service.close()
    names = ["library", "worker", *rounds[0]["stages"]]
    flat = [{"library": r["library"], "worker": r["worker"]} | r["stages"] for r in rounds]
    middle = {n: sorted(1000 * f.get(n, 0.0) for f in flat)[len(flat) // 2] for n in names}
    shares = sorted(r["library"] / r["worker"] for r in rounds)
    others = {n: round(ms, 3) for n, ms in middle.items() if n not in (*COMPUTING, "library", "worker")}
    return {
        "cpu_ms_a_request": {n: round(middle[n], 3) for n in ("library", "worker")},
        "computing_ms": {n: round(middle[n], 3) for n in COMPUTING},
        "beside_ms": dict(sorted(others.items(), key=lambda pair: -pair[1])),
        "library_over_worker_cpu": common.spread(shares),
    }


def _tenant(service: Service, program: nn.Program, served: NnProgram, images: Any, name: str) -> tuple:
    """Its keys stored, a tensor, and its keys."""
    tenant = service.auth.tenant(f"Bearer {service.auth.add(name)}")
    client = program.client.keygen("cpu")
    keys = client.evaluation_keys(program.client).to_bytes()
    key, blob = hashlib.sha256(keys).hexdigest(), f"incoming/{uuid.uuid4().hex}"
    service.blobs.write(blob, [keys])
    service.keys.add(tenant, served.program, key, len(keys), blob)
    return tenant, key, client.encrypt(images, program.client).to_bytes(), keys


def _round(service: Service, works: worker.Worker, tenants: list, program: str, jobs: int) -> dict[str, Any]:
    """As many by the library, then by the worker."""
    start = time.thread_time()
    for k in range(jobs):
        _, _, data, server = tenants[k % 2]
        server.run(server.tensor_from_bytes(data)).to_bytes()
    library = time.thread_time() - start
    for k in range(jobs):
        tenant, key, data, _ = tenants[k % 2]
        digest = hashlib.sha256(data).hexdigest()
        service.jobs.submit(tenant, Submission(program, key, uuid.uuid4().hex, data, "", len(data), digest))
    SPENT.clear()
    done, start = works.counts.done, time.thread_time()
    while works.step():
        pass
    spent = time.thread_time() - start
    if works.counts.done - done != jobs:
        raise SystemExit(f"{works.counts.done - done} jobs were done, expected {jobs}")
    stages = {name: seconds / jobs for name, seconds in SPENT.items()}
    stages["all else"] = spent / jobs - sum(stages.values())
    return {"library": library / jobs, "worker": spent / jobs, "stages": stages}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, default=120, help="a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--params", default="leveled-n14-s40")


if __name__ == "__main__":
    common.main("stages", measure, options)
