"""The engine Ray Serve: deployments of the HTTP side and of workers.

Ray places processes, gives each worker its GPU, restarts what dies, scales, and takes HTTP in on every node.
The queue is the database's: a worker takes jobs whose keys it holds first (`Jobs.claim`). So a tenant's jobs
go to the replica that has its keys by bytes that are really there, not by a header that a client writes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no network at run time; read when Ray is imported

import ray
from ray import serve
from ray.serve.schema import LoggingConfig

import crenel
from crenel.errors import ParameterError, UnavailableError
from crenel.serve import app, hosting
from crenel.serve.auth import Auth
from crenel.serve.database import Database
from crenel.serve.observe import log, to_stderr
from crenel.serve.programs import Programs, Servable
from crenel.serve.service import Service
from crenel.serve.settings import Settings
from crenel.serve.worker import Worker, alive

HTTP, WORKERS = "crenel", "crenel-workers"
START_S = 180.0
OBJECTS = 128 << 20  # Ray's object store: nothing of ours goes through it


class Computing:
    """A worker's replica: the loop over the queue in a thread, on the device that Ray gave it."""

    def __init__(self, settings: str, programs: list[Servable], device: str) -> None:
        to_stderr()
        self.worker = Worker(Settings.from_json(settings), Programs(programs), device)
        self._thread = threading.Thread(target=self.worker.run, daemon=True, name="worker")
        self._thread.start()

    def check_health(self) -> None:
        """Asked by Ray: raises where the loop ended, and the replica starts anew."""
        if not self._thread.is_alive():
            raise RuntimeError("the worker's loop ended")

    def __call__(self) -> int:
        """Its process: workers take their work from the queue, not from calls."""
        return os.getpid()

    def __del__(self) -> None:
        """Called by Ray before the replica ends: what runs waits for others."""
        worker = getattr(self, "worker", None)
        if worker is not None:
            worker.stop()
            self._thread.join(30)


def answering(settings: str, programs: list[Servable]) -> Callable[[], Any]:
    """What a replica of the HTTP side calls once, where it runs, to make the application."""

    def build() -> Any:
        to_stderr()
        service = Service(Settings.from_json(settings), Programs(programs))
        service.start()
        return app.create(service)

    return build


def applications(
    settings: Settings, programs: Sequence[Servable], *, device: str, workers: int = 1, servers: int = 1
) -> dict[str, Any]:
    """Applications of Ray Serve by name, for `ray.serve.run` on a cluster of one's own.

    settings : on several machines with database and storage that all of them reach
    device : "cpu" or "ref"; "cuda": each worker has one GPU, which Ray chooses
    workers, servers : replicas that compute, and that answer HTTP

    Raises ParameterError for another device.
    """
    if device not in ("cpu", "ref", "cuda"):
        raise ParameterError(
            f"the engine ray places workers itself: device cpu, ref or cuda, not {device}", {"name": "device"}
        )
    text, sent = settings.to_json(), list(programs)
    resources = {"num_cpus": 1.0, "num_gpus": 1.0} if device == "cuda" else {"num_cpus": 1.0}
    quiet_http = LoggingConfig(enable_access_log=False)  # Edge logs requests, without names
    # Threads that wait give their core away: the servers need it.
    quiet = {"env_vars": {"OMP_WAIT_POLICY": "passive"}}
    computing: Any = serve.deployment(
        Computing, name="workers", num_replicas=workers, health_check_period_s=2, health_check_timeout_s=30,
        graceful_shutdown_timeout_s=30, ray_actor_options={**resources, "runtime_env": quiet},
    )  # fmt: skip
    http: Any = serve.deployment(
        serve.ingress(answering(text, sent))(), name="http", num_replicas=servers,
        max_ongoing_requests=hosting.CONNECTIONS, logging_config=quiet_http,
        ray_actor_options={"num_cpus": 0.1},
    )  # fmt: skip
    return {WORKERS: computing.bind(text, sent, "cuda:0" if device == "cuda" else device), HTTP: http.bind()}


@dataclass(frozen=True)
class RayRunning:
    """A service on Ray that answers."""

    url: str
    token: str | None
    """Of the tenant ``local``, where it was new."""
    database: Database
    settings: Settings

    def worker_pids(self) -> list[int]:
        """Of workers that live."""
        return [int(str(w["pid"])) for w in alive(self.database, self.settings)]


@contextmanager
def running(
    programs: Sequence[str | os.PathLike[str] | Servable],
    settings: Settings | None = None,
    *,
    device: str = "cpu",
    host: str = "127.0.0.1",
    port: int = 8400,
    workers: int = 1,
) -> Iterator[RayRunning]:
    """A service on Ray until the block ends: on the cluster that RAY_ADDRESS names, else on this machine.

    Raises as `crenel.serve.running`; UnavailableError where no worker lives after three minutes.
    """
    chosen = settings or Settings()
    if "://" not in chosen.data:
        chosen = replace(chosen, data=str(Path(chosen.data).absolute()))
    served = hosting.found(programs, chosen)
    if device == "auto":
        device = "cuda" if any(d.kind == "cuda" for d in crenel.devices()) else "cpu"
    made = applications(chosen, served, device=device, workers=workers)
    database = Database(chosen.database_url)
    auth = Auth(database, chosen)
    _start(host, port, workers)
    try:
        for name, application in made.items():
            serve.run(application, name=name, route_prefix="/" if name == HTTP else None)
        _await(database, chosen)
        log("serving", url=f"http://{host}:{port}", programs=len(served), device=device)
        token = None if auth.names() else auth.add("local")
        yield RayRunning(f"http://{host}:{port}", token, database, chosen)
    finally:
        serve.shutdown()
        ray.shutdown()
        database.close()


def _start(host: str, port: int, workers: int) -> None:
    """Ray, and its door for HTTP."""
    if "RAY_ADDRESS" in os.environ:
        ray.init(log_to_driver=True)
    else:
        # A laptop's cores are shared by workers that each use all of them: Ray only counts.
        ray.init(
            num_cpus=workers + 2, include_dashboard=False, object_store_memory=OBJECTS, log_to_driver=True,
            configure_logging=False,
        )  # fmt: skip
    serve.start(http_options={"host": host, "port": port, "request_timeout_s": None})


def _await(database: Database, settings: Settings) -> None:
    end = time.monotonic() + START_S
    while not alive(database, settings):
        if time.monotonic() > end:
            raise UnavailableError("no worker began to live; the log of Ray says why")
        time.sleep(0.1)
