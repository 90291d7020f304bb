"""What the benches of the service share: programs, memory, and where results go."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import time
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import crenel
from crenel import ckks, client, nn
from crenel.serve import Settings
from crenel.workloads.networks import resnet20, small

ROOT = Path(__file__).resolve().parents[2]


def digits(params: str, batch: int) -> tuple[nn.Program, np.ndarray]:
    """A dense network 64-32-10 with squares, of weights drawn here, and images: what matters is the time."""
    warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
    rng = np.random.default_rng(11)
    layers = nn.Linear(rng.normal(0, 0.125, (32, 64))), nn.Square(), nn.Linear(rng.normal(0, 0.18, (10, 32)))
    images = rng.uniform(0, 1, (300, 64))
    chosen = ckks.preset(params, allow_insecure=True)
    return nn.compile(nn.Sequential(*layers), images, params=chosen, batch=batch, device="cpu"), images


def lenet(params: str, batch: int) -> tuple[nn.Program, np.ndarray]:
    """A convolutional network in the shape of LeNet-5 for images of digits, of weights drawn here."""
    model, images = small.lenet(0, max(64, batch))
    chosen = ckks.preset(params, allow_insecure=True)
    return nn.compile(model, images, params=chosen, batch=batch, device="cpu"), images


def resnet(
    params: str, batch: int, weights: Path | None, data: Path | None, calibration: Path | None
) -> tuple[nn.Program, np.ndarray]:
    """ResNet-20 for CIFAR-10 of trained weights, with ReLU as polynomials of its degree, and test images.

    weights, data, calibration : as `resnet20.task` takes them; none come with Crenel
    """
    task = resnet20.task(weights, data, calibration, max(64, batch))
    assert task.model is not None
    chosen = ckks.preset(params, allow_insecure=True)
    program = nn.compile(
        task.model, task.calibration, params=chosen, degree=task.degree, margin=task.margin, batch=batch
    )
    return program, task.samples


def network(given: argparse.Namespace) -> tuple[nn.Program, np.ndarray]:
    """That of the arguments `network`, `params` and `batch`, with its images; a compiled one where `program`
    names its file, with images drawn here: what matters is the time."""
    warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
    if given.program is not None:
        found = nn.Program.load(given.program, allow_insecure=True)
        return found, np.random.default_rng(11).uniform(-1, 1, (64, *found.client.input.shape))
    if given.network == "resnet20":
        return resnet(given.params, given.batch, given.weights, given.data, given.calibration)
    return {"dense": digits, "lenet": lenet}[given.network](given.params, given.batch)


NETWORKS = ("dense", "lenet", "resnet20")


def bound(program: nn.Program, keys: list[bytes]) -> list[nn.Server]:
    """The library alone with the keys of several clients, who share weights as in a worker."""
    shared = nn.Server.shared(program)
    return [shared.with_keys(shared.context.evaluation_keys_from_bytes(data)) for data in keys]


def settings(folder: str, **more: Any) -> Settings:
    """Of a service whose limits no bench reaches, with its data in a folder; `more` are those it measures."""
    return Settings(
        data=str(Path(folder) / "data"),
        allow_insecure=True,
        **{"requests_per_second": 1e5, "burst": 10**6, "waiting": 10**4, "min_free_bytes": 0} | more,
    )


def submitted(session: client.Session, data: bytes) -> client.Job:
    """A job of bytes that are ready, so that no encryption is part of what is timed."""
    headers = {
        "Crenel-Program": session.spec.program,
        "Crenel-Key": session.key,
        "Content-Type": "application/octet-stream",
        "Idempotency-Key": uuid.uuid4().hex,
    }
    made = session.service.request("POST", "/jobs", content=data, headers=headers)
    return client.Job(session, made.json()["job"])


def resident_bytes(pid: int) -> int:
    """Memory of a process, 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, IndexError):
        return 0


def percentiles(seconds: list[float]) -> dict[str, float]:
    """In milliseconds."""
    found = np.percentile(seconds, [50, 99]) * 1000 if seconds else [0.0, 0.0]
    return {"p50_ms": round(float(found[0]), 1), "p99_ms": round(float(found[1]), 1)}


def spread(found: list[float]) -> dict[str, float]:
    """Of sorted numbers."""
    return {n: round(found[k], 3) for n, k in (("median", len(found) // 2), ("least", 0), ("most", -1))}


def main(
    name: str,
    measure: Callable[[argparse.Namespace], dict],
    options: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Runs a bench; ``--json`` writes a new file."""
    parser = argparse.ArgumentParser(description=name)
    parser.add_argument("--json", type=Path)
    options(parser)
    arguments = parser.parse_args()
    start = time.time()
    found = measure(arguments)
    commit = os.environ.get("CRENEL_COMMIT") or ""
    if not commit and shutil.which("git"):
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        commit = asked.stdout.strip()
    document = {
        "kind": "crenel-service",
        "suite": f"service-{name}",
        "library": crenel.__version__,
        "commit": commit,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start)),
        "host": {
            "cpus": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "load": [round(v, 2) for v in os.getloadavg()],
        },
        "settings": {
            k: v.name if isinstance(v, Path) else v for k, v in vars(arguments).items() if k != "json"
        },
        "results": found,
    }
    text = json.dumps(document, indent=1)
    print(text)
    if arguments.json:
        with arguments.json.open("x") as file:
            file.write(text + "\n")
